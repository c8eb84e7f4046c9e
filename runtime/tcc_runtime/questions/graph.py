"""The plans of an artifact as a deterministic graph with true counts, whatever its counts are.

An artifact with exact counts is such a graph as it stands.  One whose counts are bounds is
unfolded: sets of states, with what the statements left to a run have seen, until nothing new is
met; dead ends are dropped.  What would grow beyond the limits is declined, so every number here is
exact.
Cost: nothing, or a step for each edge that is unfolded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Protocol, TypeAlias

from tcc_certs.errors import Code, Rejected
from tcc_runtime.artifact.constraints import Constraints, Held, constraints_of
from tcc_runtime.artifact.cuts import fewest_calls
from tcc_runtime.artifact.load import Artifact

MOST_EDGES: Final = 1 << 21  # of what is unfolded

Row: TypeAlias = "Sequence[tuple[int, int]]"
_Place: TypeAlias = "tuple[tuple[int, ...], Held]"


class PlanGraph(Protocol):
    """Numbered states, targets less than where an edge begins; every state leads to a plan."""

    @property
    def texts(self) -> Sequence[str]:
        """The calls' canonical texts, in order."""

    @property
    def cost_low(self) -> Sequence[int]:
        """Each call's low cost, nano-units."""

    @property
    def root(self) -> int | None:
        """The state of the empty prefix; None where there is no plan."""

    def edges(self, q: int) -> Row:
        """The edges of a state as (call, target), in call order, one a call."""

    def accepts(self, q: int) -> bool:
        """Whether a plan may stop in `q`."""

    def plans(self, q: int) -> int:
        """The number of plans below."""

    def cost_to_go(self, q: int) -> int:
        """The least cost of a plan below, nano-units."""

    def fewest(self, q: int) -> int:
        """The fewest calls of a plan below."""

    def rank(self, q: int) -> int:
        """The most calls of a plan below."""

    def used(self) -> Sequence[str]:
        """The texts of the calls that some plan has, in order."""


class Stored:
    """An artifact with exact counts."""

    def __init__(self, artifact: Artifact) -> None:
        self.texts = artifact.texts
        self.cost_low = artifact.cost_low
        self.root: int | None = artifact.root
        self.accepts = artifact.accepts
        self.plans = artifact.plans
        self.cost_to_go = artifact.cost_to_go
        self.rank = artifact.rank
        self._artifact = artifact
        self._rows: dict[int, Row] = {}

    def edges(self, q: int) -> Row:
        """The edges of a state as (call, target), in call order; read once."""
        row = self._rows.get(q)
        if row is None:
            row = self._rows[q] = self._artifact.edges(q)
        return row

    def fewest(self, q: int) -> int:
        """The fewest calls of a plan below."""
        return fewest_calls(self._artifact)[q]

    def used(self) -> Sequence[str]:
        """The texts of all calls: an artifact has no others."""
        return self.texts


class Unfolded:
    """What an artifact with bounds in place of counts allows, as rows of its own."""

    def __init__(self, artifact: Artifact, most_edges: int = MOST_EDGES) -> None:
        """Unfold all of it.

        Raises:
            Rejected: D201 it has more edges than that.
        """
        self.texts = artifact.texts
        self.cost_low = artifact.cost_low
        self.root: int | None = None
        self._rows: list[Row] = []
        self._accept: list[bool] = []
        self._plans: list[int] = []
        self._cost: list[int] = []
        self._fewest: list[int] = []
        self._rank: list[int] = []
        self._take(_Unfolding(artifact, most_edges))

    def _take(self, found: _Unfolding) -> None:
        """Number what leads to a plan, targets first."""
        number: dict[int, int] = {}
        for at in sorted(range(len(found.places)), key=lambda at: found.places[at][0][-1]):
            row = [(call, number[to]) for call, to in found.rows[at] if to in number]
            if row or found.accept[at]:
                number[at] = len(self._rows)
                self._add(row, found.accept[at])
        self.root = number.get(0)

    def _add(self, row: Row, accept: bool) -> None:
        cost, own = self.cost_low, [0] * accept
        self._rows.append(row)
        self._accept.append(accept)
        self._plans.append(accept + sum([self._plans[to] for _, to in row]))
        self._cost.append(min(own + [cost[call] + self._cost[to] for call, to in row]))
        self._fewest.append(min(own + [1 + self._fewest[to] for _, to in row]))
        self._rank.append(max(own + [1 + self._rank[to] for _, to in row]))

    def edges(self, q: int) -> Row:
        """The edges of a state as (call, target), in call order, one a call."""
        return self._rows[q]

    def accepts(self, q: int) -> bool:
        """Whether a plan may stop in `q`."""
        return self._accept[q]

    def plans(self, q: int) -> int:
        """The number of plans below."""
        return self._plans[q]

    def cost_to_go(self, q: int) -> int:
        """The least cost of a plan below, nano-units."""
        return self._cost[q]

    def fewest(self, q: int) -> int:
        """The fewest calls of a plan below."""
        return self._fewest[q]

    def rank(self, q: int) -> int:
        """The most calls of a plan below."""
        return self._rank[q]

    def used(self) -> Sequence[str]:
        """The texts of the calls that the rows have: the root leads to every one of them."""
        found = {call for row in self._rows for call, _ in row}
        return [self.texts[call] for call in sorted(found)]


class _Unfolding:
    """Every place that the root leads to, dead ends among them.

    Attributes:
        places: sets of states, increasing, with what is held; the root's first.
        rows: by number, (call, number of the place).
        accept: by number, whether a plan may stop there.
    """

    def __init__(self, artifact: Artifact, most_edges: int) -> None:
        self._artifact = artifact
        self._statements = constraints_of(artifact, None) or Constraints((), 0)
        start = (artifact.root,), tuple(sorted(self._statements.start))
        self._number: dict[_Place, int] = {start: 0}
        self.places: list[_Place] = [start]
        self.rows: list[Row] = []
        self.accept: list[bool] = []
        edges = 0
        while len(self.rows) < len(self.places):
            states, held = self.places[len(self.rows)]
            row = list(self._row(states, held))
            self.rows.append(row)
            stops = any(map(artifact.accepts, states))
            self.accept.append(stops and self._statements.may_stop(held))
            edges += 1 + len(row)
            if edges > most_edges:
                raise Rejected(
                    Code.LIMIT, "plans", f"at most {most_edges} edges of the exact plans", "more"
                )

    def _row(self, states: tuple[int, ...], held: Held) -> Iterator[tuple[int, int]]:
        for call, targets in self._artifact.steps(states):
            after = self._statements.step(held, call)
            if after is not None:
                place = targets, tuple(sorted(after))
                number = self._number.setdefault(place, len(self.places))
                if number == len(self.places):
                    self.places.append(place)
                yield call, number


def graph_of(artifact: Artifact) -> PlanGraph:
    """The graph of the plans of `artifact`, kept with it.

    Raises:
        Rejected: D201 its counts are bounds, and what they bound is too large to unfold.
    """
    kept = artifact.kept.get("plan_graph")
    if isinstance(kept, Stored | Unfolded):
        return kept
    bounds = artifact.nondeterministic or artifact.relaxed is not None
    found = Unfolded(artifact) if bounds else Stored(artifact)
    artifact.kept["plan_graph"] = found
    return found
