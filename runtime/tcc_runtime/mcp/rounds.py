"""Rounds of a call: requests of a server to the client before it answers the call.

Since 2026-07-28 a server may answer a call with requests (`input_required`).  The client then makes
the call again, with its answers and the state from that answer.  The gate keeps the server's state,
and gives the client a different state, which is valid for one round of one call in one process.
The client must have announced the kinds of the requests with the call.  The gate does not read the
requests and answers themselves.
Text: docs/mcp.md.  Cost: that of the messages; a call has a state of at most 1 MiB.
"""

from __future__ import annotations

import base64
import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from blake3 import blake3

from tcc_certs.values.canonical import MAX_DEPTH
from tcc_runtime.gate.arguments import is_kept
from tcc_runtime.mcp import wire
from tcc_runtime.mcp.client import ClientCall
from tcc_runtime.mcp.lock import canonical_text

Announced: TypeAlias = Mapping[str, Mapping[str, Any]]  # the kinds of requests, with their parts

_MOST_STATE = 1 << 20  # characters
_MOST_ASKED = 64
_MOST_KEY = 256
_CONTEXT = "tcc.session/1.1 rounds"
_KINDS = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The requests of a server in one round.

    Attributes:
        keys: the keys of the requests.
        state: the state that the server sent.
        token: the state that the gate gave the client.
    """

    keys: frozenset[str]
    state: str | None
    token: str

    def has_token(self, state: str) -> bool:
        """Return whether a state from a client is the one that the gate gave it."""
        return hmac.compare_digest(self.token.encode(), state.encode())


class NotAsked(Exception):
    """The gate does not forward a round.  The message is the reason, without text of the server."""


class Rounds:
    """The rounds of the calls of one relay.

    Args:
        session: the id of its session.
    """

    def __init__(self, session: str) -> None:
        self._key = blake3(os.urandom(32), derive_key_context=_CONTEXT).digest()
        self._session = session.encode()

    def asked(
        self, result: Mapping[str, wire.Member], announced: Announced, place: tuple[int, int, int]
    ) -> Round:
        """Return the round that a server's result asks for.

        Args:
            announced: the kinds of requests that the client can answer.
            place: id of the request to the server, number of the call, number of the round.

        Raises:
            NotAsked: the round is empty, too large, or of a kind that was not announced.
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
        for request in requests.values():
            if not _is_announced(request, announced):
                raise NotAsked("the server asks for what the client did not announce")
        token = self._token(place, state)
        return Round(keys=frozenset(requests), state=state, token=token)

    def _token(self, place: tuple[int, int, int], state: str | None) -> str:
        """Return the state for the client: the id of the request, and a MAC that only this relay
        can make.
        """
        told = b"" if state is None else blake3(state.encode("utf-8", "surrogatepass")).digest()
        name, seq, number = [part.to_bytes(8, "big") for part in place]
        mac = blake3(seq + number + name + self._session + b"\0" + told, key=self._key).digest(16)
        return base64.urlsafe_b64encode(name + mac).decode("ascii")


def identity_in(state: str) -> int | None:
    """Return the id of the request to the server that a state names, or None.

    The state may be forged: :meth:`Round.has_token` checks it.
    """
    try:
        return int.from_bytes(base64.urlsafe_b64decode(state)[:8], "big")
    except ValueError:
        return None


def is_same(call: ClientCall, before: ClientCall) -> bool:
    """Return whether a client repeats the same call."""
    if call.tool != before.tool:
        return False
    # In shadow mode a call under way may be nested more deeply than comparisons allow.
    if wire.is_deeper([call.arguments, before.arguments], MAX_DEPTH + 1):
        return False
    return canonical_text(call.arguments) == canonical_text(before.arguments)


def answers_of(call: ClientCall, asked: Round) -> Mapping[str, Any] | str:
    """Return the client's answers to the requests of a round, or the reason why they are
    rejected.
    """
    answers = call.responses or {}
    if not answers.keys() <= asked.keys:
        return "inputResponses to what was not asked"
    if wire.is_deeper(answers, MAX_DEPTH) or not is_kept(answers):
        return "inputResponses nested too deeply, or with a number that the server would lose"
    return answers


def _is_announced(request: object, announced: Announced) -> bool:
    """Return whether the client announced with the call that it can answer such a request."""
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
