"""Minimising a table: states with equal residual languages are merged.

Every state gets a hash that depends on its language alone, computed level by level from whether it
accepts and from the pairs (letter, hash of the target).  States with equal hashes are candidates
for merging; each is compared, edge by edge, with the first state of its hash.  Since the targets
are compared too, states that agree have equal languages; states with equal languages always have
equal hashes.  After a collision other constants are tried, and in the end no hashes at all.
Cost: linear in the edges, and a sort of the states.
Source: Revuz, Minimisation of acyclic deterministic automata in linear time, 1992, with hashes in
place of his sort of every level.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tcc_compiler.automata.table import Ints, Table, distinct, portions, spread, starts, summed
from tcc_compiler.resources.guard import Guard

Hashes: TypeAlias = NDArray[np.uint64]

_ATTEMPTS = 4
# The lowest bits of a hash, up to so many, may be replaced by the number of the state.
_PACKED = 20
_GOLDEN = 0x9E3779B97F4A7C15


def merged(table: Table, guard: Guard) -> Table:
    """The smallest table of the same words.

    In a nondeterministic table, states that are bisimilar are merged.
    """
    for attempt in range(0 if table.is_narrow else _ATTEMPTS):
        twin = _twins(_hashes(table, attempt, guard))
        if twin is None:
            return table
        if _agree(table, twin):
            return _quotient(table, twin)
    twin = _exact_twins(table, guard)
    return table if twin is None else _quotient(table, twin)


def _mix(values: Hashes) -> Hashes:
    """Spread every bit over all (the finaliser of splitmix64, one multiplication shorter)."""
    mixed = values ^ (values >> np.uint64(32))
    mixed *= np.uint64(0xD6E8FEB86659FD93)
    mixed ^= mixed >> np.uint64(29)
    return mixed


def _constants(first: int, count: int) -> Hashes:
    seeds = np.arange(first, first + count, dtype=np.uint64) * np.uint64(_GOLDEN)
    return _mix(_mix(seeds + np.uint64(1)) + np.uint64(_GOLDEN)) | np.uint64(1)


def _hashes(table: Table, attempt: int, guard: Guard) -> Hashes:
    """[states], equal for equal languages, and for others with small probability."""
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
        sums = summed(values, table.edge_start[states] - edges.start, gaps=gaps)
        hashes[states] = _mix(hashes[states] + sums)
    return hashes


def _once(values: Hashes, degree: Ints) -> Hashes:
    """`values` with 0 for each repetition in its row; the rows are sorted as well."""
    row = np.repeat(np.arange(len(degree)), degree)
    order = np.lexsort((values, row))
    values = values[order]
    same = (values[1:] == values[:-1]) & (row[1:] == row[:-1])
    values[1:][same] = 0
    return values


def _twins(hashes: Hashes) -> Ints | None:
    """[states], the first state with the same hash; None where all hashes differ."""
    bits = (len(hashes) - 1).bit_length()
    if bits <= _PACKED:
        # The other bits still distinguish so many states; sorting values is faster than argsort.
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


def _agree(table: Table, twin: Ints) -> bool:
    """Whether every state has the acceptance and the edges of its twin, up to twins of targets."""
    members = np.flatnonzero(twin != np.arange(table.states))
    firsts = twin.take(members)
    identified = _identified(table, twin)
    degree = identified.degree
    sizes = degree.take(members)
    same = table.accept.take(members) == table.accept.take(firsts)
    if not np.all(same & (sizes == degree.take(firsts))):
        return False
    mine, other = identified.edge_start.take(members), identified.edge_start.take(firsts)
    for begin, end in portions(starts(sizes)):
        here = spread(mine[begin:end], sizes[begin:end])
        there = spread(other[begin:end], sizes[begin:end])
        if not np.array_equal(identified.letter.take(here), identified.letter.take(there)):
            return False
        targets = twin.take(identified.target.take(here))
        if not np.array_equal(targets, twin.take(identified.target.take(there))):
            return False
    return True


def _identified(table: Table, twin: Ints) -> Table:
    """`table`; in a nondeterministic one, edges with the same letter and target twin are merged."""
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
        edge_start=starts(np.bincount(row[kept], minlength=table.states)),
        letter=letter[kept],
        target=target[kept].astype(np.int32),
    )


def _quotient(table: Table, twin: Ints) -> Table:
    """The table of the states that are their own twins."""
    kept = twin == np.arange(table.states)
    before = starts(kept)
    number = before.take(twin).astype(np.int32)
    identified = _identified(table, twin)
    degree = identified.degree
    edges = np.flatnonzero(np.repeat(kept, degree))
    return Table(
        accept=table.accept[kept],
        edge_start=starts(degree[kept]),
        letter=identified.letter.take(edges),
        target=number.take(identified.target.take(edges)),
        levels=distinct(before.take(table.levels)),
        nondeterministic=table.nondeterministic,
    )


def _exact_twins(table: Table, guard: Guard) -> Ints | None:
    """:func:`_twins` by acceptance and edges themselves, without hashes."""
    known: dict[tuple[object, ...], int] = {}
    twin = list(range(table.states))
    letter, target = table.letter.tolist(), table.target.tolist()
    rows = zip(table.accept.tolist(), pairwise(table.edge_start.tolist()), strict=True)
    for q, (accept, (first, last)) in enumerate(rows):
        guard.tick(1 + last - first)
        letters, targets = letter[first:last], [twin[p] for p in target[first:last]]
        if table.nondeterministic:
            # Merged targets may make two edges equal, or change the order of edges.
            pairs = sorted(set(zip(letters, targets, strict=True)))
            twin[q] = known.setdefault((accept, *pairs), q)
        else:
            twin[q] = known.setdefault((accept, *letters, *targets), q)
    return None if len(known) == table.states else np.array(twin, dtype=np.int64)
