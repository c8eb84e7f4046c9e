"""Requires and forbids as small integers: one flag, or a few bits, a statement.

Every class steps over a letter (BROKEN where the statement is), settles against the patterns that
a term can still touch (0 or the like where the statement cannot matter any more, BROKEN where it
cannot be met), and says whether a plan may stop.  Semantics: docs/spec/core.md, section 5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tcc_certs.core.model import Core, Forbid, ForbidBefore, ForbidNext, ForbidWith, Require
from tcc_certs.corecheck.letters import Alphabet

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
class Pattern:
    """A watched pattern: its bit in ``Outlook.touched``, and the letters in it."""

    bit: int
    letters: frozenset[int]


@dataclass(frozen=True, slots=True)
class Before:
    """1 once a call of `first` was there, or once no call of `second` can come."""

    first: Pattern
    second: Pattern

    def step(self, state: int, letter: int) -> int:
        if state == 0 and letter in self.second.letters:
            return BROKEN
        return 1 if letter in self.first.letters else state

    def settle(self, state: int, touched: int) -> int:
        return state if touched & self.second.bit else 1

    def met(self, state: int) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Each:
    """1 while there was a call of `first` since the last one of `second`, or since the start."""

    first: Pattern
    second: Pattern

    def step(self, state: int, letter: int) -> int:
        if letter in self.second.letters:
            return 0 if state else BROKEN
        return 1 if letter in self.first.letters else state

    def settle(self, state: int, touched: int) -> int:
        return state if touched & self.second.bit else 0

    def met(self, state: int) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class After:
    """1 while a call of `second` waits for one of `first`."""

    first: Pattern
    second: Pattern

    def step(self, state: int, letter: int) -> int:
        if letter in self.second.letters:
            return 1
        return 0 if letter in self.first.letters else state

    def settle(self, state: int, touched: int) -> int:
        return BROKEN if state and not touched & self.first.bit else state

    def met(self, state: int) -> bool:
        return state == 0


@dataclass(frozen=True, slots=True)
class NotBefore:
    """1 once a call of `first` was there, while one of `second` can still come."""

    first: Pattern
    second: Pattern

    def step(self, state: int, letter: int) -> int:
        if state and letter in self.second.letters:
            return BROKEN
        return 1 if letter in self.first.letters else state

    def settle(self, state: int, touched: int) -> int:
        return state if touched & self.second.bit else 0

    def met(self, state: int) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class With:
    """Bit 0 once a call of `first` was there, bit 1 for `second`; both are broken."""

    first: Pattern
    second: Pattern

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
class Next:
    """Bit i is set where the last i + 1 calls are in the first i + 1 patterns of the chain."""

    chain: tuple[Pattern, ...]
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
        found[pattern] = Pattern(1 << index, letters)
    return tuple(
        _flag(statement, [found[p] for p in patterns_of(statement)])
        for statement in (*core.requires, *core.forbids)
    )


def _flag(statement: Require | Forbid, patterns: Sequence[Pattern]) -> Flag:
    match statement:
        case Require("before"):
            return Before(*patterns)
        case Require("each"):
            return Each(*patterns)
        case Require():
            return After(*patterns)
        case ForbidBefore():
            return NotBefore(*patterns)
        case ForbidWith():
            return With(*patterns)
        case ForbidNext():
            matches: dict[int, int] = {}
            for place, pattern in enumerate(patterns):
                for letter in sorted(pattern.letters):
                    matches[letter] = matches.get(letter, 0) | 1 << place
            return Next(tuple(patterns), matches)
