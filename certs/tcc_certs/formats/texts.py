"""Canonical texts: names, and exact decimals with nano-units and division to the nearest integer.

Normative text: docs/spec/core.md, section 2.  An identifier that is no reserved word stands bare;
every other name stands as a canonical JSON string, so no two names have one text.
Cost: linear in the text.
"""

from __future__ import annotations

import re

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import Json, encode
from tcc_certs.plain import is_plain

STATEMENT_WORDS = (
    "grammar", "use", "tool", "rule", "plan", "start", "goal", "limit", "require", "forbid",
    "accept", "reject", "expect",
)  # fmt: skip
RESERVED = frozenset((*STATEMENT_WORDS, "version", "any", "when", "before", "after", "with"))
MAX_NAME = 128  # code points

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def is_identifier(text: str) -> bool:
    """Whether `text` is a letter or ``_``, then letters, digits and ``_``, all of ASCII."""
    return _IDENTIFIER.fullmatch(text) is not None


def is_bare(name: str) -> bool:
    """Whether a name stands in canonical texts without quotes."""
    return is_identifier(name) and name not in RESERVED


def written(name: str) -> str:
    """A name as canonical texts have it: bare where it may be, else in quotes."""
    return name if is_bare(name) else encode(name).decode()


def read_name(value: Json, path: str, code: Code, *_: object) -> str:
    """The name of a tool or of a parameter.

    Raises:
        Rejected: `code` at `path`.
    """
    if not isinstance(value, str):
        raise Rejected(code, path, "a text", value)
    size = len(value)
    ensure(1 <= size <= MAX_NAME, code, path, f"a name of 1 to {MAX_NAME} characters", size)
    ensure(is_plain(value), code, path, "no control or hidden characters", value)
    return value


_EXACT = re.compile(r"-?(0|[1-9][0-9]{0,39})(\.[0-9]{0,39}[1-9])?")
_LONG = re.compile(r"-?(0|[1-9][0-9]{0,399})(\.[0-9]{0,399}[1-9])?")


def divide_nearest(numerator: int, denominator: int) -> int:
    """`numerator / denominator` to the nearest integer, ties to even; `denominator` > 0."""
    quotient, rest = divmod(2 * numerator + denominator, 2 * denominator)
    return quotient - 1 if rest == 0 and quotient & 1 else quotient


def parse_decimal(text: str, path: str, code: Code) -> tuple[int, int]:
    """An exact decimal as ``(numerator, places)``: its value is ``numerator / 10**places``.

    Canonical text only: no sign for zero, no leading or trailing zeros.

    Raises:
        Rejected: `code` where `text` is not canonical.
    """
    if _EXACT.fullmatch(text) is None or text == "-0":
        raise Rejected(code, path, "an exact decimal in canonical text", text)
    whole, _, part = text.partition(".")
    return int(whole + part), len(part)


def format_decimal(numerator: int, places: int) -> str:
    """The canonical text of ``numerator / 10**places``: the inverse of :func:`parse_decimal`."""
    digits = str(abs(numerator)).zfill(places + 1)
    point = len(digits) - places
    part = digits[point:].rstrip("0")
    sign = "-" if numerator < 0 else ""
    return f"{sign}{digits[:point]}.{part}" if part else f"{sign}{digits[:point]}"


def nano_of(text: str) -> int | None:
    """The whole number of nano-units, unsigned 64 bits, that `text` is; None where it is none.

    Args:
        text: of any length; canonical text alone is a number.
    """
    if len(text) > 40 or _EXACT.fullmatch(text) is None or text.startswith("-"):
        return None
    whole, _, part = text.partition(".")
    if len(part) > 9:
        return None
    nano = int(whole + part.ljust(9, "0"))
    return nano if nano < 1 << 64 else None


def is_decimal(text: str) -> bool:
    """Whether `text` is an exact decimal in canonical text; long enough for every double."""
    return _LONG.fullmatch(text) is not None and text != "-0"


def scaled(*texts: str) -> tuple[int, ...]:
    """Canonical decimals as integers of one unit: they compare and add up as the decimals do."""
    parts = [text.partition(".")[::2] for text in texts]
    places = max(len(part) for _, part in parts)
    return tuple(int(whole + part.ljust(places, "0")) for whole, part in parts)
