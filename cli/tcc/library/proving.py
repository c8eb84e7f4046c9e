"""Questions about all sessions of a grammar: `tcc.prove`.

The engine is :mod:`tcc_runtime.exact`.  This module parses the question, and provides a gate that
replays the sessions found by the engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from tcc.library import CompileError, Given, artifact_bytes, artifact_of
from tcc_certs.policy.nodes import Forbid, statement_text

if TYPE_CHECKING:
    from tcc.screen import OnSearch
    from tcc_certs.policy.core import Core
    from tcc_certs.policy.nodes import Statement
    from tcc_certs.proof.questions import Question
    from tcc_runtime.artifact.load import Artifact
    from tcc_runtime.exact.prove import Answer, AskingGate, GateRefusal, Roles
    from tcc_runtime.exact.values import Session, SessionCall
    from tcc_runtime.gate.asking.questions import Pending
    from tcc_runtime.gate.gate import Gate as RuntimeGate

Kind = Literal["statement", "reachable", "implies", "finishable"]
Verdict = Literal["proved", "refuted", "reachable", "unreachable", "undecided"]
TIMEOUT: Final = 10.0  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The answer to a question.

    Attributes:
        kind: the kind of the question.
        text: the statement or the calls in the question; None for other kinds.
        verdict: ``proved``, ``refuted``, ``reachable``, ``unreachable`` or ``undecided``.
        session: the calls of a session that answers the question, as `tcc replay` reads them; or
            None.
        given: the attributes of that session.
        used: the texts of the statements that the proof used.
        rounds: the number of rounds of the search.
        states: the number of branches that the search examined.
        seconds: the time of the search.
        missing: for an undecided question, what would decide it; else empty.
        proof: the bytes of a proof, which `tcc check PROOF --artifact A` checks; or None.
    """

    kind: Kind
    text: str | None
    verdict: Verdict
    session: Sequence[Mapping[str, Any]] | None = None
    given: Mapping[str, Any] | None = None
    used: tuple[str, ...] = ()
    rounds: int = 0
    states: int = 0
    seconds: float = 0.0
    missing: str = ""
    proof: bytes | None = None

    @property
    def proved(self) -> bool:
        """Return whether every session is proved to satisfy the question."""
        return self.verdict == "proved"


def prove(
    source: Given,
    statement: str | None = None,
    *,
    reachable: str | None = None,
    implies: Given | None = None,
    finishable: bool = False,
    timeout: float = TIMEOUT,
    progress: OnSearch | None = None,
) -> Proof:
    """Decide a question about every session that a gate allows.

    Exactly one of `statement`, `reachable`, `implies` and `finishable` must be given.

    Args:
        source: a grammar or an artifact.
        statement: does every session satisfy this statement?
        reachable: does some session have a call in this set?
        implies: does this grammar allow every session of `source`?
        finishable: can every session be finished?
        timeout: seconds for the search.
        progress: called a few times a second with the seconds, the round and the branches so far.

    Raises:
        ValueError: not exactly one question is given, or the timeout is not a finite number above
            0.
        CompileError: a grammar is refused, or the statement has mistakes.
        tcc_certs.errors.Rejected: an artifact is refused or declined.
        OSError: a file cannot be read.
    """
    asked = [statement is not None, reachable is not None, implies is not None, finishable]
    if sum(asked) != 1:
        raise ValueError("ask one question: a statement, reachable, implies or finishable")
    if not 0 < timeout < float("inf"):
        raise ValueError(f"timeout has to be a number above 0, not {timeout}")
    artifact = artifact_of(source)
    from tcc_certs.proof.questions import Question

    if finishable:
        question = Question(kind="finishable", statements=())
        return _certain(artifact, _asked(artifact, question, "finishable", None, timeout, progress))

    if implies is not None:
        from tcc_certs.errors import Rejected
        from tcc_certs.proof.implication import implication

        try:
            question = implication(artifact.core, artifact_of(implies).core)
        except Rejected as why:
            missing = f"sessions are compared only of grammars with {why.expected}"
            return Proof(kind="implies", text=None, verdict="undecided", missing=missing)
        return _asked(artifact, question, "implies", None, timeout, progress)
    if reachable is not None:
        question = calls_question(artifact.core, reachable)
        return _asked(artifact, question, "reachable", reachable, timeout, progress)
    statements = read_statements(artifact.core, statement or "")
    kind = "statement" if len(statements) == 1 else "implies"
    question = Question(kind=kind, statements=statements)
    return _asked(artifact, question, "statement", statement, timeout, progress)


