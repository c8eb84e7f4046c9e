"""The calls of a client that wait for their turn, in their order; bounded."""

from __future__ import annotations

from collections import deque

from tcc_runtime.mcp.messages import Call
from tcc_runtime.mcp.wire import Id

_MOST = 256


class Waiting:
    """A queue of calls."""

    def __init__(self) -> None:
        self._calls: deque[Call] = deque()

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, call: Call, under_way: Call | None) -> str | None:
        """Put a call at the end; the reason where it cannot stand there, and is not made."""
        known = {waiting.identity for waiting in self._calls}
        if under_way is not None:
            known.add(under_way.identity)
        if call.identity in known:
            return "a call has this id already"
        if len(self._calls) >= _MOST:
            return "too many calls wait; not called"
        self._calls.append(call)
        return None

    def take(self) -> Call:
        """The first of them."""
        return self._calls.popleft()

    def drop(self, identity: Id) -> bool:
        """Take one out; whether it was there."""
        for call in self._calls:
            if call.identity == identity:
                self._calls.remove(call)
                return True
        return False

    def empty(self) -> tuple[Call, ...]:
        """All of them; none waits any longer."""
        found = tuple(self._calls)
        self._calls.clear()
        return found
