"""Amounts of an account: cents, milliseconds and epsilon, each with or without a cap.

Text: docs/budgets.md.  Cost: three integers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import parse_decimal

NAMES: Final = ("price", "latency_ms", "epsilon")
_MOST: Final = 1 << 53
_NANO: Final = 9


class AccountAmounts(NamedTuple):
    """The amounts of one question, or of several together.

    Attributes:
        price: cents.
        latency_ms: milliseconds.
        epsilon: in units of 10^-9.
    """

    price: int = 0
    latency_ms: int = 0
    epsilon: int = 0

    def plus(self, other: AccountAmounts) -> AccountAmounts:
        """Return the sum."""
        return AccountAmounts(*(one + more for one, more in zip(self, other, strict=True)))

    def less(self, other: AccountAmounts) -> AccountAmounts:
        """Return the difference, which may have numbers below 0."""
        return AccountAmounts(*(one - less for one, less in zip(self, other, strict=True)))


class Caps(NamedTuple):
    """The largest amounts that an account may have spent and reserved together; None: no cap."""

    price: int | None = None
    latency_ms: int | None = None
    epsilon: int | None = None

    def left(self, used: AccountAmounts) -> Remainder:
        """Return the remainder of each cap."""
        pairs = zip(self, used, strict=True)
        return Remainder(*(None if cap is None else cap - amount for cap, amount in pairs))


class Remainder(NamedTuple):
    """The remainder of each cap, below 0 if the cap is exceeded; None: no cap."""

    price: int | None = None
    latency_ms: int | None = None
    epsilon: int | None = None

    def holds(self, amounts: AccountAmounts) -> bool:
        """Return whether these amounts are left."""
        return all(
            left is None or amount <= left for left, amount in zip(self, amounts, strict=True)
        )

    @property
    def overdrawn(self) -> bool:
        """True if a cap is exceeded."""
        return any(left is not None and left < 0 for left in self)

    def capped(self) -> Iterator[tuple[str, int]]:
        """Yield the name and the remainder of each amount that has a cap."""
        for name, left in zip(NAMES, self, strict=True):
            if left is not None:
                yield name, left


def caps_of(price: object, latency_ms: object, epsilon: object) -> Caps:
    """Check the caps of an account, and return them.

    Args:
        price, latency_ms: ints of at least 0, or None.
        epsilon: an exact decimal of at most nine places, as a text; or None.

    Raises:
        Rejected: K105: a cap is outside its range.
    """
    return Caps(whole_cap("price", price), whole_cap("latency_ms", latency_ms), _nano(epsilon))


def whole_cap(name: str, value: object) -> int | None:
    """Check a cap, and return it: an int from 0 to 2^53 - 1, or None.

    Raises:
        Rejected: K105: otherwise.
    """
    if value is None:
        return None
    if type(value) is not int or not 0 <= value < _MOST:
        expected = f"an integer from 0 to {_MOST - 1}"
        raise Rejected(Code.ACCOUNT_CAPS, name, expected, f"{type(value).__name__} {value}")
    return value


def _nano(epsilon: object) -> int | None:
    if epsilon is None:
        return None
    expected = "an exact decimal of at least 0, with at most nine places, as a text"
    if not isinstance(epsilon, str):
        raise Rejected(
            Code.ACCOUNT_CAPS, "epsilon", expected, f"{type(epsilon).__name__} {epsilon}"
        )
    number, places = parse_decimal(epsilon, "epsilon", Code.ACCOUNT_CAPS)
    ensure(number >= 0 and places <= _NANO, Code.ACCOUNT_CAPS, "epsilon", expected, epsilon)
    return whole_cap("epsilon", number * 10 ** (_NANO - places))
