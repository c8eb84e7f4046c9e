"""C6 in bulk: S(q) of every state, the pairs of its edges gathered for a span at a time.

Cost: one BLAKE3 a state, and 64 bytes moved an edge.
"""

from __future__ import annotations

import numpy as np
from blake3 import blake3

from tcc_runtime.fastcheck.spans import Array, Span

_HEADS = (b"\x10\x00", b"\x10\x01")
_PAIR = 64


def first_digest(digests: Array) -> bool:
    """S of the state that stops and has no edges."""
    return bool(digests[0].tobytes() == blake3(_HEADS[1]).digest())


def digested(
    span: Span, accept: Array, call_digest: Array, digests: Array, nondeterministic: bool
) -> bool:
    """S(q) = BLAKE3(0x10 | accept | A(call) | S(target) ..).

    Args:
        accept: [n], 0 or 1.
        call_digest: [c, 32], A(a).
        digests: [n, 32], the column.
        nondeterministic: edges of one call stand in S by the digests of their targets.
    """
    pairs = np.empty((len(span.targets), _PAIR), np.uint8)
    pairs[:, :32] = span.at_calls(call_digest)
    pairs[:, 32:] = span.at_targets(digests)
    if nondeterministic:
        order = _order(span, pairs)
        if order is None:
            return False
        pairs = pairs[order]
    edges = pairs.tobytes()
    starts = (span.starts * _PAIR).tolist()
    rows = zip(span.of(accept).tolist(), starts, [*starts[1:], len(edges)], strict=True)
    due = [blake3(_HEADS[accepts] + edges[low:high]).digest() for accepts, low, high in rows]
    return b"".join(due) == span.of(digests).tobytes()


def _order(span: Span, pairs: Array) -> Array | None:
    """Edges of a state by (call, S(target)); None where the first words do not decide it."""
    degrees = np.diff(np.append(span.starts, len(pairs)))
    source = np.repeat(np.arange(len(degrees), dtype=np.uint64), degrees)
    keys = source << np.uint64(32) | span.calls.astype(np.uint64)
    heads = pairs[:, 32:40].copy().view(">u8")[:, 0].astype(np.uint64)
    order = np.lexsort((heads, keys))
    keys, heads = keys[order], heads[order]
    tied = (keys[1:] == keys[:-1]) & (heads[1:] == heads[:-1])
    return None if tied.any() else order
