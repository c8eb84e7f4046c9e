"""Exact questions: ``tcc.prove``, monitors included.

A question is about inclusion (:mod:`tcc_runtime.exact`): whether the sessions that a gate lets
through are among those that meet a statement, or that another grammar lets through.  A session that
decides is replayed before it is shown: call by call through the gate of its grammar, and on the
other side with its values; a session that does not replay is no answer.
Text: docs/proving.md.  Cost: that of the search; a replay linear in the session.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from tcc.library import Given, artifact_of
from tcc.library.question_statement import rewritten, statement_core
from tcc_certs.core.mentions import is_across, is_timed
from tcc_certs.core.model import Core, PolicyMonitor
from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import decode
from tcc_certs.proof.fields import surely_fit
from tcc_certs.proof.sides import forgetting
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.errors import GivenRefused
from tcc_runtime.exact import certificate
from tcc_runtime.exact.atoms import OpenQuestion
from tcc_runtime.exact.replay import refused_at
from tcc_runtime.exact.search import MAX_STATES, SearchResult, finishable, included
from tcc_runtime.exact.sides import Side, artifact_side, statement_side
from tcc_runtime.exact.system import System
from tcc_runtime.exact.writing import WitnessSession, opened
from tcc_runtime.gate.gate import Gate
from tcc_runtime.gate.refusals import Refused
from tcc_runtime.gate.session_access import Home
from tcc_runtime.process import collection_put_off

if TYPE_CHECKING:
    from tcc.outputs.questions import ProveOutput, SessionJson

Kind = Literal["statement", "reachable", "implies", "finishable"]
Verdict = Literal["proved", "refuted", "undecided"]
MAX_BY_KEYS: Final = 50_000  # states that are gone through before the whole space is
_BEGUN: Final = 1_000_000_000_000  # UTC ms, when a session that is replayed begins


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The answer to an exact question.

    Attributes:
        kind, text: the question; `implies` and `finishable` have no text.
        verdict: whether the question as put holds.
        session: a shortest session that decides it, if one does.
        codes: why it is undecided; empty otherwise.
        whys: the same in words.
        states: the number of states that were searched.
        certify: makes the certificate.
    """

    kind: Kind
    text: str | None
    verdict: Verdict
    session: WitnessSession | None
    codes: tuple[str, ...]
    whys: tuple[str, ...]
    states: int
    certify: Callable[[], bytes | None] = field(default=lambda: None, repr=False, compare=False)

    @property
    def certificate(self) -> bytes | None:
        """The proof as a file of docs/spec/proof.md, for `tcc check`; made on request.

        None if the question is undecided, or the kernel does not read its statement.

        Raises:
            OpenQuestion: P503, P507 it would exceed the limits.
        """
        try:
            with collection_put_off(True):
                return None if self.verdict == "undecided" else self.certify()
        except Rejected as limit:
            if limit.code is not Code.LIMIT:
                raise
            raise OpenQuestion("P503", str(limit)) from None  # the kernel has bounds of its own

    @property
    def proved(self) -> bool:
        """Whether it holds."""
        return self.verdict == "proved"


def prove(
    source: Given,
    statement: str | None = None,
    *,
    reachable: str | None = None,
    implies: Given | None = None,
    finishable: bool = False,
    max_states: int = MAX_STATES,
    timeout: float | None = None,
) -> Proof:
    """Prove that every session that a gate lets through meets a statement; see docs/proving.md.

    Args:
        source: a grammar or an artifact.
        statement: of the grammar's language, or ``never ..``.
        reachable: a pattern: whether some session ends in such a call.
        implies: whether every session of `source` is one of this grammar.
        finishable: whether every session can be finished.
        max_states: limit on the states that are searched (P503).
        timeout: limit in seconds (P507).

    Raises:
        ValueError: not exactly one question.
        CompileError: a grammar, or the statement, is refused.
        tcc_certs.errors.Rejected: an artifact is refused or declined.
        OSError: a file cannot be read.
    """
    asked = [statement is not None, reachable is not None, implies is not None, finishable]
    if sum(asked) != 1:
        raise ValueError("one question: a statement, reachable, implies or finishable")
    artifact = artifact_of(source)
    other = None if implies is None else artifact_of(implies)
    try:
        with collection_put_off(True):  # states stay, and none of them is in a cycle
            return _answer(artifact, statement, reachable, other, max_states, _Clock(timeout))
    except OpenQuestion as left:
        text = statement if statement is not None else reachable
        kind: Kind = "finishable" if finishable else "implies"
        if text is not None:
            kind = "statement" if reachable is None else "reachable"
        return _proof(kind, text, _undecided(left.code, left.why), "undecided")


