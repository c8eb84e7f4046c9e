"""How many nodes a run over a relaxed artifact will expand, before it runs: an estimate by drawing.

Text: docs/spec/race.md, section 20.  Plans are drawn from the softmax of the automaton, which is
wider than the grammar's plans.  The share of those that keep what is left to the run stands for the
weight of its plans, and the nodes on their ways, each over the chance to be drawn, for all nodes.
The words that decide the draws follow from the artifact's digest: the estimate is a function of
artifact and settings.  Floats: a forecast, on which nothing rests.
Cost: one pass over the edges, and what the effort allows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import expm1, isfinite, log1p
from typing import TypeAlias

from blake3 import blake3

from tcc_runtime.artifact.constraints import Constraints, constraints_of
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.terms.modes import Terms, terms_of
from tcc_runtime.terms.predict import Ground
from tcc_runtime.terms.settings import Settings

EFFORT = 300_000  # edges looked at while drawing, some 0.2 s
MOST_ESTIMATED = 1_000_000  # edges, beyond which nothing is estimated unasked
_MOST_DRAWS = 1000
_LEAST_DRAWS = 20
# With none of n kept, a share above 3 / n would have shown with chance 0.95.
_UNSEEN = 3.0

# A node on the way of a draw: its R, and its share of the weight; both in units of the whole.
_Node: TypeAlias = "tuple[float, float]"
# The states that a prefix leads to, and by how many derivations each.
_Ways: TypeAlias = "dict[int, int]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """About so many expansions.

    Attributes:
        lower, upper: estimates of both ends of an enclosure of the mean; `upper` is None where no
            plan that was drawn kept what is left to the run.
        drawn, kept: plans that were drawn from the automaton, and those among them that are plans
            of the grammar.
    """

    lower: float
    upper: float | None
    drawn: int
    kept: int


def needs_estimate(artifact: Artifact) -> bool:
    """Whether a run may meet more than the plans that it looks for."""
    return artifact.nondeterministic or artifact.relaxed is not None


def why_no_estimate(artifact: Artifact, settings: Settings) -> str | None:
    """Why none is known for a run with these settings; None where one is.

    Raises:
        SettingsError: as a run with them.
    """
    terms = terms_of(artifact, settings)
    if terms.mode == "fallback" or terms.race == "literal":
        return "the run has no race that its keys bound"
    if terms.keys != "finalized":
        return "it is known for finalized keys alone"
    return None if artifact.fixed_costs else "costs are ranges"


def estimate(artifact: Artifact, settings: Settings, *, effort: int = EFFORT) -> Estimate | None:
    """About how many expansions a run takes, None where that is not known.

    Raises:
        SettingsError: as a run with these settings.
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
    """That fewer than `top` of the others, of weight `others`, come before a key of `rate`."""
    if others <= 0:
        return 1.0
    # 1 - (others / (others + rate)) ** top
    return -expm1(-top * log1p(rate / others))


class _Draws:
    """Plans drawn from the automaton, each with the nodes on its way as far as a run would go.

    Attributes:
        nodes: of each draw.
        kept: how many are plans of the grammar.
        share: their weight in all, of that of the automaton, times the number of draws.
    """

    def __init__(self, ground: Ground, artifact: Artifact, terms: Terms, effort: int) -> None:
        self._ground = ground
        self._artifact = artifact
        cut = terms.truncate if terms.cut else None
        found = constraints_of(artifact, cut, ground.root.held)
        self._statements = found or Constraints((), artifact.manifest.calls)
        self._words = _words(artifact.digest)
        self._looks = 0
        self.nodes: list[list[_Node]] = []
        self.kept, self.share = 0, 0.0
        while len(self.nodes) < _MOST_DRAWS:
            self.nodes.append(self._draw())
            if self._looks >= effort and len(self.nodes) >= _LEAST_DRAWS:
                return

    def _draw(self) -> list[_Node]:
        """One draw; it ends where a statement is broken."""
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
        """The call that is drawn; None for the end."""
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
    """Numbers in [0, 1), the same for the same artifact."""
    stream, at = blake3(b"tcc.estimate.v1\x00" + digest), 0
    while True:
        page = stream.digest(4096, seek=at)
        at += 4096
        for start in range(0, 4096, 8):
            yield (int.from_bytes(page[start : start + 8], "little") >> 11) / (1 << 53)
