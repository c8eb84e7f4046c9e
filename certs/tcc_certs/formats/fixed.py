"""Fixed-point numbers and their text: Q64.64 with 20 digits, Q32.32 with 10.

A Q number is an integer; its value is that integer over 2^bits.  The text is the value rounded to
nearest, ties to even, at enough digits that reading it back to nearest is the identity.
"""

from __future__ import annotations

from tcc_certs.formats.codec import divide_nearest

Q64_MIN, Q64_MAX = -(1 << 127), (1 << 127) - 1
Q32_MIN, Q32_MAX = -(1 << 63), (1 << 63) - 1

# value * 10^20 / 2^64 is value * 5^20 / 2^44.
_FIVES, _DROP = 5**20, 44
_HALF, _FRACTION = 1 << _DROP - 1, (1 << _DROP) - 1


def format_q(value: int, bits: int, digits: int) -> str:
    """The decimal text of ``value / 2^bits`` with exactly `digits` fractional digits."""
    scaled = divide_nearest(abs(value) * 10**digits, 1 << bits)
    whole, part = divmod(scaled, 10**digits)
    return f"{'-' if value < 0 else ''}{whole}.{part:0{digits}d}"


def digits_q64(value: int) -> str:
    """:func:`format_q64` without its point, which stands before the last 20 of these."""
    product = value * _FIVES + _HALF
    scaled = product >> _DROP
    if not product & _FRACTION:
        scaled &= -2  # a tie, and it goes to the even one
    text = str(scaled)
    return text if len(text) > 21 else text.zfill(21 + (value < 0))


def format_q64(value: int) -> str:
    """Q64.64 text, 20 fractional digits: :func:`format_q` with shifts for its divisions."""
    text = digits_q64(value)
    return f"{text[:-20]}.{text[-20:]}"


def format_q32(value: int) -> str:
    """Q32.32 text, 10 fractional digits."""
    return format_q(value, 32, 10)
