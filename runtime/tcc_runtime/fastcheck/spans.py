"""Columns as arrays, in spans of states whose edges fit the cache; checks of C1, C2 and the order
of C6.

Every state of a span has an edge.  Only the first state of a valid artifact has no edges (C602,
C604); other artifacts are left to the kernel.  "The best over the edges" is shown by two
comparisons for each edge: no edge is better, and one is as good.  This is faster than folds over
such short rows.
Cost: one pass over ``edge_start``, one over the edges, and a fold for the ranks.  No column is
copied.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tcc_certs.formats.artifact import ArtifactFile

Array: TypeAlias = NDArray[Any]
_EDGES = 1 << 15
_TYPES = {"I64": "<i8", "U64": "<u8", "U32": "<u4", "U8": "u1"}


def column(file: ArtifactFile, name: str) -> Array:
    """Return a column in its shape, as a view of the file's bytes."""
    tensor = file.columns[name]
    return np.frombuffer(tensor.data, _TYPES[tensor.dtype]).reshape(tensor.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSpan:
    """States ``first .. last - 1`` and their edges.

    Attributes:
        starts: [k], the index of the first edge of each state, among the span's edges.
        ends: [k], the index of the last edge of each state.
        degree: the largest number of edges of a state.
        source: [edges], the index of the edge's state in the span.
        calls, targets: [edges], call and target of each edge.
    """

    first: int
    last: int
    starts: Array
    ends: Array
    degree: int
    source: Array
    calls: Array
    targets: Array

    def of(self, values: Array) -> Array:
        """Return the span's part of a column of states."""
        return values[self.first : self.last]

    def at_calls(self, values: Array) -> Array:
        """Return, for each edge, the value of its call."""
        return values.take(self.calls, axis=0, mode="clip")

    def at_targets(self, values: Array) -> Array:
        """Return, for each edge, the value of its target."""
        return values.take(self.targets, axis=0, mode="clip")

    def each_edge(self, values: Array) -> Array:
        """Return, for each edge, the value of its state, from values [k]."""
        return values.take(self.source, mode="clip")

    def sums(self, terms: Array) -> Array:
        """Return, for each state, the sum of its edges' terms, mod 2^64."""
        found: Array = np.cumsum(terms, dtype=np.uint64).take(self.ends)
        found[1:] -= found[:-1].copy()
        return found

    def some(self, flags: Array) -> Array:
        """Return, for each state, whether a flag of its edges is set."""
        running = np.cumsum(flags, dtype=np.uint32).take(self.ends)
        found: Array = running > 0
        np.not_equal(running[1:], running[:-1], out=found[1:])
        return found


def spans(file: ArtifactFile) -> Iterator[StateSpan]:
    """Yield all states but the first in spans.  Rows must be well formed, with an edge for each of
    them.
    """
    starts, calls, targets = (column(file, f"edge_{name}") for name in ("start", "call", "target"))
    first, states = 1, len(starts) - 1
    while first < states:
        full = int(np.searchsorted(starts, starts[first] + np.uint64(_EDGES), side="right")) - 1
        last = min(max(full, first + 1), states)
        low, high = int(starts[first]), int(starts[last])
        offsets = starts[first : last + 1].astype(np.intp) - low
        degrees = np.diff(offsets)
        yield StateSpan(
            first=first,
            last=last,
            starts=offsets[:-1],
            ends=offsets[1:] - 1,
            degree=int(degrees.max()),
            source=np.repeat(np.arange(last - first), degrees),
            calls=calls[low:high].astype(np.intp),
            targets=targets[low:high].astype(np.intp),
        )
        first = last


# Rows, ranks, and the order of states (C1, C2, order of C6).


def well_formed(file: ArtifactFile) -> bool:
    """Return whether `edge_start` increases from 0 to e, `accept` is 0 or 1, and calls are in range
    (C1).

    Also whether the first state stops and has no edges, and every other state has edges (C604; two
    states without edges would have the same digest, C602).
    """
    manifest, starts = file.manifest, column(file, "edge_start")
    accept = column(file, "accept")
    ends = int(starts[0]) == int(starts[1]) == 0 and int(starts[-1]) == manifest.edges
    return (
        ends
        and int(accept[0]) == 1
        and int(accept.max()) == 1
        and int(column(file, "edge_call").max()) < manifest.calls
        and bool((starts[2:] > starts[1:-1]).all())
    )


def ordered(span: StateSpan, nondeterministic: bool) -> bool:
    """Return whether calls strictly increase inside each state; for nondeterminism, pairs of call
    and target (C102).
    """
    keys = span.calls
    if nondeterministic:
        keys = keys.astype(np.uint64) << np.uint64(32) | span.targets.astype(np.uint64)
    rises = keys[1:] > keys[:-1]
    rises[span.starts[1:] - 1] = True
    return bool(rises.all())


def levels(rank: Array) -> Array | None:
    """Return the first state of each rank; None if a rank is larger than the number of states.

    Args:
        rank: [n], not decreasing (:func:`numbered`).
    """
    deepest = int(rank[-1])
    return np.searchsorted(rank, np.arange(deepest + 2)) if deepest < len(rank) else None


def ranked(span: StateSpan, rank: Array, begins: Array) -> bool:
    """Return whether targets are less than their sources (C201), and ranks are right (C202).

    The rank of a state is one more than the greatest rank of a target.  So no target may be as
    large as the first state of the source's rank, and one target of each state must have the rank
    below.

    Args:
        rank: [n], not decreasing, so that targets of lower rank are smaller states.
        begins: the :func:`levels` of the ranks.
    """
    own = span.of(rank)
    if int(own[0]) == 0:
        return False
    if own[0] == own[-1]:
        low, high = begins[own[0] - 1], begins[own[0]]
    else:
        low, high = span.each_edge(begins[own - 1]), span.each_edge(begins[own])
    return bool((span.targets < high).all() and span.some(span.targets >= low).all())


def numbered(rank: Array, digests: Array) -> bool:
    """Return whether (rank, S) strictly increases, with S compared as bytes (C602)."""
    heads = digests.view(">u8")[:, 0].astype(np.uint64)
    rises = (rank[1:] > rank[:-1]) | ((rank[1:] == rank[:-1]) & (heads[1:] > heads[:-1]))
    # If the first words are equal, compare all bytes.
    for at in np.flatnonzero(~rises).tolist():
        tied = rank[at] == rank[at + 1] and heads[at] == heads[at + 1]
        if not tied or bytes(digests[at + 1]) <= bytes(digests[at]):
            return False
    return True
