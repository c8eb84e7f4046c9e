"""Values of open parameters: checked, and in the canonical form that digests are made of.

The definition is :mod:`tcc_certs.values.types`; here a checker is made once for each parameter and
gives the same bytes and the same codes, for exact types of JSON alone (a subclass of one could
answer differently each time it is asked, and is refused).
Text: docs/spec/core.md, section 2; docs/spec/session.md, section 2.
Cost: linear in the value; a text with a pattern some tens of nanoseconds a character.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Final, TypeAlias

from tcc_certs.errors import Code, Rejected
from tcc_certs.values.canonical import MAX_DEPTH, json_text
from tcc_certs.values.numbers import canonical_number
from tcc_certs.values.types import FlagType, JsonType, NumberType, OpenType, TextType
from tcc_runtime.gate.patterns import matcher

# An open argument: its name, type byte and canonical bytes.
Given: TypeAlias = "tuple[str, bytes, bytes]"
# Why arguments are no call, and which argument it is.
Trouble: TypeAlias = "tuple[Code, str]"
Check: TypeAlias = "Callable[[object], tuple[bytes, bytes] | Code]"

_SAFE: Final = 1 << 53
_EXACT: Final = frozenset({str, int, float, bool, Decimal, type(None)})


def checker(kind: OpenType) -> Check:
    """What holds a value to a type."""
    match kind:
        case TextType():
            return _text(kind)
        case NumberType():
            return _number(kind)
        case FlagType():
            return _flag
        case JsonType(most=most):
            return _json(most)


def _text(kind: TextType) -> Check:
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


def _number(kind: NumberType) -> Check:
    whole = kind.whole
    low = None if kind.low is None else Decimal(kind.low)
    high = None if kind.high is None else Decimal(kind.high)

    def check(value: object) -> tuple[bytes, bytes] | Code:
        text = number_text(value)
        if type(text) is not str:
            return text if isinstance(text, Code) else Code.OPEN_VALUE
        if whole and "." in text:
            return Code.OPEN_VALUE
        if low is not None and high is not None and not low <= Decimal(text) <= high:
            return Code.OPEN_VALUE
        return b"n", text.encode()

    return check


def number_text(value: object) -> str | Code:
    """The canonical decimal of a number; most numbers are short ones."""
    if type(value) is int and -_SAFE <= value <= _SAFE:
        return str(value)
    if type(value) is float:
        text = repr(value)
        if text.endswith(".0") and text != "-0.0":
            return text[:-2]
        if "e" not in text and "n" not in text and text != "-0.0":
            return text
    elif type(value) is not int and type(value) is not Decimal:
        return Code.OPEN_VALUE
    try:
        return canonical_number(value)
    except Rejected as refusal:
        return refusal.code


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
    if not _is_exact(value, most):
        return Code.NO_VALUE
    try:
        return json_text(value, most=most)
    except Rejected as refusal:
        return refusal.code


def _is_exact(value: object, most: int) -> bool:
    """Whether no part of a value is of a class of its own; what is too large or deep ends early.

    A value that is inside itself is too deep; it is looked at no further than its size allows.
    """
    level, left = [value], most + 2
    for _ in range(MAX_DEPTH + 1):
        below: list[object] = []
        for part in level:
            if type(part) is dict:
                if any(type(name) is not str for name in part):
                    return False
                below.extend(part.values())
            elif type(part) is list or type(part) is tuple:
                below.extend(part)
            elif type(part) not in _EXACT:
                return False
            left -= 1
            if left < 0 or len(below) > most:
                return True  # the writer finds that it is too large
        if not below:
            return True
        level = below
    return True
