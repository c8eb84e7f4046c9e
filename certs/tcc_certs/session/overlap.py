"""Which calls of a session may be under way together.

Two calls of tools that are `parallel` may, where it makes no difference which of them comes first:
from every state of the automaton both orders lead to the same states, and no statement that is held
beside the automaton (a monitor, a statement left to the run, a forbid over errors that were read)
orders one against the other.  It is asked of tools, for all of their calls and answers: then the
effects of calls under way may come in another order than their decisions, and the session is where
it would have been.  Nothing is claimed of it in an artifact: it follows from the states and the
core.  Calls that a model makes are never under way beside others.
Normative text: docs/spec/session.md, section 9.
Cost: the edges, to count the paths of two calls of parallel tools: where there are too many, no
tool commutes; else each path once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations_with_replacement
from typing import TypeAlias

from tcc_certs.core import model
from tcc_certs.formats.artifact import Relaxed

MAX_PATHS = 1 << 21  # of two calls that are looked at

Pair: TypeAlias = "tuple[int, int]"  # of tools; the first is not greater
Rows: TypeAlias = "Callable[[int], Mapping[int, Sequence[int]]]"


def commuting(
    core: model.Core, rows: Rows, tools: Sequence[int], states: int, relaxed: Relaxed | None
) -> frozenset[Pair]:
    """The pairs of parallel tools all of whose calls commute, some of which follow each other.

    Args:
        rows: of a state for each call of the artifact its targets.
        tools: of each call of the artifact its tool.
        states: how many the automaton has.
        relaxed: the statements that the automaton leaves to the run.
    """
    parallel = [at for at, tool in enumerate(core.tools) if tool.parallel]
    pairs = set(combinations_with_replacement(parallel, 2))
    pairs -= {pair for pair in pairs if any(_ordered(core, relaxed, pair))}
    paths = 0
    for q in range(states) if pairs else ():
        paths += len(rows(q))
        for _, middle in _of(parallel, tools, rows(q)):
            paths += sum([len(rows(p)) + 1 for p in middle])
        if paths > MAX_PATHS:
            return frozenset()
    met = set[Pair]()
    for q in range(states):
        if not pairs:
            break
        after: dict[tuple[int, int], set[int]] = {}
        for one, middle in _of(parallel, tools, rows(q)):
            for p in middle:
                for other, targets in _of(parallel, tools, rows(p)):
                    after.setdefault((one, other), set()).update(targets)
        for (one, other), reached in after.items():
            met.add(_pair(tools[one], tools[other]))
            if after.get((other, one)) != reached:
                pairs.discard(_pair(tools[one], tools[other]))
    return frozenset(pairs & met)


def _of(
    parallel: Sequence[int], tools: Sequence[int], row: Mapping[int, Sequence[int]]
) -> list[tuple[int, Sequence[int]]]:
    """The edges of parallel tools."""
    return [(call, targets) for call, targets in row.items() if tools[call] in parallel]


def _pair(one: int, other: int) -> Pair:
    return (one, other) if one <= other else (other, one)


def _ordered(core: model.Core, relaxed: Relaxed | None, pair: Pair) -> Iterator[bool]:
    """For each statement that is held beside the automaton whether it orders the two tools."""
    for monitor in core.monitors:
        yield _monitor_orders(monitor, pair)
    left: list[model.Forbid | model.Require] = []
    if relaxed is not None:
        left += [core.forbids[at] for at in relaxed.forbids]
        left += [core.requires[at] for at in relaxed.requires]
    failing = {at for at, tool in enumerate(core.tools) if tool.errors_failed}
    for forbid in core.forbids if failing else ():
        if failing & set[int]().union(*_tools(core, forbid)):
            left.append(forbid)
    for statement in left:
        sides = _tools(core, statement)
        if isinstance(statement, model.ForbidNext):
            yield any(tool in side for side in sides for tool in pair)
        else:
            one, other = pair
            first, second = sides
            yield (one in first and other in second) or (one in second and other in first)


def _monitor_orders(monitor: model.Monitor, pair: Pair) -> bool:
    """Whether it may make a difference to a monitor which of two calls is first; of others: yes."""
    match monitor:
        case model.SumMonitor() | model.UsesMonitor():
            return False  # amounts come to the same in any order
        case model.OrderMonitor():
            return _pair(monitor.first.tool, monitor.second.tool) == pair
    return True


def _tools(core: model.Core, statement: model.Forbid | model.Require) -> list[set[int]]:
    """For each pattern of a statement the tools of its calls."""
    if isinstance(statement, model.ForbidNext):
        patterns: Iterable[int] = statement.patterns
    else:
        patterns = (statement.first, statement.second)
    return [{core.calls[call].tool for call in model.members(core.patterns[at])} for at in patterns]
