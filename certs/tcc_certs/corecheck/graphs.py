"""Graphs of residuals: the graph of partial derivatives, and the calls that strictness removes.

The graph of a core's partial derivatives (docs/spec/core.md, section 5) is found from the first
residual on.  Residuals that cannot reach an accepting one are left out.  Digests are computed from
the last residuals back to the first.  The edges of a residual count as a set.

The other part checks the calls that lack an edge because a strict tool might give an answer that
leaves no plan.  The language of a core with strict tools is the largest subset of its plans with
this property: after each prefix to which a call of a strict tool can be added, the call can be
added with each of its answers (docs/spec/core.md, section 5).

A residual is *open* if it has a plan in this subset.  It is open if it may stop, if some call leads
to an open residual, or if a strict call does so with all its answers.  Without cycles there is
exactly one such set of residuals, found from the ends backwards.  With cycles it is the greatest
such set.  To find it, calls and residuals that reach no end are removed until nothing changes.

A call may lack an edge if the residual after it is not open.  A strict call may also lack an edge
if some answer to it leads to a residual that is not open.  C9 has already shown that either all
answers of a strict call have an edge or none has.

Cost: linear in the residuals and their edges, where each call is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tcc_certs.corecheck.letters import KEPT, WorkBudget
from tcc_certs.corecheck.residuals import Residuals
from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import blake, call_digest
from tcc_certs.policy.core import Core
from tcc_certs.policy.places import StatementPart

# for each residual pairs of a letter and a residual
Edges: TypeAlias = "list[list[tuple[int, int]]]"


def reaching(stops: Sequence[bool], edges: Edges) -> list[bool]:
    """For each residual whether it can reach a residual where a plan may stop."""
    sources: list[list[int]] = [[] for _ in edges]
    for source, row in enumerate(edges):
        for _, target in row:
            sources[target].append(source)
    live = list(stops)
    todo = [residual for residual, stop in enumerate(stops) if stop]
    while todo:
        fresh = [source for source in sources[todo.pop()] if not live[source]]
        for source in fresh:
            if not live[source]:
                live[source] = True
                todo.append(source)
    return live


def targets_first(edges: Edges, live: Sequence[bool]) -> list[int]:
    """The live residuals, each after all residuals that it leads to.

    Edges from or to residuals that are not live are deleted from `edges`.  The result lacks
    residuals on a cycle and residuals that lead to one.
    """
    waits = [0] * len(edges)
    sources: list[list[int]] = [[] for _ in edges]
    for source, row in enumerate(edges):
        row[:] = [(letter, target) for letter, target in row if live[source] and live[target]]
        waits[source] = len(row)
        for _, target in row:
            sources[target].append(source)
    order = [residual for residual, wait in enumerate(waits) if live[residual] and not wait]
    for residual in order:  # the loop appends to order
        for source in sources[residual]:
            waits[source] -= 1
            if not waits[source]:
                order.append(source)
    return order


# the residual after a call, or after each answer of a strict call
Choice: TypeAlias = "tuple[int, ...]"


_PLACE = "state_digest of the root"


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivativeGraph:
    """The graph of a core's partial derivatives: its size and the digest of its root.

    Attributes:
        root: the digest S of the root.
        live: how many residuals have a plan.
        dead: how many residuals were left out.
    """

    root: bytes
    live: int
    dead: int


def derivative_graph(
    core: Core, parts: Sequence[StatementPart], most: int, budget: WorkBudget
) -> DerivativeGraph:
    """Return the size of the graph of a core's partial derivatives, and the digest of its root.

    Args:
        parts: the statements that plans have to satisfy.
        most: how many residuals may be looked at.
        budget: the work budget.

    Raises:
        Rejected: G103 the core has no plan or infinitely many; D201 a bound is exceeded.
    """
    residuals = Residuals(core, parts, budget, in_parts=True)
    edges = _explore(residuals, most, budget)
    stops = residuals.stops
    live = reaching(stops, edges)
    if not live[:1] or not live[0]:
        raise Rejected(Code.CORE_DERIVATIVES, _PLACE, "a core with a plan", "none")
    order = targets_first(edges, live)
    if len(order) < sum(live):
        raise Rejected(Code.CORE_DERIVATIVES, _PLACE, "finitely many plans", "a cycle")
    digests = _digests(core, residuals, edges, stops, order, budget)
    return DerivativeGraph(root=digests[0], live=len(order), dead=len(edges) - len(order))


def _explore(residuals: Residuals, most: int, budget: WorkBudget) -> Edges:
    """The edges of each residual that can be reached, in the order of their numbers."""
    found: Edges = []
    met = 0 if residuals.first is None else 1
    while len(found) < met:
        left = residuals.left[len(found)]
        moves = residuals.moves(len(found))
        budget.spend(len(moves))
        after = [(letter, arrivals[left]) for letter, arrivals in moves]
        row = [(letter, target) for letter, target in after if target is not None]
        met = max(met, 1 + max((target for _, target in row), default=0))
        ensure(met <= most, Code.LIMIT, "core", f"at most {most} residuals", "more")
        budget.spend(KEPT * len(row))
        found.append(row)
    return found


def _digests(
    core: Core,
    residuals: Residuals,
    edges: Edges,
    stops: Sequence[bool],
    order: Sequence[int],
    budget: WorkBudget,
) -> dict[int, bytes]:
    """The digest S of each residual of `order`."""
    labels = [call_digest(c.text.encode(), c.cost_low, c.cost_high) for c in core.calls]
    letters = residuals.alphabet.letters
    found: dict[int, bytes] = {}
    for residual in order:
        pairs: set[tuple[int, bytes]] = set()
        for letter, target in edges[residual]:
            budget.spend(len(letters[letter].calls))
            pairs.update((call, found[target]) for call in letters[letter].calls)
        rows = [(labels[call], target) for call, target in sorted(pairs)]
        found[residual] = state_digest(stops[residual], rows)
    return found


class StrictCut:
    """The calls without an edge in one walk, and the residuals that they lead to.

    Attributes:
        live: how many of these residuals have a plan if strictness is ignored.
        dead: how many have none.
    """

    __slots__ = ("_choices", "_due", "_edges", "_number", "_residuals", "dead", "live")

    def __init__(self, residuals: Residuals) -> None:
        self._residuals = residuals
        # From residuals that must not all be open to the first pair that has such a call.
        self._due: dict[Choice, int] = {}
        # the residuals to look at, numbered in the order in which they were found
        self._number: dict[int, int] = {}
        self._edges: Edges = []
        self._choices: list[Sequence[Choice]] = []
        self.live = self.dead = 0

    def note(self, residual: int, row: Container[int], origin: int) -> None:
        """Record the calls of a residual for which the state of the same pair has no edge.

        Args:
            row: the letters with an edge from the state.
            origin: the number of the pair.
        """
        after = self._after(residual)
        for letter, choice in self._chosen(after):
            if letter not in row:
                self._due.setdefault(choice, origin)
        for letter, following in after.items():
            if letter not in row:
                self._number.setdefault(following, len(self._number))

    def explore(self, count: Callable[[int, int], None]) -> None:
        """Find all residuals that the recorded calls lead to.

        Args:
            count: called for each residual with the number of residuals found and the work it took.
        """
        todo = list(self._number)
        for residual in todo:  # grows as it is read
            after = self._after(residual)
            row = []
            for letter, following in after.items():
                if following not in self._number:
                    self._number[following] = len(todo)
                    todo.append(following)
                row.append((letter, self._number[following]))
            self._edges.append(row)
            self._choices.append([choice for _, choice in self._chosen(after)])
            count(len(todo), 1 + KEPT * len(row))

    def unjustified(self) -> int | None:
        """The first pair where a call should have an edge but has none; None if all are right."""
        stops = [self._residuals.stops[residual] for residual in self._number]
        live = reaching(stops, self._edges)
        self.live = sum(live)
        self.dead = len(live) - self.live
        order = targets_first(self._edges, live)
        if len(order) < self.live:  # there are cycles
            return self._first_open(self._greatest(stops, live))
        residuals = list(self._number)
        opened: set[int] = set()
        for number in order:
            choices = self._choices[number]
            if stops[number] or any(opened.issuperset(choice) for choice in choices):
                opened.add(residuals[number])
        return self._first_open(opened)

    def _first_open(self, opened: set[int]) -> int | None:
        """The first pair with a call whose answers all lead to open residuals, or None."""
        return next((at for expected, at in self._due.items() if opened.issuperset(expected)), None)

    def _greatest(self, stops: Sequence[bool], live: Sequence[bool]) -> set[int]:
        """The greatest set of open residuals.

        Each round keeps only the calls whose answers all lead into the current set.  The next set
        contains the residuals that still reach an end.
        """
        residuals = list(self._number)
        opened = {residuals[number] for number, alive in enumerate(live) if alive}
        while True:
            edges: Edges = []
            for number, choices in enumerate(self._choices):
                kept = [choice for choice in choices if opened.issuperset(choice)]
                if residuals[number] not in opened:
                    kept = []
                edges.append([(0, self._number[to]) for choice in kept for to in choice])
            reached = reaching(stops, edges)
            following = {residuals[number] for number, alive in enumerate(reached) if alive}
            following &= opened
            if following == opened:
                return opened
            opened = following

    def _after(self, residual: int) -> Mapping[int, int]:
        """The residual after each letter, for the letters that a plan can follow."""
        left = self._residuals.left[residual]
        rows = [(letter, table[left]) for letter, table in self._residuals.moves(residual)]
        return {letter: following for letter, following in rows if following is not None}

    def _chosen(self, after: Mapping[int, int]) -> Iterator[tuple[int, Choice]]:
        """Pairs of a letter and the residuals after it.

        The letters of a strict call and its sisters give one pair, with the residual after each
        answer.  There is no pair if the core lacks an answer or if no plan follows some answer.
        """
        for letter, following in after.items():
            sisters = self._residuals.alphabet.letters[letter].sisters
            if sisters is None:
                yield letter, (following,)
            elif sisters and letter == sisters[0] and all(s in after for s in sisters):
                yield letter, tuple([after[s] for s in sisters])


def state_digest(accept: bool, edges: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The digest S of a state.

    Args:
        accept: whether the state accepts.
        edges: pairs of the digests A(call) and S(target), in the order of the calls.
    """
    parts = [b"\x10\x01" if accept else b"\x10\x00"]
    for call, target in edges:
        parts.append(call)
        parts.append(target)
    return blake(b"".join(parts))
