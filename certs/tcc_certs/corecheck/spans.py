"""Pairs of a state and a residual that need no look, as they lie between two others.

The more a control's limits have left, the more plans it has: its residuals differ in nothing else.
So of all pairs of one state and one control those with the least and those with the most left
settle the others: where both have just the plans of the state, so has what lies between.  A pair is
inside when one that was met has no more left on any meter, and another no less; both are others.
The least and the greatest of the pairs met are inside of nothing, so each pair that is passed over
lies between two that are looked at; by induction over the length of a plan it agrees when they do.
"""

from __future__ import annotations

from tcc_certs.corecheck.residuals import Residuals


class Spans:
    """The pairs of one walk, by state and control.

    Cost: a comparison of what is left, for each pair but the first of its state and control.
    """

    def __init__(self, residuals: Residuals, states: int) -> None:
        self._residuals = residuals
        self._states = states
        # By control and state, what the two ends have left; one pair alone has no upper end.
        self._low: dict[int, int] = {}
        self._high: dict[int, int] = {}

    def add(self, q: int, residual: int) -> None:
        """The pair was met."""
        left = self._residuals.left[residual]
        key = self._residuals.control[residual].number * self._states + q
        low = self._low.setdefault(key, left)
        if low != left:
            high = self._high.setdefault(key, low)
            if self._residuals.no_more(left, low):
                self._low[key] = left
            elif self._residuals.no_more(high, left):
                self._high[key] = left

    def inside(self, q: int, residual: int) -> bool:
        """Whether the pair lies between two others."""
        key = self._residuals.control[residual].number * self._states + q
        high = self._high.get(key)
        if high is None:
            return False
        low, left = self._low[key], self._residuals.left[residual]
        no_more = self._residuals.no_more
        return left not in (low, high) and no_more(low, left) and no_more(left, high)
