"""What a client may say, in both ways of the protocol, and the answers; over stdio and HTTP alike.

An allow-list: `initialize`, `ping`, `server/discover`, `tools/list`, `tools/call` and two
notifications; resources and prompts where they pass; anything else is not there.  The first
request decides how the connection speaks.  Calls come out of here checked for their form alone;
whether they may be made is asked elsewhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from tcc_runtime.mcp import wire
from tcc_runtime.mcp.upstream.pipes import MAX_CLIENT_LINE

_CALL_MEMBERS = frozenset(("name", "arguments", "_meta"))
_ROUND_MEMBERS = frozenset(("inputResponses", "requestState"))
_MOST_STATE = 1024
_MOST_WAITING = 256
_MOST_BYTES = 2 * MAX_CLIENT_LINE
# What a client can be asked for before a call is answered, and the parts of each.
_INPUTS = {"elicitation": ("form", "url"), "roots": (), "sampling": ("context", "tools")}
_FAR = 10**15
_RESULT_MEMBERS = ("content", "structuredContent", "isError")
# Requests and notifications that may pass: the capability that they are of, and its flag.
_PASSED = {
    "resources/list": ("resources", ""),
    "resources/templates/list": ("resources", ""),
    "resources/read": ("resources", ""),
    "resources/subscribe": ("resources", "subscribe"),
    "resources/unsubscribe": ("resources", "subscribe"),
    "prompts/list": ("prompts", ""),
    "prompts/get": ("prompts", ""),
}
_TOLD = {
    "notifications/resources/list_changed": ("resources", "listChanged"),
    "notifications/resources/updated": ("resources", "subscribe"),
    "notifications/prompts/list_changed": ("prompts", "listChanged"),
}
# What belongs to a connection and not to what was asked for.
_OF_CONNECTION = frozenset(("_meta", "resultType", "ttlMs", "cacheScope"))
_NOT_CACHED = frozenset(("prompts/get", "resources/subscribe", "resources/unsubscribe"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCall:
    """A call that a client asks for.

    Attributes:
        token: for progress, where the client wants to hear of it.
        inputs: what the client can be asked for in between, kinds with their parts; None: nothing
            may be asked.
        state: of the round that the client answers; None: it begins a call.
        responses: what it answers, by the keys of what it was asked.
    """

    identity: wire.Id
    tool: str
    arguments: Mapping[str, Any]
    token: wire.Id | None
    inputs: Mapping[str, Mapping[str, Any]] | None = None
    state: str | None = None
    responses: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedRequest:
    """A request that passes unread.

    Attributes:
        params: as the client has them, without `_meta`.
        token: as of :class:`ClientCall`.
    """

    identity: wire.Id
    method: str
    params: Mapping[str, Any]
    token: wire.Id | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Early:
    """A request that is answered when the server behind is known."""

    identity: wire.Id


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """A client that no longer waits for an answer."""

    identity: wire.Id


# What a line of a client is; bytes: it is answered already.
Taken: TypeAlias = "bytes | ClientCall | PassedRequest | Cancelled | Early | None"


def read_call(identity: wire.Id, params: Mapping[str, Any], *, rounds: bool = False) -> ClientCall:
    """The call that a request's parameters are.

    Args:
        rounds: whether it may have several, and may be one of them.

    Raises:
        Unreadable: they are none, or more than one.
    """
    name, arguments = params.get("name"), params.get("arguments", {})
    for member in sorted(params):
        if member not in _CALL_MEMBERS and not (rounds and member in _ROUND_MEMBERS):
            raise wire.MalformedMessage(
                wire.INVALID_PARAMS, "a call with more than name and arguments", identity
            )
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise wire.MalformedMessage(
            wire.INVALID_PARAMS, "a call has a name and arguments", identity
        )
    state, responses = params.get("requestState"), params.get("inputResponses")
    whole = isinstance(state, str) and len(state) <= _MOST_STATE and state.isascii()
    if not (whole or (state is None and responses is None)):
        raise wire.MalformedMessage(
            wire.INVALID_PARAMS, "answers without the state of their round", identity
        )
    if not (responses is None or isinstance(responses, dict)):
        raise wire.MalformedMessage(wire.INVALID_PARAMS, "inputResponses is no object", identity)
    meta = params.get("_meta")
    return ClientCall(
        identity=identity,
        tool=name,
        arguments=arguments,
        token=_token_of(meta),
        inputs=_inputs_of(meta) if rounds else None,
        state=state,
        responses=responses,
    )


def _inputs_of(meta: object) -> Mapping[str, Mapping[str, Any]]:
    """What a client says that it can be asked for, as far as that is known here."""
    told = meta.get(wire.CAPABILITIES_KEY) if isinstance(meta, dict) else None
    found: dict[str, Mapping[str, Any]] = {}
    for kind, parts in _INPUTS.items():
        said = told.get(kind) if isinstance(told, dict) else None
        if isinstance(said, dict):
            found[kind] = {part: {} for part in parts if isinstance(said.get(part), dict)}
    return found


def _token_of(meta: object) -> wire.Id | None:
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    # Each word of progress has the token in it: it is as short as an id, or is none.
    return token if wire.is_id(token) else None


def check_envelope(meta: Mapping[str, Any], identity: wire.Id | None) -> None:
    """Hold the envelope of a stateless request to its form.

    Raises:
        Unreadable: it lacks something, or is of another version.
    """
    if not isinstance(meta[wire.VERSION_KEY], str) or not isinstance(
        meta.get(wire.CAPABILITIES_KEY), dict
    ):
        raise wire.MalformedMessage(
            wire.INVALID_PARAMS, "_meta without version and capabilities", identity
        )
    if meta[wire.VERSION_KEY] != wire.STATELESS:
        raise unsupported(meta[wire.VERSION_KEY], identity)


def unsupported(wanted: object, identity: wire.Id | None) -> wire.MalformedMessage:
    """What is wrong with a request of another version."""
    data = {"supported": [wire.STATELESS], "requested": wanted if isinstance(wanted, str) else ""}
    return wire.MalformedMessage(
        wire.UNSUPPORTED_VERSION, f"{wire.STATELESS} is spoken here", identity, data
    )


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
    return wire.write_line({"jsonrpc": "2.0", "method": method, "params": params})


class BusyLine(bytes):
    """The line of an answer that is the gate's own: not taken now, and may be sent again.

    A server's error may have the same code, and its call may have happened.
    """


def busy_line(identity: wire.Id, message: str) -> BusyLine:
    """The answer to a request that is not taken now; nothing was done for it."""
    return BusyLine(error_line(identity, wire.BUSY, message))


def error_line(identity: wire.Id | None, code: int, message: str, data: Any = None) -> bytes:
    """The line of an answer that is an error."""
    # JSON-RPC asks for an id of null where none could be read.
    if identity is None and code not in (wire.PARSE_ERROR, wire.INVALID_REQUEST):
        code = wire.INVALID_REQUEST
    error: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return wire.write_line({"jsonrpc": "2.0", "id": identity, "error": error})


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
        passes: the capabilities that pass, with their flags: those of clients of the handshake.
        rounds: whether a server may ask for more before it answers a call.
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
        self.versions: Sequence[str] = (wire.STATELESS,)
        self.passes: Mapping[str, Mapping[str, Any]] = {}
        self.rounds = False
        self._changes = changes
        self.stateless: bool | None = None
        self.open = False

    def take(self, line: bytes | None) -> Taken:
        """A line of the client's: the answer to it, or the request or cancellation that it is."""
        if line is None:
            return error_line(None, wire.INVALID_REQUEST, "a line that is too long")
        if not line.strip():
            return None
        try:
            message = wire.read_line(line)
        except wire.MalformedMessage as error:
            return error_line(error.identity, error.code, str(error), error.data)
        return self.take_message(message)

    def take_message(self, message: wire.Request | wire.Response) -> Taken:
        """A message of the client's, as :meth:`take` takes its line."""
        try:
            if isinstance(message, wire.Response):
                return None  # nothing was asked
            if message.identity is None:
                return self._notified(message)
            if self.info is None and (message.method != "ping" or _is_enveloped(message)):
                return Early(identity=message.identity)
            return self._asked(message)
        except wire.MalformedMessage as error:
            return error_line(error.identity, error.code, str(error), error.data)

    def answer(self, call: ClientCall, result: Mapping[str, Any]) -> bytes:
        """The answer to a call with a result of our own."""
        return self._answered(call.identity, result)

    def relayed(self, call: ClientCall, result: Mapping[str, wire.Member]) -> bytes:
        """The answer to a call with a server's result, its members as they were written."""
        parts = [
            f'"{name}":{result[name].text}'
            for name in _RESULT_MEMBERS
            if name in result and (self.stateless or is_older(name, result[name].value))
        ]
        if self.stateless:
            parts.append(wire.dumps(wire.stamped({}, self._server))[1:-1])
        return wire.write_line(
            {"jsonrpc": "2.0", "id": call.identity}, result="{" + ",".join(parts) + "}"
        )

    def passed(self, request: PassedRequest, result: Mapping[str, wire.Member]) -> bytes:
        """The answer to a request that passed, its members as they were written."""
        names = [name for name in result if name not in _OF_CONNECTION]
        parts = [f"{wire.dumps(name)}:{result[name].text}" for name in names]
        if self.stateless:
            told = wire.stamped({}, self._server)
            if request.method not in _NOT_CACHED:
                # What a server lets a cache keep it lets it keep for us, and not for our clients.
                told |= {"ttlMs": 0, "cacheScope": "private"}
            parts.append(wire.dumps(told)[1:-1])
        return wire.write_line(
            {"jsonrpc": "2.0", "id": request.identity}, result="{" + ",".join(parts) + "}"
        )

    def forwarded(self, message: wire.Request) -> bytes | None:
        """What a server says by itself about what passes; None where it does not pass."""
        if self.stateless is not False or not self.open or message.method not in _TOLD:
            return None
        if not self._lets(*_TOLD[message.method]):
            return None
        uri = message.params.get("uri")
        if message.method != "notifications/resources/updated":
            return notification(message.method, {})
        return notification(message.method, {"uri": uri}) if isinstance(uri, str) else None

    def asks(
        self, call: ClientCall | PassedRequest, result: Mapping[str, wire.Member], state: str
    ) -> bytes:
        """Return the answer that asks the client for more before its request is answered.

        Args:
            result: of the server, with its requests; empty if the gate asks only to ask again.
            state: that the client has to give back.
        """
        told = {
            **wire.stamped({}, self._server),
            "resultType": "input_required",
            "requestState": state,
        }
        parts = [wire.dumps(told)[1:-1]]
        if "inputRequests" in result and result["inputRequests"].value is not None:
            parts.append(f'"inputRequests":{result["inputRequests"].text}')
        return wire.write_line(
            {"jsonrpc": "2.0", "id": call.identity}, result="{" + ",".join(parts) + "}"
        )

    def refused(self, call: ClientCall, code: int, message: str, data: Any = None) -> bytes:
        """The answer to a call with an error of the protocol."""
        return error_line(call.identity, code, message, data)

    def progress(self, call: ClientCall | PassedRequest, params: Mapping[str, Any]) -> bytes:
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

    def _notified(self, message: wire.Request) -> Cancelled | None:
        if message.method != "notifications/cancelled":
            return None
        identity = message.params.get("requestId")
        return Cancelled(identity=identity) if wire.is_id(identity) else None

    def _asked(self, message: wire.Request) -> bytes | ClientCall | PassedRequest:
        self._settle(message)
        identity = message.identity
        if identity is None:  # those are notifications
            raise wire.MalformedMessage(wire.INVALID_REQUEST, "no id")
        if message.method == "tools/call":
            rounds = self.rounds and bool(self.stateless)
            return read_call(identity, message.params, rounds=rounds)
        if message.method == "tools/list":
            return self._answered(identity, self._listed(message))
        if message.method == "server/discover" and self.stateless:
            return self._answered(identity, self._discovered())
        if message.method == "initialize" and not self.stateless:
            return self._answered(identity, self._initialized(message))
        if message.method == "ping" and not self.stateless:
            return self._answered(identity, {})
        if self._lets(*_PASSED.get(message.method, ("", ""))):
            meta = message.params.get("_meta")
            params = {name: value for name, value in message.params.items() if name != "_meta"}
            return PassedRequest(
                identity=identity, method=message.method, params=params, token=_token_of(meta)
            )
        raise wire.MalformedMessage(wire.METHOD_NOT_FOUND, "no such method here", identity)

    def _lets(self, part: str, flag: str) -> bool:
        """Whether what is of a capability, and of its flag, passes on this connection."""
        told = self.passes.get(part)
        return told is not None and (not flag or (not self.stateless and bool(told.get(flag))))

    def _capabilities(self, tools: Mapping[str, Any]) -> dict[str, Any]:
        """What may be asked for here, and nothing else."""
        flags = {part: {} if self.stateless else dict(told) for part, told in self.passes.items()}
        return {"tools": dict(tools), **flags}

    def _settle(self, message: wire.Request) -> None:
        """Hold the connection to the way of its first request."""
        meta = message.params.get("_meta")
        stateless = _is_enveloped(message) and message.method != "initialize"
        if self.stateless is None and (stateless or message.method != "ping"):
            self.stateless = stateless
        if self.stateless and message.method == "initialize":
            raise unsupported(message.params.get("protocolVersion"), message.identity)
        if self.stateless and not stateless:
            raise wire.MalformedMessage(
                wire.INVALID_PARAMS, "a request without its envelope", message.identity
            )
        if not self.stateless and stateless:
            raise wire.MalformedMessage(
                wire.INVALID_REQUEST, "this connection began with a handshake", message.identity
            )
        if isinstance(meta, dict) and stateless:
            try:
                check_envelope(meta, message.identity)
            except wire.MalformedMessage:
                # Whoever was refused may still begin with either way.
                self.stateless = self.stateless if self.open else None
                raise
            self.open = True
        elif not self.open and message.method not in ("initialize", "ping"):
            self.stateless = None
            raise wire.MalformedMessage(wire.INVALID_REQUEST, "not initialized", message.identity)

    def _initialized(self, message: wire.Request) -> dict[str, Any]:
        if self.open:
            raise wire.MalformedMessage(
                wire.INVALID_REQUEST, "initialized already", message.identity
            )
        wanted = message.params.get("protocolVersion")
        if not isinstance(wanted, str):
            self.stateless = None
            raise wire.MalformedMessage(
                wire.INVALID_PARAMS, "protocolVersion is no text", message.identity
            )
        self.open = True
        return {
            "protocolVersion": wanted if wanted in wire.HANDSHAKE else wire.HANDSHAKE[-1],
            "capabilities": self._capabilities({"listChanged": True} if self._changes else {}),
            "serverInfo": dict(self._server),
            "instructions": self.instructions,
        }

    def _discovered(self) -> dict[str, Any]:
        return wire.cacheable(
            {
                "supportedVersions": list(self.versions),
                "capabilities": self._capabilities({}),
                "instructions": self.instructions,
            }
        )

    def _listed(self, message: wire.Request) -> dict[str, Any]:
        if "cursor" in message.params:
            raise wire.MalformedMessage(
                wire.INVALID_PARAMS, "the list has one page", message.identity
            )
        listed = {"tools": list(self.tools())}
        return wire.cacheable(listed) if self.stateless else listed

    def _answered(self, identity: wire.Id, result: Mapping[str, Any]) -> bytes:
        whole = wire.stamped(result, self._server) if self.stateless else result
        return wire.write_line({"jsonrpc": "2.0", "id": identity, "result": whole})


