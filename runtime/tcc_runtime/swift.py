"""The search of a run that nobody records: the same pops, decided by enclosures of the keys.

Text: docs/spec/race.md, section 21.  A ledger publishes the key of every node; without one a key is
only compared.  So each is held as a floating-point number and a bound of its error, in the units of
Q64.64, and computed exactly where a comparison is not decided, for the leaves that are found, and
for what is left at the end.  A run therefore gives the same result, bit for bit, whether it is
recorded or not.
A child that cannot be exceeded is expanded at once and never enters the frontier; most are, as a
search walks down to one plan after the other.
Cost: :mod:`tcc_runtime.swift_rest` and :mod:`tcc_runtime.swift_coupled`, an expansion each.

Error analysis.  The platform's `log` and `log1p` are taken to be right to 44 bits; good ones are
right to 52.  Let S be more than the sum of the greatest sizes that a level, beta times a cost, and
the logarithm of tau reach.

- tau: a share is one correctly rounded division, a child's tau one product more; a draw adds
  positive numbers of which one is E, right to 44 bits, times a number right to 53.  So d calls and
  j draws on a path leave a relative error of at most (2d + 3j + 2) 2^-53 + 2^-44.
- beta*C - level: d sums of numbers right to 2^-44 S in all, 2^-53 S each.
- minus the key: these two and a logarithm, 2^-44 S; or, along winners, d sums more of numbers that
  are right to 2^-44 S in all.

With d <= LONGEST that is less than 2^-38 S + j 2^-51 S, and the rounding to Q64.64 is far below
it.  j is at most the number of draws of the run so far.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import insort
from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush, heapreplace
from math import log, log1p
from typing import Final

from blake3 import blake3

from tcc_certs.race.digest import FIRST_ARRIVAL, uniform
from tcc_runtime.gauges import LEAST, LN2, UNIT, Gauge, Unfit, gauges_of
from tcc_runtime.guards import Stop
from tcc_runtime.items import GAUGE, LEAF, LOW, ROOT, WHOLE, Item, Known
from tcc_runtime.load import Artifact
from tcc_runtime.modes import Terms
from tcc_runtime.near import Near
from tcc_runtime.outcome import Progress
from tcc_runtime.tables import Tables

LONGEST = 4096  # calls of a plan, for the error analysis
LARGEST = 1 << 48  # of beta * cost, so that no published number can be clamped
MARGIN = 2.0**-38
_DRAW = 2.0**-51
_SIZE = 1024.0  # more than the logarithm of a tau that was not lifted
TINY: Final = 2.0**-500
_UP, _LIFT = 2.0**400, 400 * LN2 * UNIT
UNHELD: Final = 256  # expansions that are over before anybody could want to interrupt them
OFTEN: Final = 63  # of that many and one more, one looks whether somebody wants to

# E of a word x is -log1p((x + 1/2) DOWN) for x < HALF, else -log((WORDS - x - 1/2) / 2^64), which
# has the bits there.
HALF: Final = 1 << 63
WORDS: Final = 1 << 64
DOWN: Final = -(2.0**-64)
ACROSS: Final = 2.0**-64


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


def exponential(word: int) -> float:
    """E of a PRF word; relatively right to 44 bits at both ends."""
    return -(log1p((word + 0.5) * DOWN) if word < HALF else log((WORDS - word - 0.5) * ACROSS))


class Swift(ABC):
    """One unrecorded run.

    Args:
        tables: of the artifact, the recipe and the inflation.
        key: K.
        terms: such that :func:`fits` holds.
        late: whether the time is over; None: there is no end to it.
        interrupted: whether somebody wants an end.
        follow: is told of every expansion and draw; True ends the run.  None: nobody is.

    Attributes:
        expansions: how many there were.
        leaves: how many were popped.
        best: the best k, in order: minus the value, L, and the item.
    """

    def __init__(
        self,
        tables: Tables,
        key: bytes,
        terms: Terms,
        late: Callable[[], bool] | None,
        interrupted: Callable[[], bool],
        follow: Callable[[Progress], bool | None] | None = None,
    ) -> None:
        # Of no memory: what somebody was told may be looked at from another thread.
        draw = partial(uniform, key)
        self._gauges = gauges_of(tables)
        self._cost = _SIZE + 2 * _most_cost(tables.artifact)
        self._records: list[Item] = []
        artifact = tables.artifact
        word = draw(FIRST_ARRIVAL, artifact.root_digest)
        self.near = Near(self._gauges, self._records, draw, word, terms.race == "rest")
        self._top = terms.settings.top
        self._cap = terms.settings.max_expansions
        self._late, self._interrupted, self._follow = late, interrupted, follow
        self._plain, self._keyed = blake3(), blake3(key=key)
        self._heap: list[Item | Known] = []
        self._draws, self._lifted = 0, 0.0
        self.expansions = self.leaves = 0
        self.best: list[tuple[int, bytes, Item]] = []
        root = self._gauges.root
        self._push(artifact.root_digest, exponential(word), -root.level * UNIT, root, ROOT, 0)

    def run(self) -> Stop:
        """Steps until something stops it.

        Raises:
            Undecided: a rounding stays open at the working precision.
            Unfit: this needs exact numbers at every step.
        """
        follow = self._follow
        while True:
            item = self._settle()
            if item is None:
                return Stop.EXHAUSTED
            if len(self.best) == self._top and self._bounded(item):
                return Stop.BOUND
            held = follow is not None or self.expansions >= UNHELD
            if held and self._interrupted():
                return Stop.INTERRUPTED
            if item[GAUGE] == LEAF:
                self._take_leaf(item)
                continue
            heappop(self._heap)
            stop = self._step(item)
            if stop is None and follow is not None:
                stop = self._tell(follow)
            if stop is not None:
                return stop

    def key_left(self) -> int | None:
        """The greatest key left, exact; None where nothing is."""
        while self._settle() is not None:
            entry = self._heap[0]
            if len(entry) == 3:
                return -entry[0]
            self._refine(entry)
        return None

    @abstractmethod
    def _step(self, item: Item) -> Stop | None:
        """Expands `item`, which was popped and is no leaf, or draws from it again."""

    def _refused(self, expansions: int) -> Stop | None:
        """What forbids the next expansion."""
        if self._late is not None and self._late():
            return Stop.MAX_SECONDS
        if expansions == self._cap:
            return Stop.MAX_EXPANSIONS
        return None

    def _error(self) -> float:
        """Bounds the error of all numbers so far, in units of Q64.64; it only grows."""
        size = self._cost + 3 * self._gauges.most + self._lifted
        return UNIT * size * (MARGIN + self._draws * _DRAW)

    def _lift(self, tau: float, lift: float) -> tuple[float, float]:
        """A tau that is close to nothing, brought up; and what ln of it is to be taken down by."""
        if tau < LEAST:
            raise Unfit
        lift += _LIFT
        self._lifted = max(self._lifted, lift / UNIT)
        return tau * _UP, lift

    def _push(
        self,
        name: bytes,
        tau: float,
        base: float,
        gauge: Gauge | None,
        source: int,
        code: int,
        lift: float = 0.0,
    ) -> None:
        """Pushes a node or a leaf."""
        if tau < TINY:
            tau, lift = self._lift(tau, lift)
        low = base + log(tau) * UNIT - lift - self._error()
        index = LEAF if gauge is None else gauge.index
        heappush(self._heap, (low, name, tau, base, index, WHOLE, source, code, lift))

    def _settle(self) -> Item | None:
        """The greatest item, which no other one can exceed; None where nothing is left."""
        heap = self._heap
        if not heap:
            return None
        while True:
            entry, size = heap[0], len(heap)
            if len(entry) == 3:
                return entry[2]
            if size == 1:
                return entry
            above = entry[LOW] + 2 * self._error()
            if above < heap[1][LOW] and (size == 2 or above < heap[2][LOW]):
                return entry
            self._refine(entry)

    def _refine(self, item: Item) -> None:
        """Gives the greatest item its exact key."""
        key, name = self.near.key(item), self.near.name(item)
        heapreplace(self._heap, (-key, name, item))

    def _bounded(self, item: Item) -> bool:
        """Whether `item`, the greatest, does not exceed the k-th value."""
        worst, entry = self.best[-1][0], self._heap[0]
        if len(entry) == 3:
            return entry[0] >= worst
        if entry[LOW] + 2 * self._error() < worst:
            return False
        return entry[LOW] >= worst or -self.near.key(item) >= worst

    def _take_leaf(self, leaf: Item) -> None:
        entry = self._heap[0]
        value = -entry[0] if len(entry) == 3 else self.near.key(leaf)
        heappop(self._heap)
        self.leaves += 1
        insort(self.best, (-value, self.near.name(leaf), leaf))
        del self.best[self._top :]

    def _tell(self, follow: Callable[[Progress], bool | None]) -> Stop | None:
        top = self._settle()
        progress = Progress(
            expansions=self.expansions,
            incumbent=-self.best[-1][0] if len(self.best) == self._top else None,
            shown=lambda: None if top is None else self.near.key(top),
        )
        try:
            return Stop.INTERRUPTED if follow(progress) else None
        except KeyboardInterrupt:
            return Stop.INTERRUPTED
