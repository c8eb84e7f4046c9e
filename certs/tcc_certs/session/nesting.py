"""Fields inside other fields: checks that the ledger has the same values for both.

Normative text: docs/spec/session.md, section 3.  The pointer of a field may lead into another
field.  The ledger may have elements, members or the value of that field.  If the ledger has both
sides, they are compared.

Cost: for a tool with such fields, linear in the values of a call; nothing for other tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import Json, written
from tcc_certs.policy.core import Core, Learned
from tcc_certs.session.entries import NULL, PRESENT, SOME_LIST, EntryReader, state_of
from tcc_certs.values.canonical import json_value
from tcc_certs.values.declared import FlagType, JsonType, NumberType, PathType, TextType, UrlType
from tcc_certs.values.fields import (
    DateType,
    Field,
    FieldType,
    ListType,
    NullableType,
    RecordType,
    TimeType,
    UnionType,
)
from tcc_certs.values.places import NONE, UNKNOWN, Missing, State, Wrong, at, read

States = Mapping[str, State]


class Untold(Exception):
    """Raised if the ledger does not have a value that a comparison needs."""


@dataclass(frozen=True, slots=True)
class _Inside:
    """A field inside another field, and the steps from the outer field to it."""

    field: Field
    outer: Field
    steps: tuple[str, ...]


class Nesting:
    """Compares the fields of a core that are inside other fields."""

    def __init__(self, core: Core, reader: EntryReader) -> None:
        self._core = core
        self._reader = reader
        self._kept: dict[tuple[str, str], Sequence[_Inside]] = {}

    def check_given(self, states: States, entries: Mapping[str, Json]) -> None:
        """Check that the attributes that the session starts with agree with each other.

        Raises:
            Rejected: S204: two of them contradict each other.
        """
        declared = [one for one in self._core.given if not isinstance(one, Learned)]
        self._check("given", "session", declared, states, entries)

    def check_arguments(self, tool: str, states: States, entries: Mapping[str, Json]) -> None:
        """Check that the arguments of a call agree with each other.

        Raises:
            Rejected: S204: two of them contradict each other.
        """
        self._check("open", tool, self._core.tool_of[tool].arguments, states, entries)

    def check_answers(self, tool: str, states: States, entries: Mapping[str, Json]) -> None:
        """Check that the answers of a call agree with each other.

        Raises:
            Rejected: S204: two of them contradict each other.
        """
        self._check("answers", tool, self._core.tool_of[tool].answers, states, entries)

    def _check(
        self, where: str, owner: str, declared: Sequence[Field], states: States,
        entries: Mapping[str, Json],
    ) -> None:  # fmt: skip
        inside = self._kept.get((where, owner))
        if inside is None:
            inside = self._kept[where, owner] = _inside(declared)
        for one in inside:
            name = one.field.name
            if name not in states:
                continue  # a listed answer that is not known, or an answer without an entry
            try:
                there = self._there(one, states, entries)
                holds = self._agrees(there, states[name], one.field)
            except Untold:
                continue
            if not holds:
                place = f"{where}: {written(owner)}.{written(name)}"
                expected = f"the value inside {one.outer.name}"
                raise Rejected(Code.SESSION_VALUE, place, expected, entries.get(name, "no entry"))

    def _there(self, one: _Inside, states: States, entries: Mapping[str, Json]) -> State:
        """Return the state at the place of a field; NONE if the place has no value.

        Raises:
            Untold: the ledger does not have it.
        """
        entry, outer = entries.get(one.outer.name), one.outer
        state = states.get(outer.name, UNKNOWN)
        if isinstance(entry, dict) and "value" in entry and outer.type is not None:
            kind, nullable = _stripped(outer.type)
            state = state_of(str(entry["type"]), str(entry["value"]), kind, nullable=nullable)
        if state == UNKNOWN:
            raise Untold
        if state == NONE and outer.null:
            raise Untold  # the value may be null
        return _walk(state, outer.type, one.steps, one.field)

    def _agrees(self, there: State, state: State, field: Field) -> bool:
        """Return whether the state of a field fits the state at its place.

        Raises:
            Untold: the ledger does not have enough to decide this.
        """
        if there == UNKNOWN:
            return state == UNKNOWN
        if there == NONE:
            return state == NONE or not field.optional
        if there == NULL and field.null:
            return state in (NONE, NULL)
        if state == NONE:
            if there == PRESENT and field.null:
                raise Untold  # the value may be null
            return False
        if state == UNKNOWN:
            raise Untold  # a value of another type
        return self._same(there, state)

    def _same(self, one: State, other: State) -> bool:
        if PRESENT in (one, other) or one is SOME_LIST or other is SOME_LIST:
            return True
        if one[0] == other[0] == "l":
            pairs = zip(one[1], other[1], strict=False)
            return len(one[1]) == len(other[1]) and all(self._same(*pair) for pair in pairs)
        if one[0] == other[0] == "r":
            members = dict(other[1])
            both = [(value, members[name]) for name, value in one[1] if name in members]
            return all(self._same(*pair) for pair in both)
        if one == other or "*" in (one[0], other[0]):
            return True
        halves = self._reader.half_of(one), self._reader.half_of(other)
        if None not in halves:
            return halves[0] == halves[1]
        values = [state if state[0] != "d" else state[1].value for state in (one, other)]
        return None in values or values[0] == values[1]


def _inside(declared: Sequence[Field]) -> Sequence[_Inside]:
    by_steps = {one.steps: one for one in declared if "*" not in one.steps}
    return [
        _Inside(one, by_steps[one.steps[:size]], one.steps[size:])
        for one in declared
        for size in range(len(one.steps))
        if one.steps[:size] in by_steps
    ]


def _stripped(kind: FieldType) -> tuple[FieldType, bool]:
    return (kind.of, True) if isinstance(kind, NullableType) else (kind, False)


def _walk(state: State, kind: FieldType | None, steps: Sequence[str], field: Field) -> State:
    """Return the state at a place inside a value.

    Raises:
        Untold: the ledger does not have it, or has it as a value of another type.
    """
    if state == PRESENT:
        raise Untold
    if state == NONE or (state == NULL and steps):
        return NONE
    kind = None if kind is None else _stripped(kind)[0]
    if not steps:
        wanted = None if field.type is None else _stripped(field.type)[0]
        if wanted is not None and not _alike(kind, wanted):
            raise Untold
        return state
    step, rest = steps[0], steps[1:]
    match kind:
        case ListType(of=of):
            if state is SOME_LIST:
                raise Untold
            items = state[1]
            if step == "*":
                inner = field.type.of if isinstance(field.type, ListType) else None
                one = Field(name="", steps=(), type=inner)
                found = [_walk(item, of, rest, one) for item in items]
                if "*" in rest:
                    found = [part for item in found for part in _parts(item)]
                if UNKNOWN in found:
                    raise Untold
                return NONE if NONE in found else ("l", tuple(found))
            number = len(items) - 1 if step == "-1" else int(step) if step.isdecimal() else -1
            if not 0 <= number < len(items) or (step != "-1" and str(number) != step):
                return NONE
            return _walk(items[number], of, rest, field)
        case RecordType(fields=fields):
            for member in fields:
                size = len(member.steps)
                if size and tuple(steps[:size]) == member.steps:
                    inner_state = dict(state[1])[member.name]
                    if inner_state == NONE and member.null:
                        raise Untold  # the value may be null
                    return _walk(inner_state, member.type, steps[size:], field)
            raise Untold
        case UnionType():
            raise Untold
        case JsonType():
            value = state if state[0] != "d" else state[1].value
            if value is None:
                raise Untold
            return _in_json(json_value(value[1].decode()), steps, field)
    return NONE


def _parts(state: State) -> Iterable[State]:
    if state[0] != "l":
        raise Untold
    parts: tuple[State, ...] = state[1]
    return parts


def _in_json(value: Any, steps: Sequence[str], field: Field) -> State:
    """Return the state of a field inside a shown JSON value; UNKNOWN: it has another type."""
    inside = Field(
        name="", steps=tuple(steps), type=field.type, values=field.values, optional=True,
        null=field.null,
    )  # fmt: skip
    try:
        at(value, steps)
        return read(value, inside)
    except Missing:
        return NONE
    except Wrong:
        return UNKNOWN


def _alike(one: FieldType | None, other: FieldType) -> bool:
    """Return whether a value has the same digest as a value of both types."""
    if one is None:
        return isinstance(other, TextType | NumberType | FlagType)
    if isinstance(one, ListType) and isinstance(other, ListType):
        return _alike(_stripped(one.of)[0], _stripped(other.of)[0])
    if isinstance(one, TimeType | DateType | RecordType | UnionType):
        return one == other
    kinds = (TextType, NumberType, FlagType, JsonType, PathType, UrlType)
    return any(isinstance(one, kind) and isinstance(other, kind) for kind in kinds)
