"""What is left of a language where the tools that are `strict` may give any answer.

The largest sublanguage in which every call of a strict tool has, wherever it may be made, each of
its sisters: the calls that differ in observed values alone.  One pass over the states, targets
first: an edge of such a call stays where the edges of all its sisters do, and a state stays where
it accepts or has an edge left.  What remains is trimmed and minimised.
Specification: docs/spec/core.md, section 5.  Cost: linear in the edges.
Source: Ramadge and Wonham, Supervisory control of a class of discrete event processes, 1987: the
supremal controllable sublanguage; without cycles its fixpoint takes one pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from tcc_certs.core.model import Core
from tcc_compiler.automata.answers import answers_of, possible_answers
from tcc_compiler.automata.letters import Letters
from tcc_compiler.automata.machine import Edges, Machine
from tcc_compiler.automata.minimise import minimise
from tcc_compiler.automata.table import Table
from tcc_compiler.automata.trim import trim
from tcc_compiler.automata.unanswered import unanswered, unanswered_text
from tcc_compiler.frozen import frozen
from tcc_compiler.resources.guard import Guard
from tcc_compiler.resources.refusal import Refused

_NEVER = 1 << 31


@frozen
class Sisters:
    """The letters of strict tools in groups: those of one group stay or go together.

    Attributes:
        group: [letters], the group of each, -1 where its calls are of no strict tool.
        size: [groups], how many letters each has; too many, where some answer is no call.
    """

    group: Sequence[int]
    size: Sequence[int]


def sisters_of(core: Core, letters: Letters) -> Sisters:
    """The groups of a partition that keeps sisters together (:mod:`.letters`)."""
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
    return Sisters(group=group, size=size)


def keep_strict(core: Core, letters: Letters, table: Table, guard: Guard) -> Machine | Table:
    """The smallest table of that sublanguage; `table` itself where nothing has to go.

    Args:
        table: deterministic.

    Raises:
        Refused: TCC414 nothing is left; TCC403, TCC404 from the guard.
    """
    first = next((tool for tool in core.tools if tool.strict), None)
    if first is None:
        return table
    guard.enter("`strict`", f"tool {first.name}")
    sisters = sisters_of(core, letters)
    if not sisters.size or _all_answered(table, sisters):
        return table
    trimmed = trim(_cut(table, sisters, guard))
    if trimmed is None:
        raise _nothing_left(core, letters, table)
    return minimise(trimmed, guard)


def _all_answered(table: Table, sisters: Sisters) -> bool:
    """Whether in every state each group is there with all its letters, or not at all."""
    group = np.array(sisters.group, dtype=np.int64).take(table.letter)
    some = np.flatnonzero(group >= 0)
    row = np.repeat(np.arange(table.states), table.degree).take(some)
    keys, there = np.unique(row * len(sisters.size) + group.take(some), return_counts=True)
    expected = np.array(sisters.size, dtype=np.int64).take(keys % len(sisters.size))
    return bool(np.array_equal(there, expected))


def _cut(table: Table, sisters: Sisters, guard: Guard) -> Machine:
    """The states of `table` with the edges that stay."""
    accept = table.accept.tolist()
    group, size = sisters.group, sisters.size
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


def _nothing_left(core: Core, letters: Letters, table: Table) -> Refused:
    """The refusal, with the nearest state in which an answer leads nowhere."""
    nearest = next(unanswered(core, letters, table, strict=True))
    tool = core.tools[core.calls[nearest.answered[0]].tool]
    return Refused(
        "TCC414",
        "there is no plan that goes on after every answer of a strict tool: "
        f"{unanswered_text(core, nearest)}",
        hint="say what follows each answer, or take `strict` away",
        place=f"tool {tool.name}",
    )
