"""Arguments of calls: read, held to their types, and turned into a call of the artifact.

A table reads the arguments of a call of its tool.  A checker holds open arguments to their types
and gives the canonical form of digests: made once for each parameter, it gives the same bytes and
the same codes as the definitions, :mod:`tcc_certs.values.types` and
:mod:`tcc_certs.values.text_pattern`.  Only exact types of JSON are values (str, int, float,
Decimal, bool, None, dict, list, tuple): an object of another class could answer differently each
time it is asked.  Of a fault there is a code here; the words of its refusal are made in
:mod:`tcc_runtime.gate.refusals`.
Text: docs/gate.md; docs/spec/core.md, section 2; docs/spec/session.md, section 2.  A tool's table
is made when it is first asked for.
Cost: a look-up for each listed argument and one for the call, an open argument its size (a text
with a pattern some tens of nanoseconds a character); of a tool's table its calls, once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from itertools import chain
from operator import getitem
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.json import Encoder

from tcc_certs.core.derived import call_text
from tcc_certs.core.model import Parameter, Tool
from tcc_certs.errors import Code, Rejected
from tcc_certs.session.machine import Observed, Offer, SessionMachine
from tcc_certs.values import declared as types, fields, places
from tcc_certs.values.canonical import MAX_DEPTH
from tcc_certs.values.declared import OpenParameter, json_of, text_of
from tcc_certs.values.members import declared_in, is_declared
from tcc_certs.values.numbers import LEAST_WHOLE, MOST_WHOLE
from tcc_certs.values.places import Missing, State, Wrong, at as found_at
from tcc_certs.values.text_pattern import pattern_of
from tcc_runtime.gate.arguments.columns import Columns, columns_of
from tcc_runtime.gate.arguments.expressions import MOST_STEPS, expression_of, size_of
from tcc_runtime.gate.arguments.json_writer import json_text, number_text
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


# Checkers of values, one for each type.

# An open argument: its name, type byte and canonical bytes.
Given: TypeAlias = "tuple[str, bytes, bytes]"
# Why arguments are no call, and which argument it is.
Trouble: TypeAlias = "tuple[Code, str]"
# Type byte and canonical bytes; of a list, a time or a date behind them the value itself.
Read: TypeAlias = "tuple[bytes, bytes] | tuple[bytes, bytes, State]"
Told: TypeAlias = "Read | tuple[bytes, bytes, Columns]"
Check: TypeAlias = "Callable[[object], Read | Code]"
AnswerCheck: TypeAlias = "Callable[[object], Told | Code]"

_CONTAINERS: Final = frozenset({dict, list, tuple})
_EXACT: Final = frozenset({str, int, float, bool, type(None)}) | _CONTAINERS
_JSON: Final = _EXACT | {Decimal}
SCALARS: Final = _JSON - _CONTAINERS
_MOST_PARTS: Final = 1 << 16
_written: Final = Encoder(order="sorted").encode


def checker(kind: fields.FieldType) -> Check:
    """What holds a value to a type."""
    match kind:
        case types.TextType():
            return _text(kind)
        case types.NumberType():
            return _number(kind)
        case types.FlagType():
            return _flag
        case types.JsonType(most=most):
            return _json(most)
    return _of_others(kind)


_MOST_CARRIED: Final = 1 << 20  # bytes of the fields of an argument, or of a whole answer


def _answer_checker(kind: fields.FieldType) -> AnswerCheck:
    """The same, of an answer: of a list no record has more than its elements."""
    return _elements(kind) if isinstance(kind, fields.ListType) else checker(kind)


def _elements(kind: fields.ListType) -> AnswerCheck:
    def check(value: object) -> Told | Code:
        try:
            columns = columns_of(value, kind)
            if columns is None:
                return b"j", b"", places.typed(value, kind)
            return b"j", b"", columns
        except Rejected as refusal:
            return refusal.code
        except Wrong:
            return Code.OPEN_VALUE

    return check


def _of_others(kind: fields.FieldType) -> Check:
    """A list, a time or a date: canonical JSON of what of it counts."""

    def check(value: object) -> Read | Code:
        try:
            state = places.typed(value, kind)
            found = json_bytes(places.carried(value, kind), _MOST_CARRIED)
        except Rejected as refusal:
            return refusal.code
        except Wrong:
            return Code.OPEN_VALUE
        return found if isinstance(found, Code) else (b"j", found, state)

    return check


_START: Final = 1  # the set of the place before the text alone


def matcher(source: str) -> Callable[[str], bool]:
    """What tells whether all of a text matches.

    Raises:
        Rejected: C801 `source` is no pattern of the dialect.
    """
    pattern = pattern_of(source)
    expression = expression_of(source, pattern)
    if expression is None:
        return lambda text: reduce(getitem, text, pattern.set_of(_START)).accepts
    quick, longest = expression.fullmatch, MOST_STEPS // size_of(pattern)

    def matches(text: str) -> bool:
        return quick(text) is not None if len(text) <= longest else pattern.matches(text)

    return matches


def _text(kind: types.TextType) -> Check:
    least, most = kind.least, kind.most
    matches = None if kind.pattern is None else matcher(kind.pattern)

    def check(value: object) -> tuple[bytes, bytes] | Code:
        if type(value) is not str or not least <= len(value) <= most:
            return Code.OPEN_VALUE
        try:
            data = value.encode()
        except UnicodeEncodeError:
            return Code.NO_VALUE
        if matches is not None and not matches(value):
            return Code.OPEN_VALUE
        return b"s", data

    return check


def _number(kind: types.NumberType) -> Check:
    whole = kind.whole
    low = None if kind.low is None else Decimal(kind.low)
    high = None if kind.high is None else Decimal(kind.high)

    def check(value: object) -> tuple[bytes, bytes] | Code:
        text = number_text(value)
        if isinstance(text, Code):
            return text
        if whole and "." in text:
            return Code.OPEN_VALUE
        if low is not None and high is not None and not low <= Decimal(text) <= high:
            return Code.OPEN_VALUE
        return b"n", text.encode()

    return check


def _flag(value: object) -> tuple[bytes, bytes] | Code:
    if type(value) is not bool:
        return Code.OPEN_VALUE
    return b"b", b"true" if value else b"false"


def _json(most: int) -> Check:
    def check(value: object) -> tuple[bytes, bytes] | Code:
        found = json_bytes(value, most)
        return found if isinstance(found, Code) else (b"j", found)

    return check


def json_bytes(value: object, most: int) -> bytes | Code:
    """The canonical JSON of a value of exact types, or why it has none."""
    quick = _quick(value)
    if quick is not None and len(quick) <= most:
        return quick
    return json_text(value, most)


def _quick(value: object) -> bytes | None:
    """The same, by the interpreter's own writer, of a value in which that writes every part alike.

    None where it might not: a part of a class of its own, a name that is no text, a number that is
    large or written with an exponent, too many levels or parts.
    """
    level: list[object] = [value]
    left = _MOST_PARTS
    for _ in range(MAX_DEPTH + 1):
        kinds = set(map(type, level))
        left -= len(level)
        if not kinds <= _EXACT or left < 0 or not _are_short(level, kinds):
            return None
        if not kinds & _CONTAINERS:
            break
        objects: list[Any] = level
        lists: list[Any] = []
        if kinds != {dict}:
            objects = [part for part in level if type(part) is dict]
            lists = [part for part in level if type(part) is list or type(part) is tuple]
        left -= sum(map(len, objects))
        if left < 0 or set(map(type, chain.from_iterable(objects))) - {str}:
            return None
        level = list(chain.from_iterable(map(dict.values, objects)))
        level += chain.from_iterable(lists)
    else:
        return None
    try:
        return _written(value)
    except UnicodeEncodeError:
        return None


def _are_short(parts: list[object], kinds: set[type]) -> bool:
    """Whether all numbers among them are written as they are printed."""
    if int in kinds:
        whole = [part for part in parts if type(part) is int]
        if min(whole) < LEAST_WHOLE or max(whole) > MOST_WHOLE:
            return False
    if float in kinds:
        # Smaller ones are printed with an exponent, whole ones with a point.
        other = [part for part in parts if type(part) is float]
        return all(1e-4 <= abs(part) < 1e15 and part % 1 != 0 for part in other)
    return True


# The table of a tool.


class Asked(Struct, frozen=True, gc=False):
    """A call that was asked for and is well formed.

    Attributes:
        table: its tool.
        offer: which calls of the artifact it may turn out to be.
        opened: its open arguments, in declared order.
        states: the values of lists, times and dates among them.
    """

    table: ToolTable
    offer: Offer
    opened: tuple[Given, ...]
    states: Mapping[str, State]


class Listed:
    """The values of a listed or an observed parameter, by JSON value.

    Attributes:
        texts: the places of those that are texts.
    """

    __slots__ = (
        "_numbers", "_rest", "_words", "at", "name", "optional", "shown", "texts", "values",
    )  # fmt: skip

    def __init__(self, parameter: Parameter) -> None:
        self.name = parameter.name
        self.at = parameter.at
        self.optional = parameter.values[0] == ""
        self._rest: int | None = None  # the place of what is not listed
        self.values = parameter.values
        self.shown: list[Scalar] = []
        self.texts: dict[str, int] = {}
        self._numbers: dict[int | Decimal, int] = {}
        self._words: dict[bool | None, int] = {}
        for at, text in enumerate(parameter.values):
            self._add(at, text)

    def _add(self, at: int, text: str) -> None:
        if not text or text == "*":
            self.shown.append(None)
            self._rest = at if text else self._rest
            return
        value = json_of(text)
        self.shown.append(_plain_number(value, text) if isinstance(value, Decimal) else value)
        if isinstance(value, str):
            self.texts[value] = at
        elif value is None or isinstance(value, bool):
            self._words[value] = at
        else:
            self._numbers[value] = at

    def chosen(self, arguments: dict[str, Any]) -> int | Code:
        """The place of an argument among the values."""
        if self.at is None:
            if self.name in arguments:
                return self.index(arguments[self.name])
            return 0 if self.optional else Code.MISSING_ARGUMENT
        try:
            return self.index(found_at(arguments, self.at))
        except Missing:
            return 0 if self.optional else Code.MISSING_ARGUMENT
        except Wrong:
            return Code.UNLISTED_VALUE

    def answered(self, told: object) -> int | None:
        """The place of an answer among the values; None where it is missing or foreign.

        Nothing is known of an answer that nobody told, nor of what is no JSON value.
        """
        absent = 0 if self.optional and told is not None else None
        try:
            if self.at is not None:
                value = found_at(told, self.at)
            elif not isinstance(told, dict):
                return absent if type(told) in _JSON else None
            # Not by the value's own class, which could answer otherwise the next time.
            elif dict.__contains__(told, self.name):
                value = dict.__getitem__(told, self.name)
            else:
                return absent
        except Missing:
            return absent
        except Wrong:
            return None
        found = self.index(value)
        if not isinstance(found, Code):
            return found
        if found is Code.NO_VALUE and isinstance(value, int | float | Decimal):
            return None  # no finite number, or one with more digits than are read
        return self._rest if value is None or type(value) in _JSON else None

    def index(self, value: object) -> int | Code:
        """The place of a JSON value among the values."""
        found: int | None = None
        if type(value) is str:
            found = self.texts.get(value)
        elif value is None or type(value) is bool:
            found = self._words.get(value)
        elif type(value) is int:
            found = self._numbers.get(value)
        elif type(value) is float or type(value) is Decimal:
            found = self._by_text(value)
        else:
            return Code.NO_VALUE
        if found is None:
            return Code.NO_VALUE if text_of(value) is None else Code.UNLISTED_VALUE
        return found

    def _by_text(self, value: int | float | Decimal) -> int | None:
        text = text_of(value)
        return None if text is None or text not in self.values else self.values.index(text)


def _plain_number(value: Decimal, text: str) -> Scalar:
    """A float where it prints back as this text: what JSON's own writer takes."""
    return float(value) if text_of(float(value)) == text else value


