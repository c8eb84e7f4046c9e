"""Arguments and answers of calls: JSON values, held to the types of their fields.

A reader turns an object into the states of its fields, or says the code of the first fault; the
words of a refusal are made in :mod:`tcc_runtime.gate.refusals`.  The definition of a state is
:mod:`tcc_certs.values.places`.  Only objects of JSON's own classes are values (str, int, float,
Decimal, bool, None, dict, list, tuple): an object of another class could change between two looks.
Text: docs/gate.md; docs/spec/core.md, section 3.
Cost: linear in the arguments.  The table of a tool is made when it is first used.
"""

from __future__ import annotations

import sys
from collections.abc import Container, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, TypeAlias

from msgspec import Struct

from tcc_certs.errors import Code
from tcc_certs.policy.core import Tool
from tcc_certs.session.machine import Offer, SessionMachine
from tcc_certs.values import places
from tcc_certs.values.canonical import MAX_DEPTH
from tcc_certs.values.declared import json_of, text_of
from tcc_certs.values.fields import Field
from tcc_certs.values.members import declared_in, is_declared
from tcc_certs.values.places import NONE, UNKNOWN, Missing, State, Wrong
from tcc_runtime.gate.arguments.json_writer import SCALARS
from tcc_runtime.gate.arguments.readers import answer_reader, member_reader
from tcc_runtime.gate.refusals import Allowed, Scalar

# Values as callers have them: a copy, as somebody may go on changing them, in another thread say.


def snapshot(value: Any, *, exact: bool = False) -> Any:
    """A copy of a JSON value down to its texts and numbers: tuples become lists.

    What has no such form stays, and the gate refuses it.  Cost: linear, however deep the value is;
    a part that occurs many times is copied once.

    Args:
        exact: an object of a class derived from dict or list stays, too; else it becomes a plain
            one.
    """
    made: dict[int, Any] = {}
    parts: list[tuple[Any, Any, Any]] = []  # each part, what it had, and its copy
    found = _taken(value, exact, made, parts)
    for _, taken, copy in parts:  # more are added as they are met
        if type(copy) is dict:
            for name, item in taken.items():
                copy[name] = item if type(item) in SCALARS else _taken(item, exact, made, parts)
        else:
            copy += [
                item if type(item) in SCALARS else _taken(item, exact, made, parts)
                for item in taken
            ]
    return found


def _taken(value: Any, exact: bool, made: dict[int, Any], parts: list[tuple[Any, Any, Any]]) -> Any:
    """An empty copy of a container, to be filled; anything else is itself."""
    kind = type(value)
    is_dict, is_list = kind is dict, kind is list or kind is tuple
    if not exact:
        is_dict, is_list = isinstance(value, dict), is_list or isinstance(value, list)
    if not is_dict and not is_list:
        return value
    copy = made.get(id(value))
    if copy is None:
        copy = made[id(value)] = {} if is_dict else []
        # One step of the interpreter takes the members.  `value` is kept: its id stands for it.
        parts.append((value, (dict if is_dict else list)(value), copy))
    return copy


_MOST_DIGITS: Final = 400
_LAST_FLOAT: Final = sys.float_info.max


def plain(value: Any) -> Any:
    """A value with its exact numbers as Python's own: the same ones, of a value a gate took.

    Of what a server writes about its tools, a number beyond all floats is the last of them.
    """
    if isinstance(value, Decimal):
        small = abs(value.adjusted()) < _MOST_DIGITS
        if small and value == value.to_integral_value():
            return int(value)
        return max(-_LAST_FLOAT, min(float(value), _LAST_FLOAT))
    if isinstance(value, Mapping):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value


def is_kept(value: Any) -> bool:
    """Whether :func:`plain` gives the same numbers: a listed one may have more digits than it has.

    Cost: linear in the value; nested deeper than a gate takes it is not looked at.
    """
    level = [value]
    for _ in range(MAX_DEPTH + 2):
        if not level:
            break
        if any(isinstance(part, Decimal) and Decimal(repr(plain(part))) != part for part in level):
            return False
        level = [inner for part in level for inner in _inside(part)]
    return True


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list | tuple) else ()


# Fields of an object.

# The code of a fault, and the name of the argument.
Trouble: TypeAlias = "tuple[Code, str]"


