"""The race: masses, winners, arrivals, keys and values, as they are defined.

Normative text: docs/spec/race.md.  Simple before fast: masses are integers in the units of the
parent's race count, an arrival is the exact sum that the definition writes down, and what is
published is an enclosure of it, narrowed until the rounding is decided.
Cost: two logarithms a child that did not win, one a child that did.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from tcc_certs.race.numbers import Enclosure, log_enclosure

Fraction: TypeAlias = "tuple[int, int]"
Scaled: TypeAlias = "tuple[int, int, int]"  # low, high, scale: low <= value * 2^scale <= high

WORD = 64
BASE_BITS = 104  # the first precision that is tried, and the one that arrivals are kept at


def child_masses(
    unit: int,
    accept: bool,
    edges: Iterable[tuple[int, int, int]],
    fraction_bits: int,
) -> list[int]:
    """The masses of a node's children in canonical order, in units of 2^-unit.

    Args:
        unit: such that all of them are integers.
        accept: whether `stop` is a child (the last one).
        edges: (weight W, count, unit below) in call order, n = count / 2^(unit below) the target's.
        fraction_bits: F.
    """
    masses = [weight * count << unit - fraction_bits - below for weight, count, below in edges]
    if accept:
        masses.append(1 << unit)
    return masses


def winner(x: int, total: int, masses: Sequence[int]) -> int | None:
    """The first child j with (2x+1) * total < 2^65 * (mass_0 + .. + mass_j); None: a phantom."""
    line = (2 * x + 1) * total
    running = 0
    for index, mass in enumerate(masses):
        running += mass
        if line < running << WORD + 1:
            return index
    return None


class Arrival:
    """t of a node: weight * t(parent), and E(x) / n on top where the node did not win.

    Never changed; its enclosure is made when it is first asked for.

    Attributes:
        parent: the parent's arrival; None at the root.
        weight: W of the call (2^F for `stop`; at the root unused).
        fraction_bits: F; the call's weight is W / 2^F.
        x: the uniform of the first arrival or of the residual; None for a winner.
        count: m of the node (1 at a leaf), and `unit`, with n = m / 2^unit.
    """

    __slots__ = ("_base", "count", "fraction_bits", "parent", "unit", "weight", "x")

    def __init__(
        self,
        parent: Arrival | None,
        weight: int,
        fraction_bits: int,
        x: int | None,
        count: int,
        unit: int,
    ) -> None:
        self.parent = parent
        self.weight = weight
        self.fraction_bits = fraction_bits
        self.x = x
        self.count = count
        self.unit = unit
        self._base: Scaled | None = None

    @property
    def base(self) -> Scaled:
        """An enclosure at BASE_BITS of relative precision."""
        base = self._base
        if base is None:
            parent = self.parent
            if parent is None or parent._base is not None:
                base = self._base = self._after(None if parent is None else parent._base, BASE_BITS)
            else:
                base = self._settled()
        return base

    def _settled(self) -> Scaled:
        """The same, of a node above which several have none; no recursion, as paths are long."""
        path = [self]
        node = self.parent
        while node is not None and node._base is None:
            path.append(node)
            node = node.parent
        base = None if node is None else node._base
        for step in reversed(path):
            base = step._base = step._after(base, BASE_BITS)
        return base or (0, 0, 0)

    def enclose(self, bits: int) -> Scaled:
        """Encloses t to `bits` bits of relative precision, less a bit or two a step."""
        if bits == BASE_BITS:
            return self.base
        path = [self]
        node = self.parent
        while node is not None:
            path.append(node)
            node = node.parent
        value: Scaled | None = None
        for step in reversed(path):
            value = step._after(value, bits)
        return self.base if value is None else value

    def _after(self, before: Scaled | None, bits: int) -> Scaled:
        """The same from an enclosure of the parent's arrival."""
        low, high, scale = 0, 0, 0
        if before is not None:
            low, high, scale = before
            low, high, scale = low * self.weight, high * self.weight, scale + self.fraction_bits
        if self.x is not None:
            more_low, more_high, more_scale = _residual(self.x, self.count, self.unit, bits)
            lift = more_scale - scale
            if lift >= 0:
                low, high, scale = low << lift, high << lift, more_scale
            else:
                more_low, more_high = more_low << -lift, more_high << -lift
            low, high = low + more_low, high + more_high
        drop = high.bit_length() - bits
        if drop > 0:
            low, high, scale = low >> drop, -(-high >> drop), scale - drop
        return low, high, scale


def _residual(x: int, count: int, unit: int, bits: int) -> Scaled:
    """Encloses E(x) / n, n = count / 2^unit, to `bits` bits of relative precision or a few less."""
    odd = 2 * x + 1
    # E > U = odd / 2^65, so this many bits after the point leave at least `bits` of them in E.
    places = bits + WORD + 2 - odd.bit_length()
    low, high = log_enclosure(1 << WORD + 1, (1 << WORD + 1) - odd, places)
    size = count.bit_length()
    return (low << size) // count, -((-high << size) // count), places + size - unit


def neg_log(arrival: Arrival, bits: int) -> Enclosure:
    """Encloses -ln t with `bits` fractional bits, but for the few that the path has lost."""
    low, high, scale = arrival.enclose(bits)
    log_low, log_high = log_enclosure(low, 1, bits, -scale)
    # ln high <= ln low + (high - low) / low
    wide = -((low - high << bits) // low)
    return -(log_high + wide), -log_low
