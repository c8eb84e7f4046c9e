"""Canonical states: edges over calls, content digests, and the numbering by (rank, digest).

Specification: docs/spec/artifact.md, section 4 and C6.  Equal languages with equal costs have
equal digests in the same order, whatever grammar they were written in.
Cost: for each state one BLAKE3 over its edges, and a sort.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from tcc_certs.core.model import Core
from tcc_certs.formats.hashes import call_digest
from tcc_compiler.artifact.call_edges import CallEdges
from tcc_compiler.automata.table import Ints, Numbers, Table, portions
from tcc_compiler.frozen import frozen
from tcc_compiler.resources.guard import Guard

# Rows of 32 bytes, held as four numbers each; only their bytes mean something.
Digests: TypeAlias = NDArray[np.uint64]

# An edge takes 64 bytes; the two bytes before a state's first edge end a cell of their own.
_CELL = 64
_HEAD = 62
_HEADS = (b"\x10\x00", b"\x10\x01")


@frozen(eq=False)
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


def certify(core: Core, table: Table, edges: CallEdges, guard: Guard) -> Numbering:
    """The digests and the numbering of a ranked, minimal table.

    A nondeterministic table is minimal if no two states are bisimilar.
    """
    calls = [call_digest(c.text.encode(), c.cost_low, c.cost_high) for c in core.calls]
    heads = [bytes(30) + head for head in _HEADS]
    # The halves of cells: heads, calls, then the states, level by level.
    halves = np.zeros((len(heads) + len(calls) + table.states, 4), dtype=np.uint64)
    digest = halves[len(heads) + len(calls) :]
    halves[: -table.states] = _digests([*heads, *calls])
    levels = table.levels
    for begin, end in portions(edges.start, levels if table.nondeterministic else None):
        key = _places(digest[:begin]) if table.nondeterministic else None
        call, target = edges.of(np.arange(begin, end), key, gaps=True)
        guard.tick(len(call))
        first = edges.start[begin : end + 1] - edges.start[begin] + np.arange(end + 1 - begin)
        cells = np.empty((len(call), 2), dtype=np.int64)
        np.add(call, len(heads), out=cells[:, 0])
        np.add(target, len(heads) + len(calls), out=cells[:, 1])
        cells[first[:-1], 1] = table.accept[begin:end]
        inner = levels[np.searchsorted(levels, begin, "right") : np.searchsorted(levels, end)]
        for low, high in pairwise([begin, *inner.tolist(), end]):
            ends = first[low - begin : high + 1 - begin]
            data = halves.take(cells[ends[0] : ends[-1]].ravel(), axis=0)
            digest[low:high] = _digests(_hashed(data.view(np.uint8).ravel().data, ends - ends[0]))
    return _numbered(levels, digest)


def _hashed(data: memoryview, first: Ints) -> list[bytes]:
    """The digests of messages: `first` cells [states+1] have their heads at their ends."""
    # One hasher, and bound methods: for a small file this loop takes a third of the whole time.
    hasher = blake3()
    reset, update, digest = hasher.reset, hasher.update, hasher.digest
    begins, ends = (first[:-1] * _CELL + _HEAD).tolist(), (first[1:] * _CELL).tolist()
    return [(reset(), update(data[a:b]), digest())[2] for a, b in zip(begins, ends, strict=True)]


def _digests(messages_digests: Sequence[bytes]) -> Digests:
    return np.frombuffer(b"".join(messages_digests), dtype=np.uint64).reshape(-1, 4)


def _numbered(levels: Ints, digest: Digests) -> Numbering:
    """The states of each level by their digests."""
    order = np.empty(len(digest), dtype=np.int64)
    for first, last in pairwise(levels.tolist()):
        order[first:last] = _by_digest(digest[first:last])
        order[first:last] += first
    number = np.empty(len(digest), dtype=np.int32)
    number[order] = np.arange(len(digest), dtype=np.int32)
    return Numbering(order=order, number=number, digest=digest)


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
