"""Words that break one statement and meet all the others: proofs that a statement bites.

A bounded walk over the plan expression with every statement beside it.  Where exactly one statement
refuses a call, or the end, the word goes on without it for a few calls, the nearest way to an end
first.  What is not found here is asked of automata (:mod:`tcc_compiler.lint.biting`).
Cost: within a budget of steps, each that of one statement over one letter.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import count

from tcc_compiler.automata.constraint.product import Constraint
from tcc_compiler.automata.machine import Machine
from tcc_compiler.lint.keeping import meets
from tcc_compiler.lint.plans import Plans

_STEPS = 8_000_000
_WAYS = 48  # states looked at for one ending
_GONE = -1  # the state of the statement that was broken
_FAR = 1 << 30


def broken_alone(
    plans: Plans, machine: Machine, held: Sequence[Constraint], avoid: Sequence[int]
) -> set[int]:
    """Which of `held` some word breaks that meets all the others, and the limits.

    Args:
        machine: deterministic, of the plan expression.
        avoid: the group of each letter, empty for none; words have no letter of a group.
    """
    walk = _Walk(plans, machine, held, avoid)
    walk.run()
    return walk.found


class _Walk:
    def __init__(
        self, plans: Plans, machine: Machine, held: Sequence[Constraint], avoid: Sequence[int]
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
        """Walk over the words that meet everything, the shortest first."""
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
            if state == _GONE:
                after.append(_GONE)
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
            after.append(_GONE if found is None else found)
        return refused, tuple(after)

    def _open(self, states: Sequence[int]) -> list[int]:
        """The statements with which a word may not end here."""
        return [
            at
            for at, state in enumerate(states)
            if state != _GONE and not self._held[at].accepts(state)
        ]

    def _end(self, q: int, states: Sequence[int], word: Sequence[int]) -> None:
        if self._machine.accept[q]:
            still = self._open(states)
            if len(still) == 1 and meets(self._plans, word, self._plans.limits):
                self.found.add(still[0])

    def _finish(self, broken: int, q: int, states: tuple[int, ...], word: tuple[int, ...]) -> None:
        """Look for an end of a word that has broken one statement."""
        order = count()
        heap = [(self._far[q], next(order), q, states, word)]
        seen = {(q, states)}
        for _ in range(_WAYS):
            if not heap or self._left <= 0:
                return
            _, _, q, states, word = heapq.heappop(heap)
            ends = self._machine.accept[q] and not self._open(states)
            if ends and meets(self._plans, word, self._plans.limits):
                self.found.add(broken)
                return
            for letter, target in self._edges(q):
                refused, after = self._step(states, letter)
                if not refused and (target, after) not in seen:
                    seen.add((target, after))
                    item = (self._far[target], next(order), target, after, (*word, letter))
                    heapq.heappush(heap, item)


def _distances(machine: Machine) -> list[int]:
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
