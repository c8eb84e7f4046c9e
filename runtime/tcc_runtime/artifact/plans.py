"""Plans without a race: counted by length, listed in call order, looked up.

Functions walk the automaton and its counts; none enumerates plans to count them.  Lists and
look-ups are exact even if counts are bounds, because they follow sets of states and the relaxed
statements.  Functions that need exact counts raise.  Plans are compared call by call, and calls by
the bytes of their texts.  A prefix comes first.
Cost: see each function; D is the longest plan, B the most edges of a state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Protocol, TypeAlias

from tcc_runtime.artifact.constraints import Held, constraints_of

if TYPE_CHECKING:
    from tcc_certs.statements import Constraints

from tcc_runtime.artifact.load import Artifact

States: TypeAlias = "tuple[int, ...]"
_Step: TypeAlias = "tuple[int, States, Held]"
_Place: TypeAlias = "tuple[States, Held]"
# A place on the current path, the number of plans yielded before it, and its remaining steps.
_Row: TypeAlias = "tuple[_Place, int, Iterator[_Step]]"
# Cost of an edge above the cost to go of its state; length of the shortest of the cheapest plans
# through it; call; target.
_Way: TypeAlias = "tuple[int, int, int, int]"
_MOST_DEAD = 1 << 20
_NEAR = 64  # states to look at before visiting the whole automaton


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanWalk:
    """The longest allowed start of a sequence of calls.

    Attributes:
        position: the number of its calls.
        states: the states after it; a single one if the automaton is deterministic.
        held: the tally of the relaxed statements.
        allowed: whether the whole sequence is a plan.
    """

    position: int
    states: tuple[int, ...]
    held: Held
    allowed: bool


def plans_by_depth(artifact: Artifact) -> list[int]:
    """Return the number of plans with 0, 1,.. d(root) calls, or bounds if counts are bounds.

    Cost: at most D passes over the edges.
    """
    found = []
    level = {artifact.root: 1}
    while level:
        found.append(sum(ways for q, ways in level.items() if artifact.accepts(q)))
        after: dict[int, int] = {}
        for q, ways in level.items():
            for _, target in artifact.edges(q):
                after[target] = after.get(target, 0) + ways
        level = after
    return found


def cheapest_plan(artifact: Artifact) -> tuple[str, ...] | None:
    """Return the plan of least cost.  Of several, the shortest one counts, then the first in call
    order.

    None if this plan breaks a relaxed statement: then the least cost is only a bound.
    Cost: at most the edges of all cheapest plans.
    """
    states: States = (artifact.root,)
    to_go = artifact.cost_to_go(artifact.root)
    length = LengthAhead(artifact)
    calls: list[str] = []
    for left in range(length.of(artifact.root) - 1, -1, -1):
        call, states, to_go = _cheapest_step(artifact, states, to_go, left, length)
        calls.append(artifact.texts[call])
    whole = not artifact.relaxed or contains(artifact, calls)
    return tuple(calls) if whole else None


def _cheapest_step(
    artifact: Artifact, states: States, to_go: int, calls: int, length: LengthAhead
) -> tuple[int, States, int]:
    """Return the first call that attains the cost to go `to_go` with `calls` calls after it.

    The other results are its targets, and the remaining cost to go.
    """
    for call, targets in artifact.steps(states):
        left = to_go - artifact.cost_low[call]
        kept = [target for target in targets if artifact.cost_to_go(target) == left]
        kept = [target for target in kept if length.of(target) == calls]
        if kept:
            return call, tuple(kept), left
    raise ValueError(f"no edge of the states {states} attains their cost to go")


def cheapest_plans(artifact: Artifact, limit: int) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the `limit` plans of least cost, each with its cost in nano-units, cheapest first.

    Of equal costs shorter plans come first, then plans in call order.  Costs are the low costs.
    The search follows prefixes in the order of their cheapest plan.  With exact counts it looks at
    prefixes of the yielded plans only.
    Cost: a few steps for each call of a plan, and once B for each state that cheapest plans pass.
    D * B steps a plan, or more, if costs to go are bounds: if the automaton is nondeterministic or
    statements are relaxed.
    """
    if artifact.nondeterministic or bool(artifact.relaxed):
        yield from _cheapest_by_sets(artifact, limit)
    else:
        yield from cheapest_in(artifact, artifact.root, limit)


