"""The side that a client talks to: what it may say, in both ways of the protocol, and the answers.

An allow-list: `initialize`, `ping`, `server/discover`, `tools/list`, `tools/call` and two
notifications; anything else is not there.  The first request decides how the connection speaks.
Calls come out of here checked for their form alone; whether they may be made is asked elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tcc_runtime.mcp.messages import (
    Call,
    Cancelled,
    check_envelope,
    error_line,
    is_older,
    notification,
    read_call,
    shown_number,
    unsupported,
)
from tcc_runtime.mcp.versions import HANDSHAKE, STATELESS, VERSION_KEY, cacheable, stamped
from tcc_runtime.mcp.wire import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Answer,
    Id,
    Member,
    Request,
    Unreadable,
    dumps,
    read_line,
    write_line,
)

_RESULT_MEMBERS = ("content", "structuredContent", "isError")


class Door:
    """A connection to a client.

    Args:
        info: name and version, as clients are told.
        instructions: what a model is told about the server as a whole.
        tools: lists the tools, as JSON; asked each time.
        changes: whether clients of the handshake are told that the list may change.

    Attributes:
        stateless: how the connection speaks; None before its first request.
        open: whether calls may be made: always in the stateless way, else after the handshake.
    """

    def __init__(
        self,
        *,
        info: Mapping[str, Any],
        instructions: str,
        tools: Callable[[], Sequence[Mapping[str, Any]]],
        changes: bool = False,
    ) -> None:
        self._info = info
        self._instructions = instructions
        self._tools = tools
        self._changes = changes
        self.stateless: bool | None = None
        self.open = False

    def take(self, line: bytes | None) -> bytes | Call | Cancelled | None:
        """A line of the client's: the answer to it, or the call or the cancellation that it is."""
        if line is None:
            return error_line(None, INVALID_REQUEST, "a line that is too long")
        if not line.strip():
            return None
        try:
            message = read_line(line)
            if isinstance(message, Answer):
                return None  # nothing was asked
            return self._notified(message) if message.identity is None else self._asked(message)
        except Unreadable as error:
            return error_line(error.identity, error.code, str(error), error.data)

    def answer(self, call: Call, result: Mapping[str, Any]) -> bytes:
        """The answer to a call with a result of our own."""
        return self._answered(call.identity, result)

    def relayed(self, call: Call, result: Mapping[str, Member]) -> bytes:
        """The answer to a call with a server's result, its members as they were written."""
        parts = [
            f'"{name}":{result[name].text}'
            for name in _RESULT_MEMBERS
            if name in result and (self.stateless or is_older(name, result[name].value))
        ]
        if self.stateless:
            parts.append(dumps(stamped({}, self._info))[1:-1])
        return write_line(
            {"jsonrpc": "2.0", "id": call.identity}, result="{" + ",".join(parts) + "}"
        )

    def refused(self, call: Call, code: int, message: str, data: Any = None) -> bytes:
        """The answer to a call with an error of the protocol."""
        return error_line(call.identity, code, message, data)

    def progress(self, call: Call, params: Mapping[str, Any]) -> bytes:
        """Word of how far a call is."""
        said = {
            name: value
            for name, kind in (("progress", float), ("total", float), ("message", str))
            if isinstance(value := shown_number(params.get(name)), kind)
        }
        told = {"progressToken": call.token, **said}
        return notification("notifications/progress", told)

    def changed(self) -> bytes:
        """Word that the list of tools is another one."""
        return notification("notifications/tools/list_changed", {})

    def _notified(self, message: Request) -> Cancelled | None:
        if message.method != "notifications/cancelled":
            return None
        identity = message.params.get("requestId")
        if not isinstance(identity, str | int) or isinstance(identity, bool):
            return None
        return Cancelled(identity=identity)

    def _asked(self, message: Request) -> bytes | Call:
        self._settle(message)
        identity = message.identity
        if identity is None:  # those are notifications
            raise Unreadable(INVALID_REQUEST, "no id")
        if message.method == "tools/call":
            return read_call(identity, message.params)
        if message.method == "tools/list":
            return self._answered(identity, self._listed(message))
        if message.method == "server/discover" and self.stateless:
            return self._answered(identity, self._discovered())
        if message.method == "initialize" and not self.stateless:
            return self._answered(identity, self._initialized(message))
        if message.method == "ping" and not self.stateless:
            return self._answered(identity, {})
        raise Unreadable(METHOD_NOT_FOUND, "no such method here", identity)

    def _settle(self, message: Request) -> None:
        """Hold the connection to the way of its first request."""
        meta = message.params.get("_meta")
        enveloped = isinstance(meta, dict) and VERSION_KEY in meta
        stateless = enveloped and message.method != "initialize"
        if self.stateless is None and (stateless or message.method != "ping"):
            self.stateless = stateless
        if self.stateless and message.method == "initialize":
            raise unsupported(message.params.get("protocolVersion"), message.identity)
        if self.stateless and not stateless:
            raise Unreadable(INVALID_PARAMS, "a request without its envelope", message.identity)
        if not self.stateless and stateless:
            raise Unreadable(
                INVALID_REQUEST, "this connection began with a handshake", message.identity
            )
        if isinstance(meta, dict) and stateless:
            check_envelope(meta, message.identity)
            self.open = True
        elif not self.open and message.method not in ("initialize", "ping"):
            # Whoever was refused may still begin with either way.
            self.stateless = None
            raise Unreadable(INVALID_REQUEST, "not initialized", message.identity)

    def _initialized(self, message: Request) -> dict[str, Any]:
        if self.open:
            raise Unreadable(INVALID_REQUEST, "initialized already", message.identity)
        wanted = message.params.get("protocolVersion")
        if not isinstance(wanted, str):
            self.stateless = None
            raise Unreadable(INVALID_PARAMS, "protocolVersion is no text", message.identity)
        self.open = True
        return {
            "protocolVersion": wanted if wanted in HANDSHAKE else HANDSHAKE[-1],
            "capabilities": {"tools": {"listChanged": True} if self._changes else {}},
            "serverInfo": dict(self._info),
            "instructions": self._instructions,
        }

    def _discovered(self) -> dict[str, Any]:
        return cacheable(
            {
                "supportedVersions": [STATELESS],
                "capabilities": {"tools": {}},
                "instructions": self._instructions,
            }
        )

    def _listed(self, message: Request) -> dict[str, Any]:
        if "cursor" in message.params:
            raise Unreadable(INVALID_PARAMS, "the list has one page", message.identity)
        listed = {"tools": list(self._tools())}
        return cacheable(listed) if self.stateless else listed

    def _answered(self, identity: Id, result: Mapping[str, Any]) -> bytes:
        whole = stamped(result, self._info) if self.stateless else result
        return write_line({"jsonrpc": "2.0", "id": identity, "result": whole})
