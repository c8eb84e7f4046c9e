"""An MCP server over stdio for tools of this program.  It makes calls one after another.

A call runs in a thread, so pings, cancellations and signals do not wait for it.  A call that is
cancelled before its turn is not made.  A client that has ended its input still gets its answers,
because calls have no effect.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from tcc_runtime.mcp import wire
from tcc_runtime.mcp.client import Cancelled, Client, ClientCall
from tcc_runtime.mcp.guarding import aside, signals
from tcc_runtime.mcp.links import Stop
from tcc_runtime.mcp.links.stdio import MAX_CLIENT_LINE, PipeLink, new_loop

_MAX_WAITING = 256
_MAX_BYTES = 8 << 20

Answering: TypeAlias = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]


def serve(
    tools: Sequence[Mapping[str, Any]],
    call: Answering,
    *,
    info: Mapping[str, Any],
    instructions: str,
) -> None:
    """Serve over this process's standard input and output, until the client is gone.

    Args:
        tools: the tools, as `tools/list` shows them.
        call: returns the result of a tool for its name and arguments; for a wrong call an error
            result.
        info: name and version of the server.
        instructions: text for a model about all tools.
    """

    async def whole() -> None:
        link, stop = PipeLink(0, 1, MAX_CLIENT_LINE), Stop()
        client = Client(link, info=info, instructions=instructions, tools=lambda: tools)
        with signals(stop.ask):
            works = (stop.wait(), _Serving(client, link, call).run())
            tasks = [asyncio.ensure_future(work) for work in works]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(whole())


class _Serving:
    def __init__(self, client: Client, link: PipeLink, call: Answering) -> None:
        self._client, self._link, self._call = client, link, call
        self._waiting: deque[ClientCall] = deque()
        self._open: ClientCall | None = None  # None also if the client has cancelled it
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Serve until the client is gone and all its calls are answered."""
        listening = asyncio.ensure_future(self._listen())
        try:
            while self._waiting or not listening.done():
                if self._waiting and self._link.is_quiet():
                    await self._make(self._waiting.popleft())
                elif self._waiting:
                    await asyncio.sleep(0)
                else:
                    self._changed.clear()
                    await self._changed.wait()
            await self._link.drained(0)
        finally:
            listening.cancel()

    async def _listen(self) -> None:
        try:
            while not self._link.broken:
                await self._link.drained()
                try:
                    taken = self._client.take(await self._link.receive())
                except wire.MalformedMessage as error:
                    taken = wire.error(error.identity, error.code, str(error), error.data)
                self._take(taken)
                self._changed.set()
        except EOFError:
            pass
        finally:
            self._changed.set()
            asyncio.get_running_loop().call_soon(self._changed.set)

    def _take(self, taken: object) -> None:
        if isinstance(taken, wire.Response):
            self._link.send(taken)
        elif isinstance(taken, Cancelled):
            self._waiting = deque(one for one in self._waiting if one.identity != taken.identity)
            if self._open is not None and self._open.identity == taken.identity:
                self._open = None
        elif isinstance(taken, ClientCall):
            waiting = [*self._waiting, *([self._open] if self._open else [])]
            if any(one.identity == taken.identity for one in waiting):
                self._client.put_off(taken, "a call has this id already")
            elif (
                len(waiting) >= _MAX_WAITING
                or sum(one.size for one in waiting) + taken.size > _MAX_BYTES
            ):
                self._client.put_off(taken, "too many calls wait; not called")
            else:
                self._waiting.append(taken)

    async def _make(self, call: ClientCall) -> None:
        """Make a call, and answer it if the client still waits."""
        self._open = call
        try:
            result = await aside(lambda: self._call(call.tool, call.arguments), lambda _: None)
        except Exception:  # noqa: BLE001 - an exception of a tool ends one call, not the server
            if self._open is call:
                self._client.refuse(call, "this tool has failed")
        else:
            if self._open is call:
                self._client.answer(call, result)
        self._open = None
