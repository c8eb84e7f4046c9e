"""The ledger as lines: one canonical JSON object each, chained by BLAKE3.

Normative text: docs/spec/ledger.md, section 1.  The reader takes chunks cut anywhere, hands out
one verified record after the other, and keeps no line but the one in hand; so the verified prefix
of a ledger that was cut at any byte is known.  What a record may say is for
:mod:`tcc_certs.ledger_schema`.
Cost: one JSON parse, one JSON write and one hash a line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from tcc_certs.codec import Json, decode, encode
from tcc_certs.digest import blake
from tcc_certs.errors import Code, Rejected, ensure, require
from tcc_certs.limits import MAX_LINE_BYTES

Record: TypeAlias = "Mapping[str, Json]"

LINK = "~"
FIRST_HEAD = bytes(32)
_LINK_BYTES = len(b',"~":"') + 64 + len(b'"}')


def seal(record: Record, previous: bytes) -> tuple[bytes, bytes]:
    """The line of `record`, with its LF, and the head that the next line follows from.

    Args:
        record: the members of the line without ``~``.
        previous: head of the line before; :data:`FIRST_HEAD` at the first.
    """
    body = encode(record)
    head = blake(previous + body)
    comma = b"," if len(body) > 2 else b""
    return b'%s%s"%s":"%s"}\n' % (body[:-1], comma, LINK.encode(), head.hex().encode()), head


class LedgerReader:
    """Iterates over the records of a ledger, each verified before it is handed out.

    Attributes:
        records: how many records have been verified so far.
        head: the chain's head after them.
        tail: bytes after the last LF, once the input is at its end.
    """

    __slots__ = ("_chunks", "head", "records", "tail")

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks
        self.records = 0
        self.head = FIRST_HEAD
        self.tail = b""

    def __iter__(self) -> Iterator[Record]:
        """Verified records without their ``~``.

        Raises:
            Rejected: L101 a line that is not canonical JSON of an object, L102 one that does not
                follow from the line before, D201 one that is too long.
        """
        for line in split_lines(self._chunks, self):
            record = self._verify(line)
            self.records += 1
            yield record

    def _verify(self, line: bytes) -> Record:
        path = f"line {self.records + 1}"
        ensure(not line.endswith(b"\r"), Code.LEDGER_LINE, path, "LF alone at its end", "CR LF")
        try:
            value = decode(line, path)
        except Rejected as refusal:
            if refusal.code.declines:
                raise
            raise Rejected(
                Code.LEDGER_LINE, refusal.path, refusal.expected, refusal.found
            ) from None
        if not isinstance(value, dict) or next(reversed(value), None) != LINK:
            raise Rejected(Code.LEDGER_LINE, path, f"an object that ends in {LINK}", line[:80])
        found = value.pop(LINK)
        # The line is canonical, so its last member is what seal() writes, if it is 64 hex digits.
        body = line[:-_LINK_BYTES] + b"}" if value else b"{}"
        due = blake(self.head + body)
        require(due.hex(), found, Code.LEDGER_CHAIN, f"{path}: {LINK}")
        self.head = due
        return value


def split_lines(chunks: Iterable[bytes], reader: LedgerReader) -> Iterator[bytes]:
    """The lines of `chunks` without their LF; what follows the last LF becomes ``reader.tail``.

    Raises:
        Rejected: D201 a line of more than MAX_LINE_BYTES.
    """
    pieces: list[bytes] = []  # of the line in hand
    size = 0
    for chunk in chunks:
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            _check_size(size + end + 1 - start, reader)
            pieces.append(chunk[start:end])
            yield b"".join(pieces)
            pieces, size, start = [], 0, end + 1
        if start < len(chunk):
            pieces.append(chunk[start:])
            size += len(chunk) - start
            _check_size(size, reader)
    reader.tail = b"".join(pieces)


def _check_size(size: int, reader: LedgerReader) -> None:
    ensure(
        size <= MAX_LINE_BYTES,
        Code.LIMIT,
        f"line {reader.records + 1}",
        f"at most {MAX_LINE_BYTES} bytes",
        "more",
    )
