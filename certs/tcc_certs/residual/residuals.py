"""Residuals: what may still follow a prefix, as a term and the duties that go with it, by number.

A residual goes on in two ways: as a whole, one residual a letter, which is what a deterministic
automaton is compared with; or in parts, several residuals a letter, of which a nondeterministic one
is made.  A residual that is seen at once to have no plan is None in place of a number.
Cost: a step of every letter, once a residual.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcc_certs.grammar import Core
from tcc_certs.residual.budget import Budget
from tcc_certs.residual.duties import Duties, State
from tcc_certs.residual.flags import watched_patterns
from tcc_certs.residual.forecast import Forecast
from tcc_certs.residual.letters import Alphabet, alphabet_of
from tcc_certs.residual.partial import Partials
from tcc_certs.residual.terms import Term, Terms


class Residuals:
    """All residuals of one core that have been met.

    Attributes:
        alphabet: the letters.
        first: the residual of the empty prefix.
    """

    __slots__ = (
        "_budget", "_duties", "_forecast", "_known", "_number", "_partials", "_terms", "alphabet",
        "first",
    )  # fmt: skip

    def __init__(self, core: Core, budget: Budget, twins: bool = False) -> None:
        """Residuals of `core`; `twins` as in :class:`Terms`, for residuals in parts."""
        self._budget = budget
        self.alphabet: Alphabet = alphabet_of(core, budget)
        self._terms = Terms(core, self.alphabet, budget, twins)
        self._partials = Partials(self._terms, budget)
        self._forecast = Forecast(self._terms, self.alphabet, watched_patterns(core), budget)
        self._duties = Duties(core, self.alphabet)
        self._number: dict[tuple[Term, State], int] = {}
        self._known: list[tuple[Term, State]] = []
        self.first = self._of(self._terms.plan, self._duties.start)

    def _of(self, term: Term, state: State) -> int | None:
        ahead = self._forecast.of(term)
        if ahead is None:
            return None
        settled = self._duties.settle(state, ahead)
        if settled is None:
            return None
        number = self._number.setdefault((term, settled), len(self._known))
        if number == len(self._known):
            self._known.append((term, settled))
        return number

    def may_stop(self, residual: int) -> bool:
        """Whether a plan may end here."""
        term, state = self._known[residual]
        return self._terms.nullable[term] and self._duties.met(state)

    def whole(self, residual: int) -> Sequence[tuple[int, int | None]]:
        """For every letter the residual after it."""
        term, state = self._known[residual]
        found: list[tuple[int, int | None]] = []
        for group, letters in enumerate(self.alphabet.by_group):
            derived = self._terms.derivative(term, group)
            dead = self._forecast.of(derived) is None
            self._budget.spend(len(letters))
            for letter in letters:
                after = None if dead else self._duties.step(state, letter)
                found.append((letter, None if after is None else self._of(derived, after)))
        return found

    def parts(self, residual: int) -> Sequence[tuple[int, int]]:
        """The pairs of a letter and a residual that it leads to."""
        term, state = self._known[residual]
        found: list[tuple[int, int]] = []
        for group, letters in enumerate(self.alphabet.by_group):
            derived = self._partials.of(term, group)
            self._budget.spend(len(letters) * (1 + len(derived)))
            for letter in letters:
                after = self._duties.step(state, letter)
                if after is not None:
                    numbers = [self._of(part, after) for part in derived]
                    found.extend((letter, number) for number in numbers if number is not None)
        return found
