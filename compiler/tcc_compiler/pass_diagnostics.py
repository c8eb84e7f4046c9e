"""Turn refusals and warnings of the passes into diagnostics with spans in the grammar file.

A pass identifies a statement by its place (:mod:`tcc_compiler.resources`). The front end knows the
span of each place. Cost: one lookup per message.
"""

from __future__ import annotations

from collections.abc import Mapping

from tcc_certs.policy.core import Core
from tcc_compiler.automata.answers import MOST_PLACES, many_answers
from tcc_compiler.automata.letters import Letters
from tcc_compiler.automata.table import Machine, Table
from tcc_compiler.language.diagnostics import Diagnostic, Note
from tcc_compiler.language.source import Span
from tcc_compiler.relax.attempts import NextAttempt
from tcc_compiler.resources import CompileRefused, Place

_MOST_CALLS = 12


def refusal_diagnostic(refusal: CompileRefused, places: Mapping[Place, Span]) -> Diagnostic:
    """Return the error diagnostic of a refusal."""
    return Diagnostic(
        code=refusal.code,
        message=refusal.message,
        span=None if refusal.place is None else places.get(refusal.place),
        hint=refusal.hint,
        notes=tuple(
            Note(message=text, span=None if place is None else places.get(place))
            for text, place in refusal.notes
        ),
    )


def relaxed_diagnostic(attempt: NextAttempt, places: Mapping[Place, Span]) -> Diagnostic:
    """Return the warning that an attempt relaxed or rounded something to stay within a limit."""
    return Diagnostic(
        code="TCC411",
        severity="warning",
        message=f"CountFail: {attempt.warning}",
        span=None if attempt.place is None else places.get(attempt.place),
        hint="raise the limit to keep everything in the automaton, or leave --relax auto out",
    )


def many_answers_diagnostics(
    core: Core, letters: Letters, table: Machine | Table, places: Mapping[Place, Span]
) -> list[Diagnostic]:
    """Return a warning for each tool with a call that no gate would ever permit (R301)."""
    found = []
    for item in many_answers(core, letters, table):
        name = core.tools[item.tool].name
        way = " ".join([core.calls[call].text for call in item.way[:_MOST_CALLS]])
        more = " .." if len(item.way) > _MOST_CALLS else ""
        at = f"after `{way}{more}`" if item.way else "at the start"
        message = (
            f"no session can make the call that `{core.calls[item.call].text}` is an answer to "
            f"{at}: while its outcome is not known there are {item.places} places to be at, and "
            f"{MOST_PLACES} is the most (R301)"
        )
        hint = (
            "list fewer values in `gives`, such as ranges of them, or let fewer of them decide "
            "what may come next"
        )
        span = places.get(f"tool {name}")
        found.append(
            Diagnostic(code="TCC416", message=message, span=span, severity="warning", hint=hint)
        )
    return found


def parallel_diagnostics(
    core: Core, artifact: bytes, places: Mapping[Place, Span]
) -> list[Diagnostic]:
    """Return a warning for each parallel tool whose calls can never overlap with other calls."""
    if not any(tool.parallel for tool in core.tools):
        return []
    from tcc_certs.kernel import check  # imported here: few grammars have such tools
    from tcc_certs.session.validation import machine_of

    paired = {tool for pair in machine_of(check(artifact)).commuting for tool in pair}
    return [
        Diagnostic(
            code="TCC417",
            severity="warning",
            message=f"`{tool.name}` is parallel, and the order of its calls and of those of every "
            "parallel tool makes a difference",
            span=places.get(f"tool {tool.name}"),
            hint="leave `parallel` out, or the statement that orders them",
        )
        for at, tool in enumerate(core.tools)
        if tool.parallel and at not in paired
    ]
