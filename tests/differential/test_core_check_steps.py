"""The core check in steps, on grammars that blow up where each way to derive is kept apart."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tcc_certs.corecheck.check import CoreReport, check_core
from tcc_certs.errors import Rejected
from tcc_certs.kernel import check
from tcc_certs.policy.reader import read_core
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_core, compile_file, compile_text
from tests.oracle.build import Node, build, build_graph
from tests.oracle.cores import at_most, count_at_least, count_at_most, depth, letters, make_core
from tests.oracle.plans import plans

GRAMMARS = Path(__file__).parents[2] / "grammars"
AB = {0, 1}


def grammar(plan: str, most: int, rules: str = "") -> str:
    return (
        f'grammar g version "1"\ntool a {{ cost 1 }}\ntool b {{ cost 2 }}\n{rules}\n'
        f"plan = {plan}\nlimit depth <= {most}\n"
    )


def within(artifact: bytes | None, steps: int) -> CoreReport:
    """The report of a core check that may take so many steps."""
    assert artifact is not None
    return check_core(check(artifact), steps=steps)


def test_what_comes_too_late_is_not_remembered() -> None:
    # Of the last 20 calls each may have been the a: but only 5 of them in time.
    result = compile_text(grammar("any* a any{20}", 25), Options())
    assert within(result.artifact, 30_000) == CoreReport(pairs=318, dead=0)


@pytest.mark.parametrize(("most", "steps"), [(12, 50_000), (24, 400_000)])
def test_a_rule_that_stands_twice_in_itself_is_followed_once(most: int, steps: int) -> None:
    text = grammar("r", most, "rule r = ((any r r){2,4}){0,2}")
    result = compile_text(text, Options(max_states=2000))
    assert within(result.artifact, steps) == CoreReport(pairs=most + 1, dead=0)


@pytest.mark.parametrize(
    ("name", "pairs", "steps"),
    [
        ("coding_agent", 25_544, 300_000),
        ("data_pipeline", 19_913, 450_000),
        ("incident_response", 12_038, 200_000),
        ("sql_analyst", 9_185, 120_000),
    ],
)
def test_a_step_is_counted_once_a_pair_and_letter(name: str, pairs: int, steps: int) -> None:
    result = compile_file(GRAMMARS / f"{name}.tcg", Options(beta="8"))
    assert within(result.artifact, steps).pairs == pairs


def nested_core(rng: random.Random) -> bytes:
    """A core whose rule stands in itself several times, under limits that cut it off."""
    one, two = ["rule", "r"], ["rule", "s"]
    call = ["call", rng.choice([{0}, {1}, AB])]
    body: list[Any] = ["seq", [call, one, rng.choice([one, two])]]
    low = rng.randint(0, 2)
    rule = ["repeat", ["repeat", body, low, low + rng.randint(0, 2)], rng.randint(0, 1), 2]
    other = rng.choice([["alt", [["empty"], ["seq", [["call", {1}], one]]]], ["call", AB]])
    if rng.random() < 0.3:
        other = ["and", [other, ["repeat", ["call", AB], 0, 2]]]
    tail = ["seq", [["repeat", ["call", AB], 0], ["call", {0}], ["repeat", ["call", AB], 2, 2]]]
    statements: list[Any] = [depth(rng.randint(2, 5))]
    if rng.random() < 0.5:
        statements.append(at_most("price", rng.randint(2, 6)))
    if rng.random() < 0.5:
        statements.append(rng.choice((count_at_most({0}, 2), count_at_least({0}, 1))))
    if rng.random() < 0.3:
        statements.append(["never next", {0}, {1}])
    return make_core(
        **letters(2, price=[rng.randint(0, 2), rng.randint(0, 2)]),
        plan=["alt", [["seq", [one, two]], tail]],
        rules={"r": rule, "s": other},
        statements=statements,
    )


def verdict(core: bytes, words: list[tuple[int, ...]]) -> str:
    try:
        check_core(check(build(core, words)))
    except Rejected as refusal:
        return refusal.code.value
    return "VALID"


def test_nested_rules_agree_with_the_oracle_and_no_other_plan_does() -> None:
    rng = random.Random(5)
    flips = 0
    for _ in range(60):
        data = nested_core(rng)
        found = plans(read_core(data), 5)
        compiled = compile_core(data, Options())
        if not found:
            assert [d.code for d in compiled.diagnostics] == ["TCC402"]
            continue
        assert compiled.artifact == build(data, found)
        assert verdict(data, found) == "VALID"
        for _ in range(6):
            word = tuple(rng.randrange(2) for _ in range(rng.randint(0, 6)))
            other = sorted(set(found) ^ {word})
            if other:
                assert verdict(data, other) in ("G101", "G102"), (data, word)
                flips += 1
    assert flips > 200


def spending(left: int, nodes: dict[int, Node]) -> Node:
    """All plans of calls of price 1 to 4 of at most so much together."""
    children = {call: nodes[left - call - 1] for call in range(4) if call < left}
    return nodes.setdefault(left, Node(accept=True, children=children))


def test_states_with_more_or_less_left_are_not_taken_for_one_another() -> None:
    # The four calls lead to 11, 10, 9 and 8: pairs of one state where the automaton says so.
    core = make_core(
        **letters(4, price=[1, 2, 3, 4]),
        plan=["repeat", ["call", {0, 1, 2, 3}], 0],
        statements=[at_most("price", 12)],
    )
    nodes: dict[int, Node] = {}
    root = [spending(left, nodes) for left in range(13)][12]
    assert check_core(check(build_graph(core, root))).dead == 0
    for targets in product(range(8, 12), repeat=4):
        children = {call: nodes[target] for call, target in enumerate(targets)}
        if targets != (11, 10, 9, 8):
            forged = check(build_graph(core, Node(accept=True, children=children)))
            with pytest.raises(Rejected, match=r"G10[12]"):
                check_core(forged)
