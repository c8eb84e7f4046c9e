"""Statements with `same` or `per` over listed parameters, written out for each of their values.

Normative text: docs/spec/language.md, section 7.  Cost: one statement for each combination of
values, of which there are at most MAX_EACH a statement and MAX_ALL in a grammar.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from tcc_compiler.language.diagnostics import Report
from tcc_compiler.language.spans import Region
from tcc_compiler.resolve.calls import Selection
from tcc_compiler.resolve.tools import Tool

MAX_EACH = 4096
MAX_ALL = 1 << 16


@dataclass(slots=True, kw_only=True)
class Room:
    """How many statements `same` and `per` may still be written out as."""

    left: int = MAX_ALL


def split_by(
    tool: Tool, selection: Selection, place: int, region: Region, room: Room, report: Report
) -> list[Selection]:
    """The pattern for each value of one parameter that it takes; none after an error."""
    values = _taken(tool, selection, place)
    if not _affordable(len(values), region, room, report):
        return []
    return [_narrowed(selection, place, (value,)) for value in values]


def split_same(
    tools: tuple[Tool, Tool],
    patterns: tuple[Selection, Selection],
    pairs: Sequence[tuple[int, int]],
    region: Region,
    room: Room,
    report: Report,
) -> Iterator[tuple[Selection, Selection]]:
    """Both patterns for each combination of values that the second takes; none after an error.

    The first pattern stands for no call where no call of it has these values.
    """
    first, second = tools
    places = sorted({place for _, place in pairs})
    taken = [_taken(second, patterns[1], place) for place in places]
    if not _affordable(prod(map(len, taken)), region, room, report):
        return
    for values in product(*taken):
        report.tick()
        chosen = dict(zip(places, values, strict=True))
        one, other = patterns
        for place, value in chosen.items():
            other = _narrowed(other, place, (value,))
        for place, of in pairs:
            text = second.parameters[of].values[chosen[of]]
            value = first.parameters[place].index.get(text, -1)
            kept = (value,) if value in _taken(first, one, place) else ()
            one = _narrowed(one, place, kept)
        yield one, other


def is_void(selection: Selection) -> bool:
    """Whether a pattern stands for no call."""
    return any(not values for _, values in selection.where)


def _taken(tool: Tool, selection: Selection, place: int) -> Sequence[int]:
    """The values of a parameter that a pattern takes."""
    return dict(selection.where).get(place, range(len(tool.parameters[place].values)))


def _narrowed(selection: Selection, place: int, values: tuple[int, ...]) -> Selection:
    where = dict(selection.where) | {place: values}
    return Selection(selection.tool, tuple(sorted(where.items())))


def _affordable(count: int, region: Region, room: Room, report: Report) -> bool:
    if count <= min(MAX_EACH, room.left):
        room.left -= count
        return True
    if count > MAX_EACH:
        message = f"this stands for {count} statements, one for each value; {MAX_EACH} are the most"
    else:
        message = f"with this, `same` and `per` stand for more than {MAX_ALL} statements in all"
    hint = "list fewer values, or let the parameters be open: then a gate holds the statement"
    report.error("TCC320", region, message, hint)
    return False
