"""What strict cuts: which calls lack an edge because some answer to them leaves no plan.

The language of a core with strict tools is the largest part of its plans in which, wherever a call
of a strict tool may come, every answer that it may get may come, and goes on so (docs/spec/core.md,
section 5).  A residual is *open* when it has a plan of that part: it may stop, or some call goes on
to an open residual, or some strict call does for all its answers.  The plans before the cut are
finitely many, so there is one such set, found from the ends up.  A call that has no edge is right
to have none when what follows it is not open; a strict call when this is so for one of its answers.
That the answers of a strict call have edges all or none is C9, and was looked at before.
Cost: linear in the residuals behind calls without an edge, and their steps.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import TypeAlias

from tcc_certs.corecheck.budget import KEPT
from tcc_certs.corecheck.graph import Edges, reaching, targets_first
from tcc_certs.corecheck.residuals import Residuals
from tcc_certs.errors import Code, Rejected

Choice: TypeAlias = "tuple[int, ...]"  # what follows a call, or each answer to a strict one


class Cut:
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
        """The first pair with a call that should have an edge; None where there is none.

        Raises:
            Rejected: G102 where the core has infinitely many plans before the cut.
        """
        stops = [self._residuals.stops[residual] for residual in self._number]
        live = reaching(stops, self._edges)
        self.live = sum(live)
        self.dead = len(live) - self.live
        order = targets_first(self._edges, live)
        if len(order) < self.live:
            expected = "finitely many plans before the cut"
            raise Rejected(Code.CORE_NEXT_CALL, "core", expected, "a cycle")
        residuals = list(self._number)
        opened: set[int] = set()
        for number in order:
            choices = self._choices[number]
            if stops[number] or any(opened.issuperset(choice) for choice in choices):
                opened.add(residuals[number])
        return next((at for expected, at in self._due.items() if opened.issuperset(expected)), None)

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
