"""Determinising the plan expression: the state sets that are reached, made on demand.

Where limits bound the weight of a word (the driver), states are visited by the least weight of a
prefix, and a state that cannot be finished within the bound gets no edges: with a limit on depth
the exploration ends, whatever the recursion.  This only cuts words that break the limit; the limit
itself is applied afterwards, exactly, like every other.
Cost: linear in the sets and their members; the number of sets may be exponential, hence the caps.
:func:`follow` makes no sets: its states are partial derivatives.
Source: the subset construction (Rabin and Scott, 1959), over stacks instead of states.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from tcc_compiler.automata.machine import Edges, Machine
from tcc_compiler.automata.regular.network import Network
from tcc_compiler.automata.regular.partial import Partials
from tcc_compiler.frozen import frozen
from tcc_compiler.resources.guard import Guard

_ROOM = 64


@frozen
class Driver:
    """A bound that every plan meets: the sum of its letters' weights, each at least 0.

    Attributes:
        weights: [letters].
        bound: the most that a plan may weigh.
        text: the limits that it stands for.
        depth: True where every weight is 1.
    """

    weights: Sequence[int]
    bound: int
    text: str
    depth: bool


def determinise(
    network: Network, first: int, driver: Driver | None, cap: int, guard: Guard
) -> Machine | None:
    """The automaton of the state sets that are reached from set `first`.

    Args:
        driver: cuts what cannot be finished within its bound; None cuts nothing.
        cap: give up, with None, past so many states, or so many times `_ROOM` members of sets.
    """
    number = {first: 0}
    sets = [first]
    spent = {first: 0}
    accept: dict[int, bool] = {}
    edges: dict[int, Edges] = {}
    heap = [(0, 0)]
    while heap:
        weight, q = heapq.heappop(heap)
        if q in edges:
            continue
        guard.tick()
        if _lost(network, sets[q], weight, driver):
            accept[q], edges[q] = False, ()
            continue
        row = []
        for letter, target in network.step(sets[q]).items():
            spent_there = weight + driver.weights[letter] if driver else 0
            if target not in number:
                number[target] = len(sets)
                sets.append(target)
                spent[target] = spent_there + 1
            p = number[target]
            if spent_there < spent[target]:
                spent[target] = spent_there
                heapq.heappush(heap, (spent_there, p))
            row.append((letter, p))
        accept[q], edges[q] = network.sets[sets[q]][0], tuple(row)
        guard.note(len(sets))
        if len(sets) > cap or network.room > _ROOM * cap:
            return None
    order = range(len(sets))
    return Machine(start=0, accept=[accept[q] for q in order], edges=[edges[q] for q in order])


def follow(partials: Partials, root: int, driver: Driver | None, guard: Guard) -> Machine:
    """The nondeterministic automaton of the partial derivatives that are reached from node `root`.

    Args:
        driver: cuts what cannot be finished within its bound; None cuts nothing.

    Raises:
        Refused: TCC403, TCC404 from the guard.
    """
    first = partials.initial(root)
    if first is None:
        return Machine(start=0, accept=[False], edges=[()], nondeterministic=True)
    number = {first: 0}
    stacks = [first]
    spent = {first: 0}
    edges: dict[int, Edges] = {}
    heap = [(0, 0)]
    held = 0
    while heap:
        weight, q = heapq.heappop(heap)
        if q in edges:
            continue
        row = []
        if driver is None or weight + partials.least[stacks[q]] <= driver.bound:
            for letter, targets in partials.step(stacks[q]).items():
                spent_there = weight + driver.weights[letter] if driver else 0
                for target in targets:
                    p = number.setdefault(target, len(stacks))
                    if p == len(stacks):
                        stacks.append(target)
                    if spent_there < spent.get(target, spent_there + 1):
                        spent[target] = spent_there
                        heapq.heappush(heap, (spent_there, p))
                    row.append((letter, p))
        edges[q] = tuple(row)
        held += len(row)
        guard.tick(1 + len(row))
        guard.states(len(stacks))
        guard.room(held)
    return Machine(
        start=0,
        accept=[partials.complete[stack] for stack in stacks],
        edges=[edges[q] for q in range(len(stacks))],
        nondeterministic=True,
    )


def _lost(network: Network, number: int, weight: int, driver: Driver | None) -> bool:
    least = network.least[number]
    return least is None or (driver is not None and weight + least > driver.bound)


def determinise_by_depth(
    network: Network, first: int, depth: int, cap: int, guard: Guard
) -> Machine | None:
    """The automaton of the words of at most `depth` calls, one layer for each depth.

    Positions that cannot be finished in the calls that are left are dropped from the sets.  It
    stays small where the automaton without a limit is large only because of longer words.
    """
    layer = {_prune(network, first, depth): 0}
    accept: list[bool] = []
    edges: list[Edges] = []
    made = 1
    for left in range(depth, -1, -1):
        below: dict[int, int] = {}
        for number in layer:
            guard.tick()
            accept.append(network.sets[number][0])
            row = []
            for letter, target in network.step(number).items() if left else ():
                pruned = _prune(network, target, left - 1)
                if pruned:
                    p = below.setdefault(pruned, made)
                    made += p == made
                    row.append((letter, p))
            edges.append(tuple(row))
            guard.note(made)
            if made > cap or network.room > _ROOM * cap:
                return None
        layer = below
        if not layer:
            break
    return Machine(start=0, accept=accept, edges=edges)


def _prune(network: Network, number: int, left: int) -> int:
    """The set without the positions that take more than `left` calls to finish."""
    complete, positions = network.sets[number]
    kept = tuple(p for p in positions if network.position_least[p] <= left)
    return number if len(kept) == len(positions) else network.intern(complete, kept)
