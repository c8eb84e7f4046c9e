"""The search of a run that nobody records: the same pops, decided by enclosures of the keys.

Text: docs/spec/race.md, section 21.  A ledger publishes the key of every node; without one a key is
only compared.  So each is held as a floating-point number and a bound of its error, in the units of
Q64.64, and computed exactly, by the race that a recorded run uses, where a comparison is not
decided, for the leaves that are found, and for what is left at the end.  A run therefore gives the
same result, bit for bit, whether it is recorded or not.
Cost: a child two hashes and two logarithms of the processor; in the rest race an expansion four
hashes, whatever the number of children.

Error analysis.  The platform's `log` and `log1p` are taken to be right to 44 bits; good ones are
right to 52.  A share is one correctly rounded division, a path of d calls multiplies tau by d of
them and adds positive numbers, so tau is within (2d + 2) 2^-53 + 2^-44 of the true one, relatively:
less than 2^-41 for d <= LONGEST.  The level and the cost are within 2^-44 of their size.  So a key
is within 2^-40 * (4 + the sizes of its three terms), and its rounding to Q64.64 is in the 4.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable
from heapq import heappop, heappush, heapreplace
from math import inf, log, log1p
from typing import TypeAlias

from blake3 import blake3

from tcc_certs.digest import RESIDUAL, REST_ARRIVAL, REST_WINNER, WINNER
from tcc_runtime.exact import Exact
from tcc_runtime.gauges import LN2, MARGIN, Gauge, gauges_of
from tcc_runtime.guards import Stop
from tcc_runtime.load import Artifact
from tcc_runtime.modes import Terms
from tcc_runtime.node import Node
from tcc_runtime.race import Coupled, drawing
from tcc_runtime.rest_item import Pool
from tcc_runtime.tables import State, Tables

LONGEST = 4096  # calls of a plan, for the error analysis
LARGEST = 1 << 48  # of beta * cost, so that no published number can be clamped
_UNIT = 2.0**64
_WORDS = 1 << 64
_HALF = 1 << 63
_TINY, _LEAST = 2.0**-500, 2.0**-900
_UP, _LIFT = 2.0**400, 400 * LN2
from_bytes = int.from_bytes
_WINNER, _RESIDUAL = bytes((WINNER,)), bytes((RESIDUAL,))
_AGAIN, _LEFT = bytes((REST_WINNER,)), bytes((REST_ARRIVAL,))


class Unfit(Exception):
    """A number left the range that the error analysis covers; a recorded run has no such range."""


class Left:
    """What is left of a node in the rest race, before it is drawn from again.

    Attributes:
        of: the node's item.
        step: how many draws were before.
        last: the place of the latest.
        mass: what is left; 0 where nobody has asked yet, after the first draw.
        pool: the children before the latest draw; None: all of them.
    """

    __slots__ = ("last", "mass", "of", "pool", "step")

    def __init__(self, of: Item, step: int, last: int, mass: int, pool: Pool | None) -> None:
        self.of = of
        self.step = step
        self.last = last
        self.mass = mass
        self.pool = pool

    def weigh(self, state: State) -> int:
        """The mass that is left, in units of m."""
        if self.mass == 0:
            masses = state.cumulative
            if self.last < len(masses):
                before = masses[self.last - 1] if self.last else 0
                self.mass = state.count - masses[self.last] + before
            else:
                self.mass = masses[-1]
        return self.mass

    def open(self, state: State) -> Pool:
        """The children that are left."""
        pool = Pool(state.cumulative) if self.pool is None else self.pool
        if self.last < len(state.cumulative):
            pool.take(self.last)
        return pool


# Of an item of the frontier: minus an upper bound of its key in Q64.64; its id, or while its key is
# an enclosure any bytes of its own; minus a lower bound of the key, -inf where it is exact; tau
# and the logarithm of what tau was multiplied by; cost; gauge of its state, None at a leaf; what
# is left, None but in an item `rest`; the item it was drawn from; its place; whether it won.
Item: TypeAlias = (
    "tuple[float | int, bytes, float, float, float, int, Gauge | None, Left | None, "
    "Item | None, int, bool]"
)


def fits(artifact: Artifact, terms: Terms) -> bool:
    """Whether a run on these terms can be decided by enclosures.

    It is a race that a kernel has passed, without guards that look at exact numbers, and without
    statements left to the run.
    """
    settings, manifest = terms.settings, artifact.manifest
    plain = settings.count_bits == 0 and settings.alpha == "0" and not terms.cut
    races = terms.mode != "fallback" and terms.race != "literal" and terms.keys == "finalized"
    longest = artifact.rank(artifact.root)
    fixed = terms.ask is None and manifest.relaxed is None
    if not (plain and races and fixed and artifact.verified and longest <= LONGEST):
        return False
    return _most_cost(artifact) <= LARGEST


def _most_cost(artifact: Artifact) -> float:
    """What beta times the cost of a prefix cannot exceed."""
    found = artifact.kept.get("most_cost")
    if isinstance(found, float):
        return found
    beta, places = artifact.manifest.beta
    most = max(map(abs, artifact.cost_low), default=0) * (artifact.rank(artifact.root) + 1)
    size: int = beta * most // 10 ** (places + 9)
    found = artifact.kept["most_cost"] = float(min(size + 1, 2 * LARGEST))
    return found


class Swift:
    """One unrecorded run.

    Args:
        tables: of the artifact, the recipe and the inflation.
        key: K.
        terms: such that :func:`fits` holds.
        late: whether the time is over; None: there is no end to it.
        interrupted: whether somebody wants an end.

    Attributes:
        expansions: how many there were.
        found: the leaves that were popped, exact.
    """

    def __init__(
        self,
        tables: Tables,
        key: bytes,
        terms: Terms,
        late: Callable[[], bool] | None,
        interrupted: Callable[[], bool],
    ) -> None:
        beta, places = tables.artifact.manifest.beta
        self._beta = beta / 10 ** (places + 9)
        self._gauges = gauges_of(tables)
        self._error = MARGIN * _most_cost(tables.artifact)
        self._root = Coupled(tables, drawing(key)).root()
        self._root.after = None
        self._rest = terms.race == "rest"
        self._exact = Exact(tables, drawing(key), self._rest)
        self._top = terms.settings.top
        self._cap = terms.settings.max_expansions
        self._late, self._interrupted = late, interrupted
        self._plain, self._keyed = blake3(), blake3(key=key)
        self._heap: list[Item] = []
        self._nodes: dict[bytes, Node] = {}
        self._values: list[int] = []
        self.expansions = 0
        self.found: list[Node] = []

    def run(self) -> Stop:
        """Steps until something stops it.

        Raises:
            Undecided: a rounding stays open at 4096 bits.
            Unfit: this needs exact numbers at every step.
        """
        self._push_root()
        heap, values, interrupted, late = self._heap, self._values, self._interrupted, self._late
        expand, top = self._expand_first if self._rest else self._expand_all, self._top
        while True:
            item = self._settle()
            if item is None:
                return Stop.EXHAUSTED
            if len(values) == top and self._bounded(item):
                return Stop.BOUND
            if interrupted():
                return Stop.INTERRUPTED
            gauge, left = item[6], item[7]
            if gauge is None:
                self._take_leaf(item)
                continue
            if late is not None and late():
                return Stop.MAX_SECONDS
            if left is not None:
                heappop(heap)
                self._draw(item, gauge, left)
                continue
            if self.expansions == self._cap:
                return Stop.MAX_EXPANSIONS
            heappop(heap)
            if not gauge.opened:
                gauge.open(self._gauges)
            expand(item, gauge)
            self.expansions += 1

    def top(self) -> Node | None:
        """The greatest item left, exact."""
        while (item := self._settle()) is not None and item[2] != -inf:
            self._refine(item)
        return None if item is None else self._node(item)

    def _push_root(self) -> None:
        root = self._root
        if root.state is None or root.word is None:
            raise ValueError("the root is no leaf")
        self._nodes[root.digest] = root
        gauge, tau = self._gauges.of(root.state), exponential(root.word)
        self._heap.append((-root.key, root.digest, -inf, tau, 0.0, 0, gauge, None, None, 0, False))

    def _settle(self) -> Item | None:
        """The greatest item, which no other one can exceed; None where nothing is left."""
        heap = self._heap
        while heap:
            item = heap[0]
            size = len(heap)
            if size == 1 or item[2] == -inf:
                return item
            second = heap[1][0]
            if size > 2 and heap[2][0] < second:
                second = heap[2][0]
            if item[2] < second:
                return item
            self._refine(item)
        return None

    def _refine(self, item: Item) -> None:
        """Gives the greatest item its exact key, and its id."""
        node = self._published(item)
        self._nodes[node.digest] = node
        heapreplace(self._heap, (-node.key, node.digest, -inf, *item[3:]))

    def _bounded(self, item: Item) -> bool:
        """Whether `item`, the greatest, does not exceed the k-th value."""
        best = -self._values[-1]
        if item[2] != -inf and -item[2] > best:
            return False
        return self._published(item).key <= best

    def _take_leaf(self, item: Item) -> None:
        leaf = self._published(item)
        heappop(self._heap)
        self.found.append(leaf)
        insort(self._values, -leaf.value)
        del self._values[self._top :]

    def _expand_all(self, item: Item, gauge: Gauge) -> None:
        """Every child with its own arrival."""
        _, digest, _, tau, lift, cost, _, _, _, _, _ = item
        plain, keyed, heap, beta = self._plain, self._keyed, self._heap, self._beta
        error, state = gauge.error + self._error, gauge.state
        keyed.reset()
        keyed.update(_WINNER + digest)
        line = (2 * from_bytes(keyed.digest(8), "little") + 1) * state.count >> 65
        winner = bisect_right(state.cumulative, line)
        base = 0.0 if lift else tau  # a tau that was lifted is nothing beside any E
        stem = b"\x01" + digest
        for place, (raw, step, share, level, target, _) in enumerate(gauge.children):
            plain.reset()
            plain.update(b"\x02" + digest if raw is None else stem + raw)
            child = plain.digest()
            spent = cost + step
            if place == winner:
                self._win(item, error, child, share, spent, level, target, place)
            else:
                keyed.reset()
                keyed.update(_RESIDUAL + child)
                x = from_bytes(keyed.digest(8), "little")
                own = share * base - (log1p((x + 0.5) / -_UNIT) if x < _HALF else _upper(x))
                low = beta * spent + log(own) - level
                heappush(
                    heap,
                    (
                        (low - error) * _UNIT, child, (low + error) * _UNIT, own, 0.0, spent,
                        target, None, item, place, False,
                    ),
                )  # fmt: skip

    def _expand_first(self, item: Item, gauge: Gauge) -> None:
        """The child that wins, and one arrival for the others."""
        digest, cost, state, keyed = item[1], item[5], gauge.state, self._keyed
        keyed.reset()
        keyed.update(_WINNER + digest)
        line = (2 * from_bytes(keyed.digest(8), "little") + 1) * state.count >> 65
        place, children = bisect_right(state.cumulative, line), gauge.children
        if place < len(children):
            raw, step, share, level, target, inverse = children[place]
            plain = self._plain
            plain.reset()
            plain.update(b"\x02" + digest if raw is None else b"\x01" + digest + raw)
            error = gauge.error + self._error
            self._win(item, error, plain.digest(), share, cost + step, level, target, place)
            if len(children) == 1:
                return
        else:
            inverse = state.count / state.cumulative[-1]
        self._leave(item, Left(item, 1, place, 0, None), gauge, inverse)

    def _draw(self, item: Item, gauge: Gauge, left: Left) -> None:
        """The next draw from what is left of a node."""
        of, state, keyed = left.of, gauge.state, self._keyed
        mass, pool = left.weigh(state), left.open(state)
        keyed.reset()
        keyed.update(_AGAIN + of[1] + left.step.to_bytes(4, "little"))
        line = (2 * int.from_bytes(keyed.digest(8), "little") + 1) * mass >> 65
        place, children = pool.find(line), gauge.children
        if place < len(children):
            raw, step, share, level, target, _ = children[place]
            child = blake3(b"\x02" + of[1] if raw is None else b"\x01" + of[1] + raw).digest()
            error = gauge.error + self._error
            self._win(item, error, child, share, of[5] + step, level, target, place)
            mass -= pool.mass(place)
            size = len(children) - len(pool.drawn) - 1
        else:
            mass -= state.slack
            size = len(children) - len(pool.drawn)
        if size:
            rest = Left(of, left.step + 1, place, mass, pool)
            self._leave(item, rest, gauge, state.count / mass)

    def _win(
        self,
        item: Item,
        error: float,
        child: bytes,
        share: float,
        spent: int,
        level: float,
        target: Gauge | None,
        place: int,
    ) -> None:
        """Pushes a child that inherits the arrival of `item`, a node or what is left of one."""
        tau, lift = share * item[3], item[4]
        if tau < _TINY:
            if tau < _LEAST:
                raise Unfit
            tau, lift = tau * _UP, lift + _LIFT
        if lift:
            error += MARGIN * lift
        low = self._beta * spent + log(tau) - lift - level
        heappush(
            self._heap,
            (
                (low - error) * _UNIT, child, (low + error) * _UNIT, tau, lift, spent, target,
                None, item, place, True,
            ),
        )  # fmt: skip

    def _leave(self, item: Item, left: Left, gauge: Gauge, inverse: float) -> None:
        """Pushes what a draw from `item` has left; `inverse` is n over its rate."""
        keyed, error, spent = self._keyed, gauge.error + self._error, item[5]
        name = left.of[1] + left.step.to_bytes(4, "little")
        keyed.reset()
        keyed.update(_LEFT + name)
        x = from_bytes(keyed.digest(8), "little")
        more = log1p((x + 0.5) / -_UNIT) if x < _HALF else _upper(x)
        tau = (0.0 if item[4] else item[3]) - more * inverse
        low = self._beta * spent + log(tau) - gauge.level
        heappush(
            self._heap,
            (
                (low - error) * _UNIT, name, (low + error) * _UNIT, tau, 0.0, spent, gauge, left,
                item, -1, False,
            ),
        )  # fmt: skip

    def _published(self, item: Item) -> Node:
        """The exact node of an item, with its key."""
        node = self._node(item)
        return node if item[2] == -inf else self._exact.publish(node)

    def _node(self, item: Item) -> Node:
        """The exact node of an item: all of its path, each made once."""
        nodes, path = self._nodes, []
        step: Item | None = item
        while step is not None and step[1] not in nodes:
            path.append(step)
            step = step[8]
        if step is None:
            raise ValueError("a path begins at the root")
        node = nodes[step[1]]
        for step in reversed(path):
            left = step[7]
            if left is None:
                node = self._exact.child(node, step[9], step[10], step[1])
            else:
                gauge = left.of[6]
                mass = left.mass if gauge is None else left.weigh(gauge.state)
                node = self._exact.left(node, left.step, mass)
            nodes[step[1]] = node
        return node


def exponential(word: int) -> float:
    """E of a PRF word; relatively right to 44 bits at both ends."""
    return -(log1p((word + 0.5) / -_UNIT) if word < _HALF else _upper(word))


def _upper(word: int) -> float:
    """ln(1 - U) of a word in the upper half, where 1 - U has the bits."""
    return log((_WORDS - 1 - word + 0.5) / _UNIT)
