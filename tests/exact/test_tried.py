"""What the kernel of proofs tries at a state, and what it keeps, at their bounds."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

import tcc
from tcc.library import artifact_of
from tcc_certs.errors import Rejected
from tcc_certs.proof import histories, moves
from tcc_certs.proof.compared import Part, State
from tcc_certs.proof.histories import CallParts
from tcc_certs.proof.moves import System
from tcc_runtime.exact import certificate

HEAD = 'grammar g version "1"\n'
LISTS = f"""{HEAD}tool pay(; to: list max 3 of text max 9, one: text max 9)
plan = any*
limit depth <= 2
forbid pay where one in seen.to before pay
"""
PLAIN = f"""{HEAD}tool pay(k: p | q; one: text max 9, o?: text max 9)
plan = any*
limit depth <= 2
forbid pay before pay same one, o = one
"""
GIVEN = f"""{HEAD}given user: text max 9, old?: flag
tool pay(; one: text max 9)
plan = any*
limit depth <= 2
require pay where one = session.user
require pay where session.old = true
"""
LONG = LISTS.replace("<= 2", "<= 4").replace("to: list max 3", "to: list max 1")
CASES = {"lists": LISTS, "long": LONG, "plain": PLAIN, "given": GIVEN}


@cache
def _artifact(name: str) -> Any:
    return artifact_of(tcc.compile_text(CASES[name]))


def _system(name: str) -> tuple[System, Part]:
    of = certificate.ProvedQuestion(kind="finishable", text=None, artifacts=(_artifact(name),))
    system = of.system()
    uses = frozenset(range(len(system.left.core.monitors)))
    return system, Part(tracked=None, rule=None, uses=uses)


def _later(system: System, part: Part) -> State:
    """A state at which something is remembered."""
    found = [move.state for move in system.moves(part, system.starts(part)[0])]
    return next(state for state in found if state is not None and state[2])


def _refusal(of: Any) -> tuple[str, str]:
    with pytest.raises(Rejected) as refused:
        of()
    return refused.value.code.value, refused.value.path


@pytest.mark.parametrize("name", ["plain", "lists"])
def test_choices_are_tried_as_often_as_there_is_room_for(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    system, part = _system(name)
    state = system.starts(part)[0] if name == "lists" else _later(system, part)
    begun = system._tried
    known = [(move.call, move.tokens, move.state) for move in system.moves(part, state)]
    tried = system._tried - begun
    assert tried >= len(known) > 1
    again, _ = _system(name)
    monkeypatch.setattr(moves, "MAX_TRIED", tried)
    assert len(list(again.moves(part, state))) == len(known)
    again._tried = 1
    assert _refusal(lambda: list(again.moves(part, state))) == ("D201", "choices")


@pytest.mark.parametrize(("name", "most"), [("plain", 3), ("lists", 2), ("given", 3)])
def test_choices_of_one_call_and_of_what_is_given_are_counted(
    name: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found() -> int:
        system, part = _system(name)
        starts = system.starts(part)
        if name == "given":
            return len(starts)
        return sum(move.call == 0 for move in system.moves(part, starts[0]))

    monkeypatch.setattr(moves, "MAX_CHOICES", most)
    assert found() == most
    monkeypatch.setattr(moves, "MAX_CHOICES", most - 1)
    assert _refusal(found) == ("D201", "choices")


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    def kept(system: System) -> list[int]:
        known = [system._looks, system._mades, system.histories._known]
        rows = sum(1 + len(held) + len(found) for (_, _, held, _), found in system._tries.items())
        nexts = sum(1 + len(found) for side in system._nexts for found in side.values())
        return [*map(len, known), rows, nexts]

    def listed(system: System, part: Part) -> int:
        more: Any = {"max_states": 1000, "check_time": lambda: None}
        found = certificate.closed(system, part, ends=False, **more)
        assert found is not None
        return len(found.states)

    system, part = _system("long")
    states, sizes = listed(system, part), kept(system)
    assert min(sizes) > 9, sizes
    for module, name in (
        (moves, "MAX_LOOKS"), (moves, "MAX_NEXT"), (histories, "MAX_REMEMBERED")
    ):  # fmt: skip
        monkeypatch.setattr(module, name, 4)
    system, part = _system("long")
    assert listed(system, part) == states
    most = (5, 5, 4, 11, 4)  # the last row alone may be longer
    assert all(now <= some for now, some in zip(kept(system), most, strict=True)), kept(system)


def test_a_call_that_one_side_has_not_is_remembered_by_the_other_alone() -> None:
    """Statements with spans of time of both sides share a line of calls."""
    spans = "".join(f"limit uses({tool}) <= 1 within 1 h\n" for tool in ("more", "pay"))
    ends = "plan = any*\nlimit depth <= 3\n"
    mine = tcc.compile_text(f"{HEAD}tool more\ntool pay\n{ends}{spans}")
    theirs = tcc.compile_text(f"{HEAD}tool pay\n{ends}{spans.splitlines()[1]}\n")
    both = (artifact_of(mine), artifact_of(theirs))
    system = certificate.ProvedQuestion(kind="implies", text=None, artifacts=both).system()
    past = system.histories.begun({})

    def refused(made: CallParts) -> list[bool]:
        every = frozenset({0, 1})
        return [system.histories.refused(past, made, every, side) for side in (0, 1)]

    for tool in ("more", "pay"):
        made = CallParts(tool=tool, parts=(), answers=frozenset())
        assert refused(made) == [False, False]
        past = system.histories.after(past, made)
    again = CallParts(tool="pay", parts=(), answers=frozenset())
    assert refused(again) == [True, True]
    assert len(system.histories.ages(past)) == 2
