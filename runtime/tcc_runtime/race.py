"""The coupled race: arrivals and published keys of the nodes that a run touches.

Text: docs/spec/race.md, sections 5 to 8; the definition that the validator reads is its own
(tcc_certs.race).  Cost for each child: one digest and two logarithms, one PRF call; for the
winner no logarithm and no PRF call.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import TypeAlias, TypeVar

from blake3 import blake3

from tcc_certs.digest import FIRST_ARRIVAL, RESIDUAL, WINNER, leaf_digest, race_key, root_context
from tcc_certs.errors import Code, ensure
from tcc_certs.fixed import Q64_MAX, Q64_MIN
from tcc_runtime.errors import Undecided
from tcc_runtime.load import Artifact
from tcc_runtime.numbers import LAST_BITS, Real, Reals, clamped, units
from tcc_runtime.tables import Call, State, Tables

Draw: TypeAlias = Callable[[int, bytes], int]
_Answer = TypeVar("_Answer")
_NANO_PLACES = 9


class Node:
    """A node of the prefix DAG, or a leaf; made once, when its parent is expanded.

    Attributes:
        parent: None at the root.
        call: the call that leads here; None at the root and at a leaf.
        state: None at a leaf.
        digest: D, or L at a leaf; 32 bytes.
        depth: calls of the prefix.
        cost: sum of their cost_low, nano-units.
        place: index among the parent's children, `stop` last.
        word: the PRF word of the residual (of the first arrival at the root); None for a winner.
        time: t, as a working real.
        log, log_error: ln t in units of 2^-S and a bound of its error.
        key, neg_log_t: published, Q64.64; at a leaf the key is its value.
        clamp: whether one of them had to be clamped.
    """

    __slots__ = (
        "call",
        "clamp",
        "cost",
        "depth",
        "digest",
        "key",
        "log",
        "log_error",
        "neg_log_t",
        "parent",
        "place",
        "state",
        "time",
        "word",
    )

    parent: Node | None
    call: Call | None
    state: State | None
    digest: bytes
    depth: int
    cost: int
    place: int
    word: int | None
    time: Real
    log: int
    log_error: int
    key: int
    neg_log_t: int
    clamp: bool


class Expansion:
    """What an expansion drew: the winner's word, its place (None: a phantom), all children."""

    __slots__ = ("children", "node", "winner", "word")

    def __init__(self, node: Node, word: int, winner: int | None, children: list[Node]) -> None:
        self.node = node
        self.word = word
        self.winner = winner
        self.children = children


def seeded_draw(artifact: Artifact, seed: bytes) -> Draw:
    """The PRF of one run: x(purpose, id), keyed by the seed with D(root) as salt."""
    key = race_key(seed, root_context(artifact.manifest.root_document))

    def draw(purpose: int, identity: bytes) -> int:
        return int.from_bytes(blake3(b"%c%b" % (purpose, identity), key=key).digest(8), "little")

    return draw


