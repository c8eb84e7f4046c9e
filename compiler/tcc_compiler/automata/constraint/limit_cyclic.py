"""A limit on a sum, applied to an automaton with cycles: pairs of a state and the sum left.

The weights are first made non-negative by the least weight to go (a potential).  The sum left is
clamped to the greatest that can still be used, if there is one, so that fewer pairs differ.  For
``>=`` it is the sum that is still needed.  The result is neither trimmed nor minimal.
Cost: edges times the numbers that occur at their sources.
Source: potentials as in Johnson, Efficient algorithms for shortest paths in sparse networks, 1977.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from tcc_compiler.automata.machine import Edges, Machine, components
from tcc_compiler.frozen import frozen
from tcc_compiler.resources.guard import Guard

# (state, number) -> the representative of all numbers with the same words, None for no word.
Settle: TypeAlias = "Callable[[int, int], int | None]"
Accepts: TypeAlias = "Callable[[int, int], bool]"


@frozen
class Weighed:
    """A trimmed machine with a weight on every edge and on every stop, none negative.

    Attributes:
        machine: the machine.
        steps: [states], the weights of the edges, in their order.
        stop: [states], the weight of stopping, None where the state does not accept.
    """

    machine: Machine
    steps: Sequence[Sequence[int]]
    stop: Sequence[int | None]


def at_most_met(
    machine: Machine, weights: Sequence[int], bound: int, to_go: Sequence[int], guard: Guard
) -> Machine | None:
    """The words of `machine` whose letters weigh at most `bound` in all; None where there are none.

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
    )
    most = most_to_go(weighed)
    top = most[machine.start]
    if top is not None and top <= slack:
        return machine
    _look_ahead(machine, weights, bound, guard)

    def settle(q: int, left: int) -> int | None:
        if left < 0:
            return None
        cap = most[q]
        return left if cap is None or left < cap else cap

    stops = weighed.stop
    return _meet(weighed, slack, settle, lambda q, left: (stops[q] or 0) <= left, guard)


def _look_ahead(machine: Machine, weights: Sequence[int], bound: int, guard: Guard) -> None:
    """Refuse at once what is too large to be made, where the limit is one on the number of calls.

    A trimmed machine with a cycle has a word of any length up to one cycle: a simple path to the
    cycle and one from it, with rounds between.  No acyclic machine has fewer states than its
    longest word has calls.

    Raises:
        Refused: TCC403 from the guard.
    """
    if all(weight == 1 for weight in weights) and bound > 2 * machine.states:
        guard.states(min(bound - machine.states, guard.max_states + 1))


def at_least_met(
    machine: Machine, weights: Sequence[int], bound: int, guard: Guard
) -> Machine | None:
    """The words of `machine` whose letters weigh at least `bound`; `weights` are not negative."""
    weighed = Weighed(
        machine=machine,
        steps=[[weights[letter] for letter, _ in edges] for edges in machine.edges],
        stop=[0 if accepting else None for accepting in machine.accept],
    )
    most = most_to_go(weighed)

    def settle(q: int, needed: int) -> int | None:
        cap = most[q]
        if needed <= 0:
            return 0
        return None if cap is not None and cap < needed else needed

    return _meet(weighed, bound, settle, lambda _, needed: needed == 0, guard)


def most_to_go(weighed: Weighed) -> list[int | None]:
    """For each state the greatest weight of a word from it; None where there is no greatest."""
    machine = weighed.machine
    most: list[int | None] = [0] * machine.states
    group = [-1] * machine.states
    for number, part in enumerate(components(machine.states, machine.targets)):
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


def _meet(
    weighed: Weighed, first: int, settle: Settle, accepts: Accepts, guard: Guard
) -> Machine | None:
    """The machine over pairs (state, number), `first` the number at the start.

    An edge takes its step off the number.  None where `settle` finds no word at the start.
    """
    machine = weighed.machine
    begin = settle(machine.start, first)
    if begin is None:
        return None
    number = {(machine.start, begin): 0}
    pairs = [(machine.start, begin)]
    edges: list[Edges] = []
    held = 0
    for q, left in pairs:
        row = []
        for (letter, target), step in zip(machine.edges[q], weighed.steps[q], strict=True):
            after = settle(target, left - step)
            if after is None:
                continue
            pair = (target, after)
            p = number.get(pair)
            if p is None:
                p = number[pair] = len(pairs)
                pairs.append(pair)
            row.append((letter, p))
        edges.append(tuple(row))
        held += len(row)
        guard.tick(1 + len(machine.edges[q]))
        guard.states(len(pairs))
        guard.room(held)
    accept = [machine.accept[q] and accepts(q, left) for q, left in pairs]
    return Machine(start=0, accept=accept, edges=edges, nondeterministic=machine.nondeterministic)
