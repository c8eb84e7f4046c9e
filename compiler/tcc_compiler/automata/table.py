"""Automata: machines, state by state, with or without cycles; tables, acyclic, as numpy arrays.

A letter is a class of calls (:mod:`tcc_compiler.automata.letters`). A state refuses a letter if it
has no edge for it. A `Machine` costs one tuple for each state and one pair for each edge; trimming
and components are linear.

A `Table` has no cycles: its states are sorted by level, its edges by state. Every target is on a
lower level than its source. So a pass over a table handles a whole level at a time in numpy, and
the number of Python steps depends only on the number of levels. The least or greatest weights of
words from each state (`best_to_go`) take one such pass.
Cost of a table: 8 bytes for each edge, 9 for each state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from operator import add
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tcc_compiler.frozen import frozen
from tcc_compiler.resources import Guard

Edges: TypeAlias = "tuple[tuple[int, int], ...]"


@frozen
class Machine:
    """An automaton with states 0 .. n-1, usually deterministic.

    Attributes:
        start: the state of the empty prefix.
        accept: [n], whether a plan may stop.
        edges: [n], pairs (letter, target), letters strictly increasing unless nondeterministic.
        nondeterministic: True if a letter may lead to several targets; each pair occurs once.
    """

    start: int
    accept: Sequence[bool]
    edges: Sequence[Edges]
    nondeterministic: bool = False

    @property
    def states(self) -> int:
        """The number of states."""
        return len(self.accept)

    def targets(self, q: int) -> list[int]:
        """Return the targets of state `q`, one for each edge."""
        return [target for _, target in self.edges[q]]

    def degree_of(self, q: int) -> int:
        """Return how many edges state `q` has."""
        return len(self.edges[q])

    def row(self, q: int) -> Edges:
        """Return the pairs (letter, target) of state `q`."""
        return self.edges[q]


def components(size: int, successors: Callable[[int], Iterable[int]]) -> list[list[int]]:
    """Return the strongly connected components of a graph, targets before sources.

    Args:
        size: nodes are 0 .. size-1.
        successors: returns the targets of a node.

    Why not networkx: no networkx graph exists here, and its nodes are dictionaries. Measured on
    20,000 states with 60,000 edges, this function takes 30 ms. networkx takes 82 ms, plus 124 ms to
    build its graph. Its import takes another 124 ms, in a compile that otherwise does not import
    it.

    Source: Tarjan, Depth-first search and linear graph algorithms, 1972; here with an explicit
    stack.
    """
    closed: list[list[int]] = []
    index = [0] * size
    low = [0] * size
    open_nodes: list[int] = []
    count = 0
    for first in range(size):
        if index[first]:
            continue
        count += 1
        index[first] = low[first] = count
        open_nodes.append(first)
        walk = [(first, iter(successors(first)))]
        while walk:
            node, rest = walk[-1]
            for target in rest:
                if not index[target]:
                    count += 1
                    index[target] = low[target] = count
                    open_nodes.append(target)
                    walk.append((target, iter(successors(target))))
                    break
                # A closed node has low = size + 1, so it changes nothing.
                if low[target] < low[node]:
                    low[node] = low[target]
            else:
                walk.pop()
                if low[node] == index[node]:
                    closed.append(_close(node, open_nodes, low, size + 1))
                elif low[node] < low[walk[-1][0]]:
                    low[walk[-1][0]] = low[node]
    return closed


def _close(root: int, open_nodes: list[int], low: list[int], closed: int) -> list[int]:
    component: list[int] = []
    while not component or component[-1] != root:
        component.append(open_nodes.pop())
        low[component[-1]] = closed
    return component


def trim(machine: Machine) -> Machine | None:
    """Return `machine` without useless states, in order of discovery; None if no word is left."""
    live = _finishing(machine)
    if not live[machine.start]:
        return None
    number = {machine.start: 0}
    order = [machine.start]
    for q in order:
        for _, target in machine.edges[q]:
            if live[target] and target not in number:
                number[target] = len(order)
                order.append(target)
    if len(order) == machine.states and machine.start == 0:
        return machine
    return Machine(
        start=0,
        accept=[machine.accept[q] for q in order],
        edges=[
            tuple((letter, number[target]) for letter, target in machine.edges[q] if live[target])
            for q in order
        ],
        nondeterministic=machine.nondeterministic,
    )


def _finishing(machine: Machine) -> list[bool]:
    """Return, for each state, whether an accepting state can be reached."""
    sources: list[list[int]] = [[] for _ in machine.accept]
    for q, edges in enumerate(machine.edges):
        for _, target in edges:
            sources[target].append(q)
    live = list(machine.accept)
    todo = [q for q, accepting in enumerate(live) if accepting]
    while todo:
        for source in sources[todo.pop()]:
            if not live[source]:
                live[source] = True
                todo.append(source)
    return live


Bools: TypeAlias = NDArray[np.bool_]
Ints: TypeAlias = NDArray[np.int64]
Numbers: TypeAlias = NDArray[np.int32]
# Exact integers: of 64 bits if they fit, else Python integers.
Exact: TypeAlias = NDArray[Any]

_WIDE = 8
_LOOKED_AT = 64  # levels after which `_levels` checks whether levels have few states
_FEW = 1 << 10
_GUESSES = 16  # the most rounds of a guess; each may change one state in _FEW_CHANGES
_FEW_CHANGES = 64
_PORTION = 1 << 15


@frozen(eq=False)
class Table:
    """An acyclic automaton with states 0 .. n-1. The start is last; no state is useless.

    Attributes:
        accept: [n], whether a plan may stop.
        edge_start: [n+1], the edges of state q are edge_start[q] .. edge_start[q+1]-1.
        letter, target: [edges], letters increasing within a state.
        levels: [levels+1], the first state of each level. Level 0 has all states without edges and
            no others.
        nondeterministic: True if a letter may lead to several targets; each pair occurs once.
    """

    accept: Bools
    edge_start: Ints
    letter: Numbers
    target: Numbers
    levels: Ints
    nondeterministic: bool = False

    @property
    def states(self) -> int:
        """The number of states."""
        return len(self.accept)

    @property
    def edges(self) -> int:
        """The number of edges, over letters."""
        return len(self.target)

    @property
    def degree(self) -> Ints:
        """[n], how many edges each state has."""
        return self.edge_start[1:] - self.edge_start[:-1]

    @property
    def start(self) -> int:
        """The state of the empty prefix."""
        return len(self.accept) - 1

    @property
    def is_narrow(self) -> bool:
        """True if levels have so few states that handling one state at a time is faster."""
        return len(self.accept) < _WIDE * len(self.levels)

    def degree_of(self, q: int) -> int:
        """Return how many edges state `q` has."""
        return int(self.edge_start[q + 1] - self.edge_start[q])

    def row(self, q: int) -> Sequence[tuple[int, int]]:
        """Return the pairs (letter, target) of state `q`."""
        edges = slice(self.edge_start[q], self.edge_start[q + 1])
        return list(zip(self.letter[edges].tolist(), self.target[edges].tolist(), strict=True))

    def bands(self) -> Iterator[tuple[slice, slice]]:
        """Yield the states and the edges of every level except the first, lowest level first."""
        firsts = self.levels.tolist()
        edges = self.edge_start.take(self.levels).tolist()
        for at in range(1, len(firsts) - 1):
            yield slice(firsts[at], firsts[at + 1]), slice(edges[at], edges[at + 1])


def as_machine(table: Table) -> Machine:
    """Return the same states and edges as a machine."""
    starts = table.edge_start.tolist()
    pairs = list(zip(table.letter.tolist(), table.target.tolist(), strict=True))
    return Machine(
        start=table.start,
        accept=table.accept.tolist(),
        edges=[tuple(pairs[a:b]) for a, b in pairwise(starts)],
        nondeterministic=table.nondeterministic,
    )


def as_table(machine: Machine) -> Table | None:
    """Return the table of a trimmed machine; None if there is a cycle."""
    return layered(*_arrays(machine), machine.nondeterministic)


def as_trimmed_table(machine: Machine) -> Table | None:
    """Return :func:`as_table` of any machine; None with a cycle, or if a state may be useless."""
    accept, degree, letter, target = _arrays(machine)
    sources = np.flatnonzero(np.bincount(target, minlength=machine.states) == 0)
    # Without cycles, each state is reachable from a state that is no target, and leads to a state
    # without edges. So if the start is the only state that is no target, and all states without
    # edges accept, no state is useless.
    if sources.tolist() != [machine.start] or not accept[degree == 0].all():
        return None
    return layered(accept, degree, letter, target, machine.nondeterministic)


def _arrays(machine: Machine) -> tuple[Bools, Ints, Numbers, Numbers]:
    """Return acceptance and degree of each state, letter and target of each edge."""
    flat = np.fromiter(
        chain.from_iterable(chain.from_iterable(machine.edges)), dtype=np.int32
    ).reshape(-1, 2)
    degree = np.fromiter(map(len, machine.edges), dtype=np.int64, count=machine.states)
    return np.array(machine.accept, dtype=np.bool_), degree, flat[:, 0], flat[:, 1]


def layered(
    accept: Bools,
    degree: Ints,
    letter: Numbers,
    target: Numbers,
    nondeterministic: bool = False,
) -> Table | None:
    """Return the table of states given in any order, sorted by longest word; None with a cycle.

    Args:
        degree: [n], how many edges each state has. Edges are sorted by their state.
        letter, target: [edges]. Exactly one state, from which all others are reached, is no target.
    """
    found = (_few_levels if len(degree) < _FEW else _levels)(degree, target)
    if found is None:
        return None
    order, sizes = found
    start = starts(degree)
    unordered = Table(
        accept=accept,
        edge_start=start,
        letter=letter,
        target=target,
        levels=starts(np.array(sizes, dtype=np.int64)),
        nondeterministic=nondeterministic,
    )
    return reordered(unordered, order)


def ranked(table: Table) -> Table:
    """Return the table with levels by rank, which is the length of a state's longest word."""
    rank = np.zeros(table.states, dtype=np.int64)
    if table.is_narrow:
        level = np.repeat(np.arange(len(table.levels) - 1), np.diff(table.levels))
        calls = np.ones(table.edges, dtype=np.int64)
        rank = _narrow_best(table, calls, np.maximum, rank, level)
    else:
        for states, edges in table.bands():
            below = rank.take(table.target[edges])
            rank[states] = 1 + np.maximum.reduceat(below, table.edge_start[states] - edges.start)
    by_rank = replace(table, levels=starts(np.bincount(rank)))
    if np.all(rank[1:] >= rank[:-1]):
        return by_rank
    return reordered(by_rank, _by_level(rank))


