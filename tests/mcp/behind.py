"""A server behind a link, as the relay speaks to it, for tests that are not tasks themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from tcc_runtime.mcp.links import Stop, Target
from tcc_runtime.mcp.server import Protocol, Server
from tcc_runtime.mcp.wire import MalformedMessage, Message, Response

T = TypeVar("T")
_LOOP = asyncio.new_event_loop()


def run(work: Coroutine[Any, Any, T], seconds: float = 20) -> T:
    """Run a task of the one loop of these tests."""
    return _LOOP.run_until_complete(asyncio.wait_for(work, seconds))


class Behind:
    """A server, and what it says: `heard` has its messages but the answers that were asked for."""

    def __init__(self, target: Target, protocol: Protocol = "handshake") -> None:
        self.heard: list[Message | MalformedMessage] = []
        self.server = run(self._begin(target))
        try:
            run(self.server.connect(protocol))
        except BaseException:
            self.close()
            raise

    async def _begin(self, target: Target) -> Server:
        self.link = await target.open(Stop(), lambda _: None)
        server = Server(self.link, seconds=10, version="0")
        self._listening = asyncio.ensure_future(server.listen(self.heard.append))
        return server

    def __enter__(self) -> Behind:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        async def end() -> None:
            self._listening.cancel()
            await self.link.close()

        run(end())

    def tools(self) -> Any:
        return run(self.server.tools())

    def request(self, method: str, params: Mapping[str, Any]) -> int:
        """Send a request; its id."""

        async def send() -> int:
            return self.server.request(method, params)

        return run(send())

    def call(self, tool: str = "t", **arguments: Any) -> int:
        """Send a call; its id."""
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        async def send() -> None:
            self.server.notify(method, params)

        run(send())

    def answer(self, identity: int) -> Response:
        """Wait for the answer to a request."""

        async def come() -> Response:
            while True:
                for message in self.heard:
                    if isinstance(message, Response) and message.identity == identity:
                        return message
                await asyncio.sleep(0.002)

        return run(come())

    def ended(self) -> bool:
        """Wait until the link has ended."""

        async def come() -> bool:
            await self._listening
            return self.server.ended

        return run(come())


def pause(seconds: float) -> None:
    """Let the loop go on for a while."""
    run(asyncio.sleep(seconds))
