"""Refusals and warnings of the passes as diagnostics: each with its span in the grammar file.

A pass names a statement by its place (:mod:`tcc_compiler.resources.place`); the front end knows the
span of each place.  Cost: one look-up a message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tcc_compiler.frontend import Frontend
from tcc_compiler.language.diagnostics import Diagnostic, Note
from tcc_compiler.language.spans import Span
from tcc_compiler.relax.attempts import NextAttempt
from tcc_compiler.resources.refusal import Refused


def refusal_diagnostic(refusal: Refused, places: Mapping[str, Span]) -> Diagnostic:
    """The error that a refusal stands for."""
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


def relaxed_diagnostic(attempt: NextAttempt, places: Mapping[str, Span]) -> Diagnostic:
    """The warning that an attempt gave something up."""
    return Diagnostic(
        code="TCC411",
        severity="warning",
        message=f"CountFail: {attempt.warning}",
        span=None if attempt.place is None else places.get(attempt.place),
        hint="raise the limit to keep everything in the automaton, or leave --relax auto out",
    )


def places_of(front: Frontend) -> Mapping[str, Span]:
    """The span of each statement; the plan of a grammar without one has its first statement's."""
    if front.unplanned is None:
        return front.places
    return {"plan": front.unplanned, **front.places}


def no_plan_diagnostics(front: Frontend, others: Sequence[Diagnostic]) -> list[Diagnostic]:
    """A warning where no statement says what a plan is; else nothing.

    None either where `others` say that plans are infinitely many for want of one.
    """
    if front.unplanned is None or any(other.span == front.unplanned for other in others):
        return []
    return [
        Diagnostic(
            code="TCC413",
            severity="warning",
            message="no `plan`: everything that the other statements allow is a plan",
            span=front.unplanned,
            hint="write a `plan`, or `plan = any*` where this is meant",
        )
    ]
