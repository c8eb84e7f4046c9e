"""Words that violate a statement: whether an automaton has some, and short ones that prove it.

`keeps` asks an automaton about one statement. `broken_alone` is a bounded walk over the plan
expression with all statements beside it: where exactly one statement refuses a call, or the end,
the word continues without that statement for a few calls, the nearest way to an end first. Whatever
the walk does not find is a question for automata (:mod:`tcc_compiler.lint.redundancy`).
Cost: edges of the automaton times states of the statement; one pass over the edges for a limit; a
budget of steps for the walk.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import count

import numpy as np

from tcc_certs.core.model import Core, Limit
from tcc_compiler.automata import table
from tcc_compiler.automata.constraint.limit_cyclic import least_to_go
from tcc_compiler.automata.constraint.statements import StatementAutomaton, constraints, product
from tcc_compiler.automata.letters import Letters, letter_amounts
from tcc_compiler.lint.plans import Automaton, PlanAutomata, with_parts
from tcc_compiler.resources import Guard, Statement

_BROKEN = -1


def violating(plans: PlanAutomata, automaton: Automaton, part: Statement) -> table.Machine | None:
    """The words of `automaton` that violate a `require` or `forbid`, trimmed; None without any."""
    machine = table.as_machine(automaton) if isinstance(automaton, table.Table) else automaton
    held = _constraint(plans.core, plans.letters, part)
    return table.trim(product(machine, _complement(held), plans.guard()))


def _constraint(core: Core, letters: Letters, part: Statement) -> StatementAutomaton:
    (found,) = constraints(with_parts(core, (part,), signed=False), letters)
    return found


def _complement(held: StatementAutomaton) -> StatementAutomaton:
    def step(state: int, letter: int) -> int | None:
        after = _BROKEN if state == _BROKEN else held.step(state, letter)
        return _BROKEN if after is None else after

    def accepts(state: int) -> bool:
        return state == _BROKEN or not held.accepts(state)

    return StatementAutomaton(text=held.text, start=held.start, step=step, accepts=accepts)


def satisfies(plans: PlanAutomata, automaton: Automaton, part: Statement) -> bool:
    """Whether every word of `automaton` meets a statement."""
    if not isinstance(part, Limit):
        return violating(plans, automaton, part) is None
    found = extremal_sum(plans, automaton, part)
    if found is None:
        return False
    return found >= part.value if part.least else found <= part.value


def extremal_sum(plans: PlanAutomata, automaton: Automaton, limit: Limit) -> int | None:
    """The greatest sum of a word, the least for a `>=`; None if unbounded or unknown."""
    amounts = letter_amounts(plans.core, plans.letters, limit)
    if isinstance(automaton, table.Machine):
        if limit.least:
            return _least(automaton, amounts, plans.guard())
        return _greatest(automaton, amounts)
    weight = table.exact_array(amounts, len(automaton.levels) + 1, limit.value).take(
        automaton.letter
    )
    best = np.minimum if limit.least else np.maximum
    return int(table.best_to_go(automaton, weight, best, plans.guard())[automaton.start])


def _least(machine: table.Machine, amounts: Sequence[int], guard: Guard) -> int | None:
    found = least_to_go(machine, amounts, guard)
    return found[machine.start] if isinstance(found, list) else None


def _greatest(machine: table.Machine, amounts: Sequence[int]) -> int | None:
    """The greatest sum over a trimmed machine with cycles, whose own sums have to be 0."""
    place = [0] * machine.states
    parts = table.components(machine.states, machine.targets)
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


def shortest_word(machine: table.Machine) -> list[int]:
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


def within_limits(plans: PlanAutomata, word: Sequence[int], limits: Sequence[Limit]) -> bool:
    """Whether a word of letters meets limits."""
    for limit in limits:
        amounts = letter_amounts(plans.core, plans.letters, limit)
        used = sum(amounts[letter] for letter in word)
        if used < limit.value if limit.least else used > limit.value:
            return False
    return True


_STEPS = 8_000_000
_WAYS = 48  # states looked at for one ending
_VIOLATED = -1  # the state of the statement that was violated
_FAR = 1 << 30


def violated_alone(
    plans: PlanAutomata,
    machine: table.Machine,
    held: Sequence[StatementAutomaton],
    avoid: Sequence[int],
) -> set[int]:
    """The members of `held` that some word violates which meets all others and the limits.

    Args:
        machine: deterministic, of the plan expression.
        avoid: the group of each letter, empty for none; words have no letter of a group.
    """
    walk = _Walk(plans, machine, held, avoid)
    walk.run()
    return walk.found


class _Walk:
    def __init__(
        self,
        plans: PlanAutomata,
        machine: table.Machine,
        held: Sequence[StatementAutomaton],
        avoid: Sequence[int],
    ) -> None:
        self.found: set[int] = set()
        self._plans = plans
        self._machine = machine
        self._held = held
        self._avoid = avoid
        self._left = _STEPS
        self._memo: list[dict[tuple[int, int], int | None]] = [{} for _ in held]
        self._far = _distances(machine)

    def run(self) -> None:
        """Walk over the words that meet every statement, the shortest first."""
        first = (self._machine.start, tuple([item.start for item in self._held]))
        seen = {first}
        todo: list[tuple[tuple[int, tuple[int, ...]], tuple[int, ...]]] = [(first, ())]
        for (q, states), word in todo:
            if self._left <= 0 or len(self.found) == len(self._held):
                return
            self._end(q, states, word)
            for letter, target in self._edges(q):
                refused, after = self._step(states, letter)
                if not refused:
                    state = (target, after)
                    if state not in seen:
                        seen.add(state)
                        todo.append((state, (*word, letter)))
                elif len(refused) == 1 and refused[0] not in self.found:
                    self._finish(refused[0], target, after, (*word, letter))

    def _edges(self, q: int) -> list[tuple[int, int]]:
        return [
            (letter, target)
            for letter, target in self._machine.edges[q]
            if self._far[target] < _FAR and not (self._avoid and self._avoid[letter] >= 0)
        ]

    def _step(self, states: Sequence[int], letter: int) -> tuple[list[int], tuple[int, ...]]:
        """The statements that refuse a letter, two at most; and the states after it."""
        refused, after = [], []
        self._left -= len(states)
        for at, state in enumerate(states):
            if state == _VIOLATED:
                after.append(_VIOLATED)
                continue
            memo = self._memo[at]
            key = (state, letter)
            if key not in memo:
                memo[key] = self._held[at].step(state, letter)
            found = memo[key]
            if found is None:
                refused.append(at)
                if len(refused) > 1:
                    break
            after.append(_VIOLATED if found is None else found)
        return refused, tuple(after)

    def _open(self, states: Sequence[int]) -> list[int]:
        """The statements that do not allow a word to end here."""
        return [
            at
            for at, state in enumerate(states)
            if state != _VIOLATED and not self._held[at].accepts(state)
        ]

    def _end(self, q: int, states: Sequence[int], word: Sequence[int]) -> None:
        if self._machine.accept[q]:
            still = self._open(states)
            if len(still) == 1 and within_limits(self._plans, word, self._plans.limits):
                self.found.add(still[0])

    def _finish(self, broken: int, q: int, states: tuple[int, ...], word: tuple[int, ...]) -> None:
        """Search for an end of a word that has violated one statement."""
        order = count()
        heap = [(self._far[q], next(order), q, states, word)]
        seen = {(q, states)}
        for _ in range(_WAYS):
            if not heap or self._left <= 0:
                return
            _, _, q, states, word = heapq.heappop(heap)
            ends = self._machine.accept[q] and not self._open(states)
            if ends and within_limits(self._plans, word, self._plans.limits):
                self.found.add(broken)
                return
            for letter, target in self._edges(q):
                refused, after = self._step(states, letter)
                if not refused and (target, after) not in seen:
                    seen.add((target, after))
                    item = (self._far[target], next(order), target, after, (*word, letter))
                    heapq.heappush(heap, item)


def _distances(machine: table.Machine) -> list[int]:
    """For each state the fewest calls to an end of the plan expression."""
    sources: list[list[int]] = [[] for _ in machine.accept]
    for q, edges in enumerate(machine.edges):
        for _, target in edges:
            sources[target].append(q)
    far = [0 if accepting else _FAR for accepting in machine.accept]
    todo = [q for q, accepting in enumerate(machine.accept) if accepting]
    for q in todo:
        for source in sources[q]:
            if far[source] == _FAR:
                far[source] = far[q] + 1
                todo.append(source)
    return far
