"""The rest race: the children of a node are drawn one at a time, in order of arrival.

Text: docs/spec/race.md, section 18.  An expansion realises the winner alone, by the numbers of its
parent, and one arrival for all that is left; so it costs the same however many children there are,
once the running sums of its state are there.
Cost: a child one digest; what is left one digest, one PRF call and two logarithms.
"""

from __future__ import annotations

from bisect import bisect_right

from tcc_certs.race.digest import REST_ARRIVAL, REST_WINNER, WINNER, rest_digest, rest_place
from tcc_runtime.constraints import Constraints
from tcc_runtime.node import Expansion, Node
from tcc_runtime.numbers import Real, Reals, units
from tcc_runtime.race import Coupled, Draw, bare_child, bare_leaf, opened
from tcc_runtime.rest_item import Drawing, Pool, Rest
from tcc_runtime.rounding import Rounding
from tcc_runtime.tables import State, Tables


class Successive(Coupled):
    """One realised race over one artifact, drawn child by child; arguments as of `Coupled`."""

    def __init__(self, tables: Tables, draw: Draw, constraints: Constraints | None = None) -> None:
        super().__init__(tables, draw, constraints)
        self._rounding = Rounding(tables.artifact, tables.reals, rest_at, units_of)

    def expand(self, node: Node) -> Drawing:
        """The first draw from a node that is popped.

        Raises:
            Undecided: a rounding stays open at 4096 bits; nothing was changed.
            Rejected: an unverified artifact leads out of its ranges.
        """
        state = opened(node, self._tables)
        word = self._draw(WINNER, node.digest)
        place = bisect_right(state.cumulative, ((2 * word + 1) * state.count) >> 65)
        size = len(state.cumulative)
        return self._drawn(node, node, word, place, 0, None, state.count, size, True)

    def draw(self, rest: Rest) -> Drawing:
        """The next draw; errors as of :meth:`expand`."""
        word = self._draw(REST_WINNER, rest_place(rest.of.digest, rest.step))
        place = rest.pool.find(((2 * word + 1) * rest.mass) >> 65)
        return self._drawn(
            rest.of, rest, word, place, rest.step, rest.pool, rest.mass, rest.size, rest.barren
        )

    def _drawn(
        self,
        node: Node,
        source: Node,
        word: int,
        place: int,
        step: int,
        pool: Pool | None,
        mass: int,
        size: int,
        barren: bool,
    ) -> Drawing:
        """Everything that the draw of `place` publishes; changes nothing before that is known.

        Args:
            source: the item that is popped: `node`, or what was left of it.
            place: past the last child a phantom.
            pool, mass, size, barren: of what there is to draw from; None: of all children.
        """
        state = opened(node, self._tables)
        real = place < len(state.cumulative)
        child = self._winner(node, source, state, place) if real else None
        barren = barren and child is None
        rest = None
        if size > real:
            pool = Pool(state.cumulative) if pool is None else pool
            mass -= pool.mass(place) if real else state.slack
            rest = self._left(node, source, state, step + 1, mass)
            rest.pool, rest.size, rest.barren = pool, size - real, barren
            if real:
                pool.take(place)
        won = None if child is None else place
        children = [] if child is None else [child]
        return Drawing(node, word, won, children, step=step, rest=rest, barren=barren)

    def _winner(self, node: Node, source: Node, state: State, place: int) -> Node | None:
        """The child at `place` with t = w T; None where it is forbidden."""
        constraints, held = self._constraints, node.held
        if place == len(state.edges):
            if constraints is not None and held is not None and not constraints.may_stop(held):
                return None
            leaf = bare_leaf(node, place, True)
            leaf.time, leaf.units = source.time, source.units
            leaf.log, leaf.log_error = source.log, source.log_error
            return self._published(leaf, source)
        call, target = state.edges[place]
        if constraints is not None and held is not None:
            held = constraints.step(held, call.index)
            if held is None:
                return None
        child = bare_child(node, call, target, place, True)
        child.held = held
        child.time, child.units = self._reals.mul(call.weight, source.time), source.units + 1
        child.log = source.log + call.log
        child.log_error = source.log_error + call.log_error
        return self._published(child, source)

    def _published(self, child: Node, source: Node) -> Node:
        child.word = None
        child.after = source
        self._rounding.push(child)
        child.value = child.key
        return child

    def _left(self, node: Node, source: Node, state: State, step: int, mass: int) -> Rest:
        """What is left after a draw, with T' = T + E / mass."""
        reals, rest = self._reals, Rest()
        rest.of, rest.after, rest.step = node, source, step
        rest.mass, rest.scale = mass, state.scale
        rest.parent, rest.call, rest.state, rest.held = node.parent, node.call, state, node.held
        rest.depth, rest.cost, rest.place, rest.won = node.depth, node.cost, node.place, False
        rest.digest = rest_digest(node.digest, step)
        rest.word = word = self._draw(REST_ARRIVAL, rest_place(node.digest, step))
        rate = reals.scaled(mass, state.scale)
        rest.time = reals.fms(1, source.time, reals.div(reals.log_tail(word), rate))
        rest.units = max(source.units, units(0)) + 1
        rest.log = log = reals.log(rest.time)
        rest.log_error = reals.log_error(log, rest.units)
        self._rounding.push(rest)
        return rest


def units_of(node: Node) -> int:
    """The relative error of t, in units of 2^-p."""
    return node.units


def all_left(rest: Rest, whole: Expansion) -> Drawing:
    """What is left of a node, at once, where its children are no longer drawn.

    Args:
        whole: the expansion of the node.
    """
    children = [child for child in whole.children if child.place not in rest.pool.drawn]
    barren = rest.barren and not children
    return Drawing(rest.of, None, None, children, step=rest.step, rest=None, barren=barren)


def rest_at(node: Node, reals: Reals, bits: int) -> Real:
    """t of the rest race at another precision, draw by draw from the root."""
    path, step = [], node
    while (before := step.after) is not None:
        path.append(step)
        step = before
    time: Real = 0
    if step.word is not None and step.state is not None:
        rate = reals.scaled(step.state.count, step.state.scale)
        time = reals.div(reals.exponential(step.word), rate)
    for step in reversed(path):
        if isinstance(step, Rest) and step.word is not None:
            rate = reals.scaled(step.mass, step.scale)
            time = reals.fms(1, time, reals.div(reals.log_tail(step.word), rate))
        elif step.call is not None:
            time = reals.mul(reals.scaled(step.call.numerator, bits), time)
    return time
