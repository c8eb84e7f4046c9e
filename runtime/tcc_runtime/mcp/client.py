"""The client's side of a connection: messages that clients may send, and answers; without I/O.

Both forms of the protocol are supported.  An allow-list has `initialize`, `ping`,
`server/discover`, `tools/list`, `tools/call`, cancellations, and resources and prompts if they
pass.  The first request decides the form of the connection.  This module checks only the form of
calls; :mod:`tcc_runtime.mcp.relay` asks the gate.

Resources and prompts are forwarded unread: no ledger records them, and they wait for no turn.  They
pass if the grammar names them, the server offers them, and their answers can come back on this
connection.
Text: docs/mcp.md.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from tcc_runtime.mcp import wire
from tcc_runtime.mcp.links import Link

_CALL_MEMBERS = frozenset(("name", "arguments", "_meta"))
_ROUND_MEMBERS = frozenset(("inputResponses", "requestState"))
_MAX_STATE = 1024
# The inputs that a server may ask a client for during a call, and the parts of each.
_INPUTS = {"elicitation": ("form", "url"), "roots": (), "sampling": ("context", "tools")}
_FAR = 10**15
_RESULT_MEMBERS = ("content", "structuredContent", "isError")
# Requests and notifications that may pass: their capability, and its flag.
_PASSED = {
    "resources/list": ("resources", ""),
    "resources/templates/list": ("resources", ""),
    "resources/read": ("resources", ""),
    "resources/subscribe": ("resources", "subscribe"),
    "resources/unsubscribe": ("resources", "subscribe"),
    "prompts/list": ("prompts", ""),
    "prompts/get": ("prompts", ""),
}
_FORWARDED = {
    "notifications/resources/list_changed": ("resources", "listChanged"),
    "notifications/resources/updated": ("resources", "subscribe"),
    "notifications/prompts/list_changed": ("prompts", "listChanged"),
}
_FLAGS = {"resources": ("subscribe", "listChanged"), "prompts": ("listChanged",)}
# Members of a result that belong to a connection, not to the request.
_OF_CONNECTION = frozenset(("_meta", "resultType", "ttlMs", "cacheScope"))
_NOT_CACHED = frozenset(("prompts/get", "resources/subscribe", "resources/unsubscribe"))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClientCall:
    """A call that a client requests.

    Attributes:
        client: the client, which gets the answer.
        token: the token for progress notifications; None: the client wants none.
        inputs: the kinds of input that the client can be asked for, with their parts; None: none.
        elicits: whether the client can show a form to its user.
        state: the state of the round that the client answers; None: a new call.
        responses: the client's answers in that round.
        size: the size of the request in bytes.
    """

    client: Client
    identity: wire.Id
    tool: str
    arguments: Mapping[str, Any]
    token: wire.Id | None = None
    inputs: Mapping[str, Mapping[str, Any]] | None = None
    elicits: bool = False
    state: str | None = None
    responses: Mapping[str, Any] | None = None
    size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PassedRequest:
    """A request that passes.  `params` is without `_meta`; for the rest see :class:`ClientCall`."""

    client: Client
    identity: wire.Id
    method: str
    params: Mapping[str, Any]
    token: wire.Id | None
    size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """A client no longer waits for the answer to a request."""

    identity: wire.Id


# The meaning of a client's message: an answer that the client gets, or work for the relay.
Taken: TypeAlias = wire.Response | ClientCall | PassedRequest | Cancelled | None


def passes_of(
    passed: Iterable[str], offered: Mapping[str, Any], *, hears: bool
) -> Mapping[str, Mapping[str, Any]]:
    """Return the capabilities that pass, with their flags.

    Args:
        passed: the capabilities that the grammar lets pass.
        offered: the capabilities of the server.
        hears: whether notifications of the server reach the client.
    """
    return {
        part: {flag: True for flag in flags if hears and told.get(flag) is True}
        for part, flags in _FLAGS.items()
        if part in passed and isinstance(told := offered.get(part), dict)
    }


class Client:
    """The client's side of a connection: its form of the protocol, and its answers.

    Args:
        link: the link to the client.
        changes: whether clients of the handshake learn that the list of tools may change.

    Attributes:
        info: name and version of the server, as clients see them; None: not known yet.
        instructions: text for a model about the server.
        tools: returns the list of tools.
        versions: the versions that `server/discover` lists.
        passes: the capabilities that pass, with their flags.
        rounds: whether a server may ask for input during a call.
        asks: whether the gate may ask for input before a call.
        elicits: whether a client of the handshake can show a form to its user.
        stateless: whether the form is that of 2026-07-28; None before the first request.
        open: whether calls may be made; with the handshake, only after it.
    """

    def __init__(
        self,
        link: Link,
        *,
        info: Mapping[str, Any] | None = None,
        instructions: str = "",
        tools: Callable[[], Sequence[Mapping[str, Any]]] = tuple,
        changes: bool = False,
    ) -> None:
        self.link = link
        self.info = info
        self.tools = tools
        self.instructions = instructions
        self.versions: Sequence[str] = (wire.STATELESS,)
        self.passes: Mapping[str, Mapping[str, Any]] = {}
        self.rounds = self.asks = self.elicits = False
        self._changes = changes
        self.stateless: bool | None = None
        self.open = False

    def is_early(self, message: wire.Message) -> bool:
        """Return whether a request has to wait until the server is known."""
        if self.info is not None or not isinstance(message, wire.Request):
            return False
        return message.identity is not None and (message.method != "ping" or _is_enveloped(message))

    def take(self, message: wire.Message) -> Taken:
        """Return the meaning of a client's message; None: no action is needed."""
        if isinstance(message, wire.Response):
            return None  # :meth:`tcc_runtime.mcp.relay.Relay.answered` takes it
        try:
            if message.identity is None:
                return _notified(message)
            return self._asked(message, message.identity)
        except wire.MalformedMessage as error:
            return wire.error(error.identity, error.code, str(error), error.data)

    # Answers.

    def answer(self, call: ClientCall, result: Mapping[str, Any]) -> None:
        """Answer a call with a result that the gate made."""
        self.link.send(self._answered(call.identity, result))

    def relay(self, call: ClientCall, result: Mapping[str, wire.Member]) -> None:
        """Answer a call with a server's result."""
        members = {
            name: result[name]
            for name in _RESULT_MEMBERS
            if name in result and (self.stateless or _is_older(name, result[name].value))
        }
        self.link.send(self._answered(call.identity, members))

    def ask(
        self, call: ClientCall | PassedRequest, result: Mapping[str, wire.Member], state: str
    ) -> None:
        """Ask the client for input before its request is answered.

        Args:
            result: the result of the server with its questions; empty if the client shall only
                repeat the call.
            state: the state that the client has to send back.
        """
        asked = wire.stamped({}, self._server)
        asked |= {"resultType": "input_required", "requestState": state}
        if "inputRequests" in result and result["inputRequests"].value is not None:
            asked["inputRequests"] = result["inputRequests"]
        self.link.send(wire.Response(identity=call.identity, result=asked))

    def elicit(self, params: Mapping[str, Any]) -> str:
        """Send a form for the user of a client of the handshake; return the id of the request."""
        identity = f"tcc-{os.urandom(16).hex()}"
        method = "elicitation/create"
        self.link.send(wire.Request(identity=identity, method=method, params=params))
        return identity

    def pass_back(self, request: PassedRequest, answer: wire.Response) -> None:
        """Answer a request that passed with the server's answer."""
        identity, members = request.identity, answer.result
        if answer.error is not None:
            self.link.send(wire.error(identity, *answer.error))
        elif members is None:
            said = "the server answered with a result that is no object"
            self.link.send(wire.error(identity, wire.INTERNAL_ERROR, said))
        elif "resultType" in members and members["resultType"].value != "complete":
            said = "the server asks for more, and nothing may be asked here"
            self.link.send(wire.error(identity, wire.INTERNAL_ERROR, said))
        else:
            result = {name: one for name, one in members.items() if name not in _OF_CONNECTION}
            if self.stateless and request.method not in _NOT_CACHED:
                # The server's cache hint is meant for the gate, not for other clients.
                result |= {"ttlMs": 0, "cacheScope": "private"}
            self.link.send(self._answered(identity, result))

    def refuse(
        self,
        request: ClientCall | PassedRequest,
        said: str,
        code: int = wire.INTERNAL_ERROR,
        data: Any = None,
    ) -> None:
        """Answer with an error of the protocol."""
        self.link.send(wire.error(request.identity, code, said, data))

    def put_off(self, request: ClientCall | PassedRequest, said: str) -> None:
        """Answer that the request was not carried out, and that the client may repeat it."""
        wire.log("a request is put off: its id repeats, or too much waits", wire.BUSY)
        self.link.send(wire.busy(request.identity, said))

    def progress(self, call: ClientCall | PassedRequest, params: Mapping[str, Any]) -> None:
        """Forward progress of a request, if the client wants it."""
        if call.token is None:
            return
        said = {
            name: value
            for name, kind in (("progress", float), ("total", float), ("message", str))
            if isinstance(value := _shown_number(params.get(name)), kind)
        }
        told = {"progressToken": call.token, **said}
        self.link.send(wire.Request(identity=None, method="notifications/progress", params=told))

    def notify_changed(self) -> None:
        """Notify a client of the handshake that the list of tools has changed."""
        if self.stateless is False:
            method = "notifications/tools/list_changed"
            self.link.send(wire.Request(identity=None, method=method, params={}))

    def forward(self, message: wire.Request) -> None:
        """Forward a notification of the server about resources or prompts, if it may pass."""
        method, params = message.method, message.params
        if self.stateless is not False or not self.open or method not in _FORWARDED:
            return
        updated, uri = method == "notifications/resources/updated", params.get("uri")
        if self._lets(*_FORWARDED[method]) and (isinstance(uri, str) or not updated):
            told = {"uri": uri} if updated else {}
            self.link.send(wire.Request(identity=None, method=method, params=told))

    @property
    def _server(self) -> Mapping[str, Any]:
        return self.info or {}

    def _answered(self, identity: wire.Id, result: Mapping[str, Any]) -> wire.Response:
        whole = wire.stamped(result, self._server) if self.stateless else result
        return wire.Response(identity=identity, result=whole)

    # Requests.

    def _asked(
        self, message: wire.Request, identity: wire.Id
    ) -> wire.Response | ClientCall | PassedRequest:
        self._agree(message)
        method, params = message.method, message.params
        if method == "tools/call":
            return self._call(message, identity)
        if method == "tools/list":
            if "cursor" in params:
                raise wire.MalformedMessage(wire.INVALID_PARAMS, "the list has one page", identity)
            listed = {"tools": list(self.tools())}
            return self._answered(identity, wire.cacheable(listed) if self.stateless else listed)
        if method == "server/discover" and self.stateless:
            found = {
                "supportedVersions": list(self.versions),
                "capabilities": self._capabilities({}),
                "instructions": self.instructions,
            }
            return self._answered(identity, wire.cacheable(found))
        if method == "initialize" and not self.stateless:
            return self._answered(identity, self._initialized(message))
        if method == "ping" and not self.stateless:
            return self._answered(identity, {})
        if self._lets(*_PASSED.get(method, ("", ""))):
            token = _token_of(params.get("_meta"))
            unread = {name: value for name, value in params.items() if name != "_meta"}
            return PassedRequest(
                client=self, identity=identity, method=method, params=unread, token=token,
                size=message.size,
            )  # fmt: skip
        raise wire.MalformedMessage(wire.METHOD_NOT_FOUND, "no such method here", identity)

    def _call(self, message: wire.Request, identity: wire.Id) -> ClientCall:
        """Return the call of `tools/call`.

        Raises:
            MalformedMessage: its form is wrong.
        """

        def wrong(said: str) -> wire.MalformedMessage:
            return wire.MalformedMessage(wire.INVALID_PARAMS, said, identity)

        params, rounds = message.params, self.rounds and bool(self.stateless)
        again = rounds or (self.asks and bool(self.stateless))
        known = _CALL_MEMBERS | _ROUND_MEMBERS if again else _CALL_MEMBERS
        if not params.keys() <= known:
            raise wrong("a call with more than name and arguments")
        name, arguments = params.get("name"), params.get("arguments", {})
        if not isinstance(name, str) or not isinstance(arguments, dict):
            raise wrong("a call has a name and arguments")
        state, responses = params.get("requestState"), params.get("inputResponses")
        whole = isinstance(state, str) and len(state) <= _MAX_STATE and state.isascii()
        if not (whole or (state is None and responses is None)):
            raise wrong("answers without the state of their round")
        if not (responses is None or isinstance(responses, dict)):
            raise wrong("inputResponses is no object")
        meta = params.get("_meta")
        elicits = shows_forms(_capabilities_of(meta)) if self.stateless else self.elicits
        return ClientCall(
            client=self, identity=identity, tool=name, arguments=arguments, token=_token_of(meta),
            inputs=_inputs_of(meta) if rounds else None,
            elicits=self.asks and elicits, state=state, responses=responses, size=message.size,
        )  # fmt: skip

    def _lets(self, part: str, flag: str) -> bool:
        """Return whether messages of a capability pass here, and those of its flag if one is
        given.
        """
        told = self.passes.get(part)
        return told is not None and (not flag or (not self.stateless and bool(told.get(flag))))

    def _capabilities(self, tools: Mapping[str, Any]) -> dict[str, Any]:
        flags = {part: {} if self.stateless else dict(told) for part, told in self.passes.items()}
        return {"tools": dict(tools), **flags}

    def _agree(self, message: wire.Request) -> None:
        """Set the form of the connection by its first request, and require it of later ones.

        Raises:
            MalformedMessage: the request has another form, or comes before the handshake.
        """
        identity, method = message.identity, message.method
        stateless = _is_enveloped(message) and method != "initialize"
        if self.stateless is None and (stateless or method != "ping"):
            self.stateless = stateless
        if self.stateless and method == "initialize":
            raise _unsupported(message.params.get("protocolVersion"), identity)
        if self.stateless and not stateless:
            said = "a request without its envelope"
            raise wire.MalformedMessage(wire.INVALID_PARAMS, said, identity)
        if not self.stateless and stateless:
            said = "this connection began with a handshake"
            raise wire.MalformedMessage(wire.INVALID_REQUEST, said, identity)
        if stateless:
            try:
                _check_envelope(message.params["_meta"], identity)
            except wire.MalformedMessage:
                # A client that was refused may still begin in either form.
                self.stateless = self.stateless if self.open else None
                raise
            self.open = True
        elif not self.open and method not in ("initialize", "ping"):
            self.stateless = None
            raise wire.MalformedMessage(wire.INVALID_REQUEST, "not initialized", identity)

    def _initialized(self, message: wire.Request) -> dict[str, Any]:
        if self.open:
            raise wire.MalformedMessage(
                wire.INVALID_REQUEST, "initialized already", message.identity
            )
        wanted = message.params.get("protocolVersion")
        if not isinstance(wanted, str):
            self.stateless = None
            said = "protocolVersion is no text"
            raise wire.MalformedMessage(wire.INVALID_PARAMS, said, message.identity)
        self.open = True
        self.elicits = shows_forms(message.params.get("capabilities"))
        return {
            "protocolVersion": wanted if wanted in wire.HANDSHAKE else wire.HANDSHAKE[-1],
            "capabilities": self._capabilities({"listChanged": True} if self._changes else {}),
            "serverInfo": dict(self._server),
            "instructions": self.instructions,
        }


