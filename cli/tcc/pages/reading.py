"""Records of a ledger as they were validated: none is handed on that the verdict was not about.

A validation says where the chain of what it read ends.  What is read here again has to end there,
or the file changed in between, and no page is made of it.  Values are still taken as they come:
what a record lacks, or has in another type, reads as nothing.
Cost: one JSON parse and one hash a line; no line is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tcc_certs.errors import Rejected, clip
from tcc_certs.formats.ledger import FIRST_HEAD, LedgerReader, Record
from tcc_certs.limits import MAX_LINE_BYTES
from tcc_certs.verbs.validate import LedgerFile


class Changed(Exception):
    """A file is not the one that was validated a moment before."""


def records(ledger: Path, head: str) -> Iterator[Record]:
    """The records of the verified prefix that ends with `head`, hex.

    Raises:
        Changed: the file has no such prefix any more; raised at the end.
        OSError: it cannot be read.
    """
    if head == FIRST_HEAD.hex():
        return
    reader = LedgerReader(LedgerFile(ledger))
    try:
        for record in reader:
            yield record
            if reader.head.hex() == head:
                return
    except Rejected:
        pass
    raise Changed(f"{ledger} was changed while it was read; run the command again")


def lines_named(ledger: Path, numbers: Sequence[int], most: int = 20) -> list[tuple[int, str]]:
    """Some lines as they stand, clipped; whatever they are.

    Args:
        numbers: of lines, from 1; the first `most` different ones count.
    """
    wanted = sorted({number for number in numbers if number > 0})[:most]
    found: list[tuple[int, str]] = []
    with ledger.open("rb") as file:
        for number in range(1, max(wanted, default=0) + 1):
            line = file.readline(MAX_LINE_BYTES)
            if not line:
                break
            if number in wanted:
                text = line[:2000].decode("utf-8", "backslashreplace").removesuffix("\n")
                found.append((number, clip(text, 600)))
    return found


def field(record: Record, name: str) -> str:
    """A member of a record as text; the empty text where it has none."""
    value = record.get(name)
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def whole(record: Record, name: str) -> int | None:
    """A member that is an integer; None where it is none."""
    value = record.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def number(text: str) -> float | None:
    """A decimal text as a place on a picture; None where it is none."""
    try:
        found = float(text)
    except ValueError:
        return None
    return found if abs(found) < 1e300 else None
