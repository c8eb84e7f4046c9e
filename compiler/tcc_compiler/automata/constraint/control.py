"""All statements of a core as one deterministic automaton over letters, states made on demand.

Used where the statements are needed together: for unbounded recursion
(:mod:`tcc_compiler.automata.regular.finiteness`), and for examples of a relaxed artifact.
A state is a tuple: a state for each constraint, then for each limit the sum so far, in units of the
greatest common divisor of its amounts.
Cost: constant for each constraint and limit at each new (state, letter).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from tcc_certs.core.model import Core
from tcc_compiler.automata.constraint.product import Constraint
from tcc_compiler.automata.constraint.statements import constraints
from tcc_compiler.automata.letters import Letters, letter_amounts
from tcc_compiler.frozen import frozen


@frozen
class Sum:
    """A limit: what each letter adds, and the bound; `least` for ``>=``."""

    amounts: Sequence[int]
    bound: int
    least: bool


class Control:
    """The product of the statements.  State 0 is that of the empty prefix.

    Attributes:
        exact: False where a limit on cost had to be left out, because a cost is negative.
    """

    def __init__(self, core: Core, letters: Letters, limits: bool) -> None:
        """Args: limits: False leaves every limit out."""
        self._constraints: tuple[Constraint, ...] = tuple(constraints(core, letters))
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


def _sums(core: Core, letters: Letters) -> tuple[tuple[Sum, ...], int]:
    """The limits whose amounts are never negative, and how many others there are."""
    sums = []
    for limit in core.limits:
        amounts = letter_amounts(core, letters, limit)
        if min(amounts, default=0) < 0:
            continue
        unit = gcd(*amounts) or 1
        bound = -(-limit.value // unit) if limit.least else limit.value // unit
        sums.append(
            Sum(amounts=[amount // unit for amount in amounts], bound=bound, least=limit.least)
        )
    return tuple(sums), len(core.limits) - len(sums)
