"""How many nodes a run will expand, before it runs: an enclosure of the mean over all seeds.

Text: docs/spec/race.md, section 20.  A node v is expanded exactly where its key exceeds the best
value outside it, so with chance R / (R + Z - Z(v)), R = n(v) e^M(v), Z the weight of all plans and
Z(v) of those below v.  Nodes of one state differ by the cost of their prefix alone; prefixes are
gathered into buckets by cost, each with its exact weight and its least and greatest cost, and go
state by state from the root.  Floats: a forecast, on which nothing rests.
No n e^M exceeds the root's (section 6), so one that is too great for a float is met there, and
raises OverflowError; with scores within e^690 a rate too small for one adds less than 10^-15.
Cost: edges times buckets; the number of buckets is what the effort allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, isfinite, log
from typing import TypeAlias

from tcc_runtime.artifact.counts import race_counts, rounded_to
from tcc_runtime.artifact.keys import residual_bound
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.artifact.root import root_of
from tcc_runtime.terms.modes import terms_of
from tcc_runtime.terms.settings import Settings

Bucket: TypeAlias = "tuple[float, float, float]"  # weight; least and greatest beta * cost

EFFORT = 20_000  # pushes of a bucket over an edge that no run is delayed by, some 20 ms
MOST_EDGES = 10_000  # beyond, nothing is predicted unasked
_MOST_BUCKETS = 256
_MARGIN = 1e-9  # far above what rounding adds up to
_STEEPEST = 690.0  # e to this is still a float


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """The mean of the expansions over all seeds lies between `lower` and `upper`."""

    lower: float
    upper: float


def why_not(artifact: Artifact, settings: Settings) -> str | None:
    """Why no prediction is known for a run with these settings; None where one is.

    Raises:
        SettingsError: as a run with them.
    """
    terms = terms_of(artifact, settings)
    if terms.mode == "fallback" or terms.race == "literal":
        return "the run has no race that its keys bound"
    if settings.top != 1:
        return "it is known for one plan alone"
    if terms.keys != "finalized":
        return "it is known for finalized keys alone"
    if artifact.nondeterministic or artifact.relaxed is not None or terms.cut:
        return "the weight of the plans that the run may find is not known"
    if artifact.cost_low != artifact.cost_high:
        return "costs are ranges"
    return None


def predict(artifact: Artifact, settings: Settings, *, effort: int = EFFORT) -> Prediction | None:
    """The expected number of expansions, None where it is not known or beyond the range of floats.

    Args:
        effort: how many pushes over an edge to spend; one for each edge is always spent.

    Raises:
        SettingsError: as a run with these settings.
        Rejected: an unverified artifact leads out of its ranges.
    """
    if why_not(artifact, settings) is not None:
        return None
    buckets = max(1, min(_MOST_BUCKETS, effort // max(1, artifact.manifest.edges)))
    try:
        lower, upper = Ground(artifact, settings).sums(buckets)
    except OverflowError:
        return None
    if not (isfinite(upper) and lower > 0):
        return None
    return Prediction(lower=max(1.0, lower * (1 - _MARGIN)), upper=upper * (1 + _MARGIN))


class Ground:
    """What forecasts stand on: each state's rows, what weighs below it, and its rate, in floats.

    Attributes:
        edges: of each state.
        weight: e^(-beta * cost) of each call.
        below: what the plans below each state weigh together; derivations where it is not
            deterministic.
        root: where the run begins.
        whole: what the plans below that weigh.

    Raises:
        OverflowError: a plan's score is beyond the exponents that floats have.
    """

    def __init__(self, artifact: Artifact, settings: Settings) -> None:
        beta, places = artifact.manifest.beta
        unit = 10 ** (places + 9)
        self._artifact = artifact
        self._step = [beta * cost / unit for cost in artifact.cost_low]  # beta * cost, exact once
        self.weight = [exp(-step) for step in self._step]
        self.edges = [artifact.edges(q) for q in range(artifact.manifest.states)]
        self.root = root = root_of(artifact, settings.after)
        self.below = self._weights_below()
        self.whole = sum([self.below[q] for q in self.root.members])
        bits = rounded_to(artifact, settings.inflate, settings.count_bits, root.members)
        self._count = race_counts(artifact, settings.inflate, bits)
        self._residual = residual_bound(artifact, settings.recipe)

    def _weights_below(self) -> list[float]:
        """z: what the plans below each state weigh together.

        Raises:
            OverflowError: a plan's score is beyond the exponents that floats have.
        """
        artifact, weight = self._artifact, self.weight
        found: list[float] = []
        steep: list[float] = []
        size = list(map(abs, self._step))
        for q, edges in enumerate(self.edges):
            total, most = (1.0 if artifact.accepts(q) else 0.0), 0.0
            for call, target in edges:
                total += weight[call] * found[target]
                ahead = size[call] + steep[target]
                most = ahead if ahead > most else most
            found.append(total)
            steep.append(most)
        members = self.root.members
        if max([steep[q] for q in members]) > _STEEPEST:
            raise OverflowError
        if not 0 < sum([found[q] for q in members]) < inf:
            raise OverflowError
        return found

    def rate(self, states: Sequence[int]) -> float:
        """n e^g of a set of states, in units of the weight of all plans."""
        bits, rank = self._artifact.manifest.fraction_bits, self._artifact.rank
        best = max(map(self._residual, states)) / (1 << 32) - log(self.whole)
        return sum([exp(log(self._count(q)) - bits * rank(q) * log(2) + best) for q in states])

    def sums(self, buckets: int) -> tuple[float, float]:
        """Both ends of the enclosure."""
        step, weight, whole = self._step, self.weight, self.whole
        gathered: list[list[Bucket]] = [[] for _ in self.below]
        for q in self.root.members:
            gathered[q].append((1.0, 0.0, 0.0))
        lower = upper = 0.0
        for q in range(max(self.root.members), -1, -1):
            prefixes = merged(gathered[q], buckets)
            gathered[q] = []
            if not prefixes:  # nothing leads there from where the run begins
                continue
            rate = self.rate((q,))
            # With M and n that leave nothing open this is 0, and the cost of a prefix no matter.
            slack = max(0.0, rate - self.below[q] / whole)
            for mass, least, most in prefixes:
                lower += mass * rate / (1 + slack * exp(-least))
                upper += mass * rate / (1 + slack * exp(-most))
            for call, target in self.edges[q]:
                c, w = step[call], weight[call]
                gathered[target] += [(m * w, least + c, most + c) for m, least, most in prefixes]
        return lower, upper


def merged(some: list[Bucket], most: int) -> list[Bucket]:
    """The same weight in at most `most` + 1 buckets of equal width by least cost."""
    if len(some) <= 1:
        return some
    start = min(bucket[1] for bucket in some)
    width = (max(bucket[1] for bucket in some) - start) / most
    found: dict[int, Bucket] = {}
    for mass, low, high in some:
        at = int((low - start) / width) if width else 0
        there = found.get(at)
        if there is not None:
            mass += there[0]
            low, high = min(low, there[1]), max(high, there[2])
        found[at] = mass, low, high
    return list(found.values())