def reordered(table: Table, order: Ints) -> Table:
    """Return the table with its states in `order`; `table.levels` must already fit that order."""
    number = np.empty(len(order), dtype=np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    degree, first = table.degree.take(order), table.edge_start.take(order)
    start = starts(degree)
    letter, target = np.empty_like(table.letter), np.empty_like(table.target)
    for begin, end in portions(start):
        edges = spread(first[begin:end], degree[begin:end])
        rows = slice(start[begin], start[end])
        table.letter.take(edges, mode="clip", out=letter[rows])
        number.take(table.target.take(edges), mode="clip", out=target[rows])
    return replace(
        table, accept=table.accept[order], edge_start=start, letter=letter, target=target
    )


def _levels(degree: Ints, target: Numbers) -> tuple[Ints, list[int]] | None:
    """Return the states sorted by longest word, and each length's count; None with a cycle.

    States of one length keep their order. If levels turn out to have few states, the work is done
    again by :func:`_few_levels`.
    """
    into = np.bincount(target, minlength=len(degree))
    first_in = starts(into)
    # Edges sorted by target, as packed pairs: sorting values takes a third of the time of argsort.
    source = np.repeat(np.arange(len(degree)), degree)
    source |= target.astype(np.int64) << 32
    source.sort()
    source &= (1 << 32) - 1
    waiting = degree.copy()
    place = np.empty(len(degree), dtype=np.int64)
    level = np.flatnonzero(degree == 0)
    levels = []
    known = 0
    while len(level):
        levels.append(level)
        known += len(level)
        if len(levels) >= _LOOKED_AT and known < _WIDE * len(levels):
            return _few_levels(degree, target)
        sources = source.take(spread(first_in.take(level), into.take(level)))
        np.subtract.at(waiting, sources, 1)
        level = _once(sources[waiting.take(sources) == 0], place)
    if known < len(degree):
        return None
    of = np.empty(len(degree), dtype=np.int32)
    sizes = list(map(len, levels))
    of[np.concatenate(levels)] = np.repeat(np.arange(len(levels)), sizes)
    return _by_level(of), sizes


def _by_level(level: Ints | Numbers) -> Ints:
    """Return the states sorted by level; states of one level keep their order."""
    # numpy sorts numbers of 16 bits digit by digit, which is faster.
    narrow = level.astype(np.uint16) if int(level.max(initial=0)) < 1 << 16 else level
    return np.argsort(narrow, kind="stable")


def _once(states: Ints, place: Ints) -> Ints:
    """Return `states` without repetitions; `place` is a work array with one number per state."""
    at = np.arange(len(states))
    place[states] = at
    once: Ints = states[place.take(states) == at]
    return once


def _few_levels(degree: Ints, target: Numbers) -> tuple[Ints, list[int]] | None:
    """Return the same as :func:`_levels`, computed one state at a time."""
    first, targets = starts(degree).tolist(), target.tolist()
    level = [0] * len(degree)
    below = level.__getitem__
    if np.all(target > np.repeat(np.arange(len(degree)), degree)):
        order: Sequence[int] = range(len(degree) - 1, -1, -1)
    else:
        found = _targets_first(first, targets)
        if found is None:
            return None
        order = found
    for q in order:
        row = targets[first[q] : first[q + 1]]
        if row:
            level[q] = 1 + max(map(below, row))
    of = np.array(level, dtype=np.int32)
    return _by_level(of), np.bincount(of).tolist()


def _targets_first(first: Sequence[int], targets: Sequence[int]) -> list[int] | None:
    """Return an order of the states in which targets precede sources; None with a cycle."""
    sources: list[list[int]] = [[] for _ in first[1:]]
    for q, (begin, end) in enumerate(pairwise(first)):
        for to in targets[begin:end]:
            sources[to].append(q)
    waiting = [end - begin for begin, end in pairwise(first)]
    order = [q for q, edges in enumerate(waiting) if not edges]
    for q in order:  # grows as it is read
        for source in sources[q]:
            waiting[source] -= 1
            if not waiting[source]:
                order.append(source)
    return order if len(order) == len(waiting) else None


def starts(sizes: Ints | Bools) -> Ints:
    """Return where consecutive groups of these sizes begin, and where the last one ends."""
    begins = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=begins[1:])
    return begins


