"""The steps of a run that is recorded, in numbers of fixed size.

Text: docs/spec/race.md, sections 5, 7 to 9 and 18.  A step draws and rounds what it publishes by
:mod:`tcc_runtime.arrivals` and pushes plain tuples; a number that these leave open is computed by
:mod:`tcc_runtime.retrace`.  Its records are made by :mod:`tcc_runtime.batch`, many steps at once.
The definition, and what is done with all other runs, are :mod:`tcc_runtime.search` and
:mod:`tcc_runtime.race`; a test holds the ledgers of both equal, byte for byte.
Cost: in the rest race an expansion two logarithms, two digests, two uniforms and a heap operation;
in the coupled race a child that did not win two logarithms, a digest, a uniform.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable
from heapq import heappop, heappush, heappushpop
from typing import TypeAlias

from blake3 import blake3

from tcc_certs.race.digest import (
    FIRST_ARRIVAL,
    RESIDUAL,
    REST_ARRIVAL,
    REST_WINNER,
    WINNER,
    leaf_digest,
)
from tcc_runtime.arrivals import LEAST, OPEN, later, rate, rounded
from tcc_runtime.batch import Batch
from tcc_runtime.entries import Item, Left, left_of
from tcc_runtime.errors import Undecided
from tcc_runtime.guards import Stop
from tcc_runtime.modes import Terms
from tcc_runtime.numbers import UNDECIDED
from tcc_runtime.outcome import Progress
from tcc_runtime.pages import Edge, Page, Pages, pages_of
from tcc_runtime.recorder import Recorder
from tcc_runtime.rest_item import Pool
from tcc_runtime.retrace import Retrace
from tcc_runtime.tables import Tables

Follow: TypeAlias = "Callable[[Progress], bool | None]"

_TIME_UNITS = 1 << 76  # a time is within 2^-84, in units of 2^-160
_WINS, _OWN, _FIRST = bytes((WINNER,)), bytes((RESIDUAL,)), bytes((FIRST_ARRIVAL,))
_AGAIN, _REST = bytes((REST_WINNER,)), bytes((REST_ARRIVAL,))
_FIRST_REST = (1).to_bytes(4, "little")
_LEAF_RATE = rate(1, 0)


def words(key: bytes) -> Callable[[bytes], int]:
    """The PRF of one run: x of a purpose and an id, in one; not for two threads."""
    hasher, from_bytes = blake3(key=key), int.from_bytes
    reset, update, digest = hasher.reset, hasher.update, hasher.digest

    def word(named: bytes) -> int:
        reset()
        update(named)
        return from_bytes(digest(8), "little")

    return word


class Steps:
    """The steps of one recorded run.

    Args:
        tables: of the artifact, the recipe and the inflation.
        key: K.
        terms: such that :func:`tcc_runtime.swift.fits` holds.
        recorder: open.
        late: whether the time is over; None: there is no end to it.
        interrupted: whether somebody wants an end.
        follow: is told of every expansion and draw; True, or KeyboardInterrupt, ends the run.

    Attributes:
        expansions, leaves: how many there were.
        best: the best leaves that were popped, with minus their values and their digests, in order.
    """

    def __init__(
        self,
        tables: Tables,
        key: bytes,
        terms: Terms,
        recorder: Recorder,
        late: Callable[[], bool] | None,
        interrupted: Callable[[], bool],
        follow: Follow | None,
    ) -> None:
        self._tables = tables
        self._pages: Pages = pages_of(tables)
        self._rest = terms.race == "rest"
        self._top, self._cap = terms.settings.top, terms.settings.max_expansions
        self._batch = Batch(recorder, self._pages.single)
        self._late, self._interrupted, self._follow = late, interrupted, follow
        self._plain, self._word = blake3(), words(key)
        self._item: Item | None = None
        self._heap: list[Item] = []
        self.best: list[tuple[int, bytes, Item]] = []
        self.expansions = self.leaves = 0

    def run(self) -> Stop:
        """Steps until something stops it.

        Raises:
            LedgerError: the ledger cannot be written.
        """
        try:
            self._start()
            return self._stepped()
        except UNDECIDED:
            return Stop.PRECISION
        finally:
            self._batch.flush()

    @property
    def key_left(self) -> int | None:
        """The greatest key left; None where nothing is."""
        return None if self._item is None else -self._item[0]

    @property
    def incumbent(self) -> int | None:
        """B*, None until k leaves were found."""
        return -self.best[-1][0] if len(self.best) == self._top else None

    def _start(self) -> None:
        page, digest = self._pages.root, self._tables.artifact.root_digest
        word = self._word(_FIRST + digest)
        mantissa, exponent, log = later(0, 0, word, page.inverse, page.scale)
        key = rounded(log, page.lift)
        item = (-key, digest, mantissa, exponent, log, 0, page, None, None, 0, None, word)
        root = self._again(item) if key == OPEN else item
        self._batch.root(root)
        self._item = root

    def _stepped(self) -> Stop:
        interrupted, late, best = self._interrupted, self._late, self.best
        expand = self._expand_first if self._rest else self._expand_all
        top, cap, follow = self._top, self._cap, self._follow
        while True:
            # The greatest item is held apart from the heap, which saves a pop and a push for each
            # child that is the next to be popped; most are.
            item = self._item
            if item is None:
                return Stop.EXHAUSTED
            if len(best) == top and item[0] >= best[-1][0]:
                return Stop.BOUND
            if interrupted():
                return Stop.INTERRUPTED
            page, left = item[6], item[7]
            if page is None:
                self._take_leaf(item)
                continue
            if late is not None and late():
                return Stop.MAX_SECONDS
            if left is not None:
                self._draw(item, page, left)
            elif self.expansions == cap:
                return Stop.MAX_EXPANSIONS
            else:
                if not page.opened:
                    page.open(self._tables)
                expand(item, page)
                self.expansions += 1
            if follow is not None and self._is_over(follow):
                return Stop.INTERRUPTED

    def _is_over(self, follow: Follow) -> bool:
        """Tells of the step, when it has been written."""
        self._batch.flush()
        bound = self.key_left
        progress = Progress(
            expansions=self.expansions, incumbent=self.incumbent, shown=lambda: bound
        )
        try:
            return bool(follow(progress))
        except KeyboardInterrupt:
            return True

    def _take_leaf(self, item: Item) -> None:
        word = self._arrival_word(item)
        heap, best = self._heap, self.best
        self._item = heappop(heap) if heap else None
        self.leaves += 1
        insort(best, (item[0], item[1], item))
        del best[self._top :]
        self._batch.leaf(item, word, self.incumbent)

    def _expand_all(self, item: Item, page: Page) -> None:
        """Every child, with its own arrival."""
        heap, size = self._heap, len(page.edges)
        word = self._word(_WINS + item[1])
        winner = bisect_right(page.bounds, 2 * word + 1)
        edges, make = enumerate(page.edges), self._pages.edge
        children = [
            self._child(item, item, edge or make(page, place), place, place == winner)
            for place, edge in edges
        ]
        if page.size > size:
            children.append(self._leaf(item, item, size, size == winner))
        self._item = None
        if children:
            for child in children[1:]:
                heappush(heap, child)
            self._item = heappushpop(heap, children[0])
        elif heap:
            self._item = heappop(heap)
        self._batch.add((item, word, winner, children, None, not children), len(children))

    def _expand_first(self, item: Item, page: Page) -> None:
        """The child that wins, and one arrival for the others."""
        word = self._word(_WINS + item[1])
        place = bisect_right(page.bounds, 2 * word + 1)
        edge, inverse, scale = page.firsts[place] or self._pages.first(page, place)
        child = rest = None
        if edge is not None:
            child = self._child(item, item, edge, place, True)
        elif place < page.size:
            child = self._leaf(item, item, place, True)
        if inverse:
            rest = self._left(item, item, page, _FIRST_REST, place, inverse, scale)
        self._push(item, word, place, child, rest, not page.size)

    def _draw(self, item: Item, page: Page, left: Left | int) -> None:
        """The next draw from what is left of a node."""
        node, step, mass, size, pool, last, barren = left_of(item, page, left)
        word = self._word(_AGAIN + node[1] + step.to_bytes(4, "little"))
        if pool is None:
            pool = Pool(page.state.cumulative)
        if last < page.size:
            pool.take(last)
        place = pool.find((2 * word + 1) * mass >> 65)
        child = rest = None
        if place < page.size:
            if place < len(page.edges):
                edge = page.edges[place] or self._pages.edge(page, place)
                child = self._child(item, node, edge, place, True)
            else:
                child = self._leaf(item, node, place, True)
            mass, size, barren = mass - pool.mass(place), size - 1, False
        else:
            mass -= page.state.slack
        if size:
            name = (step + 1).to_bytes(4, "little")
            later_left = node, step + 1, mass, size, pool, place, barren
            rates = rate(mass, page.state.scale)
            rest = self._left(item, node, page, name, later_left, *rates)
        self._push(item, word, place, child, rest, barren and not size)

    def _push(
        self, item: Item, word: int, place: int, child: Item | None, rest: Item | None, dead: bool
    ) -> None:
        """`item` gives way to what its pop has made."""
        heap = self._heap
        if rest is not None:
            heappush(heap, rest)
        if child is not None:
            self._item = heappushpop(heap, child)
        else:
            self._item = heappop(heap) if heap else None
        children = () if child is None else (child,)
        self._batch.add((item, word, place, children, rest, dead), 3)

    def _child(self, item: Item, node: Item, edge: Edge, place: int, won: bool) -> Item:
        """A child of `node` by a call, drawn from `item`: the node, or what was left of it."""
        step, target = edge
        plain = self._plain
        plain.reset()
        plain.update(b"\x01" + node[1] + step.raw)
        digest = plain.digest()
        mantissa, exponent = item[2] * step.factor >> 63, item[3] + step.shift
        if won:
            word, log = -1, item[4] + step.log
            if mantissa < LEAST:
                mantissa, exponent = mantissa << 64, exponent + 64
        else:
            word = self._word(_OWN + digest)
            mantissa, exponent, log = later(mantissa, exponent, word, target.inverse, target.scale)
        score = item[5] + step.score
        key = rounded(log, score + target.lift)
        child = (
            -key, digest, mantissa, exponent, log, score, target, None, item, place, step, word,
        )  # fmt: skip
        return self._again(child) if key == OPEN else child

    def _leaf(self, item: Item, node: Item, place: int, won: bool) -> Item:
        """The child of `node` by `stop`, likewise."""
        digest = leaf_digest(node[1])
        word, mantissa, exponent, log = -1, item[2], item[3], item[4]
        if not won:
            word = self._word(_OWN + digest)
            mantissa, exponent, log = later(mantissa, exponent, word, *_LEAF_RATE)
        key = rounded(log, item[5])
        leaf = (
            -key, digest, mantissa, exponent, log, item[5], None, None, item, place, None, word,
        )  # fmt: skip
        return self._again(leaf) if key == OPEN else leaf

    def _left(
        self,
        item: Item,
        node: Item,
        page: Page,
        name: bytes,
        left: Left | int,
        inverse: int,
        scale: int,
    ) -> Item:
        """What a draw from `item` has left of `node`.

        Args:
            name: the step, 4 bytes.
            left: what it is.
            inverse, scale: its rate.
        """
        place = node[1] + name
        plain = self._plain
        plain.reset()
        plain.update(b"\x03" + place)
        digest, word = plain.digest(), self._word(_REST + place)
        mantissa, exponent, log = later(item[2], item[3], word, inverse, scale)
        key = rounded(log, item[5] + page.lift)
        rest = (
            -key, digest, mantissa, exponent, log, item[5], page, left, item, 0, None, word,
        )  # fmt: skip
        return self._again(rest) if key == OPEN else rest

    def _again(self, item: Item) -> Item:
        """The same item with its key, which its own numbers leave open.

        Raises:
            Undecided: 4096 bits are not enough.
        """
        log, key = Retrace(self._tables, self._rest).published(item)
        self._batch.arrivals[item[1]] = log
        return (-key, *item[1:])

    def _arrival_word(self, leaf: Item) -> int:
        """U_P of a leaf.

        Raises:
            Undecided: 4096 bits do not decide it.
        """
        reals = self._tables.reals
        try:
            return reals.arrival_word(reals.scaled(leaf[2], leaf[3]), _TIME_UNITS)
        except Undecided:
            return Retrace(self._tables, self._rest).arrival_word(leaf)
