"""Lists of short texts, or of records of them, as columns: the answers that are long.

What a ledger has of such a list is written column by column, without its elements as values.  Every
result is that of :func:`tcc_certs.values.places.typed` and
:func:`tcc_certs.session.monitors.digested.members_of`, which validate (tests/gate compares them).
Text: docs/spec/session.md, section 2.  Cost: linear in the texts; a digest each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from msgspec import Struct

from tcc_certs.formats.codec import Json
from tcc_certs.session.monitors.digested import Form, Leaves, marks_of
from tcc_certs.values.fields import MOST_ELEMENTS, FieldType, ListType, RecordType
from tcc_certs.values.places import are_short, members_named


class Columns(Struct, frozen=True, gc=False):
    """A list of short texts, or of records of them, by the names of their fields.

    Attributes:
        size: how many elements there are.
        texts: of each field as many; of a list of texts its elements, of no name.
    """

    size: int
    texts: Mapping[str, Sequence[str]]


def columns_of(value: object, kind: ListType) -> Columns | None:
    """A value of a list's type, where it is such a list and `typed` takes it; else None."""
    if type(value) is not list or not kind.least <= len(value) <= min(kind.most, MOST_ELEMENTS):
        return None
    of, cells = kind.of, dict[str, list[Any]]({"": value})
    kinds: dict[str, FieldType | None] = {"": of}
    if isinstance(of, RecordType):
        if any(len(one.steps) != 1 or one.steps[0] == "*" for one in of.fields):
            return None
        cells = {one.name: members_named(value, one.steps[0]) for one in of.fields}
        kinds = {one.name: one.type for one in of.fields}
    if kind.distinct or not value or not cells:
        return None
    if not all(are_short(column, kinds[name]) for name, column in cells.items()):
        return None
    return Columns(size=len(value), texts=cells)


def column_members(form: Form, found: Columns, leaves: Leaves | None) -> dict[str, Json]:
    """What stands beside the digest of such a list: its elements, and marks of its texts.

    Args:
        form: of the list; its type may lack some of the columns.
        leaves: of the record; None: elements are left out.

    Raises:
        Rejected: R105 the record has more than 2^14 values in lists.
    """
    of = form.type.of if isinstance(form.type, ListType) else form.type
    names = [one.name for one in of.fields] if isinstance(of, RecordType) else [""]
    made: dict[str, Json] = {} if leaves is None else {"of": _elements(of, found, leaves)}
    if form.patterns:
        columns = [found.texts[name] for name in names]
        made["like"] = marks_of(form, list(chain.from_iterable(zip(*columns, strict=True))))
    return made


def _elements(of: FieldType, found: Columns, leaves: Leaves) -> list[Json]:
    leaves.take(found.size)
    if not isinstance(of, RecordType):
        return list(leaves.hashes(found.texts[""]))
    leaves.take(found.size * len(of.fields))
    rows: list[dict[str, Json]] = [{} for _ in range(found.size)]
    for one in of.fields:
        for row, text in zip(rows, leaves.hashes(found.texts[one.name]), strict=True):
            row[one.name] = text
    return list(rows)
