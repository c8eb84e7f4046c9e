"""The check of a proof, beside what it says: questions, counts, ends, and what it declines."""

from __future__ import annotations

from typing import Any

import pytest

import tcc
from tcc.library import artifact_bytes
from tcc_certs.core.model import Core
from tcc_certs.kernel import check
from tcc_certs.proof.check import check_proof, proof_lines
from tcc_certs.proof.fields import Uncovered, ensure_alike, given_alike
from tcc_runtime.exact import certificate
from tests.exact.test_proofs import SHOP, asked, by_all, changed_at, code_of, file_of, lines_of

HEAD = 'grammar g version "1"\n'


def test_a_verdict_is_told_with_its_question_and_what_was_looked_at() -> None:
    found, artifacts = asked(SHOP, "limit depth <= 3")
    assert found.certificate is not None
    report = check_proof(found.certificate, artifacts)
    assert {*report.checked} == {"states", "steps", "calls"} and report.checked["calls"] == 0
    counts = ", ".join(f"{number} {name}" for name, number in report.checked.items())
    assert proof_lines(report) == [f"VALID: proved: statement limit depth <= 3 ({counts})"]
    forged = check_proof(changed_at(lines_of(found.certificate), lambda x: x.pop()), artifacts)
    verdict, why = proof_lines(forged)
    assert verdict == "INVALID: statement limit depth <= 3" and why == str(forged.finding)
    assert proof_lines(check_proof(b"{}\n", artifacts))[0] == "INVALID: no question"


STUCK = SHOP.replace("(find | refund){0,3}", "find refund refund").replace("0 .. 20", "20 .. 40")
ACROSS = "limit uses(refund) <= 5 across sessions\n"


@pytest.mark.parametrize(
    ("text", "question"), [(SHOP, {"reachable": "refund"}), (STUCK, {"finishable": True})]
)
def test_a_session_shows_what_no_list_may_show(text: str, question: dict[str, Any]) -> None:
    """It is one of a grammar that counts across sessions, too: no other has used any of it."""
    found, artifacts = asked(text + ACROSS, **question)
    assert found.certificate is not None and "calls" in lines_of(found.certificate)[0]
    assert code_of(found.certificate, artifacts) == "VALID"


def test_lists_that_are_compared_have_no_proof_of_an_end() -> None:
    text = "tool a(; l: list max 2 of text max 3)\ntool b\nplan = a b\n"
    made = tcc.compile_text(f'{HEAD}{text}require a where every l ~ "[a-z]*"\n')
    of = certificate.ProvedQuestion(kind="finishable", text=None, artifacts=(made,))
    for proof in ("proved", "refuted"):
        report = check_proof(file_of([of.head(proof)]), [artifact_bytes(made)])
        assert report.finding is not None
        assert (report.finding.code.value, report.finding.expected) == ("D101", "no lists compared")


def test_every_state_leads_down_to_one_that_can_be_finished() -> None:
    found, artifacts = asked(SHOP.replace("{0,3}", "{1,3}"), finishable=True)
    assert found.certificate is not None
    lines = lines_of(found.certificate)
    refused = 0
    for at, row in enumerate(lines[-1]):
        for to in set(range(lines[0]["ends"])) - {row[0]}:

            def change(copy: list[Any], at: int = at, to: int = to) -> None:
                copy[-1][at][0] = to

            refused += code_of(changed_at(lines, change), artifacts) != "VALID"
    assert refused


def test_a_session_ends_where_the_left_side_may_end() -> None:
    grammar = 'grammar g version "1"\ntool a\ntool b\nplan = {}\n'
    found, artifacts = asked(grammar.format("a b"), implies=grammar.format("a b b"))
    assert found.verdict == "refuted" and found.certificate is not None
    lines = lines_of(found.certificate)
    assert lines[0]["ends"] == "finish"
    lines[0]["calls"] = 1
    assert code_of(file_of(lines[:2]), artifacts) == "T302"


GIVEN = f"""{HEAD}given who: text max 9
tool find(; order: text max 9)
tool refund(; order: text max 9, amount: number 20 .. 40)
plan = (find | refund){{0,4}}
require find before refund same order
forbid find where order = session.who before refund
"""


def test_what_is_given_makes_starts_of_lists_of_all_keys_alone() -> None:
    found, artifacts = asked(GIVEN, "require find before refund same order")
    assert found.certificate is not None
    assert {one["keys"] for one in lines_of(found.certificate)[0]["parts"]} == {"each"}
    assert code_of(found.certificate, artifacts) == "VALID"
    lines, artifacts = by_all(GIVEN, "require find before refund same order")
    assert code_of(file_of(lines), artifacts) == "VALID"


def test_a_stuck_session_has_been_given_something() -> None:
    text = GIVEN.replace("(find | refund){0,4}", "find refund refund")
    found, artifacts = asked(text + "limit sum(refund.amount) <= 50\n", finishable=True)
    assert found.verdict == "refuted" and found.certificate is not None
    assert lines_of(found.certificate)[0]["given"]
    assert code_of(found.certificate, artifacts) == "VALID"


def core_with(text: str) -> Core:
    made = tcc.compile_text(f"{HEAD}{text}plan = any*\nlimit depth <= 2\n")
    return check(artifact_bytes(made)).core


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ("tool a gives (s: ok | bad)\n", "tool a\n"),
        ("tool a\n", "tool a gives (s: ok | bad)\n"),
        ("tool a gives (s: ok | bad)\n", "tool a gives (t: ok | bad)\n"),
        ("tool a gives (; s: flag)\n", "tool a gives (; t: flag)\n"),
    ],
)
def test_a_tool_of_both_sides_has_the_same_answers(mine: str, theirs: str) -> None:
    one, other = core_with(mine), core_with(theirs)
    ensure_alike(one.tools[0], one.tools[0], ())
    with pytest.raises(Uncovered, match="a gives other answers"):
        ensure_alike(one.tools[0], other.tools[0], ())


@pytest.mark.parametrize("other", ["", "given u: text max 8\n", "given v: text max 9\n"])
def test_what_statements_speak_of_is_given_alike(other: str) -> None:
    mine, theirs = core_with("given u: text max 9\ntool a\n"), core_with(f"{other}tool a\n")
    assert [one.name for one in given_alike(mine, mine, ["u"])] == ["u"]
    assert given_alike(mine, theirs, []) == []
    if not other.startswith("given u"):  # where only the left has it, that is what is compared
        assert [one.name for one in given_alike(mine, theirs, ["u"])] == ["u"]
    for one, of in ((theirs, mine), *([(mine, theirs)] if other.startswith("given u") else [])):
        with pytest.raises(Uncovered, match=r"session\.u is not given alike"):
            given_alike(one, of, ["u"])
