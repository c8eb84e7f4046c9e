"""Fast readers of JSON values; each returns the same state as :mod:`tcc_certs.values.places`.

A reader is built once for each field.  It reads the usual values of its type itself, and passes all
other values to :mod:`tcc_certs.values.places`, which also finds the fault of a wrong value.

Cost: a fraction of a microsecond for a text, a whole number, a flag or a listed value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import ceil, floor
from typing import Any, TypeAlias

from tcc_certs.errors import Code
from tcc_certs.values import places
from tcc_certs.values.declared import FlagType, JsonType, NumberType, TextType
from tcc_certs.values.fields import (
    MOST_ELEMENTS,
    Field,
    FieldType,
    ListType,
    NullableType,
    RecordType,
)
from tcc_certs.values.numbers import LEAST_WHOLE, MOST_WHOLE
from tcc_certs.values.places import NONE, UNKNOWN, State, Wrong
from tcc_certs.values.text_pattern import pattern_of
from tcc_runtime.gate.arguments.json_writer import json_bytes

Read: TypeAlias = "Callable[[Any], State]"

_SHORT = 32  # the longest list that is read here
_NULL: State = ("z", None)
_LARGE = 1 << 53  # from here on doubles are whole numbers


def member_reader(field: Field) -> Read | None:
    """Return a reader of the value of a field; None: the field lies inside another member.

    The reader raises Wrong as :func:`places.read` does.
    """
    if field.steps != (field.name,) or field.name == "*":
        return None
    name = field.name
    return _read_field(field, lambda value: places.read({name: value}, field))


def answer_reader(field: Field) -> Read:
    """Return a reader that takes a whole answer and returns the state of a field.

    It returns the same as :func:`places.answered`.
    """
    step = field.steps[0] if len(field.steps) == 1 else "*"
    if step == "*":
        return lambda answer: places.answered(answer, field)
    read = _read_field(field, lambda value: places.read({step: value}, field))

    def answered(answer: Any) -> State:
        if type(answer) is not dict or step not in answer:
            return places.answered(answer, field)
        try:
            return read(answer[step])
        except Wrong:
            return UNKNOWN

    return answered


def _read_field(field: Field, others: Read) -> Read:
    """Return a reader of the value of a field.

    Args:
        others: reads the values that the fast reader does not.
    """
    read = _listed(field.values, others) if field.type is None else _typed(field.type, others)
    if not field.null:
        return read
    return lambda value: NONE if value is None else read(value)


def _typed(kind: FieldType, others: Read) -> Read:
    match kind:
        case TextType():
            return _text(kind, others)
        case NumberType():
            return _number(kind, others)
        case FlagType():
            return lambda value: ("b", value) if type(value) is bool else others(value)
        case NullableType(of=of):
            read = _typed(of, others)
            return lambda value: _NULL if value is None else read(value)
        case ListType():
            return _list(kind, others)
        case RecordType():
            return _record(kind, others)
        case JsonType():
            return _json(kind, others)
    return others


def _listed(values: Sequence[str], others: Read) -> Read:
    constants = [places.constant(text) for text in values if text and text != "*"]
    known = {state[1]: state for state in constants if state[0] == "s"}

    def read(value: Any) -> State:
        if type(value) is str:
            found = known.get(value)
            if found is not None:
                return found
        return others(value)

    return read


def _text(kind: TextType, others: Read) -> Read:
    least, most, among = kind.least, kind.most, kind.among
    matches = None if kind.pattern is None else pattern_of(kind.pattern).matches

    def read(value: Any) -> State:
        is_plain = type(value) is str and least <= len(value) <= most and value.isascii()
        if is_plain and (matches is None or matches(value)) and (not among or value in among):
            return "s", value
        return others(value)

    return read


def _number(kind: NumberType, others: Read) -> Read:
    low: Any = LEAST_WHOLE
    high: Any = MOST_WHOLE
    ends = None
    if kind.low is not None and kind.high is not None:
        ends = places.ends_of(kind.low, kind.high)
        low, high = max(low, ceil(ends[0])), min(high, floor(ends[1]))
    whole = kind.whole

    def read(value: Any) -> State:
        if type(value) is int:
            if low <= value <= high:
                return "n", value
        elif type(value) is float and -_LARGE < value < _LARGE:
            exact = _exact(value)
            fits = exact is not None and (ends is None or ends[0] <= exact <= ends[1])
            if fits and not (whole and type(exact) is Fraction):
                return "n", exact
        return others(value)

    return read


def _exact(value: float) -> int | Fraction | None:
    """Return the shortest decimal of a double; None if it is printed with an exponent."""
    if value.is_integer():
        return int(value)
    printed = float.__repr__(value)
    digits, _, part = printed.partition(".")
    if not part.isdigit():
        return None
    return Fraction(int(digits + part), 10 ** len(part))


def _json(kind: JsonType, others: Read) -> Read:
    most = kind.most

    def read(value: Any) -> State:
        written = json_bytes(value, most)
        return others(value) if isinstance(written, Code) else ("j", written)

    return read


def _list(kind: ListType, others: Read) -> Read:
    if kind.distinct or any(text.pattern is not None for text in places.texts_in(kind.of)):
        return others
    element = _typed(kind.of, _fail)
    least, most = kind.least, min(kind.most, MOST_ELEMENTS, _SHORT)

    def read(value: Any) -> State:
        if (type(value) is list or type(value) is tuple) and least <= len(value) <= most:
            try:
                return "l", tuple([element(item) for item in value])
            except Wrong:
                pass  # the definition reads it again
        return others(value)

    return read


def _record(kind: RecordType, others: Read) -> Read:
    if any(len(one.steps) != 1 or one.steps[0] == "*" for one in kind.fields):
        return others
    parts = [(one.name, one.steps[0], one.optional, _read_field(one, _fail)) for one in kind.fields]

    def read(value: Any) -> State:
        if type(value) is not dict:
            return others(value)
        found = []
        try:
            for name, step, optional, member in parts:
                if step in value:
                    found.append((name, member(value[step])))
                elif optional:
                    found.append((name, NONE))
                else:
                    return others(value)
        except Wrong:
            return others(value)
        return "r", tuple(found)

    return read


def _fail(value: Any) -> State:
    """Raise Wrong, so that the definition reads the whole list or object."""
    raise Wrong
