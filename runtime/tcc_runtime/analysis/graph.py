"""Plans of an artifact as a deterministic graph with exact counts; the plan nearest to a sequence.

An artifact with exact counts is such a graph.  An artifact with bounds is unfolded: a state of the
graph is a set of states with the tally of the relaxed statements, and dead ends are dropped.  A
graph beyond the limit is declined, so every number here is exact.  The nearest plan has the fewest
calls inserted, deleted or replaced.  The search is A* over pairs of a state and a position in the
sequence, guided by the shortest and the longest continuation.
Cost: one step for each unfolded edge; the edges of each pair that is visited.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from typing import Final, Protocol, TypeAlias

from tcc_certs.errors import Code, Rejected
from tcc_certs.statements import Constraints
from tcc_runtime.artifact.constraints import Held, constraints_of
from tcc_runtime.artifact.cuts import fewest_calls
from tcc_runtime.artifact.load import Artifact

MOST_EDGES: Final = 1 << 21  # the largest unfolded graph

Row: TypeAlias = "Sequence[tuple[int, int]]"
_Place: TypeAlias = "tuple[tuple[int, ...], Held]"


class PlanGraph(Protocol):
    """Numbered states, each of which leads to a plan.

    Without cycles, targets have smaller numbers than their state.  With cycles, the graph has no
    counts and costs.
    """

    @property
    def texts(self) -> Sequence[str]:
        """The canonical texts of the calls, in order."""

    @property
    def cost_low(self) -> Sequence[int]:
        """The low cost of each call, in nano-units."""

    @property
    def root(self) -> int | None:
        """The state of the empty prefix; None if there is no plan."""

    def edges(self, q: int) -> Row:
        """Return the edges of a state as (call, target), in call order, at most one for each
        call.
        """

    def accepts(self, q: int) -> bool:
        """Return whether a plan may stop in `q`."""

    def plans(self, q: int) -> int:
        """Return the number of plans below a state."""

    def cost_to_go(self, q: int) -> int:
        """Return the least cost of a plan below a state, in nano-units."""

    def fewest(self, q: int) -> int:
        """Return the fewest calls of a plan below a state."""

    def rank(self, q: int) -> int:
        """Return the most calls of a plan below a state."""

    def used(self) -> Sequence[str]:
        """Return the texts of the calls that occur in plans, in order."""


class Stored:
    """The graph of an artifact with exact counts."""

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact
        self.texts = artifact.texts
        self.cost_low = artifact.cost_low
        self.root: int = artifact.root
        self.accepts = artifact.accepts
        self.plans = artifact.plans
        self.cost_to_go = artifact.cost_to_go
        self.rank = artifact.rank
        self._rows: dict[int, Row] = {}

    def edges(self, q: int) -> Row:
        """Return the edges of a state as (call, target), in call order; cached."""
        row = self._rows.get(q)
        if row is None:
            row = self._rows[q] = self.artifact.edges(q)
        return row

    def fewest(self, q: int) -> int:
        """Return the fewest calls of a plan below a state."""
        return fewest_calls(self.artifact)[q]

    def used(self) -> Sequence[str]:
        """Return the texts of all calls: each call of an artifact occurs in a plan."""
        return self.texts


class Unfolded:
    """The graph of the exact plans of an artifact whose counts are bounds."""

    def __init__(self, artifact: Artifact, most_edges: int = MOST_EDGES) -> None:
        """Unfold the artifact.

        Raises:
            Rejected: D201: the graph has more than `most_edges` edges.
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
        """Number the places that lead to a plan, targets first."""
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
        """Return the edges of a state as (call, target), in call order, at most one for each
        call.
        """
        return self._rows[q]

    def accepts(self, q: int) -> bool:
        """Return whether a plan may stop in `q`."""
        return self._accept[q]

    def plans(self, q: int) -> int:
        """Return the number of plans below a state."""
        return self._plans[q]

    def cost_to_go(self, q: int) -> int:
        """Return the least cost of a plan below a state, in nano-units."""
        return self._cost[q]

    def fewest(self, q: int) -> int:
        """Return the fewest calls of a plan below a state."""
        return self._fewest[q]

    def rank(self, q: int) -> int:
        """Return the most calls of a plan below a state."""
        return self._rank[q]

    def used(self) -> Sequence[str]:
        """Return the texts of the calls on edges: the root reaches every edge."""
        found = {call for row in self._rows for call, _ in row}
        return [self.texts[call] for call in sorted(found)]


