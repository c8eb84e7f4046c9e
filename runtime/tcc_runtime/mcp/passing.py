"""What passes the relay unread: requests about resources and prompts.

Nothing passes that the grammar does not name, that the server does not offer, or that cannot come
back on this connection; what clients are told of it is that and nothing else.  A request that
passes is no call: it has no record and waits for no turn.  Its answer goes on as the server wrote
it, but for what belongs to the connection (`_meta`, the kind of the result, hints for caches).
Text: docs/mcp.md.  Cost: that of the messages; 64 requests may be under way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tcc_certs.values.canonical import MAX_DEPTH
from tcc_runtime.gate.arguments import is_kept, plain
from tcc_runtime.mcp import wire
from tcc_runtime.mcp.door import ClientConnection, PassedRequest, busy_line, error_line
from tcc_runtime.mcp.upstream import Upstream

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
