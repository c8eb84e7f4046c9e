"""Reading arguments and answers of calls: JSON values are checked against the types of fields.

A reader turns an object into the states of its fields, or returns the code of the first fault.
:mod:`tcc_runtime.gate.refusals` writes the messages.  :mod:`tcc_certs.values.places` defines the
states.  Only objects of JSON's own classes are values (str, int, float, Decimal, bool, None, dict,
list, tuple).  An object of another class could change between the decision and the call.
Text: docs/gate.md; docs/spec/core.md, section 3.
Cost: linear in the arguments.  The table of a tool is built when it is first used.
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

# Copies of the caller's values. The caller may change the originals, for example in another thread.


def snapshot(value: Any, *, exact: bool = False) -> Any:
    """Copy a JSON value; tuples become lists.

    Values of other classes are not copied; the gate refuses them later.  Cost: linear in the value,
    for any depth.  An object that occurs several times is copied once.

    Args:
        exact: if True, instances of subclasses of dict and list are not copied, so the gate refuses
            them; if False, they become plain dicts and lists.
    """
    made: dict[int, Any] = {}
    parts: list[tuple[Any, Any, Any]] = []  # each container, its members, and its copy
    found = _taken(value, exact, made, parts)
    for _, taken, copy in parts:  # `_taken` appends to the list during the loop
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
    """Return an empty copy of a container, which the caller fills; any other value as it is."""
    kind = type(value)
    is_dict, is_list = kind is dict, kind is list or kind is tuple
    if not exact:
        is_dict, is_list = isinstance(value, dict), is_list or isinstance(value, list)
    if not is_dict and not is_list:
        return value
    copy = made.get(id(value))
    if copy is None:
        copy = made[id(value)] = {} if is_dict else []
        # One bytecode step copies the members, so that no other thread changes them meanwhile.
        # `value` is kept alive, because its id is a key of `made`.
        parts.append((value, (dict if is_dict else list)(value), copy))
    return copy


_MOST_DIGITS: Final = 400
_LAST_FLOAT: Final = sys.float_info.max


def plain(value: Any) -> Any:
    """Return a JSON value with its Decimals as int or float.

    A number that a gate accepts keeps its value.  Tool descriptions of a server may have numbers
    beyond the largest float: these become the largest float.
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
    """Return whether :func:`plain` keeps all numbers.  A listed number may have more digits than a
    float.

    Cost: linear in the value.  Levels deeper than a gate accepts are ignored.
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
        declared: the arguments of a tool, or the attributes that a session starts with.

    Attributes:
        names: the member names that the object may have.
    """

    __slots__ = ("_fields", "names")

    def __init__(self, declared: Sequence[Field]) -> None:
        self.names = frozenset([one.name for one in declared if is_member(one)])
        inside = declared_in(declared)
        self._fields = [
            (one.name, one, member_reader(one), inside.get(one.name)) for one in declared
        ]

    def field(self, name: str) -> Field:
        """Return the field with that name."""
        return next(field for other, field, _, _ in self._fields if other == name)

    def read(self, values: dict[Any, Any]) -> dict[str, State] | Trouble:
        """Return the state of each field by name, or the code and the name of the first fault."""
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
    """Return whether a field is the member with the field's name, not a part inside another
    member.
    """
    return field.steps == (field.name,)


# Tools.


class Asked(Struct, frozen=True, gc=False):
    """A requested call whose arguments have their declared types.

    Attributes:
        table: the table of its tool.
        states: the states of all declared arguments, by name.
        offer: the call in the automaton; None: the artifact has no call with these listed
            arguments.
    """

    table: ToolTable
    states: Mapping[str, State]
    offer: Offer | None


class ToolTable:
    """Reads the calls of one tool.

    Attributes:
        number: index of the tool in the core.
        tool: the tool.
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
        """Return the call with these arguments, or the code and the name of the first fault."""
        if type(arguments) is not dict:
            return Code.NO_VALUE, "arguments"
        found = self._reader.read(arguments)
        if isinstance(found, tuple):
            return found
        return Asked(self, found, self._machine.offer_for(self.number, found))

    def answers(self, answer: object, used: Container[str]) -> dict[str, State]:
        """Return the states of the listed answers and of the other answers in `used`, by name.

        If `answer` is None (the caller reported no answer), each state is UNKNOWN.
        """
        return {
            name: UNKNOWN if answer is None else read(answer)
            for name, is_listed, read in self._answers
            if is_listed or name in used
        }

    def allowed(self, offer: Offer) -> Allowed:
        """Return the call with its listed arguments as JSON values."""
        arguments: dict[str, Scalar] = {}
        for (field, shown), at in zip(self._shown, offer.values, strict=True):
            if is_member(field) and not (field.optional and at == 0):
                arguments[field.name] = shown[at]
        return Allowed(self.tool.name, arguments)


def _scalar(text: str) -> Scalar:
    """Return the JSON value of a listed value.  A number is a float if that prints as the same
    text, else a Decimal.
    """
    value = json_of(text)
    if isinstance(value, Decimal):
        return float(value) if text_of(float(value)) == text else value
    return value


class ToolTables:
    """The tables of the tools of an artifact, each built when it is first used."""

    __slots__ = ("_machine", "_tables")

    def __init__(self, machine: SessionMachine) -> None:
        self._machine = machine
        self._tables: dict[int, ToolTable] = {}

    def named(self, name: object) -> ToolTable | None:
        """Return the table of a tool by name; None: the grammar has no such tool."""
        number = self._machine.tools.get(name) if type(name) is str else None
        return None if number is None else self.numbered(number)

    def numbered(self, number: int) -> ToolTable:
        """Return the table of a tool by its index in the core."""
        found = self._tables.get(number)
        if found is None:
            found = self._tables[number] = ToolTable(self._machine, number)
        return found
