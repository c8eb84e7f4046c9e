"""The gate beside the slow interpreter: one grammar, one session, decision by decision."""

from __future__ import annotations

import json
import random
import tempfile
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tcc
from tcc_certs.session import validate
from tcc_certs.session.records import open_name
from tcc_runtime.gate.policy import policy_of
from tests.oracle_policies import language as l
from tests.oracle_policies.drawn import FORMS, START, Draw, Play
from tests.oracle_policies.meaning import Session
from tests.oracle_policies.values import MISSING, WRONG, read
from tests.oracle_policies.writer import text_of

KEY = bytes(range(32))
ARGUMENT_CODES = {"R103", "R104", "R105", "R106"}
# What may be wrong with a grammar that was drawn: no plan is left, or it is too large.
NO_GRAMMAR = frozenset({"TCC402", "TCC413"})


@dataclass(kw_only=True)
class Tally:
    """What was seen of a number of grammars."""

    grammars: int = 0
    compiled: int = 0
    decisions: int = 0
    calls: int = 0
    ledgers: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Those of another part."""
        self.grammars += other.grammars
        self.compiled += other.compiled
        self.decisions += other.decisions
        self.calls += other.calls
        self.ledgers += other.ledgers
        self.codes += other.codes
        self.refused += other.refused
        self.differences += other.differences
        self.unread += other.unread


def some_shown(seed: str, core: Any) -> list[str]:
    """Open arguments, answers and attributes whose values the ledger has as well; or none."""
    rng = random.Random(f"shown {seed}")
    names = [open_name(t.name, one.name) for t in core.tools for one in (*t.opened, *t.answers)]
    names += [open_name("session", one.name) for one in core.given]
    return [name for name in names if rng.random() < 0.3] if rng.random() < 0.5 else []


class Clock:
    """A clock that is set; it may go back."""

    def __init__(self) -> None:
        self.ms = START

    def __call__(self) -> int:
        return self.ms


def compiled(grammar: l.Grammar, tally: Tally) -> Any:
    """The artifact; None where the compiler refuses it, which is tallied."""
    try:
        return tcc.compile_text(text_of(grammar))
    except tcc.CompileError as error:
        found = {str(diagnostic.code) for diagnostic in error.diagnostics}
        tally.refused.update(found)
        if not found <= NO_GRAMMAR:
            said = "; ".join(f"{d.code} {d.message}" for d in error.diagnostics)
            tally.unread.append(f"{said}\n{text_of(grammar)}")
        return None


def beside(seed: int, forms: frozenset[str] = FORMS, steps: int = 9, sessions: int = 1) -> Tally:
    """A grammar and sessions of it, each with its ledger, reopened in the middle."""
    tally = Tally(grammars=1)
    grammar = Draw(seed, forms).grammar()
    artifact = compiled(grammar, tally)
    if artifact is None:
        return tally
    tally.compiled = 1
    for number in range(sessions):
        with tempfile.TemporaryDirectory() as folder:
            told = _Both(seed, number, grammar, artifact, Path(folder), tally)
            told.play(steps)
    return tally


class _Both:
    def __init__(
        self,
        seed: int,
        number: int,
        grammar: l.Grammar,
        artifact: Any,
        folder: Path,
        tally: Tally,
    ) -> None:
        self.name = f"grammar {seed} session {number}"
        self.grammar, self.artifact, self.tally = grammar, artifact, tally
        self.draw = Play(f"{seed} {number}", grammar)
        given = self.draw.given()
        self.slow = Session(grammar=grammar, given=given)
        self.clock = Clock()
        self.slow.now = self.clock.ms  # no call is before the start
        self.log: list[str] = []
        self.options: dict[str, Any] = {
            "ledger": folder / "s.ledger", "key": KEY, "durable": False, "clock": self.clock,
            "show": some_shown(f"{seed} {number}", artifact.core),
        }  # fmt: skip
        self.gate = tcc.Gate(artifact, **self.options, **({"given": given} if given else {}))

    def play(self, steps: int) -> None:
        """The session; it stops at the first difference."""
        for _ in range(steps):
            step = self.draw.step()
            self.clock.ms += step.later * 1000
            self.log.append(f"{step}")
            if not self._decide(step):
                return
            if self.slow.ended:
                break
            self._resolve(step)
            if self.gate.may_finish is not self.slow.may_finish():
                self._differs("may finish", self.gate.may_finish, self.slow.may_finish())
                return
            if step.resolve > 0.93:
                self.gate.close()
                self.gate = tcc.Gate(self.artifact, **self.options)
                self.log.append("reopened")
        self._end()

    def _decide(self, step: Any) -> bool:
        arguments = json.loads(json.dumps(step.arguments))
        mine = self.slow.decide(step.tool, arguments, self.clock.ms)
        found = self.gate.check(step.tool, arguments)
        self.tally.decisions += 1
        self.tally.codes[mine or "allowed"] += 1
        code = None if found.allowed else str(found.code)
        if code != mine and not ({code, mine} <= ARGUMENT_CODES):
            self._differs("decision", code, mine, step)
            return False
        if mine is not None:
            return True
        self.tally.calls += 1
        with self.gate.call(step.tool, arguments) as permit:
            seq = self.slow.call(step.tool, arguments, self.clock.ms)
            if step.resolve < 0.2:  # one under way
                other = self.draw.step()
                during = self.slow.decide(other.tool, other.arguments, self.clock.ms)
                now = self.gate.check(other.tool, other.arguments)
                code = None if now.allowed else str(now.code)
                self.tally.decisions += 1
                if code != during and not ({code, during} <= ARGUMENT_CODES):
                    self.log.append(f"under way: {other}")
                    self._differs("decision under way", code, during, other)
            unknown = [m for m in self.slow.made if m.outcome == "unknown"]
            self._settle(permit, seq, step, "done" if len(unknown) > 1 else "unknown")
        return True

    def _settle(self, permit: Any, seq: int, step: Any, unknown: str) -> None:
        outcome = unknown if step.outcome == "unknown" else step.outcome
        if outcome == "failed":
            permit.failed("no")
            self.slow.outcome(seq, "failed")
        elif outcome == "answered":
            permit.failed("no", answered=True)
            self.slow.outcome(seq, "failed", answered=True)
        elif outcome == "unknown":
            permit.unknown("no")
            self.slow.outcome(seq, "unknown")
        else:
            permit.done(step.answer)
            self.slow.outcome(seq, "done", step.answer)

    def _resolve(self, step: Any) -> None:
        unknown = [i for i, m in enumerate(self.slow.made, 1) if m.outcome == "unknown"]
        if not unknown or step.resolve > 0.3:
            return
        seq = unknown[int(step.resolve * 1000) % len(unknown)]
        call = self.slow.made[seq - 1]
        answers = [f for f in call.tool.fields if f.answer]
        if step.resolved == "failed" or not answers:
            self.gate.resolve(seq, step.resolved)
            self.slow.resolve(seq, step.resolved, {})
        else:
            answer = self.draw.answer(call.tool)
            if not isinstance(answer, dict):  # an owner says values by name
                return
            known = [read(answer, f) for f in answers if f.listed]
            if MISSING in known or WRONG in known:
                with suppress(ValueError):  # the owner has to say which of those listed it was
                    self.gate.resolve(seq, "done", answer)
                    self._differs("resolve", "no error", "ValueError")
                return
            self.gate.resolve(seq, "done", json.loads(json.dumps(answer)))
            self.slow.resolve(seq, "done", answer)
        self.log.append(f"resolve {seq} {step.resolved}")

    def _end(self) -> None:
        finish = self.slow.may_finish()
        self.gate.finish(abandon=not finish)
        self.gate.close()
        self.tally.ledgers += 1
        ledger = self.options["ledger"].read_bytes()
        found = validate(ledger, policy_of(self.artifact).checked(), key=KEY)
        claims = {"Conformant"} if finish else {"ConformantPrefix", "NoClaim"}
        if not found.findings and found.claim_type in claims and len(ledger) % 4 == 0:
            found = validate(ledger, policy_of(self.artifact).checked())  # of who has no key
        if found.findings or found.claim_type not in claims:
            self._differs("ledger", [str(f) for f in found.findings], found.claim_type)

    def _differs(self, what: str, gate: object, slow: object, step: Any = None) -> None:
        why = ""
        if step is not None and slow in ("R201", "R202"):
            from tests.oracle_policies.writer import statement_of

            refusing = self.slow.refusing(step.tool, step.arguments, self.clock.ms)
            why = f"; by {[statement_of(one) for one in refusing]}"
        text = text_of(self.grammar)
        log = "\n".join(self.log)
        self.tally.differences.append(
            f"{self.name}: {what}: the gate {gate}, the definition {slow}{why}\n{text}{log}"
        )
        self.gate.close()
