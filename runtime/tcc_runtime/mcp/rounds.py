"""Several rounds of one call: what a server asks of the client before it answers, where it passes.

Since 2026-07-28 a server may answer a call with requests of its own (`input_required`); the client
makes the call again, with its answers and the state that it was given.  For the gate that is one
call: decided once, recorded once, under way until its last round, its cancellation or the deadline.
The client gets a state of the gate's own, which holds for one round of one call of one process: the
server's stays here.  What the server asks for has to be of a kind that the client announced with
the call; what it asks and what it is answered goes on unread.
Text: docs/mcp.md.  Cost: that of the messages; a state of 1 MiB at most for each call under way.
"""

from __future__ import annotations

import base64
import hmac
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from blake3 import blake3

from tcc_certs.values.canonical import MAX_DEPTH
from tcc_runtime.mcp.calls import OpenCall, Round, is_kept
from tcc_runtime.mcp.door import ClientCall
from tcc_runtime.mcp.upstream import canonical_text
from tcc_runtime.mcp.wire import Member, is_deeper

_MOST_STATE = 1 << 20  # characters
_MOST_REQUESTS = 64
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

    def asked(self, opened: OpenCall, result: Mapping[str, Member]) -> Round:
        """The round that a server's result asks for.

        Raises:
            NotAsked: it asks for nothing, for what the client did not announce, or for too much.
        """
        requests = result["inputRequests"].value if "inputRequests" in result else None
        requests = {} if requests is None else requests
        state = result["requestState"].value if "requestState" in result else None
        if not isinstance(requests, dict) or not (state is None or isinstance(state, str)):
            raise NotAsked("the server asks for more in a form that is none")
        if not requests and state is None:
            raise NotAsked("the server asks for more, and says not what")
        if state is not None and len(state) > _MOST_STATE:
            raise NotAsked("the server gives a state that is too long")
        if len(requests) > _MOST_REQUESTS or any(len(key) > _MOST_KEY for key in requests):
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
    if call.tool != opened.call.tool or is_deeper(call.arguments, MAX_DEPTH):
        return False
    return canonical_text(call.arguments) == canonical_text(opened.call.arguments)


def answers_of(call: ClientCall, asked: Round) -> Mapping[str, Any] | str:
    """What the client answers to what was asked; else why that is none."""
    answers = call.responses or {}
    if not answers.keys() <= asked.keys:
        return "inputResponses to what was not asked"
    if is_deeper(answers, MAX_DEPTH) or not is_kept(answers):
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
