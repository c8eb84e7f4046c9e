"""Apply the statements to the automaton one at a time, and minimise it after each.

Statements with tables come first, then the sums. If there are cycles, depth is the first sum,
because it removes them all. Otherwise the lowest bound of each kind comes first. Cost is last,
because costs may be negative.

A bound on a sum without cycles makes pairs of a state and the sum spent so far. The spent sum is
measured by a potential, the least weight to go of each state: it is the weight beyond the cheapest
way to finish. So it begins at 0 and never decreases. A bound has to hold after each call, not only
at the end. If some costs are negative, pairs of a state and the plain sum are made instead.
Cost: a few passes over the edges; a shift and an `or` for each edge, over the words of a bit set of
sums. Then linear in the pairs and their edges.
Source: potentials as in Johnson, Efficient algorithms for shortest paths in sparse networks, 1977.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tcc_certs.policy.core import Core
from tcc_compiler.automata.constraint import limit_cyclic
from tcc_compiler.automata.constraint.statements import (
    BoundedSum,
    StatementAutomaton,
    constraints,
    product,
    sums_of,
)
from tcc_compiler.automata.letters import Letters
from tcc_compiler.automata.minimise import merged, minimise
from tcc_compiler.automata.table import (
    Exact,
    Ints,
    Machine,
    Numbers,
    Table,
    as_machine,
    as_trimmed_table,
    best_to_go,
    distinct,
    exact_array,
    exact_type,
    spread,
    starts,
    trim,
)
from tcc_compiler.automata.witness import infinite, word_to
from tcc_compiler.frozen import frozen
from tcc_compiler.resources import CompileRefused, Guard, Place

# A limit on a sum of a table.

_SOME = 64


def at_most(table: Table, weights: Sequence[int], bound: int, guard: Guard) -> Table | None:
    """Return the smallest table of the words of weight at most `bound`; None if there are none.

    Args:
        table: minimal.
        weights: [letters], of any sign.

    Raises:
        CompileRefused: TCC403 or TCC404 from the guard.
    """
    weight = exact_array(weights, len(table.levels) + 1, bound).take(table.letter)
    least = best_to_go(table, weight, np.minimum, guard)
    spare = bound - int(least[table.start])
    if spare < 0:
        return None
    steps = weight + least.take(table.target) - np.repeat(least, table.degree)
    stop = np.where(table.accept, -least, 0)
    unit = _unit(steps, stop)
    most = spare // unit
    if unit > 1:
        steps, stop = steps // unit, stop // unit
    to_go = best_to_go(table, steps, np.maximum, guard, stop, most + 1)
    if int(to_go[table.start]) <= most:
        return table
    # All amounts beyond the limit are equivalent.
    past = np.array(most + 1, dtype=exact_type(most + 1))
    steps, stop, to_go = (
        np.minimum(amounts, past).astype(past.dtype, copy=False) for amounts in (steps, stop, to_go)
    )
    pairs = pairs_spent(table, steps, stop, to_go, most, guard)
    return unfold(table, pairs, steps, stop, most, guard)


def _unit(steps: Exact, stop: Exact) -> int:
    """Return the greatest common divisor of all amounts; 1 if all are 0."""
    unit = int(np.gcd.reduce(stop, initial=0))
    # The first few steps usually suffice to find that it is 1.
    for part in (steps[:_SOME], steps[_SOME:]):
        unit = unit if unit == 1 else int(np.gcd.reduce(part, initial=unit))
    return unit or 1


# The pairs. Each amount is raised to the greatest amount with the same words to go, so that fewer
# pairs differ. If sums fit into bit sets, an amount becomes the next amount from which some word
# ends at exactly `most`. Otherwise it becomes the amount that is just enough for the dearest word.
# The sums of a state are the bits of a Python integer. Moving them over an edge is one shift.
# Raising them all is one addition, in which a carry runs from each amount to the next allowed one.

_MAX_SUM_BITS = 1 << 14
_MAX_TABLE_BITS = 1 << 30
_CHUNK_BYTES = 1 << 22
# How many steps are counted before the guard is called.
_STEPS = 1 << 10
# For each place, the bits of a byte below it; for each byte, how many bits it has.
_BELOW = ((1 << np.arange(8)) - 1).astype(np.uint8)
_BITS = np.array([bin(byte).count("1") for byte in range(256)], dtype=np.int64)

Locate: TypeAlias = "Callable[[Numbers, Exact], Ints]"


@frozen
class _Moves:
    """The edges of a table as lists: each state's first edge, targets, what each edge spends."""

    first: list[int]
    target: list[int]
    step: list[int]


