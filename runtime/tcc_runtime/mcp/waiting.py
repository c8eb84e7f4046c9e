"""The calls of a client that wait for their turn, in their order; bounded."""

from __future__ import annotations

from collections import deque

from tcc_runtime.mcp.lines import MAX_CLIENT_LINE
from tcc_runtime.mcp.messages import Call
from tcc_runtime.mcp.wire import Id

_MOST = 256
_MOST_BYTES = 2 * MAX_CLIENT_LINE


class Waiting:
    """A queue of calls."""

    def __init__(self) -> None:
        self._calls: deque[tuple[Call, int]] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, call: Call, size: int, under_way: Call | None) -> str | None:
        """Put a call at the end; the reason where it cannot stand there, and is not made.

        Args:
            size: bytes of the line that it came in.
        """
        known = {waiting.identity for waiting, _ in self._calls}
        if under_way is not None:
            known.add(under_way.identity)
        if call.identity in known:
            return "a call has this id already"
        if len(self._calls) >= _MOST or self._bytes + size > _MOST_BYTES:
            return "too many calls wait; not called"
        self._calls.append((call, size))
        self._bytes += size
        return None

    def take(self) -> Call:
        """The first of them."""
        call, size = self._calls.popleft()
        self._bytes -= size
        return call

    def drop(self, identity: Id) -> bool:
        """Take one out; whether it was there."""
        for item in self._calls:
            if item[0].identity == identity:
                self._calls.remove(item)
                self._bytes -= item[1]
                return True
        return False

    def empty(self) -> tuple[Call, ...]:
        """All of them; none waits any longer."""
        found = tuple([call for call, _ in self._calls])
        self._calls.clear()
        self._bytes = 0
        return found
