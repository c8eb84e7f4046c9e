"""What passes the relay unread: requests about resources and prompts, and rounds of a call.

Nothing passes that the grammar does not name, that the server does not offer, or that cannot come
back on this connection; what clients are told of it is that and nothing else.  A request that
passes is no call: it has no record and waits for no turn.  Its answer goes on as the server wrote
it, but for what belongs to the connection (`_meta`, the kind of the result, hints for caches).

Since 2026-07-28 a server may answer a call with requests of its own (`input_required`); the client
makes the call again, with its answers and the state that it was given.  For the gate that is one
call: decided once, recorded once, under way until its last round, its cancellation or the deadline.
The client gets a state of the gate's own, which holds for one round of one call of one process: the
server's stays here.  What the server asks for has to be of a kind that the client announced with
the call; what it asks and what it is answered goes on unread.
Text: docs/mcp.md.  Cost: that of the messages; 64 requests may be under way, and a call has a state
of 1 MiB at most.
"""

from __future__ import annotations

import base64
import hmac
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from blake3 import blake3

from tcc_certs.values.canonical import MAX_DEPTH
from tcc_runtime.gate.arguments import plain
from tcc_runtime.mcp import wire
from tcc_runtime.mcp.calls import OpenCall, Round, is_kept
from tcc_runtime.mcp.door import ClientCall, ClientConnection, PassedRequest, busy_line, error_line
from tcc_runtime.mcp.upstream import Upstream
from tcc_runtime.mcp.upstream.lock import canonical_text

_MOST = 64
_FULL = 1 << 20
_FLAGS = {"resources": ("subscribe", "listChanged"), "prompts": ("listChanged",)}


def passes_of(
    passed: Iterable[str], offered: Mapping[str, Any], *, hears: bool
) -> Mapping[str, Mapping[str, Any]]:
    """The capabilities that pass.

    Args:
        passed: the words of the grammar.
        offered: the capabilities that the server tells of.
        hears: whether what the server says by itself arrives, and can go on to the client.
    """
    words = frozenset(passed)
    return {
        part: {flag: True for flag in flags if hears and told.get(flag) is True}
        for part, flags in _FLAGS.items()
        if part in words and isinstance(told := offered.get(part), dict)
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRequest:
    """A request that was passed on.

    Attributes:
        request: of the client.
        until: when its answer is not waited for any longer.
    """

    request: PassedRequest
    until: float


class PassedRequests:
    """The requests that were passed on and have no answer yet; bounded.

    Attributes:
        open: they, by our ids.
    """

    def __init__(self) -> None:
        self.open: dict[int, OpenRequest] = {}

    def send(
        self, request: PassedRequest, upstream: Upstream, taken: Iterable[wire.Id], until: float
    ) -> bytes | None:
        """Pass a request on; the error for the client where it is not.

        Args:
            taken: the ids under which the client waits for something.
        """
        identity = request.identity
        if identity in taken:
            return busy_line(identity, "a request has this id already")
        if len(self.open) >= _MOST or upstream.pipe.waiting > _FULL:
            return busy_line(identity, "too many requests wait; not passed on")
        if wire.is_deeper(request.params, MAX_DEPTH) or not is_kept(request.params):
            said = "not passed on: nested too deeply, or with a number that the server would lose"
            return error_line(identity, wire.INVALID_PARAMS, said)
        params: dict[str, Any] = plain(dict(request.params))
        if request.token is not None:
            params["_meta"] = {"progressToken": upstream.next_identity}
        number = upstream.request(request.method, params)
        # Its parameters are with the server, and need no memory here.
        self.open[number] = OpenRequest(request=replace(request, params={}), until=until)
        return None

    def of(self, number: object) -> PassedRequest | None:
        """The request that was passed on under this number."""
        found = self.open.get(number) if type(number) is int else None
        return None if found is None else found.request

    def take(self, number: object) -> PassedRequest | None:
        """The same; it has an answer now."""
        found = self.open.pop(number, None) if type(number) is int else None
        return None if found is None else found.request

    def drop(self, identity: wire.Id) -> int | None:
        """A request of this id is not wanted any longer: its number, where it was there."""
        for number, one in self.open.items():
            if one.request.identity == identity:
                del self.open[number]
                return number
        return None

    def due(self, now: float) -> tuple[tuple[int, PassedRequest], ...]:
        """Those that are not waited for any longer, by their numbers; they are dropped."""
        found = [(number, one.request) for number, one in self.open.items() if now >= one.until]
        for number, _ in found:
            del self.open[number]
        return tuple(found)


def answer_line(door: ClientConnection, request: PassedRequest, answer: wire.Response) -> bytes:
    """The server's answer, for the client."""
    identity, members = request.identity, answer.result
    if answer.error is not None:
        return error_line(identity, *answer.error)
    if members is None:
        said = "the server answered with a result that is no object"
        return error_line(identity, wire.INTERNAL_ERROR, said)
    if "resultType" in members and members["resultType"].value != "complete":
        said = "the server asks for more, and nothing may be asked here"
        return error_line(identity, wire.INTERNAL_ERROR, said)
    return door.passed(request, members)


# Rounds of a call.

_MOST_STATE = 1 << 20  # characters
_MOST_ASKED = 64
_MOST_KEY = 256
_CONTEXT = "tcc.session/1.1 rounds"
_KINDS = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}