class _Unfolding:
    """All places that the root leads to, including dead ends.

    Attributes:
        places: sets of states (increasing tuples), each with a tally.  The place of the root is the
            first.
        rows: for each place its edges, as (call, number of the target place).
        accept: for each place, whether a plan may stop there.
    """

    def __init__(self, artifact: Artifact, most_edges: int) -> None:
        self._artifact = artifact
        self._statements = constraints_of(artifact, None) or Constraints(items=())
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
    """Return the graph of the plans of an artifact, cached with it.

    Raises:
        Rejected: D201: its counts are bounds, and the unfolded graph is too large.  D204: it has
            cycles, and leaves statements to a run.
    """
    kept = artifact.kept.get("plan_graph")
    if isinstance(kept, Stored | Unfolded):
        return kept
    if artifact.cyclic:
        from tcc_runtime.analysis.endless import Endless  # here: it imports this module

        return Endless(artifact, counted=True)
    bounds = artifact.nondeterministic or bool(artifact.relaxed)
    found = Unfolded(artifact) if bounds else Stored(artifact)
    artifact.kept["plan_graph"] = found
    return found


# Nearest plans.

_At: TypeAlias = "tuple[int, int]"  # a state, and a position in the sequence


def nearest_plan(
    graph: PlanGraph, calls: Sequence[str], *, prefix: bool = False, most: int = MOST_EDGES
) -> tuple[str, ...] | None:
    """Return an allowed plan with the fewest edits from `calls`; with `prefix`, the beginning of a
    plan.

    Returns:
        None if no plan exists, or if the search would look at more than `most` edges.
    """
    if graph.root is None:
        return None
    return _Search(graph, calls, prefix).found(graph.root, most)


class _Search:
    def __init__(self, graph: PlanGraph, calls: Sequence[str], prefix: bool) -> None:
        self._graph = graph
        self._prefix = prefix
        number = {text: call for call, text in enumerate(graph.texts)}
        self._calls = [number.get(text, -1) for text in calls]

    def found(self, root: int, most: int) -> tuple[str, ...] | None:
        start = (root, 0)
        edits = {start: 0}
        came: dict[_At, tuple[_At, int | None]] = {}
        # Priority: a lower bound of all edits; then the farthest position; then the order of
        # insertion.
        todo: list[tuple[int, int, int, _At]] = [(self._needed(start), 0, 0, start)]
        count, done = 0, set[_At]()
        while todo:
            _, _, _, at = heappop(todo)
            if at in done:
                continue
            done.add(at)
            if self._ends(at):
                return self._read(at, came)
            for call, after, cost in self._ways(at):
                count += 1
                spent = edits[at] + cost
                if spent < edits.get(after, spent + 1):
                    edits[after] = spent
                    came[after] = at, call
                    heappush(todo, (spent + self._needed(after), -after[1], count, after))
            if count > most:
                return None
        return None

    def _ends(self, at: _At) -> bool:
        q, done = at
        return done == len(self._calls) and (self._prefix or self._graph.accepts(q))

    def _needed(self, at: _At) -> int:
        """Return a lower bound of the edits that follow, from the lengths of both continuations."""
        q, done = at
        left = len(self._calls) - done
        short = 0 if self._prefix else self._graph.fewest(q) - left
        return max(0, left - self._graph.rank(q), short)

    def _ways(self, at: _At) -> Iterator[tuple[int | None, _At, int]]:
        q, done = at
        ahead = self._calls[done] if done < len(self._calls) else None
        if ahead is not None:
            yield None, (q, done + 1), 1
        for call, target in self._graph.edges(q):
            if ahead is not None:
                yield call, (target, done + 1), int(call != ahead)
            yield call, (target, done), 1

    def _read(self, at: _At, came: dict[_At, tuple[_At, int | None]]) -> tuple[str, ...]:
        calls: list[str] = []
        while at in came:
            at, call = came[at]
            if call is not None:
                calls.append(self._graph.texts[call])
        return tuple(reversed(calls))
