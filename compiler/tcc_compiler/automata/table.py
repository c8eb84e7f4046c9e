"""Automata: state by state, with or without cycles; and without, as arrays sorted by level.

A letter is a class of calls (:mod:`tcc_compiler.automata.letters`).  A state refuses a letter
without an edge.  A `Machine` costs one tuple for each state and one pair for each edge; trimming
and components are linear.

A table is an automaton without cycles: states are sorted by level, edges by state. Every target is
on a lower level than its source, so a pass over a table handles a whole level at a time in numpy,
and the number of Python steps depends on the levels alone. The extremal weights of words from each
state (`best_to_go`) take one such pass.
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
    """An automaton with states 0 .. n-1, mostly deterministic.

    Attributes:
        start: the state of the empty prefix.
        accept: [n], whether a plan may stop.
        edges: [n], pairs (letter, target) with letters strictly increasing (see below).
        nondeterministic: True where a letter may lead to several targets; no pair stands twice.
    """

    start: int
    accept: Sequence[bool]
    edges: Sequence[Edges]
    nondeterministic: bool = False

    @property
    def states(self) -> int:
        """How many states there are."""
        return len(self.accept)

    def targets(self, q: int) -> list[int]:
        """The targets of state `q`, one for each edge."""
        return [target for _, target in self.edges[q]]

    def degree_of(self, q: int) -> int:
        """How many edges state `q` has."""
        return len(self.edges[q])

    def row(self, q: int) -> Edges:
        """The pairs (letter, target) of state `q`."""
        return self.edges[q]


def components(size: int, successors: Callable[[int], Iterable[int]]) -> list[list[int]]:
    """The strongly connected components of a graph, targets before sources.

    Args:
        size: nodes are 0 .. size-1.
        successors: the targets of a node.

    Why not networkx: no graph of it is at hand here, and its nodes are dictionaries.  Measured on
    20,000 states with 60,000 edges, this takes 30 ms; networkx takes 82 ms, 124 ms before that to
    build its graph, and 124 ms to be imported by a compile, which imports nothing of it now.

    Source: Tarjan, Depth-first search and linear graph algorithms, 1972; with its own stack.
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
                # A closed node has low = size + 1 and changes nothing.
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
    """`machine` without useless states, in order of discovery; None where no word is left."""
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
    """For each state, whether an accepting one can be reached."""
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
# Exact integers: 64 bits where they fit, Python's own where they do not.
Exact: TypeAlias = NDArray[Any]

_WIDE = 8
_LOOKED_AT = 64  # levels after which their states are compared with that
_FEW = 1 << 10
_GUESSES = 16  # rounds of a guess, each of which may change one state in so many
_FEW_CHANGES = 64
_PORTION = 1 << 15


@frozen(eq=False)
class Table:
    """States 0 .. n-1, the start last; every other state is reached from it, and can finish.

    Attributes:
        accept: [n], whether a plan may stop.
        edge_start: [n+1], the edges of state q are edge_start[q] .. edge_start[q+1]-1.
        letter, target: [edges], letters increasing inside a state.
        levels: [levels+1], the first state of each level; level 0 has the states without edges,
            and no other has such a state.
        nondeterministic: True where a letter may lead to several targets; no pair stands twice.
    """

    accept: Bools
    edge_start: Ints
    letter: Numbers
    target: Numbers
    levels: Ints
    nondeterministic: bool = False

    @property
    def states(self) -> int:
        """How many states there are."""
        return len(self.accept)

    @property
    def edges(self) -> int:
        """How many edges there are, over letters."""
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
        """Whether levels have so few states that one at a time is faster than all at once."""
        return len(self.accept) < _WIDE * len(self.levels)

    def degree_of(self, q: int) -> int:
        """How many edges state `q` has."""
        return int(self.edge_start[q + 1] - self.edge_start[q])

    def row(self, q: int) -> Sequence[tuple[int, int]]:
        """The pairs (letter, target) of state `q`."""
        edges = slice(self.edge_start[q], self.edge_start[q + 1])
        return list(zip(self.letter[edges].tolist(), self.target[edges].tolist(), strict=True))

    def bands(self) -> Iterator[tuple[slice, slice]]:
        """The states and the edges of every level but the first, lowest first."""
        firsts = self.levels.tolist()
        edges = self.edge_start.take(self.levels).tolist()
        for at in range(1, len(firsts) - 1):
            yield slice(firsts[at], firsts[at + 1]), slice(edges[at], edges[at + 1])


def as_machine(table: Table) -> Machine:
    """The same states and edges, as a machine."""
    starts = table.edge_start.tolist()
    pairs = list(zip(table.letter.tolist(), table.target.tolist(), strict=True))
    return Machine(
        start=table.start,
        accept=table.accept.tolist(),
        edges=[tuple(pairs[a:b]) for a, b in pairwise(starts)],
        nondeterministic=table.nondeterministic,
    )


def as_table(machine: Machine) -> Table | None:
    """The table of a trimmed machine; None where there is a cycle."""
    return layered(*_arrays(machine), machine.nondeterministic)