class NotAsked(Exception):
    """What a server asks for, and may not; the message says why, in words of our own."""


class Rounds:
    """The rounds of the calls of one relay.

    Args:
        session: the id of its session.
    """

    def __init__(self, session: str) -> None:
        self._key = blake3(os.urandom(32), derive_key_context=_CONTEXT).digest()
        self._session = session.encode()

    def asked(self, opened: OpenCall, result: Mapping[str, wire.Member]) -> Round:
        """The round that a server's result asks for.

        Raises:
            NotAsked: it asks for nothing, for what the client did not announce, or for too much.
        """
        requests = result["inputRequests"].value if "inputRequests" in result else None
        requests = {} if requests is None else requests
        state = result["requestState"].value if "requestState" in result else None
        if not isinstance(requests, dict) or not (state is None or isinstance(state, str)):
            raise NotAsked("the server's request for input is malformed")
        if not requests and state is None:
            raise NotAsked("the server asks for more, and says not what")
        if state is not None and len(state) > _MOST_STATE:
            raise NotAsked("the server gives a state that is too long")
        if len(requests) > _MOST_ASKED or any(len(key) > _MOST_KEY for key in requests):
            raise NotAsked("the server asks for too much at once")
        announced = opened.call.inputs or {}
        for request in requests.values():
            if not _is_announced(request, announced):
                raise NotAsked("the server asks for what the client did not announce")
        number = opened.rounds + 1
        token = self._token(opened, number, state)
        return Round(keys=frozenset(requests), state=state, token=token)

    def _token(self, opened: OpenCall, number: int, state: str | None) -> str:
        """The state that the client gets: which round it is, and a MAC that this relay can make."""
        told = b"" if state is None else blake3(state.encode("utf-8", "surrogatepass")).digest()
        name = opened.identity.to_bytes(8, "big")
        place = opened.permit.seq.to_bytes(8, "big") + number.to_bytes(8, "big") + name
        mac = blake3(place + self._session + b"\0" + told, key=self._key).digest(16)
        return base64.urlsafe_b64encode(name + mac).decode("ascii")


def called_again(call: ClientCall, under_way: Mapping[int, OpenCall]) -> OpenCall | None:
    """The call under way that a client goes on with, by the state that it gives back.

    None where there is none: a state that was made up, used, of another session or too old.
    """
    token = (call.state or "").encode()
    try:
        number = int.from_bytes(base64.urlsafe_b64decode(token)[:8], "big")
    except ValueError:
        return None
    found = under_way.get(number)
    if found is None or found.asked is None:
        return None
    return found if hmac.compare_digest(found.asked.token.encode(), token) else None


def is_same(call: ClientCall, opened: OpenCall) -> bool:
    """Whether a client makes the very call again that is under way."""
    if call.tool != opened.call.tool:
        return False
    # In the shadow a call may be under way that is nested more deeply than any that is compared.
    if wire.is_deeper([call.arguments, opened.call.arguments], MAX_DEPTH + 1):
        return False
    return canonical_text(call.arguments) == canonical_text(opened.call.arguments)


def answers_of(call: ClientCall, asked: Round) -> Mapping[str, Any] | str:
    """The client's answers to the requests of this round; else why they are rejected."""
    answers = call.responses or {}
    if not answers.keys() <= asked.keys:
        return "inputResponses to what was not asked"
    if wire.is_deeper(answers, MAX_DEPTH) or not is_kept(answers):
        return "inputResponses nested too deeply, or with a number that the server would lose"
    return answers


def gone_on_with(opened: OpenCall, call: ClientCall, identity: int) -> OpenCall:
    """A call under way in its next round: asked for under other ids, and otherwise the same."""
    again = replace(call, arguments=opened.call.arguments, state=None, responses=None)
    return replace(opened, call=again, identity=identity, asked=None, rounds=opened.rounds + 1)


def _is_announced(request: object, announced: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether the client can answer a request of this kind, as it said with the call."""
    if not isinstance(request, dict) or not isinstance(request.get("params", {}), dict):
        return False
    kind = _KINDS.get(str(request.get("method")))
    parts = announced.get(kind or "")
    if parts is None:
        return False
    params = request.get("params", {})
    if kind == "elicitation":
        mode = params.get("mode", "form")
        return isinstance(mode, str) and (mode in parts or (mode == "form" and not parts))
    if kind == "sampling":
        tools = params.get("tools") is not None or params.get("toolChoice") is not None
        context = params.get("includeContext", "none") not in (None, "none")
        return ("tools" in parts or not tools) and ("context" in parts or not context)
    return True
