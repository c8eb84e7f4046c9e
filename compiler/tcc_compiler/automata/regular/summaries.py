"""What a recursive expression does to a finite control: which control state it ends in.

An item (node, p, q, e) says: the node derives a word that takes the control from p to q, the word
empty (e = 0) or not (e = 1).  Items are found bottom-up with the ways to make them; together the
ways are a grammar whose words are exactly the node's words that the control allows.
Cost: cubic in the control at worst; past `cap` ways it gives up.
Source: Bar-Hillel, Perles and Shamir, On formal properties of simple phrase structure grammars,
1961; tabulated on demand as in Earley, 1970.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from tcc_compiler.automata.regular.network import Network
from tcc_compiler.automata.regular.nodes import Kind, Nodes
from tcc_compiler.frozen import frozen
from tcc_compiler.resources.guard import Guard

# A node of the table, or the operand sets of a `&` or `-` (see Network.operands).
Unit: TypeAlias = "int | tuple[int, tuple[int, ...]]"
Ask: TypeAlias = "tuple[Unit, int]"
Item: TypeAlias = "tuple[Unit, int, int, int]"


@frozen(kw_only=False)
class Way:
    """One way to make an item: a letter or none, then the words of other items."""

    letter: int | None
    parts: tuple[Item, ...]


class TooMany(Exception):
    """The table has outgrown its cap."""


class Summaries:
    """The table, filled by :meth:`solve`.

    Attributes:
        ways: item -> its ways, the first found first; expanding first ways ends.
    """

    def __init__(
        self,
        nodes: Nodes,
        network: Network,
        patterns: Sequence[Sequence[int]],
        step: Callable[[int, int], int | None],
        cap: int,
        guard: Guard,
    ) -> None:
        self.ways: dict[Item, list[Way]] = {}
        self._nodes = nodes
        self._network = network
        self._patterns = patterns
        self._step = step
        self._cap = cap
        self._guard = guard
        self._made = 0
        self._exits: dict[Ask, list[Item]] = {}
        # Who waits for an ask: (user, letter, item before it, node after it).
        self._users: dict[Ask, list[tuple[Ask, int | None, Item | None, int | None]]] = {}
        self._fresh: list[Ask] = []
        self._events: list[Item] = []

    def solve(self, node: int, control: int) -> list[Item]:
        """The items of a node from a control state; fills in all that they are made of.

        Raises:
            TooMany: past the cap.
        """
        self._ask((node, control))
        while self._fresh or self._events:
            self._guard.tick()
            if self._fresh:
                self._start(self._fresh.pop())
            else:
                item = self._events.pop(0) if len(self._events) < 64 else self._events.pop()
                for user in list(self._users[(item[0], item[1])]):
                    self._tell(user, item)
        return self._exits[(node, control)]

    def _ask(self, ask: Ask) -> None:
        if ask not in self._exits:
            self._exits[ask] = []
            self._users[ask] = []
            self._fresh.append(ask)

    def _wait(
        self,
        user: Ask,
        ask: Ask,
        letter: int | None = None,
        before: Item | None = None,
        after: int | None = None,
    ) -> None:
        self._ask(ask)
        entry = (user, letter, before, after)
        self._users[ask].append(entry)
        self._count()
        for item in list(self._exits[ask]):
            self._tell(entry, item)

    def _tell(self, entry: tuple[Ask, int | None, Item | None, int | None], item: Item) -> None:
        """An ask has a new item: the user makes what follows from it."""
        user, letter, before, after = entry
        _, _, end, filled = item
        if after is not None:
            self._wait(user, (after, end), before=item)
        elif before is not None:
            self._make(user, end, before[3] | filled, Way(None, (before, item)))
        else:
            self._make(user, end, filled if letter is None else 1, Way(letter, (item,)))

    def _make(self, ask: Ask, end: int, filled: int, way: Way) -> None:
        item = (ask[0], ask[1], end, filled)
        ways = self.ways.get(item)
        if ways is None:
            self.ways[item] = [way]
            self._exits[ask].append(item)
            self._events.append(item)
        elif way in ways[:64]:
            return
        else:
            ways.append(way)
        self._count()

    def _count(self) -> None:
        self._made += 1
        if self._made > self._cap:
            raise TooMany

    def _start(self, ask: Ask) -> None:
        """Make what an ask has without waiting, and wait for the rest."""
        unit, control = ask
        if not isinstance(unit, int):
            self._start_operands(ask, unit)
            return
        nodes = self._nodes
        parts = nodes.parts[unit]
        match nodes.kind[unit]:
            case Kind.EMPTY:
                self._make(ask, control, 0, Way(None, ()))
            case Kind.CALL:
                for letter in self._patterns[nodes.pattern[unit]]:
                    end = self._step(control, letter)
                    if end is not None:
                        self._make(ask, end, 1, Way(letter, ()))
            case Kind.PAIR:
                self._wait(ask, (parts[0], control), after=parts[1])
            case Kind.ALT | Kind.RULE:
                for part in parts:
                    self._wait(ask, (part, control))
            case Kind.REPEAT:
                if nodes.low[unit] == 0:
                    self._make(ask, control, 0, Way(None, ()))
                self._wait(ask, (parts[0], control), after=nodes.rest(unit))
            case Kind.BOTH | Kind.DIFF:
                sets = tuple(self._network.initial(part) for part in parts)
                self._wait(ask, ((unit, sets), control))

    def _start_operands(self, ask: Ask, unit: tuple[int, tuple[int, ...]]) -> None:
        node, sets = unit
        control = ask[1]
        # Operands that recurse through themselves make ever larger sets.
        if self._network.room > self._cap:
            raise TooMany
        if self._network.complete(node, sets):
            self._make(ask, control, 0, Way(None, ()))
        for letter, after in self._network.step_operands(node, sets):
            end = self._step(control, letter)
            if end is not None:
                self._wait(ask, ((node, after), end), letter=letter)
