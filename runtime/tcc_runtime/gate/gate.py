"""The gate: an agent proposes one call at a time, and what the grammar does not allow is not made.

Text: docs/gate.md; what it writes: docs/spec/session.md.  Everything that is not foreseen is a
refusal.  The record of a call is on disk before the call is permitted; an outcome that cannot be
written is unknown, and then nothing further is allowed.
Cost: a decision a few look-ups, whatever was called before; with a durable ledger two fdatasync a
call.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NoReturn

from tcc_certs.errors import Code, Rejected, clip
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.errors import LedgerError, ResumeError, SettingsError
from tcc_runtime.gate.following import Follower, seen_of
from tcc_runtime.gate.journal import InFile, InMemory, Journal, now_ms
from tcc_runtime.gate.keys import given_key, new_key, read_key
from tcc_runtime.gate.permit import Permit
from tcc_runtime.gate.policy import Policy, policy_of
from tcc_runtime.gate.reasons import reasons
from tcc_runtime.gate.records import (
    end_record,
    observed_texts,
    outcome_record,
    refusal_record,
    resolve_record,
    session_record,
    shown_name,
)
from tcc_runtime.gate.refusals import Allowed, AlreadyDone, Decision, Reason, Refused
from tcc_runtime.gate.remaining import remaining
from tcc_runtime.gate.session import Made, Outcome
from tcc_runtime.gate.tools import Asked, Indices
from tcc_runtime.gate.turns import Nested, Ticket, Turns, turns_of

_POLL: Final = (0.0005, 0.02)  # seconds between two looks at a lock: the first, the longest
_FAULTS: Final = (LedgerError, Rejected, ResumeError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """A call of the session.

    Attributes:
        seq: its number, from 1.
        call: canonical text, without observed parameters.
        outcome: ``done``, ``failed``, ``unknown``; ``open`` while it is under way.
        observed: the values that came back, as texts of the grammar.
        unforeseen: something else came back.
    """

    seq: int
    call: str
    outcome: str
    observed: Mapping[str, str]
    unforeseen: bool


class Gate:
    """Holds one session of an agent to an artifact.

    Args:
        artifact: from :func:`tcc.load` or :func:`tcc.compile_file`, or the path of one, whose
            certificates are then checked.
        ledger: the record of the session; one that is there is taken up.  None keeps the session
            in memory, of this process alone.
        checked: as of :func:`tcc.load`, where `artifact` is a path.
        key: of the digests of values, 32 bytes; None keeps one in a file beside the ledger.
        show: open parameters, as ``tool.parameter``, whose values stand in the ledger as they are.
            Those that a monitor adds up always do.
        durable: wait for the disk before a call is permitted, and after its outcome.
        clock: UTC milliseconds since 1970.

    Raises:
        ResumeError: the ledger is another artifact's or key's, has ended, or was changed.
        Rejected: the artifact is refused; L1xx: the ledger's lines are no chain.
        LedgerError: the ledger cannot be read or written.
        SettingsError: an argument is out of its range.
    """

    def __init__(
        self,
        artifact: Artifact | str | Path,
        *,
        ledger: str | Path | None = None,
        checked: str | None = None,
        key: bytes | None = None,
        show: Sequence[str] = (),
        durable: bool = True,
        clock: Callable[[], int] | None = None,
    ) -> None:
        opened = _opened(artifact, checked)
        self._policy: Policy = policy_of(opened)
        self._shown = _shown(self._policy, show)
        self._durable = durable
        self._clock = now_ms if clock is None else clock
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._fault: Exception | None = None
        self._started = 0
        given = given_key(key)
        if ledger is None:
            self._journal: Journal = InMemory()
            self._turns = Turns()
            self._follower = Follower(self._policy, os.urandom(32) if given is None else given)
            self._begin()
            return
        journal = InFile(Path(ledger))
        self._journal = journal
        self._turns = turns_of(journal.device, journal.inode)
        self._take_up(journal, given, tuple(show))

    def _begin(self) -> None:
        """The first record."""
        started = self._clock()
        if not 0 <= started < 1 << 48:
            raise SettingsError("clock", "0 .. 2^48 - 1 milliseconds", started)
        key = self._follower.key
        record = session_record(self._policy, key, started, self._shown)
        self._follower.open(self._shown)
        self._journal.append(record, durable=self._durable)

    def _take_up(self, journal: InFile, given: bytes | None, show: tuple[str, ...]) -> None:
        ticket = self._turn()
        try:
            journal.lock(wait=True)
            try:
                new = journal.is_new()
                if given is None:
                    given = new_key(journal.path) if new else read_key(journal.path)
                self._follower = Follower(self._policy, given)
                if new:
                    for _ in journal.news(locked=True):
                        continue  # what a crash left of the first line is cut off
                    self._begin()
                else:
                    self._catch_up()
            finally:
                journal.unlock()
        except BaseException:
            journal.close()
            raise
        finally:
            self._turns.give_back(ticket)
        if self._follower.session.ended:
            journal.close()
            raise ResumeError(f"line {journal.records}", "a session that goes on", "its end")
        if show and self._follower.shown != self._shown:
            journal.close()
            raise ResumeError("line 1: arguments", list(self._shown), list(self._follower.shown))

    # What may be asked, without effect.

    def check(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Decision:
        """Whether a call may be made now; a call that is under way counts as unknown."""
        with self._lock:
            trouble = self._look()
            if trouble is not None:
                return trouble
            found = self._decide(tool, {} if arguments is None else arguments)
        return found[0] if isinstance(found, tuple) else found

    def allowed(self) -> tuple[Allowed, ...]:
        """The calls that plans allow now, one for each listed call, in order of their texts."""
        with self._lock:
            if self._look() is not None or self._closed:
                return ()
            places = self._session.known_places()
        return self._policy.allowed(places)

    def tools(self) -> tuple[str, ...]:
        """The names of the tools of those calls, in order."""
        return tuple(dict.fromkeys(found.tool for found in self.allowed()))

    @property
    def may_finish(self) -> bool:
        """Whether the session may end here."""
        with self._lock:
            return self._look() is None and not self._session.ended and self._session.may_finish()

    @property
    def remaining(self) -> dict[str, int | Decimal]:
        """What the limits still leave, with unknown outcomes counted."""
        with self._lock:
            self._look()
            return remaining(self._session)

    @property
    def history(self) -> tuple[Happened, ...]:
        """The calls so far."""
        with self._lock:
            self._look()
            return tuple(self._happened(at) for at in range(len(self._session.made)))

    @property
    def head(self) -> str:
        """The head of the ledger, hex: whoever has it can tell whether a record before it changed."""
        with self._lock:
            self._look()
            return self._journal.head.hex()

    @property
    def artifact(self) -> Artifact:
        """What the session is held to."""
        return self._policy.artifact

    # What has an effect.

    def call(
        self, tool: str, arguments: Mapping[str, Any] | None = None, *, ref: str | None = None
    ) -> Permit:
        """A permit for one call, for ``with`` and ``async with``; there it is decided.

        Args:
            tool: its name.
            arguments: JSON values by name.
            ref: the caller's own id of the call; one that the session has is not made again.

        Raises:
            Refused: at the start of the block: it is not allowed, and nothing was done.
            AlreadyDone: the same, as the session has the id.
        """
        return Permit(self, tool, {} if arguments is None else arguments, ref)

    def resolve(
        self, seq: int, outcome: Outcome, observed: Mapping[str, Any] | None = None
    ) -> None:
        """What a call whose outcome is unknown turned out to be; the owner's word.

        Args:
            seq: its number.
            outcome: ``done`` or ``failed``.
            observed: its observed values, where it is done and has any.

        Raises:
            ValueError: there is no such unknown call, or no such outcome or value.
            Refused: R303, R305 or R306.
        """
        own = self._pending is not None and self._session.under_way
        ticket = None if own else self._enter("")
        try:
            with self._lock:
                self._resolve(seq, outcome, observed)
        finally:
            if ticket is not None:
                self._leave(ticket)

    def _resolve(self, seq: int, outcome: Outcome, observed: Mapping[str, Any] | None) -> None:
        made = self._follower.unknown(seq)
        if made is None or outcome not in ("done", "failed"):
            raise ValueError(f"no unknown call {seq} that can be told {clip(outcome, 20)}")
        table = self._policy.table(made.group.tool)
        indices = table.observe(observed or {}) if outcome == "done" else None
        if outcome == "done" and indices is None:
            raise ValueError(f"observed: a value for each of {[p.name for p in table.observed]}")
        if outcome == "failed" and observed:
            raise ValueError("observed: nothing, of a call that failed")
        texts = observed_texts(table, indices)
        self._write(resolve_record(seq, outcome, texts), durable=True)
        self._session.resolve(made, outcome, indices)

    def finish(self, *, abandon: bool = False) -> None:
        """End the session; `abandon` ends it where no plan does.

        Raises:
            Refused: R204 no plan ends here; R303, R305, R306.
        """
        ticket = self._enter("")
        try:
            with self._lock:
                if self._session.ended:
                    self._refuse(Code.ENDED)
                if not abandon and not self._session.may_finish():
                    self._refuse(Code.MAY_NOT_FINISH)
                self._write(end_record(abandon), durable=True)
                self._session.ended = True
        finally:
            self._leave(ticket)

    def close(self) -> None:
        """Lets go of the ledger; the session can be taken up again."""
        with self._lock:
            self._fault = self._fault or LedgerError("ledger", OSError(0, "the gate is closed"))
            self._journal.close()

    # How a permit is had and given back.

    def enter(self, permit: Permit) -> None:
        """Waits for the turn, decides and records; of a thread."""
        ticket = self._enter(permit.tool)
        self._admit(permit, ticket)

    async def enter_in_task(self, permit: Permit) -> None:
        """The same, of a task."""
        ticket = await self._enter_in_task(permit.tool)
        self._admit(permit, ticket)

    def _admit(self, permit: Permit, ticket: Ticket) -> None:
        try:
            with self._lock:
                self._permit(permit, ticket)
        except BaseException:
            self._leave(ticket)
            raise

    def _permit(self, permit: Permit, ticket: Ticket) -> None:
        reference = self._reference(permit)
        found = self._decide(permit.tool, permit.arguments)
        if not isinstance(found, tuple):
            self._record_refusal(found, permit.tool)
            raise Refused(found, permit.tool)
        _, asked, seen = found
        session = self._session
        seq = len(session.made) + 1
        record = self._follower.writer.call(seq, asked, session.states(), reference)
        self._write(record, durable=True)
        session.begin(asked.group, seen)
        if reference is not None:
            self._follower.refs[reference] = seq
        self._pending = ticket
        self._began = self._clock()
        permit.admitted(seq, str(record["key"]), ticket)

    def _reference(self, permit: Permit) -> str | None:
        """What stands for the caller's id.

        Raises:
            Refused: R106 it is no text; AlreadyDone: the session has it.
        """
        if permit.ref is None:
            return None
        try:
            if type(permit.ref) is not str:
                raise Rejected(Code.NO_VALUE, "ref", "a text", type(permit.ref).__name__)
            reference = self._follower.writer.reference(permit.ref)
        except Rejected as refusal:
            decision = self._decision(refusal.code, "ref")
            self._record_refusal(decision, permit.tool)
            raise Refused(decision, permit.tool) from None
        seq = self._follower.refs.get(reference)
        if seq is None:
            return reference
        decision = self._decision(Code.ALREADY_DONE, "ref")
        self._record_refusal(decision, permit.tool)
        error = AlreadyDone(decision, permit.tool)
        error.seq, error.outcome = seq, self._session.made[seq - 1].outcome
        raise error

    def settle(
        self, outcome: Outcome, result: object = None, observed: Mapping[str, Any] | None = None
    ) -> tuple[str, bool]:
        """The outcome of the call under way: what stands in the ledger, and whether unforeseen."""
        with self._lock:
            made = self._session.made[-1]
            table = self._policy.table(made.group.tool)
            indices: Indices | None = None
            if outcome == "done":
                indices = table.observe(result if observed is None else observed)
                if not table.observed:
                    indices = ()
            unforeseen = outcome == "done" and indices is None
            writer = self._follower.writer
            record = outcome_record(
                len(self._session.made),
                outcome,
                max(0, self._clock() - self._began),
                observed_texts(table, indices),
                unforeseen,
                writer.result(result),
            )
            try:
                self._journal.append(record, durable=self._durable)
            except LedgerError as error:
                self._fault = error
                self._session.settle("unknown", None, False)
                return "unknown", False
            self._session.settle(outcome, indices, unforeseen)
            return outcome, self._session.unforeseen

    def leave(self, ticket: Ticket) -> None:
        """The call is over."""
        self._pending = None
        self._leave(ticket)

    # Inside.

    _pending: Ticket | None = None
    _began = 0

    @property
    def _session(self) -> Any:
        return self._follower.session

    @property
    def _closed(self) -> bool:
        return bool(self._session.ended or self._session.unforeseen)

    def _turn(self) -> Ticket:
        self._require_process()
        try:
            return self._turns.take()
        except Nested:
            self._refuse(Code.NESTED_CALL)

    def _enter(self, tool: str) -> Ticket:
        """The turn and the lock, and what others have written; of a thread."""
        self._require_process()
        try:
            ticket = self._turns.take()
        except Nested:
            self._refuse(Code.NESTED_CALL, tool)
        try:
            self._journal.lock(wait=True)
            with self._lock:
                self._require_whole(tool)
                self._catch_up()
        except _FAULTS as error:
            self._leave(ticket)
            self._break(error, tool)
        except BaseException:
            self._leave(ticket)
            raise
        return ticket

    async def _enter_in_task(self, tool: str) -> Ticket:
        """The same, of a task; a lock that another process has is looked at again and again."""
        self._require_process()
        try:
            ticket = await self._turns.take_in_task()
        except Nested:
            self._refuse(Code.NESTED_CALL, tool)
        try:
            pause, longest = _POLL
            while not self._journal.lock(wait=False):
                await asyncio.sleep(pause)
                pause = min(longest, 2 * pause)
            with self._lock:
                self._require_whole(tool)
                self._catch_up()
        except _FAULTS as error:
            self._leave(ticket)
            self._break(error, tool)
        except BaseException:
            self._leave(ticket)
            raise
        return ticket

    def _leave(self, ticket: Ticket) -> None:
        self._journal.unlock()
        self._turns.give_back(ticket)

    def _require_process(self) -> None:
        """After a fork: locks that threads of the other process held are not waited for."""
        if os.getpid() == self._pid:
            return
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._pending = None
        journal = self._journal
        if isinstance(journal, InFile):
            self._turns = turns_of(journal.device, journal.inode)
        else:
            self._turns = Turns()

    def _require_whole(self, tool: str) -> None:
        if self._fault is not None:
            self._break(self._fault, tool)

    def _catch_up(self) -> None:
        """What others have written since; a call that nobody ended is unknown. With the lock."""
        follower, journal = self._follower, self._journal
        for record in journal.news(locked=True):
            follower.apply(record, journal.records)
        if self._session.under_way and self._pending is None:
            record = outcome_record(len(self._session.made), "unknown", 0, None, False, None)
            journal.append(record, durable=self._durable)
            self._session.settle("unknown", None, False)

    def _look(self) -> Decision | None:
        """What others have written since, without the lock; why nothing can be said, if so."""
        try:
            if self._fault is not None:
                return self._decision(Code.NOT_WRITTEN, _text(self._fault))
            for record in self._journal.news(locked=False):
                self._follower.apply(record, self._journal.records)
        except Rejected:
            return None  # a line that is being mended just now; who has the lock looks closely
        except (LedgerError, ResumeError) as error:
            self._fault = error
            return self._decision(Code.NOT_WRITTEN, _text(error))
        return None

    def _decide(self, tool: str, arguments: object) -> Decision | tuple[Decision, Asked, Any]:
        """The call, where it is allowed; else the refusal."""
        session = self._session
        if session.ended or session.unforeseen:
            return self._decision(Code.ENDED if session.ended else Code.UNFORESEEN, "")
        table = self._policy.tool(tool)
        if table is None:
            return self._decision(Code.UNKNOWN_TOOL, "")
        asked = table.read(arguments)
        if not isinstance(asked, Asked):
            return self._decision(asked[0], clip(asked[1], 80))
        seen = seen_of(self._policy, self._follower.writer, asked)
        refused = session.refusal(asked.group, seen)
        if refused is not None:
            return self._decision(refused[0], refused[1], asked)
        return self._decision(None, "", asked), asked, seen

    def _decision(self, code: Code | None, place: str, asked: Asked | None = None) -> Decision:
        """A decision; what it says beyond its code is found when it is read."""
        session, policy = self._session, self._policy
        places = session.places
        made = len(session.made)
        under_way = session.under_way

        def find() -> tuple[list[Reason], tuple[Allowed, ...]]:
            if code is None or code in (Code.ENDED, Code.UNFORESEEN, Code.NOT_WRITTEN):
                allowed = policy.allowed(places) if code is None and not under_way else ()
                return ([] if code is None else reasons(session, made, code, place, asked)), allowed
            return reasons(session, made, code, place, asked), policy.allowed(places)

        return Decision(code, place, find)

    def _refuse(self, code: Code, tool: str = "") -> NoReturn:
        raise Refused(self._decision(code, ""), tool)

    def _break(self, error: Exception, tool: str) -> NoReturn:
        self._fault = error
        raise Refused(self._decision(Code.NOT_WRITTEN, _text(error)), tool) from error

    def _record_refusal(self, decision: Decision, tool: str) -> None:
        known = type(tool) is str and self._policy.tool(tool) is not None
        code = str(decision.code)
        if self._session.ended:
            return  # nothing follows an end
        try:
            self._journal.append(refusal_record(tool if known else "", code), durable=False)
        except LedgerError as error:
            self._fault = error

    def _write(self, record: dict[str, Any], *, durable: bool) -> None:
        try:
            self._journal.append(record, durable=durable and self._durable)
        except LedgerError as error:
            self._break(error, "")

    def _happened(self, at: int) -> Happened:
        session = self._session
        made: Made = session.made[at]
        table = self._policy.table(made.group.tool)
        told = observed_texts(table, made.observed) or {}
        under_way = session.under_way and at == len(session.made) - 1
        return Happened(
            seq=at + 1,
            call=made.group.text,
            outcome="open" if under_way else made.outcome,
            observed={name: str(text) for name, text in told.items()},
            unforeseen=made.unforeseen,
        )

    def __enter__(self) -> Gate:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a gate is one session's: open another one on its ledger")


def _opened(artifact: Artifact | str | Path, checked: str | None) -> Artifact:
    found = artifact if isinstance(artifact, Artifact) else load(Path(artifact), checked=checked)
    if not found.verified:
        raise SettingsError("artifact", "one whose certificates were checked", "verify=False")
    return found


def _shown(policy: Policy, show: Sequence[str]) -> tuple[str, ...]:
    """The open parameters that are shown, sorted; those that are added up among them."""
    tools = policy.core.tools
    known = {shown_name(tool.name, given.name) for tool in tools for given in tool.opened}
    foreign = sorted(set(show) - known)
    if foreign:
        raise SettingsError("show", "open parameters as tool.parameter", foreign[0])
    added = policy.monitors.added.items()
    due = {shown_name(tools[tool].name, name) for tool, names in added for name in names}
    return tuple(sorted({*show, *due}))


def _text(error: Exception) -> str:
    return clip(error, 200)
