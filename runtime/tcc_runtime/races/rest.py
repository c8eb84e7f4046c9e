"""The rest race: the children of a node are drawn one at a time, in order of arrival.

Text: docs/spec/race.md, section 18.  A draw realises the winner alone, by the numbers of what it is
drawn from, and one arrival for all that is left; so it costs the same however many children there
are, once the running sums of the state are there.
Cost: a child one digest; what is left one digest, one uniform and an arrival.
"""

from __future__ import annotations

from bisect import bisect_right

from tcc_certs.race.digest import REST_ARRIVAL, REST_WINNER, WINNER
from tcc_runtime.artifact.constraints import Constraints
from tcc_runtime.artifact.root import Root
from tcc_runtime.item import HELD, ID, LEFT, VIEW, WON, Item, Left, node_of, whole
from tcc_runtime.numbers.rung import Rung
from tcc_runtime.races.coupled import Coupled
from tcc_runtime.races.race import Step, Uniforms, held_after
from tcc_runtime.states import Edge, Tables

_WINS, _AGAIN, _REST = bytes((WINNER,)), bytes((REST_WINNER,)), bytes((REST_ARRIVAL,))
_LEFT, _ONE = b"\x03", (1).to_bytes(4, "little")


class Rest(Coupled):
    """One realised race, drawn child by child; arguments as of `Coupled`."""

    def __init__(
        self,
        tables: Tables,
        numbers: Rung,
        uniforms: Uniforms,
        constraints: Constraints | None,
        *,
        root: Root | None = None,
    ) -> None:
        super().__init__(tables, numbers, uniforms, constraints, root=root)
        self._won, self._after, self._named = numbers.won, numbers.after, numbers.named

    def expand(self, item: Item) -> Step:
        """The first draw from a node."""
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
        """The next draw from what is left of a node."""
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
            others = Left(node, left.step + 1, mass, size, pool, place, barren)
            rest = numbers.after(item, name, others, word, numbers.rate(view, mass))
        children, winner = ((), None) if child is None else ((child,), place)
        return item, drawn, winner, children, rest, rest is None and barren

    def _child(self, item: Item, ident: bytes, edge: Edge, place: int) -> Item | None:
        """The child that won; None where a statement forbids it."""
        held = item[HELD]
        if self._constraints is not None:
            held = held_after(self._constraints.after(held), edge)
            if held is None:
                return None
        name = self._digest(edge[0] + ident + edge[1])
        return self._numbers.won(item, edge, name, place, WON, held)