class WaitingCalls:
    """The calls that wait for their turn, in their order; bounded."""

    def __init__(self) -> None:
        self._calls: deque[tuple[ClientCall, int]] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def identities(self) -> frozenset[wire.Id]:
        """The ids of all of them."""
        return frozenset([call.identity for call, _ in self._calls])

    def add(self, call: ClientCall, size: int, taken: Collection[wire.Id]) -> str | None:
        """Put a call at the end; the reason where it cannot stand there, and is not made.

        Args:
            size: bytes of the line that it came in.
            taken: ids that others have, too.
        """
        if call.identity in taken or call.identity in self.identities:
            return "a call has this id already"
        if len(self._calls) >= _MOST_WAITING or self._bytes + size > _MOST_BYTES:
            return "too many calls wait; not called"
        self._calls.append((call, size))
        self._bytes += size
        return None

    @property
    def first(self) -> ClientCall:
        """The one whose turn is next."""
        return self._calls[0][0]

    def take(self) -> ClientCall:
        """The first of them; it waits no longer."""
        call, size = self._calls.popleft()
        self._bytes -= size
        return call

    def drop(self, identity: wire.Id) -> bool:
        """Take one out; whether it was there."""
        for at, (call, size) in enumerate(self._calls):
            if call.identity == identity:
                del self._calls[at]
                self._bytes -= size
                return True
        return False

    def empty(self) -> tuple[ClientCall, ...]:
        """All of them; none waits any longer."""
        found = tuple([call for call, _ in self._calls])
        self._calls.clear()
        self._bytes = 0
        return found


def _is_enveloped(message: wire.Request) -> bool:
    meta = message.params.get("_meta")
    return isinstance(meta, dict) and wire.VERSION_KEY in meta
