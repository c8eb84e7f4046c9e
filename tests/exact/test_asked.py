"""Questions of policy owners about the shipped policies get their answers."""

from __future__ import annotations

import time
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import tcc
from tcc_certs.proof.check import check_proof
from tcc_runtime.exact.planned import plan_of
from tests.exact.asked import ASKED

GRAMMARS = Path(__file__).parents[2] / "grammars"
DECIDED = [
    (grammar, text, verdict)
    for grammar, asked in ASKED.items()
    for text, verdict in asked
    if verdict != "undecided"
]
OPEN = [
    (grammar, text)
    for grammar, asked in ASKED.items()
    for text, verdict in asked
    if verdict == "undecided"
]


@cache
def artifact_of(grammar: str) -> tcc.Artifact:
    return tcc.compile_file(GRAMMARS / f"{grammar}.tcg")


def ask(grammar: str, text: str, timeout: float) -> tcc.Proof:
    artifact = artifact_of(grammar)
    if text.startswith("reachable "):
        calls = text.removeprefix("reachable ")
        return tcc.prove(artifact, reachable=calls, timeout=timeout)
    if text == "finishable":
        return tcc.prove(artifact, finishable=True, timeout=timeout)
    return tcc.prove(artifact, text, timeout=timeout)


def test_many_questions_are_asked() -> None:
    verdicts = Counter(verdict for _, _, verdict in DECIDED)
    assert len(DECIDED) >= 60 and verdicts["refuted"] >= 20
    assert len(OPEN) <= 8


@pytest.mark.parametrize(("grammar", "text", "verdict"), DECIDED)
@pytest.mark.sampled(35)
def test_a_question_has_its_answer(grammar: str, text: str, verdict: str) -> None:
    found = ask(grammar, text, 60)
    assert found.verdict == verdict, found.missing
    if verdict in ("proved", "unreachable"):
        assert found.proof is not None and len(found.proof) < 4000
        artifact = artifact_of(grammar)
        checked = check_proof(found.proof, artifact.core, lambda: plan_of(artifact))
        assert checked.steps > 0 or checked.of_plans or text.startswith("limit")
    else:
        assert found.session is not None and found.proof is None


@pytest.mark.campaign
@pytest.mark.parametrize(("grammar", "text"), OPEN)
def test_an_open_question_says_what_is_missing(grammar: str, text: str) -> None:
    began = time.monotonic()
    found = ask(grammar, text, 5)
    assert found.verdict == "undecided" and found.missing
    assert time.monotonic() - began < 10
