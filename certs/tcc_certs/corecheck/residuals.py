"""Residuals: what may follow a prefix.  Each is a control and the remainder of the sums, by number.

A control is a term and a memory; there are few, and the steps between them are computed once for
each control.  The remainder of the sums after a step is computed once for each tuple that reaches
the step.  So a walk over residuals is a walk over tables.

A residual continues in two ways.  As a whole it has at most one residual for each letter; a
deterministic automaton is compared with these.  In parts it has several; a nondeterministic
artifact consists of these.
The remainder of a sum is FAR once the sum cannot reach its bound any more.  A :class:`Drain` is the
table of one step over the remainders: the weights of a call, and the outlook after it.
Cost: letters times tables for each control; a look-up for each step of a residual; the number of
sums for each drain and each tuple that reaches it, once.
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
Begun: TypeAlias = "Sequence[tuple[int, Sequence[Term]]]"  # letters, and what may follow each


class Residuals:
    """The residuals of one core that a walk has reached.

    Args:
        parts: the statements that plans satisfy.
        in_parts: whether a residual continues in parts.

    Attributes:
        alphabet: the letters.
        first: the residual of the empty prefix; None if it clearly has no plan.
        control: by number, the control.
        left: by number, the number of the remainder of the sums.
        stops: by number, whether a plan may end here.
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
        # Of each term, of memories, and of a part with the memory after a call: there are few.
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
        """The letters that the term can begin with, each with its table of residuals after it.

        Residuals of other letters have no plan.  In parts a letter may occur several times.
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
        """The cost of a control of the term, and the letters that its words begin with."""
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
        """The table of a call of `weights` that leads to `term` and `state`, not yet settled."""
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
        """Return a new residual of a control and a remainder of the sums, both settled.

        Alternatives that need more than is left are dropped.
        """
        if control.widest is not None and not self._meters.fits(left, control.widest):
            return self._narrowed(control, left)
        self.control.append(control)
        self.left.append(left)
        self.stops.append(control.may_stop)
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
    """A term and the memory that goes with it; by the number of what is left, the residual.

    Attributes:
        number: that of the control.
        term, state: the term, the memory.
        may_stop: whether a plan may end here.
        widest: for each meter the most that an alternative of the term needs; None for other terms.
        moves: see :meth:`Residuals.moves`; None until they are computed.
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
                if rest < 0 or rest < low or rest < calls * ends[0]:
                    return None
                if rest >= high or rest >= calls * ends[1]:
                    rest = FAR
            found.append(rest)
        return tuple(found)
