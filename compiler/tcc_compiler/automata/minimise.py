"""Minimisation: merge states with equal residual languages.

An automaton without cycles becomes a table. Each state gets a hash of its language, computed level
by level from acceptance and the pairs (letter, hash of the target). States with equal hashes are
compared, edge by edge, with the first state of that hash. Targets are compared too, so states that
agree have equal languages. After a collision, other constants are tried; in the end, no hashes at
all.
In an automaton with cycles, blocks of states are split until no call separates two states of a
block.
Cost: linear in the edges, plus one sort of the states; with cycles, edges times log states.
Sources: Revuz, Minimisation of acyclic deterministic automata in linear time, 1992; hashes replace
the sort of every level. Hopcroft, see :class:`Refinement`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tcc_compiler.automata import table as tables
from tcc_compiler.frozen import frozen
from tcc_compiler.resources import Guard

Hashes: TypeAlias = NDArray[np.uint64]

_STEPS = 1 << 10  # between looks at the clock
_ATTEMPTS = 4
_FEW = 1 << 8
# If there are at most 2^_PACKED states, the low bits of a hash are replaced by the state's number.
_PACKED = 20
_GOLDEN = 0x9E3779B97F4A7C15


def merged(table: tables.Table, guard: Guard) -> tables.Table:
    """Return the smallest table of the same words.

    In a nondeterministic table, states that are bisimilar are merged.
    """
    # In a narrow table a pass merges one level only. With few states, comparing rows is then faster
    # than hashing them again for each level.
    for attempt in range(_ATTEMPTS if table.states > _FEW else 0):
        narrow = table.is_narrow
        twin = _twins((_row_hashes if narrow else _hashes)(table, attempt, guard))
        if twin is None:
            return table
        if _agree(table, twin):
            table = _merged_states(table, twin)
            if not narrow:
                return table
    twin = _exact_twins(table, guard)
    return table if twin is None else _merged_states(table, twin)


def _mix(values: Hashes) -> Hashes:
    """Spread every bit over all bits (splitmix64's finaliser, one multiplication shorter)."""
    mixed = values ^ (values >> np.uint64(32))
    mixed *= np.uint64(0xD6E8FEB86659FD93)
    mixed ^= mixed >> np.uint64(29)
    return mixed


def _constants(first: int, count: int) -> Hashes:
    seeds = np.arange(first, first + count, dtype=np.uint64) * np.uint64(_GOLDEN)
    return _mix(_mix(seeds + np.uint64(1)) + np.uint64(_GOLDEN)) | np.uint64(1)


def _hashes(table: tables.Table, attempt: int, guard: Guard) -> Hashes:
    """Return [states], equal hashes for equal languages; for others with small probability."""
    most = int(table.letter.max(initial=0))
    constants = _constants(attempt * (most + 3), most + 3)
    factor = constants[2:].take(table.letter)
    hashes: Hashes = constants[:2].take(table.accept)
    bottom = slice(0, int(table.levels[1]))
    hashes[bottom] = _mix(hashes[bottom])
    # After a limit was applied, states above the first level may have no edges.
    gaps = not table.degree[bottom.stop :].all()
    for states, edges in table.bands():
        guard.tick(edges.stop - edges.start)
        values = hashes.take(table.target[edges]) * factor[edges]
        if table.nondeterministic:
            values = _once(values, np.diff(table.edge_start[states.start : states.stop + 1]))
        sums = tables.summed(values, table.edge_start[states] - edges.start, gaps=gaps)
        hashes[states] = _mix(hashes[states] + sums)
    return hashes


def _row_hashes(table: tables.Table, attempt: int, guard: Guard) -> Hashes:
    """Return [states], equal hashes for equal acceptance and edges; else with small probability.

    Suppose two states have equal languages, and take the lowest such pair. Below it, equal
    languages mean the same state, so the two have the same edges. Hence a table without two equal
    rows is minimal, and no pass from level to level is needed.
    """
    guard.tick(table.edges)
    most = int(table.letter.max(initial=0))
    constants = _constants(attempt * (most + 3), most + 3)
    values = _mix(constants[2:].take(table.letter) + table.target.astype(np.uint64))
    accept: Hashes = constants[:2].take(table.accept)
    return _mix(accept + tables.summed(values, table.edge_start[:-1], gaps=True))


def _once(values: Hashes, degree: tables.Ints) -> Hashes:
    """Return `values` sorted within each row, with 0 in place of each repetition."""
    row = np.repeat(np.arange(len(degree)), degree)
    order = np.lexsort((values, row))
    values = values[order]
    same = (values[1:] == values[:-1]) & (row[1:] == row[:-1])
    values[1:][same] = 0
    return values


def _twins(hashes: Hashes) -> tables.Ints | None:
    """Return [states], the first state with the same hash; None if all hashes differ."""
    bits = (len(hashes) - 1).bit_length()
    if bits <= _PACKED:
        # The remaining bits still separate this many states. Sorting values is faster than argsort.
        mask = np.uint64((1 << bits) - 1)
        ordered = hashes & ~mask
        ordered |= np.arange(len(hashes), dtype=np.uint64)
        ordered.sort()
        order = (ordered & mask).astype(np.int64)
        ordered >>= np.uint64(bits)
    else:
        order = np.argsort(hashes, kind="stable")
        ordered = hashes.take(order)
    fresh = np.ones(len(order), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=fresh[1:])
    firsts = np.flatnonzero(fresh)
    if len(firsts) == len(order):
        return None
    twin = np.empty(len(order), dtype=np.int64)
    twin[order] = np.repeat(order.take(firsts), np.diff(firsts, append=len(order)))
    return twin


def _agree(table: tables.Table, twin: tables.Ints) -> bool:
    """Return whether each state and its twin agree in acceptance and edges, up to twins."""
    members = np.flatnonzero(twin != np.arange(table.states))
    firsts = twin.take(members)
    identified = _identified(table, twin)
    degree = identified.degree
    sizes = degree.take(members)
    same = table.accept.take(members) == table.accept.take(firsts)
    if not np.all(same & (sizes == degree.take(firsts))):
        return False
    mine, other = identified.edge_start.take(members), identified.edge_start.take(firsts)
    for begin, end in tables.portions(tables.starts(sizes)):
        here = tables.spread(mine[begin:end], sizes[begin:end])
        there = tables.spread(other[begin:end], sizes[begin:end])
        if not np.array_equal(identified.letter.take(here), identified.letter.take(there)):
            return False
        targets = twin.take(identified.target.take(here))
        if not np.array_equal(targets, twin.take(identified.target.take(there))):
            return False
    return True


def _identified(table: tables.Table, twin: tables.Ints) -> tables.Table:
    """Return `table`, in a nondeterministic one without edges that equal others up to twins."""
    if not table.nondeterministic:
        return table
    target = twin.take(table.target)
    row = np.repeat(np.arange(table.states), table.degree)
    order = np.lexsort((target, table.letter, row))
    letter, target = table.letter[order], target[order]
    kept = np.ones(len(row), dtype=np.bool_)
    kept[1:] = (row[1:] != row[:-1]) | (letter[1:] != letter[:-1]) | (target[1:] != target[:-1])
    return replace(
        table,
        edge_start=tables.starts(np.bincount(row[kept], minlength=table.states)),
        letter=letter[kept],
        target=target[kept].astype(np.int32),
    )


def _merged_states(table: tables.Table, twin: tables.Ints) -> tables.Table:
    """Return the table of the states that are their own twins."""
    kept = twin == np.arange(table.states)
    before = tables.starts(kept)
    number = before.take(twin).astype(np.int32)
    identified = _identified(table, twin)
    degree = identified.degree
    edges = np.flatnonzero(np.repeat(kept, degree))
    return tables.Table(
        accept=table.accept[kept],
        edge_start=tables.starts(degree[kept]),
        letter=identified.letter.take(edges),
        target=number.take(identified.target.take(edges)),
        levels=tables.distinct(before.take(table.levels)),
        nondeterministic=table.nondeterministic,
    )


def _exact_twins(table: tables.Table, guard: Guard) -> tables.Ints | None:
    """Return :func:`_twins`, comparing acceptance and edges themselves instead of hashes."""
    known: dict[tuple[object, ...], int] = {}
    twin = list(range(table.states))
    letter, target = table.letter.tolist(), table.target.tolist()
    rows = zip(table.accept.tolist(), pairwise(table.edge_start.tolist()), strict=True)
    waiting = 0
    for q, (accept, (first, last)) in enumerate(rows):
        waiting += 1 + last - first
        if waiting > _STEPS:
            guard.tick(waiting)
            waiting = 0
        letters, targets = letter[first:last], [twin[p] for p in target[first:last]]
        if table.nondeterministic:
            # Merged targets may make two edges equal, or change the order of edges.
            pairs = sorted(set(zip(letters, targets, strict=True)))
            twin[q] = known.setdefault((accept, *pairs), q)
        else:
            twin[q] = known.setdefault((accept, *letters, *targets), q)
    return None if len(known) == table.states else np.array(twin, dtype=np.int64)


def minimise(machine: tables.Machine, guard: Guard) -> tables.Machine | tables.Table:
    """Return the smallest automaton of the language of a trimmed machine; a table if acyclic.

    In a nondeterministic automaton bisimilar states are merged, but only if it is acyclic.
    """
    table = tables.as_table(machine)
    if table is not None:
        return merged(table, guard)
    if machine.nondeterministic:
        return machine
    return _quotient(machine, Refinement(machine, guard).block)


@frozen
class Split:
    """One step of a refinement: a block of states is cut in two.

    Attributes:
        at: the place of the cut in the order of the states.
        letter: the two parts differ in their edges of this letter. None: in whether a plan may
            stop.
        by: the number of the earlier split that separates the targets of these edges. None: only
            one part has such edges.
    """

    at: int
    letter: int | None
    by: int | None


class Refinement:
    """The partition of the states by their languages, and the splits that led to it.

    Splits are processed in the order in which they were made. Before a split is processed, all
    states of a block lead, by each letter, to one block of the earlier splits. So each part of a
    block leads to one side of the split, and it is enough to look at the smaller side.

    Source: Hopcroft, An n log n algorithm for minimizing states in a finite automaton, 1971.
    Cost: edges times the logarithm of the states.

    Attributes:
        block: [states], the block of each state.
        place: [states], the place of each state in the final order.
        splits: every split, in order.
    """

    def __init__(self, machine: tables.Machine, guard: Guard) -> None:
        self.block = [0] * machine.states
        self.place = list(range(machine.states))
        self.splits: list[Split] = []
        self._order = list(range(machine.states))
        self._first, self._end, self._marked = [0], [machine.states], [0]
        self._smaller: list[tuple[int, int]] = []  # for each split, the places of its smaller side
        self._split([q for q, accepting in enumerate(machine.accept) if accepting], None, None)
        sources: dict[int, list[int]] = {}
        into: list[list[tuple[int, int]]] = [[] for _ in machine.accept]
        for q, edges in enumerate(machine.edges):
            for letter, target in edges:
                sources.setdefault(letter, []).append(q)
                into[target].append((letter, q))
        for letter in sorted(sources):
            self._split(sources[letter], letter, None)
        number = 0
        while number < len(self.splits):
            low, high = self._smaller[number]
            arriving: dict[int, list[int]] = {}
            for p in self._order[low:high]:
                for letter, q in into[p]:
                    arriving.setdefault(letter, []).append(q)
            for letter in sorted(arriving):
                guard.tick(len(arriving[letter]))
                self._split(arriving[letter], letter, number)
            number += 1

    def _split(self, states: Sequence[int], letter: int | None, by: int | None) -> None:
        """Separate these distinct states from the rest of their blocks."""
        touched = []
        for q in states:
            block = self.block[q]
            there = self._first[block] + self._marked[block]
            here, other = self.place[q], self._order[there]
            self._order[here], self.place[other] = other, here
            self._order[there], self.place[q] = q, there
            if not self._marked[block]:
                touched.append(block)
            self._marked[block] += 1
        for block in touched:
            first, end = self._first[block], self._end[block]
            middle = first + self._marked[block]
            self._marked[block] = 0
            if middle == end:
                continue
            if middle - first <= end - middle:
                self._first[block], low, high = middle, first, middle
            else:
                self._end[block], low, high = middle, middle, end
            for place in range(low, high):
                self.block[self._order[place]] = len(self._end)
            self._first.append(low)
            self._end.append(high)
            self._marked.append(0)
            self._smaller.append((low, high))
            self.splits.append(Split(at=middle, letter=letter, by=by))


def _quotient(machine: tables.Machine, classes: Sequence[int]) -> tables.Machine:
    """Return the machine of the classes, numbered in order of discovery."""
    number = {classes[machine.start]: 0}
    members = [machine.start]
    edges: list[tables.Edges] = []
    for q in members:
        row = []
        for letter, target in machine.edges[q]:
            p = number.setdefault(classes[target], len(members))
            if p == len(members):
                members.append(target)
            row.append((letter, p))
        edges.append(tuple(row))
    return tables.Machine(start=0, accept=[machine.accept[q] for q in members], edges=edges)
