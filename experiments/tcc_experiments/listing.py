"""The truth by listing: every prefix and every plan of a small artifact, and one realised race.

What docs/spec/race.md defines, in ordinary floating point, beside the runtime and not through it;
the masses that decide winners are integers and exact.  A listing does not depend on the seed, so
its digests are made once for many races.
Cost: a node 5 us once, 3 us a race.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from math import ceil, exp, inf, log, log1p

from blake3 import blake3

from tcc_certs.race.digest import child_context, leaf_digest, race_key, root_context
from tcc_runtime.artifact.load import Artifact

_ONE = 1 << 64
_SCALE = 2.0**-65


@dataclass(slots=True, kw_only=True)
class ListedNode:
    """A node of the prefix DAG, or a leaf.

    Attributes:
        digest: D or L.
        state: None at a leaf.
        score: -beta * cost of the prefix.
        depth: calls of the prefix.
        weight: w of the call that leads here; 1 at a leaf.
        first, last: the children, as a range of the listing's places.
    """

    digest: bytes
    state: int | None
    score: float
    depth: int
    weight: float
    first: int = 0
    last: int = 0


class Listing:
    """All prefixes of an artifact, parents before children; for some thousand plans at most.

    Attributes:
        places: the root first; the children of a node stand together, `stop` last.
        plans: number of plans below, by state.
        best: -beta * least cost to go, by state.
        weighed: the sum of e^(-beta * cost) over the plans below, by state.
    """

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact
        beta, digits = artifact.manifest.beta
        self.beta = beta / 10**digits
        self.bits = artifact.manifest.fraction_bits
        states = range(artifact.manifest.states)
        self.plans = [artifact.plans(q) for q in states]
        self.best = [-self.beta * artifact.cost_to_go(q) / 1e9 for q in states]
        self.weighed = self._weighed()
        self.places: list[ListedNode] = []
        self._list()

    def _weighed(self) -> list[float]:
        found: list[float] = []
        for q in range(self.artifact.manifest.states):
            total = 1.0 if self.artifact.accepts(q) else 0.0
            for call, target in self.artifact.edges(q):
                total += exp(-self.beta * self.artifact.cost_low[call] / 1e9) * found[target]
            found.append(total)
        return found

    def _list(self) -> None:
        artifact, root = self.artifact, root_context(self.artifact.manifest.root_document)
        costs = [0]
        self.places.append(
            ListedNode(digest=root, state=artifact.root, score=0.0, depth=0, weight=1.0)
        )
        for at, place in enumerate(self.places):
            if place.state is None:
                continue
            place.first = len(self.places)
            for call, target in artifact.edges(place.state):
                costs.append(costs[at] + artifact.cost_low[call])
                digest = child_context(place.digest, artifact.texts[call].encode())
                weight = artifact.weight[call] / 2**self.bits
                self._add(digest, target, costs[-1], place.depth + 1, weight)
            if artifact.accepts(place.state):
                costs.append(costs[at])
                self._add(leaf_digest(place.digest), None, costs[-1], place.depth, 1.0)
            place.last = len(self.places)

    def _add(self, digest: bytes, state: int | None, cost: int, depth: int, weight: float) -> None:
        score = -self.beta * cost / 1e9
        self.places.append(
            ListedNode(digest=digest, state=state, score=score, depth=depth, weight=weight)
        )

    def children(self, at: int) -> range:
        """The children of a place; empty at a leaf."""
        return range(self.places[at].first, self.places[at].last)

    def leaves(self) -> list[int]:
        """The places of the leaves."""
        return [at for at, place in enumerate(self.places) if place.state is None]

    def bound(self, at: int) -> float:
        """The greatest score of a plan at or below a place."""
        place = self.places[at]
        return place.score + (0.0 if place.state is None else self.best[place.state])

    def count(self, at: int) -> int:
        """The number of plans at or below a place."""
        state = self.places[at].state
        return 1 if state is None else self.plans[state]

    def total(self, at: int) -> float:
        """The sum of e^score over the plans at or below a place."""
        place = self.places[at]
        below = 1.0 if place.state is None else self.weighed[place.state]
        return exp(place.score) * below

    def counts(self, inflate: str) -> PublishedCounts:
        """The race counts of every state, as a run with that inflation has them."""
        return _counts(self, inflate)

    def race(self, seed: bytes, inflate: str = "1") -> ListedRace:
        """The realised race of a seed."""
        return ListedRace(self, seed, self.counts(inflate))


@dataclass(frozen=True, slots=True)
class PublishedCounts:
    """Race counts by state: integers in units of the state's own scale, and as numbers.

    Attributes:
        whole: m.
        rate: n.
        running: sums of the masses of the children, in canonical order.
        inflation: n over the artifact's own n.
    """

    whole: list[int]
    rate: list[float]
    running: list[list[int]]
    inflation: list[float]


@lru_cache(maxsize=64)
def _counts(listing: Listing, inflate: str) -> PublishedCounts:
    artifact, bits = listing.artifact, listing.bits
    factor = Fraction(Decimal(inflate))
    found = PublishedCounts([], [], [], [])
    for q in range(artifact.manifest.states):
        rank = artifact.rank(q)
        masses = [
            artifact.weight[call] * found.whole[to] << bits * (rank - 1 - artifact.rank(to))
            for call, to in artifact.edges(q)
        ]
        if artifact.accepts(q):
            masses.append(1 << bits * rank)
        own = artifact.race_count(q)
        whole = max(sum(masses), ceil(factor * own))
        found.whole.append(whole)
        found.rate.append(whole / (1 << bits * rank))
        found.running.append([sum(masses[: k + 1]) for k in range(len(masses))])
        found.inflation.append(whole / own)
    return found


class ListedRace:
    """One realised race over a listing; each kind of values is drawn when it is asked for."""

    def __init__(self, listing: Listing, seed: bytes, counts: PublishedCounts) -> None:
        self.listing = listing
        self._counts = counts
        self._key = race_key(seed, listing.places[0].digest)

    def word(self, purpose: int, digest: bytes) -> int:
        """x(purpose, id)."""
        block = blake3(bytes((purpose,)) + digest, key=self._key).digest(8)
        return int.from_bytes(block, "little")

    def uniform(self, at: int) -> float:
        """The uniform that decides the winner among the children of a place."""
        return (self.word(2, self.listing.places[at].digest) + 0.5) * 2.0**-64

    @cached_property
    def arrival(self) -> list[float]:
        """t of every place."""
        places, counts, word = self.listing.places, self._counts, self.word
        found = [0.0] * len(places)
        found[0] = exponential(word(1, places[0].digest)) / counts.rate[-1]
        for at, place in enumerate(places):
            state = place.state
            if state is None:
                continue
            drawn = (2 * word(2, place.digest) + 1) * counts.whole[state] >> 65
            won = place.first + bisect_right(counts.running[state], drawn)
            for child in range(place.first, place.last):
                below = places[child]
                t = below.weight * found[at]
                if child != won:
                    late = exponential(word(3, below.digest))
                    t += late if below.state is None else late / counts.rate[below.state]
                found[child] = t
        return found

    @cached_property
    def value(self) -> list[float]:
        """V of the leaves, minus infinity elsewhere."""
        arrival = self.arrival
        return [
            place.score - log(arrival[at]) if place.state is None else -inf
            for at, place in enumerate(self.listing.places)
        ]

    @cached_property
    def greatest(self) -> list[float]:
        """The realised subtree maximum of every place."""
        return greatest_below(self.listing, self.value)

    def best(self, top: int = 1) -> list[int]:
        """The places of the `top` leaves of greatest value, best first."""
        value = self.value
        return sorted(self.listing.leaves(), key=lambda at: -value[at])[:top]

    def literal(self) -> list[float]:
        """V of the leaves in the race as printed: an arrival of its own for each."""
        return [
            place.score - log(exponential(self.word(4, place.digest)))
            if place.state is None
            else -inf
            for place in self.listing.places
        ]

    def fallback(self, tau: float = 1.0, arrivals: bool = True) -> list[float]:
        """The heuristic values of the fallback, G / tau + score - ln E.

        Args:
            tau: above 0.
            arrivals: False leaves out ln E.
        """
        return [
            -inf if place.state is not None else self._heuristic(place, tau, arrivals)
            for place in self.listing.places
        ]

    def _heuristic(self, place: ListedNode, tau: float, arrivals: bool) -> float:
        word = self.word(4, place.digest)
        value = gumbel(word) / tau + place.score
        return value - log(exponential(word)) if arrivals else value


def greatest_below(listing: Listing, value: list[float]) -> list[float]:
    """The greatest value at or below each place."""
    found = list(value)
    for at in range(len(listing.places) - 1, -1, -1):
        place = listing.places[at]
        if place.state is not None:
            found[at] = max(found[place.first : place.last], default=-inf)
    return found


def exponential(word: int) -> float:
    """E = -ln(1 - U) of a PRF word, to some units of the last place at both ends."""
    if word < _ONE >> 1:
        return -log1p(-(2 * word + 1) * _SCALE)
    return -log((2 * (_ONE - 1 - word) + 1) * _SCALE)


def gumbel(word: int) -> float:
    """G = -ln(-ln U)."""
    return -log(exponential(_ONE - 1 - word))