def _answer(
    artifact: Artifact,
    statement: str | None,
    reachable: str | None,
    other: Artifact | None,
    max_states: int,
    clock: _Clock,
) -> Proof:
    if other is not None:
        asked_of = certificate.ProvedQuestion(
            kind="implies", text=None, artifacts=(artifact, other)
        )
        found, certify = _decided(
            asked_of,
            lambda: artifact_side(other, forgetting(other.core, artifact.core)),
            max_states,
            clock,
        )
        return replace(_proof("implies", None, found, _VERDICTS[found.holds]), certify=certify)
    if statement is None and reachable is None:
        return _finishes(artifact, max_states, clock)
    asked = rewritten(str(statement)) if reachable is None else f"forbid {reachable}"
    core, policy = statement_core(artifact.core, asked, reachable or str(statement))
    kind: Kind = "statement" if reachable is None else "reachable"
    text = str(statement) if reachable is None else reachable
    words = text if policy is None else core.monitors[0].text
    of = certificate.ProvedQuestion(kind=kind, text=words, artifacts=(artifact,), policy=policy)
    found, certify = _decided(of, lambda: statement_side(core), max_states, clock)
    holds = found.holds if found.holds is None or reachable is None else not found.holds
    return replace(_proof(kind, text, found, _VERDICTS[holds]), certify=certify)


_VERDICTS: Final[Mapping[bool | None, Verdict]] = {
    True: "proved",
    False: "refuted",
    None: "undecided",
}


def _proof(kind: Kind, text: str | None, found: SearchResult, verdict: Verdict) -> Proof:
    return Proof(
        kind=kind,
        text=text,
        verdict=verdict,
        session=found.session,
        codes=found.codes,
        whys=found.whys,
        states=found.states,
    )


class _Clock:
    """Raises P507 where the time is over."""

    def __init__(self, timeout: float | None) -> None:
        self._end = None if timeout is None else time.monotonic() + timeout

    def check(self) -> None:
        """See the class."""
        if self._end is not None and time.monotonic() > self._end:
            raise OpenQuestion("P507", "the time of --timeout is over")


_Certify = Callable[[], "bytes | None"]


def _decided(
    asked: certificate.ProvedQuestion,
    make_right: Callable[[], Side],
    max_states: int,
    clock: _Clock,
) -> tuple[SearchResult, _Certify]:
    """What holds, and what makes the certificate of it.

    One key at a time comes first: where that proves, the whole space is not gone through.
    """
    artifact, other = asked.artifacts[0], (*asked.artifacts, None)[1]
    proof = "refuted" if asked.kind == "reachable" else "proved"
    try:
        system = _kernel_system(asked, listed=True, bare=True)
        few = min(max_states, MAX_BY_KEYS)
        keyed = system and certificate.by_keys(system, max_states=few, check_time=clock.check)
    except (OpenQuestion, Rejected) as left_open:
        if getattr(left_open, "code", None) == "P507":
            raise
        keyed = None
    if keyed:
        found = SearchResult(holds=True, states=keyed.states)
        return found, lambda: keyed.certificate(asked, proof)
    found = _searched(artifact, make_right(), other, max_states, clock)

    def certify() -> bytes | None:
        if found.session is not None:
            shows = "proved" if asked.kind == "reachable" else "refuted"
            return certificate.shown(asked, shows, found.session)
        every = _kernel_system(asked, listed=True, bare=found.bare)
        if every is None:
            return None
        few, check = max_states, clock.check
        whole = certificate.by_all(every, bare=found.bare, max_states=few, check_time=check)
        return None if whole is None else whole.certificate(asked, proof)

    return found, certify


