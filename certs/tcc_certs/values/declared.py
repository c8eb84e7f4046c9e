"""Canonical texts of listed values, and the plain types of open fields.

Normative text: docs/spec/core.md, sections 2 and 3.  :mod:`tcc_certs.values.types` decides which
values a type has.  Each listed value is one JSON value.  An identifier is written bare and never
quoted.  The words ``true``, ``false`` and ``null`` mean the JSON values.  A number means each of
its JSON forms (5, 5.0).  Cost: linear in the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import decode, encode, is_identifier

Scalar: TypeAlias = "str | int | Decimal | bool | None"

_WORDS: dict[str, Scalar] = {"true": True, "false": False, "null": None}
_NUMBER = re.compile(r"(?!-0$)-?(?:0|[1-9][0-9]{0,3999})(?:\.[0-9]{0,3999}[1-9])?")
MOST_DIGITS = 4000  # most digits of a number, on each side of the point
_MOST_BITS = (10**MOST_DIGITS).bit_length()


def json_of(text: str) -> Scalar:
    """Return the JSON value of a canonical text; a number that is not whole is an exact `Decimal`.

    Raises:
        Rejected: C801: no value has this text.
    """
    if text in _WORDS:
        return _WORDS[text]
    if _NUMBER.fullmatch(text) is not None:
        return Decimal(text) if "." in text else int(text)
    found = decode(text.encode("utf-8", "surrogatepass"), "value") if text[:1] == '"' else text
    if not isinstance(found, str) or text_of(found) != text:
        raise Rejected(Code.CORE_SCHEMA, "value", "the canonical text of a value", text)
    return found


def text_of(value: object) -> str | None:
    """Return the canonical text of a JSON value; None if it cannot be a listed value.

    A float means the shortest decimal that is nearest to it.
    """
    if value is None or isinstance(value, bool):
        return "null" if value is None else "true" if value else "false"
    if isinstance(value, str):
        return _text_of_text(str.__str__(value))
    if isinstance(value, int):
        return _text_of_whole(value)
    if isinstance(value, float):
        return _text_of_number(Decimal(float.__repr__(value)))
    return _text_of_number(value) if isinstance(value, Decimal) else None


def _text_of_text(value: str) -> str | None:
    if is_identifier(value) and value not in _WORDS:
        return value
    try:
        return encode(value).decode()
    except UnicodeEncodeError:
        return None


def _text_of_whole(value: int) -> str | None:
    if value.bit_length() > _MOST_BITS:  # otherwise Python may refuse to print it
        return None
    text = int.__repr__(value)
    return text if len(text) - (value < 0) <= MOST_DIGITS else None


def _text_of_number(value: Decimal) -> str | None:
    if not value.is_finite():
        return None
    _, digits, power = value.as_tuple()
    if not isinstance(power, int) or len(digits) + power > MOST_DIGITS or -power > MOST_DIGITS:
        return None
    text = format(value, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if value.is_zero() else text


@dataclass(frozen=True, slots=True, kw_only=True)
class TextType:
    """A text of `least` to `most` code points.

    Attributes:
        pattern: a pattern that the whole text matches.
        among: the allowed texts; empty: any text.
    """

    least: int = 0
    most: int = 65536
    pattern: str | None = None
    among: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberType:
    """A number, or a whole number; `low` and `high` are canonical decimals, both or neither."""

    whole: bool
    low: str | None = None
    high: str | None = None


@dataclass(frozen=True, slots=True)
class FlagType:
    """True or false."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonType:
    """Any JSON value whose canonical text has at most `most` bytes."""

    most: int = 65536


@dataclass(frozen=True, slots=True, kw_only=True)
class PathType:
    """An absolute POSIX path; `under` is the directory that contains it, in normal form."""

    under: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlType:
    """An absolute http or https URL; `under` is the scope that contains it, in normal form."""

    under: str | None = None


OpenType: TypeAlias = TextType | NumberType | FlagType | JsonType | PathType | UrlType
