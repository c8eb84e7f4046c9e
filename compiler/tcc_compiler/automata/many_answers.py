"""Calls whose answers lead to more states than a session may hold: no gate lets them be made.

While the outcome of a call is unknown, a session holds the place before it, each place that an
answer leads to, and nowhere for answers that no plan goes on after: 64 at most (R301).  It is a
warning: a run may plan such a call, and an execution may not make it.
Specification: docs/spec/session.md, section 6.  Cost: linear in the edges of states with that many,
for each question that is wide enough; past a bound the rest is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tcc_certs.core.model import Core
from tcc_compiler.automata.answers import answers_of, possible_answers
from tcc_compiler.automata.letters import Letters
from tcc_compiler.automata.table import Table
from tcc_compiler.automata.unanswered import calls_on, ways
from tcc_compiler.frozen import frozen

MOST_PLACES: Final = 64
_MOST_STEPS: Final = 1 << 22


@frozen
class ManyAnswers:
    """A call that no gate lets be made after `way`.

    Attributes:
        tool: its index.
        call: one of the calls that are its answers.
        way: calls that lead there from the start; no other way has fewer.
        places: how many there would be if its outcome were unknown.
    """

    tool: int
    call: int
    way: tuple[int, ...]
    places: int


def many_answers(core: Core, letters: Letters, table: Table) -> Iterator[ManyAnswers]:
    """The first such call of each tool, on a shortest way; of a deterministic table."""
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
    """How many places a session may be at after a call of unknown outcome; 0 where it has none."""
    targets = [row[letter] for letter in asked if letter in row]
    nowhere = others > 0 or len(targets) < len(asked)
    return len({q, *targets}) + nowhere if targets else 0