def _certain(artifact: Artifact, found: Proof) -> Proof:
    """Return the answer if it has no proof or a valid one; else as an undecided answer.

    The engine assumes that the automaton belongs to the core, so its proof is checked again.
    """
    if found.proof is None:
        return found
    from tcc_certs.report import report_proof

    report = report_proof(found.proof, artifact_bytes(artifact))
    if report.verdict == 0:
        return found
    return replace(found, verdict="undecided", missing=report.summary, proof=None)


def calls_question(core: Core, calls: str) -> Question:
    """Return the question whether a session can have a call in a set.

    Raises:
        ValueError: the text is not one set of calls.
        CompileError: the text has mistakes.
    """
    from tcc_certs.proof.questions import Question

    statements = read_statements(core, f"forbid {calls}")
    if len(statements) != 1 or not isinstance(statements[0], Forbid):
        raise ValueError("--reachable takes one set of calls, such as refund(amount > 100)")
    return Question(kind="reachable", statements=statements)


def read_statements(core: Core, text: str) -> tuple[Statement, ...]:
    """Parse statements about a core.

    Raises:
        CompileError: the text has mistakes.
    """
    from tcc_compiler.names.questions import read_question

    found = read_question(text, core)
    if found.diagnostics:
        raise CompileError(found.diagnostics)
    return found.statements


def _asked(
    artifact: Artifact,
    question: Question,
    kind: Kind,
    text: str | None,
    timeout: float,
    progress: OnSearch | None,
) -> Proof:
    from tcc_runtime.exact.planned import plan_of
    from tcc_runtime.exact.prove import answer

    found = answer(
        artifact.core,
        question,
        gate_of(artifact),
        plan=lambda: plan_of(artifact),
        timeout=timeout,
        progress=progress,
    )
    return _proof_of(artifact.core, found, kind, text)


def _proof_of(core: Core, found: Answer, kind: Kind, text: str | None) -> Proof:
    session = found.session
    return Proof(
        kind=kind,
        text=text,
        verdict=found.verdict,
        session=None if session is None else session.json(),
        given=None if session is None else dict(session.given),
        used=tuple([statement_text(core.statements[number]) for number in found.used]),
        rounds=found.rounds,
        states=found.states,
        seconds=found.seconds,
        missing=found.missing,
        proof=found.proof,
    )


def gate_of(artifact: Artifact) -> AskingGate:
    """Return a function that replays a session of an artifact, each time in a new gate.

    The function returns the first refusal, or None if the gate allows the whole session.
    """

    def replay(
        session: Session, /, *, told: list[Roles] | None = None, by: Sequence[Roles] = ()
    ) -> GateRefusal | None:
        # Imported with the first session, because a proof needs no gate.
        from tcc_certs.errors import Code
        from tcc_runtime.errors import GivenRefused
        from tcc_runtime.exact.prove import GateRefusal
        from tcc_runtime.gate.calls import quiet
        from tcc_runtime.gate.gate import Gate as OneGate
        from tcc_runtime.gate.refusals import Refused
        from tcc_runtime.gate.session_access import Home

        now = [0]
        home = Home(recorded=False)
        options: Any = {"durable": False, "clock": lambda: now[0], "home": home}
        try:
            opened = OneGate(artifact, given=session.given, **options)
        except GivenRefused as refusal:
            return GateRefusal(0, refusal.code, str(refusal))
        with quiet(), opened as gate:
            at = 0
            try:
                for call in session.calls:
                    now[0] = now[0] if call.at_ms is None else call.at_ms
                    roles: list[str] = []
                    while (question := _asked_about(gate, call)) is not None:
                        if told is None and by and question.who not in by[at]:
                            return GateRefusal(at, Code.PENDING.value, f"`{question.text}`")
                        gate.approve(question.id, who="question")
                        roles.append(question.who)
                    if told is not None:
                        told.append(tuple(roles))
                    at += 1
                if session.ends:
                    gate.finish()
            except Refused as refusal:
                texts = [reason["text"] for reason in refusal.because if reason["text"]]
                return GateRefusal(at, refusal.code, f"`{texts[0]}`" if texts else str(refusal))
        return None

    return replay


def _asked_about(gate: RuntimeGate, call: SessionCall) -> Pending | None:
    """Make a call, and return None; if the call waits for a person, return the question instead."""
    from tcc_runtime.gate.asking.questions import Pending

    try:
        with gate.call(call.tool, call.arguments) as permit:
            if call.outcome == "done":
                permit.done(call.answer)
            elif call.outcome in ("failed", "answered"):
                permit.failed(answered=call.outcome == "answered")
            else:
                permit.unknown()
    except Pending as question:
        return question
    return None
