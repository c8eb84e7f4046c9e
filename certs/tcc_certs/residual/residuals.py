"""Residuals: what may still follow a prefix, as a control and what is left of the limits, by number.

A control is a term and the duties that go with it; there are few, and the steps between them are
found once a control.  What a step leaves of the limits is found once for each tuple that comes to
it (:mod:`tcc_certs.residual.meters`).  So a walk over residuals is a walk over tables.

A residual goes on in two ways: as a whole, at most one residual a letter, which is what a
deterministic automaton is compared with; or in parts, several residuals a letter, of which a
nondeterministic one is made.
Cost: letters times statements a control; a look-up for each step of a residual.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from tcc_certs.grammar import Core
from tcc_certs.residual.budget import ENTRY, Budget
from tcc_certs.residual.duties import Duties, State
from tcc_certs.residual.flags import watched_patterns
from tcc_certs.residual.forecast import Forecast
from tcc_certs.residual.letters import Alphabet, alphabet_of
from tcc_certs.residual.meters import Drain, Meters
from tcc_certs.residual.partial import Partials
from tcc_certs.residual.terms import Term, Terms

Moves: TypeAlias = "Sequence[tuple[int, Arrivals]]"


class Residuals:
    """All residuals of one core that have been met.

    Attributes:
        alphabet: the letters.
        first: the residual of the empty prefix; None where it is seen to have no plan.
        control, left: by number, the control and the number of what is left of the limits.
        stops: by number, whether a plan may end here.
    """

    __slots__ = (
        "_arrivals", "_budget", "_control", "_controls", "_duties", "_forecast", "_meters",
        "_moves", "_numbers", "_partials", "_terms", "_widest", "alphabet", "control", "first", "left",
        "stops",
    )  # fmt: skip

    def __init__(self, core: Core, budget: Budget, in_parts: bool = False) -> None:
        self._budget = budget
        self.alphabet: Alphabet = alphabet_of(core, budget)
        self._terms = Terms(core, self.alphabet, budget, in_parts)
        self._partials = Partials(self._terms, budget) if in_parts else None
        self._forecast = Forecast(self._terms, self.alphabet, watched_patterns(core), budget)
        self._duties = Duties(core, self.alphabet)
        self._meters = Meters(self.alphabet)
        self._control: dict[tuple[Term, State], int] = {}
        self._controls: list[tuple[Term, State]] = []
        self._moves: list[Moves | None] = []
        self._widest: list[tuple[int, ...] | None] = []
        self._arrivals: dict[tuple[int, tuple[int, ...]], Arrivals] = {}
        self._numbers: list[dict[int, int]] = []  # by control, what is left -> the residual
        self.control: list[int] = []
        self.left: list[int] = []
        self.stops: list[bool] = []
        self.first = self._enter(self._terms.plan, self._duties.start, self._meters.start)

    def moves(self, control: int) -> Moves:
        """The letters that the term can begin with, each with its table of residuals after it.

        The residuals of other letters have no plan.  In parts a letter may stand here several times.
        """
        found = self._moves[control]
        if found is None:
            found = self._moves[control] = self._find_moves(*self._controls[control])
        return found

    def _find_moves(self, term: Term, state: State) -> Moves:
        found: list[tuple[int, Arrivals]] = []
        for group, letters in enumerate(self.alphabet.by_group):
            derived = self._derived(term, group)
            self._budget.spend(len(letters) * (1 + len(derived)))
            for letter in letters if derived else ():
                after = self._duties.step(state, letter)
                if after is not None:
                    arrivals = [self._arrivals_of(part, after, letter) for part in derived]
                    found.extend((letter, table) for table in arrivals if table is not None)
        return found

    def _derived(self, term: Term, group: int) -> Sequence[Term]:
        if self._partials is not None:
            return self._partials.of(term, group)
        return (self._terms.derivative(term, group),)

    def _arrivals_of(self, term: Term, state: State, letter: int) -> Arrivals | None:
        """The table of a call of `letter` that leads to `term` and `state`."""
        ahead = self._forecast.of(term)
        settled = None if ahead is None else self._duties.settle(state, ahead.touched)
        if ahead is None or settled is None:
            return None
        weights = self.alphabet.letters[letter].weights
        drain = self._meters.drain(weights, ahead, self._duties.least_calls(settled))
        control = self._control_of(term, settled)
        found = self._arrivals.get((control, weights))
        if found is None:
            found = self._arrivals[control, weights] = Arrivals(self, control, drain, self._budget)
        return found

    def _control_of(self, term: Term, state: State) -> int:
        number = self._control.setdefault((term, state), len(self._controls))
        if number == len(self._controls):
            self._controls.append((term, state))
            self._moves.append(None)
            self._numbers.append({})
            self._widest.append(self._widest_of(term))
        return number

    def _widest_of(self, term: Term) -> tuple[int, ...] | None:
        """For each meter the most that an alternative of `term` needs; None of other terms."""
        kind, parts, _, _ = self._terms.nodes[term]
        if kind != "alt" or self._partials is not None:
            return None
        ahead = [self._forecast.of(part) for part in parts]
        return tuple(map(max, zip(*(x.low for x in ahead if x is not None), strict=True)))

    def _enter(self, term: Term, state: State, left: int) -> int | None:
        """The residual of a term, of duties and of what is left, none of them settled yet."""
        ahead = self._forecast.of(term)
        settled = None if ahead is None else self._duties.settle(state, ahead.touched)
        if ahead is None or settled is None:
            return None
        nothing = (0,) * len(self.alphabet.bounds)
        rest = self._meters.drain(nothing, ahead, self._duties.least_calls(settled))[left]
        return None if rest is None else self.arrive(self._control_of(term, settled), rest)

    def arrive(self, control: int, left: int) -> int | None:
        """The residual of a control and what is left of the limits, both settled.

        Alternatives that do not fit in what is left are dropped from the term.
        """
        term, state = self._controls[control]
        widest = self._widest[control]
        if widest is not None and not self._meters.fits(left, widest):
            parts = self._terms.nodes[term][1]
            self._budget.spend(len(parts))
            kept = [part for part in parts if self._fits(part, left)]
            return self._enter(self._terms.union(kept), state, left)
        numbers = self._numbers[control]
        number = numbers.get(left)
        if number is None:
            number = numbers[left] = len(self.stops)
            self.control.append(control)
            self.left.append(left)
            met = self._terms.nullable[term] and self._duties.met(state)
            self.stops.append(met and not self._meters.overdrawn(left))
        return number

    def _fits(self, term: Term, left: int) -> bool:
        ahead = self._forecast.of(term)
        return ahead is not None and self._meters.fits(left, ahead.low)


class Arrivals(dict[int, "int | None"]):
    """By the number of what is left before a call, the residual after it; None: it has no plan."""

    __slots__ = ("_budget", "_control", "_drain", "_residuals")

    def __init__(
        self, residuals: Residuals, control: int, drain: Drain, budget: Budget
    ) -> None:
        self._budget = budget
        self._residuals = residuals
        self._control = control
        self._drain = drain

    def __missing__(self, left: int) -> int | None:
        self._budget.spend(ENTRY)
        after = self._drain[left]
        found = None if after is None else self._residuals.arrive(self._control, after)
        self[left] = found
        return found
