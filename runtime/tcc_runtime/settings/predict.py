"""Predicts how many nodes a run expands, before it runs.

Text: docs/spec/race.md, section 20.  The prediction uses floats, because no result depends on it.

Exact plans: an enclosure of the mean over all seeds.  A node v is expanded if and only if its key
exceeds the best value outside it.  The probability of that is R / (R + Z - Z(v)) with R = n(v)
e^M(v).  Z is the weight of all plans, Z(v) of those below v.  Nodes of the same state differ only
by the cost of their prefix.  State by state from the root, prefixes are grouped into buckets by
cost.  A bucket has the exact weight and the least and greatest cost of its prefixes.
No n e^M exceeds the root's (section 6).  So one that is too great for a float raises OverflowError
at the root.  With scores within e^690, a rate too small for a float adds less than 10^-15.
Cost: edges times buckets; the effort limits the number of buckets.

Relaxed artifacts: an estimate by sampling.  Plans are drawn from the softmax of the automaton,
which has more plans than the grammar.  The share of draws that satisfy the remaining statements
estimates the weight of the grammar's plans.  The nodes on the drawn paths, each divided by its
probability, estimate the number of all nodes.  The random words follow from the artifact's digest,
so the estimate is a function of artifact and settings.
Cost: one pass over the edges, plus the effort.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, expm1, inf, isfinite, log, log1p
from typing import TYPE_CHECKING, TypeAlias

from blake3 import blake3

from tcc_certs.statements import Constraints
from tcc_runtime.artifact import constraints, counts
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.artifact.root import root_of
from tcc_runtime.settings.modes import Terms, terms_of
from tcc_runtime.settings.settings import Settings

if TYPE_CHECKING:
    from tcc_runtime.fastcheck.spans import Array

Bucket: TypeAlias = "tuple[float, float, float]"  # weight; least and greatest beta * cost

EFFORT = 20_000  # pushes of a bucket over an edge that do not delay a run noticeably, some 20 ms
MOST_EDGES = 10_000  # above this, a prediction is made only on request
_MOST_BUCKETS = 256
_MARGIN = 1e-9  # far above the sum of the rounding errors
_STEEPEST = 690.0  # e to this power is still a float
_LOOSE = 1e-6  # above the difference that another order of a sum makes
_LEVEL = 8  # mean states of a rank; below it arrays are slower than plain numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """The mean of the expansions over all seeds lies between `lower` and `upper`."""

    lower: float
    upper: float


def why_not(artifact: Artifact, settings: Settings) -> str | None:
    """Return why no prediction is known for a run with these settings; None if one is known.

    Raises:
        SettingsError: as a run with these settings does.
    """
    terms = terms_of(artifact, settings)
    if terms.mode == "fallback" or terms.race == "literal":
        return "the run has no race that its keys bound"
    if settings.top != 1:
        return "it is known for one plan alone"
    if terms.keys != "finalized":
        return "it is known for finalized keys alone"
    if artifact.nondeterministic or bool(artifact.relaxed) or terms.cut:
        return "the weight of the plans that the run may find is not known"
    if artifact.cost_low != artifact.cost_high:
        return "costs are ranges"
    return None


def predict(artifact: Artifact, settings: Settings, *, effort: int = EFFORT) -> Prediction | None:
    """Return the expected number of expansions; None if unknown or beyond the range of floats.

    Args:
        effort: number of pushes over an edge; at least one for each edge is made.

    Raises:
        SettingsError: as a run with these settings does.
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


