"""What a parameter's values are: listed, each a canonical text; or open, all those of a type.

Normative text: docs/spec/core.md, section 2.  What the values of a type are is decided in
:mod:`tcc_certs.values.types`.  One JSON value is one listed value: a bare identifier and the quoted
same text are one text, ``true``, ``false`` and ``null`` stand bare for those values of JSON, and a
number for every way of writing it (5, 5.0).
Cost: linear in the text.
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
MOST_DIGITS = 4000  # of a number, on each side of the point
_MOST_BITS = (10**MOST_DIGITS).bit_length()


def json_of(text: str) -> Scalar:
    """The JSON value of a canonical text; a number that is not whole is a `Decimal`, exact.

    Raises:
        Rejected: C801 no value has this text.
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
    """The canonical text of a JSON value; None where no listed value can be it.

    A float counts as the shortest decimal that is nearest to it.
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
    if value.bit_length() > _MOST_BITS:  # else Python may refuse to print it
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
        pattern: a pattern that all of it matches.
        among: the texts that it may be; empty: any text.
    """

    least: int = 0
    most: int = 65536
    pattern: str | None = None
    among: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberType:
    """A number, or a whole one; `low` and `high` are canonical decimals, both or neither."""

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
    """An absolute POSIX path; `under`: the directory that contains it, in normal form."""

    under: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlType:
    """An absolute http or https URL; `under`: the scope that contains it, in normal form."""

    under: str | None = None


OpenType: TypeAlias = TextType | NumberType | FlagType | JsonType | PathType | UrlType
