"""An `accept` line that does not hold, with the statements that forbid it: notes of its diagnostic.

The compiler knows how far plans go along with the line; which statements keep them from going on is
a question (:mod:`tcc_runtime.questions.blame`).  Cost: that of the question, for a few lines.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tcc.written import written_in
from tcc_compiler.language.diagnostics import Diagnostic, Note
from tcc_runtime.questions.blame import blame
from tcc_runtime.questions.statements import Place, statements_of

if TYPE_CHECKING:
    from tcc_compiler.pipeline import Compiled

_MOST_LINES = 8
_MOST_CALLS = 500
_MOST_NOTES = 6


def with_reasons(compiled: Compiled) -> tuple[Diagnostic, ...]:
    """The diagnostics of a compilation; of the first lines that do not hold, with the reasons."""
    core = compiled.core
    if core is None or not compiled.unmet:
        return compiled.diagnostics
    statements = statements_of(core, written_in(compiled))
    spans = {
        Place(file=span.file, line=span.line, column=span.column): span
        for span in compiled.places.values()
    }
    explained = {}
    for unmet in compiled.unmet[:_MOST_LINES]:
        if len(unmet.word) > _MOST_CALLS:
            continue
        found = blame(core, statements, unmet.word, ends=unmet.ends, every=False)
        chosen = found.sets[0]
        notes = [
            Note(
                message=f"forbidden by `{' '.join(one.text.split())}`",
                span=None if one.place is None else spans.get(one.place),
            )
            for one in chosen[:_MOST_NOTES]
        ]
        if len(chosen) > _MOST_NOTES:
            notes.append(Note(message=f"and by {len(chosen) - _MOST_NOTES} more"))
        explained[id(unmet.diagnostic)] = replace(unmet.diagnostic, notes=tuple(notes))
    return tuple(explained.get(id(said), said) for said in compiled.diagnostics)
