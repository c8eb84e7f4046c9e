"""Records that go straight: a line with the bytes that are due is passed as it is read.

Normative text: docs/spec/ledger.md, section 3; docs/spec/race.md, sections 5, 8, 9 and 18.  Nearly
all lines of an honest ledger are ``node``, ``expand``, ``leaf``, ``rest`` and ``draw`` records in
which no guard fires.  For these the text that is due is made at once and compared.  Where it is
not the line's, or where something is undecided or out of the ordinary, nothing has happened yet,
and the line goes to :class:`tcc_certs.replay.run.Run`, which tells what is wrong with it.  So no
ledger is refused here, and a line is passed only where the run would pass it in silence.

It holds where the race is the coupled one with finalized keys or the rest race, over a
deterministic automaton, its seed known, no statement and no cost left to the run, and nothing to be
said of Phi.

Cost: that of :mod:`tcc_certs.replay.pushes` for nearly all lines; about 10 us a line popped.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from heapq import heappop

from tcc_certs.digest import REST_WINNER, WINNER, Uniforms, rest_place
from tcc_certs.fixed import format_q64
from tcc_certs.ledger import LedgerReader
from tcc_certs.near import UNIT_BITS
from tcc_certs.numbers import exp_enclosure
from tcc_certs.race import WORD, Gauge
from tcc_certs.replay.buds import left_of, opened
from tcc_certs.replay.children import Remainder
from tcc_certs.replay.coupled import Coupled
from tcc_certs.replay.descent import Descent
from tcc_certs.replay.draws import slot_at
from tcc_certs.replay.expansion import PHANTOM
from tcc_certs.replay.families import Families, Family
from tcc_certs.replay.gauges import gauge_of, usable
from tcc_certs.replay.left import Left
from tcc_certs.replay.pushes import Pushes
from tcc_certs.replay.run import Run
from tcc_certs.replay.tree import Node, scale, slots
from tcc_certs.replay.turn import expands

_POINT = 128  # fractional bits of e^-t


def straight_way(run: Run, families: Families, reader: LedgerReader) -> Straight | None:
    """The straight way through the ledger of a run, where there is one."""
    policy, key = run.policy, run.key
    if (
        key is None
        or not isinstance(policy, Coupled)
        or policy.anchored
        or not run.language.deterministic
        or run.constraints.items
        or run.refinement is not None
        or run.header.alpha[0]
        or not run.kappa.beside
    ):
        return None
    return Straight(run, policy, families, Pushes(reader, run, key, families.texts), key)


class Straight:
    """The straight way through one ledger."""

    def __init__(
        self, run: Run, policy: Coupled, families: Families, pushes: Pushes, key: Uniforms
    ) -> None:
        self._run = run
        self._policy = policy
        self._key = key
        self._pushes = pushes
        self._families = families
        self._descent = Descent(run, families, pushes, key) if policy.one_by_one else None

    def follow(self, lines: Iterator[bytes]) -> bytes | None:
        """The first of these lines that does not go straight, or None: there is none.

        Args:
            lines: those that the protocol lets come (:mod:`tcc_certs.replay.protocol`), which also
                says when this may be asked.

        Raises:
            Rejected: as the reader.
        """
        run, pushes = self._run, self._pushes
        heap, best, descent = run.frontier.heap, run.best, self._descent
        goes = run.policy is self._policy
        while goes:
            line = pushes.line = next(lines, None)
            if descent is not None:
                goes = descent.follow(lines)
                line = pushes.line
                if not goes:
                    return line
            if line is None or not heap:
                return line
            incumbent = best.incumbent
            if incumbent is not None and -heap[0][0] <= incumbent:
                return line
            node = opened(heap[0])
            if node.states is None:
                goes = self._leaf(node)
            elif node.left is None:
                goes = self._expand(node, node.states[0], lines)
            else:
                goes = self._draw(node, node.left, node.states[0], lines)
            if not goes:
                return pushes.line
        return next(lines, None)

    def _leaf(self, leaf: Node) -> bool:
        run, value = self._run, leaf.key
        uniform = _leaf_uniform(gauge_of(leaf))
        if uniform is None:
            return False
        incumbent = run.best.incumbent_with(leaf, value)
        best = "" if incumbent is None else f'"incumbent":"{format_q64(incumbent)}",'
        text = (
            f'{{"U_P":"{uniform}","V":"{format_q64(value)}",{best}"kind":"leaf",'
            f'"node_id":"{self._pushes.name(leaf.digest)}"'
        )
        if not self._pushes.meets(text):
            return False
        heappop(run.frontier.heap)
        run.found(leaf)
        return True

    def _expand(self, node: Node, state: int, lines: Iterator[bytes]) -> bool:
        run, gauge, family = self._run, gauge_of(node), self._families.at(state)
        running, total = family.children.running, family.children.total
        if not expands(run.header, total, run.expansions):
            return False
        x = self._key(WINNER, node.digest)
        place: int | None = bisect_right(running, (2 * x + 1) * total >> WORD + 1)
        if place == len(running):
            place = None
        if not running or not usable(gauge):
            return False
        name = self._pushes.name(node.digest)
        winner = PHANTOM if place is None else place
        text = f'{{"W":"{x}","kind":"expand","node_id":"{name}","winner":"{winner}"'
        if not self._pushes.meets(text):
            return False
        heappop(run.frontier.heap)
        run.expansions += 1
        if self._policy.one_by_one:
            return self._drawn(node, gauge, family, family.without(place), place, lines)
        if phantom := family.children.phantom:
            run.outside += scale(run.language, node) * phantom
        return self._coupled(node, gauge, family, place, lines)

    def _coupled(
        self, node: Node, gauge: Gauge, family: Family, won: int | None, lines: Iterator[bytes]
    ) -> bool:
        """The children of an expanded node, all of them."""
        run, base = self._run, self._families.score(node.cost_low)
        rows = family.rows
        done = self._pushes.children(node, gauge, base, rows, won, lines)
        if done == len(rows):
            return True
        due = slots(family.children, run.constraints, node.tally)[done:]
        run.resume(node, won, due, None)
        return False

    def _draw(self, item: Node, left: Left, state: int, lines: Iterator[bytes]) -> bool:
        """The ``draw`` of an item of the rest race, and what it pushes."""
        run, gauge = self._run, gauge_of(item)
        family = self._families.at(state)
        x = self._key(REST_WINNER, rest_place(left.context, left.step))
        place = left.winner(x)
        if not usable(gauge):
            return False
        name = self._pushes.name(left.context)
        winner = PHANTOM if place is None else place
        text = (
            f'{{"W":"{x}","kind":"draw","node_id":"{name}","step":{left.step},"winner":"{winner}"'
        )
        if not self._pushes.meets(text):
            return False
        heappop(run.frontier.heap)
        after = left.without(place, place is None)
        node = replace(item, digest=left.context, left=None)
        return self._drawn(node, gauge, family, family.after(after, place, left.mass), place, lines)

    def _drawn(
        self,
        node: Node,
        gauge: Gauge,
        family: Family,
        rest: Remainder,
        place: int | None,
        lines: Iterator[bytes],
    ) -> bool:
        """The child that was drawn, and what is left."""
        run, pushes, base = self._run, self._pushes, self._families.score(node.cost_low)
        lost = family.children.phantom if place is None else 0
        if not rest.number_left:
            lost += rest.mass
        if lost:
            run.outside += scale(run.language, node) * lost
        if place is not None and not pushes.children(node, gauge, base, rest.row, place, lines):
            left = left_of(node, rest)
            slot = slot_at(run.language, run.constraints, node, left, place)
            run.resume(node, place, (slot,), left if rest.number_left else None)
            return False
        if not rest.number_left:
            return True
        if pushes.rest(node, gauge, base + family.ahead, rest, lines):
            return True
        run.resume(node, place, (), left_of(node, rest))
        return False


def _leaf_uniform(gauge: Gauge) -> int | None:
    """U_P = floor(2^64 * (1 - e^-t)) of a leaf, where it is decided; there n = 1."""
    tau, error = gauge[:2]
    if tau + error >> UNIT_BITS - WORD == 0:
        return 0  # 0 < 1 - e^-t < t < 2^-64
    if tau >> UNIT_BITS + 5:
        return None
    low, high = exp_enclosure((-tau - error, min(error - tau, 0)), UNIT_BITS, _POINT)
    one = 1 << _POINT
    least, most = one - high >> _POINT - WORD, one - low >> _POINT - WORD
    return least if least == most else None
