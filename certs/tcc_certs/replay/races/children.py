"""The children of a node, and the remainder from which the rest race draws the next child.

Normative text: docs/spec/race.md, section 18.  The children of a set of states are listed once,
with the running sums of their masses.  A tree of partial sums has the masses that were drawn from a
node.  So a draw costs the square of the logarithm of the number of children.  Memory: the children
of recently used sets of states, and for each node the children drawn from it.
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

MAX_KEPT = 1 << 18  # most children that are listed together, if their masses are small
_SMALL = 12  # masses of up to 2^12 bits are small
# n as count and unit; M without -beta C, as numerator and denominator
Rate: TypeAlias = "tuple[int, int, int, int]"
# texts of a record: up to the uniform, and between parent and position
Texts: TypeAlias = "tuple[str, str]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Children:
    """All children of a node at a set of states, in canonical order, `stop` last.

    Attributes:
        steps: the calls, and the states that they lead to.
        masses: the mass of each child, in units of 2^-unit.
        running: the sum of the masses up to and including each child, in the same units.
        total: n of the node, in the same units.
        unit: chosen so that all these numbers are integers.
    """

    steps: Sequence[tuple[int, States]]
    masses: Sequence[int]
    running: Sequence[int]
    total: int
    unit: int

    @property
    def room(self) -> int:
        """The number of children with small masses that take as much memory."""
        return len(self.running) * (1 + (self.total.bit_length() >> _SMALL))

    @property
    def phantom(self) -> int:
        """The phantom mass."""
        return self.total - (self.running[-1] if self.running else 0)


class Listing:
    """The children of sets of states, each listed at its first use.

    Attributes:
        language: the language from which they are read.
        met: caches of other numbers and texts by set of states, for the modules that use them.
    """

    def __init__(self, language: Language) -> None:
        self.language = language
        self.met: tuple[dict[States | None, Rate], dict[States | None, Texts]] = {}, {}
        self._found: dict[States, Children] = {}
        self._kept = 0

    def children(self, states: States) -> Children:
        """Return the children of a node at `states`."""
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
        seen: dict[States, tuple[int, int]] = {}  # n of each target
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
    """Return the listing of a language.  The artifact caches the last listing."""
    listing = artifact.kept.get("listing")
    if not isinstance(listing, Listing) or listing.language is not language:
        listing = artifact.kept["listing"] = Listing(language)
    return listing


class TakenMasses:
    """The children that were taken out of a row of children, and their masses.

    The sums are a binary indexed tree: entry i (from 1) has the masses taken at the last lowbit(i)
    places up to i.  The tree is built at its first use, because most nodes draw only one child.

    Attributes:
        places: the positions of the children taken, in order.
    """

    __slots__ = ("_children", "_sums", "places")

    def __init__(self, children: Children) -> None:
        self.places: list[int] = []
        self._children = children
        self._sums: dict[int, int] | None = None

    def take(self, place: int) -> None:
        """Take one more child."""
        self.places.append(place)
        if self._sums is not None:
            self._add(place, self._sums)

    def _add(self, place: int, sums: dict[int, int]) -> None:
        mass, at, size = self._children.masses[place], place + 1, len(self._children.running)
        while at <= size:
            sums[at] = sums.get(at, 0) + mass
            at += at & -at

    def upto(self, place: int) -> int:
        """Return the sum of the masses taken at the places 0 .. `place`."""
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
    """The children and the phantom mass of a node that were not drawn yet; R in the definition.

    Attributes:
        context: D of the node.
        step: i; 0 before the node is expanded.
        children: all children of the node.
        taken: the drawn children.  The node has only one such object, because only its last item is
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
        """The number of children in R."""
        return len(self.children.running) - len(self.taken.places)

    def winner(self, x: int) -> int | None:
        """Return the position of the winner for the word `x`; None: a phantom.

        It is the first child j in R with (2x+1) * mass(R) < 2^65 * (running sum over R up to j).
        """
        running, taken = self.children.running, self.taken
        # line < running << 65 exactly if running exceeds the integer part of line / 2^65.
        line = (2 * x + 1) * self.mass >> WORD + 1
        if not taken.places:
            place = bisect_right(running, line)
        else:
            # A taken child adds nothing to the running sum, so it is never the first.
            at = range(len(running))
            place = bisect_right(at, line, key=lambda j: running[j] - taken.upto(j))
        return place if place < len(running) else None

    def mass_without(self, place: int | None) -> int:
        """Return mass(R) after the draw of `place`; None: of the phantom mass."""
        children = self.children
        return self.mass - (children.phantom if place is None else children.masses[place])

    def without(self, place: int | None, barren: bool) -> Left:
        """Return R after the draw of `place` (None: of the phantom mass).  This changes `taken`."""
        mass, taken = self.mass_without(place), self.taken
        if place is not None:
            taken.take(place)
        context, step, children = self.context, self.step + 1, self.children
        return Left(context, step, children, taken, mass, self.barren and barren)


def whole(context: bytes, children: Children) -> Left:
    """Return R of a node that is about to be expanded."""
    return Left(context, 0, children, TakenMasses(children), children.total)
