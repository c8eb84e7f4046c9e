"""Residuals: what may still follow a prefix, a control and the remainder of the limits, by number.

A control is a term and the duties that go with it; there are few, and the steps between them are
found once a control.  What a step leaves of the limits is found once for each tuple that comes to
it (:mod:`tcc_certs.corecheck.residuals`).  So a walk over residuals is a walk over tables.

A residual goes on in two ways: as a whole, at most one residual a letter, which is what a
deterministic automaton is compared with; or in parts, several residuals a letter, of which a
nondeterministic one is made.
What a limit has left is a number a meter, FAR once the limit cannot bind any more; a :class:`Drain`
is the table of one way to use the meters up: a call of some weights, and the outlook behind it.
Cost: letters times statements a control; a look-up for each step of a residual; the number of
limits for each drain and each tuple that comes to it, once.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import le
from typing import TypeAlias

from tcc_certs.core.model import Core
from tcc_certs.corecheck.duties import Duties, DutyState, watched_patterns
from tcc_certs.corecheck.letters import ENTRY, Alphabet, WorkBudget, alphabet_of
from tcc_certs.corecheck.outlook import FAR, Forecast, Outlook
from tcc_certs.corecheck.terms import NOTHING, Derivatives, PartialDerivatives, Term

Left: TypeAlias = "tuple[int, ...]"


Moves: TypeAlias = "Sequence[tuple[int, Arrivals]]"
Begun: TypeAlias = "Sequence[tuple[int, Sequence[Term]]]"  # letters, and what may follow each


class Residuals:
    """All residuals of one core that have been met.

    Attributes:
        alphabet: the letters.
        first: the residual of the empty prefix; None where it is seen to have no plan.
        control: by number, the control.
        left: by number, the number of the remainder of the limits.
        stops: by number, whether a plan may end here.
    """

    __slots__ = (
        "_after", "_arrivals", "_begun", "_budget", "_controls", "_duties", "_forecast", "_meters",
        "_partials", "_tables", "_terms", "alphabet", "control", "first", "left", "stops",
    )  # fmt: skip

    def __init__(self, core: Core, budget: WorkBudget, in_parts: bool = False) -> None:
        self._budget = budget
        self.alphabet: Alphabet = alphabet_of(core, budget)
        self._terms = Derivatives(core, self.alphabet, budget, in_parts)
        self._partials = PartialDerivatives(self._terms, budget) if in_parts else None
        self._forecast = Forecast(self._terms, self.alphabet, watched_patterns(core), budget)
        self._duties = Duties(core, self.alphabet)
        self._meters = Meters(self.alphabet)
        self._controls: dict[tuple[Term, DutyState], ControlState] = {}
        self._arrivals: dict[tuple[Term, DutyState, tuple[int, ...]], Arrivals] = {}
        # Of each term, of duties, and of a part with the duties behind a call: there are few.
        self._begun: dict[Term, tuple[int, Begun]] = {}
        self._after: dict[DutyState, dict[int, DutyState | None]] = {}
        self._tables: dict[tuple[Term, DutyState, tuple[int, ...]], Arrivals | None] = {}
        self.control: list[ControlState] = []
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

    def _find_moves(self, term: Term, state: DutyState) -> Moves:
        spent, begun = self._begun.get(term) or self._begun_by(term)
        self._budget.spend(spent)
        after, found = self._after.setdefault(state, {}), list[tuple[int, Arrivals]]()
        for letter, parts in begun:
            if letter not in after:
                after[letter] = self._duties.step(state, letter)
            duties, weights = after[letter], self.alphabet.letters[letter].weights
            if duties is None:
                continue
            for part in parts:
                key = part, duties, weights
                if key not in self._tables:
                    self._tables[key] = self._arrivals_of(*key)
                table = self._tables[key]
                if table is not None:
                    found.append((letter, table))
        return found

    def _begun_by(self, term: Term) -> tuple[int, Begun]:
        """The steps that a control of the term costs, and the letters that its words begin with."""
        spent, begun = 0, list[tuple[int, Sequence[Term]]]()
        for group, letters in enumerate(self.alphabet.by_group):
            derived = self._derived(term, group)
            spent += len(letters) * (1 + len(derived))
            parts = [part for part in derived if part != NOTHING]
            begun.extend((letter, parts) for letter in letters if parts)
        self._begun[term] = spent, begun
        return spent, begun

    def _derived(self, term: Term, group: int) -> Sequence[Term]:
        if self._partials is not None:
            return self._partials.of(term, group)
        return (self._terms.derivative(term, group),)

    def _arrivals_of(
        self, term: Term, state: DutyState, weights: tuple[int, ...]
    ) -> Arrivals | None:
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

    def _control_of(self, term: Term, state: DutyState) -> ControlState:
        control = self._controls.get((term, state))
        if control is None:
            control = ControlState(self, len(self._controls), term, state)
            self._controls[term, state] = control
            control.may_stop = self._terms.nullable[term] and self._duties.met(state)
            kind, parts, _, _ = self._terms.nodes[term]
            if kind == "alt" and self._partials is None:
                ahead = [self._forecast.of(part) for part in parts]
                lows = [some.low for some in ahead if some is not None]
                control.widest = tuple(map(max, zip(*lows, strict=True)))
        return control

    def enter(self, control: ControlState, left: int) -> int | None:
        """The residual of a control and the remainder of the limits, both settled; a new one.

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

    def _narrowed(self, control: ControlState, left: int) -> int | None:
        kept = []
        for part in self._terms.nodes[control.term][1]:
            self._budget.spend(1)
            ahead = self._forecast.of(part)
            if ahead is not None and self._meters.fits(left, ahead.low):
                kept.append(part)
        none = (0,) * len(self.alphabet.bounds)
        arrivals = self._arrivals_of(self._terms.union(kept), control.state, none)
        return None if arrivals is None else arrivals[left]


