"""Suffix counts and cost bounds of every state of a table.

For each state: the number of plans, the race count, the least cost to go, the best residual to go.
These are the paper's SuffixCountDP, with exact integers of any size.

The value of a state is a weighted sum over all words from it. It is 1 if the state accepts, plus
for each edge the letter's weight times the value of the target, divided by 2^F. A state of rank d
(the length of its longest word) stores its value times 2^(F d), which is an integer.
Values are computed level by level in numpy, as digits in 64-bit integers. Python's integers are
used, edge by edge, where a weight is too large for a digit, where levels have few edges, and where
values are rounded.
Specification: docs/spec/artifact.md, C3 to C5. Weights: docs/spec/race.md, section 3.
Cost: one logarithm and one exponential for each distinct cost. One multiplication and one addition
for each edge and digit, or one product of long integers for each edge. One pass over the edges for
each bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tcc_certs.formats.artifact import MAX_ROUND_BITS
from tcc_certs.policy.core import Core
from tcc_certs.race.enclosures import Beta, call_residual, call_weight, fraction_bits
from tcc_certs.rounded import round_up
from tcc_compiler.automata.letters import Letters
from tcc_compiler.automata.table import Ints, Machine, Table, best_to_go, exact_array, summed
from tcc_compiler.frozen import frozen
from tcc_compiler.resources import CompileRefused, Guard

# Weighted sums.

# Digits. A value is a column of digits, the most significant on top. So one lookup, one
# multiplication and one cumulative sum serve all edges and digits of a level. A digit may exceed
# its base, as long as no sum exceeds 63 bits. Carries move up once per level, or later where that
# is safe; at the end all remaining carries are made.

# [width, states], least significant limb first.
Limbs: TypeAlias = NDArray[np.uint64]
Words: TypeAlias = NDArray[np.uint64]

# With digits of this many bits a dozen levels of small weights pass before a carry is needed.
_SHORT = 44
# How many numbers are processed at a time.
_PORTION = 1 << 20


def level_sums(
    table: Table,
    weights: Sequence[int],
    bits: int,
    fraction_bits: int,
    guard: Guard,
    check_room: Callable[[int], None],
    most_rows: int,
) -> Limbs:
    """Return [limbs, states], each state's value at the scale 2^(F rank), in minimal width.

    Args:
        table: ranked.
        weights: [letters], at least 0.
        bits: the bits of a digit, at least 20 and at most what :func:`digit_bits` returns.
        check_room: called with the bits in use after each level. It must raise where they would
            fill `most_rows` rows.
        most_rows: the most rows of digits that may be in use.
    """
    if not fraction_bits and all(_adjacent(table)):
        bits = min(bits, _SHORT)
    digits = _Digits(table, weights, bits, fraction_bits, most_rows)
    rows = 0
    for rank, (states, edges) in enumerate(table.bands(), 1):
        guard.tick(edges.stop - edges.start)
        digits.add_level(rank, states, edges)
        if digits.rows > rows:
            rows = digits.rows
            check_room(rows * bits * table.states)
    return digits.limbs()


def digit_bits(table: Table, weights: Sequence[int]) -> int:
    """Return the most bits of a digit; 0 or less if the weights are too large for digits."""
    return 61 - max(_level_totals(table, weights)).bit_length()


def _level_totals(table: Table, weights: Sequence[int]) -> list[int]:
    """Return [levels], a bound on the sum of the weights of one state's edges."""
    degrees = np.maximum.reduceat(table.degree, table.levels[:-1]).tolist()
    heaviest = sorted(weights, reverse=True)
    if table.nondeterministic:
        return [degree * heaviest[0] for degree in degrees]
    # In a deterministic table a state has at most one edge for each letter.
    most = list(accumulate(heaviest, initial=0))
    return [most[degree] for degree in degrees]


