"""Apply a limit on a sum to an automaton with cycles: pairs of a state and the remaining sum.

First a potential, the least weight to go of each state, makes all weights non-negative. The
remaining sum is capped at the greatest sum that can still be used, so that fewer pairs differ. The
result is neither trimmed nor minimal.
Cost: edges times the numbers that occur at their sources. The potential takes Dijkstra's algorithm:
edges times log states. With negative weights it takes label correction: at worst edges times
states. A negative cycle is then found among the best edges.
Source: potentials as in Johnson, Efficient algorithms for shortest paths in sparse networks, 1977.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeAlias

from tcc_compiler.automata.table import Edges, Machine, components
from tcc_compiler.frozen import frozen
from tcc_compiler.resources import Guard


@frozen
class NegativeCycle:
    """The states and letters of a cycle with a negative weight."""

    states: tuple[int, ...]
    letters: tuple[int, ...]


def least_to_go(
    machine: Machine, weights: Sequence[int], guard: Guard
) -> list[int] | NegativeCycle:
    """Return [states], the least weight of a word from each state, or a cycle of negative weight.

    Args:
        machine: trimmed.
    """
    if all(weights[letter] >= 0 for edges in machine.edges for letter, _ in edges):
        return _dijkstra(machine, weights, guard)
    return _correct(machine, weights, guard)


def _sources(machine: Machine) -> list[list[tuple[int, int]]]:
    """Return, for each state, the pairs (letter, source) of the edges into it."""
    sources: list[list[tuple[int, int]]] = [[] for _ in machine.accept]
    for q, edges in enumerate(machine.edges):
        for letter, target in edges:
            sources[target].append((letter, q))
    return sources


def _dijkstra(machine: Machine, weights: Sequence[int], guard: Guard) -> list[int]:
    sources = _sources(machine)
    least: list[int | None] = [None] * machine.states
    heap = [(0, q) for q, accepting in enumerate(machine.accept) if accepting]
    while heap:
        weight, q = heapq.heappop(heap)
        if least[q] is not None:
            continue
        least[q] = weight
        guard.tick(1 + len(sources[q]))
        for letter, source in sources[q]:
            if least[source] is None:
                heapq.heappush(heap, (weight + weights[letter], source))
    return [value or 0 for value in least]


def _correct(machine: Machine, weights: Sequence[int], guard: Guard) -> list[int] | NegativeCycle:
    sources = _sources(machine)
    least: list[int | None] = [0 if accepting else None for accepting in machine.accept]
    best: list[tuple[int, int] | None] = [None] * machine.states
    queue = deque(q for q, accepting in enumerate(machine.accept) if accepting)
    waiting = list(machine.accept)
    changes = 0
    while queue:
        target = queue.popleft()
        waiting[target] = False
        base = least[target] or 0
        guard.tick(1 + len(sources[target]))
        for letter, source in sources[target]:
            value, known = weights[letter] + base, least[source]
            if known is not None and known <= value:
                continue
            least[source], best[source] = value, (letter, target)
            changes += 1
            if changes % machine.states == 0 and (cycle := _cycle(best)) is not None:
                return cycle
            if not waiting[source]:
                waiting[source] = True
                queue.append(source)
    return [value or 0 for value in least]


def _cycle(best: Sequence[tuple[int, int] | None]) -> NegativeCycle | None:
    """Return a cycle of best edges, which exists only if its weight is negative; else None."""
    seen = [0] * len(best)
    for first in range(len(best)):
        path: list[int] = []
        q = first
        while not seen[q]:
            seen[q] = first + 1
            path.append(q)
            edge = best[q]
            if edge is None:
                break
            q = edge[1]
        else:
            if seen[q] == first + 1:
                states = path[path.index(q) :]
                letters = [edge[0] for state in states if (edge := best[state]) is not None]
                return NegativeCycle(states=tuple(states), letters=tuple(letters))
    return None


_STEPS = 1 << 10  # between two calls of the guard

# (state, number) -> the smallest number with the same words to go; None if there is no word.
Settle: TypeAlias = "Callable[[int, int], int | None]"
Accepts: TypeAlias = "Callable[[int, int], bool]"


@frozen
class WeightedMachine:
    """A trimmed machine with a weight on every edge and on stopping, none of them negative.

    Attributes:
        machine: the machine.
        steps: [states], the weights of the edges, in their order.
        stop: [states], the weight of stopping; None if the state does not accept.
    """

    machine: Machine
    steps: Sequence[Sequence[int]]
    stop: Sequence[int | None]


def cyclic_at_most(
    machine: Machine, weights: Sequence[int], bound: int, to_go: Sequence[int], guard: Guard
) -> Machine | None:
    """Return the words of `machine` whose letters weigh at most `bound`; None if there are none.

    Args:
        machine: trimmed.
        weights: [letters], of any sign.
        to_go: [states], from :func:`least_to_go`.

    Raises:
        CompileRefused: TCC403 or TCC404 from the guard.
    """
    slack = bound - to_go[machine.start]
    if slack < 0:
        return None
    weighed = WeightedMachine(
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
    """Refuse at once a result that must be too large, if the limit is on the number of calls.

    A trimmed machine with a cycle has a word of almost any length: a simple path to the cycle, some
    rounds, and a simple path from it. So its longest word within the bound is at most one round
    shorter than the bound. An acyclic machine has at least as many states as its longest word has
    calls.

    Raises:
        CompileRefused: TCC403 from the guard.
    """
    if all(weight == 1 for weight in weights) and bound > 2 * machine.states:
        guard.states(min(bound - machine.states, guard.max_states + 1))


def most_to_go(weighed: WeightedMachine) -> list[int | None]:
    """Return, for each state, the greatest weight of a word from it; None if it is unbounded."""
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
    weighed: WeightedMachine, q: int, group: Sequence[int], most: Sequence[int | None]
) -> int | None:
    """Return the greatest weight from `q` by leaving its component; None if it is unbounded."""
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
    weighed: WeightedMachine, first: int, settle: Settle, accepts: Accepts, guard: Guard
) -> Machine | None:
    """Return the machine over pairs (state, number); None if `settle` finds no word at the start.

    Args:
        first: the number at the start. Each edge subtracts its step from the number.
        settle: returns the number that represents a pair's number, or None if no word is left.
        accepts: returns whether a pair accepts, if its state does.
    """
    machine = weighed.machine
    begin = settle(machine.start, first)
    if begin is None:
        return None
    moves = [
        [(letter, target, step) for (letter, target), step in zip(row, steps, strict=True)]
        for row, steps in zip(machine.edges, weighed.steps, strict=True)
    ]
    # Pairs are numbered state by state: a number hashes to itself, a pair does not.
    numbers: list[dict[int, int]] = [{} for _ in moves]
    numbers[machine.start][begin] = 0
    states, lefts = [machine.start], [begin]
    edges: list[Edges] = []
    made, held, steps = 1, 0, 0
    most_pairs, most_edges = guard.max_states, guard.max_room
    for q, left in zip(states, lefts, strict=True):  # both lists grow in the loop
        row = []
        for letter, target, step in moves[q]:
            after = settle(target, left - step)
            if after is None:
                continue
            p = numbers[target].setdefault(after, made)
            if p == made:
                made += 1
                states.append(target)
                lefts.append(after)
            row.append((letter, p))
        edges.append(tuple(row))
        held += len(row)
        if made > most_pairs or held > most_edges:
            guard.states(made)
            guard.room(held)
        steps += 1 + len(moves[q])
        if steps > _STEPS:
            guard.note(made)
            guard.tick(steps)
            steps = 0
    guard.note(made)
    accept = [machine.accept[q] and accepts(q, left) for q, left in zip(states, lefts, strict=True)]
    return Machine(start=0, accept=accept, edges=edges, nondeterministic=machine.nondeterministic)
