"""C5 in bulk: the least cost and the best residual to go.

Cost: a gather, an addition and two comparisons of the edges for each.
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


def bounded(span: Span, better: np.ufunc, accept: Array, call: Array, column: Array) -> bool:
    """The column is the best of 0 where a plan may stop, and of call plus target over the edges.

    Nothing is better than the column's value, and something is as good.

    Args:
        better: ``less`` or ``greater``.
        accept: [n], 0 or 1.
        call, column: [c] and [n], 64 bits with sign; :func:`addable`.
    """
    through = span.at_targets(column)
    through += span.at_calls(call)
    own, stops = span.of(column), span.of(accept).view(np.bool_)
    held = span.each_edge(own)
    if better(through, held).any() or (better(0, own) & stops).any():
        return False
    return bool((span.some(through == held) | ((own == 0) & stops)).all())
