"""The columns as arrays, and the states in spans whose edges fit the processor's cache.

What holds of every span: each of its states has an edge.  The only state without edges that a
valid artifact has is the first (C602, C604); any other artifact is handed over.  An equation "the
best over the edges" is shown by two comparisons an edge, none better and one as good, which folds
of rows as short as these would take longer for.
Cost: one pass over ``edge_start``; no column is copied.
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
class Span:
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


def spans(file: ArtifactFile) -> Iterator[Span]:
    """All states but the first; the rows are well formed, none of these is empty."""
    starts, calls, targets = (column(file, f"edge_{name}") for name in ("start", "call", "target"))
    first, states = 1, len(starts) - 1
    while first < states:
        full = int(np.searchsorted(starts, starts[first] + np.uint64(_EDGES), side="right")) - 1
        last = min(max(full, first + 1), states)
        low, high = int(starts[first]), int(starts[last])
        offsets = starts[first : last + 1].astype(np.intp) - low
        degrees = np.diff(offsets)
        yield Span(
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
