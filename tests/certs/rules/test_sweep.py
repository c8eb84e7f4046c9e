"""The sweep: blocks cover all states in order, and the first rule that fails anywhere is heard."""

from __future__ import annotations

import random

import pytest

from tcc_certs.automaton import Automaton
from tcc_certs.errors import Code, Rejected
from tcc_certs.rules import sweep as room
from tcc_certs.rules.sweep import Block, blocks, sweep
from tests.certs.rules.refusals import refusal
from tests.forgery.artifacts import Forge
from tests.oracle.examples import example


def some(degrees: list[int]) -> Automaton:
    starts = [0]
    for degree in degrees:
        starts.append(starts[-1] + degree)
    edges = list(range(starts[-1]))
    return Automaton(
        edge_start=starts,
        edge_call=edges,
        edge_target=edges,
        accept=[0] * len(degrees),
        rank=[0] * len(degrees),
    )


@pytest.mark.parametrize("most", [1, 2, 3, 7, 1000])
def test_blocks_cover_every_state_and_edge_once(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_EDGES", most)
    rng = random.Random(most)
    for _ in range(50):
        automaton = some([rng.choice((0, 0, 1, 2, 9)) for _ in range(rng.randrange(1, 20))])
        found = list(blocks(automaton))
        assert [q for block in found for q in block.states] == list(range(automaton.states))
        assert [p for block in found for p in block.targets] == automaton.edge_target
        rows = [row for block in found for row in block.fold(list, block.targets, [])]
        assert rows == [[p for _, p in automaton.edges(q)] for q in range(automaton.states)]
        assert all(len(block.targets) <= most or len(block.states) == 1 for block in found)


def failing_at(state: int, code: Code, asked: list[int]) -> room.Rule:
    def rule(block: Block) -> None:
        asked.append(block.states.start)
        if state in block.states:
            raise Rejected(code, str(state), "", "")

    return rule


@pytest.mark.parametrize(("together", "then"), [(1, [0, 1]), (2, [0, 1]), (3, [0, 1]), (4, [])])
def test_an_earlier_rule_is_heard_though_it_fails_later(
    together: int, then: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "_EDGES", 1)
    monkeypatch.setattr(room, "_BLOCKS", together)
    first: list[int] = []
    second: list[int] = []
    rules = [
        failing_at(3, Code.PLAN_COUNT, first),
        failing_at(1, Code.RACE_COUNT, second),
    ]
    with pytest.raises(Rejected) as refused:
        sweep(some([1, 1, 1, 1, 1]), rules)
    assert (refused.value.code, refused.value.path) == ("C301", "3")
    assert (first, second) == ([0, 1, 2, 3], then)


def test_findings_of_a_rule_are_those_of_its_first_state() -> None:
    forge = Forge(example())
    for at in (4, 2):
        forge.set("plans", at, forge.values("plans")[at] + 1)
    assert refusal(forge) == ("C301", "plans[2]")
