"""Duties: what the signatures, requires and forbids of a core still ask, as small integers.

Semantics: docs/spec/core.md, section 5.  A state of the duties is the state of the signatures and a
flag, one bit or a few, for each require and each forbid.  Stepping over a letter gives the next
state, or None where a statement is broken; settling against an outlook gives up where a duty can no
longer be met, and forgets what cannot matter.
Cost of a step: the number of statements; the distances to a goal, once, states times letters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeAlias

from tcc_certs.core.model import Core, Forbid, ForbidBefore, ForbidNext, ForbidWith, Require
from tcc_certs.corecheck.letters import Alphabet, Letter
from tcc_certs.corecheck.outlook import FAR

BROKEN = -1


class Flag(Protocol):
    """One statement; its state is an integer, 0 at the start of a plan."""

    def step(self, state: int, letter: int) -> int:
        """The state after a letter, or BROKEN."""

    def settle(self, state: int, touched: int) -> int:
        """The same duty, given the watched patterns that are still in reach; or BROKEN."""

    def met(self, state: int) -> bool:
        """Whether a plan may stop."""


@dataclass(frozen=True, slots=True)
class WatchedPattern:
    """A watched pattern: its bit in ``Outlook.touched``, and the letters in it."""

    bit: int
    letters: frozenset[int]


# By statement what its bit becomes: with a call of the second pattern, by what it was (else the
# first pattern is looked at); with a call of the first; and, by what it was, once no call of the
# named pattern can come any more.
_Bit: TypeAlias = "tuple[Mapping[int, int], int, Literal['first', 'second'], Mapping[int, int]]"
_BITS: Mapping[str, _Bit] = {
    "before": ({0: BROKEN}, 1, "second", {0: 1}),  # 1 once a first was there
    "each": ({0: BROKEN, 1: 0}, 1, "second", {1: 0}),  # 1 while a first was there since a second
    "after": ({0: 1, 1: 1}, 0, "first", {1: BROKEN}),  # 1 while a second waits for a first
    "not before": ({1: BROKEN}, 1, "second", {1: 0}),  # 1 once a first was there
}


@dataclass(frozen=True, slots=True)
class PairFlag:
    """A require, or a forbid ``before``: one bit, by its row of the table."""

    kind: str
    first: WatchedPattern
    second: WatchedPattern

    def step(self, state: int, letter: int) -> int:
        by_second, by_first, _, _ = _BITS[self.kind]
        if state in by_second and letter in self.second.letters:
            return by_second[state]
        return by_first if letter in self.first.letters else state

    def settle(self, state: int, touched: int) -> int:
        _, _, watched, gone = _BITS[self.kind]
        pattern = self.first if watched == "first" else self.second
        return state if touched & pattern.bit else gone.get(state, state)

    def met(self, state: int) -> bool:
        return self.kind != "after" or state == 0


@dataclass(frozen=True, slots=True)
class WithFlag:
    """Bit 0 once a call of `first` was there, bit 1 for `second`; both are broken."""

    first: WatchedPattern
    second: WatchedPattern

    def step(self, state: int, letter: int) -> int:
        state |= (letter in self.first.letters) | (letter in self.second.letters) << 1
        return BROKEN if state == 3 else state

    def settle(self, state: int, touched: int) -> int:
        first = state & 1 or touched & self.first.bit
        second = state & 2 or touched & self.second.bit
        return state if first and second else 0

    def met(self, state: int) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class NextFlag:
    """Bit i is set where the last i + 1 calls are in the first i + 1 patterns of the chain."""

    chain: tuple[WatchedPattern, ...]
    matches: Mapping[int, int]  # letter -> bit i where it is in the i-th pattern

    def step(self, state: int, letter: int) -> int:
        state = (state << 1 | 1) & self.matches.get(letter, 0)
        return BROKEN if state >> (len(self.chain) - 1) else state

    def settle(self, state: int, touched: int) -> int:
        return state if touched & self.chain[-1].bit else 0

    def met(self, state: int) -> bool:
        return True


def patterns_of(statement: Require | Forbid) -> Sequence[int]:
    """The patterns of a statement."""
    if isinstance(statement, ForbidNext):
        return statement.patterns
    return (statement.first, statement.second)


def watched_patterns(core: Core) -> tuple[int, ...]:
    """The patterns of all requires and forbids; the i-th has bit i of ``Outlook.touched``."""
    statements = (*core.requires, *core.forbids)
    return tuple(sorted({pattern for s in statements for pattern in patterns_of(s)}))


def flags_of(core: Core, alphabet: Alphabet) -> tuple[Flag, ...]:
    """One flag for each require and each forbid, in order."""
    found = {}
    for index, pattern in enumerate(watched_patterns(core)):
        groups = sorted(alphabet.groups[pattern])
        letters = frozenset(letter for group in groups for letter in alphabet.by_group[group])
        found[pattern] = WatchedPattern(1 << index, letters)
    return tuple(
        _flag(statement, [found[p] for p in patterns_of(statement)])
        for statement in (*core.requires, *core.forbids)
    )


def _flag(statement: Require | Forbid, patterns: Sequence[WatchedPattern]) -> Flag:
    match statement:
        case Require(order):
            return PairFlag(order, *patterns)
        case ForbidBefore():
            return PairFlag("not before", *patterns)
        case ForbidWith():
            return WithFlag(*patterns)
        case ForbidNext():
            matches: dict[int, int] = {}
            for place, pattern in enumerate(patterns):
                for letter in sorted(pattern.letters):
                    matches[letter] = matches.get(letter, 0) | 1 << place
            return NextFlag(tuple(patterns), matches)


class Routes:
    """The states of the signatures by number; a grammar without `start` has one, and it is a goal.

    Attributes:
        start: the number of the start state.
        least_calls: for each state the fewest calls to a goal, FAR where none leads there.
    """

    __slots__ = ("_moves", "least_calls", "start")

    def __init__(self, core: Core, letters: Sequence[Letter]) -> None:
        self.start = 0
        signed = core.start is not None
        names = _names(core, letters) if signed else [""]
        number = {name: index for index, name in enumerate(names)}
        # For each letter the state that it takes, or -1 for any, and the state that it gives.
        self._moves: list[tuple[int, int]] = [
            (number[letter.takes], number[letter.gives])
            if signed and letter.takes is not None and letter.gives is not None
            else (-1, 0)
            for letter in letters
        ]
        goals = {number[goal] for goal in core.goals} if signed else {0}
        self.least_calls = _distances(len(names), goals, self._moves)

    def move(self, place: int, letter: int) -> int:
        """The state after a letter, or BROKEN."""
        takes, gives = self._moves[letter]
        if takes < 0:
            return place
        return gives if takes == place else BROKEN


def _names(core: Core, letters: Sequence[Letter]) -> list[str]:
    """The start first, then all other states in order."""
    ends = {end for letter in letters for end in (letter.takes, letter.gives) if end is not None}
    first = core.start or ""
    return [first, *sorted((ends | set(core.goals)) - {first})]


def _distances(size: int, goals: set[int], moves: Sequence[tuple[int, int]]) -> list[int]:
    """Fewest calls to a goal, breadth first against the moves."""
    into: list[list[int]] = [[] for _ in range(size)]
    for takes, gives in sorted({move for move in moves if move[0] >= 0}):
        into[gives].append(takes)
    found = [FAR] * size
    layer = sorted(goals)
    for goal in layer:
        found[goal] = 0
    calls = 0
    while layer:
        calls += 1
        layer = [p for place in layer for p in into[place] if found[p] == FAR]
        for place in layer:
            found[place] = calls
    return found


class DutyState(NamedTuple):
    """The state of the signatures, the flags."""

    place: int
    flags: tuple[int, ...]


class Duties:
    """The statements of one core, limits aside.

    Attributes:
        start: the state of the empty prefix, not yet settled.
    """

    __slots__ = ("_flags", "_routes", "start")

    def __init__(self, core: Core, alphabet: Alphabet) -> None:
        self._flags = flags_of(core, alphabet)
        self._routes = Routes(core, alphabet.letters)
        self.start = DutyState(self._routes.start, (0,) * len(self._flags))

    def step(self, state: DutyState, letter: int) -> DutyState | None:
        """The duties after a call of `letter`; None where it breaks one."""
        place = self._routes.move(state.place, letter)
        flags = tuple(f.step(s, letter) for f, s in zip(self._flags, state.flags, strict=True))
        return None if place == BROKEN or BROKEN in flags else DutyState(place, flags)

    def settle(self, state: DutyState, touched: int) -> DutyState | None:
        """The same duties, forgetting what cannot matter; None where one cannot be met.

        `touched` is that of the outlook of the term that goes with them.
        """
        pairs = zip(self._flags, state.flags, strict=True)
        flags = tuple(flag.settle(value, touched) for flag, value in pairs)
        return None if BROKEN in flags else DutyState(state.place, flags)

    def least_calls(self, state: DutyState) -> int:
        """The fewest calls that lead to a goal of the signatures."""
        return self._routes.least_calls[state.place]

    def met(self, state: DutyState) -> bool:
        """Whether a plan may stop here."""
        pairs = zip(self._flags, state.flags, strict=True)
        return self.least_calls(state) == 0 and all(flag.met(value) for flag, value in pairs)
