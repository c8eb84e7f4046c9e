"""C6 in bulk: S(q) of every state, the pairs of its edges gathered for a span at a time.

The spans are gone through once more for it: what is gathered here would push out of the cache what
the other equations read.  Cost: one BLAKE3 a state, and 64 bytes moved an edge.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from blake3 import blake3

from tcc_runtime.fastcheck.spans import Array, Span

_HEADS = (b"\x10\x00", b"\x10\x01")
_DIGEST = "V32"
_PAIR = 64
# BLAKE3 takes several kilobytes at once where they begin a message, and else a piece at a time:
# from here on that costs more than a copy.
_LONG = 4096


def first_digest(digests: Array) -> bool:
    """S of the state that stops and has no edges."""
    return bool(digests[0].tobytes() == blake3(_HEADS[1]).digest())


def digested(
    spans: Iterable[Span],
    accept: Array,
    call_digest: Array,
    digests: Array,
    nondeterministic: bool,
) -> bool:
    """S(q) = BLAKE3(0x10 | accept | A(call) | S(target) ..), in all spans.

    Args:
        accept: [n], 0 or 1.
        call_digest: [c, 32], A(a).
        digests: [n, 32], the column.
        nondeterministic: edges of one call stand in S by the digests of their targets.
    """
    calls, states = call_digest.view(_DIGEST)[:, 0], digests.view(_DIGEST)[:, 0]
    # One hasher that is used again takes two thirds of the time of a new one for each state.
    hasher = blake3()
    reset, update, digest = hasher.reset, hasher.update, hasher.digest
    for span in spans:
        pairs = _pairs(span, calls, states, nondeterministic)
        if pairs is None:
            return False
        edges = pairs.view(np.uint8).reshape(-1).data
        starts = (span.starts * _PAIR).tolist()
        rows = zip(span.of(accept).tolist(), starts, [*starts[1:], len(edges)], strict=True)
        expected = []
        for accepts, low, high in rows:
            reset()
            if high - low < _LONG:
                update(_HEADS[accepts])
                update(edges[low:high])
            else:
                update(_HEADS[accepts] + edges[low:high])
            expected.append(digest())
        if b"".join(expected) != span.of(digests).tobytes():
            return False
    return True


def _pairs(span: Span, calls: Array, states: Array, nondeterministic: bool) -> Array | None:
    """[edges, 2], A(call) and S(target) as they stand in S; None where :func:`_order` is."""
    pairs = np.empty((len(span.targets), 2), _DIGEST)
    pairs[:, 0] = span.at_calls(calls)
    pairs[:, 1] = span.at_targets(states)
    if not nondeterministic:
        return pairs
    order = _order(span, pairs[:, 1])
    return None if order is None else pairs[order]


def _order(span: Span, states: Array) -> Array | None:
    """Edges of a state by (call, S(target)); None where the first words do not decide it."""
    keys = span.source.astype(np.uint64) << np.uint64(32) | span.calls.astype(np.uint64)
    heads = states.copy().view(">u8").reshape(-1, 4)[:, 0].astype(np.uint64)
    order = np.lexsort((heads, keys))
    keys, heads = keys[order], heads[order]
    tied = (keys[1:] == keys[:-1]) & (heads[1:] == heads[:-1])
    return None if tied.any() else order