class Costed(Protocol):
    """States with exact costs to go and one edge for each call, as in an exact artifact."""

    @property
    def texts(self) -> Sequence[str]:
        """The canonical texts of the calls, in order."""

    @property
    def cost_low(self) -> Sequence[int]:
        """The low cost of each call."""

    def edges(self, q: int) -> Sequence[tuple[int, int]]:
        """Return the edges of a state as (call, target), in call order."""

    def accepts(self, q: int) -> bool:
        """Return whether a plan may stop in a state."""

    def cost_to_go(self, q: int) -> int:
        """Return the least cost of a plan below a state."""


class LengthAhead:
    """The number of calls of the shortest of the cheapest plans below each state, on demand.

    Only edges of cheapest plans are followed; without costs these are all edges.  If an end is
    near, only a few states are visited; otherwise each state on a cheapest plan, once.
    """

    def __init__(self, states: Costed) -> None:
        self._states = states
        self._known: dict[int, int] = {}

    def of(self, q: int) -> int:
        """Return the number of calls for a state."""
        found = self._known.get(q)
        if found is None:
            found = self._near(q)
        return self._all(q) if found is None else found

    def _near(self, q: int) -> int | None:
        """Return the number of calls by breadth-first search; None if it meets many states."""
        layer, seen, calls = {q}, 0, 0
        while not any(map(self._ends, layer)):
            seen += len(layer)
            if seen > _NEAR:
                return None
            layer = {target for source in layer for target in self._cheapest(source)}
            calls += 1
        self._known[q] = calls
        return calls

    def _all(self, q: int) -> int:
        """Return the number of calls, computed targets first, without recursion."""
        known = self._known
        waiting = [q]
        while waiting:
            source = waiting[-1]
            targets = [] if self._ends(source) else self._cheapest(source)
            unknown = [target for target in targets if target not in known]
            if unknown:
                waiting += unknown
                continue
            known[source] = 1 + min([known[target] for target in targets], default=-1)
            waiting.pop()
        return known[q]

    def _ends(self, q: int) -> bool:
        return self._states.accepts(q) and not self._states.cost_to_go(q)

    def _cheapest(self, q: int) -> list[int]:
        """Return the targets of the edges on cheapest plans."""
        states = self._states
        low, to_go, least = states.cost_low, states.cost_to_go, states.cost_to_go(q)
        return [target for call, target in states.edges(q) if low[call] + to_go(target) == least]


def cheapest_in(artifact: Costed, root: int, limit: int) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the `limit` plans of least cost below `root`; see :func:`cheapest_plans`."""
    texts, length = artifact.texts, LengthAhead(artifact)
    rows: dict[int, list[_Way]] = {}
    # Cost and calls of the best plan with this prefix; the prefix, as a plan (0) or to be continued
    # (1); its place among its siblings; its state. No two entries agree in the first four.
    frontier: list[tuple[int, int, tuple[int, ...], int, list[_Way], int, int]]
    frontier = [(artifact.cost_to_go(root), length.of(root), (), 1, [], 0, root)]
    given = 0
    while frontier and given < limit:
        total, _, calls, open_, siblings, at, q = heappop(frontier)
        if not open_:
            yield total, tuple([texts[call] for call in calls])
            given += 1
            continue
        if at + 1 < len(siblings):
            # Siblings are sorted, so the next one is pushed only now.
            after, more, call, target = siblings[at + 1]
            cost = total - siblings[at][0] + after
            ends = len(calls) - 1 + more
            heappush(frontier, (cost, ends, (*calls[:-1], call), 1, siblings, at + 1, target))
        row = rows.get(q)
        if row is None:
            row = rows[q] = _ways(artifact, q, length)
        if artifact.accepts(q):
            heappush(frontier, (total - artifact.cost_to_go(q), len(calls), calls, 0, row, 0, q))
        if row:
            after, more, call, target = row[0]
            heappush(
                frontier, (total + after, len(calls) + more, (*calls, call), 1, row, 0, target)
            )


def _ways(artifact: Costed, q: int, length: LengthAhead) -> list[_Way]:
    """Return the edges of a state, sorted by cost above its cost to go, then length, then call
    order.
    """
    least, low, to_go = artifact.cost_to_go(q), artifact.cost_low, artifact.cost_to_go
    return sorted(
        [(low[c] + to_go(p) - least, 1 + length.of(p), c, p) for c, p in artifact.edges(q)]
    )


def _cheapest_by_sets(artifact: Artifact, limit: int) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield as :func:`cheapest_plans`, over sets of states with the relaxed statements."""
    statements = _statements(artifact)
    root: States = (artifact.root,)
    length, to_go = LengthAhead(artifact), artifact.cost_to_go
    # Lower bounds of the cost and the calls of a plan with this prefix; the prefix, as a plan (0)
    # or to be continued (1); its states.
    frontier: list[tuple[int, int, tuple[int, ...], int, States, Held]]
    start = artifact.cost_to_go(artifact.root), length.of(artifact.root)
    frontier = [(*start, (), 1, root, statements.start)]
    given = 0
    while frontier and given < limit:
        total, _, calls, open_, states, held = heappop(frontier)
        if not open_:
            yield total, tuple(artifact.texts[call] for call in calls)
            given += 1
            continue
        spent = total - min(map(to_go, states))
        if _may_stop(artifact, statements, states, held):
            heappush(frontier, (spent, len(calls), calls, 0, states, held))
        for call, targets, after in _steps(artifact, statements, states, held):
            least = min(map(to_go, targets))
            more = min([length.of(target) for target in targets if to_go(target) == least])
            cost = spent + artifact.cost_low[call] + least
            ends = len(calls) + 1 + more
            heappush(frontier, (cost, ends, (*calls, call), 1, targets, after))


