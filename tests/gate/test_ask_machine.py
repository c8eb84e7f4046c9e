"""Drawn sessions with questions, compared with the rules of docs/spec/session.md, section 6.

The oracle is a list of all questions, which is searched anew for each decision.  It has no code in
common with the gate.  Each ledger is validated at the end.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

import tcc
from tcc_runtime.gate.asking import verdict_files
from tcc_runtime.gate.asking.places import decide, places_of
from tcc_runtime.gate.asking.verdict_files import Handed
from tests.gate import grammars
from tests.gate.conftest import validated
from tests.oracle_session.writer import KEY

START = 1_700_000_000_000
MINUTE = 60_000
DESK = """grammar desk version "1"

tool pay(amount: number 0 .. 500, way: cash | card) { errors mean failed }
tool stop

before pay(amount > 100) ask "finance" within 10 m
before pay(way = cash) ask "lead" within 3 m
before pay require no stop
limit depth <= 400
"""
FINANCE, LEAD = 0, 1
TERMS = {FINANCE: 10 * MINUTE, LEAD: 3 * MINUTE}


@dataclass
class Question:
    """A question as the oracle knows it."""

    id: str
    statement: int
    call: tuple[int, str]
    asked_ms: int
    verdict: str = ""
    verdict_ms: int = 0
    used: bool = False

    @property
    def expires_ms(self) -> int:
        return self.asked_ms + TERMS[self.statement]

    def is_open(self, now: int) -> bool:
        return not self.verdict and now <= self.expires_ms

    def denies(self, now: int) -> bool:
        return self.verdict == "denied" and now <= self.expires_ms

    @property
    def end_ms(self) -> int:
        """The last time at which the question, its approval or its denial counts."""
        approved_ms = self.verdict_ms + TERMS[self.statement]
        return approved_ms if self.verdict == "approved" else self.expires_ms

    def allows(self, now: int) -> bool:
        return self.verdict == "approved" and now <= self.end_ms and not self.used

    def counts(self, now: int) -> bool:
        return self.is_open(now) or self.denies(now) or self.allows(now)


@dataclass
class Kept:
    """A session, as the oracle knows it."""

    ledger: Path
    gate: tcc.Gate
    questions: list[Question] = field(default_factory=list)
    used_by: dict[int, list[str]] = field(default_factory=dict)  # unknown calls
    calls: int = 0
    stopped: bool = False

    def about(self, statement: int, call: tuple[int, str]) -> list[Question]:
        return [one for one in self.questions if (one.statement, one.call) == (statement, call)]

    def named(self, question_id: str) -> Question:
        return next(one for one in self.questions if one.id == question_id)


CALLS = st.tuples(st.sampled_from([50, 200]), st.sampled_from(["cash", "card"]))
OUTCOMES = st.sampled_from(["done", "failed", "unknown", "answered", "crash"])
WAYS = st.sampled_from(["gate", "file", "place", "closed"])
STEPS = st.sampled_from([0, 1, MINUTE, 3 * MINUTE, 10 * MINUTE + 1])
WHICH = st.integers(0, 1)
YES = st.sampled_from([True, True, True, False])


class Sessions(RuleBasedStateMachine):
    """Two sessions with one key and questions to persons."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="tcc-ask-"))
        self.artifact = grammars.artifact(DESK)
        self.ms = START
        self.kept = [self.begun(number) for number in range(2)]
        self.files = 2

    def teardown(self) -> None:
        try:
            for one in self.kept:
                one.gate.close()
                found = validated(one.ledger)
                assert found.word in ("VALID", "INCOMPLETE"), found.findings
        finally:
            shutil.rmtree(self.folder)

    def begun(self, number: int) -> Kept:
        ledger = self.folder / f"{number}.ledger"
        return Kept(ledger, self.opened(ledger))

    def opened(self, ledger: Path) -> tcc.Gate:
        return tcc.Gate(self.artifact, ledger=ledger, key=KEY, durable=False, clock=lambda: self.ms)

    # Events.

    @rule(step=STEPS)
    def time_passes(self, step: int) -> None:
        self.ms += step

    @rule(which=WHICH)
    def reopen(self, which: int) -> None:
        kept = self.kept[which]
        kept.gate.close()
        kept.gate = self.opened(kept.ledger)

    @rule(which=WHICH)
    def stop(self, which: int) -> None:
        """From here on another statement refuses payments, approved ones too."""
        kept = self.kept[which]
        if kept.calls > 8 and not kept.stopped:
            with kept.gate.call("stop") as permit:
                permit.done()
            kept.calls += 1
            kept.stopped = True

    @rule(which=WHICH, call=CALLS, told=OUTCOMES)
    def pay(self, which: int, call: tuple[int, str], told: str) -> None:
        kept = self.kept[which]
        arguments = {"amount": call[0], "way": call[1]}
        expected, found = self.expected(kept, call), kept.gate.check("pay", arguments)
        code = None if found.code is None else str(found.code)
        assert code == (expected if expected in (None, "R202", "R209") else "R211")
        crashed = None
        try:
            with kept.gate.call("pay", arguments) as permit:
                if told == "crash":
                    crashed = self.copied(kept)
                elif told == "answered":
                    permit.failed(answered=True)
                else:
                    getattr(permit, told)()
        except tcc.Refused as refused:
            assert refused.code == expected
            return
        except tcc.Pending as pending:
            self.waits(kept, call, pending, expected)
            return
        assert expected is None
        kept.calls += 1
        self.note_use(kept, call, told)
        if crashed is not None:
            kept.gate.close()
            kept.ledger, kept.gate = crashed, self.opened(crashed)

    @rule(
        which=WHICH, call=CALLS, told=OUTCOMES, way=WAYS, yes=YES, late=st.sampled_from([-1, 0, 1])
    )
    def ask_and_pay(
        self, which: int, call: tuple[int, str], told: str, way: str, yes: bool, late: int
    ) -> None:
        """Ask, decide and pay, and pay again.

        Args:
            late: pay in the last millisecond of a verdict, in the next one, or at once (-1).
        """
        kept = self.kept[which]
        for _ in range(2):
            self.pay(which, call, told)
            waiting = [one for one in kept.questions if one.call == call and one.is_open(self.ms)]
            if waiting:
                at = len(kept.questions) - 1 - kept.questions.index(waiting[0])
                self.decide(which, which, at, yes, way)
        ends = [one.end_ms for one in kept.questions if one.call == call and one.counts(self.ms)]
        if ends and late >= 0:
            self.ms = min(ends) + late
        self.pay(which, call, told)
        self.pay(which, call, "done")

    def expected(self, kept: Kept, call: tuple[int, str]) -> str | None:
        """The code of a refusal; the id of an open question; `ask N`; None: the call is made."""
        if kept.stopped:
            return "R202"
        applies = [FINANCE] * (call[0] > 100) + [LEAD] * (call[1] == "cash")
        if any(one.denies(self.ms) for n in applies for one in kept.about(n, call)):
            return "R209"
        for number in applies:
            about = kept.about(number, call)
            if any(one.allows(self.ms) for one in about):
                continue
            waiting = [one.id for one in about if one.is_open(self.ms)]
            assert len(waiting) < 2
            return waiting[0] if waiting else f"ask {number}"
        return None

    def waits(
        self, kept: Kept, call: tuple[int, str], pending: tcc.Pending, expected: str | None
    ) -> None:
        if not pending.is_new:
            assert pending.id == expected
            return
        number = FINANCE if pending.who == "finance" else LEAD
        assert expected == f"ask {number}"
        assert pending.id not in [one.id for one in kept.questions]
        question = Question(pending.id, number, call, self.ms)
        assert pending.expires_ms == question.expires_ms
        kept.questions.append(question)

    def note_use(self, kept: Kept, call: tuple[int, str], told: str) -> None:
        """The approvals of the last call are usable ones; a failed call gives them back."""
        lines = map(json.loads, kept.ledger.read_text().splitlines())
        ids = [line for line in lines if line["kind"] == "call"][-1].get("approvals", [])
        found = [kept.named(one) for one in ids]
        applies = [FINANCE] * (call[0] > 100) + [LEAD] * (call[1] == "cash")
        assert [one.statement for one in found] == applies
        assert all(one.call == call and one.allows(self.ms) for one in found)
        for one in found:
            one.used = told != "failed"
        if told in ("unknown", "crash"):
            kept.used_by[kept.calls] = ids

    def copied(self, kept: Kept) -> Path:
        """The ledger of a process that ends now."""
        self.files += 1
        return Path(shutil.copy(kept.ledger, self.folder / f"{self.files}.ledger"))

    @rule(which=WHICH, failed=st.booleans(), at=st.integers(0, 5))
    def resolve(self, which: int, failed: bool, at: int) -> None:
        kept = self.kept[which]
        if not kept.used_by:
            return
        seq = sorted(kept.used_by)[at % len(kept.used_by)]
        ids = kept.used_by.pop(seq)
        kept.gate.resolve(seq, "failed" if failed else "done")
        for one in ids:
            kept.named(one).used = not failed

    @rule(which=WHICH, of=WHICH, at=st.integers(0, 9), yes=YES, way=WAYS)
    def decide(self, which: int, of: int, at: int, yes: bool, way: str) -> None:
        """A person decides about a question of this session, or of the other one."""
        kept, source = self.kept[which], self.kept[of]
        if not source.questions:
            return
        question = source.questions[-1 - at % len(source.questions)]
        verdict: Any = "approved" if yes else "denied"
        why = self.why_not(kept, question)
        try:
            self.answer(kept, question.id, verdict, way)
        except tcc.VerdictError as error:
            # A gate forgets questions that can have no effect any more.
            assert error.why == why or (error.why == "unknown" and why is not None)
            return
        assert why is None or way == "file"
        if why is None:
            question.verdict, question.verdict_ms = verdict, self.ms

    def why_not(self, kept: Kept, question: Question) -> str | None:
        if question not in kept.questions:
            return "unknown"
        if question.verdict:
            return "decided"
        return None if question.is_open(self.ms) else "expired"

    def answer(self, kept: Kept, question_id: str, verdict: Any, way: str) -> None:
        if way == "gate":
            if verdict == "approved":
                kept.gate.approve(question_id, who="Ann")
            else:
                kept.gate.deny(question_id, who="Ann")
            return
        if way == "file":  # it waits until the session is reopened and the call is made again
            kept.gate.close()
            handed = Handed(question_id, kept.gate.session_id, verdict, "Ann")
            verdict_files.hand_in(kept.ledger, KEY, handed)
            kept.gate = self.opened(kept.ledger)
            verdict_files_taken(kept.gate)
            return
        if way == "closed":
            kept.gate.close()
        try:
            place = places_of(str(kept.ledger), KEY)
            decide(place, question_id, verdict, "Ann", clock=lambda: self.ms)
        finally:
            if way == "closed":
                kept.gate = self.opened(kept.ledger)

    # Invariants.

    @invariant()
    def open_questions_are_listed(self) -> None:
        for kept in self.kept:
            expected = [one.id for one in kept.questions if one.is_open(self.ms)]
            assert [one.id for one in kept.gate.pending] == expected


def verdict_files_taken(gate: tcc.Gate) -> None:
    """Take the verdicts in files, as the gate's thread does."""
    from tcc_runtime.gate.asking import verdicts

    access = gate._access
    ticket = access.enter("")
    try:
        with access.lock:
            verdicts.take(access)
    finally:
        access.leave(ticket)


def test_a_session_with_questions_decides_as_the_rules_say() -> None:
    run_state_machine_as_test(
        Sessions,
        settings=settings(
            max_examples=14,
            stateful_step_count=30,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.campaign
def test_many_sessions_with_questions_decide_as_the_rules_say() -> None:
    run_state_machine_as_test(
        Sessions,
        settings=settings(
            max_examples=1000,
            stateful_step_count=60,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
