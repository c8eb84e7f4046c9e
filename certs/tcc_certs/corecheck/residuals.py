"""Residuals: what may follow a prefix of a plan.

A residual is a number that stands for a control and a remainder.  The control is a term and the
state of the statements' memory.  The remainder says how much each sum may still grow.  There are
few controls, so the steps between them are computed once for each control.  A walk over residuals
then only looks up tables.

A letter can continue a residual in two ways.  Derivatives give at most one residual for each
letter; the check compares these with a deterministic automaton.  Partial derivatives give several;
a nondeterministic artifact consists of these.

The remainder of a sum is FAR if no continuation can exceed the bound of the sum.  A :class:`Drain`
is a table from the remainders before a call to those after it.  It depends on the weights of the
call and on the outlook of the term after it.

Cost: letters times tables for each control, and one look-up for each step of a residual.  Each
entry of a drain takes the number of sums, and is computed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import le
from typing import TypeAlias

from tcc_certs.corecheck.letters import ENTRY, Alphabet, WorkBudget, alphabet_of
from tcc_certs.corecheck.memory import Memory, MemoryState
from tcc_certs.corecheck.outlook import FAR, Forecast, Outlook
from tcc_certs.corecheck.terms import NOTHING, Derivatives, PartialDerivatives, Term
from tcc_certs.policy.core import Core
from tcc_certs.policy.places import StatementPart

Left: TypeAlias = "tuple[int, ...]"


Moves: TypeAlias = "Sequence[tuple[int, Arrivals]]"
# pairs of a letter and the terms that may follow it
Begun: TypeAlias = "Sequence[tuple[int, Sequence[Term]]]"


class Residuals:
    """The residuals of one core that a walk has reached, by number.

    Args:
        parts: the statements that plans have to satisfy.
        in_parts: whether to use partial derivatives, so a letter may have several residuals.

    Attributes:
        alphabet: the letters of the core.
        first: the residual of the empty prefix; None if it is easily seen to have no plan.
        control: for each residual its control.
        left: for each residual the number of its remainder.
        stops: for each residual whether a plan may end here.
    """

    __slots__ = (
        "_after", "_arrivals", "_begun", "_budget", "_controls", "_forecast", "_memory", "_meters",
        "_partials", "_tables", "_terms", "alphabet", "control", "first", "left", "stops",
    )  # fmt: skip

    def __init__(
        self,
        core: Core,
        parts: Sequence[StatementPart],
        budget: WorkBudget,
        in_parts: bool = False,
    ) -> None:
        self._budget = budget
        self.alphabet: Alphabet = alphabet_of(core, parts, budget)
        self._terms = Derivatives(core, self.alphabet, budget, in_parts)
        self._partials = PartialDerivatives(self._terms, budget) if in_parts else None
        self._memory = Memory(core, self.alphabet, budget)
        self._forecast = Forecast(self._terms, self.alphabet, self._memory.bits, budget)
        self._meters = Meters(self.alphabet)
        self._controls: dict[tuple[Term, MemoryState], ControlState] = {}
        self._arrivals: dict[tuple[Term, MemoryState, tuple[int, ...]], Arrivals] = {}
        # The keys are a term, a memory, and a term with a memory and the weights of the last call.
        self._begun: dict[Term, tuple[int, Begun]] = {}
        self._after: dict[MemoryState, dict[int, MemoryState | None]] = {}
        self._tables: dict[tuple[Term, MemoryState, tuple[int, ...]], Arrivals | None] = {}
        self.control: list[ControlState] = []
        self.left: list[int] = []
        self.stops: list[bool] = []
        none = (0,) * len(self.alphabet.bounds)
        start = self._arrivals_of(self._terms.plan, self._memory.start, none)
        self.first = None if start is None else start[self._meters.start]

    def moves(self, residual: int) -> Moves:
        """The letters that may come next, each with a table of the residuals after it.

        The table maps the number of the remainder before the call to the residual after it.  After
        any other letter there is no plan.  With partial derivatives a letter may occur several
        times.
        """
        control = self.control[residual]
        if control.moves is None:
            control.moves = self._find_moves(control.term, control.state)
        return control.moves

    def _find_moves(self, term: Term, state: MemoryState) -> Moves:
        spent, begun = self._begun.get(term) or self._begun_by(term)
        self._budget.spend(spent)
        after, found = self._after.setdefault(state, {}), list[tuple[int, Arrivals]]()
        for letter, parts in begun:
            if letter not in after:
                after[letter] = self._memory.step(state, letter)
            memory, weights = after[letter], self.alphabet.letters[letter].weights
            if memory is None:
                continue
            for part in parts:
                key = part, memory, weights
                if key not in self._tables:
                    self._tables[key] = self._arrivals_of(*key)
                table = self._tables[key]
                if table is not None:
                    found.append((letter, table))
        return found

    def _begun_by(self, term: Term) -> tuple[int, Begun]:
        """The work for one control of the term, and the letters that its words begin with."""
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
        self, term: Term, state: MemoryState, weights: tuple[int, ...]
    ) -> Arrivals | None:
        """The table for a call of `weights` that leads to `term` and to the memory `state`.

        `state` need not be settled.  None if the term has no words or the memory allows no plan.
        """
        ahead = self._forecast.of(term)
        settled = None if ahead is None else self._memory.settle(state, ahead.touched)
        if ahead is None or settled is None:
            return None
        key = (term, settled, weights)
        found = self._arrivals.get(key)
        if found is None:
            least_calls = self._memory.least_calls(settled, ahead.touched)
            drain = self._meters.drain(weights, ahead, least_calls)
            control = self._control_of(term, settled)
            found = self._arrivals[key] = Arrivals(drain, control, self._budget)
        return found

    def _control_of(self, term: Term, state: MemoryState) -> ControlState:
        control = self._controls.get((term, state))
        if control is None:
            control = ControlState(self, len(self._controls), term, state)
            self._controls[term, state] = control
            control.may_stop = self._terms.nullable[term] and self._memory.accepts(state)
            kind, parts, _, _ = self._terms.nodes[term]
            if kind == "alt" and self._partials is None:
                ahead = [self._forecast.of(part) for part in parts]
                lows = [some.low for some in ahead if some is not None]
                control.widest = tuple(map(max, zip(*lows, strict=True)))
        return control

    def enter(self, control: ControlState, left: int) -> int | None:
        """Add the residual of a control and a remainder, both settled, and return its number.

        If the remainder is too small for some alternatives of the term, the residual is that of the
        other alternatives.  None if it has no plan.
        """
        if control.widest is not None and not self._meters.fits(left, control.widest):
            return self._narrowed(control, left)
        self.control.append(control)
        self.left.append(left)
        self.stops.append(control.may_stop)
        return len(self.stops) - 1

    def no_more(self, left: int, other: int) -> bool:
        """Return whether the remainder `left` is at most `other` in every sum.

        FAR is the largest.
        """
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
    """A term with a memory; as a dict it maps the number of a remainder to the residual.

    Attributes:
        number: the number of the control.
        term, state: the term and the memory.
        may_stop: whether a plan may end here.
        widest: for each sum the largest of the least weights of the term's alternatives; None for a
            term that is no union.
        moves: what :meth:`Residuals.moves` returns; None before it is computed.
    """

    __slots__ = ("_residuals", "may_stop", "moves", "number", "state", "term", "widest")

    def __init__(self, residuals: Residuals, number: int, term: Term, state: MemoryState) -> None:
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
    """Maps the number of a remainder before a call to the residual after it.

    None stands for a residual that has no plan.
    """

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
    """The sums of one core, with a number for each tuple of remainders.

    Attributes:
        left: for each number the tuple of remainders, one for each sum.
        start: the number of the remainders before the first call.
        ends: for each sum the least and the most that one call adds; both include 0.
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
        """The number of a tuple of remainders; a new tuple gets a new number."""
        number = self._number.setdefault(left, len(self.left))
        if number == len(self.left):
            self.left.append(left)
        return number

    def drain(self, weights: tuple[int, ...], ahead: Outlook, least_calls: int) -> Drain:
        """The table for a call of `weights` that is followed by words with the outlook `ahead`.

        Args:
            least_calls: how many calls at least have to follow.
        """
        key = (weights, ahead._replace(touched=0), least_calls)
        found = self._drains.get(key)
        if found is None:
            found = self._drains[key] = Drain(self, weights, ahead, least_calls)
        return found

    def fits(self, left: int, low: tuple[int, ...]) -> bool:
        """Return whether words that weigh at least `low` may fit into the remainder `left`."""
        return all(map(le, low, self.left[left]))

    def no_more(self, left: int, other: int) -> bool:
        """Return whether the remainder `left` is at most `other` in every sum."""
        return all(map(le, self.left[left], self.left[other]))


class Drain(dict[int, "int | None"]):
    """Maps the number of the remainders before a call to the number after it, or None.

    None means that the call or every continuation exceeds a bound.
    """

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
        """The remainders after the call; None if a bound is exceeded.

        A remainder becomes FAR if no continuation can exceed its bound.
        """
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
                # `calls` more calls weigh between calls * ends[0] and calls * ends[1].
                if rest < 0 or rest < low or rest < calls * ends[0]:
                    return None
                if rest >= high or rest >= calls * ends[1]:
                    rest = FAR
            found.append(rest)
        return tuple(found)
