"""C1, C2 and the order of C6: rows, ranks, and states as the numbering has them.

Cost: one pass over the edges, a fold of them for the ranks.
"""

from __future__ import annotations

import numpy as np

from tcc_certs.formats.artifact import ArtifactFile
from tcc_runtime.fastcheck.spans import Array, Span, column


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


def ordered(span: Span, nondeterministic: bool) -> bool:
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


def ranked(span: Span, rank: Array, begins: Array) -> bool:
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
