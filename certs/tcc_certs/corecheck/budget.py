"""How much work a check against the core may take before it declines.

A residual may have more derivatives than any file has states, so the search is counted, not
trusted to end.
"""

from __future__ import annotations

from tcc_certs.errors import Code, Rejected

# What is kept counts for more than one unit: what bounds the time bounds the memory.
KEPT = 16  # an edge, with what goes with it
ENTRY = 4  # what a step leads to, in each table that has it


class Budget:
    """Units of work that are left; a unit is one step of a residual or one member of a term."""

    __slots__ = ("_left", "_limit")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._left = limit

    def spend(self, units: int) -> None:
        """Take `units` off.

        Raises:
            Rejected: D201 where nothing is left.
        """
        self._left -= units
        if self._left < 0:
            raise Rejected(Code.LIMIT, "core", f"a check within {self._limit} steps", "more")
