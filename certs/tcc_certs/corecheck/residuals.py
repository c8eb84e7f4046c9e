"""Residuals: what may still follow a prefix, a control and what is left of the limits, by number.

A control is a term and the duties that go with it; there are few, and the steps between them are
found once a control.  What a step leaves of the limits is found once for each tuple that comes to
it (:mod:`tcc_certs.corecheck.meters`).  So a walk over residuals is a walk over tables.

A residual goes on in two ways: as a whole, at most one residual a letter, which is what a
deterministic automaton is compared with; or in parts, several residuals a letter, of which a
nondeterministic one is made.
Cost: letters times statements a control; a look-up for each step of a residual.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from tcc_certs.core.model import Core
from tcc_certs.corecheck.budget import ENTRY, Budget
from tcc_certs.corecheck.derivatives import Derivatives
from tcc_certs.corecheck.duties import Duties, State
from tcc_certs.corecheck.flags import watched_patterns
from tcc_certs.corecheck.forecast import Forecast
from tcc_certs.corecheck.letters import Alphabet, alphabet_of
from tcc_certs.corecheck.meters import Drain, Meters
from tcc_certs.corecheck.partial import Partials
from tcc_certs.corecheck.terms import Term

Moves: TypeAlias = "Sequence[tuple[int, Arrivals]]"


class Residuals:
    """All residuals of one core that have been met.

    Attributes:
        alphabet: the letters.
        first: the residual of the empty prefix; None where it is seen to have no plan.
        control: by number, the control.
        left: by number, the number of what is left of the limits.
        stops: by number, whether a plan may end here.
    """

    __slots__ = (
        "_arrivals", "_budget", "_controls", "_duties", "_forecast", "_meters", "_partials",
        "_terms", "alphabet", "control", "first", "left", "stops",
    )  # fmt: skip

    def __init__(self, core: Core, budget: Budget, in_parts: bool = False) -> None:
        self._budget = budget
        self.alphabet: Alphabet = alphabet_of(core, budget)
        self._terms = Derivatives(core, self.alphabet, budget, in_parts)
        self._partials = Partials(self._terms, budget) if in_parts else None
        self._forecast = Forecast(self._terms, self.alphabet, watched_patterns(core), budget)
        self._duties = Duties(core, self.alphabet)
        self._meters = Meters(self.alphabet)
        self._controls: dict[tuple[Term, State], Control] = {}
        self._arrivals: dict[tuple[Term, State, tuple[int, ...]], Arrivals] = {}
        self.control: list[Control] = []
        self.left: list[int] = []
        self.stops: list[bool] = []
        none = (0,) * len(self.alphabet.bounds)
        start = self._arrivals_of(self._terms.plan, self._duties.start, none)
        self.first = None if start is None else start[self._meters.start]

    def moves(self, residual: int) -> Moves:
        """The letters that the term can begin with, each with its table of residuals after it.

        Residuals of other letters have no plan.  In parts a letter may stand here several times.
        """
        control = self.control[residual]
        if control.moves is None:
            control.moves = self._find_moves(control.term, control.state)
        return control.moves

    def _find_moves(self, term: Term, state: State) -> Moves:
        found: list[tuple[int, Arrivals]] = []
        for group, letters in enumerate(self.alphabet.by_group):
            derived = self._derived(term, group)
            self._budget.spend(len(letters) * (1 + len(derived)))
            for letter in letters if derived else ():
                after = self._duties.step(state, letter)
                if after is not None:
                    weights = self.alphabet.letters[letter].weights
                    tables = [self._arrivals_of(part, after, weights) for part in derived]
                    found.extend((letter, table) for table in tables if table is not None)
        return found

    def _derived(self, term: Term, group: int) -> Sequence[Term]:
        if self._partials is not None:
            return self._partials.of(term, group)
        return (self._terms.derivative(term, group),)

    def _arrivals_of(self, term: Term, state: State, weights: tuple[int, ...]) -> Arrivals | None:
        """The table of a call of `weights` that leads to `term` and `state`, not yet settled."""
        ahead = self._forecast.of(term)
        settled = None if ahead is None else self._duties.settle(state, ahead.touched)
        if ahead is None or settled is None:
            return None
        key = (term, settled, weights)
        found = self._arrivals.get(key)
        if found is None:
            drain = self._meters.drain(weights, ahead, self._duties.least_calls(settled))
            control = self._control_of(term, settled)
            found = self._arrivals[key] = Arrivals(drain, control, self._budget)
        return found

    def _control_of(self, term: Term, state: State) -> Control:
        control = self._controls.get((term, state))
        if control is None:
            control = Control(self, len(self._controls), term, state)
            self._controls[term, state] = control
            control.may_stop = self._terms.nullable[term] and self._duties.met(state)
            kind, parts, _, _ = self._terms.nodes[term]
            if kind == "alt" and self._partials is None:
                ahead = [self._forecast.of(part) for part in parts]
                lows = [some.low for some in ahead if some is not None]
                control.widest = tuple(map(max, zip(*lows, strict=True)))
        return control

    def enter(self, control: Control, left: int) -> int | None:
        """The residual of a control and what is left of the limits, both settled; a new one.

        Alternatives that need more than is left are dropped: what came too late is not remembered.
        """
        if control.widest is not None and not self._meters.fits(left, control.widest):
            return self._narrowed(control, left)
        self.control.append(control)
        self.left.append(left)
        self.stops.append(control.may_stop and not self._meters.overdrawn(left))
        return len(self.stops) - 1

    def no_more(self, left: int, other: int) -> bool:
        """Whether `left` has on every meter no more than `other`; what cannot bind is most."""
        return self._meters.no_more(left, other)

    def _narrowed(self, control: Control, left: int) -> int | None:
        kept = []
        for part in self._terms.nodes[control.term][1]:
            self._budget.spend(1)
            ahead = self._forecast.of(part)
            if ahead is not None and self._meters.fits(left, ahead.low):
                kept.append(part)
        none = (0,) * len(self.alphabet.bounds)
        arrivals = self._arrivals_of(self._terms.union(kept), control.state, none)
        return None if arrivals is None else arrivals[left]


class Control(dict[int, "int | None"]):
    """A term and the duties that go with it; by the number of what is left, the residual.

    Attributes:
        number: that of the control.
        term, state: the term, the duties.
        may_stop: whether a plan may end here, limits aside.
        widest: for each meter the most that an alternative of the term needs; None of other terms.
        moves: see :meth:`Residuals.moves`; None until they are found.
    """

    __slots__ = ("_residuals", "may_stop", "moves", "number", "state", "term", "widest")

    def __init__(self, residuals: Residuals, number: int, term: Term, state: State) -> None:
        self._residuals = residuals
        self.number = number
        self.term = term
        self.state = state
        self.may_stop = False
        self.widest: tuple[int, ...] | None = None
        self.moves: Moves | None = None

    def __missing__(self, left: int) -> int | None:
        found = self[left] = self._residuals.enter(self, left)
        return found


class Arrivals(dict[int, "int | None"]):
    """By the number of what is left before a call, the residual after it; None: it has no plan."""

    __slots__ = ("_budget", "_control", "_drain")

    def __init__(self, drain: Drain, control: Control, budget: Budget) -> None:
        self._drain = drain
        self._control = control
        self._budget = budget

    def __missing__(self, left: int) -> int | None:
        self._budget.spend(ENTRY)
        after = self._drain[left]
        found = self[left] = None if after is None else self._control[after]
        return found
