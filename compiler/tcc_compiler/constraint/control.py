"""All statements of a core as one deterministic automaton over letters, states made on demand.

Only the look at unbounded recursion needs them together (:mod:`tcc_compiler.finiteness`).
A state is a tuple: one entry a rule, one a limit (what is used, in units of the limit's gcd).
Cost: constant a rule and limit for each new (state, letter).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from tcc_certs.core.model import Core
from tcc_compiler.constraint.product import Rule
from tcc_compiler.constraint.statements import rules
from tcc_compiler.letters import Letters, letter_amounts


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """A limit: what each letter adds, and the bound; `least` for ``>=``."""

    amounts: Sequence[int]
    bound: int
    least: bool


class Control:
    """The statements side by side.  State 0 is that of the empty prefix.

    Attributes:
        exact: False where a limit on cost had to be left out, because a cost is negative.
    """

    def __init__(self, core: Core, letters: Letters, limits: bool) -> None:
        """Args: limits: False leaves every limit out."""
        self._rules: tuple[Rule, ...] = tuple(rules(core, letters))
        self._sums, left_out = _sums(core, letters) if limits else ((), len(core.limits))
        self.exact = not left_out
        first = (*(rule.start for rule in self._rules), *(0 for _ in self._sums))
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
        split = len(self._rules)
        return all(
            rule.accepts(value) for rule, value in zip(self._rules, values[:split], strict=True)
        ) and all(
            not total.least or value >= total.bound
            for total, value in zip(self._sums, values[split:], strict=True)
        )

    def _after(self, values: tuple[int, ...], letter: int) -> tuple[int, ...] | None:
        found: list[int] = []
        split = len(self._rules)
        for rule, value in zip(self._rules, values[:split], strict=True):
            after = rule.step(value, letter)
            if after is None:
                return None
            found.append(after)
        for total, value in zip(self._sums, values[split:], strict=True):
            used = value + total.amounts[letter]
            if used > total.bound:
                if not total.least:
                    return None
                used = total.bound
            found.append(used)
        return tuple(found)


def _sums(core: Core, letters: Letters) -> tuple[tuple[Sum, ...], int]:
    """The limits whose amounts are never negative, and how many others there are."""
    found = []
    for limit in core.limits:
        amounts = letter_amounts(core, letters, limit)
        if min(amounts, default=0) < 0:
            continue
        unit = gcd(*amounts) or 1
        bound = -(-limit.value // unit) if limit.least else limit.value // unit
        found.append(
            Sum(amounts=[amount // unit for amount in amounts], bound=bound, least=limit.least)
        )
    return tuple(found), len(core.limits) - len(found)
