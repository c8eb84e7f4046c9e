"""Statements as small automata over letters, and products with them.

A `StatementAutomaton` is the automaton of one statement. `product` intersects a machine with one of
them. `Control` is the product of all statements and sums, with states made on demand. It is used
for unbounded recursion (:mod:`tcc_compiler.automata.regular.finiteness`) and for the examples of a
relaxed artifact.
Specification: docs/spec/artifact.md. The tables are those of :mod:`tcc_certs.policy.places`.
Cost: a step takes constant time. A product has at most edges of the machine times states of the
table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import gcd

from tcc_certs.policy.core import Core
from tcc_certs.policy.nodes import Limit, Statement, Total
from tcc_certs.policy.places import StatementPart
from tcc_compiler.automata.letters import Letters
from tcc_compiler.automata.table import Edges, Machine
from tcc_compiler.frozen import frozen
from tcc_compiler.resources import Guard

_STEPS = 1 << 10  # between two calls of the guard


@frozen
class StatementAutomaton:
    """A deterministic automaton over letters; its states are integers.

    Attributes:
        text: the statement, as diagnostics name it.
        number: the number of the statement in the core; None for signatures.
        start: the state of the empty prefix.
        step: (state, letter) -> state, or None if the letter is forbidden.
        accepts: state -> whether a plan may stop there.
    """

    text: str
    number: int | None = None
    start: int
    step: Callable[[int, int], int | None]
    accepts: Callable[[int], bool]


def product(machine: Machine, constraint: StatementAutomaton, guard: Guard) -> Machine:
    """Return the automaton of the words of `machine` that `constraint` allows; not trimmed.

    Raises:
        CompileRefused: TCC403 or TCC404 from the guard.
    """
    number = {(machine.start, constraint.start): 0}
    pairs = [(machine.start, constraint.start)]
    edges: list[Edges] = []
    step = constraint.step
    most_pairs, most_edges = guard.max_states, guard.max_room
    held = steps = 0
    for q, state in pairs:
        row = []
        for letter, target in machine.edges[q]:
            after = step(state, letter)
            if after is None:
                continue
            pair = (target, after)
            p = number.get(pair)
            if p is None:
                p = number[pair] = len(pairs)
                pairs.append(pair)
            row.append((letter, p))
        edges.append(tuple(row))
        held += len(row)
        if len(pairs) > most_pairs or held > most_edges:
            guard.states(len(pairs))
            guard.room(held)
        steps += 1 + len(machine.edges[q])
        if steps > _STEPS:
            guard.note(len(pairs))
            guard.tick(steps)
            steps = 0
    guard.note(len(pairs))
    guard.tick(steps)
    accept = [machine.accept[q] and constraint.accepts(state) for q, state in pairs]
    return Machine(start=0, accept=accept, edges=edges, nondeterministic=machine.nondeterministic)


def constraints(core: Core, letters: Letters) -> Iterator[StatementAutomaton]:
    """Yield the signature, then the statements with tables, in the order of application."""
    if core.start is not None:
        yield signature(core, letters)
    for part in letters.statements:
        if part.table is not None:
            yield statement_automaton(part, letters)


def signature(core: Core, letters: Letters) -> StatementAutomaton:
    """Return the automaton of signatures: from `start`, by `IN -> OUT` of each call, to a goal."""
    tools = [core.tools[core.calls[group[0]].tool] for group in letters.calls]
    names = sorted(
        {core.start or "", *core.goals}
        | {name for tool in tools for name in (tool.takes, tool.gives) if name is not None}
    )
    number = {name: at for at, name in enumerate(names)}
    takes = [None if tool.takes is None else number[tool.takes] for tool in tools]
    gives = [None if tool.gives is None else number[tool.gives] for tool in tools]
    goals = {number[name] for name in core.goals}

    def step(state: int, letter: int) -> int | None:
        if takes[letter] is None:
            return state
        return gives[letter] if takes[letter] == state else None

    return StatementAutomaton(
        text="start and goal",
        start=number[core.start or ""],
        step=step,
        accepts=lambda state: state in goals,
    )


def statement_automaton(part: StatementPart, letters: Letters) -> StatementAutomaton:
    """Return the automaton of a statement that has a table."""
    table = part.table
    if table is None:
        raise ValueError(f"statement {part.number} has no table")
    classes = letters.classes_in(part)
    rows = [[row[number] for number in classes] for row in table.moves]

    def step(state: int, letter: int) -> int | None:
        after = rows[state][letter]
        return None if after < 0 else after

    return StatementAutomaton(
        text=part.text, number=part.number, start=part.start, step=step, accepts=part.accepts
    )


# Sums.


@frozen
class BoundedSum:
    """A statement that bounds a sum.

    Attributes:
        what: ``depth``, ``price``, ``latency``, ``epsilon``, ``cost``, ``count`` or ``sum``.
        text, number: the text and the number of the statement.
        amounts: [letters], what each letter adds.
        bound: the most that the sum may reach.
    """

    what: str
    text: str
    number: int
    amounts: Sequence[int]
    bound: int


def sums_of(core: Core, letters: Letters) -> list[BoundedSum]:
    """Return the sums over letters, in the order of their statements."""
    return [
        BoundedSum(
            what=kind_of(core.statements[part.number]),
            text=part.text,
            number=part.number,
            amounts=[part.weights[number] for number in letters.classes_in(part)],
            bound=part.total.bound,
        )
        for part in letters.statements
        if part.total is not None
    ]


def kind_of(statement: Statement) -> str:
    """Return a statement's kind as one word; for a limit what it bounds, such as ``depth``."""
    match statement:
        case Total(what=what):
            return what
        case Limit(field=field):
            return "count" if field is None else "sum"
        case _:
            return type(statement).__name__.lower()


