"""The memory of a prefix: the state of the signature and the state of each table.

Semantics: docs/spec/artifact.md, section 9.  A step by a letter gives the next memory, or None if a
statement forbids the letter.  :meth:`Memory.settle` simplifies a memory, given the classes that
later calls can have.  It returns None if some table cannot accept any more.  Otherwise it replaces
the state of each table by the first state that allows the same words.

Cost: a step and a settling take the number of tables; a table is reduced once for each set of
classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tcc_certs.corecheck.letters import Alphabet, Letter, WorkBudget
from tcc_certs.corecheck.outlook import FAR
from tcc_certs.policy.core import Core
from tcc_certs.policy.tables import Table, blocks_of


class MemoryState(NamedTuple):
    """The state of the signature (`place`) and the state of each table."""

    place: int
    tables: tuple[int, ...]


class Memory:
    """The tables of one core's statements, and its signature states.

    Attributes:
        start: the memory of the empty prefix, not yet settled.
        bits: for each table the bit of its class 0 in `touched`; its class i has the bit i places
            higher.
    """

    __slots__ = ("_alphabet", "_budget", "_known", "_masks", "_routes", "_settled", "bits", "start")

    def __init__(self, core: Core, alphabet: Alphabet, budget: WorkBudget) -> None:
        self._alphabet = alphabet
        self._budget = budget
        self._routes = Routes(core, alphabet.letters)
        self._known: dict[tuple[int, int], _Reduced] = {}
        self._settled: dict[int, Sequence[_Reduced]] = {}
        self.bits = table_bits(alphabet)
        self._masks = [(1 << part.classes) - 1 for part in alphabet.tables]
        self.start = MemoryState(self._routes.start, (0,) * len(alphabet.tables))

    def step(self, state: MemoryState, letter: int) -> MemoryState | None:
        """Return the memory after a letter; None if the signature or a table forbids it."""
        place = self._routes.move(state.place, letter)
        if place is None:
            return None
        classes = self._alphabet.letters[letter].classes
        if not classes:
            return MemoryState(place, state.tables)
        tables = list(state.tables)
        for at, number in classes:
            after = self._alphabet.tables[at].step(tables[at], number)
            if after is None:
                return None
            tables[at] = after
        return MemoryState(place, tuple(tables))

    def settle(self, state: MemoryState, touched: int) -> MemoryState | None:
        """Replace table states by equivalent ones; None if some table cannot accept any more.

        Args:
            touched: the classes that later calls can have, as bits; see :class:`Outlook`.
        """
        pairs = zip(self._reduced(touched), state.tables, strict=True)
        tables = tuple([reduced.first[number] for reduced, number in pairs])
        return None if -1 in tables else MemoryState(state.place, tables)

    def least_calls(self, state: MemoryState, touched: int) -> int:
        """Return a lower bound on the number of calls to the end of a plan; FAR if none ends."""
        pairs = zip(self._reduced(touched), state.tables, strict=True)
        least = [reduced.distance[number] for reduced, number in pairs]
        return max([self._routes.least_calls[state.place], *least])

    def accepts(self, state: MemoryState) -> bool:
        """Return whether the tables and the signature allow a plan to end here."""
        pairs = zip(self._alphabet.tables, state.tables, strict=True)
        at_goal = self._routes.least_calls[state.place] == 0
        return at_goal and all(part.accepts(number) for part, number in pairs)

    def _reduced(self, touched: int) -> Sequence[_Reduced]:
        """Each table restricted to the classes that later calls can have."""
        found = self._settled.get(touched)
        if found is None:
            found = self._settled[touched] = [
                self._table(at, touched >> bit & mask)
                for at, (bit, mask) in enumerate(zip(self.bits, self._masks, strict=True))
            ]
        self._budget.spend(len(found) // 8)
        return found

    def _table(self, at: int, classes: int) -> _Reduced:
        found = self._known.get((at, classes))
        if found is None:
            table = self._alphabet.tables[at].table
            if table is None:
                raise TypeError(at)
            self._budget.spend(len(table.moves) * (1 + classes.bit_count()))
            found = self._known[at, classes] = _Reduced(table, classes)
        return found


def table_bits(alphabet: Alphabet) -> list[int]:
    """For each table the bit of its class 0; the bits of all tables follow each other."""
    bits, total = [], 0
    for part in alphabet.tables:
        bits.append(total)
        total += part.classes
    return bits


class _Reduced:
    """A table restricted to some of its classes.

    Attributes:
        distance: for each state the fewest calls to an accepting state; FAR if none is reachable.
        first: for each state the first state that allows the same words; -1 if there are no words.
    """

    __slots__ = ("distance", "first")

    def __init__(self, table: Table, classes: int) -> None:
        chosen = [number for number in range(len(table.moves[0])) if classes >> number & 1]
        rows = [[row[number] for number in chosen] for row in table.moves]
        self.distance = _distances(rows, table.accepts)
        live = [far < FAR for far in self.distance]
        moves = tuple([tuple([to if to >= 0 and live[to] else -1 for to in row]) for row in rows])
        block = blocks_of(moves, table.accepts)
        firsts: dict[int, int] = {}
        for state, number in enumerate(block):
            if live[state]:
                firsts.setdefault(number, state)
        self.first = [firsts[number] if live[state] else -1 for state, number in enumerate(block)]


def _distances(rows: Sequence[Sequence[int]], accepts: Sequence[bool]) -> list[int]:
    """For each state the fewest moves to an accepting state, by a backward breadth-first search."""
    into: list[list[int]] = [[] for _ in rows]
    for state, row in enumerate(rows):
        for to in set(row):
            if to >= 0:
                into[to].append(state)
    return _backwards(into, [state for state, accepting in enumerate(accepts) if accepting])


def _backwards(into: Sequence[Sequence[int]], ends: Sequence[int]) -> list[int]:
    found = [FAR] * len(into)
    for end in ends:
        found[end] = 0
    layer, calls = list(ends), 0
    while layer:
        calls += 1
        fresh = []
        for state in layer:
            for source in into[state]:
                if found[source] == FAR:
                    found[source] = calls
                    fresh.append(source)
        layer = fresh
    return found


class Routes:
    """The states of the signature by number.

    A core without `start` has a single state, and a plan may end in it.

    Attributes:
        start: the number of the start state.
        least_calls: for each state the fewest calls to a goal state; FAR if none is reachable.
    """

    __slots__ = ("_moves", "least_calls", "start")

    def __init__(self, core: Core, letters: Sequence[Letter]) -> None:
        self.start = 0
        signed = core.start is not None
        names = _names(core, letters) if signed else [""]
        number = {name: index for index, name in enumerate(names)}
        # For each letter the states that it needs (-1: any) and leads to.
        self._moves: list[tuple[int, int]] = [
            (number[letter.takes], number[letter.gives])
            if signed and letter.takes is not None and letter.gives is not None
            else (-1, 0)
            for letter in letters
        ]
        goals = [number[goal] for goal in core.goals] if signed else [0]
        into: list[list[int]] = [[] for _ in names]
        for takes, gives in sorted({move for move in self._moves if move[0] >= 0}):
            into[gives].append(takes)
        self.least_calls = _backwards(into, goals)

    def move(self, place: int, letter: int) -> int | None:
        """Return the state after a letter.

        None if its signature does not allow it in this state.
        """
        takes, gives = self._moves[letter]
        if takes < 0:
            return place
        return gives if takes == place else None


def _names(core: Core, letters: Sequence[Letter]) -> list[str]:
    """The names of the states: the start state first, then the others in order."""
    ends = {end for letter in letters for end in (letter.takes, letter.gives) if end is not None}
    first = core.start or ""
    return [first, *sorted((ends | set(core.goals)) - {first})]