class ControlState(dict[int, "int | None"]):
    """A term and the duties that go with it; by the number of what is left, the residual.

    Attributes:
        number: that of the control.
        term, state: the term, the duties.
        may_stop: whether a plan may end here, limits aside.
        widest: for each meter the most that an alternative of the term needs; None of other terms.
        moves: see :meth:`Residuals.moves`; None until they are found.
    """

    __slots__ = ("_residuals", "may_stop", "moves", "number", "state", "term", "widest")

    def __init__(self, residuals: Residuals, number: int, term: Term, state: DutyState) -> None:
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

    def __init__(self, drain: Drain, control: ControlState, budget: WorkBudget) -> None:
        self._drain = drain
        self._control = control
        self._budget = budget

    def __missing__(self, left: int) -> int | None:
        self._budget.spend(ENTRY)
        after = self._drain[left]
        found = self[left] = None if after is None else self._control[after]
        return found


class Meters:
    """The meters of one core.

    Attributes:
        left: by number, the remainder of each meter.
        start: what is left before the first call.
        ends: for each meter the least and the most that one call or none can weigh.
    """

    __slots__ = ("_drains", "_number", "ends", "left", "start")

    def __init__(self, alphabet: Alphabet) -> None:
        self._number: dict[Left, int] = {}
        self.left: list[Left] = []
        self.start = self.number(tuple(FAR if b is None else b for b in alphabet.bounds))
        none = (0,) * len(alphabet.bounds)
        weights = [none, *(letter.weights for letter in alphabet.letters)]
        self.ends = [(min(column), max(column)) for column in zip(*weights, strict=True)]
        self._drains: dict[tuple[tuple[int, ...], Outlook, int], Drain] = {}

    def number(self, left: Left) -> int:
        """The number of what is left."""
        number = self._number.setdefault(left, len(self.left))
        if number == len(self.left):
            self.left.append(left)
        return number

    def drain(self, weights: tuple[int, ...], ahead: Outlook, least_calls: int) -> Drain:
        """The table of calls of `weights` with `ahead` behind them, of at least so many calls."""
        key = (weights, ahead._replace(touched=0), least_calls)
        found = self._drains.get(key)
        if found is None:
            found = self._drains[key] = Drain(self, weights, ahead, least_calls)
        return found

    def fits(self, left: int, low: tuple[int, ...]) -> bool:
        """Whether words that weigh at least `low` can be within what is left."""
        return all(map(le, low, self.left[left]))

    def no_more(self, left: int, other: int) -> bool:
        """Whether `left` has on every meter no more than `other`."""
        return all(map(le, self.left[left], self.left[other]))

    def overdrawn(self, left: int) -> bool:
        """Whether a limit is broken if the plan stops here."""
        return min(self.left[left]) < 0


class Drain(dict[int, "int | None"]):
    """By the number of what was left before, of what is left after; None: a limit breaks."""

    __slots__ = ("_depth", "_least_calls", "_meters", "_others")

    def __init__(
        self, meters: Meters, weights: tuple[int, ...], ahead: Outlook, least_calls: int
    ) -> None:
        self._meters = meters
        self._least_calls = least_calls
        rows = list(zip(weights, ahead.low, ahead.high, meters.ends, strict=True))
        self._depth = rows[0]
        self._others = rows[1:]

    def __missing__(self, left: int) -> int | None:
        after = self._after(self._meters.left[left])
        found = self[left] = None if after is None else self._meters.number(after)
        return found

    def _after(self, left: Left) -> Left | None:
        """What is left after the call, forgetting what cannot matter; None where a limit breaks."""
        weight, low, calls, _ = self._depth
        depth = left[0]
        if depth != FAR:
            depth -= weight
            if low > depth:
                return None
            if calls <= depth:
                depth = FAR
            else:
                calls = depth
        if self._least_calls > calls:
            return None
        found = [depth]
        for rest, (weight, low, high, ends) in zip(left[1:], self._others, strict=True):
            if rest != FAR:
                rest -= weight
                # So many calls weigh no less and no more than their number times the ends.
                if rest < low or rest < calls * ends[0]:
                    return None
                if rest >= high or rest >= calls * ends[1]:
                    rest = FAR
            found.append(rest)
        return tuple(found)
