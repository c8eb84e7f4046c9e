"""A sweep: the states in blocks, in order, and every rule on some blocks before the next.

A rule asks a block for values at its states, at its edges' calls and at its edges' targets, and
folds them state by state with the interpreter's own loops; what is gathered is one block's.
The finding of a sweep is that of the first rule that fails anywhere, at its first state.
Cost: one pass over the edges, and what the rules take.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice, repeat
from operator import itemgetter, lt, sub
from typing import Any, TypeAlias, TypeVar

from tcc_certs.automaton import Automaton
from tcc_certs.errors import Code, Rejected

T = TypeVar("T")
R = TypeVar("R")
_EDGES = 1 << 12  # of a block, about; what a rule gathers for them stays in the cache
_BLOCKS = 1 << 6  # that a rule goes through in one go; some 60 bytes are held for each edge


class Block:
    """Consecutive states, and their edges in the order of the states, then of the calls.

    Attributes:
        states: their numbers.
        first_edge: the number of the first edge.
        offsets: where the edges of each begin among the block's, and where the last ones end.
        calls, targets: of each edge.
        greatest: the greatest target of each state, -1 where it has none.
    """

    __slots__ = ("_at_calls", "_at_targets", "_full", "_rows", "calls", "first_edge", "greatest",
                 "offsets", "states", "targets")  # fmt: skip

    def __init__(self, states: range, automaton: Automaton) -> None:
        starts = automaton.edge_start[states.start : states.stop + 1]
        first, last = starts[0], starts[-1]
        self.states = states
        self.first_edge = first
        self.offsets = [start - first for start in starts]
        self.calls = tuple(automaton.edge_call[first:last])
        self.targets = tuple(automaton.edge_target[first:last])
        self._rows = list(map(slice, self.offsets, self.offsets[1:]))
        self._full = all(map(lt, self.offsets, self.offsets[1:]))
        self._at_calls = _getter(self.calls)
        self._at_targets = _getter(self.targets)
        self.greatest = self.fold(max, self.targets, -1)

    def at_states(self, values: Sequence[T]) -> list[T]:
        """The block's part of a column of the states."""
        return list(values[self.states.start : self.states.stop])

    def at_calls(self, values: Sequence[T]) -> tuple[T, ...]:
        """For each edge the value of its call."""
        return self._at_calls(values)

    def at_targets(self, values: Sequence[T]) -> tuple[T, ...]:
        """For each edge the value of its target."""
        return self._at_targets(values)

    def each_edge(self, values: Iterable[T]) -> Iterator[T]:
        """A value of every state, for each of its edges."""
        degrees = map(sub, self.offsets[1:], self.offsets)
        return chain.from_iterable(map(repeat, values, degrees))

    def fold(self, function: Callable[[Sequence[T]], R], terms: Sequence[T], empty: R) -> list[R]:
        """For each state `function` of the terms of its edges; `empty` where it has none.

        A tuple of terms is cut into rows faster than a list.
        """
        rows = map(terms.__getitem__, self._rows)
        if self._full:
            return list(map(function, rows))
        return [function(row) if row else empty for row in rows]

    def compare(self, due: Sequence[T], column: Sequence[T], code: Code, name: str) -> None:
        """The block's part of a column is what is due.

        Raises:
            Rejected: `code` at the first state where it is not.
        """
        found = self.at_states(column)
        if due != found:
            for state, expected, value in zip(self.states, due, found, strict=True):
                if expected != value:
                    raise Rejected(code, f"{name}[{state}]", shown(expected), shown(value))


Rule: TypeAlias = Callable[[Block], None]


def shown(value: object) -> object:
    """A value as a finding has it: bytes in hex."""
    return value.hex() if isinstance(value, bytes) else value


def _getter(indices: Sequence[int]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    if len(indices) > 1:
        return itemgetter(*indices)
    return lambda values: tuple([values[index] for index in indices])


def blocks(automaton: Automaton) -> Iterator[Block]:
    """All states in blocks of some thousand edges.

    Args:
        automaton: rows well formed (C1).
    """
    starts, first = automaton.edge_start, 0
    while first < automaton.states:
        full = bisect_right(starts, starts[first] + _EDGES, first + 1) - 1
        last = min(max(full, first + 1), first + _EDGES, automaton.states)
        yield Block(range(first, last), automaton)
        first = last


def sweep(automaton: Automaton, rules: Sequence[Rule]) -> None:
    """Every rule holds in every block.

    A rule may count on those before it: where one has failed, those after it are not asked again.
    A rule goes through some blocks before the next one does: most read one column each at their
    targets, in any order, and so it stays in the cache.

    Raises:
        Rejected: that of the first rule, in the order of `rules`, that fails.
    """
    refusal: Rejected | None = None
    rest = blocks(automaton)
    while group := list(islice(rest, _BLOCKS)):
        for at, rule in enumerate(rules):
            try:
                for block in group:
                    rule(block)
            except Rejected as failed:
                refusal, rules = failed, rules[:at]
                break
    if refusal is not None:
        raise refusal
