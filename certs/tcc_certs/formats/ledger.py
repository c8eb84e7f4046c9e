"""The ledger as lines: one canonical JSON object each, chained by BLAKE3; its fixed-point numbers.

Normative text: docs/spec/ledger.md, section 1.  The reader takes chunks cut anywhere, hands out
one verified record after the other, and keeps no line but the current one; so the verified prefix
of a ledger that was cut at any byte is known.  What a record may say is for
:mod:`tcc_certs.formats.ledger_schema`.
Cost: one JSON parse, one JSON write and one hash a line.
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
_PIECE = 1 << 16  # what is split into lines at one time; more than that is a long line


def seal(record: Record | bytes, previous: bytes) -> tuple[bytes, bytes]:
    """The line of `record`, with its LF, and the head that the next line follows from.

    Args:
        record: the members of the line without ``~``, or their canonical bytes.
        previous: head of the line before; :data:`FIRST_HEAD` at the first.
    """
    body = record if isinstance(record, bytes) else encode(record)
    head = blake(previous + body)
    link = _LINK_FORM % head.hex().encode()
    return b"%b%b\n" % (body[:-1], link if len(body) > 2 else link[1:]), head


class Line(Mapping[str, Json]):
    """A line whose chain holds, parsed when it is looked into.

    Whoever knows the expected record compares bytes: a line that has the bytes of a record is
    canonical, and says what the record says.

    Attributes:
        body: what stands in the chain, the line without ``~``; previous: the hash before it.
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
            Rejected: L101 the line is not canonical; then the reader's prefix ends before it,
                however often it is asked for.
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
        """What the first ``kind`` in the line says: the record's own, if the line is one at all."""
        match = _KIND.search(self.body)
        return "" if match is None else match[1].decode()

    def __getitem__(self, name: str) -> Json:
        return self.record[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.record)

    def __len__(self) -> int:
        return len(self.record)


class LedgerReader:
    """Iterates over the records of a ledger, each verified before it is handed out.

    Attributes:
        records: how many records have been verified so far.
        head: the chain's head after them.
        tail: bytes after the last LF, once the input is at its end.
    """

    __slots__ = ("_chunks", "_hasher", "head", "records", "tail")

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks
        self._hasher = blake3()
        self.records = 0
        self.head = FIRST_HEAD
        self.tail = b""

    def __iter__(self) -> Iterator[Record]:
        """Verified records without their ``~``.

        Raises:
            Rejected: L101 a line that is not canonical JSON of an object, L102 one that does not
                follow from the line before, D201 one that is too long.
        """
        for line in self.lines():
            yield line.record

    def lines(self) -> Iterator[Line]:
        """The same, each record parsed only when it is looked into.

        Raises:
            Rejected: L101, L102 and D201 as above, but L101 only of a line that breaks the chain;
                of another one when it is looked into.
        """
        for line in self.unverified():
            yield Line(self, line, self.head, self.body(line))

    def unverified(self) -> Iterator[bytes]:
        """The lines without their LF; whoever takes one verifies it before he takes the next.

        Raises:
            Rejected: D201 as above.
        """
        return split_lines(self._chunks, self)

    def verified(self, line: bytes) -> Line:
        """The line, held against the chain.

        Raises:
            Rejected: L101 and L102 as :meth:`lines`.
        """
        return Line(self, line, self.head, self.body(line))

    def body(self, line: bytes) -> bytes:
        """What stands in the chain of the line, which is held against it.

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
    """The record of a line, without ``~`` unless that is asked for.

    Raises:
        Rejected: L101 it is not canonical JSON of an object that ends in ``~``.
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
    """The lines of `chunks` without their LF; what follows the last LF becomes ``reader.tail``.

    Raises:
        Rejected: D201 a line of more than MAX_LINE_BYTES.
    """
    return chain.from_iterable(_split(chunks, reader))


def _split(chunks: Iterable[bytes], reader: LedgerReader) -> Iterator[Iterable[bytes]]:
    """The same, as many lines at a time as end in one piece."""
    begun: list[bytes] = []  # pieces of the current line
    size = number = 0  # its bytes, and how many lines were before it
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


# Numbers: Q64.64 with 20 digits, Q32.32 with 10. A Q number is an integer; its value is that
# integer over 2^bits. The text is the value rounded to nearest, ties to even, at enough digits that
# reading it back to nearest is the identity.

Q64_MIN, Q64_MAX = -(1 << 127), (1 << 127) - 1
Q32_MIN, Q32_MAX = -(1 << 63), (1 << 63) - 1

# value * 10^20 / 2^64 is value * 5^20 / 2^44.
_FIVES, _DROP = 5**20, 44
_HALF, _FRACTION = 1 << _DROP - 1, (1 << _DROP) - 1


def format_q(value: int, bits: int, digits: int) -> str:
    """The decimal text of ``value / 2^bits`` with exactly `digits` fractional digits."""
    scaled = divide_nearest(abs(value) * 10**digits, 1 << bits)
    whole, part = divmod(scaled, 10**digits)
    return f"{'-' if value < 0 else ''}{whole}.{part:0{digits}d}"


def digits_q64(value: int) -> str:
    """:func:`format_q64` without its point, which stands before the last 20 of these."""
    product = value * _FIVES + _HALF
    scaled = product >> _DROP
    if not product & _FRACTION:
        scaled &= -2  # a tie, and it goes to the even one
    text = str(scaled)
    return text if len(text) > 21 else text.zfill(21 + (value < 0))


def format_q64(value: int) -> str:
    """Q64.64 text, 20 fractional digits: :func:`format_q` with shifts for its divisions."""
    text = digits_q64(value)
    return f"{text[:-20]}.{text[-20:]}"


def format_q32(value: int) -> str:
    """Q32.32 text, 10 fractional digits."""
    return format_q(value, 32, 10)
