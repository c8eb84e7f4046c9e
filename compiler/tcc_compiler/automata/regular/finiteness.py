"""Decide whether a recursive expression that is not regular still has finitely many plans.

All statements together form one automaton, the control. The words of the expression that it allows
are the language of a context-free grammar. A nonterminal of this grammar is an item (node, p, q,
e): the node derives a word that takes the control from state p to state q. The word is empty if e =
0, and not empty if e = 1. Items are found bottom-up, with the ways to make them. The language is
infinite exactly if a useful item derives itself together with further calls; these calls are the
witness. Otherwise the grammar gives the length of the longest plan, which bounds the depth.
Cost: at worst cubic in the control. Beyond a cap of ways the question is left undecided.
Sources: Bar-Hillel, Perles and Shamir, On formal properties of simple phrase structure grammars,
1961; tabulated on demand as in Earley, 1970.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from tcc_certs.policy.core import Core
from tcc_compiler.automata.constraint.statements import Control
from tcc_compiler.automata.letters import Letters
from tcc_compiler.automata.regular.network import Network
from tcc_compiler.automata.regular.nodes import NodeKind, Nodes
from tcc_compiler.automata.table import components
from tcc_compiler.automata.witness import calls_text, cuts
from tcc_compiler.frozen import frozen
from tcc_compiler.resources import CompileRefused, Guard

# A node of the table, or a `&` or `-` with the sets of its operands (see Network.complete).
Unit: TypeAlias = "int | tuple[int, tuple[int, ...]]"
Ask: TypeAlias = "tuple[Unit, int]"
Item: TypeAlias = "tuple[Unit, int, int, int]"


@frozen(kw_only=False)
class Way:
    """One way to make an item: an optional letter, then the words of other items."""

    letter: int | None
    parts: tuple[Item, ...]


class TableFull(Exception):
    """Raised if the table outgrows its cap."""


class Summaries:
    """The table of items, filled by :meth:`solve`.

    Attributes:
        ways: from an item to its ways, in order of discovery. Expanding only first ways always
            ends.
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
        # The users that wait for the items of an ask: (user, letter, item before it, node after
        # it).
        self._users: dict[Ask, list[tuple[Ask, int | None, Item | None, int | None]]] = {}
        self._fresh: list[Ask] = []
        self._events: list[Item] = []

    def solve(self, node: int, control: int) -> list[Item]:
        """Return the items of a node from a control state, and find all items that they consist of.

        Raises:
            TableFull: past the cap.
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
        """Pass a new item to a user, and make the items that follow from it."""
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
            raise TableFull

    def _start(self, ask: Ask) -> None:
        """Make the items of an ask that need no other items, and register for the others."""
        unit, control = ask
        if not isinstance(unit, int):
            self._start_operands(ask, unit)
            return
        nodes = self._nodes
        parts = nodes.parts[unit]
        match nodes.kind[unit]:
            case NodeKind.EMPTY:
                self._make(ask, control, 0, Way(None, ()))
            case NodeKind.CALL:
                for letter in self._patterns[nodes.pattern[unit]]:
                    end = self._step(control, letter)
                    if end is not None:
                        self._make(ask, end, 1, Way(letter, ()))
            case NodeKind.PAIR:
                self._wait(ask, (parts[0], control), after=parts[1])
            case NodeKind.ALT | NodeKind.RULE:
                for part in parts:
                    self._wait(ask, (part, control))
            case NodeKind.REPEAT:
                if nodes.low[unit] == 0:
                    self._make(ask, control, 0, Way(None, ()))
                self._wait(ask, (parts[0], control), after=nodes.rest(unit))
            case NodeKind.BOTH | NodeKind.DIFF:
                sets = tuple(self._network.initial(part) for part in parts)
                self._wait(ask, ((unit, sets), control))

    def _start_operands(self, ask: Ask, unit: tuple[int, tuple[int, ...]]) -> None:
        node, sets = unit
        control = ask[1]
        # Operands that recurse through themselves make larger and larger sets.
        if self._network.room > self._cap:
            raise TableFull
        if self._network.complete(node, sets):
            self._make(ask, control, 0, Way(None, ()))
        for letter, after in self._network.step_operands(node, sets):
            end = self._step(control, letter)
            if end is not None:
                self._wait(ask, ((node, after), end), letter=letter)


_CAP = 200_000
_MOST_LETTERS = 32


def longest_plan(core: Core, letters: Letters, nodes: Nodes, root: int, guard: Guard) -> int | None:
    """Return the most calls of a plan; None if this could not be decided.

    Raises:
        CompileRefused: TCC401, there are infinitely many plans; TCC402, there is none.
    """
    for limits in (True, False):
        control = Control(core, letters, limits)
        # Operand sets are explored in a separate network, so that its growth can be capped.
        table = Summaries(
            nodes,
            Network(nodes, letters.patterns, guard),
            letters.patterns,
            control.step,
            _CAP,
            guard,
        )
        try:
            items = table.solve(root, 0)
        except TableFull:
            continue
        return _decide(core, letters, control, table, items)
    return None


def _decide(
    core: Core, letters: Letters, control: Control, table: Summaries, items: Sequence[Item]
) -> int | None:
    roots = [item for item in items if control.accepts(item[2])]
    if not roots:
        raise CompileRefused(
            "TCC402",
            "there is no plan: the expression and the statements together leave none",
            hint="take statements away until plans appear",
            place="plan",
        )
    useful = _useful(table, roots)
    number = {item: at for at, item in enumerate(useful)}
    parts = components(
        len(useful),
        lambda at: [number[part] for way in table.ways[useful[at]] for part in way.parts],
    )
    longest = [0] * len(useful)
    group = [0] * len(useful)
    for name, part in enumerate(parts):
        for at in part:
            group[at] = name
        best = 0
        for at in part:
            for way in table.ways[useful[at]]:
                inner = [p for p in way.parts if group[number[p]] == name and number[p] in part]
                if inner and _others(way, inner[0]):
                    if not control.exact:
                        return None
                    raise _infinite(core, letters, table, useful[at], way, inner[0])
                best = max(
                    best, (way.letter is not None) + sum(longest[number[p]] for p in way.parts)
                )
        for at in part:
            longest[at] = best
    return max(longest[number[item]] for item in roots)


def _others(way: Way, part: Item) -> bool:
    """Return whether `way` has calls in addition to those of `part`."""
    rest = list(way.parts)
    rest.remove(part)
    return way.letter is not None or any(item[3] for item in rest)


def _useful(table: Summaries, roots: Sequence[Item]) -> list[Item]:
    """Return every item that is part of some plan, in order of discovery."""
    useful = dict.fromkeys(roots)
    todo = list(roots)
    for item in todo:
        for way in table.ways[item]:
            for part in way.parts:
                if part not in useful:
                    useful[part] = None
                    todo.append(part)
    return todo


def _infinite(
    core: Core, letters: Letters, table: Summaries, item: Item, way: Way, inner: Item
) -> CompileRefused:
    """Return the refusal, with the calls on both sides of an item that derives itself."""
    before, after = _around(table, way, inner)
    path = _path(table, inner, item)
    for step, part in path:
        left, right = _around(table, step, part)
        before, after = before + left, right + after
    first = f"{calls_text(core, letters, before)} " if before else ""
    sides = f"{first}... {calls_text(core, letters, after)}" if after else first.strip()
    return CompileRefused(
        "TCC401",
        f"there are infinitely many plans: {sides} can be repeated for ever, one inside the other",
        hint=f"add {' or '.join(cuts(core, letters, [*before, *after]))}",
        place="plan",
    )


def _around(table: Summaries, way: Way, part: Item) -> tuple[list[int], list[int]]:
    """Return the letters of a way before one of its parts, and those after it."""
    at = way.parts.index(part)
    before = [] if way.letter is None else [way.letter]
    for other in way.parts[:at]:
        before += _word(table, other)
    after: list[int] = []
    for other in way.parts[at + 1 :]:
        after += _word(table, other)
    return before, after


def _word(table: Summaries, item: Item) -> list[int]:
    """Return a word of an item, by first ways, as letters; a long word is cut."""
    word: list[int] = []
    todo = [item]
    while todo and len(word) < _MOST_LETTERS:
        way = table.ways[todo.pop()][0]
        if way.letter is not None:
            word.append(way.letter)
        todo.extend(reversed(way.parts))
    return word


def _path(table: Summaries, start: Item, end: Item) -> list[tuple[Way, Item]]:
    """Return the ways that lead from `start` down to `end`, outermost first, with their items."""
    came: dict[Item, tuple[Way, Item] | None] = {start: None}
    todo = [start]
    for item in todo:
        if item == end:
            break
        for way in table.ways[item]:
            for part in way.parts:
                if part not in came:
                    came[part] = (way, item)
                    todo.append(part)
    path: list[tuple[Way, Item]] = []
    item = end
    while (step := came[item]) is not None:
        path.append((step[0], item))
        item = step[1]
    return path[::-1]
