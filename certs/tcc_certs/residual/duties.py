"""Duties: what the statements of a core beside its expressions still ask, as small integers.

A state of the duties is a tuple: what each meter has left (None once its limit cannot bind any
more), the state of the signatures, and one number for each require and each forbid.  Stepping over
a letter gives the next state, or None where a statement is broken; settling against an outlook
gives up where a duty can no longer be met, and forgets what can no longer matter.
Cost of a step: the number of statements.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tcc_certs.grammar import Core
from tcc_certs.residual.flags import BROKEN, flags_of
from tcc_certs.residual.letters import Alphabet
from tcc_certs.residual.outlook import Outlook
from tcc_certs.residual.routes import Routes


class State(NamedTuple):
    """What each meter has left, the state of the signatures, the flags."""

    left: tuple[int | None, ...]
    place: int
    flags: tuple[int, ...]


class Duties:
    """The statements of one core.

    Attributes:
        start: the state of the empty prefix, not yet settled.
    """

    __slots__ = ("_flags", "_heaviest", "_letters", "_lightest", "_routes", "start")

    def __init__(self, core: Core, alphabet: Alphabet) -> None:
        self._letters = alphabet.letters
        idle = [(0,) * len(alphabet.bounds)]
        weights = [letter.weights for letter in alphabet.letters] or idle
        self._lightest = [min(column) for column in zip(*weights, strict=True)]
        self._heaviest = [max(column) for column in zip(*weights, strict=True)]
        self._flags = flags_of(core, alphabet)
        self._routes = Routes(core, alphabet.letters)
        self.start = State(alphabet.bounds, self._routes.start, (0,) * len(self._flags))

    def step(self, state: State, letter: int) -> State | None:
        """The duties after a call of `letter`; None where it breaks one."""
        place = self._routes.move(state.place, letter)
        flags = tuple(f.step(s, letter) for f, s in zip(self._flags, state.flags, strict=True))
        if place == BROKEN or BROKEN in flags:
            return None
        weights = self._letters[letter].weights
        left = [None if r is None else r - w for r, w in zip(state.left, weights, strict=True)]
        return State(tuple(left), place, flags)

    def settle(self, state: State, ahead: Outlook) -> State | None:
        """The same duties, forgetting what cannot matter; None where one cannot be met.

        `ahead` is the outlook of the term that goes with them.
        """
        depth = state.left[0]
        calls = ahead.high[0] if depth is None else min(depth, ahead.high[0])
        if self._routes.least_calls[state.place] > calls:
            return None
        left: list[int | None] = []
        for meter, rest in enumerate(state.left):
            if rest is None:
                left.append(None)
                continue
            low, high = ahead.low[meter], ahead.high[meter]
            if meter:  # the depth bounds the other meters, and never itself
                low = max(low, min(0, calls * self._lightest[meter]))
                high = min(high, max(0, calls * self._heaviest[meter]))
            if low > rest:
                return None
            left.append(None if high <= rest else rest)
        pairs = zip(self._flags, state.flags, strict=True)
        flags = tuple(flag.settle(value, ahead.touched) for flag, value in pairs)
        return None if BROKEN in flags else State(tuple(left), state.place, flags)

    def met(self, state: State) -> bool:
        """Whether a plan may stop here."""
        return (
            self._routes.least_calls[state.place] == 0
            and _none_overdrawn(state.left)
            and all(f.met(s) for f, s in zip(self._flags, state.flags, strict=True))
        )


def _none_overdrawn(left: Iterable[int | None]) -> bool:
    return all(rest is None or rest >= 0 for rest in left)
