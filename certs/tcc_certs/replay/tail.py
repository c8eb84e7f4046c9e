"""The tail of a truncated run: T_K = ln of the sum over longer plans of e^(-beta*cost), rounded up.

Normative text: docs/spec/ledger.md, section 8, and docs/spec/race.md, section 13.  The sum goes
level by level: after j calls each state that was reached has the sum over the prefixes that lead to
it, as long as it is open whether their plans have more than K calls; then they are dropped, or
multiplied by the sum over all plans from there on.  Sums are enclosures with a shared binary
exponent, an integer of any size, rounded outward, and narrowed until the rounding is decided.
Cost: two passes over the edges, and the steps, which are bounded before they are made: some
microseconds each at 128 bits, which nearly always decide, and at 512; tens of them at 4096.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.automaton import Automaton
from tcc_certs.formats.fixed import Q64_MAX, Q64_MIN
from tcc_certs.limits import FREE_TAIL_STEPS, MAX_PRECISION_BITS, TAIL_STEPS_PER_EDGE
from tcc_certs.race.arrivals import WORD
from tcc_certs.race.numbers import (
    Enclosure,
    exp_enclosure,
    log_enclosure,
    log_two,
)
from tcc_certs.race.weights import enclose_fraction, score
from tcc_certs.replay.language import Language, States

Scaled: TypeAlias = "tuple[int, int, int]"  # low, high, exponent: low <= value / 2^exponent <= high

_ZERO: Scaled = (0, 0, 0)
_ONE: Scaled = (1, 1, 0)
_SPARE = 64  # bits beyond those of the result: a step loses a unit or two, and there are below 2^40
_GRAIN = 32
_PRECISIONS = (2 * WORD, 8 * WORD, MAX_PRECISION_BITS)


def tail_lse(language: Language, calls: int, root: States | None = None) -> int:
    """The least Q64.64 number that is not below T_K, K = `calls`, less than the root's rank.

    Args:
        root: the states that the run begins at; None: the artifact's root.

    Raises:
        Rejected: D201 it takes too many steps, D202 there is no such number.
    """
    root = language.root if root is None else root
    cost = _only_cost(language, calls, root)
    if cost is not None:
        numerator, denominator = score(language.beta, cost)
        return _within(-(-(numerator << WORD) // denominator))

    fewest = _fewest(language.automaton)
    steps = tail_steps(language.automaton, fewest, calls, root)
    most = FREE_TAIL_STEPS + TAIL_STEPS_PER_EDGE * len(language.automaton.edge_call)
    if steps > most:
        raise Rejected(Code.LIMIT, "tail_lse", f"a tail of at most {most} steps", steps)
    ends = 0, 1
    for bits in _PRECISIONS:
        if ends[0] != ends[1]:
            low, high = _log(_total(language, fewest, calls, root, bits + _SPARE), bits)
            ends = -(-low >> bits - WORD), -(-high >> bits - WORD)
    # Undecided still, one plan dominates the sum, which lies above the number it is so near to.
    return _within(ends[1])


def _within(value: int) -> int:
    """The least number of Q64.64 that is not below `value`."""
    ensure(value <= Q64_MAX, Code.PRECISION, "tail_lse", "a tail within Q64.64", "more")
    return max(value, Q64_MIN)


def _fewest(automaton: Automaton) -> list[int]:
    """s: the fewest calls that a plan from each state on still has."""
    fewest: list[int] = []
    for q in range(automaton.states):
        ahead = [fewest[target] for _, target in automaton.edges(q)]
        fewest.append(0 if automaton.accept[q] else 1 + min(ahead))
    return fewest


def tail_steps(
    automaton: Automaton, fewest: Sequence[int], calls: int, root: States | None = None
) -> int:
    """How many edges the tail goes through at most, each as often as it does.

    A state is gone through once for each number j of calls that may lead to it and leave it open
    whether a plan is longer than K: from the fewest that do to the most, j + s <= K < j + d.
    """
    rank = automaton.rank
    span = dict.fromkeys((automaton.root,) if root is None else root, (0, 0))
    steps = 0
    for q in range(max(span), -1, -1):
        if q not in span:  # only behind a prefix; from the artifact's root every state is reached
            continue
        first, last = span.pop(q)
        edges = list(automaton.edges(q))
        open_first, open_last = max(first, calls - rank[q] + 1), min(last, calls - fewest[q])
        if open_first <= open_last:
            steps += len(edges) * (open_last - open_first + 1)
        for _, target in edges:
            low, high = span.get(target, (first + 1, last + 1))
            span[target] = min(low, first + 1), max(high, last + 1)
    return steps


def _only_cost(language: Language, calls: int, root: States) -> int | None:
    """The cost of the one plan of more than K calls; None where there are more.

    A state of rank d has a plan of d calls.  So a step can be part of a longer plan exactly where
    the rank of its target is great enough, and two that can make two plans.
    """
    automaton, cost = language.automaton, 0
    longer = [q for q in root if automaton.rank[q] > calls]
    if len(longer) != 1:
        return None
    (state,) = longer
    for done in range(automaton.rank[state] + 1):
        ways = [
            (language.cost_low[call], target)
            for call, target in automaton.edges(state)
            if done + 1 + automaton.rank[target] > calls
        ]
        ends = bool(automaton.accept[state]) and done > calls
        if len(ways) + ends > 1:
            return None
        if not ways:
            break
        ((more, state),) = ways
        cost += more
    return cost


def _total(
    language: Language, fewest: Sequence[int], calls: int, root: States, bits: int
) -> Scaled:
    """The sum over plans of more than K calls."""
    automaton = language.automaton
    by_cost = {cost: _power(language, cost, bits) for cost in set(language.cost_low)}
    weight = [by_cost[cost] for cost in language.cost_low]
    below: list[Scaled] = []
    for q in range(automaton.states):
        value = _ONE if automaton.accept[q] else _ZERO
        for call, target in automaton.edges(q):
            value = _sum(value, _product(weight[call], below[target], bits), bits)
        below.append(value)
    total, level, done = _ZERO, dict.fromkeys(root, _ONE), 0
    while level:
        done += 1
        after: dict[int, Scaled] = {}
        for state, value in level.items():
            for call, target in automaton.edges(state):
                if done + automaton.rank[target] <= calls:
                    continue
                step = _product(value, weight[call], bits)
                if done + fewest[target] > calls:
                    total = _sum(total, _product(step, below[target], bits), bits)
                else:
                    after[target] = _sum(after.get(target, _ZERO), step, bits)
        level = after
    return total


def _power(language: Language, cost: int, bits: int) -> Scaled:
    """Encloses e^(-beta * cost) to `bits` bits of relative precision or a few less.

    With y = whole * ln 2 + r, both to as many places as |y| has bits before the point and more,
    whole is taken so that r is never below 0 and above ln 2 by next to nothing.
    """
    numerator, denominator = score(language.beta, cost)
    size = max(0, numerator.bit_length() - denominator.bit_length() + 2)
    places = bits + WORD + -(-size // _GRAIN) * _GRAIN
    low, high = enclose_fraction(numerator, denominator, places)
    two = log_two(places)
    whole = low // two[1 if low >= 0 else 0]
    spent = sorted((whole * two[0], whole * two[1]))
    low, high = exp_enclosure((low - spent[1], high - spent[0]), places, bits)
    return low, high, whole - bits


def _product(left: Scaled, right: Scaled, bits: int) -> Scaled:
    return _short(left[0] * right[0], left[1] * right[1], left[2] + right[2], bits)


def _sum(left: Scaled, right: Scaled, bits: int) -> Scaled:
    if left[1] == 0 or right[1] == 0:
        return right if left[1] == 0 else left
    if left[2] < right[2]:
        left, right = right, left
    lift = left[2] - right[2]
    if left[1].bit_length() + lift > right[1].bit_length() + 2 * bits:
        # With as many bits as it may have, a unit of the left one is more than the right one.
        pad = max(0, bits - left[1].bit_length())
        return left[0] << pad, (left[1] << pad) + 1, left[2] - pad
    low, high = (left[0] << lift) + right[0], (left[1] << lift) + right[1]
    return _short(low, high, right[2], bits)


def _short(low: int, high: int, exponent: int, bits: int) -> Scaled:
    drop = high.bit_length() - bits
    if drop <= 0:
        return low, high, exponent
    return low >> drop, -(-high >> drop), exponent + drop


def _log(value: Scaled, bits: int) -> Enclosure:
    """Encloses the logarithm of an enclosure, with `bits` fractional bits."""
    low, high, exponent = value
    return log_enclosure(low, 1, bits, exponent)[0], log_enclosure(high, 1, bits, exponent)[1]
