"""The server's side of a connection: agreement on a form of the protocol, tools, requests.

The gate is a client without capabilities: it answers pings, and refuses all other requests of a
server.
Cost: linear in the messages of both sides.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from tcc_runtime.errors import ServerError
from tcc_runtime.gate.arguments import plain
from tcc_runtime.mcp import wire
from tcc_runtime.mcp.links import FULL, Link, Stop, Target
from tcc_runtime.mcp.lock import DEEPEST_TOOL

Protocol: TypeAlias = Literal["auto", "handshake", "2026-07-28"]
Tool: TypeAlias = Mapping[str, Any]

_MAX_PAGES = 1000
_MAX_TOOLS = 10_000
_IN_A_ROW = 64  # messages, before other tasks run


class Server:
    """The server's end of a connection.

    Args:
        link: the link to the server.
        seconds: the time limit of each answer while connecting or listing tools.
        version: the version of the gate, which the server gets.

    Attributes:
        stateless: whether the form is that of 2026-07-28.
        info, capabilities: name and version of the server, and its capabilities.
        ended: whether the server has ended.
        is_looking: whether its tools are being listed.
    """

    def __init__(self, link: Link, *, seconds: float, version: str) -> None:
        self.link = link
        self.seconds = seconds
        self.stateless = False
        self.info: Mapping[str, Any] = {}
        self.capabilities: Mapping[str, Any] = {}
        self._version = version
        self._last = 0
        self._asks: dict[int, asyncio.Future[wire.Response]] = {}
        self.ended = self.is_looking = False

    @property
    def is_full(self) -> bool:
        """True if more than 1 MiB of messages is unread by the server."""
        return self.link.waiting > FULL

    async def listen(
        self,
        told: Callable[[wire.Message | wire.MalformedMessage], None],
        ready: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Pass on the server's messages until it ends.

        Args:
            told: called with answers to :meth:`request`, with notifications, and with errors for
                lines that are no message.  Such a line may have been the answer to any request.
            ready: awaited before each message.
        """
        number = 0
        try:
            while True:
                number += 1
                if number % _IN_A_ROW == 0:
                    await asyncio.sleep(0)
                if ready is not None:
                    await ready()
                try:
                    message = await self.link.receive()
                except wire.MalformedMessage as error:
                    self._fail(f"the server sent {refused(error)}")
                    told(error)
                    continue
                if isinstance(message, wire.Response):
                    ask = self._asks.get(message.identity)  # type: ignore[arg-type]
                    if ask is None:
                        told(message)
                    elif not ask.done():
                        ask.set_result(message)
                elif message.identity is None:
                    told(message)
                else:
                    self._refuse(message)
        except EOFError:
            pass
        finally:
            self.ended = True
            self._fail("the server ended")

    def _fail(self, reason: str) -> None:
        for ask in self._asks.values():
            if not ask.done():
                ask.set_exception(ServerError(reason))

    def _refuse(self, request: wire.Request) -> None:
        """Answer a request of the server.

        A server that does not read gets no answer, so unread bytes are bounded.
        """
        if self.is_full:
            return
        if request.method == "ping":
            self.link.send(wire.Response(identity=request.identity, result={}))
        else:
            said = "nothing may be asked here"
            self.link.send(wire.error(request.identity, wire.METHOD_NOT_FOUND, said))

    @property
    def next_identity(self) -> int:
        """The id of the next request, which is also its token of progress."""
        return self._last + 1

    def request(self, method: str, params: Mapping[str, Any]) -> int:
        """Send a request and return its id.  `listen` gets the answer."""
        self._last += 1
        meta = params.get("_meta", {})
        if self.stateless:
            # A call has the capabilities of its client; other requests have none.
            params = {**params, "_meta": {**wire.envelope(self._version), **meta}}
        elif wire.CAPABILITIES_KEY in meta and self.link.away is None:
            kept = {name: value for name, value in meta.items() if name != wire.CAPABILITIES_KEY}
            params = {**params, "_meta": kept}
        self.link.send(wire.Request(identity=self._last, method=method, params=params))
        return self._last

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification."""
        self.link.send(wire.Request(identity=None, method=method, params=params))

    def cancel(self, identity: int) -> None:
        """Notify the server that a request is cancelled."""
        self.notify("notifications/cancelled", {"requestId": identity})

    async def ask(self, method: str, params: Mapping[str, Any] | None = None) -> wire.Response:
        """Send a request and wait for its answer.

        Raises:
            ServerError: the server does not answer in time, or ends.
        """
        ask = asyncio.get_running_loop().create_future()
        identity = self.request(method, params or {})
        self._asks[identity] = ask
        try:
            if self.ended:
                raise ServerError("the server ended")
            async with asyncio.timeout(self.seconds):
                answer: wire.Response = await ask
                return answer
        except TimeoutError:
            said = f"the server gave no answer to {method} in {self.seconds:g} s"
            raise ServerError(said) from None
        except ServerError as error:
            ended = str(error) == "the server ended"
            raise ServerError(
                f"{error} before it answered {method}" if ended else str(error)
            ) from None
        finally:
            del self._asks[identity]

    async def connect(self, protocol: Protocol = "auto") -> None:
        """Agree on a form of the protocol.

        Args:
            protocol: `auto` tries the handshake, and then the other form.

        Raises:
            ServerError: the server does not answer, or has no protocol version in common with the
                gate.
        """
        refusal = None
        if self.link.away is not None:
            protocol = "handshake"  # the fan-out link itself; each of its servers gets `protocol`
        if protocol != wire.STATELESS:
            refusal = await self._initialize()
            if refusal is None:
                return
        if protocol != "handshake":
            self.stateless = True
            refusal = await self._discover()
        if refusal is not None:
            raise ServerError(f"the server refuses the connection: {refusal}")

    async def _initialize(self) -> str | None:
        """Make the handshake; return the reason of a refusal, or None."""
        asked = {
            "protocolVersion": wire.HANDSHAKE[-1],
            "capabilities": {},
            "clientInfo": {"name": "tcc", "version": self._version},
        }
        answer = await self.ask("initialize", asked)
        if answer.error is not None:
            return answer.error[1] or str(answer.error[0])
        result = _result(answer)
        if _value(result, "protocolVersion") not in wire.HANDSHAKE:
            raise ServerError("the server wants a protocol version that is not known here")
        self.info = _object(_value(result, "serverInfo"))
        self.capabilities = _object(_value(result, "capabilities"))
        self.notify("notifications/initialized", {})
        return None

    async def _discover(self) -> str | None:
        answer = await self.ask("server/discover")
        if answer.error is not None:
            return answer.error[1] or str(answer.error[0])
        result = _result(answer)
        versions = _value(result, "supportedVersions")
        if not isinstance(versions, list) or wire.STATELESS not in versions:
            raise ServerError("the server wants a protocol version that is not known here")
        self.capabilities = _object(_value(result, "capabilities"))
        self.info = _object(_object(_value(result, "_meta")).get(wire.SERVER_KEY))
        return None

    async def tools(self) -> tuple[Tool, ...]:
        """Return the tools, sorted by name.

        Raises:
            ServerError: the server's list is malformed or endless.
        """
        self.is_looking = True
        try:
            return await self._listed()
        finally:
            self.is_looking = False

    async def _listed(self) -> tuple[Tool, ...]:
        found: dict[str, Tool] = {}
        cursors: set[str] = set()
        cursor: str | None = None
        while True:
            asked = {} if cursor is None else {"cursor": cursor}
            result = _result(await self.ask("tools/list", asked))
            for tool in _tools_of(result):
                if tool["name"] in found:
                    raise ServerError(f"the server lists a tool twice: {tool['name']!r}")
                found[tool["name"]] = tool
            cursor = _value(result, "nextCursor")
            if cursor is None:
                return tuple(found[name] for name in sorted(found))
            if not isinstance(cursor, str):
                raise ServerError("the server's list of tools goes on at a place that is no text")
            if cursor in cursors or len(cursors) >= _MAX_PAGES or len(found) > _MAX_TOOLS:
                raise ServerError("the server's list of tools does not end")
            cursors.add(cursor)


def token_of(request: wire.Request) -> Any:
    """Return the progress token of a request, or None."""
    meta = request.params.get("_meta")
    return meta.get("progressToken") if isinstance(meta, dict) else None


def with_token(request: wire.Request, server: Server) -> dict[str, Any]:
    """Return the parameters of a request with the token under which the server reports progress."""
    params = dict(request.params)
    if token_of(request) is not None:
        params["_meta"] = {**params["_meta"], "progressToken": server.next_identity}
    made: dict[str, Any] = plain(params)
    return made


def progress_of(message: wire.Request, request: wire.Request) -> wire.Request | None:
    """Return a server's progress notification with the token of the request; None if it has no
    token.
    """
    token = token_of(request)
    if token is None:
        return None
    return replace(message, params=plain({**message.params, "progressToken": token}))


@asynccontextmanager
async def connected(
    target: Target, protocol: Protocol, *, seconds: float, version: str
) -> AsyncIterator[Server]:
    """Return a context manager that connects to a server, and ends it.

    Raises:
        ServerError: the server cannot be started, or does not follow the protocol.
    """
    link = await target.open(Stop(), lambda _: None)
    server = Server(link, seconds=seconds, version=version)
    listening = asyncio.ensure_future(server.listen(lambda _: None))
    try:
        await server.connect(protocol)
        yield server
    finally:
        listening.cancel()
        await link.close()


def refused(error: wire.MalformedMessage) -> str:
    """Return a description of a server's line that is no message."""
    is_long = "too long" in str(error)
    return str(error) if is_long else f"a line that is refused: {error}"


def _result(answer: wire.Response) -> Mapping[str, wire.Member]:
    # The text of an error may quote a call, so only the client of that call gets it.
    if answer.error is not None:
        raise ServerError(f"the server answers with error {answer.error[0]}")
    if answer.result is None:
        raise ServerError("the server answers with a result that is no object")
    return answer.result


def _value(result: Mapping[str, wire.Member], name: str) -> Any:
    return result[name].value if name in result else None


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _tools_of(result: Mapping[str, wire.Member]) -> list[Tool]:
    tools = _value(result, "tools")
    if not isinstance(tools, list):
        raise ServerError("the server's answer to tools/list has no list of tools")
    for tool in tools:
        if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
            raise ServerError("the server lists something that is no tool")
        if wire.is_deeper(tool, DEEPEST_TOOL):
            raise ServerError(f"the server's tool {wire.dumps(tool['name'])} is nested too deeply")
    return tools
