"""The coupled race and its variants: the rest race, the anchored race, and the literal race.

Text: docs/spec/race.md, sections 5 to 8, 14 and 18.

`Coupled` pushes every child of a node with its own arrival.  Cost: for each child that did not win,
a digest, a uniform and an arrival of the rung.

`Rest`, the rest race, draws the children of a node one at a time, in order of arrival.  A draw
computes the winner from the numbers of its source, and one arrival for the remainder of the node.
So a draw costs the same for any number of children.  Cost: one digest for each child; one digest,
one uniform and one arrival for each remainder.

`Anchored` pushes a child with the key that follows from the parent's arrival.  The child's own
arrival is computed when it is popped, and equals the arrival in a finalized run.  Cost: one arrival
less for each child that is never popped.

`Literal` is the surrogate race as printed in the paper, with a fresh draw at every node and leaf.
So its keys bound no leaf, and the run claims nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from tcc_certs.errors import Code, ensure
from tcc_certs.race.digest import (
    FIRST_ARRIVAL,
    PER_LEAF,
    RESIDUAL,
    REST_ARRIVAL,
    REST_WINNER,
    WINNER,
)
from tcc_certs.statements import Constraints
from tcc_runtime.artifact.root import Root, root_of
from tcc_runtime.item import (
    EDGE,
    HELD,
    ID,
    LEFT,
    ORDER,
    PLACE,
    SOURCE,
    VIEW,
    WON,
    WORD,
    Item,
    NodeRemainder,
    node_of,
    whole,
)
from tcc_runtime.numbers.rung import Rung
from tcc_runtime.races.interface import RunHashers, Step, children_of, held_after
from tcc_runtime.states import Edge, Tables

_FIRST, _WINS, _OWN = bytes((FIRST_ARRIVAL,)), bytes((WINNER,)), bytes((RESIDUAL,))
_AGAIN, _REST, _LEAF = bytes((REST_WINNER,)), bytes((REST_ARRIVAL,)), bytes((PER_LEAF,))
_LEFT, _ONE = b"\x03", (1).to_bytes(4, "little")


class Coupled:
    """One realised race over one artifact.

    Args:
        tables: of the artifact and the recipe.
        numbers: makes the items.
        uniforms: the PRF; tests may pass fixed words.
        constraints: the statements that forbid children in addition to the automaton, or None.
        root: the root of the run; None: the root of the artifact.
    """

    late = False
    timed = True

    def __init__(
        self,
        tables: Tables,
        numbers: Rung,
        uniforms: RunHashers,
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
        """Return the root item with the first arrival, t = E / n.

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
        """Create all children that are allowed, in canonical order."""
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
        """Raise ValueError: this race draws every child in one step, so no remainder exists."""
        raise ValueError("nothing is left of a node")

    def settle(self, leaf: Item) -> Item:
        """Return the leaf unchanged: its key is its value."""
        return leaf

    def leaf_word(self, leaf: Item) -> int:
        """Return U_P of a leaf.

        Raises:
            Undecided: the last precision does not decide it.
        """
        return self._numbers.arrival_word(leaf)

    def recost(self, item: Item, cost: int) -> Item:
        """Return the item with the same arrival at another cost."""
        return self._numbers.recost(item, cost)


