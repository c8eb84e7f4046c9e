"""`same` and `per`: which parameters are meant, and the statements that they are written out as.

Normative text: docs/spec/language.md, section 7.  Over listed parameters there is one statement for
each combination of values, at most MAX_EACH a statement and MAX_ALL in a grammar, where each pair
of a `same` counts.  Cost: linear in these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from tcc_certs.values.declared import FlagType, NumberType, OpenType, TextType
from tcc_compiler.frozen import frozen
from tcc_compiler.language.ast import Pair, Word
from tcc_compiler.language.diagnostics import Report, quote, some, suggest
from tcc_compiler.language.source import Region
from tcc_compiler.resolve.calls import ResolvedSelection
from tcc_compiler.resolve.tools import ResolvedTool


@frozen
class Side:
    """A parameter that `same`, `per` or `sum` names.

    Attributes:
        place: its number among the listed and observed ones; None for an open one.
        type: of an open one; else None.
    """

    name: str
    place: int | None
    type: OpenType | None
    optional: bool
    observed: bool


@frozen
class Same:
    """The pairs of a statement, each of two listed parameters or of two open ones.

    Attributes:
        listed: places of listed parameters.
        names: of all pairs, strictly increasing.
        opened: whether some pair is of open parameters, so that no automaton can hold it.
    """

    listed: tuple[tuple[int, int], ...]
    names: tuple[tuple[str, str], ...]
    opened: bool


def side_of(tool: ResolvedTool, name: Word, report: Report) -> Side | None:
    """The parameter of a tool with a name; None where there is none, which is reported."""
    place = tool.places.get(name.text)
    opened = tool.opened.get(name.text)
    if place is not None:
        listed = tool.parameters[place]
        return Side(
            name=name.text,
            place=place,
            type=None,
            optional=listed.optional,
            observed=listed.observed,
        )
    if opened is not None:
        return Side(
            name=name.text, place=None, type=opened.type, optional=opened.optional, observed=False
        )
    known = [*tool.places, *tool.opened]
    message = f"tool {quote(tool.name)} has no parameter {quote(name.text)}"
    hint = suggest(name.text, known) or (f"it has {some(known)}" if known else "it has none")
    report.error("TCC204", name.region, message, hint)
    return None


def present(side: Side, name: Word, report: Report) -> bool:
    """Whether every call has a value of this parameter; else reported."""
    if side.optional:
        message = f"{quote(side.name)} may be left out, and then there is no value to look at"
        hint = "take the `?` away from its declaration"
        report.error("TCC319", name.region, message, hint)
    return not side.optional


def same_of(
    pairs: Sequence[Pair], first: ResolvedTool, second: ResolvedTool, report: Report
) -> Same | None:
    """The pairs of a statement about calls of two tools, None after an error."""
    seen: set[tuple[str, str]] = set()
    sides: list[tuple[Side, Side]] = []
    sound = True
    for pair in pairs:
        report.tick()
        names = (pair.first.text, pair.second.text)
        if names in seen:
            message = f"the pair of {quote(names[0])} and {quote(names[1])} is given twice"
            report.error("TCC211", pair.second.region, message, "take one of them away")
            sound = False
        seen.add(names)
        found = _pair(pair, first, second, report)
        if found is None:
            sound = False
        else:
            sides.append(found)
    opened = any(one.place is None for one, _ in sides)
    sound = sound and (not opened or _unobserved(pairs, sides, report))
    if not sound:
        return None
    return Same(
        listed=tuple(
            (one.place, other.place)
            for one, other in sides
            if one.place is not None and other.place is not None
        ),
        names=tuple(sorted(seen)),
        opened=opened,
    )


def _pair(
    pair: Pair, first: ResolvedTool, second: ResolvedTool, report: Report
) -> tuple[Side, Side] | None:
    one = side_of(first, pair.first, report)
    other = side_of(second, pair.second, report)
    if one is None or other is None:
        return None
    both = present(one, pair.first, report) & present(other, pair.second, report)
    if not both or not _comparable(pair, one, other, report):
        return None
    return one, other


def _comparable(pair: Pair, one: Side, other: Side, report: Report) -> bool:
    message = hint = None
    if (one.type is None) != (other.type is None):
        named = (one, other) if one.type is None else (other, one)
        message = f"{quote(named[0].name)} is listed, and {quote(named[1].name)} is open"
        hint = "list the values of both, or let both be open"
    elif _kind(one.type) != _kind(other.type):
        message = f"{quote(one.name)} and {quote(other.name)} are of types that are never the same"
        hint = "give both one type: text, a number or flag"
    if message is not None:
        report.error("TCC219", pair.second.region, message, hint)
    return message is None


def _kind(kind: OpenType | None) -> str:
    match kind:
        case TextType():
            return "text"
        case NumberType():
            return "number"
        case FlagType():
            return "flag"
        case _:
            return "listed"


def _unobserved(pairs: Sequence[Pair], sides: Sequence[tuple[Side, Side]], report: Report) -> bool:
    """Whether a monitor compares what its calls ask for, and no answers; else reported."""
    sound = True
    for pair, both in zip(pairs, sides, strict=True):
        for name, side in zip((pair.first, pair.second), both, strict=True):
            if side.observed:
                message = f"{quote(name.text)} is observed, and a gate compares what was asked for"
                hint = "bind the answer in the first pattern, or let it be asked for"
                report.error("TCC220", name.region, message, hint)
                sound = False
    return sound


def report_observed(name: Word, report: Report) -> None:
    """A monitor has to know a value before the call, and this one comes after it."""
    report.error(
        "TCC220",
        name.region,
        f"{quote(name.text)} is observed: when a gate decides on the call, it is not known yet",
        "with open parameters the pattern before `before` alone may name what was observed",
    )


# Statements over listed parameters, written out for each of their values.

MAX_EACH = 4096
MAX_ALL = 1 << 16


@dataclass(slots=True, kw_only=True)
class Room:
    """How many statements `same` and `per` may still be written out as."""

    left: int = MAX_ALL


def split_by(
    tool: ResolvedTool,
    selection: ResolvedSelection,
    place: int,
    region: Region,
    room: Room,
    report: Report,
) -> list[ResolvedSelection]:
    """The pattern for each value of one parameter that it takes; none after an error."""
    values = _taken(tool, selection, place)
    if not _affordable(len(values), region, room, report):
        return []
    where = dict(selection.where)
    return [_selection(selection.tool, where | {place: (value,)}) for value in values]


def split_same(
    tools: tuple[ResolvedTool, ResolvedTool],
    patterns: tuple[ResolvedSelection, ResolvedSelection],
    pairs: Sequence[tuple[int, int]],
    region: Region,
    room: Room,
    report: Report,
) -> Iterator[tuple[ResolvedSelection, ResolvedSelection]]:
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
    tools: tuple[ResolvedTool, ResolvedTool],
    pattern: ResolvedSelection,
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


def _selection(tool: str, where: Mapping[int, tuple[int, ...]]) -> ResolvedSelection:
    return ResolvedSelection(tool, tuple(sorted(where.items())))


def _taken(tool: ResolvedTool, selection: ResolvedSelection, place: int) -> Sequence[int]:
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
