"""Verdicts about language 1.2, and lengths of sessions, are those of brute force; proofs hold."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import tcc
from tcc.library import artifact_bytes
from tcc.library.proving import Proof, prove
from tcc_certs.proof.check import check_proof
from tests.exact import brute_later as brute, drawn_later as drawn, drawn_members
from tests.exact.test_brute import count
from tests.exact.test_proofs import file_of, lines_of
from tests.oracle_policies import language as l
from tests.oracle_policies.writer import statement_of

Shows = Callable[[Any], bool]


def compiled(grammar: l.Grammar, *, fits: bool = True) -> tcc.Artifact | None:
    """The artifact; None where it has no plan, or does not `fit` and does not compile."""
    try:
        return tcc.compile_text(drawn.text(grammar))
    except tcc.CompileError as error:
        codes = {d.code for d in error.diagnostics if d.severity == "error"}
        assert not fits or codes <= {"TCC401", "TCC402", "TCC413"}, drawn.text(grammar)
        return None


def held_to(
    found: Proof, length: int | None, text: str, tally: dict[str, int], shows: Shows
) -> None:
    """The verdict is that of brute force; a session is as short, and by the definitions one."""
    count(tally, f"{found.kind} {found.verdict}", *found.codes)
    if found.verdict == "undecided":
        assert set(found.codes) <= {"P501", "P502"}, (text, found.whys)
        return
    shown = (found.verdict == "proved") == (found.kind == "reachable")
    assert shown == (length is not None), (text, found.session, length)
    if length is None:
        assert found.session is None, text
        return
    assert found.session is not None, text
    calls = found.session.calls
    assert len(calls) == length, (text, calls, length)
    assert shows(found.session), (text, found.session)
    count(tally, "sessions shown")


def of_one_side(left: l.Grammar, right: l.Grammar) -> Shows:
    """Whether a session is one of the left, and all of it but its end one of the right."""

    def shows(session: Any) -> bool:
        mine, calls = brute.played(left, session), session.calls
        theirs = brute.played(right, replace(session, calls=calls[:-1]))
        if mine is None or theirs is None or len(calls) == 0:
            begun = brute.begun(right, json.dumps(dict(session.given)))
            return mine is not None and mine[-1][0].ends and not begun.ends
        whole = brute.played(right, session)
        return whole is None or (mine[-1][0].ends and not whole[-1][0].ends)

    return shows


def of_none(left: l.Grammar, say: l.Statement) -> Shows:
    """Whether a session of the left does not meet a statement, and its beginnings do."""

    def shows(session: Any) -> bool:
        mine = brute.played(left, session)
        if mine is None:
            return False
        broken = [play.breaks(say, step) for play, step in mine[:-1]]
        end = mine[-1][0]
        return not any(broken[:-1]) and (any(broken[-1:]) or (end.ends and end.owes(say)))

    return shows


def ask(seed: int, tally: dict[str, int], forms: drawn.Forms) -> None:
    """Compares the answers about a pair of grammars and a statement, and checks their proofs."""
    rng = random.Random(seed)
    if forms == "members":
        one = drawn_members.grammar(rng)
        other = drawn_members.changed(rng, one)
    else:
        one = drawn.grammar(rng, forms)
        other = drawn.changed(rng, one, forms)
    left, right = compiled(one), compiled(other, fits=one.tools == other.tools)
    gaps = brute.gaps_of(one, other)
    if left is None or right is None or brute.many(one, gaps) > brute.MOST_SESSIONS:
        return
    count(tally, "pairs")
    both = f"{seed}\n{drawn.text(one)}\n{drawn.text(other)}"

    def compare(
        found: Proof, length: int | None, shows: Shows, *artifacts: tcc.Artifact, text: str = ""
    ) -> None:
        told = f"{both}\n{text or found.kind}"
        held_to(found, length, told, tally, shows)
        if found.verdict == "undecided":
            return
        data = found.certificate
        assert data is not None, (told, found)
        given = [artifact_bytes(one) for one in artifacts]
        report = check_proof(data, given)
        assert report.finding is None, (told, found, report)
        assert report.proof == found.verdict
        count(tally, "proofs VALID")
        lines = lines_of(data)
        lines[0]["proof"] = "proved" if found.verdict == "refuted" else "refuted"
        assert check_proof(file_of(lines), given).verdict != 0, told

    for a, of_a, b, of_b in ((left, one, right, other), (right, other, left, one)):
        length = brute.breaks_inclusion(of_a, of_b)
        compare(prove(a, implies=b), length, of_one_side(of_a, of_b), a, b)
    found, end = prove(left, finishable=True), brute.stuck(one)
    if brute.gaps_of(one)[1:]:  # what is stuck at some times is left open
        assert found.verdict == ("undecided" if end is not None else found.verdict), both
    compare(found, end, lambda session: brute.played(one, session) is not None, left)
    say: l.Statement | None = None
    if forms == "members":
        say = drawn_members.statement(rng)
    else:
        say = drawn.statement(rng, one.tools, forms, drawn.attributes(one))
    if say is None or brute.many(one, brute.gaps_of(one, say)) > brute.MOST_SESSIONS:
        return
    count(tally, "statements")
    text = statement_of(say)
    length = brute.breaks_statement(one, say)
    try:
        found = prove(left, text)
    except tcc.CompileError as error:  # nothing is left of what speaks of no call
        assert "is no statement" in str(error) and length is None, f"{both}\n{text}"
        return
    compare(found, length, of_none(one, say), left, text=text)
    tool = rng.choice(one.tools).name
    compare(
        prove(left, reachable=tool),
        brute.reaches(one, tool),
        lambda it: brute.played(one, it) is not None and it.calls[-1].tool == tool,
        left,
        text=tool,
    )


@pytest.mark.parametrize("forms", ["later", "timed", "fields", "told", "lists", "members", "mixed"])
@pytest.mark.parametrize(
    "first", [0, *[pytest.param(n, marks=pytest.mark.campaign) for n in range(20, 240, 20)]]
)
def test_verdicts_are_those_of_brute_force(first: int, forms: drawn.Forms) -> None:
    tally: dict[str, int] = {}
    for seed in range(first, first + 20):
        ask(seed, tally, forms)
    decided = sum(n for name, n in tally.items() if name.endswith(("proved", "refuted")))
    if forms in ("lists", "members", "mixed"):  # beside statements over lists it is left open
        tally.pop("finishable undecided", None)
    undecided = sum(n for name, n in tally.items() if name.endswith("undecided"))
    assert decided > 4 * undecided, tally
