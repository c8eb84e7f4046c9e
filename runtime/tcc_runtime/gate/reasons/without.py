"""The residuals of a core without some of its statements, where a call that is refused would lead.

Normative text: docs/gate.md.  Which plans go on is asked of the residuals that
:mod:`tcc_certs.corecheck` reads off the core; what is left out is one bit each of a mask.
Cost: that of the residuals that are met, within the work that a question may take.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, TypeAlias

from tcc_certs.core.model import Core
from tcc_certs.corecheck.duties import Duties, DutyState, Flag, Routes
from tcc_certs.corecheck.residuals import Drain, Meters, Residuals

if TYPE_CHECKING:
    from tcc_runtime.gate.reasons import StatementsAlong

Mask: TypeAlias = int  # a set of statements; bit 0 is the plan
Standing: TypeAlias = "tuple[int, tuple[int, ...]]"  # a control, and the sum of each meter so far
PLAN: Final = 1


def told_apart(core: Core) -> Core:
    """The core with a call set for each strict tool, which no letter mixes, and one of all."""
    size = len(core.calls)
    calls: dict[int, list[tuple[int, int]]] = {
        at: [] for at, tool in enumerate(core.tools) if tool.strict
    }
    for number, call in enumerate(core.calls):
        if call.tool in calls:
            calls[call.tool].append((number, number + 1))
    sets = [tuple(found) for found in calls.values()]
    return replace(core, patterns=(*core.patterns, *sets, ((0, size),)))


class _Free:
    """A require or a forbid that is left out."""

    __slots__ = ()

    def step(self, state: int, letter: int) -> int:
        return 0

    def settle(self, state: int, touched: int) -> int:
        return 0

    def met(self, state: int) -> bool:
        return True


class _Anywhere(Routes):
    """Signatures that are left out: one state, and it is a goal."""

    __slots__ = ()

    def __init__(self) -> None:
        self.start = 0
        self.least_calls = [0]

    def move(self, place: int, letter: int) -> int:
        return place


class _Duties(Duties):
    """The signatures, requires and forbids that are not left out, at their old places."""

    __slots__ = ()

    def __init__(self, flags: Sequence[Flag], routes: Routes) -> None:
        self._flags = tuple(flags)
        self._routes = routes
        self.start = DutyState(routes.start, (0,) * len(self._flags))


class Without(Residuals):
    """The residuals of a core without some statements, entered where a session stands.

    Nothing of it depends on how the session came there.
    """

    __slots__ = ("_alive", "_kept", "_out", "_rows", "_signed", "_sisters", "_statements")

    def __init__(self, statements: StatementsAlong, out: Mask) -> None:
        work = statements.work
        work.spend(len(statements.named) + len(statements.alphabet.letters))
        self._statements = statements
        self._out = out
        self._budget = work
        self.alphabet = replace(statements.alphabet, bounds=statements.bounds(out))
        self._terms, self._forecast = statements.free if out & PLAN else statements.planned
        self._partials = None
        self._kept = [not of & out for of in statements.duties]
        flags = [
            flag if kept else _Free()
            for flag, kept in zip(statements.flags, self._kept, strict=True)
        ]
        self._signed = not statements.signed & out
        self._duties = _Duties(flags, statements.routes if self._signed else _Anywhere())
        self._meters = Meters(self.alphabet)
        self._controls = {}
        self._arrivals = {}
        self._begun, self._after, self._tables = {}, {}, {}
        self.control = []
        self.left = []
        self.stops = []
        self.first = None
        self._alive: dict[int, bool] = {}
        self._rows: dict[int, Mapping[int, int]] = {}
        strict = [(at, statements.sisters(at, out)) for at in range(len(self.alphabet.letters))]
        self._sisters = {letter: sisters for letter, sisters in strict if sisters is not None}

    def lives(self, standing: Standing) -> bool:
        """Whether a plan of this core goes on from there, and ends."""
        at = self._entered(standing)
        return at is not None and self._is_alive(at)

    def _entered(self, standing: Standing) -> int | None:
        """The residual of what was called; None where it is seen to have no plan."""
        control, sums = standing
        term, state = self._statements.controls[control]
        term = self._terms.plan if self._out & PLAN else term
        ahead = self._forecast.of(term)
        pairs = zip(state.flags, self._kept, strict=True)
        flags = tuple([value if kept else 0 for value, kept in pairs])
        place = state.place if self._signed else 0
        if ahead is None:
            return None
        settled = self._duties.settle(DutyState(place, flags), ahead.touched)
        if settled is None:
            return None
        drain = Drain(self._meters, sums, ahead, self._duties.least_calls(settled))
        left = drain[self._meters.start]
        return None if left is None else self._control_of(term, settled)[left]

    def _row(self, at: int) -> Mapping[int, int]:
        """The residuals after each letter."""
        row = self._rows.get(at)
        if row is None:
            left = self.left[at]
            moves = self.moves(at)
            self._budget.spend(len(moves))
            arrived = [(letter, arrivals[left]) for letter, arrivals in moves]
            row = self._rows[at] = {letter: to for letter, to in arrived if to is not None}
        return row

    def _is_alive(self, first: int) -> bool:
        """Whether a plan goes on from a residual, and ends; strict tools are held to.

        What is known to be dead only grows, so this comes to an end.
        """
        while first not in self._alive:
            self._alive.update(dict.fromkeys(self._witness(first), True))
        return self._alive[first]

    def _witness(self, first: int) -> Mapping[int, None]:
        """Residuals each of which goes on to an end among them, and the answers to strict calls.

        Nothing where one of them turns out to be dead.
        """
        found: dict[int, None] = {}
        todo = [first]
        while todo:
            at = todo.pop()
            if at in found or self._alive.get(at):
                continue
            path = self._path(at, found)
            if path is None:
                return {}
            for at, letter in path:
                found[at] = None
                todo.extend([self._row(at)[sister] for sister in self._sisters.get(letter, ())])
        return found

    def _path(self, first: int, found: Mapping[int, None]) -> list[tuple[int, int]] | None:
        """Residuals and letters on the way to an end, those that seem the nearest first.

        Where there is none, all that was met is dead.
        """
        came: dict[int, tuple[int, int, int]] = {first: (-1, -1, 0)}
        todo = [(self._nearest(first), 0, first)]
        while todo:
            at = heappop(todo)[2]
            if self.stops[at] or at in found or self._alive.get(at):
                return self._way(at, came)
            calls = came[at][2] + 1
            for letter, target in self._row(at).items():
                if target not in came and self._stays(at, letter):
                    came[target] = at, letter, calls
                    heappush(todo, (calls + self._nearest(target), len(came), target))
        self._alive.update(dict.fromkeys(came, False))
        return None

    def _way(self, last: int, came: Mapping[int, tuple[int, int, int]]) -> list[tuple[int, int]]:
        way = [(last, -1)]
        before, letter, _ = came[last]
        while before >= 0:
            way.append((before, letter))
            before, letter, _ = came[before]
        return way

    def _nearest(self, at: int) -> int:
        """The fewest calls that its term ends after."""
        ahead = self._forecast.of(self.control[at].term)
        return 0 if ahead is None else ahead.low[0]

    def _stays(self, at: int, letter: int) -> bool:
        """Whether nothing after the letter, or after its sisters, is known to be dead."""
        row, sisters = self._row(at), self._sisters.get(letter)
        if sisters is None:
            return self._alive.get(row[letter]) is not False
        targets = [row.get(sister) for sister in sisters]
        return bool(targets) and all(
            to is not None and self._alive.get(to) is not False for to in targets
        )
