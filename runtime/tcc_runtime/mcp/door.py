"""The side that a client talks to: what it may say, in both ways of the protocol, and the answers.

An allow-list: `initialize`, `ping`, `server/discover`, `tools/list`, `tools/call` and two
notifications; anything else is not there.  The first request decides how the connection speaks.
Calls come out of here checked for their form alone; whether they may be made is asked elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tcc_runtime.mcp.wire import (
    CAPABILITIES_KEY,
    HANDSHAKE,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    STATELESS,
    UNSUPPORTED_VERSION,
    VERSION_KEY,
    Id,
    MalformedMessage,
    Member,
    Request,
    Response,
    cacheable,
    dumps,
    is_id,
    read_line,
    stamped,
    write_line,
)

_CALL_MEMBERS = frozenset(("name", "arguments", "_meta"))
_FAR = 10**15
_RESULT_MEMBERS = ("content", "structuredContent", "isError")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCall:
    """A call that a client asks for.

    Attributes:
        token: for progress, where the client wants to hear of it.
    """

    identity: Id
    tool: str
    arguments: Mapping[str, Any]
    token: Id | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Early:
    """A request that is answered when the server behind is known."""

    identity: Id


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """A client that no longer waits for an answer."""

    identity: Id


def read_call(identity: Id, params: Mapping[str, Any]) -> ClientCall:
    """The call that a request's parameters are.

    Raises:
        Unreadable: they are none, or more than one.
    """
    name, arguments = params.get("name"), params.get("arguments", {})
    for member in sorted(params):
        if member not in _CALL_MEMBERS:
            raise MalformedMessage(
                INVALID_PARAMS, "a call with more than name and arguments", identity
            )
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise MalformedMessage(INVALID_PARAMS, "a call has a name and arguments", identity)
    meta = params.get("_meta", {})
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    # Each word of progress has the token in it: it is as short as an id, or is none.
    return ClientCall(
        identity=identity, tool=name, arguments=arguments, token=token if is_id(token) else None
    )


def check_envelope(meta: Mapping[str, Any], identity: Id | None) -> None:
    """Hold the envelope of a stateless request to its form.

    Raises:
        Unreadable: it lacks something, or is of another version.
    """
    if not isinstance(meta[VERSION_KEY], str) or not isinstance(meta.get(CAPABILITIES_KEY), dict):
        raise MalformedMessage(INVALID_PARAMS, "_meta without version and capabilities", identity)
    if meta[VERSION_KEY] != STATELESS:
        raise unsupported(meta[VERSION_KEY], identity)


def unsupported(wanted: object, identity: Id | None) -> MalformedMessage:
    """What is wrong with a request of another version."""
    data = {"supported": [STATELESS], "requested": wanted if isinstance(wanted, str) else ""}
    return MalformedMessage(UNSUPPORTED_VERSION, f"{STATELESS} is spoken here", identity, data)


def is_older(name: str, value: object) -> bool:
    """Whether clients of the handshake know such a member: structured content was an object."""
    return name != "structuredContent" or isinstance(value, dict)


def shown_number(value: object) -> object:
    """A number as one of Python's own, None where it is far from all that is ever shown."""
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        return value
    return float(value) if -_FAR < value < _FAR else None


def notification(method: str, params: Mapping[str, Any]) -> bytes:
    """The line of a notification."""
    return write_line({"jsonrpc": "2.0", "method": method, "params": params})


def error_line(identity: Id | None, code: int, message: str, data: Any = None) -> bytes:
    """The line of an answer that is an error."""
    # JSON-RPC asks for an id of null where none could be read.
    if identity is None and code not in (PARSE_ERROR, INVALID_REQUEST):
        code = INVALID_REQUEST
    error: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return write_line({"jsonrpc": "2.0", "id": identity, "error": error})


