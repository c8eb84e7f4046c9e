"""The relay: a server held to a grammar, as a server of its own, one line at a time.

What a client says is read strictly and taken from an allow-list; a call goes on only with a permit
of the gate, written anew from the values that were checked, under an id of ours.  One call is under
way at a time, the others wait in their order.  An outcome that is not plain is unknown; an answer
that comes late resolves it.  Whatever else either side sends changes nothing.
Cost: a few system calls and the gate's, a message; memory is bounded by the longest line.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from tcc_runtime.errors import LedgerError, ServerDrift, ServerError
from tcc_runtime.gate.refusals import Refused
from tcc_runtime.mcp.door import Door
from tcc_runtime.mcp.late import Late
from tcc_runtime.mcp.messages import Call, Cancelled
from tcc_runtime.mcp.outcomes import Ending, ending_of, unknown
from tcc_runtime.mcp.pipes import Pipe, ready
from tcc_runtime.mcp.session import Session, error_result, is_kept, plain, refusal_result
from tcc_runtime.mcp.signals import Stopping
from tcc_runtime.mcp.under_way import Open, Tool, record
from tcc_runtime.mcp.upstream import Upstream
from tcc_runtime.mcp.waiting import Waiting
from tcc_runtime.mcp.wire import (
    BUSY,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    Answer,
    Request,
    Unreadable,
    read_line,
)

_FULL = 1 << 20


class Relay:
    """Between one client and one server.

    Args:
        session: the gate's.
        upstream: a server that is connected.
        client: the pipes to the client.
        door: how the client is spoken to.
        tools: those of the grammar by name.
        seconds: how long a call may take.
        masked: says which tools may be called now, where clients are told; else None.
        check: looks whether the server's tools are still those that were locked.
        note: is told, for people, what went wrong.
    """

    def __init__(
        self,
        *,
        session: Session,
        upstream: Upstream,
        client: Pipe,
        door: Door,
        tools: Mapping[str, Tool],
        seconds: float,
        masked: Callable[[], Sequence[str]] | None,
        check: Callable[[], None],
        note: Callable[[str], None],
    ) -> None:
        self._session = session
        self._upstream = upstream
        self._client = client
        self._door = door
        self._tools = tools
        self._seconds = seconds
        self._masked = masked
        self._shown = None if masked is None else masked()
        self._check = check
        self._note = note
        self._waiting = Waiting()
        self._open: Open | None = None
        self._late = Late(session, tools, note)
        upstream.aside = self.aside
        self._doubtful = False
        self._stopped: str | None = None

    def run(self, stopping: Stopping) -> str | None:
        """Relay until the client is gone and answered; why it ended early, where it did."""
        trouble = None
        while trouble is None and not self._is_over():
            if self._open is None:
                self._late.resolve()
            self._begin_next()
            self._client.paused = self._client.waiting > _FULL
            self._upstream.pipe.paused = self._client.waiting > 32 * _FULL
            pipes = (self._client, self._upstream.pipe)
            for pipe in ready(pipes, self._left(), stopping.wakes):
                for line in pipe.read():
                    (self._from_client if pipe is self._client else self._from_server)(line)
            trouble = self._trouble(stopping)
        self._leave(trouble or "the client is gone")
        return trouble

    def _is_over(self) -> bool:
        if self._client.broken:
            return True
        idle = self._open is None and not self._waiting and not self._client.waiting
        return self._client.ended and idle

    def _left(self) -> float | None:
        """Seconds until something is to be done though nothing comes."""
        return None if self._open is None else max(0.0, self._open.until - time.monotonic())

    def _trouble(self, stopping: Stopping) -> str | None:
        if self._open is not None and time.monotonic() >= self._open.until:
            self._upstream.notify("notifications/cancelled", {"requestId": self._open.identity})
            self._settle(unknown(f"there was no answer in {self._seconds:g} s"))
        if stopping.asked:
            return "asked to stop"
        if self._upstream.pipe.ended or self._upstream.pipe.broken:
            return "the server ended"
        return None

    def _leave(self, reason: str) -> None:
        """Settle what is open, and answer what waits, as far as the client still takes it."""
        if self._open is not None:
            self._settle(unknown(reason))
        for call in self._waiting.empty():
            self._client.send(self._door.refused(call, INTERNAL_ERROR, f"not called: {reason}"))
        until = time.monotonic() + 1
        while self._client.waiting and not self._client.broken and time.monotonic() < until:
            self._client.paused = True
            ready((self._client,), until - time.monotonic())

    def _from_client(self, line: bytes | None) -> None:
        taken = self._door.take(line)
        if isinstance(taken, bytes):
            self._client.send(taken)
        elif isinstance(taken, Cancelled):
            self._cancel(taken)
        elif taken is not None:
            self._queue(taken, 0 if line is None else len(line))

    def _queue(self, call: Call, size: int) -> None:
        reason = self._waiting.add(call, size, None if self._open is None else self._open.call)
        if reason is not None:
            self._client.send(self._door.refused(call, BUSY, reason))

    def _cancel(self, cancelled: Cancelled) -> None:
        """A call that waits is never made; one under way is unknown.  Neither is answered."""
        opened = self._open
        if self._waiting.drop(cancelled.identity):
            return
        if opened is not None and opened.call.identity == cancelled.identity:
            self._upstream.notify("notifications/cancelled", {"requestId": opened.identity})
            self._settle(unknown("the client cancelled it"), answered=False)

    def _begin_next(self) -> None:
        """Make the first call that waits and is allowed."""
        while self._open is None and self._waiting:
            self._look_again()
            self._begin(self._waiting.take())

    def _begin(self, call: Call) -> None:
        stopped = self._stopped or self._late.trouble
        if stopped is not None:
            self._client.send(self._door.refused(call, INTERNAL_ERROR, f"not called: {stopped}"))
            return
        if self._upstream.pipe.waiting > _FULL:
            what = "not called: the server does not read what was sent to it"
            self._client.send(self._door.refused(call, BUSY, what))
            return
        leave = ExitStack()
        try:
            permit = leave.enter_context(self._session.call(call.tool, call.arguments))
        except Refused as refusal:
            self._client.send(self._door.answer(call, refusal_result(refusal)))
            return
        if not is_kept(call.arguments):
            what = "a number of which the server would get another one"
            with leave:
                permit.failed(what)
            self._client.send(self._door.refused(call, INVALID_PARAMS, f"not called: {what}"))
            return
        params: dict[str, Any] = {"name": call.tool, "arguments": plain(call.arguments)}
        meta: dict[str, Any] = {}
        if call.token is not None:
            meta["progressToken"] = self._upstream.next_identity
        if permit.model:
            # A session that was begun with a budget: the ledger names who makes the call.
            meta["tcc/model"] = permit.model
        if meta:
            params["_meta"] = meta
        identity = self._upstream.request("tools/call", params)
        until = time.monotonic() + self._seconds
        self._open = Open(call=call, permit=permit, identity=identity, until=until, leave=leave)

    def _look_again(self) -> None:
        """After the server said that its list changed: is what was locked still there?"""
        if not self._doubtful or self._stopped is not None:
            return
        self._doubtful = False
        try:
            self._check()
        except (ServerDrift, ServerError) as error:
            self._stopped = f"the server's tools have changed: {error}"
            self._note(self._stopped)

    def _from_server(self, line: bytes | None) -> None:
        if line is None:
            self._unreadable("an answer that is too long")
            return
        try:
            message = read_line(line)
        except Unreadable as error:
            # What is no JSON object at all is noise of a server that prints where it should not.
            if line.lstrip()[:1] in (b"{", b"["):
                self._unreadable(f"a line that is refused: {error}")
            return
        self.aside(message)

    def aside(self, message: Request | Answer) -> None:
        """What the server sends: the answer that is waited for, one that is late, or a notice."""
        if isinstance(message, Request):
            self._told(message)
        elif self._open is not None and message.identity == self._open.identity:
            tool = self._tools.get(self._open.call.tool, Tool())
            self._settle(ending_of(message, tool.errors_failed), answer=message)
        else:
            self._late.take(message)

    def _told(self, message: Request) -> None:
        opened = self._open
        if message.identity is not None:
            self._upstream.refuse(message)
        elif message.method == "notifications/tools/list_changed":
            self._doubtful = True
        elif message.method == "notifications/progress" and opened is not None:
            ours = message.params.get("progressToken") == opened.identity
            if ours and opened.call.token is not None:
                self._client.send(self._door.progress(opened.call, message.params))

    def _unreadable(self, what: str) -> None:
        self._note(f"the server sent {what}")
        if self._open is not None:
            self._settle(unknown(f"the server sent {what}"))

    def _settle(
        self, ending: Ending, *, answer: Answer | None = None, answered: bool = True
    ) -> None:
        """Record how the open call ended, and tell the client."""
        opened, self._open = self._open, None
        if opened is None:
            return
        tool = self._tools.get(opened.call.tool, Tool())
        try:
            with opened.leave:
                record(opened.permit, ending, tool)
        except LedgerError as error:
            self._note(f"the outcome of call {opened.permit.seq} is not recorded: {error}")
        if answer is None and ending.outcome == "unknown":
            self._late.expect(opened.identity, opened.permit.seq, opened.call.tool)
        if answered:
            self._client.send(self._answer(opened, ending, answer))
        self._tell_changes()

    def _answer(self, opened: Open, ending: Ending, answer: Answer | None) -> bytes:
        if ending.result is not None:
            return self._door.relayed(opened.call, ending.result)
        told = {"outcome": ending.outcome, "seq": opened.permit.seq, "because": ending.reason}
        if answer is not None and answer.error is not None:
            return self._door.refused(opened.call, answer.error[0], answer.error[1], told)
        said = f"It is not known whether this call happened: {ending.reason}. Do not repeat it."
        return self._door.answer(opened.call, error_result(said, told))

    def _tell_changes(self) -> None:
        """Tell a client of the handshake where other tools may be called than before."""
        if self._masked is None or self._door.stateless is not False:
            return
        shown = self._masked()
        if shown != self._shown:
            self._shown = shown
            self._client.send(self._door.changed())
