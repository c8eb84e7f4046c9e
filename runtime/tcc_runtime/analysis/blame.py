"""Blame: the restrictions that keep a sequence of calls from being a plan, or the start of one.

A restriction is the plan expression, start and goal, a strict tool, or a statement.  The result is
a smallest set of restrictions without which the sequence is possible.  A trial omits restrictions
and follows the calls through the residuals of the core (:mod:`tcc_certs.corecheck.residuals`).  A
restriction that forbids the sequence by itself is in every such set, so it needs one trial.  Other
sets are tried only if these restrictions do not suffice.

Strict tools follow docs/spec/core.md, section 5: a trial removes residuals until each remaining
call of a strict tool continues after each of its answers.

Cost: a walk for each restriction, then trials within a bound.  With strict tools, each round of
removal visits all residuals of the core, within the budget.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final, TypeAlias

from tcc_certs.corecheck.letters import WorkBudget
from tcc_certs.corecheck.residuals import Residuals
from tcc_certs.errors import Rejected
from tcc_certs.policy.core import Core
from tcc_certs.policy.places import StatementPart, parts_of
from tcc_certs.policy.plans import OneCall, Repeat
from tcc_runtime.analysis.statements import Part, WrittenStatement

# Residuals with strict tools.

_Row: TypeAlias = "dict[int, int]"


def strict_edges(residuals: Residuals, budget: WorkBudget) -> Sequence[Mapping[int, int] | None]:
    """Return the letters and next residuals of each residual; None if it leads to no plan.

    Raises:
        Rejected: D201: it takes too much work.
    """
    rows = _explored(residuals, budget)
    while True:
        alive = _alive(residuals, rows, budget)
        changed = False
        for row in rows:
            budget.spend(1 + len(row))
            gone = [letter for letter in row if not _stays(residuals, row, letter, alive)]
            changed = changed or bool(gone)
            for letter in gone:
                del row[letter]
        if not changed:
            return [row if at in alive else None for at, row in enumerate(rows)]


def _explored(residuals: Residuals, budget: WorkBudget) -> list[_Row]:
    rows: list[_Row] = []
    met = 0 if residuals.first is None else 1
    while len(rows) < met:
        left = residuals.left[len(rows)]
        after = [(letter, table[left]) for letter, table in residuals.moves(len(rows))]
        row = {letter: to for letter, to in after if to is not None}
        budget.spend(1 + len(after))
        met = max([met, *(to + 1 for to in row.values())])
        rows.append(row)
    return rows


def _alive(residuals: Residuals, rows: Sequence[_Row], budget: WorkBudget) -> set[int]:
    before: list[list[int]] = [[] for _ in rows]
    for at, row in enumerate(rows):
        budget.spend(1 + len(row))
        for target in row.values():
            before[target].append(at)
    todo = [at for at in range(len(rows)) if residuals.stops[at]]
    alive = set(todo)
    while todo:
        for at in before[todo.pop()]:
            if at not in alive:
                alive.add(at)
                todo.append(at)
    return alive


def _stays(residuals: Residuals, row: _Row, letter: int, alive: set[int]) -> bool:
    if row[letter] not in alive:
        return False
    sisters = residuals.alphabet.letters[letter].sisters
    if sisters is None:
        return True
    return bool(sisters) and all(row.get(sister, -1) in alive for sister in sisters)


# Search for a smallest set.

_STEPS: Final = 200_000  # units of work for one trial
_ALL_STEPS: Final = 4_000_000  # for all trials together


@dataclass(frozen=True, slots=True, kw_only=True)
class Blame:
    """The restrictions that exclude a sequence.

    Attributes:
        sets: smallest sets, in the order of the text: all of them, or only the first.
        smallest: whether the search proved that no smaller set suffices, and that no set of this
            size comes before; False if the bound on work ended the search.
    """

    sets: tuple[tuple[WrittenStatement, ...], ...]
    smallest: bool


def blame(
    core: Core,
    statements: Sequence[WrittenStatement],
    word: Sequence[int],
    *,
    ends: bool,
    every: bool,
) -> Blame:
    """Return the restrictions that exclude plans equal to `word` (`ends`), or beginning with it.

    Args:
        statements: the restrictions, in the order of the text.
        word: indices of calls of the core.
        every: whether to find all smallest sets; False: only the first.
    """
    return _Trials(core, statements, word, ends).blame(every)


class _Spent(WorkBudget):
    """A budget that counts the work."""

    __slots__ = ("spent",)

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.spent = 0

    def spend(self, units: int) -> None:
        self.spent += units
        super().spend(units)


class _Trials:
    def __init__(
        self, core: Core, statements: Sequence[WrittenStatement], word: Sequence[int], ends: bool
    ) -> None:
        self._core = core
        self._statements = statements
        self._word = word
        self._ends = ends
        self._left = _ALL_STEPS
        self._sure = True

    def blame(self, every: bool) -> Blame:
        forced = [s for s in self._statements if not self._possible_alone(s)]
        known = frozenset(forced)
        others = [s for s in self._statements if s not in known]
        found: list[tuple[WrittenStatement, ...]] = []
        for size in range(len(others) + 1):
            for more in self._enough(forced, others, size):
                found.append(more)
                if not every:
                    break
            if found or self._left <= 0:
                break
        if not found:
            self._sure = False
            found = [self._irreducible(forced, others)]
        return Blame(sets=tuple(found), smallest=self._sure)

    def _enough(
        self, forced: Sequence[WrittenStatement], others: Sequence[WrittenStatement], size: int
    ) -> Iterator[tuple[WrittenStatement, ...]]:
        for more in combinations(others, size):
            if self._left <= 0:
                self._sure = False
                return
            chosen = {*forced, *more}
            if self._possible_without(chosen):
                yield tuple([s for s in self._statements if s in chosen])

    def _irreducible(
        self, forced: Sequence[WrittenStatement], others: Sequence[WrittenStatement]
    ) -> tuple[WrittenStatement, ...]:
        """Return restrictions that together exclude the word; each is needed, unless work ran
        out.
        """
        chosen = {*forced, *others}
        self._left = _ALL_STEPS
        for statement in reversed(others):
            if self._left > 0 and self._possible_without(chosen - {statement}):
                chosen.discard(statement)
        return tuple([s for s in self._statements if s in chosen])

    def _possible_alone(self, statement: WrittenStatement) -> bool:
        """Return whether this restriction, without others, allows the word.  A strict tool never
        forbids by itself.
        """
        if statement.kind == "strict":
            return True
        if self._left <= 0:
            self._sure = False
            return True
        return self._tried({statement.part})

    def _possible_without(self, omitted: set[WrittenStatement]) -> bool:
        return self._tried({one.part for one in self._statements if one not in omitted})

    def _tried(self, kept: Collection[Part]) -> bool:
        """Return whether these restrictions allow the word; False, and not sure, if work runs
        out.
        """
        core, parts = restricted(self._core, kept)
        budget = _Spent(_STEPS + 4 * len(core.calls) * (len(parts) + len(core.patterns) + 1))
        try:
            return lets_through(core, parts, self._word, budget, ends=self._ends)
        except Rejected:
            self._sure = False
            return False
        finally:
            self._left -= budget.spent + len(self._statements)  # the cost of selecting them


def restricted(core: Core, kept: Collection[Part]) -> tuple[Core, Sequence[StatementPart]]:
    """Return the core with only these restrictions, and the parts of its statements in plans."""
    chosen = frozenset(kept)
    tools = tuple(
        [
            replace(tool, strict=False) if tool.strict and ("tools", at) not in chosen else tool
            for at, tool in enumerate(core.tools)
        ]
    )
    left = replace(core, tools=tools)
    if ("start", 0) not in chosen:
        left = replace(left, start=None, goals=())
    if ("plan", 0) not in chosen:
        every = ((0, len(core.calls)),)
        left = replace(left, patterns=(every,), rules={}, plan=Repeat(OneCall(0), 0, None))
    parts = [part for part in parts_of(core) if ("statements", part.number) in chosen]
    return left, [part for part in parts if part.place != "gate"]


def lets_through(
    core: Core,
    parts: Sequence[StatementPart],
    word: Sequence[int],
    budget: WorkBudget,
    *,
    ends: bool,
) -> bool:
    """Return whether a plan of `core` is `word` (`ends`), or begins with it.

    Args:
        parts: the statements that plans must satisfy.

    Raises:
        Rejected: D201: the decision takes too much work.
    """
    return Walk(Residuals(core, parts, budget), budget).lets_through(word, ends=ends)


class Walk:
    """Follows words through residuals, and keeps the tables for later words.

    After an error the tables may be incomplete, so the object must not be used again.

    Args:
        budget: the budget of the residuals.
    """

    def __init__(self, residuals: Residuals, budget: WorkBudget) -> None:
        self.budget = budget
        self._residuals = residuals
        self._letter_of = residuals.alphabet.letter_of
        self._is_strict = bool(residuals.alphabet.strict)
        self._step = _strictly(residuals, budget) if self._is_strict else _plainly(residuals)
        self._after: dict[tuple[int | None, int], int | None] = {}
        self._alive: dict[int, bool] = {}

    def lets_through(self, word: Sequence[int], *, ends: bool) -> bool:
        """Return whether a plan is the word (`ends`), or begins with it.

        Raises:
            Rejected: D201: the decision takes too much work.
        """
        at = self._step(None, 0)
        for call in word:
            if at is None:
                return False
            key = at, self._letter_of[call]
            if key not in self._after:
                self._after[key] = self._step(*key)
            at = self._after[key]
        if at is None:
            return False
        if ends:
            return self._residuals.stops[at]
        # With strict tools, edges lead only to residuals that have a plan.
        return self._is_strict or self._is_alive(at)

    def _is_alive(self, first: int) -> bool:
        """Return whether a plan ends after a residual.  Searches breadth first, because residuals
        may be infinitely many.
        """
        seen, todo = {first}, deque([first])
        alive = self._alive
        while todo:
            at = todo.popleft()
            if alive.get(at, self._residuals.stops[at]):
                alive[first] = True
                return True
            if at in alive:
                continue
            for _, arrivals in self._residuals.moves(at):
                self.budget.spend(1)
                target = arrivals[self._residuals.left[at]]
                if target is not None and target not in seen:
                    seen.add(target)
                    todo.append(target)
        alive.update(dict.fromkeys(seen, False))
        return False


_Step: TypeAlias = "Callable[[int | None, int], int | None]"  # maps None to the first residual


def _strictly(residuals: Residuals, budget: WorkBudget) -> _Step:
    edges = strict_edges(residuals, budget)

    def step(at: int | None, letter: int) -> int | None:
        if at is None:
            return 0 if edges[:1] and edges[0] is not None else None
        row = edges[at]
        return None if row is None else row.get(letter)

    return step


def _plainly(residuals: Residuals) -> _Step:
    def step(at: int | None, letter: int) -> int | None:
        if at is None:
            return residuals.first
        for found, arrivals in residuals.moves(at):
            if found == letter:
                return arrivals[residuals.left[at]]
        return None

    return step