class FieldReader:
    """Reads declared fields of an object.

    Args:
        declared: arguments of a tool, or the attributes that a session starts with.

    Attributes:
        names: the members that the object may have.
    """

    __slots__ = ("_fields", "names")

    def __init__(self, declared: Sequence[Field]) -> None:
        self.names = frozenset([one.name for one in declared if is_member(one)])
        inside = declared_in(declared)
        self._fields = [
            (one.name, one, member_reader(one), inside.get(one.name)) for one in declared
        ]

    def field(self, name: str) -> Field:
        """The field of that name."""
        return next(field for other, field, _, _ in self._fields if other == name)

    def read(self, values: dict[Any, Any]) -> dict[str, State] | Trouble:
        """The state of each field, or what is wrong with the first wrong one."""
        names = self.names
        for name in values:
            if type(name) is not str or name not in names:
                return Code.UNDECLARED_ARGUMENT, name if type(name) is str else type(name).__name__
        found: dict[str, State] = {}
        for name, field, read, inside in self._fields:
            try:
                if read is None:
                    found[name] = places.read(values, field)
                elif name in values:
                    found[name] = read(values[name])
                elif field.optional:
                    found[name] = NONE
                else:
                    return Code.MISSING_ARGUMENT, name
            except Missing:
                return Code.MISSING_ARGUMENT, name
            except Wrong as wrong:
                return wrong.code, name
            if inside is not None and name in values and not is_declared(values[name], inside):
                return Code.OPEN_VALUE, name
        return found


def is_member(field: Field) -> bool:
    """Whether a field is the member of its name, and does not lie inside of another one."""
    return field.steps == (field.name,)


# Tools.


class Asked(Struct, frozen=True, gc=False):
    """A call that was asked for, whose arguments have their types.

    Attributes:
        table: of its tool.
        states: of all declared arguments.
        offer: None where the artifact has no such call.
    """

    table: ToolTable
    states: Mapping[str, State]
    offer: Offer | None


class ToolTable:
    """How the calls of a tool are read.

    Attributes:
        number: of the tool in the core.
        observed: its listed answers.
    """

    __slots__ = ("_answers", "_machine", "_reader", "_shown", "number", "observed", "tool")

    def __init__(self, machine: SessionMachine, number: int) -> None:
        self.number = number
        self.tool: Tool = machine.core.tools[number]
        self.observed = tuple([one for one in self.tool.answers if one.type is None])
        self._machine = machine
        self._reader = FieldReader(self.tool.arguments)
        self._answers = [
            (one.name, one.type is None, answer_reader(one)) for one in self.tool.answers
        ]
        self._shown = [
            (one, [None] * one.optional + [_scalar(text) for text in one.values if text])
            for one in self.tool.arguments
            if one.type is None
        ]

    def read(self, arguments: object) -> Asked | Trouble:
        """The call that the arguments name, or what is wrong with them."""
        if type(arguments) is not dict:
            return Code.NO_VALUE, "arguments"
        found = self._reader.read(arguments)
        if isinstance(found, tuple):
            return found
        return Asked(self, found, self._machine.offer_for(self.number, found))

    def answers(self, answer: object, used: Container[str]) -> dict[str, State]:
        """The states of the listed answers and of those that are used.

        If nobody reported an answer, each of them is unknown.
        """
        return {
            name: UNKNOWN if answer is None else read(answer)
            for name, is_listed, read in self._answers
            if is_listed or name in used
        }

    def allowed(self, offer: Offer) -> Allowed:
        """The call as JSON values."""
        arguments: dict[str, Scalar] = {}
        for (field, shown), at in zip(self._shown, offer.values, strict=True):
            if is_member(field) and not (field.optional and at == 0):
                arguments[field.name] = shown[at]
        return Allowed(self.tool.name, arguments)


def _scalar(text: str) -> Scalar:
    """The JSON value of a listed value; a float where it prints back as the same text."""
    value = json_of(text)
    if isinstance(value, Decimal):
        return float(value) if text_of(float(value)) == text else value
    return value


class ToolTables:
    """The tables of an artifact's tools, each made when it is first used."""

    __slots__ = ("_machine", "_tables")

    def __init__(self, machine: SessionMachine) -> None:
        self._machine = machine
        self._tables: dict[int, ToolTable] = {}

    def named(self, name: object) -> ToolTable | None:
        """The table of a tool; None where the grammar has no such tool."""
        number = self._machine.tools.get(name) if type(name) is str else None
        return None if number is None else self.numbered(number)

    def numbered(self, number: int) -> ToolTable:
        """The table of a tool by its number."""
        found = self._tables.get(number)
        if found is None:
            found = self._tables[number] = ToolTable(self._machine, number)
        return found
