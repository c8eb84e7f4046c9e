"""Limits on sums: what is left of a limit rides along with the state, as little of it as can be.

For ``<=`` the machine's weights are first made non-negative by the least weight to go (a
potential), so negative costs need no case of their own: every state keeps its slack, what is left
beyond what the cheapest way to finish takes.  Slack is clamped to the most that can still be
used and, without cycles, lowered to a sum that can be reached exactly, so that dead budget makes
no states.  ``uses(P) >= n`` is the mirror image: what is still needed, raised to a sum that can be
reached.
Cost: edges times the slacks that occur (:mod:`tcc_compiler.constraint.unfold`); the sums that can
be reached are bit sets.
Source: potentials as in Johnson, Efficient algorithms for shortest paths in sparse networks, 1977.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from tcc_compiler.constraint.unfold import Weighed, unfold
from tcc_compiler.guard import Guard
from tcc_compiler.machine import Machine, components, targets_first

_MAX_SUM_BITS = 1 << 14
_MAX_TABLE_BITS = 1 << 30


def at_most(
    machine: Machine, weights: Sequence[int], bound: int, to_go: Sequence[int], guard: Guard
) -> Machine | None:
    """The words of `machine` whose letters weigh at most `bound` in all; None where there are none.

    The result is trimmed, and minimal where `machine` is sorted.

    Args:
        machine: trimmed.
        weights: [letters], of any sign.
        to_go: [states], the least weight of a word from each state (see :mod:`least`).

    Raises:
        Refused: TCC403, TCC404 from the guard.
    """
    slack = bound - to_go[machine.start]
    if slack < 0:
        return None
    weighed = Weighed(
        machine=machine,
        steps=[
            [weights[letter] + to_go[target] - to_go[q] for letter, target in edges]
            for q, edges in enumerate(machine.edges)
        ],
        stop=[-to_go[q] if accepting else None for q, accepting in enumerate(machine.accept)],
        order=targets_first(machine),
    )
    most = most_to_go(weighed)
    top = most[machine.start]
    if top is not None and top <= slack:
        return machine
    sums = _reachable_sums(weighed, slack, guard)

    def settle(q: int, left: int) -> int | None:
        if left < 0:
            return None
        if sums is not None:
            unit, masks = sums
            return ((masks[q] & ((2 << (left // unit)) - 1)).bit_length() - 1) * unit
        cap = most[q]
        return left if cap is None or left < cap else cap

    stops = weighed.stop
    return unfold(weighed, slack, settle, lambda q, left: (stops[q] or 0) <= left, guard)


def at_least(machine: Machine, weights: Sequence[int], bound: int, guard: Guard) -> Machine | None:
    """The words of `machine` whose letters weigh at least `bound`; `weights` are not negative."""
    weighed = Weighed(
        machine=machine,
        steps=[[weights[letter] for letter, _ in edges] for edges in machine.edges],
        stop=[0 if accepting else None for accepting in machine.accept],
        order=targets_first(machine),
    )
    most = most_to_go(weighed)
    top = most[machine.start]
    if top is not None and top < bound:
        return None
    sums = _reachable_sums(weighed, top, guard) if top is not None else None

    def settle(q: int, needed: int) -> int | None:
        cap = most[q]
        if needed <= 0:
            return 0
        if cap is not None and cap < needed:
            return None
        if sums is not None:
            unit, masks = sums
            index = -(-needed // unit)
            above = masks[q] >> index
            return (index + (above & -above).bit_length() - 1) * unit
        return needed

    return unfold(weighed, bound, settle, lambda _, needed: needed == 0, guard)


def most_to_go(weighed: Weighed) -> list[int | None]:
    """For each state the greatest weight of a word from it; None where there is no greatest."""
    machine = weighed.machine
    most: list[int | None] = [0] * machine.states
    group = [-1] * machine.states
    parts = [[q] for q in weighed.order] if weighed.order is not None else None
    for number, part in enumerate(parts or components(machine.states, machine.targets)):
        for q in part:
            group[q] = number
        best: int | None = 0
        for q in part:
            value = _most_below(weighed, q, group, most)
            best = None if value is None or best is None else max(best, value)
        for q in part:
            most[q] = best
    return most


def _most_below(
    weighed: Weighed, q: int, group: Sequence[int], most: Sequence[int | None]
) -> int | None:
    """The greatest weight by leaving the component of `q` from `q`; None where it has no bound."""
    best = weighed.stop[q] or 0
    for (_, target), step in zip(weighed.machine.edges[q], weighed.steps[q], strict=True):
        if group[target] == group[q]:
            if step:
                return None
            continue
        below = most[target]
        if below is None:
            return None
        best = max(best, step + below)
    return best


def _reachable_sums(weighed: Weighed, limit: int, guard: Guard) -> tuple[int, list[int]] | None:
    """The weights of the words from each state, as bits in units, up to `limit`.

    None where there is a cycle, or where the bits would be too many.
    """
    if weighed.order is None:
        return None
    unit = gcd(*(step for row in weighed.steps for step in row), *(s or 0 for s in weighed.stop))
    unit = unit or 1
    bits = limit // unit + 1
    if bits > _MAX_SUM_BITS or bits * weighed.machine.states > _MAX_TABLE_BITS:
        return None
    keep = (1 << bits) - 1
    masks = [0] * weighed.machine.states
    for q in weighed.order:
        stop = weighed.stop[q]
        mask = 0 if stop is None or stop > limit else 1 << (stop // unit)
        for (_, target), step in zip(weighed.machine.edges[q], weighed.steps[q], strict=True):
            if step <= limit:
                mask |= masks[target] << (step // unit)
        masks[q] = mask & keep
        guard.tick(1 + len(weighed.steps[q]))
    return unit, masks
