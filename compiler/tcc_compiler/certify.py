"""Canonical states: edges over calls, content digests, and the numbering by (rank, digest).

Specification: docs/spec/artifact.md, section 4 and C6.  Equal languages with equal costs come out
with equal digests, in the same order, whatever grammar they were written in.
Cost: one BLAKE3 a state over its edges, and a sort.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from tcc_certs.digest import call_digest
from tcc_certs.grammar import Core
from tcc_compiler.guard import Guard
from tcc_compiler.letters import Letters
from tcc_compiler.table import Bools, Ints, Numbers, Table, spread, starts

# Rows of 32 bytes, as four numbers each that are looked at as bytes alone.
Digests: TypeAlias = NDArray[np.uint64]

_PORTION = 1 << 17
# An edge takes 64 bytes; the two bytes before a state's first edge end a cell of their own.
_CELL = 64
_WIDTH = 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Numbering:
    """The states in the artifact's order.

    Attributes:
        order: [states], the table's states; targets come first, the start last.
        number: [states], the artifact's number of each of the table's states.
        digest: [states], S of each of the table's states, as :data:`Digests`.
    """

    order: Ints
    number: Numbers
    digest: Digests

    def digest_bytes(self) -> bytes:
        """S of every state in the artifact's order."""
        return self.digest.take(self.order, axis=0).tobytes()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CallEdges:
    """The edges of a table's states over calls.

    Attributes:
        start: [states+1], the edges of a state stand side by side.
        call, target: [edges], in call order inside a state.
    """

    start: Ints
    call: Numbers
    target: Numbers

    def of_states(self, states: Ints) -> CallEdges:
        """The edges of these states, in their order."""
        degree = np.diff(self.start).take(states)
        chosen = spread(self.start.take(states), degree)
        call, target = self.call.take(chosen), self.target.take(chosen)
        return CallEdges(start=starts(degree), call=call, target=target)

    def between(self, first: int, last: int) -> CallEdges:
        """The edges of the states `first` .. `last`-1."""
        edges = slice(self.start[first], self.start[last])
        start = self.start[first : last + 1] - edges.start
        return CallEdges(start=start, call=self.call[edges], target=self.target[edges])

    def sorted_by(self, key: Ints | Numbers) -> CallEdges:
        """The same, those of one call in the order of `key`: [states], of their targets."""
        row = np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))
        order = np.lexsort((key[self.target], self.call, row))
        return CallEdges(start=self.start, call=self.call[order], target=self.target[order])


def call_edges(table: Table, letters: Letters, guard: Guard) -> CallEdges:
    """The edges of `table` with every letter's calls in its place.

    Raises:
        Refused: TCC403 where they are too many to hold.
    """
    sizes = np.fromiter(map(len, letters.calls), dtype=np.int64)
    flat = np.array([call for group in letters.calls for call in group], dtype=np.int32)
    width = sizes.take(table.letter)
    start = starts(width)
    guard.room(int(start[-1]))
    if len(flat) == len(sizes):
        call, target = flat.take(table.letter), table.target
    else:
        call = flat.take(spread(starts(sizes).take(table.letter), width))
        target = np.repeat(table.target, width)
    start = start.take(table.edge_start)
    if not _increasing(start, call, strictly=not table.nondeterministic):
        row = np.repeat(np.arange(table.states), np.diff(start))
        order = np.argsort(row * len(flat) + call, kind="stable")
        call, target = call[order], target[order]
    return CallEdges(start=start, call=call, target=target)


def _increasing(start: Ints, call: Numbers, strictly: bool) -> bool:
    """Whether the calls of every state increase."""
    rises: Bools = call[1:] > call[:-1] if strictly else call[1:] >= call[:-1]
    fresh = np.zeros(len(call) + 1, dtype=np.bool_)
    fresh[start] = True
    return bool(np.all(rises | fresh[1:-1]))


def certify(core: Core, table: Table, edges: CallEdges, guard: Guard) -> Numbering:
    """The digests and the numbering of a ranked, minimal table.

    Of a nondeterministic one minimal means: no two states go on alike.
    """
    texts = [call_digest(c.text.encode(), c.cost_low, c.cost_high) for c in core.calls]
    atoms = _digests(texts)
    digest = np.zeros((table.states, 4), dtype=np.uint64)
    order = np.arange(table.states)
    number = np.zeros(table.states, dtype=np.int32)
    for first, last in pairwise(table.levels.tolist()):
        for begin, end in _portions(edges.start, first, last):
            rows = edges.between(begin, end)
            if table.nondeterministic:
                rows = rows.sorted_by(_places(digest[:first]))
            guard.tick(end - begin + len(rows.call))
            digest[begin:end] = _level_digests(table.accept[begin:end], rows, atoms, digest)
        order[first:last] = first + _by_digest(digest[first:last])
        number[order[first:last]] = np.arange(first, last, dtype=np.int32)
    return Numbering(order=order, number=number, digest=digest)


def _portions(start: Ints, first: int, last: int) -> list[tuple[int, int]]:
    """States `first` .. `last`-1 in portions of bounded numbers of edges."""
    marks = np.arange(start[first], start[last], _PORTION)
    cuts = np.unique(np.searchsorted(start[first : last + 1], marks)) + first
    return list(pairwise([*cuts.tolist(), last])) if len(cuts) else [(first, last)]


def _level_digests(accept: Bools, rows: CallEdges, atoms: Digests, digest: Digests) -> Digests:
    """S of states, from their edges; the digests of all targets are there."""
    size = len(accept)
    # Every state has a cell before those of its edges.
    first = rows.start + np.arange(size + 1)
    cells = np.zeros((int(first[-1]), _WIDTH), dtype=np.uint64)
    at = np.delete(np.arange(len(cells)), first[:-1])
    cells[at, :4] = atoms.take(rows.call, axis=0)
    cells[at, 4:] = digest.take(rows.target, axis=0)
    octets = cells.view(np.uint8)
    octets[first[:-1], -2] = 0x10
    octets[first[:-1], -1] = accept
    data = cells.tobytes()
    ends = (first * _CELL).tolist()
    head = _CELL - 2
    return _digests([blake3(data[a + head : b]).digest() for a, b in pairwise(ends)])


def _digests(found: Sequence[bytes]) -> Digests:
    return np.frombuffer(b"".join(found), dtype=np.uint64).reshape(-1, 4)


def _by_digest(digest: Digests) -> Ints:
    """The order of the digests as bytes."""
    leading = digest[:, 0].view(">u8").astype(np.uint64)
    order = np.argsort(leading)
    leading = leading[order]
    if np.all(leading[1:] != leading[:-1]):
        return order
    return np.lexsort(digest.view(">u8").T[::-1])


def _places(digest: Digests) -> Ints:
    """[states], the place of each digest among all of them."""
    place = np.empty(len(digest), dtype=np.int64)
    place[_by_digest(digest)] = np.arange(len(digest))
    return place
