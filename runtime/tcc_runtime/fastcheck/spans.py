"""Columns as arrays, in spans of states whose edges fit the cache; checks of C1, C2, order of C6.

Every state of a span has an edge: the only state without edges that a valid artifact has is the
first (C602, C604); any other artifact is handed over.  "The best over the edges" is shown by two
comparisons an edge, none better and one as good, which is faster than folds over such short rows.
Cost: one pass over ``edge_start``, one over the edges and a fold for the ranks; no column is
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
    """A column, in its shape, as a view of the file's bytes."""
    tensor = file.columns[name]
    return np.frombuffer(tensor.data, _TYPES[tensor.dtype]).reshape(tensor.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSpan:
    """States ``first .. last - 1`` and their edges.

    Attributes:
        starts: [k], where the edges of each state begin among the span's.
        ends: [k], where the last edge of each stands.
        degree: the greatest number of edges of a state.
        source: of each edge, the place of its state in the span.
        calls, targets: of each edge.
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
        """The span's part of a column of the states."""
        return values[self.first : self.last]

    def at_calls(self, values: Array) -> Array:
        """For each edge the value of its call, which is in range."""
        return values.take(self.calls, axis=0, mode="clip")

    def at_targets(self, values: Array) -> Array:
        """For each edge the value of its target, which is in range."""
        return values.take(self.targets, axis=0, mode="clip")

    def each_edge(self, values: Array) -> Array:
        """For each edge the value of its state, of values [k]."""
        return values.take(self.source, mode="clip")

    def sums(self, terms: Array) -> Array:
        """For each state the sum of its edges' terms, mod 2^64."""
        found: Array = np.cumsum(terms, dtype=np.uint64).take(self.ends)
        found[1:] -= found[:-1].copy()
        return found

    def some(self, flags: Array) -> Array:
        """For each state whether a flag of its edges is set."""
        running = np.cumsum(flags, dtype=np.uint32).take(self.ends)
        found: Array = running > 0
        np.not_equal(running[1:], running[:-1], out=found[1:])
        return found


def spans(file: ArtifactFile) -> Iterator[StateSpan]:
    """All states but the first; the rows are well formed, none of these is empty."""
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


# Rows, ranks, and the numbering of states (C1, C2, order of C6).


def well_formed(file: ArtifactFile) -> bool:
    """`edge_start` rises from 0 to e, `accept` is 0 or 1, calls are in range (C1).

    Also: the first state is the one that stops and has no edges, every other has some (C604; and
    two states without edges would have one digest, C602).
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
    """Calls strictly increase inside a state, pairs of call and target where it says so (C102)."""
    keys = span.calls
    if nondeterministic:
        keys = keys.astype(np.uint64) << np.uint64(32) | span.targets.astype(np.uint64)
    rises = keys[1:] > keys[:-1]
    rises[span.starts[1:] - 1] = True
    return bool(rises.all())


def levels(rank: Array) -> Array | None:
    """Where the states of each rank begin; None where there are more ranks than states.

    Args:
        rank: [n], not falling (:func:`numbered`).
    """
    deepest = int(rank[-1])
    return np.searchsorted(rank, np.arange(deepest + 2)) if deepest < len(rank) else None


def ranked(span: StateSpan, rank: Array, begins: Array) -> bool:
    """Targets are less than their sources (C201), and the rank is one more than the greatest of a
    target (C202): no target is as far up as the states of its source's rank, and one of each state
    has the rank below.

    Args:
        rank: [n], not falling, so that targets of lower rank are lesser states.
        begins: its :func:`levels`.
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
    """(rank, S) strictly increases, S compared as bytes (C602)."""
    heads = digests.view(">u8")[:, 0].astype(np.uint64)
    rises = (rank[1:] > rank[:-1]) | ((rank[1:] == rank[:-1]) & (heads[1:] > heads[:-1]))
    # A pair that the first words do not tell apart is left to the bytes themselves.
    for at in np.flatnonzero(~rises).tolist():
        tied = rank[at] == rank[at + 1] and heads[at] == heads[at + 1]
        if not tied or bytes(digests[at + 1]) <= bytes(digests[at]):
            return False
    return True