def alone(
    one: Artifact, other: Artifact, *, max_states: int = MAX_STATES, timeout: float | None = None
) -> SearchResult:
    """As :func:`prove` with `implies`, for artifacts of which plans of `one` alone are known.

    There is hardly a proof, so the session is searched for at once; what is found is the same.
    """
    clock = _Clock(timeout)
    try:
        return _searched(
            one, artifact_side(other, forgetting(other.core, one.core)), other, max_states, clock
        )
    except OpenQuestion as left:
        return _undecided(left.code, left.why)


def _beside(artifact: Artifact, other: Artifact) -> Side:
    """The right side of a question about inclusion."""
    return artifact_side(other, forgetting(other.core, artifact.core))


def _kernel_system(
    asked: certificate.ProvedQuestion, *, listed: bool = False, bare: bool = False
) -> certificate.TimedSystem | None:
    """The question as the kernel reads it; None: it does not."""
    try:
        return asked.system(listed=listed, bare=bare)
    except Rejected:
        return None


def _searched(
    artifact: Artifact, right: Side, other: Artifact | None, max_states: int, clock: _Clock
) -> SearchResult:
    if not right.walk.accepts(right.walk.start) and other is None and _negative(right.core):
        return _undecided("P501", "a limit below 0 is broken by nothing that is called")

    def real(session: WitnessSession) -> bool:
        session = opened(artifact.core, session)
        try:
            if not _held(artifact, session) or refused_at(right, session) is None:
                return False
            return other is None or not _held(other, session)
        except GivenRefused:  # the sides ask for other attributes
            return False

    def answer(core: Core, forgot: tuple[str, str] | None) -> SearchResult:
        def make() -> System:
            system = System(artifact_side(artifact, core), right)
            system.forgot = forgot
            return system

        found = included(make, real, max_states=max_states, check_time=clock.check)
        if found.session is not None and not real(found.session):
            why = "the session that was found does not replay"
            return replace(_undecided("P501", why), states=found.states)
        if found.session is not None:
            return replace(found, session=opened(artifact.core, found.session))
        return found

    found = answer(artifact.core, None)
    less = forgetting(artifact.core)
    some = any(isinstance(one, PolicyMonitor) for one in artifact.core.monitors)
    if found.holds is not None or not some or "P507" in found.codes:
        return found
    # Without its own statements of 1.2 the left side lets more sessions through.
    clock.check()
    wider = answer(less, _forgotten(artifact.core))
    if wider.holds is None and found.codes != ("P501",):
        return found
    return replace(wider, bare=True)


def _forgotten(core: Core) -> tuple[str, str]:
    """Why a session that does not replay is no answer: statements of 1.2 were left aside."""
    policies = [one for one in core.monitors if isinstance(one, PolicyMonitor)]
    return "P501", f"{policies[0].text!r} was left aside: no session was found to replay"


def _negative(core: Core) -> bool:
    return any(limit.value < 0 and not limit.least for limit in core.limits)


def _undecided(code: str, why: str) -> SearchResult:
    return SearchResult(holds=None, codes=(code,), whys=(why,))


def _surely_finishes(
    asked: certificate.ProvedQuestion, max_states: int, clock: _Clock
) -> tuple[int, bytes] | None:
    """How many states show that every session can be finished, and the certificate.

    The kernel's moves are quicker than those of the search, which has to know values.

    Raises:
        OpenQuestion: P507.
    """
    system = _kernel_system(asked)
    if system is None:
        return None
    try:
        data = certificate.finishing(asked, system, max_states=max_states, check_time=clock.check)
    except (OpenQuestion, Rejected) as left_open:
        if getattr(left_open, "code", None) == "P507":
            raise
        return None
    if data is None:
        return None
    head = decode(data.partition(b"\n")[0], "line 1")
    states = head["states"] if isinstance(head, dict) else 0
    return int(str(states)), data


