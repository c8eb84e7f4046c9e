"""The coupled race: every child of a node is pushed with its own arrival.

Text: docs/spec/race.md, sections 5 to 8.
Cost: a child that did not win a digest, a uniform and what the rung takes for an arrival.
"""

from __future__ import annotations

from bisect import bisect_right

from tcc_certs.errors import Code, ensure
from tcc_certs.race.digest import FIRST_ARRIVAL, RESIDUAL, WINNER
from tcc_runtime.artifact.constraints import Constraints
from tcc_runtime.artifact.root import Root, root_of
from tcc_runtime.item import HELD, ID, VIEW, WON, Item
from tcc_runtime.numbers.rung import Rung
from tcc_runtime.races.race import Step, Uniforms, held_after
from tcc_runtime.states import Tables

_FIRST, _WINS, _OWN = bytes((FIRST_ARRIVAL,)), bytes((WINNER,)), bytes((RESIDUAL,))


class Coupled:
    """One realised race over one artifact.

    Args:
        tables: of the artifact and the recipe.
        numbers: makes the items.
        uniforms: the PRF; a test may hand in words of its own.
        constraints: what forbids children besides the automaton; None is nothing.
        root: where the run begins; None: at the root of the artifact.
    """

    late = False
    timed = True

    def __init__(
        self,
        tables: Tables,
        numbers: Rung,
        uniforms: Uniforms,
        constraints: Constraints | None,
        *,
        root: Root | None = None,
    ) -> None:
        self._tables = tables
        self._root = root_of(tables.artifact) if root is None else root
        self._numbers = numbers
        self._word, self._digest, self._digests = uniforms.word, uniforms.digest, uniforms.digests
        self._constraints = constraints
        self.shown, self.clamping = numbers.shown, numbers.clamping

    def root(self) -> Item:
        """The root, with the first arrival: t = E / n.

        Raises:
            Undecided: a rounding stays open at the last precision.
            Rejected: C401, an unverified artifact has no count at its root.
        """
        root, state = self._root, self._tables.state(self._root.members)
        ensure(state.count > 0, Code.RACE_COUNT, f"race_count[{state.shown}]", "1 or more", 0)
        held = None if self._constraints is None else self._constraints.start
        word = self._word(_FIRST + root.digest)
        view = self._numbers.view(state)
        return self._numbers.first(view, root.digest, word, held=held)

    def expand(self, item: Item) -> Step:
        """All children that are not forbidden, in canonical order."""
        view, ident, held = item[VIEW], item[ID], item[HELD]
        if not view.opened:
            view.open()
        numbers, word, digest = self._numbers, self._word, self._digest
        make, won, lost = numbers.edge, numbers.won, numbers.lost
        steps = None if self._constraints is None else self._constraints.after(held)
        drawn = word(_WINS + ident)
        place = bisect_right(view.bounds, 2 * drawn + 1)
        winner = place if place < view.size else None
        children: list[Item] = []
        place, kept = -1, held
        for edge in view.edges:
            place += 1
            if edge is None:
                edge = make(view, place)
            if steps is not None:
                kept = held_after(steps, edge)
                if kept is None:
                    winner = None if place == winner else winner
                    continue
            name = digest(edge[0] + ident + edge[1])
            if place == winner:
                children.append(won(item, edge, name, place, WON, kept))
            else:
                children.append(lost(item, edge, name, place, word(_OWN + name), kept))
        return item, drawn, winner, children, None, not children

    def draw(self, item: Item) -> Step:
        """There is none: every child is drawn at once."""
        raise ValueError("nothing is left of a node")

    def settle(self, leaf: Item) -> Item:
        """Its key is its value."""
        return leaf

    def leaf_word(self, leaf: Item) -> int:
        """Raises: Undecided, where the last precision does not decide it."""
        return self._numbers.arrival_word(leaf)

    def recost(self, item: Item, cost: int) -> Item:
        """The same arrival."""
        return self._numbers.recost(item, cost)
