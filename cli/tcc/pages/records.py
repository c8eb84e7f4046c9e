"""The table of a ledger's records: groups of rows that open; the middle of a long one is left out.

Memory: the rows that are shown.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
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


class Kept:
    """The first and the last records of a ledger, with the number of their lines."""

    def __init__(self) -> None:
        self._first: list[tuple[int, Record]] = []
        self._last: deque[tuple[int, Record]] = deque(maxlen=LAST)
        self.total = 0

    def add(self, record: Record) -> None:
        """The next record."""
        self.total += 1
        into = self._first if self.total <= FIRST else self._last
        into.append((self.total, dict(record)))

    @property
    def rows(self) -> list[tuple[int, Record]]:
        """What is kept, in order."""
        return [*self._first, *self._last]


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


def _parted(rows: list[tuple[int, Record]]) -> Iterator[list[tuple[int, Record]]]:
    """Groups of rows whose lines follow each other."""
    part: list[tuple[int, Record]] = []
    for row in rows:
        if part and (len(part) == _GROUP or row[0] != part[-1][0] + 1):
            yield part
            part = []
        part.append(row)
    if part:
        yield part


def _group(part: list[tuple[int, Record]]) -> Html:
    title = f"Lines {part[0][0]} to {part[-1][0]}" if len(part) > 1 else f"Line {part[0][0]}"
    return element("details", element("summary", title), *map(_row, part), class_="group")


def _row(row: tuple[int, Record]) -> Html:
    line, record = row
    kind = field(record, "kind")
    head = element(
        "summary",
        element("span", line, class_="line"),
        element("span", clip(kind, 40)),
        element("code", clip(_gist(kind, record), 160)),
    )
    members = list(record.items())
    pairs: list[Html] = []
    for name, value in members[:_MOST_MEMBERS]:
        pairs += [element("dt", clip(name, 60)), element("dd", clip(_shown(value), 400))]
    more = len(members) - _MOST_MEMBERS
    after = note(f"and {more} more fields") if more > 0 else ""
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
        [f"{name} {_shown(record[name])}" for name in told.get(kind, ()) if name in record]
    )


def _shown(value: Json) -> str:
    return value if isinstance(value, str) else encode(value).decode()


def kept_of(records: Iterable[Record]) -> Kept:
    """The first and the last of these records."""
    kept = Kept()
    for record in records:
        kept.add(record)
    return kept
