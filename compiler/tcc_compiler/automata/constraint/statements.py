"""Order statements (signatures, `require`, `forbid`) as small automata, and products with them.

A `Constraint` is the automaton of one statement. `product` intersects a machine with one of them;
`Control` is the product of all statements and limits, with states made on demand, for unbounded
recursion (:mod:`tcc_compiler.automata.regular.finiteness`) and for the examples of a relaxed
artifact.
Specification: docs/spec/core.md, section 5.
Cost: a step is constant, except for `forbid` of k neighbours, which keeps k bits; a product has at
most edges of the machine times states of the constraint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import gcd

from tcc_certs.core import model
from tcc_certs.formats.codec import written
from tcc_compiler.automata.letters import Letters, letter_amounts
from tcc_compiler.automata.table import Edges, Machine
from tcc_compiler.frozen import frozen
from tcc_compiler.resources import Guard, Statement


@frozen
class StatementAutomaton:
    """A deterministic automaton over letters; its states are integers.

    Attributes:
        text: the statement, as diagnostics name it.
        statement: the statement of the core; None for signatures.
        start: the state of the empty prefix.
        step: (state, letter) -> state, None where the letter is forbidden.
        accepts: whether a plan may stop in a state.
    """

    text: str
    statement: Statement | None = None
    start: int
    step: Callable[[int, int], int | None]
    accepts: Callable[[int], bool]


def product(machine: Machine, constraint: StatementAutomaton, guard: Guard) -> Machine:
    """The automaton of the words of `machine` that `constraint` allows; not trimmed.

    Raises:
        Refused: TCC403, TCC404 from the guard.
    """
    number = {(machine.start, constraint.start): 0}
    pairs = [(machine.start, constraint.start)]
    edges: list[Edges] = []
    moves: dict[tuple[int, int], int | None] = {}
    step = constraint.step
    held = 0
    for q, state in pairs:
        row = []
        for letter, target in machine.edges[q]:
            move = (state, letter)
            if move in moves:
                after = moves[move]
            else:
                after = moves[move] = step(state, letter)
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
        guard.tick(1 + len(machine.edges[q]))
        guard.states(len(pairs))
        guard.room(held)
    accept = [machine.accept[q] and constraint.accepts(state) for q, state in pairs]
    return Machine(start=0, accept=accept, edges=edges, nondeterministic=machine.nondeterministic)


def constraints(core: model.Core, letters: Letters) -> Iterator[StatementAutomaton]:
    """The constraints of a core, in the order in which they are applied."""
    if core.start is not None:
        yield signature(core, letters)
    for forbid in core.forbids:
        if isinstance(forbid, model.ForbidNext):
            yield forbid_next(core, letters, forbid)
    for require in core.requires:
        yield _REQUIRE[require.order](core, letters, require)
    for forbid in core.forbids:
        if isinstance(forbid, model.ForbidWith):
            yield forbid_with(core, letters, forbid)
        elif isinstance(forbid, model.ForbidBefore):
            yield forbid_before(core, letters, forbid)


def signature(core: model.Core, letters: Letters) -> StatementAutomaton:
    """The state flows from `start` through `IN -> OUT` of each call to one of the goals."""
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


def require_before(
    core: model.Core, letters: Letters, require: model.Require
) -> StatementAutomaton:
    """State 1 once an A was seen.  A call in both does not serve itself."""
    first = frozenset(letters.patterns[require.first])
    second = frozenset(letters.patterns[require.second])

    def step(state: int, letter: int) -> int | None:
        if not state and letter in second:
            return None
        return 1 if letter in first else state

    return _constraint(core, require, step)


def require_after(core: model.Core, letters: Letters, require: model.Require) -> StatementAutomaton:
    """State 1 while a B waits for its A.  A call in both serves the ones before, not itself."""
    first = frozenset(letters.patterns[require.first])
    second = frozenset(letters.patterns[require.second])

    def step(state: int, letter: int) -> int | None:
        if letter in second:
            return 1
        return 0 if letter in first else state

    return _constraint(core, require, step, accepts=lambda state: state == 0)


def require_each(core: model.Core, letters: Letters, require: model.Require) -> StatementAutomaton:
    """State 1 once an A was seen since the last B.  A call in both is a B, and serves nobody."""
    first = frozenset(letters.patterns[require.first])
    second = frozenset(letters.patterns[require.second])

    def step(state: int, letter: int) -> int | None:
        if letter in second:
            return 0 if state else None
        return 1 if letter in first else state

    return _constraint(core, require, step)


_REQUIRE = {"before": require_before, "after": require_after, "each": require_each}


def forbid_next(core: model.Core, letters: Letters, forbid: model.ForbidNext) -> StatementAutomaton:
    """Bit i of the state: the last i + 1 calls match the first i + 1 patterns."""
    holds = [0] * len(letters.calls)
    for at, pattern in enumerate(forbid.patterns):
        for letter in letters.patterns[pattern]:
            holds[letter] |= 1 << at
    last = 1 << (len(forbid.patterns) - 1)

    def step(state: int, letter: int) -> int | None:
        after = (state << 1 | 1) & holds[letter]
        return None if after & last else after

    return _constraint(core, forbid, step)


def forbid_with(core: model.Core, letters: Letters, forbid: model.ForbidWith) -> StatementAutomaton:
    """Bits of the state: an A was seen, a B was seen; both together are forbidden."""
    seen = [0] * len(letters.calls)
    for bit, pattern in ((1, forbid.first), (2, forbid.second)):
        for letter in letters.patterns[pattern]:
            seen[letter] |= bit

    def step(state: int, letter: int) -> int | None:
        after = state | seen[letter]
        return None if after == 3 else after

    return _constraint(core, forbid, step)


def forbid_before(
    core: model.Core, letters: Letters, forbid: model.ForbidBefore
) -> StatementAutomaton:
    """State 1 once an A was seen.  One call in both may stand, a second one not."""
    first = frozenset(letters.patterns[forbid.first])
    second = frozenset(letters.patterns[forbid.second])

    def step(state: int, letter: int) -> int | None:
        if state and letter in second:
            return None
        return 1 if letter in first else state

    return _constraint(core, forbid, step)


def _constraint(
    core: model.Core,
    statement: model.Require | model.Forbid,
    step: Callable[[int, int], int | None],
    accepts: Callable[[int], bool] = lambda _: True,
) -> StatementAutomaton:
    text = statement_text(core, statement)
    return StatementAutomaton(text=text, statement=statement, start=0, step=step, accepts=accepts)


def statement_text(core: model.Core, statement: Statement) -> str:
    """A statement as the grammar would write it, with short patterns."""
    match statement:
        case model.Limit():
            return f"limit {statement.text}"
        case model.Require(order, first, second):
            words = "before each" if order == "each" else order
            return f"require {pattern_text(core, first)} {words} {pattern_text(core, second)}"
        case model.ForbidNext(patterns):
            shown = " ".join(pattern_text(core, pattern) for pattern in patterns[:8])
            return f"forbid {shown}{' ...' if len(patterns) > 8 else ''}"
        case model.ForbidWith(first, second):
            return f"forbid {pattern_text(core, first)} with {pattern_text(core, second)}"
        case model.ForbidBefore(first, second):
            return f"forbid {pattern_text(core, first)} before {pattern_text(core, second)}"


def pattern_text(core: model.Core, pattern: int) -> str:
    """A pattern in messages: the tool if it has all its calls, else the first call and a count."""
    return call_set_text(core, core.patterns[pattern])


def call_set_text(core: model.Core, calls: model.CallSet) -> str:
    """A call set in messages; see :func:`pattern_text`."""
    if not calls:
        return "(no call)"
    low, high = calls[0]
    size = sum(end - start for start, end in calls)
    tool = core.calls[low].tool
    whole = (low == 0 or core.calls[low - 1].tool != tool) and (
        high == len(core.calls) or core.calls[high].tool != tool
    )
    if len(calls) == 1 and whole and core.calls[high - 1].tool == tool:
        return written(core.tools[tool].name)
    return core.calls[low].text if size == 1 else f"{core.calls[low].text}|...({size} calls)"


# A state of `Control` is a tuple: a state for each constraint, then for each limit the sum so far,
# in units of the greatest common divisor of its amounts.


@frozen
class BoundedSum:
    """A limit: what each letter adds, and the bound; `least` for ``>=``."""

    amounts: Sequence[int]
    bound: int
    least: bool


class Control:
    """The product of the statements.  State 0 is that of the empty prefix.

    Attributes:
        exact: False where a limit on cost had to be left out, because a cost is negative.
    """

    def __init__(self, core: model.Core, letters: Letters, limits: bool) -> None:
        """Args: limits: False leaves every limit out."""
        self._constraints: tuple[StatementAutomaton, ...] = tuple(constraints(core, letters))
        self._sums, left_out = _sums(core, letters) if limits else ((), len(core.limits))
        self.exact = not left_out
        first = (*(constraint.start for constraint in self._constraints), *(0 for _ in self._sums))
        self._states = [first]
        self._number = {first: 0}
        self._moves: dict[tuple[int, int], int | None] = {}

    @property
    def size(self) -> int:
        """How many states have been made."""
        return len(self._states)

    def step(self, state: int, letter: int) -> int | None:
        """The state after `letter`, None where a statement forbids it."""
        key = (state, letter)
        if key not in self._moves:
            after = self._after(self._states[state], letter)
            if after is not None and after not in self._number:
                self._number[after] = len(self._states)
                self._states.append(after)
            self._moves[key] = None if after is None else self._number[after]
        return self._moves[key]

    def accepts(self, state: int) -> bool:
        """Whether a plan may stop in `state`."""
        values = self._states[state]
        split = len(self._constraints)
        return all(
            constraint.accepts(value)
            for constraint, value in zip(self._constraints, values[:split], strict=True)
        ) and all(
            not total.least or value >= total.bound
            for total, value in zip(self._sums, values[split:], strict=True)
        )

    def _after(self, values: tuple[int, ...], letter: int) -> tuple[int, ...] | None:
        next_values: list[int] = []
        split = len(self._constraints)
        for constraint, value in zip(self._constraints, values[:split], strict=True):
            after = constraint.step(value, letter)
            if after is None:
                return None
            next_values.append(after)
        for total, value in zip(self._sums, values[split:], strict=True):
            used = value + total.amounts[letter]
            if used > total.bound:
                if not total.least:
                    return None
                used = total.bound
            next_values.append(used)
        return tuple(next_values)


def _sums(core: model.Core, letters: Letters) -> tuple[tuple[BoundedSum, ...], int]:
    """The limits whose amounts are never negative, and how many others there are."""
    sums = []
    for limit in core.limits:
        amounts = letter_amounts(core, letters, limit)
        if min(amounts, default=0) < 0:
            continue
        unit = gcd(*amounts) or 1
        bound = -(-limit.value // unit) if limit.least else limit.value // unit
        sums.append(
            BoundedSum(
                amounts=[amount // unit for amount in amounts], bound=bound, least=limit.least
            )
        )
    return tuple(sums), len(core.limits) - len(sums)
