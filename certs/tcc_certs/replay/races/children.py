"""The rest race: which child of a node is drawn next, and what is left after it.

Normative text: docs/spec/race.md, section 18.  The children of a set of states are listed once,
with the running sums of their masses; what was drawn from a node is taken off these sums by a tree
of partial sums.  So a draw costs a logarithm of the number of children, squared, and no more.
Memory: the children of the sets that were met last, and for each node what was drawn from it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple, TypeAlias

from tcc_certs.kernel import CheckedArtifact
from tcc_certs.race.arrivals import WORD, child_masses
from tcc_certs.replay.language import Language, States

MAX_KEPT = 1 << 18  # children that are listed at one time, if their masses are small
_SMALL = 12  # 2^12 bits
Rate: TypeAlias = "tuple[int, int, int, int]"  # n as count and unit; what M is above -beta C
Texts: TypeAlias = "tuple[str, str]"  # of a record: up to the uniform; between parent and position


@dataclass(frozen=True, slots=True, kw_only=True)
class Children:
    """All children of a node at a set of states, in canonical order, `stop` last.

    Attributes:
        steps: calls and where they lead.
        masses: of each, in units of 2^-unit.
        running: sums of the masses up to and with each child, in the same units.
        total: n of the node, in the same units.
        unit: such that all these are integers.
    """

    steps: Sequence[tuple[int, States]]
    masses: Sequence[int]
    running: Sequence[int]
    total: int
    unit: int

    @property
    def room(self) -> int:
        """How many children of small masses take as much memory."""
        return len(self.running) * (1 + (self.total.bit_length() >> _SMALL))

    @property
    def phantom(self) -> int:
        """The phantom mass."""
        return self.total - (self.running[-1] if self.running else 0)


class Listing:
    """The children of sets of states, each listed when it is first asked for.

    Attributes:
        language: what they are read of.
        met: other numbers and texts that follow from a set of states, by whoever asks for them.
    """

    def __init__(self, language: Language) -> None:
        self.language = language
        self.met: tuple[dict[States | None, Rate], dict[States | None, Texts]] = {}, {}
        self._found: dict[States, Children] = {}
        self._kept = 0

    def children(self, states: States) -> Children:
        """The children of a node at `states`."""
        listed = self._found.get(states)
        if listed is None:
            listed = self._listed(states)
            if self._kept + listed.room > MAX_KEPT:
                self._found.clear()
                self._kept = 0
            self._found[states] = listed
            self._kept += listed.room
        return listed

    def _listed(self, states: States) -> Children:
        language = self.language
        weight, bits, steps = language.weight, language.fraction_bits, language.steps(states)
        seen: dict[States, tuple[int, int]] = {}  # n of a target
        for _, to in steps:
            if to not in seen:
                seen[to] = language.rate(to)
        total, unit = language.rate(states)
        accepts = language.accepts(states)
        finest = max([unit, 0 if accepts else unit, *[bits + below for _, below in seen.values()]])
        edges = [(weight[call], *seen[to]) for call, to in steps]
        masses = child_masses(finest, accepts, edges, bits)
        running = tuple(accumulate(masses))
        total <<= finest - unit
        return Children(steps=steps, masses=masses, running=running, total=total, unit=finest)


def listing_of(artifact: CheckedArtifact, language: Language) -> Listing:
    """The listing of a language; that of the last one stays with the artifact."""
    listing = artifact.kept.get("listing")
    if not isinstance(listing, Listing) or listing.language is not language:
        listing = artifact.kept["listing"] = Listing(language)
    return listing


class TakenMasses:
    """The masses that were taken out of a row of children, and which children they were.

    A tree of partial sums: entry i (from 1) holds what was taken of the last lowbit(i) places.  It
    is made when it is first asked: of most nodes one child is drawn, and what is left never again.

    Attributes:
        places: of the children that are gone, in order.
    """

    __slots__ = ("_children", "_sums", "places")

    def __init__(self, children: Children) -> None:
        self.places: list[int] = []
        self._children = children
        self._sums: dict[int, int] | None = None

    def take(self, place: int) -> None:
        """One more child is gone."""
        self.places.append(place)
        if self._sums is not None:
            self._add(place, self._sums)

    def _add(self, place: int, sums: dict[int, int]) -> None:
        mass, at, size = self._children.masses[place], place + 1, len(self._children.running)
        while at <= size:
            sums[at] = sums.get(at, 0) + mass
            at += at & -at

    def upto(self, place: int) -> int:
        """What was taken of the places 0 .. `place`."""
        sums = self._sums
        if sums is None:
            sums = self._sums = {}
            for gone in self.places:
                self._add(gone, sums)
        total, at = 0, place + 1
        while at:
            total += sums.get(at, 0)
            at &= at - 1
        return total


class Left(NamedTuple):
    """What of a node's children and phantom mass was not drawn yet; R of the definition.

    Attributes:
        context: D of the node.
        step: i; 0 before the node is expanded.
        children: of the node.
        taken: the children that were drawn; the one object of the node, as only its last item is
            ever in a frontier.
        mass: mass(R), in the units of the children's masses.
        barren: whether no child of the node has been pushed.
    """

    context: bytes
    step: int
    children: Children
    taken: TakenMasses
    mass: int
    barren: bool = True

    @property
    def number(self) -> int:
        """How many children are in R."""
        return len(self.children.running) - len(self.taken.places)

    def winner(self, x: int) -> int | None:
        """The first child j in R with (2x+1) * mass(R) < 2^65 * (running sum over R up to j); None:
        a phantom.
        """
        running, taken = self.children.running, self.taken
        # line < running << 65 where running is more than the whole part of line / 2^65.
        line = (2 * x + 1) * self.mass >> WORD + 1
        if not taken.places:
            place = bisect_right(running, line)
        else:
            # A child that was taken adds nothing to the running sum, so it is never the first.
            at = range(len(running))
            place = bisect_right(at, line, key=lambda j: running[j] - taken.upto(j))
        return place if place < len(running) else None

    def mass_without(self, place: int | None) -> int:
        """mass(R) after the draw of `place`, or of the phantom mass."""
        children = self.children
        return self.mass - (children.phantom if place is None else children.masses[place])

    def without(self, place: int | None, barren: bool) -> Left:
        """R after the draw of `place`, or of the phantom mass; `taken` is changed."""
        mass, taken = self.mass_without(place), self.taken
        if place is not None:
            taken.take(place)
        context, step, children = self.context, self.step + 1, self.children
        return Left(context, step, children, taken, mass, self.barren and barren)


def whole(context: bytes, children: Children) -> Left:
    """R of a node that is about to be expanded."""
    return Left(context, 0, children, TakenMasses(children), children.total)
