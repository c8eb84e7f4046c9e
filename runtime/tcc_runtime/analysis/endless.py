"""Plans of an artifact with cycles: as a graph without counts, and compared with other plans.

There are infinitely many plans, so no number of them is given.  A total of depth is no part of the
automaton; the graph counts calls, and the comparison looks at the lengths of plans.
Cost: the edges of each pair of states that is reached, at most `MOST_EDGES`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from tcc_certs.errors import Code, Rejected
from tcc_runtime.analysis.difference import OneSided, Plan
from tcc_runtime.analysis.graph import MOST_EDGES, PlanGraph, Row
from tcc_runtime.artifact.load import Artifact

_FAR: Final = 1 << 62  # calls
_Pair: TypeAlias = "tuple[int, int | None]"  # None: the second side lacks the prefix


class Endless:
    """The plans of an artifact with cycles, as :class:`PlanGraph`; it has no counts.

    Args:
        counted: whether states count their calls, so that plans satisfy the totals of depth.

    Raises:
        Rejected: D204 the artifact leaves statements to a run.
    """

    def __init__(self, artifact: Artifact, *, counted: bool) -> None:
        if artifact.relaxed:
            expected = "every statement in the automaton, or plans of bounded length"
            raise Rejected(Code.ENDLESS, "manifest.relaxed", expected, "statements left out")
        self.artifact = artifact
        self.texts = artifact.texts
        self.cost_low = artifact.cost_low
        self.root = artifact.root
        self._size = artifact.manifest.states
        self._most = artifact.core.depth if counted else None

    def edges(self, q: int) -> Row:
        """The edges of a state as (call, target), in call order."""
        made, state = divmod(q, self._size)
        row = self.artifact.edges(state)
        if self._most is None:
            return row
        to_go, left = self.artifact.automaton.calls_to_go, self._most - made - 1
        first = (made + 1) * self._size
        return [(call, first + target) for call, target in row if to_go[target] <= left]

    def accepts(self, q: int) -> bool:
        """Whether a plan may stop in a state."""
        return self.artifact.accepts(q % self._size)

    def fewest(self, q: int) -> int:
        """The fewest calls after which a plan may stop."""
        return self.artifact.automaton.calls_to_go[q % self._size]

    def rank(self, q: int) -> int:
        """An upper bound on the calls that may follow."""
        return _FAR if self._most is None else self._most - q // self._size

    def plans(self, q: int) -> int:
        """Raise: see :meth:`Artifact.plans`."""
        return self.artifact.plans(q)

    def cost_to_go(self, q: int) -> int:
        """Raise: see :meth:`Artifact.cost_to_go`."""
        return self.artifact.cost_to_go(q)

    def used(self) -> Sequence[str]:
        """The texts of the calls on edges, in order."""
        return self.texts


def endless_difference(old: Artifact, new: Artifact, graphs: Sequence[PlanGraph]) -> list[OneSided]:
    """The plans that only the new, and that only the old, artifact has: the shortest of each.

    Args:
        graphs: of the old and the new artifact, without counts of calls.

    Raises:
        Rejected: D201 there are more than `MOST_EDGES` pairs of edges.
    """
    before, after = graphs
    depths = [one.core.depth if one.cyclic else None for one in (old, new)]
    if old.manifest.root == new.manifest.root and depths[0] == depths[1]:
        return [OneSided(plans=None, shortest=None, cheapest=None)] * 2
    sides = ((after, before, depths[1], depths[0]), (before, after, depths[0], depths[1]))
    return [
        OneSided(plans=None, shortest=_shortest(one, other, most, others), cheapest=None)
        for one, other, most, others in sides
    ]


def _shortest(
    one: PlanGraph, other: PlanGraph, most: int | None, others: int | None
) -> Plan | None:
    """The shortest plan of one side of at most `most` calls that the other side lacks.

    Args:
        others: the most calls of a plan of the other side.
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
    """The first of the shortest plans of one side that the other side lacks."""
    if one.root is None:
        return None
    call_of = {text: call for call, text in enumerate(other.texts)}
    beside = [call_of.get(text, -1) for text in one.texts]
    start: _Pair = (one.root, other.root)
    came: dict[_Pair, tuple[_Pair, int] | None] = {start: None}
    todo, edges = [start], 0
    for pair in todo:  # grows as it is read
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
    """A shortest plan of more than `calls` and at most `most` calls.

    Raises:
        Rejected: D201 the states by their numbers of calls are too many.
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
