"""Whether recursion that no finite automaton follows still gives finitely many plans.

The expression's words that all statements allow are written as a grammar over items (see
:mod:`tcc_compiler.regular.summaries`).  They are infinitely many exactly when a useful item
derives itself with calls beside it; those calls are the witness.  Otherwise the longest plan is
read off, and bounds the depth.
Cost: that of the items; past a cap the question stays open.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcc_certs.core.model import Core
from tcc_compiler.constraint.control import Control
from tcc_compiler.guard import Guard
from tcc_compiler.letters import Letters
from tcc_compiler.machine import components
from tcc_compiler.refusal import Refused
from tcc_compiler.regular.network import Network
from tcc_compiler.regular.nodes import Nodes
from tcc_compiler.regular.summaries import Item, Summaries, TooMany, Way
from tcc_compiler.witness import calls_text, cuts

_CAP = 200_000
_MOST_LETTERS = 32


def longest_plan(core: Core, letters: Letters, nodes: Nodes, root: int, guard: Guard) -> int | None:
    """The most calls of a plan; None where this could not be decided.

    Raises:
        Refused: TCC401 where there are infinitely many plans, TCC402 where there is none.
    """
    for limits in (True, False):
        control = Control(core, letters, limits)
        # The walk over operand sets has a network of its own, so that its growth is capped here.
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
        except TooMany:
            continue
        return _decide(core, letters, control, table, items)
    return None


def _decide(
    core: Core, letters: Letters, control: Control, table: Summaries, items: Sequence[Item]
) -> int | None:
    roots = [item for item in items if control.accepts(item[2])]
    if not roots:
        raise Refused(
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
    found = dict.fromkeys(roots)
    todo = list(roots)
    for item in todo:
        for way in table.ways[item]:
            for part in way.parts:
                if part not in found:
                    found[part] = None
                    todo.append(part)
    return todo


def _infinite(
    core: Core, letters: Letters, table: Summaries, item: Item, way: Way, inner: Item
) -> Refused:
    """The refusal with the calls on both sides of an item that derives itself."""
    before, after = _around(table, way, inner)
    path = _path(table, inner, item)
    for step, part in path:
        left, right = _around(table, step, part)
        before, after = before + left, right + after
    first = f"{calls_text(core, letters, before)} " if before else ""
    sides = f"{first}... {calls_text(core, letters, after)}" if after else first.strip()
    return Refused(
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
    found: list[int] = []
    todo = [item]
    while todo and len(found) < _MOST_LETTERS:
        way = table.ways[todo.pop()][0]
        if way.letter is not None:
            found.append(way.letter)
        todo.extend(reversed(way.parts))
    return found


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
    found: list[tuple[Way, Item]] = []
    item = end
    while (step := came[item]) is not None:
        found.append((step[0], item))
        item = step[1]
    return found[::-1]
