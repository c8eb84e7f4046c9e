"""What the children of a node have whatever the node: a table for each state.

Normative text: docs/spec/race.md, sections 4, 5, 8 and 18.  A run over a deterministic automaton
meets the same states again and again; the numbers and the texts of their children are made once.
Numbers are in units of 2^-96, each off by less than :mod:`tcc_runtime.fastreplay.estimates` allows.
Cost: a mass and a division a child, a logarithm a state and a call.  Memory: the children of the
states that were met last, 2^18 at most; they stay with the artifact for its next ledger.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcc_certs.formats.codec import encode
from tcc_certs.kernel import CheckedArtifact
from tcc_certs.race.arrivals import WORD
from tcc_certs.race.weights import score
from tcc_certs.replay.language import Language
from tcc_certs.replay.left import MAX_KEPT, Children, Left, Listing
from tcc_certs.replay.shares import share_of
from tcc_certs.replay.tree import STOP
from tcc_runtime.fastreplay.logarithm import UNIT_BITS, log_of, log_of_any, times_log_two
from tcc_runtime.fastreplay.prefix_texts import PrefixTexts
from tcc_runtime.fastreplay.rows import Child, Place, Remainder, Row, Step

_ONE_LEVEL = times_log_two(UNIT_BITS)


class StateTable:
    """The children of a node at a state.

    Attributes:
        children: of the node, with their masses.
        ahead: what M of the node is above its -beta * C.
        bounds: the first child j with 2x + 1 below the j-th of these wins; none of them, a phantom.
    """

    __slots__ = ("_all", "_left", "_rows", "_tables", "ahead", "bounds", "children")

    def __init__(self, tables: Tables, children: Children, ahead: int) -> None:
        self.children = children
        self.ahead = ahead
        # (2x + 1) * total < 2^65 * running, of integers.
        total = children.total
        self.bounds = [-((-mass << WORD + 1) // total) for mass in children.running]
        self._tables = tables
        self._rows: dict[int, Row] = {}
        self._all: Sequence[Row] = ()
        self._left: dict[int | None, Remainder] = {}

    @property
    def rows(self) -> Sequence[Row]:
        """All children, in canonical order."""
        if not self._all:
            self._all = [self.row(position) for position in range(len(self.children.masses))]
        return self._all

    def row(self, position: int) -> Row:
        """The child at that place."""
        found = self._rows.get(position)
        if found is None:
            found = self._rows[position] = self._tables.row(self.children, position)
        return found

    def without(self, drawn: int | None) -> Remainder:
        """What the first draw leaves, where it was that of this child, or of a phantom."""
        found = self._left.get(drawn)
        if found is None:
            children = self.children
            gone = children.phantom if drawn is None else children.mass(drawn)
            row = () if drawn is None else (self.row(drawn),)
            total = children.total
            found = self._left[drawn] = self._remainder(1, drawn, row, total, total - gone, None)
        return found

    def after(self, left: Left, drawn: int | None, before: int) -> Remainder:
        """The same after a later draw, from a mass of `before`; `left` is R after it."""
        row: tuple[Row, ...] = ()
        if drawn is not None:
            child, suffix, _, level, lean, lift, opening, middle, closing = self.row(drawn)
            share = (child.mass << UNIT_BITS) // before
            row = ((child, suffix, share, level, lean, lift, opening, middle, closing),)
        return self._remainder(left.step, drawn, row, before, left.mass, left)

    def _remainder(
        self,
        number: int,
        drawn: int | None,
        row: tuple[Row, ...],
        before: int,
        mass: int,
        left: Left | None,
    ) -> Remainder:
        children, entering = self.children, None
        unit = children.unit
        part, lost, lines = share_of(1, mass, unit), 0, len(row)
        if len(children.masses) > len(row) if left is None else left.number:
            share = (mass << UNIT_BITS) // before
            level = log_of_any(mass) + _ONE_LEVEL - times_log_two(unit)
            entering = number, number.to_bytes(4, "little"), share, level  # as in rest_place
            lines += 1
        else:
            lost = part
        if drawn is None:
            lost += share_of(1, children.phantom, unit)
        return Remainder(drawn, row, children, entering, mass, part, lost, lines, left)


class Tables:
    """The tables of the states of an artifact, each made when it is first met.

    Attributes:
        language: what runs with these settings read of the artifact.
        texts: of prefixes.
        states: those that are kept, for who asks without a call; :meth:`at` makes them.
    """

    def __init__(self, language: Language, recipe: str) -> None:
        self.language = language
        self._listing = Listing(language)
        self._recipe = recipe
        self.texts = PrefixTexts()
        self.states: dict[int, StateTable] = {}
        self._kept = 0
        self._places: dict[int, Place] = {}
        self._steps: dict[int, Step] = {}
        numerator, self._unit = score(language.beta, 1)
        self._by_beta = numerator << UNIT_BITS
        self._name = "Nub" if language.upper else "N"
        bits = self._bits = language.fraction_bits
        self._stop = Step(
            STOP, None, 1 << bits, bits, 1, 0, 0, 0, 0, '"call":"stop","ctx_digest":"'
        )
        opening = f'{{"{self._name}":"1",'
        self._leaf = Place(None, 1, 0, _ONE_LEVEL, 0, opening, '","tie_token":')

    def score(self, cost: int) -> int:
        """-beta * cost, rounded down."""
        return cost * self._by_beta // self._unit

    def at(self, state: int) -> StateTable:
        """The children of a node at `state`."""
        found = self.states.get(state)
        if found is None:
            if self._kept > MAX_KEPT:
                self.states.clear()
                self._places.clear()
                self._kept = 0
            children = self._listing.children((state,))
            found = StateTable(self, children, self._ahead(state))
            self.states[state] = found
            self._kept += children.room
        return found

    def row(self, children: Children, position: int) -> Row:
        """The child at a place of a table."""
        steps, mass = children.steps, children.masses[position]
        share = (mass << UNIT_BITS) // children.total
        if position == len(steps):
            step, place = self._stop, self._leaf
        else:
            call, (state,) = steps[position]
            step = self._steps.get(call) or self._step(call)
            place = self._places.get(state) or self._place(state)
        _, _, _, level, ahead, opening, closing = place
        child = Child(position, mass, share_of(1, mass, children.unit), step, place)
        closing = f"{closing}{position}"
        lift, suffix, lean, middle = step.low + ahead, step.suffix, step.lean, step.middle
        return child, suffix, share, level, lean, lift, opening, middle, closing

    def _ahead(self, state: int) -> int:
        language = self.language
        if self._recipe == "r2":
            return language.residual_to_go[state] << UNIT_BITS - 32
        return language.automaton.rank[state] * language.envelope << UNIT_BITS - 32

    def _step(self, call: int) -> Step:
        language = self.language
        weight, text = language.weight[call], language.texts[call]
        bits, suffix = self._bits, text.encode()
        lean = times_log_two(bits) - log_of(weight)
        low, high = language.cost_low[call], language.cost_high[call]
        middle = f'"call":{encode(text).decode()},"ctx_digest":"'
        share, score = share_of(1, weight, bits), self.score(low)
        found = Step(text, suffix, weight, bits, share, lean, score, low, high, middle)
        self._steps[call] = found
        return found

    def _place(self, state: int) -> Place:
        language, states = self.language, (state,)
        plans, (count, unit) = language.plans[state], language.rate(states)
        level = log_of_any(count) - times_log_two(unit) + _ONE_LEVEL
        opening = f'{{"{self._name}":"{plans}",' if plans < 1 << 64 else "{"
        closing = f'","state":{state},"tie_token":'
        ahead = self._ahead(state)
        found = self._places[state] = Place(states, count, unit, level, ahead, opening, closing)
        return found


def tables_of(artifact: CheckedArtifact, language: Language, recipe: str) -> Tables:
    """The tables of an artifact as a run reads it; those of the last settings stay with it.

    Args:
        language: of the settings, recipe and inflation, which stays with the artifact too.
    """
    found = artifact.kept.get("fastreplay")
    if not isinstance(found, Tables) or found.language is not language:
        found = artifact.kept["fastreplay"] = Tables(language, recipe)
    return found