def is_short(artifact: Artifact, settings: Settings, most: int) -> bool:
    """Return whether every prediction for such a run is at most `most` expansions.

    The function bounds the upper end of the enclosure, state by state in arrays, with the widest
    bucket for each state.  False means that the arrays do not show it.  It takes a tenth of the
    time of :func:`predict`.

    Args:
        settings: for which :func:`why_not` returns None.

    Raises:
        SettingsError: as a run with these settings does.
    """
    import numpy as np

    from tcc_runtime.fastcheck.spans import column, levels

    file, manifest = artifact.file, artifact.manifest
    members = root_of(artifact, settings.after).members
    ordinary = artifact.verified and settings.inflate == "1" and not manifest.gate
    if not ordinary or counts.rounded_to(artifact, "1", settings.count_bits, members) is not None:
        return False
    rank = column(file, "rank").astype(np.int64)
    begins = levels(rank)
    if begins is None or len(begins) * _LEVEL > len(rank):
        return False
    beta, places = manifest.beta
    step = np.array([beta * cost / 10 ** (places + 9) for cost in artifact.cost_low])
    start = column(file, "edge_start").astype(np.int64)
    calls, targets = column(file, "edge_call"), column(file, "edge_target")
    spans = [(int(a), int(b)) for a, b in pairwise(begins) if a < b]
    rows = [(slice(a, b), slice(start[a], start[b]), np.diff(start[a : b + 1])) for a, b in spans]
    with np.errstate(all="ignore"):
        weight, size = np.exp(-step), np.abs(step)
        below, steep = column(file, "accept").astype(float), np.zeros(len(rank))
        for states, edges, degrees in rows[1:]:
            call, target = calls[edges], targets[edges]
            ends = np.cumsum(degrees) - degrees
            below[states] += np.add.reduceat(weight[call] * below[target], ends)
            steep[states] = np.maximum.reduceat(size[call] + steep[target], ends)
        whole = float(below[list(members)].sum())
        if not (steep[list(members)].max() < _STEEPEST - 1 and 0 < whole < inf):
            return False
        logs = _logs(artifact) - manifest.fraction_bits * log(2) * rank
        if settings.recipe == "r2":
            residual = column(file, "residual_to_go").astype(float)
        else:
            residual = rank * float(counts.step_envelope(artifact))
        rate = np.exp(logs + (residual / (1 << 32) - log(whole)))
        slack = np.maximum(0.0, rate * (1 - _LOOSE) - below / whole * (1 + _LOOSE))
        mass, far = np.zeros(len(rank)), np.full(len(rank), -inf)
        np.add.at(mass, list(members), 1.0)
        far[list(members)] = 0.0
        for states, edges, degrees in reversed(rows[1:]):
            call, target = calls[edges], targets[edges]
            np.add.at(mass, target, np.repeat(mass[states], degrees) * weight[call])
            np.maximum.at(far, target, np.repeat(far[states], degrees) + step[call])
        reached = mass > 0
        mass, rate, slack, far = mass[reached], rate[reached], slack[reached], far[reached]
        return bool((mass * rate / (1 + slack * np.exp(-far))).sum() * (1 + _LOOSE) <= most)


def _logs(artifact: Artifact) -> Array:
    """Return the natural logarithm of each state's race count, in arrays."""
    import numpy as np

    from tcc_runtime.fastcheck.spans import column

    if artifact.manifest.round_counts is not None:
        mantissa, exponent = (
            column(artifact.file, f"race_{of}").astype(float) for of in ("mantissa", "exponent")
        )
        logs: Array = np.log(mantissa) + log(2) * exponent
        return logs
    limbs = column(
        artifact.file, "race_count" if "race_count" in artifact.file.columns else "plans"
    )
    found = np.full(len(limbs), -inf)
    for at in reversed(range(limbs.shape[1])):
        part = limbs[:, at].astype(float)
        if at:
            part += limbs[:, at - 1] / 2.0**64
        open_rows = np.isneginf(found) & (limbs[:, at] > 0)
        found[open_rows] = np.log(part[open_rows]) + 64 * log(2) * at
    return found


