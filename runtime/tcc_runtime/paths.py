"""The keys, names and calls of an unrecorded run's items, from the items that they come after.

Text: docs/spec/race.md, sections 5, 18 and 21.  A winner's arrival is its source's times weights,
and ln of it a sum; so a key costs the sums along the winners above it, and arrivals where somebody
on the way did not win.  These are kept, as many paths share them.  The numbers are for
:mod:`tcc_runtime.near` and :mod:`tcc_runtime.exact`.
Cost: a winner on the way an addition or two.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from tcc_certs.race.digest import RESIDUAL, REST_ARRIVAL, rest_digest, rest_place
from tcc_runtime.gauges import Gauges
from tcc_runtime.items import CODE, GAUGE, LAST, LEAF, MORE, NAME, ROOT, SOURCE, WHOLE, Item, Left
from tcc_runtime.items import left_after_first as first_left
from tcc_runtime.race import Draw
from tcc_runtime.tables import Call

_Arrival = TypeVar("_Arrival")


class Paths(ABC, Generic[_Arrival]):
    """Keys, names and calls of items.

    Args:
        gauges: of the artifact, the recipe and the inflation.
        records: the items of the run that others were drawn from, by number.
        draw: the PRF.
        first: the word of the root's arrival.
        rest: whether children are drawn one at a time.
    """

    __slots__ = (
        "_beta",
        "_bits",
        "_draw",
        "_drawn",
        "_first_word",
        "_gauges",
        "_records",
        "_rest",
        "_root",
        "_table",
        "_tables",
        "_unit",
    )

    def __init__(
        self, gauges: Gauges, records: Sequence[Item], draw: Draw, first: int, rest: bool
    ) -> None:
        tables = gauges.tables
        manifest = tables.artifact.manifest
        self._beta = manifest.beta[0]
        self._unit = gauges.unit
        self._bits = manifest.fraction_bits
        self._gauges = gauges
        self._tables = tables
        self._table = gauges.table
        self._records = records
        self._draw = draw
        self._first_word = first
        self._rest = rest
        self._root: _Arrival | None = None
        self._drawn: dict[bytes, _Arrival] = {}

    @abstractmethod
    def key(self, item: Item) -> int:
        """The published key of an item; at a leaf its value.

        Raises:
            Undecided: the working precision does not decide the rounding.
        """

    @abstractmethod
    def _first(self, word: int, mass: int, scale: int) -> _Arrival:
        """That of the root: E of the word over ``mass * 2^-scale``."""

    @abstractmethod
    def _later(
        self, source: _Arrival, calls: list[Call], word: int, mass: int, scale: int
    ) -> _Arrival:
        """E over ``mass * 2^-scale`` after that to which `calls` lead, each the winner."""

    def name(self, item: Item) -> bytes:
        """D, L, or the id of what is left."""
        if item[LAST] == WHOLE:
            return item[NAME]
        left = item[MORE]
        if isinstance(left, Left):
            return rest_digest(left.digest, left.step)
        return rest_digest(item[NAME], 1)

    def calls(self, item: Item) -> list[Call]:
        """The calls that lead to a node or a leaf, first to last."""
        found, table, records = [], self._table, self._records
        while item[6] != ROOT:
            source, code = records[item[6]], item[7]
            call = table[source[4]].calls[~code if code < 0 else code]
            if call is not None and not isinstance(item[8], Left):
                found.append(call)
            item = source
        found.reverse()
        return found

    def _reached(self, item: Item, calls: list[Call]) -> _Arrival:
        """The arrival that an item has its own from by winning all along.

        Args:
            calls: gets those on the way, last to first.
        """
        return self._arrival(item if item[LAST] >= 0 else self._before(item, calls))

    def _before(self, item: Item, calls: list[Call]) -> Item | None:
        """The item that a node or leaf has its arrival from by winning all along; None: the root.

        Args:
            calls: gets those on the way, last to first.
        """
        table, records, rest = self._table, self._records, self._rest
        while item[6] != ROOT:
            source, code = records[item[6]], item[7]
            if code < 0 and not rest:
                return item
            call = table[source[4]].calls[~code if code < 0 else code]
            if call is not None:
                calls.append(call)
            if code < 0:
                return source
            item = source
        return None

    def _arrival(self, item: Item | None) -> _Arrival:
        """That of an item that did not win, or of what is left of a node; None: of the root."""
        pending: list[tuple[Item, list[Call]]] = []
        while item is not None and item[NAME] not in self._drawn:
            calls: list[Call] = []
            pending.append((item, calls))
            if isinstance(item[MORE], Left):
                item = self._records[item[SOURCE]]
            elif self._rest:
                item = self._before(item, calls)
            else:
                item = self._before(self._records[item[SOURCE]], calls)
        arrival = self._of_root() if item is None else self._drawn[item[NAME]]
        for step, calls in reversed(pending):
            later = self._left if self._rest else self._lost
            arrival = self._drawn[step[NAME]] = later(step, arrival, calls)
        return arrival

    def _of_root(self) -> _Arrival:
        if self._root is None:
            state = self._gauges.root.state
            self._root = self._first(self._first_word, state.count, state.scale)
        return self._root

    def _left(self, item: Item, source: _Arrival, calls: list[Call]) -> _Arrival:
        """What a draw leaves: T' = T + E / mass."""
        state, left = self._table[item[GAUGE]].state, item[MORE]
        if isinstance(left, Left):
            digest, step, mass = left.digest, left.step, left.mass
        else:
            digest, step, mass = item[NAME], 1, first_left(state, item[LAST])
        word = self._draw(REST_ARRIVAL, rest_place(digest, step))
        return self._later(source, calls, word, mass, state.scale)

    def _lost(self, item: Item, parent: _Arrival, calls: list[Call]) -> _Arrival:
        """A child that did not win: t' = w t + E / n."""
        call = self._table[self._records[item[SOURCE]][GAUGE]].calls[~item[CODE]]
        if call is not None:
            calls.append(call)
        word = self._draw(RESIDUAL, item[NAME])
        if item[GAUGE] == LEAF:
            return self._later(parent, calls, word, 1, 0)
        state = self._table[item[GAUGE]].state
        return self._later(parent, calls, word, state.count, state.scale)
