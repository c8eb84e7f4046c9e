"""Why a sequence of calls is a plan: the statements that are about its calls, and let it through.

Specification: docs/spec/language.md, sections 7 and 10.  Cost: statements times calls of the plan,
with a bisection each; a few statements are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tcc_certs.core.model import CallSet, Core, ForbidBefore, ForbidNext, ForbidWith, Limit, Require
from tcc_compiler.automata.constraint.statements import statement_text
from tcc_compiler.language.diagnostics import Note
from tcc_compiler.language.spans import Span
from tcc_compiler.relax.names import statements
from tcc_compiler.resources.place import Statement, place_of

_MOST = 4  # statements that are named
_MOST_LOOKED_AT = 1000
_MOST_CALLS = 12


def calls_line(core: Core, calls: Sequence[int]) -> str:
    """The calls as a plan is written."""
    return " ".join(core.calls[call].text for call in calls)


def shortened(core: Core, calls: Sequence[int]) -> str:
    """The same; of many calls the last ones."""
    cut = "... " if len(calls) > _MOST_CALLS else ""
    return cut + calls_line(core, calls[-_MOST_CALLS:])


def reasons_for(core: Core, plan: Sequence[int], places: Mapping[str, Span]) -> tuple[Note, ...]:
    """Notes on the statements that let `plan` through: the plan expression, and a few others."""
    notes = [Note(message="the plan expression derives it", span=places.get("plan"))]
    if "plan" not in places:
        notes = [Note(message="no `plan` says what a plan is")]
    distinct = sorted(set(plan))[:_MOST_LOOKED_AT]
    for statement in _about(core, distinct):
        text = statement_text(core, statement)
        notes.append(Note(message=f"`{text}` allows it", span=places.get(place_of(statement))))
        if len(notes) > _MOST:
            break
    return tuple(notes)


def _about(core: Core, calls: Sequence[int]) -> Iterator[Statement]:
    """The statements that could be about these calls."""
    for at, statement in enumerate(statements(core)):
        if at >= _MOST_LOOKED_AT:
            return
        if any(_has(some, calls) for some in _call_sets(core, statement)):
            yield statement


def _call_sets(core: Core, statement: Statement) -> Sequence[CallSet]:
    match statement:
        case Limit():
            return () if statement.calls is None else (statement.calls,)
        case Require():
            return (core.patterns[statement.second],)
        case ForbidNext(patterns):
            return [core.patterns[pattern] for pattern in patterns]
        case ForbidWith(first, second) | ForbidBefore(first, second):
            return core.patterns[first], core.patterns[second]


def _has(pattern: CallSet, calls: Sequence[int]) -> bool:
    return any(start <= call < stop for call in calls for start, stop in pattern)
