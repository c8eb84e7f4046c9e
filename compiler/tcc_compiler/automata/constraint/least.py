"""The least weight of a word from each state of a machine with cycles, weights of any sign.

Without negative weights Dijkstra's algorithm; else labels are corrected until they hold, and a
cycle of negative weight is found in the tree of best edges.
Cost: edges times log states; edges times states at worst.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence

from tcc_compiler.automata.machine import Machine
from tcc_compiler.frozen import frozen
from tcc_compiler.resources.guard import Guard


@frozen
class NegativeCycle:
    """States and letters of a cycle whose weight is below zero."""

    states: tuple[int, ...]
    letters: tuple[int, ...]


def least_to_go(
    machine: Machine, weights: Sequence[int], guard: Guard
) -> list[int] | NegativeCycle:
    """[states], the least weight of a word from each state; or why there is none.

    Args: machine: trimmed.
    """
    if all(weights[letter] >= 0 for edges in machine.edges for letter, _ in edges):
        return _dijkstra(machine, weights, guard)
    return _correct(machine, weights, guard)


def _sources(machine: Machine) -> list[list[tuple[int, int]]]:
    """For each state the (letter, source) of the edges into it."""
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
    """A cycle of best edges: it exists only where its weight is below zero."""
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
