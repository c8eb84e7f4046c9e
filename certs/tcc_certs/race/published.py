"""What is published of an arrival: -ln t, keys, values and U_P, each rounded once.

Normative text: docs/spec/race.md, section 7.  An enclosure of 104 bits decides nearly all of them;
where it does not, it is narrowed until it does.  Cost: a logarithm a node, an exponential a leaf.
"""

from __future__ import annotations

from typing import NamedTuple

from tcc_certs.formats.decimals import divide_nearest
from tcc_certs.formats.fixed import Q64_MAX, Q64_MIN
from tcc_certs.race.arrivals import BASE_BITS, WORD, Arrival, Fraction, neg_log
from tcc_certs.race.numbers import Enclosure, decide, exp_enclosure
from tcc_certs.race.weights import enclose_fraction

_BASE_DROP = BASE_BITS - WORD
_BASE_HALF = 1 << _BASE_DROP - 1


class Published(NamedTuple):
    """What a ledger says of a node: Q64.64 numbers, and which of them had to be clamped."""

    neg_log_t: int
    key: int
    neg_log_t_clamped: bool
    key_clamped: bool

    @property
    def clamped(self) -> bool:
        """Whether either was."""
        return self.neg_log_t_clamped or self.key_clamped


def clamp(value: int) -> int:
    """The nearest number that Q64.64 has."""
    return min(max(value, Q64_MIN), Q64_MAX)


def publish(arrival: Arrival, bound: Fraction) -> Published:
    """-ln t, and the key `bound` - ln t, each rounded once; at a leaf the key is its value.

    Args:
        arrival: t of the node.
        bound: M of the node, exact: numerator and positive denominator.

    Raises:
        Rejected: D202 where 4096 bits do not decide a rounding.
    """
    base = neg_log(arrival, BASE_BITS)
    plain, key = _rounded_once(base, bound)
    if plain is None or key is None:
        return _decided(arrival, bound, base)
    return _published(plain, key)


def _rounded_once(base: Enclosure, bound: Fraction) -> tuple[int | None, int | None]:
    """-ln t and the key where an enclosure at BASE_BITS decides them, ties left open."""
    low, high = base[0] + _BASE_HALF, base[1] + _BASE_HALF
    more = (bound[0] << BASE_BITS) // bound[1]
    plain, key = low >> _BASE_DROP, low + more >> _BASE_DROP
    return (
        plain if low - 1 >> _BASE_DROP == plain == high >> _BASE_DROP else None,
        key if low + more - 1 >> _BASE_DROP == key == high + more + 1 >> _BASE_DROP else None,
    )


def _decided(arrival: Arrival, bound: Fraction, base: Enclosure) -> Published:
    """The same with as much precision as it takes; `base` is the enclosure at BASE_BITS."""

    def rounded(bits: int, numerator: int, denominator: int) -> Enclosure:
        low, high = base if bits == BASE_BITS else neg_log(arrival, bits)
        more_low, more_high = enclose_fraction(numerator, denominator, bits)
        unit = 1 << bits - WORD
        return divide_nearest(low + more_low, unit), divide_nearest(high + more_high, unit)

    plain = decide(lambda bits: rounded(bits, 0, 1), "neg_log_t", BASE_BITS)
    key = decide(lambda bits: rounded(bits, *bound), "key_raw", BASE_BITS)
    return _published(plain, key)


def _published(plain: int, key: int) -> Published:
    if Q64_MIN <= plain <= Q64_MAX and Q64_MIN <= key <= Q64_MAX:
        return Published(plain, key, False, False)
    held, held_key = clamp(plain), clamp(key)
    return Published(held, held_key, held != plain, held_key != key)


def leaf_uniform(arrival: Arrival) -> int:
    """U_P = floor(2^64 * (1 - exp(-t))) of a leaf.

    Raises:
        Rejected: D202 where 4096 bits do not decide it.
    """

    def enclose(bits: int) -> Enclosure:
        low, high, scale = arrival.enclose(bits)
        if (low >> scale if scale >= 0 else low << -scale) >= 46:
            return (1 << WORD) - 1, (1 << WORD) - 1  # 0 < e^-46 < 2^-64
        if scale > WORD and high >> scale - WORD - 1 == 0:
            return 0, 0  # 1 - e^-t < t < 2^-65
        least, most = exp_enclosure((-high, -low), scale, bits)
        return ((1 << bits) - most) >> bits - WORD, ((1 << bits) - least) >> bits - WORD

    return decide(enclose, "U_P", BASE_BITS)