class Rest(Coupled):
    """One realised race, drawn child by child; arguments as for `Coupled`."""

    def __init__(
        self,
        tables: Tables,
        numbers: Rung,
        uniforms: RunHashers,
        constraints: Constraints | None,
        *,
        root: Root | None = None,
    ) -> None:
        super().__init__(tables, numbers, uniforms, constraints, root=root)
        self._won, self._after, self._named = numbers.won, numbers.after, numbers.named

    def expand(self, item: Item) -> Step:
        """Make the first draw from a node."""
        view, ident = item[2], item[1]
        if not view.opened:
            view.open()
        drawn = self._word(_WINS + ident)
        place = bisect_right(view.bounds, 2 * drawn + 1)
        edge, rate = view.firsts[place] or self._numbers.first_edge(view, place)
        rest = winner = None
        children: tuple[Item, ...] = ()
        if edge is not None:
            held = item[8]
            if self._constraints is not None:
                held = held_after(self._constraints.after(held), edge)
            if held is not None or self._constraints is None:
                name, winner = self._digest(edge[0] + ident + edge[1]), place
                children = (self._won(item, edge, name, place, WON, held),)
        if rate is not None:
            name = ident + _ONE
            word = self._word(_REST + name)
            if self._named:
                name = self._digest(_LEFT + name)
            rest = self._after(item, name, ~place if winner is None else place, word, rate)
        return item, drawn, winner, children, rest, rest is None and winner is None

    def draw(self, item: Item) -> Step:
        """Make the next draw from the remainder of a node."""
        view, node, numbers = item[VIEW], node_of(item), self._numbers
        left = whole(node, item[LEFT], view)
        ident, pool, mass, size = node[ID], left.pool, left.mass, left.size
        drawn = self._word(_AGAIN + ident + left.step.to_bytes(4, "little"))
        if left.last < view.size:
            pool.take(left.last)
        place = pool.find((2 * drawn + 1) * mass >> 65)
        child = rest = None
        if place < view.size:
            child = self._child(item, ident, view.edges[place] or numbers.edge(view, place), place)
            mass, size = mass - pool.mass(place), size - 1
        else:
            mass -= view.state.slack
        barren = left.barren and child is None
        if size:
            name = ident + (left.step + 1).to_bytes(4, "little")
            word = self._word(_REST + name)
            if numbers.named:
                name = self._digest(_LEFT + name)
            others = NodeRemainder(node, left.step + 1, mass, size, pool, place, barren)
            rest = numbers.after(item, name, others, word, numbers.rate(view, mass))
        children, winner = ((), None) if child is None else ((child,), place)
        return item, drawn, winner, children, rest, rest is None and barren

    def _child(self, item: Item, ident: bytes, edge: Edge, place: int) -> Item | None:
        """Return the child that won, or None if a statement forbids it."""
        held = item[HELD]
        if self._constraints is not None:
            held = held_after(self._constraints.after(held), edge)
            if held is None:
                return None
        name = self._digest(edge[0] + ident + edge[1])
        return self._numbers.won(item, edge, name, place, WON, held)


class Anchored(Coupled):
    """The coupled race, with children that are pushed with the key M(u) - ln(w t(parent)).

    Args:
        cost_of: returns the cost of an item's prefix; None if costs cannot rise during the run.
    """

    late = True
    timed = False

    def __init__(
        self,
        tables: Tables,
        numbers: Rung,
        uniforms: RunHashers,
        constraints: Constraints | None,
        cost_of: Callable[[Item], int] | None,
        *,
        root: Root | None = None,
    ) -> None:
        super().__init__(tables, numbers, uniforms, constraints, root=root)
        self._cost_of = cost_of

    def expand(self, item: Item) -> Step:
        """Realise t of the node, then create its children."""
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
        """Realise t of a leaf, and so its value V."""
        return self._realised(leaf)

    def _drawn(self, item: Item) -> tuple[int | None, int]:
        """Return the word of the winner and the winner's place."""
        drawn = self._word(_WINS + item[ID])
        return drawn, bisect_right(item[VIEW].bounds, 2 * drawn + 1)

    def _realised(self, item: Item) -> Item:
        """Return the item with the arrival that a finalized run gives it; a winner already has
        it.
        """
        if item[WORD] is not None:
            return item
        word = self._word(_OWN + item[ID])
        return self._present(
            self._numbers.lost(item[SOURCE], item[EDGE], item[ID], item[PLACE], word, item[HELD])
        )

    def _present(self, item: Item) -> Item:
        """Return the item at its present cost, which may have risen since its source was
        expanded.
        """
        if self._cost_of is None:
            return item
        return self._numbers.recost(item, self._cost_of(item))


class Literal(Anchored):
    """The surrogate race as printed: no winner, and an independent draw at every node and leaf.

    It requires an artifact without tilt, so that every weight is 1.
    """

    def leaf_word(self, leaf: Item) -> int:
        """Return the word that the leaf's value was computed from."""
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
