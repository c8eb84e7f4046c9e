"""Fields of version 1.2 in exact questions: which are covered, and the JSON that they stand in.

A field whose values are compared is a text, a number, a flag, or listed.  One of another type may
be there where no statement names it, and both sides have it alike.  An argument at a place stands
in a whole JSON value, which holds nothing but such arguments.
Normative text: docs/spec/proof.md, section 1.  Cost: linear in the core.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from tcc_certs.core.model import Core, Parameter, Tool
from tcc_certs.core.opened import field_of
from tcc_certs.errors import Rejected
from tcc_certs.values import places
from tcc_certs.values.declared import PLAIN, FlagType, JsonType, NumberType, OpenParameter, TextType
from tcc_certs.values.fields import DateType, Field, ListType, RecordType, TimeType
from tcc_certs.values.members import declared_in, is_declared

Declared: TypeAlias = "Parameter | OpenParameter"
_SCALARS = (TextType, NumberType, FlagType)
_MOST_BYTES = 12  # of a character in canonical JSON
_MOST_NUMBER = 1200  # bytes of a number there
_MOST_SOME = 22  # bytes there of a flag, and of what some_value gives
ANY = "*"  # the listed value that stands for all that are not listed


class Uncovered(Exception):
    """What exact questions do not cover, and why."""


def is_scalar(kind: object) -> bool:
    """Whether values of a type can be compared."""
    return isinstance(kind, _SCALARS)


def is_of(kind: Any, value: object) -> bool:
    """Whether a JSON value is one of a type."""
    try:
        places.typed(value, kind)
    except (places.Missing, places.Wrong, Rejected):
        return False
    return True


# What is covered.


def ensure_covered(core: Core) -> None:
    """The fields of a core are those that exact questions know.

    Raises:
        Uncovered: they are not.
    """
    for tool in core.tools:
        if tool.parallel:
            raise Uncovered(f"calls of {tool.name} under way beside others")
        arguments = arguments_of(tool)
        whole = {one.name for one in tool.opened if isinstance(one.type, JsonType)}
        for one in arguments:
            if one.at is not None and (len(one.at) < 2 or one.at[0] not in whole):
                raise Uncovered(f"{tool.name}.{one.name} at a place of no JSON value")
        _ensure_apart(tool, [one.at for one in arguments if one.at is not None])
        answers = answers_of(tool)
        _ensure_apart(tool, [(one.name,) if one.at is None else one.at for one in answers])
    for given in core.given:
        if given.at is not None:
            raise Uncovered(f"the attribute {given.name} at a place")


def _ensure_apart(tool: Tool, places: Iterable[tuple[str, ...]]) -> None:
    """No field stands in another one, or in each element of something."""
    order = sorted(places)
    for number, one in enumerate(order):
        after = order[number + 1 : number + 2]
        if not one or "*" in one or (after and after[0][: len(one)] == one):
            raise Uncovered(f"fields of {tool.name} that stand in one another")


def ensure_alike(mine: Tool, theirs: Tool, compared: Collection[str]) -> None:
    """A tool has the same answers and the same fields of version 1.2 on both sides.

    Types of those fields that are compared may differ.

    Args:
        compared: names of fields whose values are compared.  One that may be null, and that the
            other side has not, is refused there when it is null, and not when it is left out.

    Raises:
        Uncovered: it has not.
    """
    listed = [{one.name for one in tool.parameters if one.observed} for tool in (mine, theirs)]
    if listed[0] != listed[1]:
        raise Uncovered(f"{mine.name} gives other answers on the two sides")
    if {one.name: one for one in mine.answers} != {one.name: one for one in theirs.answers}:
        raise Uncovered(f"{mine.name} gives other answers on the two sides")
    if mine.error_text != theirs.error_text:
        raise Uncovered(f"{mine.name} has other errors on the two sides")
    ours, others = _by_name(mine), _by_name(theirs)
    placed = any(one.at is not None for one in [*ours.values(), *others.values()])
    if placed and ours.keys() != others.keys():
        raise Uncovered(f"{mine.name} has other fields at places on the two sides")
    for of in mine.opened:
        if of.null and of.name in compared and of.name not in others:
            raise Uncovered(f"{mine.name}.{of.name} may be null, and the other side has it not")
    heads = containers(mine).keys() | containers(theirs).keys()
    for name in ours.keys() & others.keys():
        one, other = ours[name], others[name]
        if one.at != other.at or (one.at is not None and type(one) is not type(other)):
            raise Uncovered(f"{mine.name}.{name} stands at another place on the other side")
        if isinstance(one, Parameter) and isinstance(other, Parameter):
            if ANY in (*one.values, *other.values) and one.values != other.values:
                raise Uncovered(f"{mine.name}.{name} lists other values on the other side")
            continue
        kinds = [of for of in (one, other) if isinstance(of, OpenParameter)]
        newer = any(not isinstance(of.type, PLAIN) for of in kinds)
        if (newer or name in heads) and one != other:
            raise Uncovered(f"{mine.name}.{name} is of another type on the other side")
        if [of.null for of in kinds] == [True, False] or (
            len(kinds) == 1 and kinds[0] is one and kinds[0].null
        ):
            raise Uncovered(f"{mine.name}.{name} may be null on one side alone")


def given_alike(mine: Core, theirs: Core, names: Iterable[str]) -> list[OpenParameter]:
    """What sessions of a side are given that statements of either speak of, in order.

    Args:
        names: that statements speak of.

    Raises:
        Uncovered: the other side is given another, or it alone is given one.
    """
    found = []
    sides = [{one.name: one for one in of.given} for of in (mine, theirs)]
    for name in sorted(names):
        one, other = [of.get(name) for of in sides]
        if one is None or other not in (None, one):
            raise Uncovered(f"session.{name} is not given alike on the two sides")
        found.append(one)
    return found


def _by_name(tool: Tool) -> dict[str, Declared]:
    found: list[Declared] = [*tool.parameters, *tool.opened]
    return {one.name: one for one in found}


def arguments_of(tool: Tool) -> list[Declared]:
    """What its caller chooses, listed and open."""
    return [*[one for one in tool.parameters if not one.observed], *tool.opened]


def answers_of(tool: Tool) -> list[Declared]:
    """What it tells, listed and open."""
    return [*[one for one in tool.parameters if one.observed], *tool.answers]


# The JSON that fields stand in.


def containers(tool: Tool) -> Mapping[str, Sequence[Declared]]:
    """The arguments in which others stand, with these."""
    found: dict[str, list[Declared]] = {}
    for one in arguments_of(tool):
        if one.at is not None:
            found.setdefault(one.at[0], []).append(one)
    return found


def stands_there(tool: Tool, values: Mapping[str, Any]) -> bool:
    """Whether each open argument at a place is what stands in the one that it lies in.

    Args:
        values: of arguments by name, listed and open ones, containers among them.
    """
    for one in arguments_of(tool):
        steps = one.at
        if steps is None:
            continue
        whole = {name: values[name] for name in steps[:1] if name in values}
        try:
            found = _read(one, steps, whole)
            due = places.NONE
            if one.name in values:
                due = _read(one, steps, _at(steps, values[one.name]))
        except (places.Missing, places.Wrong, Rejected):
            return False
        if found != due:
            return False
    return True


def are_declared(tool: Tool, values: Mapping[str, Any]) -> bool:
    """Whether the records in open arguments have no members but the declared ones."""
    arguments = [one for one in tool.parameters if not one.observed]
    listed = [(one.name,) if one.at is None else one.at for one in arguments]
    return all(
        is_declared(values[name], inside)
        for name, inside in declared_in(listed, tool.opened).items()
        if name in values
    )


def _read(one: Declared, steps: tuple[str, ...], arguments: object) -> places.State:
    """The value of a field in arguments; NONE: it is left out."""
    if isinstance(one, Parameter):
        field = Field(name=one.name, steps=steps, values=one.values, optional=one.optional)
    else:
        field = field_of(one)
    return places.read(arguments, field)


def _at(steps: Sequence[str], value: Any) -> Any:
    for step in reversed(steps):
        value = {step: value}
    return value


# What surely has a value.


def surely_fit(tool: Tool) -> bool:
    """Whether all values of arguments at places fit into the ones that they stand in."""
    room = {one.name: one.type.most for one in tool.opened if isinstance(one.type, JsonType)}
    placed = containers(tool).items()
    return all(2 + sum(map(_most_of, inside)) <= room[name] for name, inside in placed)


def _most_of(one: Declared) -> int:
    """The bytes that a value at a place takes at most, with its way there."""
    way = sum([_MOST_BYTES * len(step) + 6 for step in one.at or ()])
    if isinstance(one, Parameter):
        return way + max([_MOST_BYTES * len(text) + 2 for text in one.values])
    kind = one.type
    if isinstance(kind, TextType):
        return way + _MOST_BYTES * kind.most + 2
    return way + (_MOST_NUMBER if isinstance(kind, NumberType) else _MOST_SOME)


def some_value(kind: Any) -> Any:
    """A JSON value of a type of version 1.2 that has no others in it.

    Raises:
        Uncovered: none is known.
    """
    match kind:
        case TimeType():
            return "2026-01-01T00:00:00Z"
        case DateType():
            return "2026-01-01"
        case ListType(least=0):
            return []
        case RecordType(fields=fields) if all(one.optional for one in fields):
            return {}
    raise Uncovered("a list or a record that has to have something in it")
