"""The fallback: no counts, a value from each leaf's own uniform, bounds without noise.

Text: docs/spec/race.md, section 15.  A leaf has V = G / tau - beta C - ln E with G = -ln(-ln U), E
= -ln(1 - U) and its own U.  A node's key is -beta (C + h); with recipe r1, h is the per-step
envelope.  The keys bound the scores and not the values, so the run claims nothing.
Cost: four logarithms for a leaf.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tcc_certs.errors import Code
from tcc_certs.formats.codec import parse_decimal
from tcc_certs.formats.ledger import Q64_MAX, Q64_MIN
from tcc_certs.race.digest import PER_LEAF
from tcc_certs.statements import Constraints
from tcc_runtime.artifact.constraints import Held
from tcc_runtime.artifact.root import Root, root_of
from tcc_runtime.errors import Undecided
from tcc_runtime.item import HELD, ID, LEFT, VIEW, WORD, Item, node_of, whole
from tcc_runtime.numbers.arrivals import DROP, FRACTION, HALF, PART, log_of_wait
from tcc_runtime.numbers.floats import ident_of
from tcc_runtime.numbers.reals import Reals, clamped
from tcc_runtime.numbers.rung import KEY_CLAMP, Precision, Rung
from tcc_runtime.races.interface import RunHashers, Step, children_of
from tcc_runtime.states import Tables, View

# Members after the common ones: the cost of the prefix in nano-units, and the clamp flags.
COST, CLAMP = 9, 10
_LEAF: Final = bytes((PER_LEAF,))
_MOST: Final = (1 << 64) - 1
_MOST_BOUNDS: Final = 1 << 12
_GUMBEL, _ROOM = 46, 60  # bound of the size of G; bits that G / tau may take


class Fallback:
    """Heuristic values of leaves over one artifact.

    Args:
        numbers: provides the views; no arrival is drawn.
        tau: an exact decimal above 0.
        precision: the first and the last precision.
        exact: True omits the first attempt by integers of fixed size.
        constraints: the statements that forbid children in addition to the automaton, or None.
        root: the root of the run; None: the root of the artifact.
    """

    late = False
    timed = False

    def __init__(
        self,
        tables: Tables,
        numbers: Rung,
        uniforms: RunHashers,
        constraints: Constraints | None,
        tau: str,
        precision: Precision,
        exact: bool = False,
        *,
        root: Root | None = None,
    ) -> None:
        self._tables = tables
        self._root = root_of(tables.artifact) if root is None else root
        self._numbers = numbers
        self._word, self._digests = uniforms.word, uniforms.digests
        self._constraints = constraints
        numerator, places = parse_decimal(tau, "tau", Code.LEDGER_SCHEMA)
        self._tau: int = numerator
        self._tau_unit: int = 10**places
        self._precision = precision
        self._bounds = _bounds_of(tables)
        self._error = precision.error * self._tau_unit // numerator + 2 + precision.error
        self._tries = not exact and self._error < HALF
        # If the first rungs were allowed, beta times any cost is small. G / tau is then small too,
        # unless tau is tiny.
        self.clamping = exact or _GUMBEL * self._tau_unit >= numerator << _ROOM

    def root(self) -> Item:
        """Return the root item with its bound."""
        view = self._numbers.view(self._tables.state(self._root.members))
        held = None if self._constraints is None else self._constraints.start
        common = view, None, None, 0, None, None, held
        return self.recost((0, self._root.digest, *common, None, 0), 0)

    def expand(self, item: Item) -> Step:
        """Create all children that are allowed; the leaf gets its value."""
        children = self._children(item, item[ID], frozenset())
        return item, None, None, children, None, not children

    def draw(self, item: Item) -> Step:
        """Create the whole remainder of a node in one step, because children are no longer
        drawn.
        """
        node = node_of(item)
        left = whole(node, item[LEFT], item[VIEW])
        children = self._children(item, node[ID], left.drawn())
        return item, None, None, children, None, left.barren and not children

    def settle(self, leaf: Item) -> Item:
        """Return the leaf unchanged: its key is its value."""
        return leaf

    def leaf_word(self, leaf: Item) -> int:
        """Return the leaf's own uniform."""
        word: int = leaf[WORD]
        return word

    def shown(self, item: Item) -> tuple[int | None, int]:
        """Return None, as no arrival exists, and the clamp flags."""
        return None, item[CLAMP]

    def converted(self, item: Item, cost: int) -> Item:
        """Convert an item of another race: a node gets its bound, a leaf its value.

        Raises:
            Undecided: a rounding stays open at the last precision.
        """
        ident = ident_of(item)
        word = self._word(_LEAF + ident) if item[VIEW] is None else None
        return self.recost((0, ident, *item[2:WORD], word, item[HELD], None, 0), cost)

    def recost(self, item: Item, cost: int) -> Item:
        """Return the item at another cost, or `item` itself if the cost is the same."""
        if cost == item[COST]:
            return item
        return self._item(item[ID], item[VIEW], item[LEFT:WORD], item[WORD], item[HELD], cost)

    def _children(self, item: Item, ident: bytes, drawn: frozenset[int]) -> list[Item]:
        view, spent, bounds = item[VIEW], item[COST], self._bounds
        if not view.opened:
            view.open()
        rows = children_of(self._numbers, self._constraints, view, item[HELD])
        names = self._digests([edge[0] + ident + edge[1] for edge in rows[1]])
        children: list[Item] = []
        for name, place, edge, held in zip(names, *rows, strict=False):
            if drawn and place in drawn:
                continue
            call, to = edge[2], edge[3]
            if call is None:
                word, cost = self._word(_LEAF + name), spent
                order, clamp = _published(self._scored(word, cost))
            else:
                word, cost = None, spent + call.cost_low
                order, clamp = bounds[cost + to.state.cost_ahead]
            children.append((order, name, to, None, item, place, edge, word, held, cost, clamp))
        return children

    def _item(
        self,
        ident: bytes,
        view: View | None,
        common: tuple[Any, ...],
        word: int | None,
        held: Held | None,
        cost: int,
    ) -> Item:
        """Create an item with its bound, or with its value if it is a leaf."""
        if view is None:
            order, clamp = _published(0 if word is None else self._scored(word, cost))
        else:
            order, clamp = self._bounds[cost + view.state.cost_ahead]
        return order, ident, view, *common, word, held, cost, clamp

    def _scored(self, word: int, cost: int) -> int:
        """Return G / tau - beta cost - ln E, rounded but not clamped."""
        if self._tries:
            gumbel, arrival = -log_of_wait(_MOST - word), log_of_wait(word)
            score = ((-self._tables.beta * cost) << FRACTION) // self._tables.unit
            value = HALF + score + gumbel * self._tau_unit // self._tau - arrival
            if self._error < value & PART < PART - self._error:
                return value >> DROP
        return decided(lambda reals: self._nearest(word, cost, reals), self._precision)

    def _nearest(self, word: int, cost: int, reals: Reals) -> int:
        gumbel = -reals.log(reals.exponential_of(word))
        arrival = reals.log(reals.exponential(word))
        error = reals.log_error(gumbel, 1) * self._tau_unit // self._tau
        error += 2 + reals.log_error(arrival, 1)
        score = ((-self._tables.beta * cost) << reals.shift) // self._tables.unit
        value = score + gumbel * self._tau_unit // self._tau - arrival
        return reals.nearest(value, error, error + 1)


