"""C5 in bulk: the least cost and the best residual to go.

Cost: a gather, an addition and a fold of the edges for each.
"""

from __future__ import annotations

import numpy as np

from tcc_runtime.fastcheck.spans import Array, Span

_MOST = 1 << 63


def addable(call: Array, column: Array) -> bool:
    """No sum of the two leaves 64 bits."""
    least = int(call.min()) + int(column.min())
    greatest = int(call.max()) + int(column.max())
    return least >= -_MOST and greatest < _MOST


def bounded(span: Span, best: np.ufunc, accept: Array, call: Array, column: Array) -> bool:
    """The column is the best of 0 where a plan may stop, and of call plus target over the edges.

    Args:
        best: ``minimum`` or ``maximum``.
        accept: [n], 0 or 1.
        call, column: [c] and [n], 64 bits with sign; :func:`addable`.
    """
    through = span.at_targets(column)
    through += span.at_calls(call)
    due = best.reduceat(through, span.starts)
    best(due, 0, out=due, where=span.of(accept).astype(np.bool_))
    return bool((due == span.of(column)).all())
