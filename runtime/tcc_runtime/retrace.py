"""The numbers of a recorded run's item by the definition of the race, where its own are too short.

Text: docs/spec/race.md, sections 5, 7 and 18.  The path to the item is made again as the race has
it (:mod:`tcc_runtime.node`), so that :mod:`tcc_runtime.rounding` can take more and more precision.
Cost: two logarithms and a few operations of working precision for each arrival on the way; wanted
for one number in 2^19.
"""

from __future__ import annotations

from tcc_runtime.entries import Item, left_of
from tcc_runtime.node import Node
from tcc_runtime.numbers import units
from tcc_runtime.race import arrival_at
from tcc_runtime.rest import rest_at, units_of
from tcc_runtime.rest_item import Rest
from tcc_runtime.rounding import Rounding
from tcc_runtime.tables import Tables


class Retrace:
    """The race over some tables; `rest`: its children are drawn one at a time."""

    __slots__ = ("_bits", "_reals", "_rounding", "_time_at", "_units_of")

    def __init__(self, tables: Tables, rest: bool) -> None:
        self._bits = tables.artifact.manifest.fraction_bits
        self._reals = tables.reals
        self._time_at = rest_at if rest else arrival_at
        self._units_of = units_of if rest else _units_of_depth
        self._rounding = Rounding(tables.artifact, self._reals, self._time_at, self._units_of)

    def published(self, item: Item) -> tuple[int, int]:
        """-ln t and the key of an item.

        Raises:
            Undecided: 4096 bits are not enough.
        """
        node, reals = self._node(item), self._reals
        node.log = log = reals.log(node.time)
        node.log_error = reals.log_error(log, self._units_of(node))
        self._rounding.push(node)
        return node.neg_log_t or 0, node.key

    def arrival_word(self, leaf: Item) -> int:
        """U_P of a leaf.

        Raises:
            Undecided: 4096 bits do not decide it.
        """
        return self._rounding.arrival_word(self._node(leaf))

    def _node(self, item: Item) -> Node:
        path: list[Item] = []
        step: Item | None = item
        while step is not None:
            path.append(step)
            step = step[8]
        node = None
        for step in reversed(path):
            node = _made(step, node)
        if node is None:
            raise ValueError("a path begins at the root")
        node.time = self._time_at(node, self._reals, self._bits)
        return node


def _units_of_depth(node: Node) -> int:
    return units(node.depth)


def _made(item: Item, source: Node | None) -> Node:
    """An item as the race has it, drawn from `source`; what the roundings ask of it."""
    page, left, step, word = item[6], item[7], item[10], item[11]
    node = Node()
    if left is not None and page is not None:
        node = rest = Rest()
        rest.mass, rest.scale = left_of(item, page, left)[2], page.state.scale
    node.parent = node.after = source
    node.state = None if page is None else page.state
    node.call = call = None if step is None else step.call
    node.word = None if word < 0 else word
    node.depth, node.cost, node.units = 0, 0, units(0)
    if source is not None:
        node.depth, node.cost = source.depth, source.cost
        node.units = max(source.units, units(0)) + 1
    if call is not None:
        node.depth, node.cost = node.depth + 1, node.cost + call.cost_low
    return node
