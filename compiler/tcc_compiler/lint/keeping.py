"""Whether every word of an automaton keeps to a statement; and what is left of those that do not.

Cost: edges of the automaton times states of the statement; a pass over the edges for a limit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tcc_certs.core.model import Core, Limit
from tcc_compiler.automata.best_to_go import best_to_go, exact_array
from tcc_compiler.automata.constraint.least import least_to_go
from tcc_compiler.automata.constraint.product import Constraint, product
from tcc_compiler.automata.constraint.statements import constraints
from tcc_compiler.automata.letters import Letters, letter_amounts
from tcc_compiler.automata.machine import Machine, components
from tcc_compiler.automata.table import Table, as_machine
from tcc_compiler.automata.trim import trim
from tcc_compiler.lint.plans import Automaton, Plans
from tcc_compiler.lint.statements import with_parts
from tcc_compiler.resources.guard import Guard
from tcc_compiler.resources.place import Statement

_BROKEN = -1


def breaking(plans: Plans, automaton: Automaton, part: Statement) -> Machine | None:
    """The words of `automaton` that break a `require` or `forbid`, trimmed; None without any."""
    machine = as_machine(automaton) if isinstance(automaton, Table) else automaton
    held = _constraint(plans.core, plans.letters, part)
    return trim(product(machine, _complement(held), plans.guard()))


def _constraint(core: Core, letters: Letters, part: Statement) -> Constraint:
    (found,) = constraints(with_parts(core, (part,), signed=False), letters)
    return found


def _complement(held: Constraint) -> Constraint:
    def step(state: int, letter: int) -> int | None:
        after = _BROKEN if state == _BROKEN else held.step(state, letter)
        return _BROKEN if after is None else after

    def accepts(state: int) -> bool:
        return state == _BROKEN or not held.accepts(state)

    return Constraint(text=held.text, start=held.start, step=step, accepts=accepts)


def keeps(plans: Plans, automaton: Automaton, part: Statement) -> bool:
    """Whether every word keeps to a statement."""
    if not isinstance(part, Limit):
        return breaking(plans, automaton, part) is None
    found = furthest(plans, automaton, part)
    if found is None:
        return False
    return found >= part.value if part.least else found <= part.value


def furthest(plans: Plans, automaton: Automaton, limit: Limit) -> int | None:
    """The greatest sum of a word, the least for a `>=`; None without end, or unknown."""
    amounts = letter_amounts(plans.core, plans.letters, limit)
    if isinstance(automaton, Machine):
        if limit.least:
            return _least(automaton, amounts, plans.guard())
        return _greatest(automaton, amounts)
    weight = exact_array(amounts, len(automaton.levels) + 1, limit.value).take(automaton.letter)
    best = np.minimum if limit.least else np.maximum
    return int(best_to_go(automaton, weight, best, plans.guard())[automaton.start])


def _least(machine: Machine, amounts: Sequence[int], guard: Guard) -> int | None:
    found = least_to_go(machine, amounts, guard)
    return found[machine.start] if isinstance(found, list) else None


def _greatest(machine: Machine, amounts: Sequence[int]) -> int | None:
    """The greatest sum over a trimmed machine with cycles, whose own sums have to be 0."""
    place = [0] * machine.states
    parts = components(machine.states, machine.targets)
    for at, part in enumerate(parts):
        for q in part:
            place[q] = at
    best: list[int] = []
    for at, part in enumerate(parts):  # targets first
        found: int | None = None
        for q in part:
            ways = [0] if machine.accept[q] else []
            for letter, target in machine.edges[q]:
                if place[target] != at:
                    ways.append(amounts[letter] + best[place[target]])
                elif amounts[letter]:
                    return None
            found = max(ways if found is None else [*ways, found], default=found)
        # Of a trimmed machine every component accepts or leads on.
        best.append(0 if found is None else found)
    return best[place[machine.start]]


def shortest(machine: Machine) -> list[int]:
    """The letters of a shortest word of a trimmed machine."""
    came: dict[int, tuple[int, int]] = {}
    todo = [machine.start]
    for q in todo:
        if machine.accept[q]:
            word = []
            while q in came:
                letter, q = came[q]
                word.append(letter)
            return word[::-1]
        for letter, target in machine.edges[q]:
            if target != machine.start and target not in came:
                came[target] = (letter, q)
                todo.append(target)
    return []


def meets(plans: Plans, word: Sequence[int], limits: Sequence[Limit]) -> bool:
    """Whether a word of letters meets limits."""
    for limit in limits:
        amounts = letter_amounts(plans.core, plans.letters, limit)
        used = sum(amounts[letter] for letter in word)
        if used < limit.value if limit.least else used > limit.value:
            return False
    return True
