"""The definition of policies sentence by sentence, played to the slow interpreter."""

from __future__ import annotations

import pytest

from tests.oracle_policies.cases import CASES, Case
from tests.oracle_policies.drawn import START
from tests.oracle_policies.meaning import Session

IDS = [case.says.split(":")[0].split(",")[0] for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_slow_interpreter_says_so(case: Case) -> None:
    session, now = Session(grammar=case.grammar, given=case.given), START
    for at, step in enumerate(case.steps):
        where = f"step {at + 1}: {step}"
        match step.what:
            case "clock":
                now = START + step.ms
            case "finish":
                assert session.may_finish() is step.finish, where
            case "resolve":
                session.resolve(step.seq, step.outcome, step.answer)
            case _:
                assert session.decide(step.tool, step.arguments, now) == step.code, where
                if step.what == "call":
                    seq = session.call(step.tool, step.arguments, now)
                    answered = step.outcome == "answered"
                    outcome = "failed" if answered else step.outcome
                    session.outcome(seq, outcome, step.answer, answered=answered)
