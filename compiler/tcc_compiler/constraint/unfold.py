"""A machine beside a number that falls along its edges: what is left of a limit, or still needed.

Without cycles two sweeps do it: down from the start, which numbers occur at each state; up again,
merging equal states as they are made, so that the result is minimal at once.  With cycles the
pairs are made in order of discovery.
Cost: edges times the numbers that occur at their sources.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tcc_compiler.guard import Guard
from tcc_compiler.machine import Edges, Machine
from tcc_compiler.minimise import Merger

# (state, number) -> the number in the form that stands for all that act alike, None for no word.
Settle: TypeAlias = "Callable[[int, int], int | None]"
Accepts: TypeAlias = "Callable[[int, int], bool]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """A trimmed machine with a weight on every edge and on every stop, none negative.

    Attributes:
        machine: the machine.
        steps: [states], the weights of the edges, in their order.
        stop: [states], the weight of stopping, None where the state does not accept.
        order: the states, targets first; None where there is a cycle.
    """

    machine: Machine
    steps: Sequence[Sequence[int]]
    stop: Sequence[int | None]
    order: Sequence[int] | None


def unfold(
    weighed: Weighed, first: int, settle: Settle, accepts: Accepts, guard: Guard
) -> Machine | None:
    """The machine over pairs (state, number), `first` the number at the start.

    An edge takes its step off the number.  None where `settle` finds no word at the start.

    Raises:
        Refused: TCC403, TCC404 from the guard.
    """
    begin = settle(weighed.machine.start, first)
    if begin is None:
        return None
    if weighed.order is None:
        return _discover(weighed, begin, settle, accepts, guard)
    settled = _sweep_down(weighed, weighed.order, begin, settle, guard)
    return _sweep_up(weighed, weighed.order, begin, settled, accepts, guard)


def _sweep_down(
    weighed: Weighed, order: Sequence[int], begin: int, settle: Settle, guard: Guard
) -> list[dict[int, int | None]]:
    """For each state the numbers that come in over its edges, and what they settle to."""
    machine = weighed.machine
    settled: list[dict[int, int | None]] = [{} for _ in order]
    settled[machine.start][begin] = begin
    pairs = 0
    for q in reversed(order):
        numbers = sorted({number for number in settled[q].values() if number is not None})
        pairs += len(numbers)
        guard.states(pairs)
        guard.tick(1 + len(numbers) * len(weighed.steps[q]))
        for (_, target), step in zip(machine.edges[q], weighed.steps[q], strict=True):
            known = settled[target]
            for number in numbers:
                left = number - step
                if left not in known:
                    known[left] = settle(target, left)
    return settled


def _sweep_up(
    weighed: Weighed,
    order: Sequence[int],
    begin: int,
    settled: Sequence[dict[int, int | None]],
    accepts: Accepts,
    guard: Guard,
) -> Machine:
    """The minimal machine of the pairs; `settled` is turned into their states on the way."""
    machine = weighed.machine
    merged = Merger(machine.nondeterministic)
    held = 0
    for q in order:
        steps = [
            (letter, settled[target], step)
            for (letter, target), step in zip(machine.edges[q], weighed.steps[q], strict=True)
        ]
        made: dict[int | None, int | None] = {None: None}
        numbers = sorted({number for number in settled[q].values() if number is not None})
        accepting, before = machine.accept[q], merged.states
        for number in numbers:
            row = [
                (letter, p)
                for letter, below, step in steps
                if (p := below[number - step]) is not None
            ]
            made[number] = merged.state(accepting and accepts(q, number), tuple(row))
        held += len(steps) * (merged.states - before)
        guard.tick(1 + len(steps) * len(numbers))
        guard.room(held)
        known = settled[q]
        for left in known:
            known[left] = made[known[left]]
    return merged.machine(settled[machine.start][begin] or 0)


def _discover(
    weighed: Weighed, begin: int, settle: Settle, accepts: Accepts, guard: Guard
) -> Machine:
    machine = weighed.machine
    number = {(machine.start, begin): 0}
    pairs = [(machine.start, begin)]
    edges: list[Edges] = []
    held = 0
    for q, left in pairs:
        found = []
        for (letter, target), step in zip(machine.edges[q], weighed.steps[q], strict=True):
            after = settle(target, left - step)
            if after is None:
                continue
            pair = (target, after)
            p = number.get(pair)
            if p is None:
                p = number[pair] = len(pairs)
                pairs.append(pair)
            found.append((letter, p))
        edges.append(tuple(found))
        held += len(found)
        guard.tick(1 + len(machine.edges[q]))
        guard.states(len(pairs))
        guard.room(held)
    accept = [machine.accept[q] and accepts(q, left) for q, left in pairs]
    return Machine(start=0, accept=accept, edges=edges, nondeterministic=machine.nondeterministic)
