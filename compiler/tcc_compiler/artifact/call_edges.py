"""The edges of a table over calls, made for some states at a time, since they may be very many.

An edge over a letter stands for one edge for each call of the letter.  The order of the calls of a
state depends only on the letters of its row, here called its shape.  There are few shapes, and the
calls of each are sorted once.
Cost: a look-up for each state, and a few steps for each edge that is made.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from tcc_compiler.automata.letters import Letters
from tcc_compiler.automata.table import Ints, Numbers, Table, spread, starts
from tcc_compiler.resources.guard import Guard


class CallEdges:
    """The edges of a table's states over calls.

    Attributes:
        start: [states+1], how many edges the states before have.
        degree: [states], the edges of each state.
    """

    def __init__(self, table: Table, letters: Letters, guard: Guard) -> None:
        """Look at the shapes of `table`.

        Raises:
            Refused: TCC403 where the edges are too many to hold.
        """
        sizes = np.fromiter(map(len, letters.calls), dtype=np.int64)
        self._calls = np.array([call for group in letters.calls for call in group], dtype=np.int64)
        self._table = table
        # Letters are numbered by their first calls: where each has one, rows are in order.
        self._shapes: _Shapes | None = None
        if len(sizes) == len(self._calls):
            self.start = table.edge_start
        else:
            self.start = starts(sizes.take(table.letter)).take(table.edge_start)
        guard.room(int(self.start[-1]))
        self.degree = self.start[1:] - self.start[:-1]
        if len(sizes) < len(self._calls):
            self._shapes = _Shapes(table, self._calls, sizes)

    @property
    def count(self) -> int:
        """How many edges there are."""
        return int(self.start[-1])

    def of(
        self, states: Ints, key: Ints | Numbers | None = None, gaps: bool = False
    ) -> tuple[Ints, Numbers]:
        """The calls and the targets of these states' edges, in their order; calls increase.

        Args:
            key: [states], the order of edges of one call by their targets, where there are such.
            gaps: leave one place before the edges of each state, with call -1 and any target.
        """
        table, shapes = self._table, self._shapes
        if not table.edges:
            return np.full(len(states) * gaps, -1), np.zeros(len(states) * gaps, dtype=np.int32)
        size = self.degree.take(states) + gaps
        first = table.edge_start.take(states)
        # A gap reads a neighbouring edge, or none: hence "clip", which is also faster.
        if shapes is None:
            edges = spread(first - gaps, size)
            call = self._calls.take(table.letter.take(edges, mode="clip"))
        else:
            at = spread(shapes.start.take(shapes.shape.take(states)) - gaps, size)
            edges = shapes.edge.take(at, mode="clip")
            edges += np.repeat(first, size)
            call = shapes.call.take(at, mode="clip")
        target = table.target.take(edges, mode="clip")
        if gaps:
            call[starts(size)[:-1]] = -1
        if key is None or not len(key):
            return call, target
        row = np.repeat(np.arange(len(states)), size)
        order = np.lexsort((key.take(target, mode="clip"), call, row))
        return call[order], target[order]


class _Shapes:
    """The distinct rows of letters.

    Attributes:
        shape: [states].
        start: [shapes], where the calls of a shape begin.
        call, edge: a call, increasing inside a shape, and the place of its edge in the row.
    """

    def __init__(self, table: Table, calls: Ints, sizes: Ints) -> None:
        """Args: calls: those of all letters, side by side; sizes: [letters], how many of each."""
        known: dict[bytes, int] = {}
        data, width = table.letter.tobytes(), table.letter.itemsize
        ends = (table.edge_start * width).tolist()
        self.shape = np.array(
            [known.setdefault(data[a:b], len(known)) for a, b in pairwise(ends)], dtype=np.int64
        )
        letter = np.frombuffer(b"".join(known), dtype=table.letter.dtype)
        letters = np.array([len(row) // width for row in known], dtype=np.int64)
        size = sizes.take(letter)
        row = np.repeat(np.arange(len(letters)), letters)
        call = calls.take(spread(starts(sizes).take(letter), size))
        order = np.lexsort((call, np.repeat(row, size)))
        place = np.arange(len(letter)) - np.repeat(starts(letters)[:-1], letters)
        self.start = starts(size).take(starts(letters)[:-1])
        self.call = call[order]
        self.edge = np.repeat(place, size)[order]
