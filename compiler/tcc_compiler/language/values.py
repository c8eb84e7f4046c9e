"""Values of listed parameters, and decimals: exact, from text to fraction and to canonical text.

Normative text: docs/spec/core.md, section 2.  No floats.  Cost: linear in the text, and that of
arithmetic on so many digits.
"""

from __future__ import annotations

from fractions import Fraction

from tcc_certs.values.declared import text_of

NANO = 10**9
REST = "*"  # the text of whatever a listed answer does not list; no value has it bare


def parse_decimal(text: str) -> Fraction:
    """The number that ``digits`` or ``digits.digits`` stands for."""
    whole, _, part = text.partition(".")
    return Fraction(int(whole + part), 10 ** len(part))


def decimal_text(value: Fraction) -> str:
    """The shortest exact decimal: no leading or trailing zeros, ``0`` for zero.

    `value` is the quotient of an integer and a power of ten.
    """
    places = 0
    bottom = value.denominator
    while bottom % 10 == 0:
        bottom //= 10
        places += 1
    # What is left is a power of 2 or of 5; each takes one place more.
    while bottom > 1:
        bottom //= 2 if bottom % 2 == 0 else 5
        places += 1
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    sign = "-" if value < 0 else ""
    if not places:
        return sign + digits
    return f"{sign}{digits[:-places]}.{digits[-places:]}"


def scaled(value: Fraction, unit: int) -> int | None:
    """`value` in units of 1/`unit`, None where it is no whole number of them."""
    number = value * unit
    return number.numerator if number.denominator == 1 else None


def string_value(text: str) -> str:
    """The canonical text of a string in quotes: a name stands bare, anything else in quotes.

    ``true``, ``false`` and ``null`` stay in quotes: bare they are other values of JSON.  `text` has
    no half of a surrogate pair.
    """
    return text_of(text) or ""
