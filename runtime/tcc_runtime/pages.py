"""What a recorded run knows of calls and states besides their tables, made once for each.

Text: docs/spec/race.md, sections 4, 5, 8 and 18; docs/spec/ledger.md, section 3.  The numbers are
those of :mod:`tcc_runtime.arrivals`; the texts are what every `node` record of a call or of a state
repeats.
Cost: a state the first time that it is met, its children as they are drawn; the coupled race draws
all of them.
"""

from __future__ import annotations

from json.encoder import encode_basestring
from typing import Final, TypeAlias

from tcc_runtime.arrivals import FRACTION, log_of_ratio, rate
from tcc_runtime.tables import Call, State, Tables

_NANO_PLACES = 9


class Step:
    """A call.

    Attributes:
        call: the call.
        raw: its canonical text.
        named: the member `call` of a record.
        score: -beta cost_low, rounded down, and `log` = ln w; with 112 fractional bits.
        factor, shift: w = factor * 2^-(63 + shift), the factor of 63 bits.
    """

    __slots__ = ("call", "factor", "log", "named", "raw", "score", "shift")

    def __init__(self, call: Call, beta: tuple[int, int], bits: int) -> None:
        size = call.numerator.bit_length()
        unit: int = 10 ** (beta[1] + _NANO_PLACES)
        self.call = call
        self.raw = call.raw
        self.named = f'"call":{encode_basestring(call.text)},'.encode()
        self.score: int = ((-beta[0] * call.cost_low) << FRACTION) // unit
        self.log = log_of_ratio(call.numerator, bits)
        self.factor = call.numerator << 63 - size
        self.shift = bits - size


class Page:
    """A set of states.

    Attributes:
        state: the set.
        inverse, scale: its :func:`tcc_runtime.arrivals.rate`.
        lift: the residual part of M, with 112 fractional bits.
        counted, placed: of the record of a child that leads here, the member `N` or `Nub`, and
            `state` with the name of the next member.
        opened: whether the following were made.
        size: how many children there are.
        bounds: ``bounds[j]`` is the least n with n m >= 2^65 (mass_0 + .. + mass_j), so the winner
            of a word x is the first j with 2x + 1 < bounds[j].
        edges: call and page of a child by its place, as far as they were asked for.
        firsts: the same, and the rate of the others, by the place that is drawn first; of `stop`
            and of the phantom mass the rate alone.
    """

    __slots__ = (
        "bounds",
        "counted",
        "edges",
        "firsts",
        "inverse",
        "lift",
        "opened",
        "placed",
        "scale",
        "size",
        "state",
    )

    def __init__(self, state: State, count: str) -> None:
        self.state = state
        self.inverse, self.scale = rate(state.count, state.scale)
        self.lift = state.residual << FRACTION - 32
        plans = "" if state.plans is None else f'"{count}":"{state.plans}",'
        self.counted = plans.encode()
        self.placed = f',"state":{state.shown},"tie_token":'.encode()
        self.opened = False
        self.size = 0
        self.bounds: list[int] = []
        self.edges: list[Edge | None] = []
        self.firsts: list[First | None] = []

    def open(self, tables: Tables) -> None:
        """Makes what an expansion needs."""
        state = self.state
        state.open(tables)
        count, masses = state.count, state.cumulative
        self.size = len(masses)
        self.bounds = [-((-mass << 65) // count) for mass in masses]
        self.edges = [None] * len(state.edges)
        self.firsts = [None] * (self.size + 1)
        self.opened = True

    def left(self, place: int) -> tuple[int, int]:
        """The mass of what is left after the first draw, and how many children it has."""
        state = self.state
        masses = state.cumulative
        if place == self.size:
            return state.count - state.slack, place
        return state.count - masses[place] + (masses[place - 1] if place else 0), self.size - 1


Edge: TypeAlias = "tuple[Step, Page]"
First: TypeAlias = "tuple[Edge | None, int, int]"


class Pages:
    """Steps by call and pages by state, each made when it is first asked for.

    Attributes:
        tables: where calls and states come from.
        root: the page of the root.
        single: the member `N` or `Nub` of a leaf's record.
    """

    def __init__(self, tables: Tables) -> None:
        manifest = tables.artifact.manifest
        self.tables: Final = tables
        self._count: Final = "N" if manifest.counts == "exact" else "Nub"
        self.single: Final = f'"{self._count}":"1",'.encode()
        self._steps: dict[int, Step] = {}
        self._pages: dict[tuple[int, ...], Page] = {}
        self.root: Final = self.of(tables.state((tables.artifact.root,)))

    def of(self, state: State) -> Page:
        """The page of a state."""
        found = self._pages.get(state.members)
        if found is None:
            found = self._pages[state.members] = Page(state, self._count)
        return found

    def edge(self, page: Page, place: int) -> Edge:
        """The child of an opened page at `place`, which is not `stop`."""
        call, target = page.state.edges[place]
        step = self._steps.get(call.index)
        if step is None:
            manifest = self.tables.artifact.manifest
            step = Step(call, manifest.beta, manifest.fraction_bits)
            self._steps[call.index] = step
        found = page.edges[place] = step, self.of(target)
        return found

    def first(self, page: Page, place: int) -> First:
        """The child at `place`, if it is by a call, and the rate of the others."""
        mass, size = page.left(place)
        others = rate(mass, page.state.scale) if size else (0, 0)
        edge = None
        if place < len(page.edges):
            edge = page.edges[place] or self.edge(page, place)
        found: First = (edge, *others)
        page.firsts[place] = found
        return found


def pages_of(tables: Tables) -> Pages:
    """The pages over some tables, kept with the artifact as long as they are."""
    kept = tables.artifact.kept
    found = kept.get("pages")
    if not isinstance(found, Pages) or found.tables is not tables:
        found = kept["pages"] = Pages(tables)
    return found