def _notified(message: wire.Request) -> Cancelled | None:
    if message.method != "notifications/cancelled":
        return None
    identity = message.params.get("requestId")
    return Cancelled(identity=identity) if wire.is_id(identity) else None


def _inputs_of(meta: object) -> Mapping[str, Mapping[str, Any]]:
    """Return the kinds of input that a client can be asked for, limited to kinds that the gate
    knows.
    """
    told = _capabilities_of(meta)
    found: dict[str, Mapping[str, Any]] = {}
    for kind, parts in _INPUTS.items():
        said = told.get(kind) if isinstance(told, dict) else None
        if isinstance(said, dict):
            found[kind] = {part: {} for part in parts if isinstance(said.get(part), dict)}
    return found


def _capabilities_of(meta: object) -> object:
    return meta.get(wire.CAPABILITIES_KEY) if isinstance(meta, dict) else None


def shows_forms(capabilities: object) -> bool:
    """Return whether the capabilities of a client include forms for its user."""
    told = capabilities.get("elicitation") if isinstance(capabilities, dict) else None
    return isinstance(told, dict) and (not told or "form" in told)


def _token_of(meta: object) -> wire.Id | None:
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    # Each notification of progress repeats the token, so a long one is ignored.
    return token if wire.is_id(token) else None