@frozen
class SpentPairs:
    """The pairs (state, spent) that occur, sorted by state, then by amount.

    Attributes:
        spent: [pairs], the amount of each pair.
        start: [states+1], the first pair of each state.
        locate: returns the pairs of given states and amounts of at most `most`.
    """

    spent: Exact
    start: Ints
    locate: Locate


def pairs_spent(
    table: Table, steps: Exact, stop: Exact, to_go: Exact, most: int, guard: Guard
) -> SpentPairs:
    """Return the pairs of a limit of `most`.

    Args:
        steps: [edges], what each edge spends, at least 0. Each state has a way to finish on which
            every step is 0.
        stop: [states], what stopping spends, where the state accepts.
        to_go: [states], the most that a word from each state spends.

    Raises:
        CompileRefused: TCC403 or TCC404 from the guard.
    """
    moves = _Moves(
        first=table.edge_start.tolist(), target=table.target.tolist(), step=steps.tolist()
    )
    bits = most + 1
    if bits > _MAX_SUM_BITS or bits * table.states > _MAX_TABLE_BITS:
        return _listed(moves, to_go, most, guard)
    ends = _end_masks(table, moves, stop, most, guard)
    return _unpacked(_spent_masks(moves, ends, most, guard), most)


def _end_masks(table: Table, moves: _Moves, stop: Exact, most: int, guard: Guard) -> list[int]:
    """Return, for each state as bits, the amounts from which a word ends at exactly `most`."""
    target, step = moves.target, moves.step
    masks: list[int] = []
    ends = np.where(table.accept & (stop <= most), most - stop, -1).tolist()
    for end, (low, high) in zip(ends, pairwise(moves.first), strict=True):
        mask = 0 if end < 0 else 1 << end
        for edge in range(low, high):
            mask |= masks[target[edge]] >> step[edge]
        masks.append(mask)
    guard.tick(table.edges)
    return masks


def _spent_masks(moves: _Moves, ends: Sequence[int], most: int, guard: Guard) -> list[int]:
    """Return, for each state as bits, the amounts that occur there, raised to allowed ones."""
    first, target, step = moves.first, moves.target, moves.step
    keep = (1 << most + 1) - 1
    masks = [0] * len(ends)
    masks[-1] = 1
    pairs = 0
    most_pairs, steps = guard.max_states, 0
    for q in range(len(ends) - 1, -1, -1):
        seen, end = masks[q] & keep, ends[q]
        gaps = keep & ~end
        # A carry starts at every amount in a gap, and stops at the first amount after the gap.
        masks[q] = mask = (((seen & gaps) + gaps) | seen) & end
        pairs += mask.bit_count()
        if pairs > most_pairs:
            guard.states(pairs)
        low, high = first[q], first[q + 1]
        steps += 1 + high - low
        if steps > _STEPS:
            guard.note(pairs)
            guard.tick(steps)
            steps = 0
        for edge in range(low, high):
            masks[target[edge]] |= mask << step[edge]
    guard.states(pairs)
    guard.tick(steps)
    return masks


