"""Plans of an artifact with cycles: as a graph without counts, and compared with other plans.

The plans are infinitely many, so they have no number.  A state of the graph is a state of the
automaton, with the states of the statements that the automaton leaves to the gate.  These
statements refuse calls, but they never keep a plan from stopping.  For a total of depth the graph
counts calls, and the comparison uses the lengths of plans.
Cost: the edges of each pair of states that is reached, at most `MOST_EDGES`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from tcc_certs.errors import Code, Rejected
from tcc_certs.policy.core import Core
from tcc_certs.policy.places import StatementPart, left_out, parts_of
from tcc_runtime.analysis.difference import OneSided, Plan
from tcc_runtime.analysis.graph import MOST_EDGES, PlanGraph, Row
from tcc_runtime.artifact.constraints import core_calls
from tcc_runtime.artifact.load import Artifact

_FAR: Final = 1 << 62  # calls
# A state of the automaton, calls so far if they are counted, and the states of statements.
_Key: TypeAlias = "tuple[int, int, tuple[int, ...]]"
_Pair: TypeAlias = "tuple[int, int | None]"  # None: the second side lacks the prefix


class Endless:
    """The plans of an artifact with cycles, as a :class:`PlanGraph` without counts.

    Args:
        counted: whether states count their calls, so that plans satisfy the totals of depth.

    Raises:
        Rejected: D204: the artifact leaves statements to a run.
    """

    def __init__(self, artifact: Artifact, *, counted: bool) -> None:
        if artifact.relaxed:
            expected = "every statement in the automaton, or plans of bounded length"
            raise Rejected(Code.ENDLESS, "manifest.relaxed", expected, "statements left out")
        self.artifact = artifact
        self.texts = artifact.texts
        self.cost_low = artifact.cost_low
        self._most = artifact.core.depth if counted else None
        parts = _left_out(artifact.core)
        self._steps = [part.step for part in parts]
        # For each call of the artifact: the parts that it may change, and its class in each part.
        self._classes = [
            [(at, part.class_of[call]) for at, part in enumerate(parts) if part.class_of[call]]
            for call in core_calls(artifact)
        ]
        first = artifact.root, 0, tuple([part.start for part in parts])
        self._keys: list[_Key] = [first]
        self._numbers = {first: 0}
        self._rows: dict[int, Row] = {}
        self.root = 0

    def edges(self, q: int) -> Row:
        """Return the edges of a state as (call, target), in call order."""
        row = self._rows.get(q)
        if row is None:
            row = self._rows[q] = list(self._edges(q))
        return row

    def _edges(self, q: int) -> Iterator[tuple[int, int]]:
        state, made, held = self._keys[q]
        to_go, most = self.artifact.automaton.calls_to_go, self._most
        made += most is not None
        for call, target in self.artifact.edges(state):
            after = self._after(held, call)
            if after is None or (most is not None and to_go[target] > most - made):
                continue
            key = target, made, after
            number = self._numbers.setdefault(key, len(self._keys))
            if number == len(self._keys):
                self._keys.append(key)
            yield call, number

    def _after(self, held: tuple[int, ...], call: int) -> tuple[int, ...] | None:
        """Return the states of the statements after a call; None: a statement refuses the call."""
        classes = self._classes[call]
        if not classes:
            return held
        after = list(held)
        for at, number in classes:
            state = self._steps[at](held[at], number)
            if state is None:
                return None
            after[at] = state
        return tuple(after)

    def accepts(self, q: int) -> bool:
        """Return whether a plan may stop in a state."""
        return self.artifact.accepts(self._keys[q][0])

    def fewest(self, q: int) -> int:
        """Return the fewest calls after which a plan may stop."""
        return self.artifact.automaton.calls_to_go[self._keys[q][0]]

    def rank(self, q: int) -> int:
        """Return an upper bound of the calls that may follow."""
        return _FAR if self._most is None else self._most - self._keys[q][1]

    def plans(self, q: int) -> int:
        """Raise Rejected: see :meth:`Artifact.plans`."""
        return self.artifact.plans(q)

    def cost_to_go(self, q: int) -> int:
        """Raise Rejected: see :meth:`Artifact.cost_to_go`."""
        return self.artifact.cost_to_go(q)

    def used(self) -> Sequence[str]:
        """Return the texts of the calls on edges, in order."""
        return self.texts


def _left_out(core: Core) -> list[StatementPart]:
    """Return the parts of the statements that the automaton leaves to the gate, without totals of
    depth.
    """
    left = set(left_out(core)) - set(core.depth_totals)
    return [part for part in parts_of(core) if part.number in left]


def endless_difference(old: Artifact, new: Artifact, graphs: Sequence[PlanGraph]) -> list[OneSided]:
    """Return the shortest plan that only the new artifact has, and the shortest that only the old
    one has.

    Args:
        graphs: the graphs of the old and the new artifact, without counts of calls.

    Raises:
        Rejected: D201: the product has more than `MOST_EDGES` pairs of edges.
    """
    before, after = graphs
    depths = [one.core.depth if one.cyclic else None for one in (old, new)]
    left = [{part.text for part in _left_out(one.core)} if one.cyclic else None
            for one in (old, new)]  # fmt: skip
    if (old.manifest.root, depths[0], left[0]) == (new.manifest.root, depths[1], left[1]):
        return [OneSided(plans=None, shortest=None, cheapest=None)] * 2
    sides = ((after, before, depths[1], depths[0]), (before, after, depths[0], depths[1]))
    return [
        OneSided(plans=None, shortest=_shortest(one, other, most, others), cheapest=None)
        for one, other, most, others in sides
    ]


def _shortest(
    one: PlanGraph, other: PlanGraph, most: int | None, others: int | None
) -> Plan | None:
    """Return the shortest plan with at most `most` calls that the other side lacks, or None.

    Args:
        others: the most calls of a plan of the other side; None: no bound.
    """
    found = _only_in(one, other)
    if found is not None and most is not None and len(found) > most:
        found = None
    if others is None:
        return found
    # A plan of both automata may be too long for the other side.
    last = most if found is None else len(found) - 1
    longer = _longer_than(one, others, last)
    return found if longer is None else longer


def _only_in(one: PlanGraph, other: PlanGraph) -> Plan | None:
    """Return the first of the shortest plans that the other side lacks, or None."""
    if one.root is None:
        return None
    call_of = {text: call for call, text in enumerate(other.texts)}
    beside = [call_of.get(text, -1) for text in one.texts]
    start: _Pair = (one.root, other.root)
    came: dict[_Pair, tuple[_Pair, int] | None] = {start: None}
    todo, edges = [start], 0
    for pair in todo:  # grows during the loop
        q, p = pair
        if one.accepts(q) and (p is None or not other.accepts(p)):
            return _traced(one, came, pair)
        ahead = {} if p is None else dict(other.edges(p))
        for call, target in one.edges(q):
            edges += 1
            after = (target, ahead.get(beside[call]))
            if after not in came:
                came[after] = pair, call
                todo.append(after)
        if edges > MOST_EDGES:
            expected = f"at most {MOST_EDGES} pairs of edges"
            raise Rejected(Code.LIMIT, "plans", expected, "more")
    return None


def _traced(one: PlanGraph, came: dict[_Pair, tuple[_Pair, int] | None], pair: _Pair) -> Plan:
    calls = []
    while (step := came[pair]) is not None:
        pair, call = step
        calls.append(one.texts[call])
    return tuple(reversed(calls))


def _longer_than(one: PlanGraph, calls: int, most: int | None) -> Plan | None:
    """Return a shortest plan with more than `calls` and at most `most` calls, or None.

    Raises:
        Rejected: D201: the search looks at too many edges.
    """
    if one.root is None:
        return None
    layers: list[dict[int, tuple[int, int] | None]] = [{one.root: None}]
    edges = 0
    while layers[-1] and (most is None or len(layers) - 1 <= most):
        layer, length = layers[-1], len(layers) - 1
        if length > calls:
            ends = next((q for q in layer if one.accepts(q)), None)
            if ends is not None:
                return tuple(reversed(list(_back(one, layers, ends))))
        following: dict[int, tuple[int, int] | None] = {}
        for q in layer:
            for call, target in one.edges(q):
                edges += 1
                following.setdefault(target, (q, call))
        if edges > MOST_EDGES:
            raise Rejected(Code.LIMIT, "plans", f"at most {MOST_EDGES} edges", "more")
        layers.append(following)
    return None


def _back(
    one: PlanGraph, layers: Sequence[dict[int, tuple[int, int] | None]], q: int
) -> Iterator[str]:
    for layer in reversed(layers):
        step = layer[q]
        if step is not None:
            q, call = step
            yield one.texts[call]