def _finishes(artifact: Artifact, max_states: int, clock: _Clock) -> Proof:
    asked = certificate.ProvedQuestion(kind="finishable", text=None, artifacts=(artifact,))
    across = any(
        isinstance(one, PolicyMonitor) and is_across(one.policy) for one in artifact.core.monitors
    )
    done = None if across else _surely_finishes(asked, max_states, clock)
    if done is not None:
        states, data = done
        found = SearchResult(holds=True, states=states)
        return replace(_proof("finishable", None, found, "proved"), certify=lambda: data)
    side = artifact_side(artifact)
    if any(is_timed(one.policy) for one in side.policies):
        # Whether a way to an end is there may hang on when the calls of a session were made.
        left = _undecided("P502", "whether it can be finished whenever its calls were made")
        return _proof("finishable", None, left, "undecided")
    unsure = [tool.name for tool in artifact.core.tools if not surely_fit(tool)]
    if unsure:
        left = _undecided("P501", f"what stands inside of an argument of {unsure[0]} may not fit")
        return _proof("finishable", None, left, "undecided")
    found = finishable(lambda: System(side, side), max_states=max_states, check_time=clock.check)
    if found.session is not None and not _held(artifact, found.session):
        found = _undecided("P501", "the session that was found does not replay")
    if found.session is not None:
        found = replace(found, session=opened(artifact.core, found.session))

    def certify() -> bytes | None:
        system = _kernel_system(asked)
        if system is None:
            return None
        if found.session is None:
            return certificate.finishing(
                asked, system, max_states=max_states, check_time=clock.check
            )
        return certificate.stuck(
            asked, system, found.session, max_states=max_states, check_time=clock.check
        )

    if found.loose and (found.session is None or certify() is None):
        # What is a way to an end there needs values that are compared, and may be no session's.
        left = _undecided("P504", "a field is added up and compared")
        found = replace(left, states=found.states)
    return replace(_proof("finishable", None, found, _VERDICTS[found.holds]), certify=certify)


def _held(artifact: Artifact, session: WitnessSession) -> bool:
    """Whether a gate lets a session through; at a `finish`, whether it may end there."""
    now, home = [_BEGUN], Home(recorded=False)
    given = opened(artifact.core, session).given if artifact.core.given else None
    gate = Gate(
        artifact, key=bytes(32), durable=False, clock=lambda: now[0], home=home, given=given
    )
    try:
        for call in session.calls:
            now[0] = _BEGUN + (call.at_ms or 0)
            with gate.call(call.tool, dict(call.arguments)) as made:
                made.done(None, observed=call.answer)
        if session.ends == "finish":
            gate.finish()
    except Refused:
        return False
    finally:
        gate.close()
    # An answer that no plan goes on with is no refusal; the states of both sides say so.
    return refused_at(replay_side(artifact), session) is None


def replay_side(artifact: Artifact) -> Side:
    """The side of a grammar that the gate was asked about: without what only a gate knows."""
    try:
        return artifact_side(artifact)
    except OpenQuestion:
        return artifact_side(artifact, forgetting(artifact.core))


def lets_through(artifact: Artifact, session: WitnessSession) -> bool:
    """Whether a gate lets every call of a session through, one after the other."""
    return _held(artifact, session)


# Documents.


def prove_output(found: Proof) -> ProveOutput:
    """The document of ``prove``."""
    from tcc.outputs import optional
    from tcc.outputs.questions import ProveOutput, QuestionJson

    return ProveOutput(
        question=QuestionJson(kind=found.kind, text=optional(found.text)),
        verdict=found.verdict,
        session=None if found.session is None else session_json(found.session),
        codes=list(found.codes),
        states=found.states,
    )


def session_json(session: WitnessSession) -> SessionJson:
    """A session as JSON."""
    from tcc.outputs import optional
    from tcc.outputs.questions import SessionCallJson, SessionJson

    return SessionJson(
        calls=[
            SessionCallJson(
                tool=call.tool,
                arguments=dict(call.arguments),
                answer=optional(None if call.answer is None else dict(call.answer)),
                at_ms=optional(call.at_ms),
            )
            for call in session.calls
        ],
        ends=session.ends,
        given=optional(dict(session.given) or None),
    )


def session_lines(session: WitnessSession) -> list[str]:
    """A session for people, one call per line."""
    lines = list[str]()
    given = ", ".join(f"{name}={_shown(value)}" for name, value in session.given.items())
    for call in session.calls:
        pairs = ", ".join(f"{name}={_shown(value)}" for name, value in call.arguments.items())
        line = f"{call.tool}({pairs})" if pairs else call.tool
        if call.answer is not None:
            answer = ", ".join(f"{name}={_shown(value)}" for name, value in call.answer.items())
            line += f" -> {answer}"
        if call.at_ms is not None:
            line += f" at {call.at_ms} ms"
        if given and not lines:
            line += f", in a session that is given {given}"
        lines.append(line)
    return lines


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
