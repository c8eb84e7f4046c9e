"""No verdict of the engine is contradicted by random sessions of the definition."""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import replace

import pytest

import tcc
from tcc_certs.policy.meaning import Policy
from tcc_certs.proof.check import check_proof
from tcc_certs.proof.questions import Question
from tcc_compiler.names.questions import read_question
from tcc_runtime.exact.prove import answer
from tests.campaigns.blocks import cases
from tests.exact.drawn import HEAD, Drawer, breaking


def decide(seed: int, sessions: int, timeout: float) -> str:
    """The verdict on a drawn question, after random sessions were compared with it."""
    rng = random.Random(f"exact {seed}")
    drawer = Drawer(rng)
    text = HEAD + "\n".join(drawer.statement() for _ in range(rng.randint(1, 4))) + "\n"
    try:
        core = tcc.compile_text(text).core
    except tcc.CompileError:
        return "skipped"
    asked = drawer.statement()
    found = read_question(asked, core)
    if found.diagnostics:
        return "skipped"
    question = Question(kind="statement", statements=found.statements)
    given = answer(core, question, lambda session: None, timeout=timeout, clock=time.process_time)
    if given.verdict == "refuted":
        return "refuted"  # the definition has replayed the session
    policy = Policy(replace(core, statements=(*core.statements, *found.statements)))
    shown = None
    for _ in range(sessions):
        shown = shown or breaking(policy, rng, rng.randint(1, 7))
    if given.verdict == "proved":
        assert shown is None, f"seed {seed}: {text}\nquestion: {asked}\nbroken by {shown}"
        assert given.proof is not None
        check_proof(given.proof, core)
        return "proved"
    return "open, broken" if shown else "open"


def test_proved_questions_are_not_broken_by_random_sessions() -> None:
    found = Counter(decide(seed, 60, 0.5) for seed in range(cases(14, 30)))
    assert found["proved"] >= 1 and found["refuted"] >= cases(5, 11)


@pytest.mark.campaign
def test_many_questions() -> None:
    found = Counter(decide(seed, 200, 1.0) for seed in range(1000, 13_000))
    print(found)
    assert found["proved"] + found["refuted"] > 8 * (found["open"] + found["open, broken"])
