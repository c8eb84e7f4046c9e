"""An MCP server of our own, over lines: calls one after the other, and a client that is heard.

A call is made in a thread of its own, so that pings, cancellations and signals are not kept waiting
by a search; one that is cancelled before its turn is not made.  A client that ended its input is
answered all the same: calls have no effect.
Cost: that of the tools; memory is bounded by what may wait.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from tcc_runtime.mcp.door import Cancelled, ClientCall, ClientConnection, WaitingCalls, busy_line
from tcc_runtime.mcp.upstream.pipes import MAX_CLIENT_LINE, Pipe, Stopping, ready
from tcc_runtime.mcp.wire import INTERNAL_ERROR

_FULL = 1 << 20
_LINES = 64  # of the client, in one turn of the loop

Answering: TypeAlias = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]


def serve(
    tools: Sequence[Mapping[str, Any]],
    call: Answering,
    *,
    info: Mapping[str, Any],
    instructions: str,
) -> None:
    """Serve over our own standard input and output, until the client is gone.

    Args:
        tools: as they are listed.
        call: gives the result of a tool; what cannot be answered is a result, too.
        info: our name and version.
        instructions: what a model is told about all of them.
    """
    door = ClientConnection(info=info, instructions=instructions, tools=lambda: tools)
    with Stopping() as stopping:
        _Serving(door, call, Pipe(0, 1, MAX_CLIENT_LINE), stopping).run()


class _Serving:
    """The loop: the client is read, the call that was made is answered, the next one is begun."""

    def __init__(
        self, door: ClientConnection, call: Answering, client: Pipe, stopping: Stopping
    ) -> None:
        self._door = door
        self._call = call
        self._client = client
        self._stopping = stopping
        self._lines: deque[bytes | None] = deque()
        self._waiting = WaitingCalls()
        self._open: ClientCall | None = None
        self._wanted = False  # whether the answer to it is still waited for
        reads, self._writes = os.pipe()
        self._worker = Pipe(reads, self._writes, 1)
        self._line = b""

    def run(self) -> None:
        """Until the client is gone and answered, or we are asked to stop."""
        client = self._client
        while not (self._stopping.asked or client.broken or self._is_idle()):
            client.paused = client.waiting > _FULL or len(self._lines) > _LINES
            next_one = self._waiting and self._open is None
            more = next_one or (self._lines and client.waiting <= _FULL)
            readable = ready((client, self._worker), 0.0 if more else None, self._stopping.wakes)
            if self._worker in readable:
                self._worker.read()
                self._end()
            heard = client in readable
            if heard:
                self._lines.extend(client.read())
            for _ in range(_LINES):
                if not self._lines or client.waiting > _FULL:
                    break
                self._take(self._lines.popleft())
            if not heard and not self._lines:
                self._begin()

    def _is_idle(self) -> bool:
        """Whether the client is gone, and has what it waited for."""
        busy = self._client.waiting or self._lines or (self._open is not None and self._wanted)
        return self._client.ended and not (busy or self._waiting)

    def _take(self, line: bytes | None) -> None:
        taken = self._door.take(line)
        if isinstance(taken, bytes):
            self._client.send(taken)
        elif isinstance(taken, Cancelled):
            if not self._waiting.drop(taken.identity) and self._open is not None:
                self._wanted = self._wanted and self._open.identity != taken.identity
        elif isinstance(taken, ClientCall):
            ids = {self._open.identity} if self._open is not None and self._wanted else set()
            reason = self._waiting.add(taken, 0 if line is None else len(line), ids)
            if reason is not None:
                self._client.send(busy_line(taken.identity, reason))

    def _begin(self) -> None:
        """Make the first call that waits; nothing stands in the pipe that could cancel it."""
        if self._open is None and self._waiting:
            self._open, self._wanted = self._waiting.take(), True
            threading.Thread(target=self._make, args=(self._open,), daemon=True).start()

    def _make(self, call: ClientCall) -> None:
        """In the thread: the line of the answer, whatever the tool raises."""
        try:
            line = self._door.answer(call, self._call(call.tool, call.arguments))
        except Exception:  # noqa: BLE001 - what one call runs into ends no server
            line = self._door.refused(call, INTERNAL_ERROR, "this tool has failed")
        self._line = line
        os.write(self._writes, b"\n")

    def _end(self) -> None:
        """The call is over, and answered where that is still wanted."""
        if self._wanted:
            self._client.send(self._line)
        self._open, self._wanted = None, False
