"""Bytes from a pipe to lines: bounded in memory, linear in the bytes, whatever is sent.

A message is one line.  A line that is too long is thrown away as it comes in and reported once; a
line that the end of the pipe cuts off is no line, so that half a message is never acted on.
"""

from __future__ import annotations

MAX_CLIENT_LINE = 4 << 20
MAX_SERVER_LINE = 16 << 20


class Lines:
    """Cuts a stream of bytes into lines.

    Args:
        most: bytes that a line may have.
    """

    __slots__ = ("_most", "_rest", "_seen", "_skipping")

    def __init__(self, most: int) -> None:
        self._most = most
        self._rest = bytearray()
        self._seen = 0  # of `_rest`, how much is known to hold no line feed
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes | None]:
        """The lines that `data` completes, without their ends; None for one that is too long."""
        found: list[bytes | None] = []
        self._rest += data
        start = 0
        while (end := self._rest.find(b"\n", max(start, self._seen))) >= 0:
            if self._skipping:
                self._skipping = False
            else:
                found.append(self._line(start, end))
            start = end + 1
        del self._rest[:start]
        if self._skipping or len(self._rest) > self._most:
            if not self._skipping:
                found.append(None)
            self._skipping = True
            self._rest.clear()
        self._seen = len(self._rest)
        return found

    def _line(self, start: int, end: int) -> bytes | None:
        if end - start > self._most:
            return None
        return bytes(self._rest[start:end]).removesuffix(b"\r")
