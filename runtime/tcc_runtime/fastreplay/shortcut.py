"""The shortcut: a line with the bytes that are expected is passed as it is read.

Normative text: docs/spec/ledger.md, section 3; docs/spec/race.md, sections 5, 8, 9 and 18.  Nearly
all lines of an honest ledger are ``node``, ``expand``, ``leaf``, ``rest`` and ``draw`` records in
which no guard fires.  For these the expected text is made at once and compared.  Where it is not
the line's, or where something is undecided or out of the ordinary, nothing has happened yet, and
the definition (:mod:`tcc_certs.replay`) takes the line.  So no ledger is refused here.

It is for the coupled race with finalized keys and the rest race, over a deterministic automaton,
the seed known, no statement and no cost left to the run, and nothing to be said of Phi.  It knows
nothing of the search: it is a second reader of ledgers, and shares with the definition what a table
of children is, and the form of a node.

Cost: that of :mod:`tcc_runtime.fastreplay.pushed` for nearly all lines; about 10 us a line popped.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from heapq import heappop

from tcc_certs.errors import Rejected
from tcc_certs.formats.fixed import format_q64
from tcc_certs.formats.ledger import LedgerReader
from tcc_certs.kernel import CheckedArtifact
from tcc_certs.race.arrivals import WORD
from tcc_certs.race.digest import REST_WINNER, WINNER, Uniforms, rest_place
from tcc_certs.race.numbers import exp_enclosure
from tcc_certs.race.published import leaf_uniform
from tcc_certs.replay.coupled import Coupled
from tcc_certs.replay.draws import slot_at
from tcc_certs.replay.expansion import PHANTOM
from tcc_certs.replay.guards import capped
from tcc_certs.replay.left import Left
from tcc_certs.replay.run import Run
from tcc_certs.replay.shares import PRIME, share_of
from tcc_certs.replay.tree import share, slots
from tcc_runtime.fastreplay.estimates import GREATEST, WIDEST, Estimate, estimated
from tcc_runtime.fastreplay.frontier import Unopened
from tcc_runtime.fastreplay.items import Entry, Item, drawn_from, left_of, opened, settled
from tcc_runtime.fastreplay.logarithm import UNIT_BITS
from tcc_runtime.fastreplay.pushed import Pushes
from tcc_runtime.fastreplay.rows import Remainder
from tcc_runtime.fastreplay.tables import StateTable, Tables, tables_of

_WINNER = bytes((WINNER,))
_POINT = 128  # fractional bits of e^-t


class FastReplay:
    """What is handed to :func:`tcc_certs.replay.validate` as its shortcut."""

    def follow(
        self, artifact: CheckedArtifact, run: Run, reader: LedgerReader, lines: Iterator[bytes]
    ) -> bytes | None:
        """See :class:`tcc_certs.replay.shortcut.Shortcut`."""
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
            return next(lines, None)
        tables = tables_of(artifact, run.language, run.header.recipe)
        return _Reading(run, policy.one_by_one, tables, reader, key).follow(lines)


class _Reading:
    """The lines of one ledger, from one that the definition has left to the next that it takes."""

    def __init__(
        self, run: Run, one_by_one: bool, tables: Tables, reader: LedgerReader, key: Uniforms
    ) -> None:
        self._run = run
        self._one_by_one = one_by_one
        self._key = key
        self._tables = tables
        self._states = tables.states
        self._held = run.header.max_expansions is not None
        frontier = run.frontier
        if not isinstance(frontier, Unopened):
            frontier = run.frontier = Unopened(run.frontier.nodes())
        self._heap: list[Entry] = frontier.entries
        self._pushes = Pushes(reader, run, self._heap, key, tables.texts)

    def follow(self, lines: Iterator[bytes]) -> bytes | None:
        """The first of these lines that is not passed, or None: there is none.

        Raises:
            Rejected: as the reader.
        """
        try:
            self._pass(lines)
        finally:
            self._pushes.settle()
            self._pushes.tell()
        return self._pushes.line

    def _pass(self, lines: Iterator[bytes]) -> None:
        """Passes lines as long as that goes; the next one is the line of the pushes then."""
        pushes, heap, best, goes = self._pushes, self._heap, self._run.best, True
        incumbent = best.incumbent
        while goes:
            pushes.line = line = next(lines, None)
            top = pushes.ahead
            if top is None or (heap and heap[0] < top):
                pushes.settle()
                top = heap[0] if heap else None
            if line is None or top is None:
                return
            if incumbent is not None and -top[0] <= incumbent:
                return
            node = opened(top)
            if node.states is None:
                goes = self._leaf(node)
                incumbent = best.incumbent
            elif node.left is None:
                goes = self._expand(node, node.states[0], lines)
            else:
                goes = self._draw(node, node.left, node.states[0], lines)

    def _pop(self) -> None:
        """The greatest item leaves the frontier."""
        if self._pushes.ahead is None:
            heappop(self._heap)
        else:
            self._pushes.ahead = None

    def _leaf(self, leaf: Item) -> bool:
        run, value = self._run, leaf.key
        uniform = _leaf_uniform(leaf.estimate)
        if uniform is None:
            uniform = _exact_leaf_uniform(leaf)
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
        self._pop()
        run.best.add(leaf, value)
        run.outside += share(run.language, leaf)
        return True

    def _expand(self, node: Item, state: int, lines: Iterator[bytes]) -> bool:
        run, pushes = self._run, self._pushes
        table = self._states.get(state) or self._tables.at(state)
        estimate = node.estimate
        if estimate[0] >= GREATEST or estimate[1] >= WIDEST:
            if not _made_again(node):
                return False
            estimate = node.estimate
        if self._held and capped(run.header, run.expansions):
            return False
        bounds = table.bounds
        if not bounds:
            return False
        keyed = pushes.keyed
        keyed.reset()
        keyed.update(_WINNER + node.digest)
        x = int.from_bytes(keyed.digest(8), "little")
        place: int | None = bisect_right(bounds, 2 * x + 1)
        if place == len(bounds):
            place = None
        name = pushes.name(node.digest)
        winner = PHANTOM if place is None else place
        text = f'{{"W":"{x}","kind":"expand","node_id":"{name}","winner":"{winner}"'
        if not pushes.meets(text):
            return False
        if pushes.ahead is None:
            heappop(self._heap)
        else:
            pushes.ahead = None
        run.expansions += 1
        if self._one_by_one:
            rest = table.without(place)
            if rest.lost:
                run.outside += node.weight * rest.lost % PRIME
            base = self._tables.score(node.cost_low)
            done = pushes.drawn(node, name, estimate, base, table.ahead, rest, lines)
            return done == rest.lines or self._handed_over(node, rest, place, done)
        if phantom := table.children.phantom:
            run.outside += share_of(node.weight, phantom, table.children.unit)
        return self._coupled(node, estimate, table, place, lines)

    def _coupled(
        self,
        node: Item,
        estimate: Estimate,
        table: StateTable,
        won: int | None,
        lines: Iterator[bytes],
    ) -> bool:
        """The children of an expanded node, all of them."""
        run, base = self._run, self._tables.score(node.cost_low)
        rows = table.rows
        done = self._pushes.children(node, estimate, base, rows, won, lines)
        if done == len(rows):
            return True
        due = slots(table.children, run.constraints, node.tally)[done:]
        run.resume(settled(node), won, due, None)
        return False

    def _draw(self, item: Item, left: Left, state: int, lines: Iterator[bytes]) -> bool:
        """The ``draw`` of an item of the rest race, and what it pushes."""
        table, run = self._tables.at(state), self._run
        estimate = item.estimate
        if estimate[0] >= GREATEST or estimate[1] >= WIDEST:
            if not _made_again(item):
                return False
            estimate = item.estimate
        x = self._key(REST_WINNER, rest_place(left.context, left.step))
        place = left.winner(x)
        name = self._pushes.name(left.context)
        winner = PHANTOM if place is None else place
        text = (
            f'{{"W":"{x}","kind":"draw","node_id":"{name}","step":{left.step},"winner":"{winner}"'
        )
        if not self._pushes.meets(text):
            return False
        self._pop()
        after = left.without(place, place is None)
        node = drawn_from(item, left)
        rest = table.after(after, place, left.mass)
        if rest.lost:
            run.outside += node.weight * rest.lost % PRIME
        base = self._tables.score(node.cost_low)
        done = self._pushes.drawn(node, name, estimate, base, table.ahead, rest, lines)
        return done == rest.lines or self._handed_over(node, rest, place, done)

    def _handed_over(self, node: Item, rest: Remainder, place: int | None, done: int) -> bool:
        """False; the definition goes on after `done` of the lines of what a draw pushes."""
        run, left = self._run, left_of(node, rest)
        if place is not None and not done:
            slot = slot_at(run.language, run.constraints, node, left, place)
            run.resume(settled(node), place, (slot,), left if rest.entering else None)
        else:
            run.resume(settled(node), place, (), left)
        return False


def _made_again(item: Item) -> bool:
    """Makes an estimate anew whose error has grown; whether children's can be made of it now."""
    arrival = settled(item).arrival
    if arrival is not None:
        item.estimate = estimated(arrival)
    return item.estimate[0] < GREATEST and item.estimate[1] < WIDEST


def _exact_leaf_uniform(leaf: Item) -> int | None:
    """U_P of a leaf by the definition; None where that leaves it open."""
    arrival = settled(leaf).arrival
    try:
        return None if arrival is None else leaf_uniform(arrival)
    except Rejected:
        return None


def _leaf_uniform(estimate: Estimate) -> int | None:
    """U_P = floor(2^64 * (1 - e^-t)) of a leaf, where it is decided; there n = 1."""
    tau, error = estimate[:2]
    if tau + error >> UNIT_BITS - WORD == 0:
        return 0  # 0 < 1 - e^-t < t < 2^-64
    if tau >> UNIT_BITS + 5:
        return None
    low, high = exp_enclosure((-tau - error, min(error - tau, 0)), UNIT_BITS, _POINT)
    one = 1 << _POINT
    least, most = one - high >> _POINT - WORD, one - low >> _POINT - WORD
    return least if least == most else None