class Race:
    """One realised race over one artifact.

    Args:
        tables: of the artifact and the recipe.
        draw: the PRF; a test may hand in uniforms of its own.
    """

    def __init__(self, tables: Tables, draw: Draw) -> None:
        beta, places = tables.artifact.manifest.beta
        self._tables = tables
        self._reals = tables.reals
        self._draw = draw
        self._beta = beta
        self._unit: int = 10 ** (places + _NANO_PLACES)

    def root(self) -> Node:
        """The root, with the first arrival: t = E / n.

        Raises:
            Undecided: a rounding stays open at 4096 bits.
            Rejected: C401, an unverified artifact has no count at its root.
        """
        tables = self._tables
        state = tables.state(tables.artifact.root)
        ensure(state.count > 0, Code.RACE_COUNT, f"race_count[{state.number}]", "1 or more", 0)
        node = Node()
        node.parent = node.call = None
        node.state = state
        node.digest = root_context(tables.artifact.manifest.root_document)
        node.depth = node.cost = node.place = 0
        node.word = self._draw(FIRST_ARRIVAL, node.digest)
        node.time = self._reals.div(self._reals.exponential(node.word), state.rate)
        self._publish_drawn(node)
        return node

    def expand(self, node: Node) -> Expansion:
        """All children of an internal node, in canonical order, with their arrivals and keys.

        Raises:
            Undecided: a rounding stays open at 4096 bits; nothing was changed.
            Rejected: an unverified artifact leads out of its ranges.
        """
        state = node.state
        if state is None:
            raise ValueError("a leaf has no children")
        state.open(self._tables)
        word = self._draw(WINNER, node.digest)
        # The first child with (2x + 1) m < 2^65 (running sum).
        winner = bisect_right(state.cumulative, ((2 * word + 1) * state.count) >> 65)
        children = [
            self._child(node, call, target, place, place == winner)
            for place, (call, target) in enumerate(state.edges)
        ]
        if state.accepts:
            children.append(self._leaf(node, len(children), len(children) == winner))
        return Expansion(node, word, winner if winner < len(children) else None, children)

    def arrival_word(self, leaf: Node) -> int:
        """U_P = floor(2^64 (1 - e^-t)) of a leaf.

        Raises:
            Undecided: 4096 bits do not decide it.
        """
        try:
            return self._reals.arrival_word(leaf.time, units(leaf.depth))
        except Undecided:
            return self._again(lambda reals: self._word_at(leaf, reals))

    def _child(self, parent: Node, call: Call, target: State, place: int, won: bool) -> Node:
        node = Node()
        node.parent = parent
        node.call = call
        node.state = target
        node.digest = blake3(b"\x01" + parent.digest + call.raw).digest()
        node.depth = parent.depth + 1
        node.cost = parent.cost + call.cost_low
        node.place = place
        reals = self._reals
        if won:
            node.word = None
            node.time = reals.mul(call.weight, parent.time)
            node.log = parent.log + call.log
            node.log_error = parent.log_error + call.log_error
            self._publish(node)
        else:
            node.word = word = self._draw(RESIDUAL, node.digest)
            residual = reals.div(reals.log_tail(word), target.rate)
            node.time = reals.fms(call.weight, parent.time, residual)
            self._publish_drawn(node)
        return node

    def _leaf(self, parent: Node, place: int, won: bool) -> Node:
        node = Node()
        node.parent = parent
        node.call = node.state = None
        node.digest = leaf_digest(parent.digest)
        node.depth = parent.depth
        node.cost = parent.cost
        node.place = place
        if won:
            node.word = None
            node.time = parent.time
            node.log, node.log_error = parent.log, parent.log_error
            self._publish(node)
        else:
            node.word = word = self._draw(RESIDUAL, node.digest)
            node.time = self._reals.fms(1, parent.time, self._reals.log_tail(word))
            self._publish_drawn(node)
        return node

    def _publish_drawn(self, node: Node) -> None:
        node.log = log = self._reals.log(node.time)
        node.log_error = self._reals.log_error(log, units(node.depth))
        self._publish(node)

    def _publish(self, node: Node) -> None:
        """Rounds -ln t and the key, once each, to Q64.64."""
        try:
            exact = self._rounded(node, self._reals, node.log, node.log_error)
        except Undecided:
            exact = self._again(lambda reals: self._rounded_at(node, reals))
        node.neg_log_t, node.key = exact
        node.clamp = max(exact) > Q64_MAX or min(exact) < Q64_MIN
        if node.clamp:
            node.neg_log_t, node.key = clamped(exact[0]), clamped(exact[1])

    def _rounded(self, node: Node, reals: Reals, log: int, error: int) -> tuple[int, int]:
        shift = reals.shift
        bound = ((-self._beta * node.cost) << shift) // self._unit
        if node.state is not None:
            bound += node.state.residual << (shift - 32)
        return reals.nearest(-log, error, error), reals.nearest(bound - log, error, error + 1)

    def _rounded_at(self, node: Node, reals: Reals) -> tuple[int, int]:
        log = reals.log(self._time(node, reals))
        return self._rounded(node, reals, log, reals.log_error(log, units(node.depth)))

    def _word_at(self, leaf: Node, reals: Reals) -> int:
        return reals.arrival_word(self._time(leaf, reals), units(leaf.depth))

    def _time(self, node: Node, reals: Reals) -> Real:
        """t once more at another precision, down the path from the root."""
        path = [node]
        while (parent := path[-1].parent) is not None:
            path.append(parent)
        bits = self._tables.artifact.manifest.fraction_bits
        time: Real = 0
        for step in reversed(path):
            call, state = step.call, step.state
            weight = 1 if call is None else reals.scaled(call.numerator, bits)
            rate = 1 if state is None else reals.scaled(state.count, state.scale)
            if step.word is None:
                time = reals.mul(weight, time)
            else:
                time = reals.fms(weight, time, reals.div(reals.log_tail(step.word), rate))
        return time

    def _again(self, attempt: Callable[[Reals], _Answer]) -> _Answer:
        bits = 2 * self._reals.bits
        while True:
            try:
                return attempt(Reals(min(bits, LAST_BITS)))
            except Undecided:
                if bits >= LAST_BITS:
                    raise
                bits *= 2
