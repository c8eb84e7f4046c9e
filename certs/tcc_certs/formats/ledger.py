"""The ledger as lines of canonical JSON objects, chained by BLAKE3; and its fixed-point numbers.

Normative text: docs/spec/ledger.md, section 1.  The reader takes chunks that may be cut anywhere.
It yields one verified record after the other, and keeps only the current line.  So the verified
prefix of a truncated ledger is always known.  :mod:`tcc_certs.formats.ledger_schema` has the fields
of records.  Cost: one JSON parse, one JSON encoding and one hash for each line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from itertools import chain
from operator import itemgetter
from typing import TypeAlias

from blake3 import blake3

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import Json, blake, decode, divide_nearest, encode
from tcc_certs.limits import MAX_LINE_BYTES

Record: TypeAlias = "Mapping[str, Json]"

SCHEMA = "tcc.ledger/2"
LINK = "~"
_KIND = re.compile(rb'"kind":"([a-z]+)"')
FIRST_HEAD = bytes(32)
_LINK_FORM = b',"~":"%b"}'
_LINK_BYTES = len(_LINK_FORM % bytes(64))
_without_lf = itemgetter(slice(None, -1))
_PIECE = 1 << 16  # bytes that are split into lines together; a longer line is handled separately


def seal(record: Record | bytes, previous: bytes) -> tuple[bytes, bytes]:
    """Return the line of `record` with its LF, and the head for the next line.

    Args:
        record: the members of the line without ``~``, or their canonical bytes.
        previous: the head of the previous line; :data:`FIRST_HEAD` for the first line.
    """
    body = record if isinstance(record, bytes) else encode(record)
    head = blake(previous + body)
    link = _LINK_FORM % head.hex().encode()
    return b"%b%b\n" % (body[:-1], link if len(body) > 2 else link[1:]), head


class Line(Mapping[str, Json]):
    """A line with a verified chain, parsed at its first use.

    If the expected record is known, bytes can be compared instead: a line with the bytes of a
    record is canonical and has the same content.

    Attributes:
        body: the line without ``~``, which the chain hashes.
        previous: the hash of the previous line.
    """

    __slots__ = ("_line", "_number", "_reader", "_record", "body", "previous")

    def __init__(self, reader: LedgerReader, line: bytes, previous: bytes, body: bytes) -> None:
        self._reader = reader
        self._line = line
        self._number = reader.records
        self._record: Record | None = None
        self.body = body
        self.previous = previous

    @property
    def record(self) -> Record:
        """The record.

        Raises:
            Rejected: L101: the line is not canonical.  Then the reader's verified prefix ends
                before this line.
        """
        if self._record is None:
            try:
                self._record = parsed(self._line, self._number)
            except Rejected:
                self._reader.records = self._number - 1
                self._reader.head = self.previous
                raise
        return self._record

    @property
    def kind(self) -> str:
        """The value of the first ``kind`` in the line; in a valid line, the kind of its record."""
        match = _KIND.search(self.body)
        return "" if match is None else match[1].decode()

    def __getitem__(self, name: str) -> Json:
        return self.record[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.record)

    def __len__(self) -> int:
        return len(self.record)


class LedgerReader:
    """Iterates over the records of a ledger, and verifies each before it yields it.

    Attributes:
        records: the number of verified records so far.
        head: the chain's head after them.
        tail: the bytes after the last LF, once the input has ended.
    """

    __slots__ = ("_chunks", "_hasher", "head", "records", "tail")

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks
        self._hasher = blake3()
        self.records = 0
        self.head = FIRST_HEAD
        self.tail = b""

    def __iter__(self) -> Iterator[Record]:
        """Yield verified records without their ``~``.

        Raises:
            Rejected: L101 a line is not canonical JSON of an object.  L102 it does not follow from
                the previous line.  D201 it is too long.
        """
        for line in self.lines():
            yield line.record

    def lines(self) -> Iterator[Line]:
        """Yield verified lines; each record is parsed only at its first use.

        Raises:
            Rejected: L101, L102 and D201 as above.  L101 is raised here only for a line that breaks
                the chain, and for other lines at their first use.
        """
        for line in self.unverified():
            yield Line(self, line, self.head, self.body(line))

    def unverified(self) -> Iterator[bytes]:
        """Yield the lines without their LF; the caller verifies each line before it takes the next.

        Raises:
            Rejected: D201: a line is too long.
        """
        return split_lines(self._chunks, self)

    def verified(self, line: bytes) -> Line:
        """Return the line after checking it against the chain.

        Raises:
            Rejected: L101 and L102 as :meth:`lines`.
        """
        return Line(self, line, self.head, self.body(line))

    def body(self, line: bytes) -> bytes:
        """Check a line against the chain, and return its bytes without ``~``.

        Raises:
            Rejected: L101 and L102 as :meth:`lines`.
        """
        body = line[:-_LINK_BYTES] + b"}" if len(line) > _LINK_BYTES + 1 else b"{}"
        hasher = self._hasher
        hasher.reset()
        hasher.update(self.head + body)
        head = hasher.digest()
        link = _LINK_FORM % head.hex().encode()
        if not line.endswith(link) and line != b"{" + link[1:]:
            stated = parsed(line, self.records + 1, linked=True)[LINK]
            path = f"line {self.records + 1}: {LINK}"
            raise Rejected(Code.LEDGER_CHAIN, path, head.hex(), stated)
        self.head = head
        self.records += 1
        return body


def parsed(line: bytes, number: int, *, linked: bool = False) -> Record:
    """Return the record of a line, without ``~`` unless `linked`.

    Raises:
        Rejected: L101: the line is not canonical JSON of an object that ends with ``~``.
    """
    path = f"line {number}"
    ensure(not line.endswith(b"\r"), Code.LEDGER_LINE, path, "LF alone at its end", "CR LF")
    try:
        value = decode(line, path, ascii_keys=False)
    except Rejected as refusal:
        if refusal.code.declines:
            raise
        raise Rejected(Code.LEDGER_LINE, refusal.path, refusal.expected, refusal.found) from None
    if not isinstance(value, dict) or next(reversed(value), None) != LINK:
        raise Rejected(Code.LEDGER_LINE, path, f"an object that ends in {LINK}", line[:80])
    if not linked:
        value.pop(LINK)
    return value


def split_lines(chunks: Iterable[bytes], reader: LedgerReader) -> Iterator[bytes]:
    """Yield the lines of `chunks` without their LF; the rest after the last LF is ``reader.tail``.

    Raises:
        Rejected: D201: a line has more than MAX_LINE_BYTES.
    """
    return chain.from_iterable(_split(chunks, reader))


def _split(chunks: Iterable[bytes], reader: LedgerReader) -> Iterator[Iterable[bytes]]:
    """Yield groups of lines, one group for each piece with an LF."""
    begun: list[bytes] = []  # pieces of the current line
    size = number = 0  # the bytes of the current line, and the number of earlier lines
    for chunk in chunks:
        for start in range(0, len(chunk), _PIECE):
            piece = chunk[start : start + _PIECE]
            end = piece.rfind(b"\n") + 1
            _check_size(size + (piece.find(b"\n") + 1 or len(piece)), number)
            if end:
                begun.append(piece[:end])
                lines = BytesIO(b"".join(begun)).readlines()
                begun = []
                size = 0
                yield map(_without_lf, lines)
                number += len(lines)
            begun.append(piece[end:])
            size += len(piece) - end
    reader.tail = b"".join(begun)


def _check_size(size: int, before: int) -> None:
    ensure(
        size <= MAX_LINE_BYTES,
        Code.LIMIT,
        f"line {before + 1}",
        f"at most {MAX_LINE_BYTES} bytes",
        "more",
    )


# Numbers: Q64.64 with 20 digits, Q32.32 with 10.  A Q number is an integer; its value is that
# integer over 2^bits.  The text is the value rounded to nearest, ties to even.  It has enough
# digits that reading it back to nearest gives the same number.

Q64_MIN, Q64_MAX = -(1 << 127), (1 << 127) - 1
Q32_MIN, Q32_MAX = -(1 << 63), (1 << 63) - 1

# value * 10^20 / 2^64 is value * 5^20 / 2^44.
_FIVES, _DROP = 5**20, 44
_HALF, _FRACTION = 1 << _DROP - 1, (1 << _DROP) - 1


def format_q(value: int, bits: int, digits: int) -> str:
    """Return the decimal text of ``value / 2^bits`` with exactly `digits` fractional digits."""
    scaled = divide_nearest(abs(value) * 10**digits, 1 << bits)
    whole, part = divmod(scaled, 10**digits)
    return f"{'-' if value < 0 else ''}{whole}.{part:0{digits}d}"


def digits_q64(value: int) -> str:
    """Return :func:`format_q64` without its point, which is before the last 20 characters."""
    product = value * _FIVES + _HALF
    scaled = product >> _DROP
    if not product & _FRACTION:
        scaled &= -2  # a tie: round to even
    text = str(scaled)
    return text if len(text) > 21 else text.zfill(21 + (value < 0))


def format_q64(value: int) -> str:
    """Return the Q64.64 text with 20 fractional digits, like :func:`format_q` but faster."""
    text = digits_q64(value)
    return f"{text[:-20]}.{text[-20:]}"


def format_q32(value: int) -> str:
    """Return the Q32.32 text with 10 fractional digits."""
    return format_q(value, 32, 10)