def distinct(ordered: Ints) -> Ints:
    """Return the sorted numbers without repetitions."""
    fresh = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=fresh[1:])
    return ordered[fresh]


def portions(start: Ints, among: Ints | None = None) -> Iterator[tuple[int, int]]:
    """Yield ranges of states with a bounded number of edges each, so that work stays in the cache.

    Args:
        start: [states+1], how many edges all earlier states have.
        among: states at which ranges must end, increasing, with both ends of the table.
    """
    edges = int(start[-1])
    if among is None and edges <= _PORTION:
        yield 0, len(start) - 1
        return
    marks = np.searchsorted(start, np.arange(_PORTION, edges, _PORTION))
    ends = np.array([0, len(start) - 1]) if among is None else among
    yield from pairwise(np.union1d(marks, ends).tolist())


def spread(first: Ints, sizes: Ints) -> Ints:
    """Return first[0], first[0]+1, .. (sizes[0] numbers), then first[1], .. and so on."""
    numbers = np.repeat(first - starts(sizes)[:-1], sizes)
    numbers += np.arange(len(numbers))
    return numbers


def as_deterministic(table: Table) -> Table:
    """Return `table`, marked deterministic if it is; its counts of plans are then exact."""
    if not table.nondeterministic:
        return table
    same = table.letter[1:] == table.letter[:-1]
    inner = np.ones(table.edges, dtype=np.bool_)
    firsts = table.edge_start[:-1]
    inner[firsts[firsts < table.edges]] = False
    return table if bool(np.any(same & inner[1:])) else replace(table, nondeterministic=False)