class Ground:
    """The data of a forecast in floats: each state's rows, the weight below it, and its rate.

    Attributes:
        edges: of each state.
        weight: e^(-beta * cost) of each call.
        below: the total weight of the plans below each state; of derivations if the artifact is not
            deterministic.
        root: the root of the run.
        whole: the total weight of the plans below the root.

    Raises:
        OverflowError: a plan's score exceeds the exponents of floats.
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
        bits = counts.rounded_to(artifact, settings.inflate, settings.count_bits, root.members)
        self._count = counts.race_counts(artifact, settings.inflate, bits)
        self._residual = counts.residual_bound(artifact, settings.recipe)

    def _weights_below(self) -> list[float]:
        """Return z: the total weight of the plans below each state.

        Raises:
            OverflowError: a plan's score exceeds the exponents of floats.
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
        """Return n e^g of a set of states, in units of the weight of all plans."""
        bits, rank = self._artifact.manifest.fraction_bits, self._artifact.rank
        best = max(map(self._residual, states)) / (1 << 32) - log(self.whole)
        return sum([exp(log(self._count(q)) - bits * rank(q) * log(2) + best) for q in states])

    def sums(self, buckets: int) -> tuple[float, float]:
        """Return both ends of the enclosure."""
        step, weight, whole = self._step, self.weight, self.whole
        gathered: list[list[Bucket]] = [[] for _ in self.below]
        for q in self.root.members:
            gathered[q].append((1.0, 0.0, 0.0))
        lower = upper = 0.0
        for q in range(max(self.root.members), -1, -1):
            prefixes = merged(gathered[q], buckets)
            gathered[q] = []
            if not prefixes:  # no prefix of the run leads there
                continue
            rate = self.rate((q,))
            # With exact M and n the slack is 0, and the cost of a prefix does not matter.
            slack = max(0.0, rate - self.below[q] / whole)
            for mass, least, most in prefixes:
                lower += mass * rate / (1 + slack * exp(-least))
                upper += mass * rate / (1 + slack * exp(-most))
            for call, target in self.edges[q]:
                c, w = step[call], weight[call]
                gathered[target] += [(m * w, least + c, most + c) for m, least, most in prefixes]
        return lower, upper


def merged(some: list[Bucket], most: int) -> list[Bucket]:
    """Return the same weight in at most `most` + 1 buckets of equal width by least cost."""
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


# Estimates over relaxed artifacts.

DRAWING_EFFORT = 300_000  # edges visited while drawing, some 0.2 s
MOST_ESTIMATED = 1_000_000  # edges; above this, an estimate is made only on request
_MOST_DRAWS = 1000
_LEAST_DRAWS = 20
# If none of n draws was kept, a share above 3 / n would have shown with probability 0.95.
_UNSEEN = 3.0