class ClientConnection:
    """A connection to a client.

    Args:
        changes: whether clients of the handshake are told that the list may change.

    Attributes:
        info: name and version, as clients are told; None while the server behind is not known,
            and then every request but a ping is early.
        instructions: what a model is told about the server as a whole.
        tools: lists the tools, as JSON; asked each time.
        versions: that `server/discover` answers with.
        stateless: how the connection speaks; None before its first request.
        open: whether calls may be made: always in the stateless way, else after the handshake.
    """

    def __init__(
        self,
        *,
        instructions: str,
        changes: bool = False,
        info: Mapping[str, Any] | None = None,
        tools: Callable[[], Sequence[Mapping[str, Any]]] = tuple,
    ) -> None:
        self.info = info
        self.tools = tools
        self.instructions = instructions
        self.versions: Sequence[str] = (STATELESS,)
        self._changes = changes
        self.stateless: bool | None = None
        self.open = False

    def take(self, line: bytes | None) -> bytes | ClientCall | Cancelled | Early | None:
        """A line of the client's: the answer to it, or the call or the cancellation that it is."""
        if line is None:
            return error_line(None, INVALID_REQUEST, "a line that is too long")
        if not line.strip():
            return None
        try:
            message = read_line(line)
        except MalformedMessage as error:
            return error_line(error.identity, error.code, str(error), error.data)
        return self.take_message(message)

    def take_message(
        self, message: Request | Response
    ) -> bytes | ClientCall | Cancelled | Early | None:
        """A message of the client's, as :meth:`take` takes its line."""
        try:
            if isinstance(message, Response):
                return None  # nothing was asked
            if message.identity is None:
                return self._notified(message)
            if self.info is None and (message.method != "ping" or _is_enveloped(message)):
                return Early(identity=message.identity)
            return self._asked(message)
        except MalformedMessage as error:
            return error_line(error.identity, error.code, str(error), error.data)

    def answer(self, call: ClientCall, result: Mapping[str, Any]) -> bytes:
        """The answer to a call with a result of our own."""
        return self._answered(call.identity, result)

    def relayed(self, call: ClientCall, result: Mapping[str, Member]) -> bytes:
        """The answer to a call with a server's result, its members as they were written."""
        parts = [
            f'"{name}":{result[name].text}'
            for name in _RESULT_MEMBERS
            if name in result and (self.stateless or is_older(name, result[name].value))
        ]
        if self.stateless:
            parts.append(dumps(stamped({}, self._server))[1:-1])
        return write_line(
            {"jsonrpc": "2.0", "id": call.identity}, result="{" + ",".join(parts) + "}"
        )

    def refused(self, call: ClientCall, code: int, message: str, data: Any = None) -> bytes:
        """The answer to a call with an error of the protocol."""
        return error_line(call.identity, code, message, data)

    def progress(self, call: ClientCall, params: Mapping[str, Any]) -> bytes:
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

    @property
    def _server(self) -> Mapping[str, Any]:
        return {} if self.info is None else self.info

    def _notified(self, message: Request) -> Cancelled | None:
        if message.method != "notifications/cancelled":
            return None
        identity = message.params.get("requestId")
        return Cancelled(identity=identity) if is_id(identity) else None

    def _asked(self, message: Request) -> bytes | ClientCall:
        self._settle(message)
        identity = message.identity
        if identity is None:  # those are notifications
            raise MalformedMessage(INVALID_REQUEST, "no id")
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
        raise MalformedMessage(METHOD_NOT_FOUND, "no such method here", identity)

    def _settle(self, message: Request) -> None:
        """Hold the connection to the way of its first request."""
        meta = message.params.get("_meta")
        stateless = _is_enveloped(message) and message.method != "initialize"
        if self.stateless is None and (stateless or message.method != "ping"):
            self.stateless = stateless
        if self.stateless and message.method == "initialize":
            raise unsupported(message.params.get("protocolVersion"), message.identity)
        if self.stateless and not stateless:
            raise MalformedMessage(
                INVALID_PARAMS, "a request without its envelope", message.identity
            )
        if not self.stateless and stateless:
            raise MalformedMessage(
                INVALID_REQUEST, "this connection began with a handshake", message.identity
            )
        if isinstance(meta, dict) and stateless:
            try:
                check_envelope(meta, message.identity)
            except MalformedMessage:
                # Whoever was refused may still begin with either way.
                self.stateless = self.stateless if self.open else None
                raise
            self.open = True
        elif not self.open and message.method not in ("initialize", "ping"):
            self.stateless = None
            raise MalformedMessage(INVALID_REQUEST, "not initialized", message.identity)

    def _initialized(self, message: Request) -> dict[str, Any]:
        if self.open:
            raise MalformedMessage(INVALID_REQUEST, "initialized already", message.identity)
        wanted = message.params.get("protocolVersion")
        if not isinstance(wanted, str):
            self.stateless = None
            raise MalformedMessage(INVALID_PARAMS, "protocolVersion is no text", message.identity)
        self.open = True
        return {
            "protocolVersion": wanted if wanted in HANDSHAKE else HANDSHAKE[-1],
            "capabilities": {"tools": {"listChanged": True} if self._changes else {}},
            "serverInfo": dict(self._server),
            "instructions": self.instructions,
        }

    def _discovered(self) -> dict[str, Any]:
        return cacheable(
            {
                "supportedVersions": list(self.versions),
                "capabilities": {"tools": {}},
                "instructions": self.instructions,
            }
        )

    def _listed(self, message: Request) -> dict[str, Any]:
        if "cursor" in message.params:
            raise MalformedMessage(INVALID_PARAMS, "the list has one page", message.identity)
        listed = {"tools": list(self.tools())}
        return cacheable(listed) if self.stateless else listed

    def _answered(self, identity: Id, result: Mapping[str, Any]) -> bytes:
        whole = stamped(result, self._server) if self.stateless else result
        return write_line({"jsonrpc": "2.0", "id": identity, "result": whole})


def _is_enveloped(message: Request) -> bool:
    meta = message.params.get("_meta")
    return isinstance(meta, dict) and VERSION_KEY in meta