# A state of `Control` is a tuple: the state of each constraint, then the sum so far of each bounded
# sum, in units of the greatest common divisor of its amounts.


class Control:
    """The product of the statements. State 0 is the state of the empty prefix.

    Attributes:
        exact: False if a sum had to be left out: all if `limits` is False, else sums with negative
            amounts.
    """

    def __init__(self, core: Core, letters: Letters, limits: bool) -> None:
        """Make the product; with `limits` False every sum is left out."""
        self._constraints: tuple[StatementAutomaton, ...] = tuple(constraints(core, letters))
        every = sums_of(core, letters)
        self._sums = _in_units(every) if limits else []
        self.exact = len(self._sums) == len(every)
        first = (*(constraint.start for constraint in self._constraints), *(0 for _ in self._sums))
        self._states = [first]
        self._number = {first: 0}
        self._moves: dict[tuple[int, int], int | None] = {}

    @property
    def size(self) -> int:
        """How many states have been made so far."""
        return len(self._states)

    def step(self, state: int, letter: int) -> int | None:
        """Return the state after `letter`; None if a statement forbids it."""
        key = (state, letter)
        if key not in self._moves:
            after = self._after(self._states[state], letter)
            if after is not None and after not in self._number:
                self._number[after] = len(self._states)
                self._states.append(after)
            self._moves[key] = None if after is None else self._number[after]
        return self._moves[key]

    def accepts(self, state: int) -> bool:
        """Return whether a plan may stop in `state`."""
        values = self._states[state]
        split = len(self._constraints)
        return all(
            constraint.accepts(value)
            for constraint, value in zip(self._constraints, values[:split], strict=True)
        ) and all(
            value <= bound for (_, bound), value in zip(self._sums, values[split:], strict=True)
        )

    def _after(self, values: tuple[int, ...], letter: int) -> tuple[int, ...] | None:
        next_values: list[int] = []
        split = len(self._constraints)
        for constraint, value in zip(self._constraints, values[:split], strict=True):
            after = constraint.step(value, letter)
            if after is None:
                return None
            next_values.append(after)
        for (amounts, bound), value in zip(self._sums, values[split:], strict=True):
            used = value + amounts[letter]
            if used > bound:
                return None
            next_values.append(used)
        return tuple(next_values)


def _in_units(sums: Sequence[BoundedSum]) -> list[tuple[Sequence[int], int]]:
    """Return amounts and bounds, in units, of the sums whose amounts are never negative."""
    found: list[tuple[Sequence[int], int]] = []
    for one in sums:
        if min(one.amounts, default=0) >= 0:
            unit = gcd(*one.amounts) or 1
            found.append(([amount // unit for amount in one.amounts], one.bound // unit))
    return found
