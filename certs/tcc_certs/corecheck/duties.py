"""Duties: what the signatures, requires and forbids of a core still ask, as small integers.

A state of the duties is the state of the signatures and one number for each require and each
forbid.  Stepping over a letter gives the next state, or None where a statement is broken; settling
against an outlook gives up where a duty can no longer be met, and forgets what cannot matter.
Cost of a step: the number of statements.
"""

from __future__ import annotations

from typing import NamedTuple

from tcc_certs.core.model import Core
from tcc_certs.corecheck.flags import BROKEN, flags_of
from tcc_certs.corecheck.letters import Alphabet
from tcc_certs.corecheck.routes import Routes


class State(NamedTuple):
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
        self.start = State(self._routes.start, (0,) * len(self._flags))

    def step(self, state: State, letter: int) -> State | None:
        """The duties after a call of `letter`; None where it breaks one."""
        place = self._routes.move(state.place, letter)
        flags = tuple(f.step(s, letter) for f, s in zip(self._flags, state.flags, strict=True))
        return None if place == BROKEN or BROKEN in flags else State(place, flags)

    def settle(self, state: State, touched: int) -> State | None:
        """The same duties, forgetting what cannot matter; None where one cannot be met.

        `touched` is that of the outlook of the term that goes with them.
        """
        pairs = zip(self._flags, state.flags, strict=True)
        flags = tuple(flag.settle(value, touched) for flag, value in pairs)
        return None if BROKEN in flags else State(state.place, flags)

    def least_calls(self, state: State) -> int:
        """The fewest calls that lead to a goal of the signatures."""
        return self._routes.least_calls[state.place]

    def met(self, state: State) -> bool:
        """Whether a plan may stop here."""
        pairs = zip(self._flags, state.flags, strict=True)
        return self.least_calls(state) == 0 and all(flag.met(value) for flag, value in pairs)
