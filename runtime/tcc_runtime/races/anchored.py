"""Keys anchored at the parent, and the surrogate race as it is printed.

Text: docs/spec/race.md, sections 8 and 14.  A child is pushed with the key that its parent's
arrival gives it; its own is realised when it is popped.  In the coupled race that is the same
arrival that a finalized run draws; in the literal one it is a fresh draw at every node and leaf, so
that the keys bound nothing that the leaves took part in, and nothing is claimed.
Cost: one arrival less for each child that is never popped.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from tcc_certs.race.digest import PER_LEAF, RESIDUAL, WINNER
from tcc_runtime.artifact.constraints import Constraints
from tcc_runtime.artifact.root import Root
from tcc_runtime.item import EDGE, HELD, ID, ORDER, PLACE, SOURCE, VIEW, WON, WORD, Item
from tcc_runtime.numbers.rung import Rung
from tcc_runtime.races.coupled import Coupled
from tcc_runtime.races.race import Step, Uniforms, children_of
from tcc_runtime.states import Tables

_WINS, _OWN, _LEAF = bytes((WINNER,)), bytes((RESIDUAL,)), bytes((PER_LEAF,))


class Anchored(Coupled):
    """The coupled race; a child is pushed with M(u) - ln(w t(parent)).

    Args:
        cost_of: what the prefix of an item costs, where that rises while the run goes on.
    """

    late = True
    timed = False

    def __init__(
        self,
        tables: Tables,
        numbers: Rung,
        uniforms: Uniforms,
        constraints: Constraints | None,
        cost_of: Callable[[Item], int] | None,
        *,
        root: Root | None = None,
    ) -> None:
        super().__init__(tables, numbers, uniforms, constraints, root=root)
        self._cost_of = cost_of

    def expand(self, item: Item) -> Step:
        """Realises t of the node, then pushes its children."""
        view, ident = item[VIEW], item[ID]
        item = (item[ORDER], *self._realised(item)[1:])
        if not view.opened:
            view.open()
        drawn, winner = self._drawn(item)
        places, edges, held = children_of(self._numbers, self._constraints, view, item[HELD])
        names = self._digests([edge[0] + ident + edge[1] for edge in edges])
        children = self._numbers.bounded(item, places, edges, names, held)
        won = None
        if winner in places:
            won, at = winner, places.index(winner)
            child = children[at]
            children[at] = self._numbers.won(item, edges[at], names[at], winner, WON, child[HELD])
        return item, drawn, won, children, None, not children

    def settle(self, leaf: Item) -> Item:
        """Realises t, and so V, of a leaf."""
        return self._realised(leaf)

    def _drawn(self, item: Item) -> tuple[int | None, int]:
        """The word of the winner and its place."""
        drawn = self._word(_WINS + item[ID])
        return drawn, bisect_right(item[VIEW].bounds, 2 * drawn + 1)

    def _realised(self, item: Item) -> Item:
        """The arrival that a finalized child is pushed with; a winner has it."""
        if item[WORD] is not None:
            return item
        word = self._word(_OWN + item[ID])
        return self._present(
            self._numbers.lost(item[SOURCE], item[EDGE], item[ID], item[PLACE], word, item[HELD])
        )

    def _present(self, item: Item) -> Item:
        """At the cost that is known now, which its source was not expanded with."""
        if self._cost_of is None:
            return item
        return self._numbers.recost(item, self._cost_of(item))


class Literal(Anchored):
    """The surrogate race as printed: no winner, a draw of its own at every node and leaf.

    Only for an artifact without tilt, so that every weight is 1.
    """

    def leaf_word(self, leaf: Item) -> int:
        """Its value was made of it."""
        word: int = leaf[WORD]
        return word

    def _drawn(self, item: Item) -> tuple[int | None, int]:
        return None, -1

    def _realised(self, item: Item) -> Item:
        if item[WORD] is not None:
            return item
        purpose = _LEAF if item[VIEW] is None else _OWN
        word = self._word(purpose + item[ID])
        view, ident, source = item[VIEW], item[ID], item[SOURCE]
        return self._present(
            self._numbers.first(view, ident, word, source, item[EDGE], item[PLACE], item[HELD])
        )