class _Bounds(dict[int, tuple[int, int]]):
    """Key and clamp flags by the least cost of a plan, as an item stores them; many nodes share a
    cost.
    """

    __slots__ = ("_beta", "_unit")

    def __init__(self, tables: Tables) -> None:
        self._beta, self._unit = tables.beta, tables.unit

    def __missing__(self, cost: int) -> tuple[int, int]:
        if len(self) >= _MOST_BOUNDS:
            self.clear()
        unit = self._unit
        exact, rest = divmod(-self._beta * cost << 64, unit)
        if 2 * rest > unit or (2 * rest == unit and exact & 1):  # ties to even
            exact += 1
        found = self[cost] = _published(exact)
        return found


def _bounds_of(tables: Tables) -> _Bounds:
    """Return the bounds that all runs over these tables share."""
    found = tables.views.get("fallback")
    if not isinstance(found, _Bounds):
        found = tables.views["fallback"] = _Bounds(tables)
    return found


def _published(exact: int) -> tuple[int, int]:
    """Return minus the number, clamped to its range, and whether it was clamped."""
    if Q64_MIN <= exact <= Q64_MAX:
        return -exact, 0
    return -clamped(exact), KEY_CLAMP


def decided(attempt: Callable[[Reals], int], precision: Precision) -> int:
    """Return the result of `attempt` at the first precision that decides it.

    Raises:
        Undecided: the last precision does not decide it.
    """
    bits = precision.first
    while True:
        try:
            return attempt(Reals(bits))
        except Undecided:
            if bits >= precision.last:
                raise
            bits = min(2 * bits, precision.last)
