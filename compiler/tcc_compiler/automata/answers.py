"""Calls with observed values: answers without a continuation, and the sublanguage of strict tools.

The caller of a tool with observed values does not choose the answer. This module answers three
questions. After which calls has some answer no continuation (`unanswered`)? Which calls have more
successor states than a session may hold (`many_answers`)? What remains of a language if every
answer of a strict tool needs a continuation (`keep_strict`)?
Specification: docs/spec/core.md, section 5; docs/spec/session.md, section 5.
Cost: linear in the table. For each distinct row of letters, linear in the calls with answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from tcc_certs.policy.core import Core
from tcc_compiler.automata.letters import Letters, answers_of, possible_answers
from tcc_compiler.automata.minimise import minimise
from tcc_compiler.automata.table import Edges, Machine, Table, trim
from tcc_compiler.frozen import frozen
from tcc_compiler.resources import CompileRefused, Guard

_MOST_CALLS = 12


@frozen
class Unanswered:
    """A state that allows a question although some answer to it has no continuation.

    A question is a tool with its arguments; each answer is a call with these arguments and some
    observed values. Calls are indices into the calls of the core.

    Attributes:
        way: a shortest sequence of calls from the start to the state.
        answered: the answers with a continuation, at least one.
        missing: the answers without a continuation.
        others: how many further answers are possible that no call of the core stands for.
    """

    way: tuple[int, ...]
    answered: tuple[int, ...]
    missing: tuple[int, ...]
    others: int


def unanswered(
    core: Core, letters: Letters, table: Machine | Table, *, strict: bool = False
) -> Iterator[Unanswered]:
    """Yield every such state and question of a deterministic table.

    Args:
        strict: True selects strict tools only.
    """
    asked = [
        (calls, possible_answers(core.tools[tool]) - len(calls))
        for tool, groups in answers_of(core, strict=strict).items()
        for calls in groups
    ]
    if not asked:
        return
    known: dict[tuple[int, ...], list[Unanswered]] = {}
    for q, trace in ways(table):
        row = tuple([letter for letter, _ in table.row(q)])
        if row not in known:
            known[row] = list(_open_questions(asked, letters, frozenset(row)))
        if known[row]:
            way = calls_on(letters, trace, q)
            for at in known[row]:
                yield Unanswered(
                    way=way, answered=at.answered, missing=at.missing, others=at.others
                )


def unanswered_text(core: Core, item: Unanswered) -> str:
    """Return a message with the way, an answer with a continuation, and an answer without."""
    shown = " ".join([core.calls[call].text for call in item.way[:_MOST_CALLS]])
    rest = len(item.way) - _MOST_CALLS
    more = f" (and {rest} more calls)" if rest > 0 else ""
    lead = f"after `{shown}`{more}" if item.way else "at the start"
    missing = f"`{core.calls[item.missing[0]].text}`" if item.missing else "another answer"
    return f"{lead}, `{core.calls[item.answered[0]].text}` leads on and {missing} does not"


def _open_questions(
    asked: Sequence[tuple[Sequence[int], int]], letters: Letters, row: frozenset[int]
) -> Iterator[Unanswered]:
    for calls, others in asked:
        answered = tuple([call for call in calls if letters.letter[call] in row])
        missing = tuple([call for call in calls if letters.letter[call] not in row])
        if answered and (missing or others):
            yield Unanswered(way=(), answered=answered, missing=missing, others=others)


# For each state except the start: the last letter of a shortest way to it, and the state before it.
_Trace = dict[int, tuple[int, int]]


def ways(table: Machine | Table) -> Iterator[tuple[int, _Trace]]:
    """Yield the states breadth-first, each with the trace of all states found so far."""
    trace: _Trace = {}
    todo = [table.start]
    for q in todo:
        yield q, trace
        for letter, target in table.row(q):
            if target not in trace:
                trace[target] = (letter, q)
                todo.append(target)


def calls_on(letters: Letters, trace: _Trace, q: int) -> tuple[int, ...]:
    """Return the way to `q`, with the first call of each letter."""
    way = []
    while q in trace:
        letter, q = trace[q]
        way.append(letters.calls[letter][0])
    return tuple(reversed(way))


# While the outcome of a call is unknown, a session holds a set of states: the state before the
# call, the target of each answer, and "nowhere" if some answer has no continuation. The set may
# have 64 members at most (R301); otherwise no gate permits the call. The diagnostic is only a
# warning: a run may plan such a call, although an execution may not make it.

MOST_PLACES: Final = 64
_MOST_STEPS: Final = 1 << 22


@frozen
class ManyAnswers:
    """A call that no gate permits after `way`.

    Attributes:
        tool: the index of its tool.
        call: the first of its answers, as an index into the calls of the core.
        way: a shortest sequence of calls after which the call could be made.
        places: how many states a session would have while the call's outcome is unknown.
    """

    tool: int
    call: int
    way: tuple[int, ...]
    places: int


def many_answers(core: Core, letters: Letters, table: Machine | Table) -> Iterator[ManyAnswers]:
    """Yield the first such call of each tool, on a shortest way, of a deterministic table."""
    asked = [
        (tool, calls, possible_answers(core.tools[tool]) - len(calls))
        for tool, groups in answers_of(core, strict=False).items()
        for calls in groups
        if len(calls) >= MOST_PLACES - 1
    ]
    if not asked or table.nondeterministic:
        return
    left, found = _MOST_STEPS, set[int]()
    for q, trace in ways(table):
        left -= 1
        if table.degree_of(q) < MOST_PLACES - 1:
            continue
        row = dict(table.row(q))
        for tool, calls, others in asked:
            left -= len(calls)
            if tool in found or left < 0:
                continue
            places = _places(q, row, [letters.letter[call] for call in calls], others)
            if places > MOST_PLACES:
                found.add(tool)
                way = calls_on(letters, trace, q)
                yield ManyAnswers(tool=tool, call=calls[0], way=way, places=places)
        if left < 0:
            return


def _places(q: int, row: dict[int, int], asked: Sequence[int], others: int) -> int:
    """Return a session's number of states while the outcome is unknown; 0 without the call."""
    targets = [row[letter] for letter in asked if letter in row]
    nowhere = others > 0 or len(targets) < len(asked)
    return len({q, *targets}) + nowhere if targets else 0


