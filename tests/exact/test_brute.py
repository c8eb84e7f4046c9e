"""Verdicts, and lengths of sessions, are those of brute force."""

from __future__ import annotations

import random

import pytest

import tcc
from tcc.library.proving import prove
from tests.exact.brute import (
    Holds,
    breaks_inclusion,
    breaks_statement,
    changed,
    grammar,
    statement,
    stuck,
)


def compiled(text: str) -> tcc.Artifact | None:
    try:
        return tcc.compile_text(text)
    except tcc.CompileError as error:
        assert {d.code for d in error.diagnostics if d.severity == "error"} <= {
            "TCC401",
            "TCC402",
        }, text
        return None


def same(found: object, length: int | None, text: str, tally: dict[str, int]) -> None:
    tally[found.verdict] = tally.get(found.verdict, 0) + 1
    if found.verdict == "undecided":
        assert set(found.codes) <= {"P504"}, (text, found.whys)
        return
    assert (found.verdict == "proved") == (length is None), (text, found.session, length)
    if length is not None:
        assert len(found.session.calls) == length, (text, found.session, length)


def ask(seed: int, tally: dict[str, int]) -> None:
    rng = random.Random(seed)
    one = grammar(rng)
    other = changed(rng, one)
    left, right = compiled(one.text), compiled(other.text)
    if left is None or right is None:
        return
    mine, theirs = Holds(one), Holds(other)
    both = f"{seed}\n{one.text}\n{other.text}"
    same(prove(left, implies=right), breaks_inclusion(mine, theirs), both, tally)
    same(prove(right, implies=left), breaks_inclusion(theirs, mine), both, tally)
    same(prove(left, finishable=True), stuck(mine), both, tally)
    for _ in range(2):
        say = statement(rng, one)
        if say is not None:
            length = breaks_statement(mine, say)
            same(prove(left, say.text), length, f"{both}\n{say.text}", tally)


@pytest.mark.parametrize("seed", range(12))
def test_verdicts_are_those_of_brute_force(seed: int) -> None:
    tally: dict[str, int] = {}
    for at in range(10 * seed, 10 * seed + 10):
        ask(at, tally)
    assert tally.get("proved", 0) + tally.get("refuted", 0) > 10