def summed(
    values: NDArray[Any], first: Ints, out: NDArray[Any] | None = None, gaps: bool = False
) -> NDArray[Any]:
    """Return the sums of consecutive groups along the last axis.

    Args:
        values: 64-bit integers; sums are modulo 2^64.
        first: [groups], where each group begins; the first at 0.
        out: the array for the result.
        gaps: True if groups may be empty.
    """
    size = values.shape[-1]
    rows = values.size // max(1, size)
    # `reduceat` is slow for each group, a cumulative sum is slow for each number.
    if not gaps and rows * len(first) < 600 + values.size // 12:
        return np.add.reduceat(values, first, axis=-1, out=out)
    sums = np.empty((*values.shape[:-1], size + 1), dtype=values.dtype)
    sums[..., 0] = 0
    values.cumsum(axis=-1, out=sums[..., 1:])
    ends = np.empty(len(first) + 1, dtype=np.int64)
    ends[:-1], ends[-1] = first, size
    marks = sums.take(ends, axis=-1)
    return np.subtract(marks[..., 1:], marks[..., :-1], out=out)


# Least and greatest weights, as 64-bit integers if every sum fits, else as Python integers.

_SAFE = 1 << 62


def exact_type(greatest: int) -> DTypeLike:
    """Return the dtype for numbers and sums of at most `greatest`, which is not negative."""
    return np.int64 if greatest < _SAFE else object