def as_trimmed_table(machine: Machine) -> Table | None:
    """:func:`as_table` of any machine; None where there is a cycle, or may be a useless state."""
    accept, degree, letter, target = _arrays(machine)
    sources = np.flatnonzero(np.bincount(target, minlength=machine.states) == 0)
    # Without cycles each state is reached from one that is no target, and leads to one without
    # edges.
    if sources.tolist() != [machine.start] or not accept[degree == 0].all():
        return None
    return layered(accept, degree, letter, target, machine.nondeterministic)


def _arrays(machine: Machine) -> tuple[Bools, Ints, Numbers, Numbers]:
    """Acceptance and degree of each state, letter and target of each edge."""
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
    """A table from states in any order, each on the level of its longest word; None with a cycle.

    Args:
        degree: [n], the edges of each state; those of one state stand side by side, in order.
        letter, target: [edges].  One state, from which all others are reached, is no target.
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
    """The same states, where each level has the states of one rank (length of the longest word)."""
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
    """The states of `table` in `order`; the levels of `table` are already those of that order."""
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
    """The states by the length of the longest word, and how many have each; None with a cycle.

    States of one length stand in their order.  Where levels turn out to have few states it begins
    again, one state at a time.
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
    """The states by their levels; those of one level in their order."""
    # Levels of 16 bits are sorted digit by digit.
    narrow = level.astype(np.uint16) if int(level.max(initial=0)) < 1 << 16 else level
    return np.argsort(narrow, kind="stable")


def _once(states: Ints, place: Ints) -> Ints:
    """`states` without repetitions; `place` is a work array with a number for each state."""
    at = np.arange(len(states))
    place[states] = at
    once: Ints = states[place.take(states) == at]
    return once


def _few_levels(degree: Ints, target: Numbers) -> tuple[Ints, list[int]] | None:
    """:func:`_levels`, one state at a time; the same order."""
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
    """An order of the states in which targets precede sources; None with a cycle."""
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
    """Where consecutive groups of these sizes begin, and the end of the last."""
    begins = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=begins[1:])
    return begins


def distinct(ordered: Ints) -> Ints:
    """Numbers in non-decreasing order, without repetitions."""
    fresh = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=fresh[1:])
    return ordered[fresh]


def portions(start: Ints, among: Ints | None = None) -> Iterator[tuple[int, int]]:
    """Ranges of states with a bounded number of edges each, so that the work stays in the cache.

    Args:
        start: [states+1], how many edges the states before have.
        among: increasing, where ranges have to end; with both ends of the table.
    """
    edges = int(start[-1])
    if among is None and edges <= _PORTION:
        yield 0, len(start) - 1
        return
    marks = np.searchsorted(start, np.arange(_PORTION, edges, _PORTION))
    ends = np.array([0, len(start) - 1]) if among is None else among
    yield from pairwise(np.union1d(marks, ends).tolist())


def spread(first: Ints, sizes: Ints) -> Ints:
    """first[0], first[0]+1, .. (sizes[0] of them), first[1], .. and so on."""
    numbers = np.repeat(first - starts(sizes)[:-1], sizes)
    numbers += np.arange(len(numbers))
    return numbers


def as_deterministic(table: Table) -> Table:
    """`table`, marked deterministic if it is: then its counts of plans are exact."""
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
    """The sums of consecutive groups along the last axis.

    Args:
        values: of 64 bits; sums of more are sums modulo 2^64.
        first: [groups], where groups begin; the first at 0.
        gaps: True where groups may be empty.
    """
    size = values.shape[-1]
    rows = values.size // max(1, size)
    # `reduceat` takes long for each group, a cumulative sum for each number.
    if not gaps and rows * len(first) < 600 + values.size // 12:
        return np.add.reduceat(values, first, axis=-1, out=out)
    sums = np.empty((*values.shape[:-1], size + 1), dtype=values.dtype)
    sums[..., 0] = 0
    values.cumsum(axis=-1, out=sums[..., 1:])
    ends = np.empty(len(first) + 1, dtype=np.int64)
    ends[:-1], ends[-1] = first, size
    marks = sums.take(ends, axis=-1)
    return np.subtract(marks[..., 1:], marks[..., :-1], out=out)


# Extremal weights. 64-bit integers where every sum fits, Python's own where one may not.

_SAFE = 1 << 62


def exact_type(greatest: int) -> DTypeLike:
    """The type of an array whose numbers and sums are at most `greatest`, which is not negative."""
    return np.int64 if greatest < _SAFE else object


def exact_array(values: Sequence[int], times: int, other: int = 0) -> Exact:
    """`values` as an array in which a sum of `times` of them and `other` is exact."""
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
    """[states], the least or greatest weight of a word from each state.

    Args:
        weight: [edges], so small that sums over a word are exact.
        best: ``minimum`` or ``maximum``.
        stop: [states], the weight of stopping, looked at where a state accepts; 0 where left out.
        past: with ``maximum`` and no negative weight, a number from which on greater ones need not
            be told apart: at least `past` may stand for all of them.
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
    """:func:`best_to_go` where levels have few states.

    Weights that are best of all edges in every state are the best weights, as there are no cycles:
    so `guess` is put into the equations of all states at once, and what comes out again, as long
    as that changes few states.  Else one state at a time.
    """
    # A guess pays for its calls of numpy where a changed state may be let pass.
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
    """:func:`best_to_go`, one state at a time."""
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
