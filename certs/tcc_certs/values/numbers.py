"""JSON numbers as exact decimals with canonical texts.

Normative text: docs/spec/session.md, section 2.  A whole number from -2^63 to 2^64 - 1 is always a
value.  Any other number may pass through programs that store it as a double.  So it is a value only
if its nearest double prints as the same number.  Cost: linear in the digits, at most 326 on each
side of the point.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, TypeAlias

from tcc_certs.errors import Code, Rejected, ensure

if TYPE_CHECKING:
    from fractions import Fraction

Number: TypeAlias = "int | float | Decimal"

LEAST_WHOLE, MOST_WHOLE = -(1 << 63), (1 << 64) - 1  # whole numbers that are exact

_LONG = re.compile(r"-?(0|[1-9][0-9]{0,399})(\.[0-9]{0,399}[1-9])?")
_PRINTED = re.compile(r"(-?)([0-9]+)(?:\.([0-9]+))?(?:e([+-][0-9]+))?")


def canonical_number(value: object, path: str = "value") -> str:
    """Return the canonical decimal of a JSON number, without exponent; ``-0.0`` is ``0``.

    A float means the shortest decimal that is nearest to it.  Integers and decimals mean
    themselves.

    Raises:
        Rejected: R105 `value` is no number (a bool is no number); R106 it is infinite or NaN, or it
            is no whole number of 64 bits and its nearest double prints as another number.
    """
    if type(value) is not int and type(value) is not float and type(value) is not Decimal:
        raise Rejected(Code.OPEN_VALUE, path, "a number", type(value).__name__)
    whole = None if isinstance(value, float) else _whole(value)
    if whole is not None:
        return int.__repr__(whole)
    text = _expanded(_printed(value, path))
    same = type(value) is float or Decimal(text) == value
    expected = "a whole number of 64 bits, or a number that its nearest double prints back"
    ensure(same, Code.NO_VALUE, path, expected, value)
    return text


def is_exact(number: int | Fraction) -> bool:
    """Return whether a number is whole and from -2^63 to 2^64 - 1."""
    return number.denominator == 1 and LEAST_WHOLE <= number <= MOST_WHOLE


def _whole(value: int | Decimal) -> int | None:
    """Return the whole number of 64 bits that `value` equals, or None."""
    if isinstance(value, Decimal):
        if not value.is_finite() or not LEAST_WHOLE <= value <= MOST_WHOLE:
            return None
        return int(value) if value == value.to_integral_value() else None
    return value if LEAST_WHOLE <= value <= MOST_WHOLE else None


def is_decimal(text: str) -> bool:
    """Return whether `text` is a canonical exact decimal; long enough for every double."""
    return _LONG.fullmatch(text) is not None and text != "-0"


def compare(one: str, other: str) -> int:
    """Return -1, 0 or 1: the order of two canonical decimals."""
    left, right = Decimal(one), Decimal(other)
    return (left > right) - (left < right)


def ensure_survives(text: str, path: str, code: Code) -> None:
    """Refuse a decimal that :func:`canonical_number` would change.

    Raises:
        Rejected: `code` at `path`: it is not canonical, or :func:`canonical_number` changes it.
    """
    ensure(is_decimal(text), code, path, "a canonical decimal", text)
    try:
        canonical_number(Decimal(text))
    except Rejected as refusal:
        raise Rejected(code, path, refusal.expected, text) from None


def _printed(value: Number, path: str) -> str:
    """Return the shortest text of the nearest double."""
    if isinstance(value, Decimal) and not value.is_finite():
        raise Rejected(Code.NO_VALUE, path, "a finite number", value)
    try:
        nearest = float(value)
    except OverflowError:
        raise Rejected(Code.NO_VALUE, path, "a number that a double holds", value) from None
    text = float.__repr__(nearest)
    ensure("n" not in text, Code.NO_VALUE, path, "a finite number", value)  # inf, nan
    return text


def _expanded(printed: str) -> str:
    """Return a printed double without exponent and needless zeros."""
    found = _PRINTED.fullmatch(printed)
    if found is None:
        raise Rejected(Code.NO_VALUE, "value", "a printed double", printed)
    sign, whole, part, power = found[1], found[2], found[3] or "", int(found[4] or 0)
    digits, point = whole + part, len(whole) + power
    digits = "0" * max(0, 1 - point) + digits + "0" * max(0, point - len(digits))
    point = max(1, point)
    left, right = digits[:point].lstrip("0") or "0", digits[point:].rstrip("0")
    if left == "0" and not right:
        return "0"
    return f"{sign}{left}.{right}" if right else f"{sign}{left}"