class ToolTable:
    """What a tool takes, made when the tool is first asked for.

    Attributes:
        number: in the core.
        tool: as the core has it.
        listed, observed: its parameters.
        opened: the names of its open ones, in declared order.
    """

    __slots__ = (
        "_checks", "_declared", "_offers", "_slots", "_unknown", "answers", "listed", "number",
        "observed", "opened", "tool",
    )  # fmt: skip

    def __init__(self, machine: SessionMachine, number: int) -> None:
        self.number = number
        self.tool: Tool = machine.core.tools[number]
        parameters = self.tool.parameters
        self.listed = [Listed(p) for p in parameters if not p.observed]
        self.observed = [Listed(p) for p in parameters if p.observed]
        self.opened = [given.name for given in self.tool.opened if given.at is None]
        self._checks = [(given, checker(given.type)) for given in self.tool.opened]
        places = [(p.name,) if p.at is None else p.at for p in parameters if not p.observed]
        self._declared = declared_in(places, self.tool.opened)
        self.answers = [
            (given, _answer_checker(given.type), checker(given.type)) for given in self.tool.answers
        ]
        chosen = [one.name for one in self.listed if one.at is None]
        self._slots = frozenset([*chosen, *self.opened])
        self._offers = machine.offers(number)
        self._unknown = (None,) * len(self.observed)  # observed parameters are the last ones

    def read(self, arguments: object) -> Asked | Trouble:
        """The call that the arguments name, or what is wrong with them."""
        if type(arguments) is not dict:
            return Code.NO_VALUE, "arguments"
        slots = self._slots
        for name in arguments:
            if type(name) is not str or name not in slots:
                return Code.UNDECLARED_ARGUMENT, name if type(name) is str else type(name).__name__
        indices: list[int] = []
        for param in self.listed:
            value = arguments.get(param.name) if param.at is None else None
            place = param.texts.get(value) if type(value) is str else None
            if place is None:  # no text that is listed
                chosen = param.chosen(arguments)
                if isinstance(chosen, Code):
                    return chosen, param.name
                place = chosen
            indices.append(place)
        opened: list[Given] = []
        states: dict[str, State] = {}
        for field, check in self._checks:
            name = field.name
            if field.at is not None or field.null:
                placed = at_place(arguments, field)
                found = placed if isinstance(placed, Code) else check(*placed)
                if found is Code.MISSING_ARGUMENT and field.optional:
                    continue
            elif name in arguments:
                found = check(arguments[name])
            elif field.optional:
                continue
            else:
                found = Code.MISSING_ARGUMENT
            if isinstance(found, Code):
                return found, name
            if name in self._declared and not is_declared(arguments[name], self._declared[name]):
                return Code.OPEN_VALUE, name
            opened.append((name, found[0], found[1]))
            if len(found) == 3:
                states[name] = found[2]
        values = (*indices, *self._unknown)
        offer = self._offers.get(values) or self._no_call(indices)
        return Asked(self, offer, tuple(opened), states)

    def _no_call(self, listed: Sequence[int]) -> Offer:
        """Well formed, and in no plan."""
        anything = (*listed, *(0 for _ in self.observed))
        return Offer(
            tool=self.number,
            text=call_text(self.tool, anything, observed=False),
            values=(*listed, *self._unknown),
            observed=(),
            calls={},
            answers=1,
        )

    def observe(self, told: object) -> Observed:
        """The observed values in what came back; None of one that is missing or foreign."""
        return tuple([param.answered(told) for param in self.observed])

    def told(
        self, answer: object, names: frozenset[str], shown: frozenset[str] = frozenset()
    ) -> dict[str, Told | None]:
        """The open answers of these names that are there; None of one that is not known.

        Args:
            answer: None where nobody told it: then none of them is known.
            shown: those of which the canonical bytes are wanted, lists among them.
        """
        found: dict[str, Told | None] = {}
        left = _MOST_CARRIED
        for field, quick, whole in self.answers:
            if field.name not in names:
                continue
            check = whole if field.name in shown else quick
            placed = Code.NO_VALUE if answer is None else at_place(answer, field)
            value = placed if isinstance(placed, Code) else check(*placed)
            if not isinstance(value, Code):
                left -= len(value[1])
                found[field.name] = value if left >= 0 else None
            elif value is not Code.MISSING_ARGUMENT or not field.optional:
                found[field.name] = None
        return found

    def allowed(self, offer: Offer) -> Allowed:
        """The call as JSON values."""
        pairs = zip(self.listed, offer.values, strict=False)
        given = {
            param.name: param.shown[at]
            for param, at in pairs
            if at is not None and param.values[at] and param.at is None
        }
        return Allowed(self.tool.name, given)


class ToolTables:
    """The tables of an artifact's tools, each made when it is first asked for."""

    __slots__ = ("_machine", "_numbers", "_tables")

    def __init__(self, machine: SessionMachine) -> None:
        self._machine = machine
        self._numbers = {tool.name: at for at, tool in enumerate(machine.core.tools)}
        self._tables: dict[int, ToolTable] = {}

    def named(self, name: object) -> ToolTable | None:
        """The table of a tool, None where there is no such tool."""
        number = self._numbers.get(name) if type(name) is str else None
        if number is None:
            return None
        return self._tables.get(number) or self.numbered(number)

    def numbered(self, number: int) -> ToolTable:
        """The table of a tool by its number."""
        found = self._tables.get(number)
        if found is None:
            found = self._tables[number] = ToolTable(self._machine, number)
        return found


def at_place(value: object, field: OpenParameter) -> tuple[object] | Code:
    """What stands at a field's place in the arguments or the answer; R103 where it is left out."""
    try:
        found = found_at(value, (field.name,) if field.at is None else field.at)
    except Missing:
        return Code.MISSING_ARGUMENT
    except Wrong:
        return Code.OPEN_VALUE
    return Code.MISSING_ARGUMENT if found is None and field.null else (found,)