def exact_array(values: Sequence[int], times: int, other: int = 0) -> Exact:
    """Return `values` as an array in which a sum of `times` of them, plus `other`, is exact."""
    greatest = max(map(abs, values), default=0) * times + abs(other)
    return np.array(values, dtype=exact_type(greatest))


def best_to_go(
    table: Table,
    weight: Exact,
    best: np.ufunc,
    guard: Guard,
    stop: Exact | None = None,
    past: int | None = None,
) -> Exact:
    """Return [states], the least or greatest weight of a word from each state.

    Args:
        weight: [edges], so small that sums over a word are exact.
        best: ``minimum`` or ``maximum``.
        stop: [states], the weight of stopping, used where a state accepts; None: 0 everywhere.
        past: only with ``maximum`` and no negative weight. All weights from `past` on count as
            equal, so any number of at least `past` may be returned for them.
    """
    best_weights: Exact = (
        np.zeros(table.states, dtype=weight.dtype) if stop is None else stop.copy()
    )
    if table.is_narrow:
        guard.tick(table.edges)
        guess = np.full(table.states, past or 0, dtype=weight.dtype)
        return _narrow_best(table, weight, best, best_weights, guess, past)
    for states, edges in table.bands():
        guard.tick(edges.stop - edges.start)
        ways = best_weights.take(table.target[edges])
        ways += weight[edges]
        ways = best.reduceat(ways, table.edge_start[states] - edges.start)
        best_weights[states] = np.where(
            table.accept[states], best(ways, best_weights[states]), ways
        )
    return best_weights


def _narrow_best(
    table: Table,
    weight: Exact,
    best: np.ufunc,
    stop: Exact,
    guess: Exact,
    past: int | None = None,
) -> Exact:
    """Return :func:`best_to_go` for levels with few states.

    Each state's best weight is determined by the weights of its targets. These equations have only
    one solution, as there are no cycles. So `guess` is put into the equations of all states at
    once, and the result is put in again, while this changes few states. Otherwise states are
    handled one at a time.
    """
    # Guessing is worth its numpy calls only if a round may change at least one state.
    if weight.dtype == np.int64 and table.states > _FEW_CHANGES:
        low = int(table.levels[1])  # states below have no edges
        first, accept = table.edge_start[low:-1], table.accept[low:]
        gaps = not table.degree[low:].all()
        guess[:low] = stop[:low] if past is None else np.minimum(stop[:low], past)
        for _ in range(0 if gaps else _GUESSES):
            ways = best.reduceat(weight + guess.take(table.target), first)
            ways = np.where(accept, best(ways, stop[low:]), ways)
            if past is not None:
                np.minimum(ways, past, out=ways)
            changed = int(np.count_nonzero(ways != guess[low:]))
            guess[low:] = ways
            if not changed:
                return guess
            if changed > table.states // _FEW_CHANGES:
                break
    return _best_by_state(table, weight, best, stop)


def _best_by_state(table: Table, weight: Exact, best: np.ufunc, stop: Exact) -> Exact:
    """Return :func:`best_to_go`, computed one state at a time."""
    choose: Callable[[Iterable[int]], int] = min if best is np.minimum else max
    target, weights = table.target.tolist(), weight.tolist()
    best_weights, accept = stop.tolist(), table.accept.tolist()
    for q, (first, last) in enumerate(pairwise(table.edge_start.tolist())):
        if last - first == 1:
            way = weights[first] + best_weights[target[first]]
            best_weights[q] = choose((way, best_weights[q])) if accept[q] else way
        elif first < last:
            ways = map(add, weights[first:last], map(best_weights.__getitem__, target[first:last]))
            best_weights[q] = choose([*ways, best_weights[q]] if accept[q] else ways)
    return np.array(best_weights, dtype=weight.dtype)
