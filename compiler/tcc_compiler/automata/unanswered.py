"""States in which a call may be made, but one of its answers leads nowhere.

Whoever asks a tool with observed parameters in such a state may get an answer that no plan goes on
from.  Each such state is shown once for each question, with a shortest way there; states come in
the order of these ways.
Cost: linear in the table; for each distinct row of letters linear in the calls that have answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tcc_certs.core.model import Core
from tcc_compiler.automata.answers import answers_of, possible_answers
from tcc_compiler.automata.letters import Letters
from tcc_compiler.automata.table import Table
from tcc_compiler.frozen import frozen

_MOST_CALLS = 12


@frozen
class Unanswered:
    """A state, and a question that it allows although not every answer leads on.

    Attributes:
        way: calls that lead there from the start; no other way has fewer.
        answered: the calls of the question that lead on, one at least.
        missing: those that do not; calls are indices of the core's.
        others: how many more answers there are, which the core has no call for.
    """

    way: tuple[int, ...]
    answered: tuple[int, ...]
    missing: tuple[int, ...]
    others: int


def unanswered(
    core: Core, letters: Letters, table: Table, *, strict: bool = False
) -> Iterator[Unanswered]:
    """Every such state and question of a deterministic table.

    Args:
        strict: True looks at strict tools alone.
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
    """What is open, in a message: the way, an answer that leads on, and one that does not."""
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


# For each state but the start the letter and the state before it on a shortest way.
_Trace = dict[int, tuple[int, int]]


def ways(table: Table) -> Iterator[tuple[int, _Trace]]:
    """The states by the fewest calls to them, each with the trace of the ways so far."""
    trace: _Trace = {}
    todo = [table.start]
    for q in todo:
        yield q, trace
        for letter, target in table.row(q):
            if target not in trace:
                trace[target] = (letter, q)
                todo.append(target)


def calls_on(letters: Letters, trace: _Trace, q: int) -> tuple[int, ...]:
    """The first call of each letter on the way to `q`."""
    way = []
    while q in trace:
        letter, q = trace[q]
        way.append(letters.calls[letter][0])
    return tuple(reversed(way))
