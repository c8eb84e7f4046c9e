"""Whether a recursive expression that is not regular still has finitely many plans.

The words of the expression that all statements allow are the language of a context-free grammar
whose nonterminals are items (node, p, q, e): the node derives a word that takes the control (all
statements, as one automaton) from p to q, the word empty (e = 0) or not (e = 1). Items are found
bottom-up with the ways to make them. The language is infinite exactly when a useful item derives
itself with calls beside it; those calls are the witness. Otherwise the grammar gives the length of
the longest plan, which bounds the depth.
Cost: cubic in the control at worst; beyond a cap of ways the question is left undecided.
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

# A node of the table, or the operand sets of a `&` or `-` (see Network.operands).
Unit: TypeAlias = "int | tuple[int, tuple[int, ...]]"
Ask: TypeAlias = "tuple[Unit, int]"
Item: TypeAlias = "tuple[Unit, int, int, int]"


@frozen(kw_only=False)
class Way:
    """One way to make an item: a letter or none, then the words of other items."""

    letter: int | None
    parts: tuple[Item, ...]


class TableFull(Exception):
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
        """Pass a new item of a question on to a user, which makes what follows from it."""
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
        """Make the items of a question that need no others, and wait for the rest."""
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
        # Operands that recurse through themselves make ever larger sets.
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
    """The most calls of a plan; None where this could not be decided.

    Raises:
        CompileRefused: TCC401 where there are infinitely many plans, TCC402 where there is none.
    """
    for limits in (True, False):
        control = Control(core, letters, limits)
        # Operand sets are explored in a network of their own, so that its growth can be capped.
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
    """Whether `way` has calls beside `part`."""
    rest = list(way.parts)
    rest.remove(part)
    return way.letter is not None or any(item[3] for item in rest)


def _useful(table: Summaries, roots: Sequence[Item]) -> list[Item]:
    """Every item that some plan is made of, in order of discovery."""
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
    """The refusal with the calls on both sides of an item that derives itself."""
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
    """Letters of a way before and after one of its parts."""
    at = way.parts.index(part)
    before = [] if way.letter is None else [way.letter]
    for other in way.parts[:at]:
        before += _word(table, other)
    after: list[int] = []
    for other in way.parts[at + 1 :]:
        after += _word(table, other)
    return before, after


def _word(table: Summaries, item: Item) -> list[int]:
    """A word of an item, by first ways; cut where it is long."""
    word: list[int] = []
    todo = [item]
    while todo and len(word) < _MOST_LETTERS:
        way = table.ways[todo.pop()][0]
        if way.letter is not None:
            word.append(way.letter)
        todo.extend(reversed(way.parts))
    return word


def _path(table: Summaries, start: Item, end: Item) -> list[tuple[Way, Item]]:
    """Ways that lead from `start` down to `end`, outermost first."""
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
