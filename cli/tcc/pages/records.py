"""The table of a ledger's records: groups of rows that open; the middle of a long one is left out.

Memory: the rows that are shown.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from tcc import screen
from tcc.pages.blocks import left_out, note
from tcc.pages.frame import Section
from tcc.pages.markup import Html, element, joined
from tcc.pages.reading import field
from tcc_certs.errors import clip
from tcc_certs.formats.codec import Json, encode
from tcc_certs.formats.ledger import Record

FIRST: Final = 400
LAST: Final = 100
_GROUP: Final = 50
_MOST_MEMBERS: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A record as it is shown; each text has been cut.

    Attributes:
        gist: what of it tells most.
        members: names and values.
        more: how many further members there are.
    """

    line: int
    kind: str
    gist: str
    members: tuple[tuple[str, str], ...]
    more: int


class Kept:
    """The first and the last records of a ledger, as they are shown."""

    def __init__(self) -> None:
        self._first: list[Row] = []
        self._last: deque[Row] = deque(maxlen=LAST)
        self.total = 0

    def add(self, record: Record) -> None:
        """The next record."""
        self.total += 1
        into = self._first if self.total <= FIRST else self._last
        into.append(_shown_record(self.total, record))

    @property
    def rows(self) -> list[Row]:
        """What is kept, in order."""
        return [*self._first, *self._last]


def _shown_record(line: int, record: Record) -> Row:
    kind = field(record, "kind")
    members = islice(record.items(), _MOST_MEMBERS)
    return Row(
        line=line,
        kind=clip(kind, 40),
        gist=clip(_gist(kind, record), 160),
        members=tuple([(clip(name, 60), clip(_text(value), 400)) for name, value in members]),
        more=max(0, len(record) - _MOST_MEMBERS),
    )


def records_section(kept: Kept) -> Section:
    """The table."""
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


def _parted(rows: list[Row]) -> Iterator[list[Row]]:
    """Groups of rows whose lines follow each other."""
    part: list[Row] = []
    for row in rows:
        if part and (len(part) == _GROUP or row.line != part[-1].line + 1):
            yield part
            part = []
        part.append(row)
    if part:
        yield part


def _group(part: list[Row]) -> Html:
    title = f"Lines {part[0].line} to {part[-1].line}" if len(part) > 1 else f"Line {part[0].line}"
    return element("details", element("summary", title), *map(_row, part), class_="group")


def _row(row: Row) -> Html:
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
    """What of a record tells most."""
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


def kept_of(records: Iterable[Record]) -> Kept:
    """The first and the last of these records."""
    kept = Kept()
    for record in records:
        kept.add(record)
    return kept