class _Digits:
    """The digits of the values of all states; levels are set from the lowest up.

    Attributes:
        held: [rows, states]. Row `_unit` counts ones; a digit of any row is worth 2^bits times the
            same digit of the next row.
        top, bottom: the rows in use are top .. bottom-1.
    """

    def __init__(
        self,
        table: Table,
        weights: Sequence[int],
        bits: int,
        fraction_bits: int,
        most_rows: int,
    ) -> None:
        self._table, self._bits, self._fraction = table, bits, fraction_bits
        alike = min(weights) == max(weights) == 1
        self._weights = None if alike else np.array(weights, dtype=np.int64)
        self._whole, self._part = divmod(fraction_bits, bits)
        # After this many passes no digit exceeds 2 * 2^bits + 1.
        self._passes = max(1, -(-63 // bits) - 1)
        most = _level_totals(table, weights)
        waits = [False] * len(most)
        if not fraction_bits:
            waits = _waiting(_adjacent(table), most, (2 << bits) + 1)
        spare = self._whole + self._passes + 2
        above = min(_bits_above(most, fraction_bits) // bits + 1, most_rows) + spare
        below = min(-(-fraction_bits * len(most) // bits), most_rows + self._whole) + 2
        self._unit, self.top, self.bottom = above, above - self._whole, above + 1
        # Rows that are never written to take no memory.
        self.held = np.zeros((above + 1 + below, table.states), dtype=np.int64)
        self.held[above] = table.accept
        accepts = np.logical_or.reduceat(table.accept, table.levels[:-1]).tolist()
        self._ways = list(zip(waits, accepts, strict=True))
        # Where the edges of a state begin, counted from the first edge of its level.
        bottoms = table.edge_start.take(table.levels[:-1])
        self._first = table.edge_start[:-1] - np.repeat(bottoms, np.diff(table.levels))

    @property
    def rows(self) -> int:
        """How many rows are in use."""
        return self.bottom - self.top

    def add_level(self, rank: int, states: slice, edges: slice) -> None:
        """Set the digits of the states of a level, a portion at a time."""
        waits, accepts = self._ways[rank]
        top, first = self.top, self._first[states]
        if waits and not accepts:
            rows = slice(top, self.bottom)
            summed(self._products(rows, edges), first, self.held[rows, states])
            return
        count = edges.stop - edges.start
        parts = min(count * self.rows // _PORTION, len(first) - 1) + 1
        marks = [len(first) * part // parts for part in range(parts)]
        ends = [*first.take(marks).tolist(), count]
        places = zip(pairwise([*marks, len(first)]), pairwise(ends), strict=True)
        for (low, high), (begin, end) in places:
            some = slice(states.start + low, states.start + high)
            values = self._products(
                slice(top, self.bottom), slice(edges.start + begin, edges.start + end)
            )
            self._add(some, top, values, first[low:high] - begin, accepts, waits)
        # A value of rank d has F * d bits after the binary point.
        self.bottom = self._unit + 1 - (-self._fraction * rank // self._bits)

    def _products(self, rows: slice, edges: slice) -> Ints:
        """Return [rows, edges], the digits of the targets times the weights of the letters."""
        values = self.held[rows].take(self._table.target[edges], axis=1, mode="clip")
        if self._weights is not None:
            values *= self._weights.take(self._table.letter[edges])
        return values

    def _add(
        self, states: slice, top: int, values: Ints, first: Ints, accepts: bool, waits: bool
    ) -> None:
        """Set the digits of some states of one level; `top` is the first row of `values`."""
        passes = self._passes
        # Add empty rows on top for the carries.
        sums = np.zeros((passes + len(values), len(first)), dtype=np.int64)
        summed(values, first, sums[passes:])
        if accepts:
            # The unit row still has the acceptance of the state. Sums are divided by 2^F later, so
            # acceptance is multiplied by 2^F before it is added.
            accepting = self.held[self._unit, states] << self._part
            sums[passes + self._unit - self._whole - top] += accepting
        if waits:
            self.held[top : self.bottom, states] = sums[passes:]
            return
        for _ in range(passes):
            carry = sums >> self._bits
            sums &= (1 << self._bits) - 1
            sums[:-1] += carry[1:]
        self._set(states, top, sums)

    def _set(self, states: slice, top: int, sums: Ints) -> None:
        """Set the digits to `sums` divided by 2^F; `sums` has rows for carries above row `top`."""
        first = top - self._passes + self._whole
        while first < top and not sums[0].any():
            sums = sums[1:]
            first += 1
        self.top = min(self.top, first)
        held, last, part = self.held, first + len(sums), self._part
        held[first:last, states] = sums >> part
        if part:
            low = (sums & ((1 << part) - 1)) << (self._bits - part)
            held[first + 1 : last + 1, states] += low

    def limbs(self) -> Limbs:
        """Return the values at their scales."""
        self._carry()
        table, bits = self._table, self._bits
        held = self.held.view(np.uint64)
        size = ((self.bottom - self.top) * bits >> 6) + 1
        if self._fraction:
            limbs = np.zeros((size, table.states), dtype=np.uint64)
            for rank, (first, last) in enumerate(pairwise(table.levels.tolist())):
                # Skip the bits that are below the scale of this rank.
                below = (self.bottom - 1 - self._unit) * bits - self._fraction * rank
                width = min(size, ((self.bottom - self.top) * bits - below + 63) // 64)
                place, shift = np.divmod(np.arange(width) * 64 + below, bits)
                row = self.bottom - 1 - place
                limbs[:width, first:last] = _joined(held[:, first:last], row, shift, bits)
        else:
            place, shift = np.divmod(np.arange(size) * 64, bits)
            limbs = _joined(held, self.bottom - 1 - place, shift, bits)
        while size > 1 and not limbs[size - 1].any():
            size -= 1
        return limbs[:size]

    def _carry(self) -> None:
        """Make all carries. Then the row above the top is zero, as :func:`_joined` needs."""
        mask = (1 << self._bits) - 1
        for row in range(self.bottom - 1, self.top - 1, -1):
            carry = self.held[row] >> self._bits
            if carry.any():
                self.held[row] &= mask
                self.held[row - 1] += carry
        self.top -= bool(self.held[self.top - 1].any())


def _adjacent(table: Table) -> list[bool]:
    """Return [levels], whether all edges of a level lead to the level just below it."""
    firsts = table.edge_start.take(table.levels[1:-1])
    least = np.minimum.reduceat(table.target, firsts) if len(firsts) else firsts
    return [False, *(least >= table.levels[:-2]).tolist()]


def _waiting(adjacent: list[bool], totals: list[int], carried: int) -> list[bool]:
    """Return [levels], whether carries can wait, because sums of uncarried digits still fit.

    Args:
        totals: [levels], the largest sum of weights by which a digit is multiplied.
        carried: the largest digit after carrying.
    """
    limit = ((1 << 63) - 1) // max(*totals, 1) - 1
    most = worst = 1
    waits = [True]
    for is_adjacent, total in zip(adjacent[1:], totals[1:], strict=True):
        most = (most if is_adjacent else worst) * total + 1
        waits.append(most <= limit)
        if most > limit:
            most = carried
        worst = max(worst, most)
    return waits


def _bits_above(totals: list[int], fraction_bits: int) -> int:
    """Return an upper bound on a value's bits before the binary point; unused rows cost nothing."""
    most = 1
    for total in totals[1:]:
        # A value is at most 1 for acceptance plus total / 2^F times the largest value below.
        most = max(most, max(0, most + total.bit_length() - fraction_bits) + 1)
    return most


def _joined(digits: Words, row: Ints, shift: Ints, bits: int) -> Words:
    """Return [words, states]: 64 bits each, from bit `shift` of `row` upwards into higher rows."""
    moved = shift.astype(np.uint64)[:, None]
    joined: Words = digits[row] >> moved
    held = bits - shift
    while bool(np.any(held < 64)):
        row = row - 1
        # Where a word is already complete, the row that is read next adds nothing to it.
        moved = np.minimum(held, 63).astype(np.uint64)[:, None]
        higher = digits[np.maximum(row, 0)] << moved
        higher[held >= 64] = 0
        joined |= higher
        held = held + bits
    return joined


_MOST_BITS = 1 << 33
_LEAST_DIGIT = 20
_NARROW = 64  # edges per level; with fewer, working edge by edge is faster
_NEAR = 256  # the most bits between terms for which a sum is written out
_STEPS = 1 << 10  # between two calls of the guard


def weighted_sums(table: Table, weights: Sequence[int], fraction_bits: int, guard: Guard) -> Limbs:
    """Return [limbs, states], each state's value at the scale 2^(F rank), in minimal width.

    Args:
        table: ranked.
        weights: [letters], at least 0.

    Raises:
        CompileRefused: TCC407 if the values take more than a gigabyte.
    """
    bits = digit_bits(table, weights)
    # Each level takes several numpy calls, however few edges it has.
    narrow = table.edges < _NARROW * (len(table.levels) - 1)
    if bits < _LEAST_DIGIT or narrow:
        return packed(list(_long_sums(table, weights, fraction_bits, guard)))
    most = _MOST_BITS // (bits * table.states)
    return level_sums(table, weights, bits, fraction_bits, guard, _check_room, most)


def rounded_sums(
    table: Table, weights: Sequence[int], fraction_bits: int, round_bits: int, guard: Guard
) -> tuple[list[int], list[int]]:
    """Return mantissas and exponents, [states], of values rounded up to `round_bits` bits.

    The value of a state is mantissa * 2^exponent, at the scale 2^(F rank). Exponents grow with the
    rank, mantissas do not, so long integers are never written out.
    """
    first, target = table.edge_start.tolist(), table.target.tolist()
    factor = [weights[letter] for letter in table.letter.tolist()]
    accept = table.accept.tolist()
    value, exponent = [0] * table.states, [0] * table.states
    # The exponent minus F * rank: relative to this, every edge of a state adds the same shift.
    under = [0] * table.states
    ranks = np.repeat(np.arange(len(table.levels) - 1), np.diff(table.levels))
    units = (fraction_bits * ranks).tolist()
    waiting = 0
    for q, (begin, end) in enumerate(pairwise(first)):
        waiting += 1 + end - begin
        if waiting > _STEPS:
            guard.tick(waiting)
            waiting = 0
        unit = units[q]
        above = unit - fraction_bits
        if accept[q]:
            total, low = 1, unit
        else:
            total, low = 0, under[target[begin]] + above if begin < end else 0
        far = False
        for edge in range(begin, end):
            p = target[edge]
            over = under[p] + above - low
            if not over:
                total += factor[edge] * value[p]
            elif 0 < over <= _NEAR:
                total += factor[edge] * value[p] << over
            elif -_NEAR <= over < 0:
                total = (total << -over) + factor[edge] * value[p]
                low += over
            else:
                far = True
        extra = total.bit_length() - round_bits
        if far or (extra < 0 and low):
            terms = [
                (factor[edge] * value[target[edge]], under[target[edge]] + above)
                for edge in range(begin, end)
            ]
            total, low = round_up([*terms, (int(accept[q]), unit)], round_bits)
        elif extra > 0:
            total = -(-total >> extra)
            low += extra
            # Rounding up may carry into one more bit; the mantissa is then a power of two.
            if total >> round_bits:
                total >>= 1
                low += 1
        value[q], exponent[q] = total, low
        under[q] = low - unit
    guard.tick(waiting)
    return value, exponent


def _long_sums(
    table: Table, weights: Sequence[int], fraction_bits: int, guard: Guard
) -> Iterator[int]:
    """Yield the exact value of each state, computed edge by edge."""
    first, target = table.edge_start.tolist(), table.target.tolist()
    factor = [weights[letter] for letter in table.letter.tolist()]
    accept = table.accept.tolist()
    value = [0] * table.states
    level = np.repeat(np.arange(len(table.levels) - 1), np.diff(table.levels)).tolist()
    widest = 0
    for q, (begin, end) in enumerate(pairwise(first)):
        guard.tick(1 + end - begin)
        below = level[q] - 1
        total = int(accept[q]) << fraction_bits * level[q]
        for edge in range(begin, end):
            p = target[edge]
            total += factor[edge] * value[p] << fraction_bits * (below - level[p])
        value[q] = total
        widest = max(widest, value[q].bit_length())
        _check_room(widest * table.states)
        yield total


def packed(values: Sequence[int]) -> Limbs:
    """Return the integers as columns of limbs, all as wide as the largest one needs."""
    size = 8 * max(1, -(-max(values).bit_length() // 64))
    raw = bytearray(size * len(values))
    for q, value in enumerate(values):
        raw[q * size : (q + 1) * size] = value.to_bytes(size, "little")
    return np.frombuffer(raw, dtype="<u8").reshape(len(values), -1).T


def integer(limbs: Limbs, q: int) -> int:
    """Return the integer that state `q` has in `limbs`."""
    return int.from_bytes(limbs[:, q].astype("<u8").tobytes(), "little")


def _check_room(bits: int) -> None:
    """Raise TCC407 if the columns of counts take more than a gigabyte."""
    if bits > _MOST_BITS:
        raise CompileRefused(
            "TCC407",
            f"the counts of all states take more than {_MOST_BITS >> 33} GiB",
            hint="add `limit depth <= N`, or lower --tilt",
        )


# Counts and bounds.


@frozen
class Weights:
    """The weights of the calls that are on at least one edge.

    Attributes:
        fraction_bits: F.
        weight: from a call to its weight W(a).
        residual: from a call to its residual r(a), Q31.32.
    """

    fraction_bits: int
    weight: dict[int, int]
    residual: dict[int, int]


@frozen(eq=False)
class SuffixCounts:
    """The suffix counts of each state, the paper's SuffixCountDP: plans N and race count m.

    Attributes:
        plans: [limbs, states], N. None in an artifact for a gate.
        race: [limbs, states], m. None where race counts are rounded, and for a gate.
        rounded: mantissas and exponents, [states] each: of rounded m, or for a gate of an upper
            bound of N. None where counts are exact.
        round_bits: the bits of the mantissas of m. None where race counts are exact.
        total: the number of plans of the start; for a gate an upper bound.
    """

    plans: Limbs | None
    race: Limbs | None
    rounded: tuple[Sequence[int], Sequence[int]] | None
    round_bits: int | None
    total: int


def weigh(core: Core, calls: Sequence[int], beta: Beta, tilt: int, guard: Guard) -> Weights:
    """Return the weights of `calls`, each computed once for all calls of equal cost."""
    costs = sorted({core.calls[call].cost_low for call in calls})
    bits = fraction_bits(beta, max(costs, default=0), tilt)
    weights, residuals = {}, {}
    for cost in costs:
        guard.tick(64)
        weights[cost] = call_weight(beta, cost, bits, tilt)
        residuals[cost] = call_residual(beta, cost, weights[cost], bits)
    lows = {call: core.calls[call].cost_low for call in calls}
    return Weights(
        fraction_bits=bits,
        weight={call: weights[low] for call, low in lows.items()},
        residual={call: residuals[low] for call, low in lows.items()},
    )


def used_calls(automaton: Machine | Table, letters: Letters) -> list[int]:
    """Return the calls that are on at least one edge, increasing."""
    if isinstance(automaton, Machine):
        used = sorted({letter for edges in automaton.edges for letter, _ in edges})
    else:
        used = np.flatnonzero(np.bincount(automaton.letter)).tolist()
    return sorted(call for letter in used for call in letters.calls[letter])


def count(
    table: Table, letters: Letters, weights: Weights, guard: Guard, round_bits: int | None
) -> SuffixCounts:
    """Return the number of plans and the race count of every state; `table` is ranked.

    Args:
        round_bits: the bits that each state's race count is rounded up to. None keeps them exact.

    Raises:
        CompileRefused: TCC407 if the counts take more than a gigabyte.
    """
    sizes = [len(group) for group in letters.calls]
    totals = [sum(weights.weight.get(call, 0) for call in group) for group in letters.calls]
    bits = weights.fraction_bits
    plans = weighted_sums(table, sizes, 0, guard)
    race = rounded = None
    if round_bits is None:
        race = weighted_sums(table, totals, bits, guard)
    else:
        rounded = rounded_sums(table, totals, bits, round_bits, guard)
    return SuffixCounts(
        plans=plans,
        race=race,
        rounded=rounded,
        round_bits=round_bits,
        total=integer(plans, table.start),
    )


def count_for_gate(table: Table, letters: Letters, guard: Guard) -> SuffixCounts:
    """Return upper bounds on the number of plans of every state; `table` is ranked."""
    sizes = [len(group) for group in letters.calls]
    mantissa, exponent = rounded_sums(table, sizes, 0, MAX_ROUND_BITS, guard)
    return SuffixCounts(
        plans=None,
        race=None,
        rounded=(mantissa, exponent),
        round_bits=None,
        total=mantissa[table.start] << exponent[table.start],
    )


def check_bits(counts: SuffixCounts, limit: int | None) -> None:
    """Check that the number of plans has at most `limit` bits.

    Raises:
        CompileRefused: TCC407, it has more.
    """
    bits = counts.total.bit_length()
    if limit is not None and bits > limit:
        raise CompileRefused(
            "TCC407",
            f"the number of plans takes {bits} bits, more than {limit}",
            hint="raise --count-bits, or add a limit",
        )


_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


@frozen(eq=False)
class CostBounds:
    """For each state the least cost to go h (nano-units) and the best residual to go g (Q31.32).

    `cost_max` is the greatest `cost_high` of a call that is on an edge.
    """

    cost_to_go: Ints
    residual_to_go: Ints
    cost_max: int


def bound(core: Core, table: Table, letters: Letters, weights: Weights, guard: Guard) -> CostBounds:
    """Return the cost bounds of every state.

    Raises:
        CompileRefused: TCC405 if a bound does not fit 64 bits.
    """
    low, best = [0] * len(letters.calls), [0] * len(letters.calls)
    for letter, group in enumerate(letters.calls):
        if group[0] in weights.weight:
            low[letter] = min(core.calls[call].cost_low for call in group)
            best[letter] = max(weights.residual[call] for call in group)
    steps = len(table.levels)
    cost = best_to_go(table, exact_array(low, steps).take(table.letter), np.minimum, guard)
    residual = best_to_go(table, exact_array(best, steps).take(table.letter), np.maximum, guard)
    # The error names the tool whose call has the largest amount of that kind.
    costs = {call: core.calls[call].cost_low for call in weights.weight}
    _check_range("the least cost to go", (cost.min(), cost.max()), _tool(core, costs))
    place = _tool(core, weights.residual)
    _check_range("the best residual to go", (residual.min(), residual.max()), place)
    _check_range("the residual of a call", weights.residual.values(), place)
    return CostBounds(
        cost_to_go=cost.astype(np.int64),
        residual_to_go=residual.astype(np.int64),
        cost_max=max((core.calls[call].cost_high for call in weights.weight), default=0),
    )


def _tool(core: Core, amounts: Mapping[int, int]) -> str | None:
    """Return the place of the tool whose call has the amount of largest absolute value."""
    if not amounts:
        return None
    worst = max(sorted(amounts), key=lambda call: abs(amounts[call]))
    return f"tool {core.tools[core.calls[worst].tool].name}"


def _check_range(what: str, values: Iterable[int], place: str | None) -> None:
    worst = max(map(int, values), key=abs, default=0)
    if not _LEAST <= worst <= _MOST:
        raise CompileRefused(
            "TCC405",
            f"{what} leaves 64 bits: {worst}",
            hint="make the costs or --beta smaller",
            place=place,
        )
