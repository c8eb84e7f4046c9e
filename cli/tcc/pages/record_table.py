"""Validated records of a ledger, and their table on a page.

A validation reports the last hash of the chain that it read.  Reading the records again must reach
the same hash.  Otherwise the file changed in between, and no page is made.  Members of records are
untyped here: a missing member, or a member of another type, counts as empty.  The middle of a long
ledger is left out.
Cost: one JSON parse and one hash per line; memory for the records that are shown.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from tcc import screen
from tcc.pages import Html, Section, element, joined, left_out, note
from tcc_certs.errors import Rejected, clip
from tcc_certs.formats.codec import Json, encode
from tcc_certs.formats.ledger import FIRST_HEAD, LedgerReader, Record
from tcc_certs.limits import MAX_LINE_BYTES
from tcc_certs.verbs.validate import LedgerInput

# Reading.


class Changed(Exception):
    """A ledger changed between its validation and its second reading."""

    def __str__(self) -> str:
        return "the ledger was changed while it was read; run the command again"


def records(ledger: Path | bytes, head: str) -> Iterator[Record]:
    """Yield the records of a validated ledger, up to the record with the hash `head` (hex).

    Args:
        ledger: the file, or its bytes.

    Raises:
        Changed: the ledger has no record with that hash; raised after its last valid record.
        OSError: the file cannot be read.
    """
    if head == FIRST_HEAD.hex():
        return
    reader = LedgerReader((ledger,) if isinstance(ledger, bytes) else LedgerInput(ledger))
    try:
        for line in reader.lines():
            yield line.record
            if reader.head.hex() == head:
                return
    except Rejected:
        pass
    raise Changed


def lines_named(
    files: Sequence[Path], numbers: Sequence[int], most: int = 20
) -> list[tuple[int, str]]:
    """Return the numbers and texts of some lines of a ledger's files, clipped and unparsed.

    Args:
        numbers: line numbers, from 1 through all files; only the `most` smallest are used.
    """
    wanted = sorted({number for number in numbers if number > 0})[:most]
    found: list[tuple[int, str]] = []
    number = 0
    for path in files:
        with path.open("rb") as file:
            while number < max(wanted, default=0) and (line := file.readline(MAX_LINE_BYTES)):
                number += 1
                if number in wanted:
                    text = line[:2000].decode("utf-8", "backslashreplace").removesuffix("\n")
                    found.append((number, clip(text, 600)))
    return found


def field(record: Record, name: str) -> str:
    """Return a member of a record as text, or '' if it is missing or no text or integer."""
    value = record.get(name)
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def whole(record: Record, name: str) -> int | None:
    """Return a member of a record that is an integer, else None."""
    value = record.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def number(text: str) -> float | None:
    """Return a decimal text as a float for drawing, or None if it is no number below 1e300."""
    try:
        found = float(text)
    except ValueError:
        return None
    return found if abs(found) < 1e300 else None


FIRST: Final = 400
LAST: Final = 100
_GROUP: Final = 50
_MOST_MEMBERS: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRow:
    """A record as the table shows it; all texts are clipped.

    Attributes:
        line: the number of the record, from 1.
        kind: the kind of the record.
        gist: the most important members.
        members: names and values.
        more: the number of members that are left out.
    """

    line: int
    kind: str
    gist: str
    members: tuple[tuple[str, str], ...]
    more: int


class ShownRecords:
    """Keeps the first 400 and the last 100 records of a ledger."""

    def __init__(self) -> None:
        self._first: list[Record] = []
        self._last: deque[Record] = deque(maxlen=LAST)
        self.total = 0

    def add(self, record: Record) -> None:
        """Add the next record."""
        self.total += 1
        into = self._first if self.total <= FIRST else self._last
        into.append(record)

    @property
    def rows(self) -> list[RecordRow]:
        """The kept records in order, as the table shows them."""
        behind = self.total - len(self._last) + 1
        return [
            *[_shown_record(line, record) for line, record in enumerate(self._first, 1)],
            *[_shown_record(line, record) for line, record in enumerate(self._last, behind)],
        ]


def _shown_record(line: int, record: Record) -> RecordRow:
    kind = field(record, "kind")
    members = islice(record.items(), _MOST_MEMBERS)
    return RecordRow(
        line=line,
        kind=clip(kind, 40),
        gist=clip(_gist(kind, record), 160),
        members=tuple([(clip(name, 60), clip(_text(value), 400)) for name, value in members]),
        more=max(0, len(record) - _MOST_MEMBERS),
    )


def records_section(kept: ShownRecords) -> Section:
    """Return the section with the table of records."""
    rows = kept.rows
    groups = [_group(part) for part in _parted(rows)]
    body = joined(
        [
            element("div", *groups, data_rows=True),
            left_out(len(rows), kept.total, "records"),
            note(
                f"Of a longer ledger the first {FIRST} and the last {LAST} are shown."
                if kept.total > len(rows)
                else "All records of the ledger, in its order; a row opens on all of its fields."
            ),
        ]
    )
    return Section(
        name="records",
        title="Table of records",
        lead=f"{screen.big(kept.total)} lines, chained: each holds the digest of all before it.",
        body=body,
    )


def _parted(rows: list[RecordRow]) -> Iterator[list[RecordRow]]:
    """Yield groups of at most 50 rows with consecutive lines."""
    part: list[RecordRow] = []
    for row in rows:
        if part and (len(part) == _GROUP or row.line != part[-1].line + 1):
            yield part
            part = []
        part.append(row)
    if part:
        yield part


def _group(part: list[RecordRow]) -> Html:
    title = f"Lines {part[0].line} to {part[-1].line}" if len(part) > 1 else f"Line {part[0].line}"
    return element("details", element("summary", title), *map(_row, part), class_="group")


def _row(row: RecordRow) -> Html:
    head = element(
        "summary",
        element("span", row.line, class_="line"),
        element("span", row.kind),
        element("code", row.gist),
    )
    pairs: list[Html] = []
    for name, value in row.members:
        pairs += [element("dt", name), element("dd", value)]
    after = note(f"and {row.more} more fields") if row.more else ""
    return element("details", head, element("dl", *pairs), after, class_="row")


def _gist(kind: str, record: Record) -> str:
    """Return the most important members of a record as text."""
    told = {
        "open": ("mode", "claim_type"),
        "node": ("call", "key_raw"),
        "expand": ("winner",),
        "rest": ("step", "key_raw"),
        "draw": ("step", "winner"),
        "leaf": ("V",),
        "requeue": ("key_raw",),
        "budget": ("budget_event", "call", "model_id"),
        "refine": ("call", "cost_low", "cost_high"),
        "downgrade": ("mode", "claim_type"),
        "recovered": ("records", "dropped_bytes"),
        "close": ("stop", "claim_type"),
        "session": ("grammar", "grammar_version"),
        "call": ("seq", "call"),
        "outcome": ("seq", "outcome"),
        "resolve": ("seq", "outcome"),
        "refusal": ("code", "tool"),
        "end": ("abandoned",),
    }
    return " \u00b7 ".join(
        [f"{name} {_text(record[name])}" for name in told.get(kind, ()) if name in record]
    )


def _text(value: Json) -> str:
    return value if isinstance(value, str) else encode(value).decode()
