"""Verdicts, and lengths of sessions, are those of brute force."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

import tcc
from tcc.library.proving import Proof, prove
from tests.exact.brute import (
    MOST_SESSIONS,
    Call,
    Holds,
    Say,
    breaks_inclusion,
    breaks_statement,
    changed,
    ends,
    grammar,
    meets,
    reaches,
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


def count(tally: dict[str, int], *names: str) -> None:
    for name in names:
        tally[name] = tally.get(name, 0) + 1


def same(
    found: Proof,
    length: int | None,
    text: str,
    tally: dict[str, int],
    shows: Callable[[list[Call]], bool],
) -> None:
    """The verdict is that of brute force; a session is as short, and by the definitions one."""
    count(tally, f"{found.kind} {found.verdict}")
    if found.verdict == "undecided":
        assert set(found.codes) <= {"P504"}, (text, found.whys)
        return
    shown = (found.verdict == "proved") == (found.kind == "reachable")
    assert shown == (length is not None), (text, found.session, length)
    if length is None:
        assert found.session is None, text
        return
    assert found.session is not None, text
    calls = [(call.tool, dict(call.arguments)) for call in found.session.calls]
    assert len(calls) == length, (text, calls, length)
    assert shows(calls), (text, calls)
    count(tally, "sessions shown")


def parts_from(left: Holds, right: Holds) -> Callable[[list[Call]], bool]:
    """Whether a session is one of the left, and all of it but its end one of the right."""

    def shows(calls: list[Call]) -> bool:
        if not left.lets(calls) or not right.lets(calls[:-1]):
            return False
        return not right.lets(calls) or (left.ended(calls) and not right.ended(calls))

    return shows


def breaks(left: Holds, say: Say) -> Callable[[list[Call]], bool]:
    """Whether a session of the left does not meet a statement, and its beginnings do."""

    def shows(calls: list[Call]) -> bool:
        if not left.lets(calls) or not all(meets(say, calls[:at]) for at in range(len(calls))):
            return False
        return not meets(say, calls) or (left.ended(calls) and not ends(say, calls))

    return shows


def ask(seed: int, tally: dict[str, int]) -> list[tuple[Proof, tuple[tcc.Artifact, ...]]]:
    """Compares the answers about a pair of grammars and two statements; gives them back."""
    rng = random.Random(seed)
    one = grammar(rng)
    other = changed(rng, one)
    left, right = compiled(one.text), compiled(other.text)
    mine, theirs = Holds(one), Holds(other)
    if left is None or right is None or theirs.size() > MOST_SESSIONS:
        return []
    count(tally, "pairs")
    both = f"{seed}\n{one.text}\n{other.text}"
    found: list[tuple[Proof, tuple[tcc.Artifact, ...]]] = []

    def compare(
        proof: Proof,
        length: int | None,
        shows: Callable[[list[Call]], bool],
        *artifacts: tcc.Artifact,
        text: str = "",
    ) -> None:
        same(proof, length, f"{both}\n{text}", tally, shows)
        found.append((proof, artifacts))

    for (a, of_a), (b, of_b) in (((left, mine), (right, theirs)), ((right, theirs), (left, mine))):
        length = breaks_inclusion(of_a, of_b)
        compare(prove(a, implies=b), length, parts_from(of_a, of_b), a, b)
    end = stuck(mine)
    compare(prove(left, finishable=True), end, mine.lets, left)
    for _ in range(2):
        say = statement(rng, one)
        if say is None:
            continue
        count(tally, "statements")
        length = breaks_statement(mine, say)
        compare(prove(left, say.text), length, breaks(mine, say), left, text=say.text)
        reached = reaches(mine, say.a)
        compare(
            prove(left, reachable=say.a),
            reached,
            lambda calls, tool=say.a: mine.lets(calls) and calls[-1][0] == tool,
            left,
            text=say.a,
        )
    return found


@pytest.mark.parametrize("seed", range(12))
def test_verdicts_are_those_of_brute_force(seed: int) -> None:
    tally: dict[str, int] = {}
    for at in range(10 * seed, 10 * seed + 10):
        ask(at, tally)
    decided = [number for name, number in tally.items() if name.endswith(("proved", "refuted"))]
    assert sum(decided) > 10