# A node on the path of a draw: its R, and its share of the weight, both in units of the whole.
_Node: TypeAlias = "tuple[float, float]"
# The states that a prefix leads to, with the number of derivations of each.
_Ways: TypeAlias = "dict[int, int]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """An estimate of the number of expansions.

    Attributes:
        lower, upper: estimates of both ends of an enclosure of the mean; `upper` is None if no
            drawn plan satisfied the remaining statements.
        drawn: number of plans drawn from the automaton.
        kept: number of drawn plans that are plans of the grammar.
    """

    lower: float
    upper: float | None
    drawn: int
    kept: int


def needs_estimate(artifact: Artifact) -> bool:
    """Return whether a run may visit more than the plans of the grammar."""
    return artifact.nondeterministic or bool(artifact.relaxed)


def why_no_estimate(artifact: Artifact, settings: Settings) -> str | None:
    """Return why no estimate is known for a run with these settings; None if one is known.

    Raises:
        SettingsError: as a run with these settings does.
    """
    terms = terms_of(artifact, settings)
    if terms.mode == "fallback" or terms.race == "literal":
        return "the run has no race that its keys bound"
    if terms.keys != "finalized":
        return "it is known for finalized keys alone"
    return None if artifact.fixed_costs else "costs are ranges"


def estimate(
    artifact: Artifact, settings: Settings, *, effort: int = DRAWING_EFFORT
) -> Estimate | None:
    """Return an estimate of the expansions of a run; None if unknown.

    Raises:
        SettingsError: as a run with these settings does.
        Rejected: an unverified artifact leads out of its ranges.
    """
    if why_no_estimate(artifact, settings) is not None:
        return None
    try:
        draws = _Draws(Ground(artifact, settings), artifact, terms_of(artifact, settings), effort)
        return _of(draws, settings.top)
    except (OverflowError, ZeroDivisionError):
        return None


def _of(draws: _Draws, top: int) -> Estimate | None:
    drawn, kept = len(draws.nodes), draws.kept
    share = draws.share / drawn if kept else _UNSEEN / drawn
    lower = upper = 0.0
    for nodes in draws.nodes:
        for rate, part in nodes:
            lower += _chance(rate, share, top) / part
            upper += _chance(rate, share - min(share, part), top) / part
    if not (isfinite(lower) and isfinite(upper)):
        return None
    return Estimate(
        lower=max(1.0, lower / drawn),
        upper=max(1.0, upper / drawn) if kept else None,
        drawn=drawn,
        kept=kept,
    )


def _chance(rate: float, others: float, top: int) -> float:
    """Return the probability that fewer than `top` others, of weight `others`, precede a key of
    `rate`.
    """
    if others <= 0:
        return 1.0
    # 1 - (others / (others + rate)) ** top
    return -expm1(-top * log1p(rate / others))


class _Draws:
    """Plans drawn from the automaton, each with the nodes on its path as far as a run would go.

    Attributes:
        nodes: of each draw.
        kept: number of draws that are plans of the grammar.
        share: the sum over the kept draws of 1 / derivations; divided by all draws, it estimates
            the share of the grammar in the automaton's weight.
    """

    def __init__(self, ground: Ground, artifact: Artifact, terms: Terms, effort: int) -> None:
        self._ground = ground
        self._artifact = artifact
        cut = terms.truncate if terms.cut else None
        found = constraints.constraints_of(artifact, cut, ground.root.held)
        self._statements = found or Constraints(items=())
        self._words = _words(artifact.digest)
        self._looks = 0
        self.nodes: list[list[_Node]] = []
        self.kept, self.share = 0, 0.0
        while len(self.nodes) < _MOST_DRAWS:
            self.nodes.append(self._draw())
            if self._looks >= effort and len(self.nodes) >= _LEAST_DRAWS:
                return

    def _draw(self) -> list[_Node]:
        """Return the nodes of one draw, which ends when it breaks a statement."""
        ground, held = self._ground, self._statements.start
        ways: _Ways = dict.fromkeys(ground.root.members, 1)
        weight, whole = 1.0, ground.whole
        found: list[_Node] = []
        while True:
            rows = self._rows(ways)
            ends = sum([n for q, n in ways.items() if self._artifact.accepts(q)])
            below = sum([n * ground.below[q] for q, n in ways.items()])
            found.append((weight * ground.rate(tuple(ways)), weight * below / whole))
            call = self._choose(rows, float(ends), below)
            if call is None:
                if self._statements.may_stop(held):
                    self.kept += 1
                    self.share += 1 / ends
                return found
            after = self._statements.step(held, call)
            if after is None:
                return found
            held, ways = after, rows[call]
            weight *= ground.weight[call]

    def _rows(self, ways: _Ways) -> dict[int, _Ways]:
        rows: dict[int, _Ways] = {}
        for q, number in ways.items():
            self._looks += len(self._ground.edges[q])
            for call, target in self._ground.edges[q]:
                row = rows.setdefault(call, {})
                row[target] = row.get(target, 0) + number
        return rows

    def _choose(self, rows: dict[int, _Ways], ends: float, below: float) -> int | None:
        """Return the drawn call, or None for the end of the plan."""
        at = next(self._words) * below - ends
        if at < 0:
            return None
        last = None
        for call, row in rows.items():
            weight, last = self._ground.weight[call], call
            at -= weight * sum([n * self._ground.below[target] for target, n in row.items()])
            if at < 0:
                return call
        return last


def _words(digest: bytes) -> Iterator[float]:
    """Yield numbers in [0, 1), which are the same for the same artifact."""
    stream, at = blake3(b"tcc.estimate.v1\x00" + digest), 0
    while True:
        page = stream.digest(4096, seek=at)
        at += 4096
        for start in range(0, 4096, 8):
            yield (int.from_bytes(page[start : start + 8], "little") >> 11) / (1 << 53)