def _unpacked(masks: list[int], most: int) -> SpentPairs:
    width = (most >> 3) + 1
    rows = max(1, _CHUNK_BYTES // (8 * width))
    data = np.frombuffer(b"".join([mask.to_bytes(width, "little") for mask in masks]), np.uint8)
    held = _BITS.take(data)
    before = starts(held)
    amounts = []
    for at in range(0, len(masks), rows):
        chunk = data[at * width : (at + rows) * width]
        places = np.flatnonzero(np.unpackbits(chunk, bitorder="little"))
        amounts.append(places % (8 * width))

    def locate(states: Numbers, spent: Ints) -> Ints:
        byte = states * width + (spent >> 3)
        return before.take(byte) + _BITS.take(data.take(byte) & _BELOW.take(spent & 7))

    return SpentPairs(spent=np.concatenate(amounts), start=before[::width], locate=locate)


def _listed(moves: _Moves, to_go: Exact, most: int, guard: Guard) -> SpentPairs:
    """Return the pairs if sums are too many for bit sets: as sets, raised by means of `to_go`."""
    least = [max(0, most - left) for left in to_go.tolist()]
    seen: list[set[int]] = [set() for _ in least]
    seen[-1].add(least[-1])
    pairs = 0
    for q in range(len(least) - 1, -1, -1):
        amounts, low, high = seen[q], moves.first[q], moves.first[q + 1]
        pairs += len(amounts)
        guard.states(pairs)
        guard.tick(1 + len(amounts) * (high - low))
        for edge in range(low, high):
            target, step = moves.target[edge], moves.step[edge]
            below, floor = seen[target], least[target]
            for amount in amounts:
                spent = amount + step
                if spent <= most:
                    below.add(spent if spent > floor else floor)
    return _searched([sorted(amounts) for amounts in seen], np.array(least, dtype=to_go.dtype))


def _searched(rows: Sequence[Sequence[int]], least: Exact) -> SpentPairs:
    spent = np.array([amount for row in rows for amount in row], dtype=least.dtype)
    values, place = np.unique(spent, return_inverse=True)
    start = starts(np.fromiter(map(len, rows), dtype=np.int64))
    state = np.repeat(np.arange(len(rows)), np.diff(start))
    keys = state * len(values) + place

    def locate(states: Numbers, amounts: Exact) -> Ints:
        raised = np.maximum(amounts, least.take(states))
        row = states.astype(np.int64) * len(values)
        return np.searchsorted(keys, row + np.searchsorted(values, raised))

    return SpentPairs(spent=spent, start=start, locate=locate)


# The unfolded table. Edges are made in portions of many states, which bounds the memory needed in
# addition to the result.

_PORTION = 1 << 16


def unfold(
    table: Table, pairs: SpentPairs, steps: Exact, stop: Exact, most: int, guard: Guard
) -> Table:
    """Return the smallest table of the words of `table` that spend at most `most`.

    Args:
        steps, stop: as in :func:`pairs_spent`.

    Raises:
        CompileRefused: TCC403 or TCC404 from the guard.
    """
    count = pairs.start[1:] - pairs.start[:-1]
    state = np.repeat(np.arange(table.states), count)
    left = most - pairs.spent
    degree = table.degree.take(state)
    before = starts(degree)
    cuts = np.searchsorted(before, np.arange(0, before[-1], _PORTION)).tolist()
    letters: list[Numbers] = []
    targets: list[Numbers] = []
    degrees = []
    held = 0
    for first, last in zip(cuts, [*cuts[1:], len(state)], strict=True):
        sizes = degree[first:last]
        edges = spread(table.edge_start.take(state[first:last]), sizes)
        room = np.repeat(left[first:last], sizes) - steps.take(edges)
        fits = room >= 0
        passed = starts(fits)
        passed = passed.take(before[first : last + 1] - before[first])
        degrees.append(passed[1:] - passed[:-1])
        kept = np.flatnonzero(fits)
        edges = edges.take(kept)
        letters.append(table.letter.take(edges))
        spent = most - room.take(kept)
        targets.append(pairs.locate(table.target.take(edges), spent).astype(np.int32))
        held += len(edges)
        guard.tick(len(fits))
        guard.room(held >> 2)
    unfolded = Table(
        accept=table.accept.take(state) & (stop.take(state) <= left),
        edge_start=starts(_joined(degrees)),
        letter=_joined(letters),
        target=_joined(targets),
        levels=distinct(pairs.start.take(table.levels)),
        nondeterministic=table.nondeterministic,
    )
    unfolded = merged(unfolded, guard)
    guard.room(unfolded.edges)
    return unfolded


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Return the concatenated parts; usually there is only one."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


# All statements.

_ORDER = ("depth", "count", "price", "latency", "epsilon", "sum", "cost")


def constrain(core: Core, letters: Letters, machine: Machine, guard: Guard) -> Machine | Table:
    """Return the smallest automaton of the words that meet every statement; a table if acyclic.

    Raises:
        CompileRefused: TCC402 with the statement that leaves no plan; TCC401, a cycle has negative
            cost; TCC403 or TCC404 from the guard.
    """
    automaton = _tidy(machine, "the plan expression", "plan", guard)
    for constraint in constraints(core, letters):
        if constraint.number is None:
            guard.enter(f"`{constraint.text}`")
        else:
            guard.apply(constraint.number, f"`{constraint.text}`", automaton.states)
        paired = product(
            as_machine(automaton) if isinstance(automaton, Table) else automaton, constraint, guard
        )
        automaton = _tidy(paired, f"`{constraint.text}`", guard.place, guard)
        guard.applied(automaton.states)
    return apply_sums(core, letters, automaton, guard)


def apply_sums(
    core: Core, letters: Letters, automaton: Machine | Table, guard: Guard
) -> Machine | Table:
    """Return the smallest automaton of a trimmed automaton's words that stay within every sum.

    Raises:
        CompileRefused: as :func:`constrain`.
    """
    sums = sums_of(core, letters)
    for one in in_order(sums, cyclic=isinstance(automaton, Machine)):
        guard.apply(one.number, f"`{one.text}`", automaton.states)
        automaton = _bounded(core, letters, automaton, one, guard)
        guard.applied(automaton.states)
    return automaton


def in_order(sums: Sequence[BoundedSum], cyclic: bool) -> list[BoundedSum]:
    """Return the sums by kind: depth, counts, price, latency, epsilon, sums, cost.

    Within a kind the lowest bound is first. Without cycles depth comes after counts, because it is
    then an ordinary sum and seldom the lowest bound.
    """
    order = _ORDER if cyclic else ("count", "depth", *_ORDER[2:])
    return sorted(sums, key=lambda one: (order.index(one.what), one.bound, one.number))


def _bounded(
    core: Core, letters: Letters, machine: Machine | Table, one: BoundedSum, guard: Guard
) -> Machine | Table:
    if min(one.amounts, default=0) < 0:
        return _bounded_after_each_call(core, letters, machine, one, guard)
    if isinstance(machine, Table):
        table = at_most(machine, one.amounts, one.bound, guard)
        if table is None:
            raise _no_plan(f"`{one.text}`", one.number)
        return table
    to_go = limit_cyclic.least_to_go(machine, one.amounts, guard)
    if isinstance(to_go, limit_cyclic.NegativeCycle):
        raise infinite(core, letters, word_to(machine, to_go.states[0]), to_go.letters)
    limited = limit_cyclic.cyclic_at_most(machine, one.amounts, one.bound, to_go, guard)
    return _tidy(limited, f"`{one.text}`", one.number, guard)


def _bounded_after_each_call(
    core: Core, letters: Letters, machine: Machine | Table, one: BoundedSum, guard: Guard
) -> Machine | Table:
    """Apply a bound on costs of which some are negative; it has to hold after each call.

    Raises:
        CompileRefused: as :func:`constrain`.
    """
    if isinstance(machine, Machine):
        to_go = limit_cyclic.least_to_go(machine, one.amounts, guard)
        if isinstance(to_go, limit_cyclic.NegativeCycle):
            raise infinite(core, letters, word_to(machine, to_go.states[0]), to_go.letters)
    else:
        machine = as_machine(machine)

    def step(total: int, letter: int) -> int | None:
        after = total + one.amounts[letter]
        return after if after <= one.bound else None

    bounded = StatementAutomaton(text=one.text, start=0, step=step, accepts=lambda _: True)
    return _tidy(product(machine, bounded, guard), f"`{one.text}`", one.number, guard)


def _tidy(
    machine: Machine | None, statement: str, place: Place | None, guard: Guard
) -> Machine | Table:
    table = None if machine is None else as_trimmed_table(machine)
    if table is not None:
        return merged(table, guard)
    trimmed = None if machine is None else trim(machine)
    if trimmed is None:
        raise _no_plan(statement, place)
    return minimise(trimmed, guard)


def _no_plan(statement: str, place: Place | None) -> CompileRefused:
    return CompileRefused(
        "TCC402",
        f"there is no plan: {statement} leaves none",
        hint="take statements away until plans appear",
        place=place,
    )
