"""Graphs of residuals: the graph of partial derivatives with its digest, and what strict cuts.

The graph of a core's partial derivatives (docs/spec/core.md, section 6): residuals are met from the
first one on; those that reach no acceptance are left out; digests go from the last ones up, each
residual's edges as a set.

What strict cuts: which calls lack an edge because some answer to them leaves no plan.  The language
of a core with strict tools is the largest part of its plans in which, wherever a call of a strict
tool may come, every answer that it may get may come, and goes on so (docs/spec/core.md, section 5).
A residual is *open* when it has a plan of that part: it may stop, or some call goes on to an open
residual, or some strict call does for all its answers.  Without cycles there is one such set, found
from the ends up.  With cycles it is the greatest set: calls are left out, and residuals that reach
no end any more, until nothing changes.  A call that has no edge
is right to have none when what follows it is not open; a strict call when this is so for one of its
answers.  That the answers of a strict call have edges all or none is C9, and was looked at before.
Cost: linear in the residuals and their edges, calls counted one by one.
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

Edges: TypeAlias = "list[list[tuple[int, int]]]"  # by residual, pairs of a letter and a residual


def reaching(stops: Sequence[bool], edges: Edges) -> list[bool]:
    """Which of them reach one where a plan may stop."""
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
    """The live ones, each after all that it leads to; what is not live loses its edges.

    Those on a cycle, and those that lead to one, are not among them.
    """
    waits = [0] * len(edges)
    sources: list[list[int]] = [[] for _ in edges]
    for source, row in enumerate(edges):
        row[:] = [(letter, target) for letter, target in row if live[source] and live[target]]
        waits[source] = len(row)
        for _, target in row:
            sources[target].append(source)
    order = [residual for residual, wait in enumerate(waits) if live[residual] and not wait]
    for residual in order:  # grows as it is read
        for source in sources[residual]:
            waits[source] -= 1
            if not waits[source]:
                order.append(source)
    return order


Choice: TypeAlias = "tuple[int, ...]"  # what follows a call, or each answer to a strict one


_PLACE = "state_digest of the root"


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivativeGraph:
    """S of the root; how many residuals have a plan, and how many were left out."""

    root: bytes
    live: int
    dead: int


def derivative_graph(
    core: Core, parts: Sequence[StatementPart], most: int, budget: WorkBudget
) -> DerivativeGraph:
    """Return the graph of a core.

    Args:
        parts: the statements that plans satisfy.
        most: the most residuals that are looked at.
        budget: the work that may be done.

    Raises:
        Rejected: G103 where the core has no plan or infinitely many; D201 past a bound.
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
    """The edges of every residual that the first one leads to, numbered as they are met."""
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
    """S of every residual of `order`."""
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
    """The calls without an edge of one walk, and all that they lead to.

    Attributes:
        live: how many residuals behind them have a plan before the cut.
        dead: how many have none.
    """

    __slots__ = ("_choices", "_due", "_edges", "_number", "_residuals", "dead", "live")

    def __init__(self, residuals: Residuals) -> None:
        self._residuals = residuals
        # Residuals of which one at least is not open; the first pair with such a call.
        self._due: dict[Choice, int] = {}
        self._number: dict[int, int] = {}  # the residuals that are looked at, as they were met
        self._edges: Edges = []
        self._choices: list[Sequence[Choice]] = []
        self.live = self.dead = 0

    def note(self, residual: int, row: Container[int], origin: int) -> None:
        """The calls of a residual without an edge in `row`, those of a state beside it."""
        after = self._after(residual)
        for letter, choice in self._chosen(after):
            if letter not in row:
                self._due.setdefault(choice, origin)
        for letter, following in after.items():
            if letter not in row:
                self._number.setdefault(following, len(self._number))

    def explore(self, count: Callable[[int, int], None]) -> None:
        """All that follows; `count` is told how many were met, and how many steps that took."""
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
        """The first pair with a call that should have an edge; None where there is none."""
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
        """The first pair with a call after whose answers every residual is open."""
        return next((at for expected, at in self._due.items() if opened.issuperset(expected)), None)

    def _greatest(self, stops: Sequence[bool], live: Sequence[bool]) -> set[int]:
        """The greatest set of open residuals.

        In each round only calls all of whose answers lead into the set are edges.
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
        """By letter the residual after it."""
        left = self._residuals.left[residual]
        rows = [(letter, table[left]) for letter, table in self._residuals.moves(residual)]
        return {letter: following for letter, following in rows if following is not None}

    def _chosen(self, after: Mapping[int, int]) -> Iterator[tuple[int, Choice]]:
        """A letter and what follows it; of strict calls one letter, and what follows each answer.

        A strict call is left out where some answer to it is no call of the core, or breaks off.
        """
        for letter, following in after.items():
            sisters = self._residuals.alphabet.letters[letter].sisters
            if sisters is None:
                yield letter, (following,)
            elif sisters and letter == sisters[0] and all(s in after for s in sisters):
                yield letter, tuple([after[s] for s in sisters])


def state_digest(accept: bool, edges: Iterable[tuple[bytes, bytes]]) -> bytes:
    """S(q), from the pairs (A(call), S(target)) in call order."""
    parts = [b"\x10\x01" if accept else b"\x10\x00"]
    for call, target in edges:
        parts.append(call)
        parts.append(target)
    return blake(b"".join(parts))
