"""A finding as every output format takes it: what, how bad, where, and the mend.

Diagnostics of grammars, findings of checks and of validations, and refusals are made into these
here, and in :mod:`tcc.findings` these into text, JSON, SARIF and workflow commands.
Cost: linear in the findings; a line of a source is looked at once for each place on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from tcc_certs.errors import Rejected
    from tcc_certs.replay.findings import Finding as LineFinding
    from tcc_certs.report import Finding as RuleFinding
    from tcc_compiler.language.diagnostics import Diagnostic
    from tcc_compiler.language.spans import Span

Severity: TypeAlias = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A file, a line of it, or a range of it.

    Attributes:
        file: the name that it was given by.
        line: from 1; None: the file as a whole.
        columns: the first column, the line of the end and the column just past the end, all from
            1, columns in characters; None: the line as a whole.
    """

    file: str
    line: int | None = None
    columns: tuple[int, int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A finding.

    Attributes:
        code: one that ``tcc explain`` knows.
        message: what is wrong, a sentence without its full stop.
        place: where; None where it is about no file.
        hint: how to mend it.
        notes: other places that matter, each with what it has to do with this.
    """

    code: str
    message: str
    place: Place | None
    severity: Severity = "error"
    hint: str | None = None
    notes: Sequence[tuple[str, Place | None]] = ()


def of_diagnostics(found: Iterable[Diagnostic]) -> list[Found]:
    """The diagnostics of a grammar as findings."""
    return [
        Found(
            code=one.code,
            message=one.message,
            place=_of_span(one.span),
            severity=one.severity,
            hint=one.hint,
            notes=tuple((note.message, _of_span(note.span)) for note in one.notes),
        )
        for one in found
    ]


def _of_span(span: Span | None) -> Place | None:
    if span is None:
        return None
    columns = (span.column, span.end_line, span.end_column)
    return Place(file=span.file, line=span.line, columns=columns)


def of_check(found: Iterable[RuleFinding], artifact: Path) -> list[Found]:
    """The findings of a check; they are about bytes, so their place is the file."""
    place = Place(file=str(artifact))
    return [
        Found(
            code=one.code.value,
            message=f"{one.path}: expected {one.expected}, found {one.found}",
            place=place,
        )
        for one in found
    ]


def of_validation(found: Iterable[LineFinding], ledger: Path) -> list[Found]:
    """The findings of the validation of a ledger, each at its line."""
    return [
        Found(
            code=one.code.value,
            message=f"{one.field}: expected {one.expected}, found {one.found}",
            place=Place(file=str(ledger), line=one.line if one.line > 0 else None),
        )
        for one in found
    ]


def of_refusal(refusal: Rejected, path: Path) -> Found:
    """An artifact or a ledger that is refused, as a finding about its file."""
    said = f"{refusal.path}: expected {refusal.expected}, found {refusal.found}"
    return Found(code=refusal.code.value, message=said, place=Place(file=str(path)))


def as_object(found: Found) -> dict[str, Any]:
    """A finding as the JSON object that every command uses."""
    fields: dict[str, Any] = {
        "code": found.code,
        "severity": found.severity,
        "message": found.message,
        **_members(found.place),
    }
    if found.hint:
        fields["hint"] = found.hint
    if found.notes:
        fields["notes"] = [
            {"message": message, **_members(place)} for message, place in found.notes
        ]
    return fields


def _members(place: Place | None) -> Mapping[str, Any]:
    if place is None:
        return {}
    fields: dict[str, Any] = {"file": place.file}
    if place.line is not None:
        fields["line"] = place.line
    if place.columns is not None:
        fields["column"], fields["end_line"], fields["end_column"] = place.columns
    return fields