def _check_envelope(meta: Mapping[str, Any], identity: wire.Id | None) -> None:
    version, capabilities = meta[wire.VERSION_KEY], meta.get(wire.CAPABILITIES_KEY)
    if not isinstance(version, str) or not isinstance(capabilities, dict):
        said = "_meta without version and capabilities"
        raise wire.MalformedMessage(wire.INVALID_PARAMS, said, identity)
    if version != wire.STATELESS:
        raise _unsupported(version, identity)


def _unsupported(wanted: object, identity: wire.Id | None) -> wire.MalformedMessage:
    data = {"supported": [wire.STATELESS], "requested": wanted if isinstance(wanted, str) else ""}
    said = f"{wire.STATELESS} is spoken here"
    return wire.MalformedMessage(wire.UNSUPPORTED_VERSION, said, identity, data)


def _is_older(name: str, value: object) -> bool:
    """Return whether clients of the handshake accept such a member: structured content must be an
    object.
    """
    return name != "structuredContent" or isinstance(value, dict)


def _shown_number(value: object) -> object:
    """Return a number as a float, or None if it is 10^15 or more; any other value as it is."""
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        return value
    return float(value) if -_FAR < value < _FAR else None


def _is_enveloped(message: wire.Request) -> bool:
    meta = message.params.get("_meta")
    return isinstance(meta, dict) and wire.VERSION_KEY in meta
