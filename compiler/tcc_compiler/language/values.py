"""Values of listed parameters, and decimals: exact, from text to fraction to canonical text.

Normative text: docs/spec/core.md, section 2. There are no floats. Cost: linear in the text, plus
the arithmetic on the digits.
"""

from __future__ import annotations

from fractions import Fraction

from tcc_certs.values.declared import text_of

NANO = 10**9
REST = "*"  # stands for all answers that are not listed; no value has this as its bare text


def parse_decimal(text: str) -> Fraction:
    """Return the number that ``digits`` or ``digits.digits`` stands for."""
    whole, _, part = text.partition(".")
    return Fraction(int(whole + part), 10 ** len(part))


def decimal_text(value: Fraction) -> str:
    """Return the shortest exact decimal, without superfluous zeros; zero is ``0``.

    `value` must be the quotient of an integer and a power of ten.
    """
    places = 0
    bottom = value.denominator
    while bottom % 10 == 0:
        bottom //= 10
        places += 1
    # The rest is a power of 2 or of 5; each factor needs one more place.
    while bottom > 1:
        bottom //= 2 if bottom % 2 == 0 else 5
        places += 1
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    sign = "-" if value < 0 else ""
    if not places:
        return sign + digits
    return f"{sign}{digits[:-places]}.{digits[-places:]}"


def scaled(value: Fraction, unit: int) -> int | None:
    """Return `value` in units of 1/`unit`; None if it is not a whole number of them."""
    number = value * unit
    return number.numerator if number.denominator == 1 else None


def string_value(text: str) -> str:
    """Return the canonical text of a string: a name is bare, any other text is in quotes.

    ``true``, ``false`` and ``null`` stay in quotes, because bare they are other values. `text` must
    not contain half of a surrogate pair.
    """
    return text_of(text) or ""