# Strict tools. Two calls are siblings if they differ in observed values only. The result is the
# largest sublanguage in which every call of a strict tool has all its siblings in the same state.
# One pass over the states, targets first, computes it: an edge of such a call stays if the edges of
# all its siblings stay, and a state stays if it accepts or has an edge left. With cycles the pass
# is repeated until nothing changes, and states that cannot finish are removed each time.
# Source: Ramadge and Wonham, Supervisory control of a class of discrete event processes, 1987. This
# is the supremal controllable sublanguage; without cycles one pass reaches the fixpoint.

_NEVER = 1 << 31


@frozen
class Siblings:
    """The letters of strict tools in groups of siblings; a group stays or goes as a whole.

    Attributes:
        group: [letters], the group of each letter; -1 if its calls are of no strict tool.
        size: [groups], how many letters each group has; _NEVER if a possible answer has no call.
    """

    group: Sequence[int]
    size: Sequence[int]


def siblings_of(core: Core, letters: Letters) -> Siblings:
    """Return the groups of letters; the partition into letters keeps siblings together."""
    group = [-1] * len(letters.calls)
    size: list[int] = []
    for tool, groups in answers_of(core, strict=True).items():
        whole = possible_answers(core.tools[tool])
        for calls in groups:
            found = {letters.letter[call] for call in calls}
            if group[min(found)] < 0:
                for letter in found:
                    group[letter] = len(size)
                size.append(len(found) if len(calls) == whole else _NEVER)
    return Siblings(group=group, size=size)


def keep_strict(
    core: Core, letters: Letters, table: Machine | Table, guard: Guard
) -> Machine | Table:
    """Return the smallest automaton of the largest such sublanguage; `table` itself if unchanged.

    Args:
        table: deterministic, without useless states.

    Raises:
        CompileRefused: TCC414, nothing is left; TCC403 or TCC404 from the guard.
    """
    first = next((tool for tool in core.tools if tool.strict), None)
    if first is None:
        return table
    guard.enter("`strict`", f"tool {first.name}")
    siblings = siblings_of(core, letters)
    if not siblings.size:
        return table
    if isinstance(table, Machine):
        trimmed = _cut_cyclic(table, siblings, guard)
        if trimmed is table:
            return table
    elif _all_answered(table, siblings):
        return table
    else:
        trimmed = trim(_cut(table, siblings, guard))
    if trimmed is None:
        raise _nothing_left(core, letters, table)
    return minimise(trimmed, guard)


def _all_answered(table: Table, siblings: Siblings) -> bool:
    """Return whether each state has, of each group, all letters or none."""
    group = np.array(siblings.group, dtype=np.int64).take(table.letter)
    some = np.flatnonzero(group >= 0)
    row = np.repeat(np.arange(table.states), table.degree).take(some)
    keys, there = np.unique(row * len(siblings.size) + group.take(some), return_counts=True)
    expected = np.array(siblings.size, dtype=np.int64).take(keys % len(siblings.size))
    return bool(np.array_equal(there, expected))


def _cut(table: Table, siblings: Siblings, guard: Guard) -> Machine:
    """Return the states of `table` with the edges that stay."""
    accept = table.accept.tolist()
    group, size = siblings.group, siblings.size
    stays: list[bool] = []
    edges: list[Edges] = []
    for q, accepting in enumerate(accept):
        row = [(letter, target) for letter, target in table.row(q) if stays[target]]
        there = Counter([group[letter] for letter, _ in row])
        kept = tuple([e for e in row if group[e[0]] < 0 or there[group[e[0]]] == size[group[e[0]]]])
        edges.append(kept)
        stays.append(accepting or bool(kept))
        guard.tick(1 + len(row))
    return Machine(start=table.start, accept=accept, edges=edges)


def _cut_cyclic(machine: Machine, siblings: Siblings, guard: Guard) -> Machine | None:
    """Return the states of a trimmed machine that stay; the machine itself if all edges stay."""
    group, size = siblings.group, siblings.size
    left: Machine | None = machine
    while left is not None:
        edges: list[Edges] = []
        for row in left.edges:
            there = Counter([group[letter] for letter, _ in row])
            edges.append(
                tuple(
                    [e for e in row if group[e[0]] < 0 or there[group[e[0]]] == size[group[e[0]]]]
                )
            )
            guard.tick(1 + len(row))
        if edges == left.edges:
            break
        left = trim(Machine(start=left.start, accept=left.accept, edges=edges))
    return left


def _nothing_left(core: Core, letters: Letters, table: Machine | Table) -> CompileRefused:
    """Return the refusal, with the nearest state in which an answer has no continuation."""
    nearest = next(unanswered(core, letters, table, strict=True))
    tool = core.tools[core.calls[nearest.answered[0]].tool]
    return CompileRefused(
        "TCC414",
        "there is no plan that goes on after every answer of a strict tool: "
        f"{unanswered_text(core, nearest)}",
        hint="say what follows each answer, or take `strict` away",
        place=f"tool {tool.name}",
    )