def enumerate_plans(artifact: Artifact, limit: int | None = None) -> Iterator[tuple[str, ...]]:
    """Yield the first `limit` plans in call order.

    Cost: at most D edges between two plans; each dead end of a relaxed artifact is visited once.
    """
    if limit is not None and limit <= 0:
        return
    statements = _statements(artifact)
    calls: list[str] = []
    rows: list[_Row] = []
    dead: set[_Place] = set()
    arrived: _Place | None = (artifact.root,), statements.start
    given = 0
    while True:
        if arrived is not None:
            rows.append((arrived, given, _steps(artifact, statements, *arrived)))
            if _may_stop(artifact, statements, *arrived):
                yield tuple(calls)
                given += 1
                if given == limit:
                    return
        place, before, steps = rows[-1]
        step = next((step for step in steps if step[1:] not in dead), None)
        if step is not None:
            calls.append(artifact.texts[step[0]])
            arrived = step[1], step[2]
            continue
        if given == before and len(dead) < _MOST_DEAD:
            dead.add(place)
        rows.pop()
        if not rows:
            return
        calls.pop()
        arrived = None


def walk(artifact: Artifact, calls: Sequence[str]) -> PlanWalk:
    """Follow `calls` from the root as far as they are allowed.  Cost: B for each call."""
    statements = _statements(artifact)
    states: States = (artifact.root,)
    held = statements.start
    for position, text in enumerate(calls):
        index = artifact.call_index(text)
        steps = _steps(artifact, statements, states, held)
        step = next((step for step in steps if step[0] == index), None)
        if step is None:
            return PlanWalk(position=position, states=states, held=held, allowed=False)
        _, states, held = step
    allowed = _may_stop(artifact, statements, states, held)
    return PlanWalk(position=len(calls), states=states, held=held, allowed=allowed)


def contains(artifact: Artifact, calls: Sequence[str]) -> bool:
    """Return whether `calls` is a plan."""
    return walk(artifact, calls).allowed


def next_calls(artifact: Artifact, at: PlanWalk) -> list[str]:
    """Return the calls that may follow a walk, in order."""
    steps = _steps(artifact, _statements(artifact), at.states, at.held)
    return [artifact.texts[call] for call, _, _ in steps]


def _statements(artifact: Artifact) -> Constraints:
    found = constraints_of(artifact, None)
    if found is not None:
        return found
    from tcc_certs.statements import Constraints

    return Constraints(items=())


def _steps(
    artifact: Artifact, statements: Constraints, states: States, held: Held
) -> Iterator[_Step]:
    for call, targets in artifact.steps(states):
        after = statements.step(held, call)
        if after is not None:
            yield call, targets, after


def _may_stop(artifact: Artifact, statements: Constraints, states: States, held: Held) -> bool:
    return any(map(artifact.accepts, states)) and statements.may_stop(held)


def plan_at(artifact: Artifact, index: int) -> tuple[str, ...]:
    """Return the plan with index `index` in call order, from 0.  Cost: D * B additions.

    Raises:
        IndexError: the artifact has not so many plans.
        ValueError: the counts of the artifact are bounds.
    """
    if artifact.manifest.counts != "exact":
        raise ValueError("plans have no places where counts are bounds")
    q = artifact.root
    calls: list[str] = []
    if not 0 <= index < artifact.plans(q):
        raise IndexError(index)
    while True:
        if artifact.accepts(q):
            if index == 0:
                return tuple(calls)
            index -= 1
        for call, target in artifact.edges(q):
            below = artifact.plans(target)
            if index < below:
                calls.append(artifact.texts[call])
                q = target
                break
            index -= below
        else:
            raise ValueError(f"the counts of state {q} do not add up")
