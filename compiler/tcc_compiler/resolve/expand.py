"""Statements with `same` or `per` over listed parameters, written out for each of their values.

Normative text: docs/spec/language.md, section 7.  Cost: one statement for each combination of
values, of which there are at most MAX_EACH a statement and MAX_ALL in a grammar, where each pair of
a `same` counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
    where = dict(selection.where)
    return [_selection(selection.tool, where | {place: (value,)}) for value in values]


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
    places = sorted({place for _, place in pairs})
    taken = [_taken(tools[1], patterns[1], place) for place in places]
    count = prod(map(len, taken))
    if not _affordable(count, region, room, report, each=len(pairs)):
        return
    for values in product(*taken):
        report.tick(len(pairs))
        chosen = dict(zip(places, values, strict=True))
        other = dict(patterns[1].where) | {place: (value,) for place, value in chosen.items()}
        one = _agreeing(tools, patterns[0], pairs, chosen)
        yield _selection(patterns[0].tool, one), _selection(patterns[1].tool, other)


def _agreeing(
    tools: tuple[Tool, Tool],
    pattern: Selection,
    pairs: Sequence[tuple[int, int]],
    chosen: Mapping[int, int],
) -> dict[int, tuple[int, ...]]:
    """What the first pattern has to take, where the second takes the chosen values."""
    first, second = tools
    where = dict(pattern.where)
    for place, of in pairs:
        text = second.parameters[of].values[chosen[of]]
        value = first.parameters[place].index.get(text)
        kept = value is not None and (place not in where or value in where[place])
        where[place] = (value,) if kept and value is not None else ()
    return where


def _selection(tool: str, where: Mapping[int, tuple[int, ...]]) -> Selection:
    return Selection(tool, tuple(sorted(where.items())))


def _taken(tool: Tool, selection: Selection, place: int) -> Sequence[int]:
    """The values of a parameter that a pattern takes."""
    return dict(selection.where).get(place, range(len(tool.parameters[place].values)))


def _affordable(count: int, region: Region, room: Room, report: Report, each: int = 1) -> bool:
    """Whether there is room for `count` statements, of `each` pairs; else reported."""
    if count <= MAX_EACH and count * each <= room.left:
        room.left -= count * each
        return True
    if count > MAX_EACH:
        message = f"this stands for {count} statements, one for each value; {MAX_EACH} are the most"
    else:
        message = f"with this, `same` and `per` stand for more than {MAX_ALL} statements in all"
    hint = "list fewer values, or let the parameters be open: then a gate holds the statement"
    report.error("TCC320", region, message, hint)
    return False
