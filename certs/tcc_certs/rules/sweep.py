"""A sweep: the edges of all states in blocks of one degree, so that a rule runs in bulk.

The states of a block have the same number of edges, so the edges of one state after the other are
groups of one size, and "for each state, fold its edges" is a fold over such groups, done by the
interpreter's own loops.  A rule asks a block for values at its states, at its edges' calls and at
its edges' targets.  Blocks are small, so what a rule holds at a time is small.
Cost: one pass over the edges, once for all rules.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, repeat
from operator import itemgetter
from typing import Any, Generic, TypeVar

from tcc_certs.automaton import Automaton
from tcc_certs.errors import Code, Rejected

T = TypeVar("T")
R = TypeVar("R")
_EDGES = 1 << 14  # of a block, about


class Block:
    """States of one degree, and their edges in the order of the states, then of the calls.

    Attributes:
        states: their numbers, increasing.
        degree: how many edges each has.
        targets: the target of each edge.
    """

    __slots__ = ("_at_calls", "_at_states", "_at_targets", "degree", "states", "targets")

    def __init__(self, states: Sequence[int], degree: int, automaton: Automaton) -> None:
        self.states = states
        self.degree = degree
        starts = map(automaton.edge_start.__getitem__, states)
        rows = [slice(start, start + degree) for start in starts]
        self.targets = list(chain.from_iterable(map(automaton.edge_target.__getitem__, rows)))
        calls = list(chain.from_iterable(map(automaton.edge_call.__getitem__, rows)))
        self._at_states = _getter(states)
        self._at_calls = _getter(calls)
        self._at_targets = _getter(self.targets)

    def at_states(self, values: Sequence[T]) -> Sequence[T]:
        """The block's part of a column of the states."""
        return self._at_states(values)

    def at_calls(self, values: Sequence[T]) -> Sequence[T]:
        """For each edge the value of its call."""
        return self._at_calls(values)

    def at_targets(self, values: Sequence[T]) -> Sequence[T]:
        """For each edge the value of its target."""
        return self._at_targets(values)

    def each_edge(self, values: Iterable[T]) -> Iterator[T]:
        """A value of every state, for each of its edges."""
        return chain.from_iterable(map(repeat, values, repeat(self.degree)))

    def fold(self, function: Callable[[Sequence[T]], R], terms: Iterable[T], empty: R) -> list[R]:
        """For each state `function` of the terms of its edges; `empty` where it has none."""
        if self.degree == 0:
            return [empty] * len(self.states)
        return list(map(function, zip(*[iter(terms)] * self.degree, strict=True)))


def _getter(indices: Sequence[Any]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    if len(indices) > 1:
        return itemgetter(*indices)
    return lambda values: tuple([values[index] for index in indices])


def sweep(automaton: Automaton) -> list[Block]:
    """All states in blocks.

    Args:
        automaton: rows well formed (C1); its edges as lists.
    """
    degrees = automaton.degrees()
    order = sorted(range(automaton.states), key=degrees.__getitem__)
    blocks = []
    first = 0
    while first < len(order):
        degree = degrees[order[first]]
        last = min(len(order), first + max(1, _EDGES // max(1, degree)))
        last = bisect_right(order, degree, first, last, key=degrees.__getitem__)
        blocks.append(Block(order[first:last], degree, automaton))
        first = last
    return blocks


class Differences(Generic[T]):
    """Where columns differ from what is due; the first state counts, whatever its block.

    Attributes:
        first: that state, what is due and what was found; None where nothing differs.
    """

    __slots__ = ("first",)

    def __init__(self) -> None:
        self.first: tuple[int, T, T] | None = None

    def note(self, states: Sequence[int], due: Sequence[T], found: Sequence[T]) -> None:
        """Compare a block's values, one for each of `states`."""
        if tuple(due) == tuple(found):
            return
        for state, expected, value in zip(states, due, found, strict=True):
            if expected != value and (self.first is None or state < self.first[0]):
                self.first = state, expected, value

    def refuse(self, code: Code, column: str) -> None:
        """Refuse at the first state.

        Raises:
            Rejected: `code`.
        """
        if self.first is not None:
            state, expected, found = self.first
            raise Rejected(code, f"{column}[{state}]", expected, found)
