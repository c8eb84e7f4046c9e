"""Findings as every command reports them, and their formats: text, json, sarif, github.

Diagnostics of grammars, findings of checks and validations, and refusals become
:class:`ReportedFinding`.  A finding is written as text, as JSON, as SARIF 2.1.0 for code scanning,
or as workflow commands of GitHub Actions.  Every format stays well-formed however broken the input
is.  A command without findings still writes one document.

SARIF: each code is a rule with its page and a link.  URIs are percent-encoded, and relative to the
working folder for files below it.  Columns count UTF-16 units, and ends are exclusive.

Workflow commands: percent signs and line ends are escaped everywhere, colons and commas in
properties too.  Columns are given only for a finding on one line, because GitHub accepts no others.

Sources: OASIS, SARIF version 2.1.0, sections 3.4 (artifactLocation), 3.30 (region), 3.49 (rules);
GitHub's documentation of workflow commands.
Cost: linear in the findings and in the lines that they refer to.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from urllib.parse import quote

from tcc import screen
from tcc.screen import version
from tcc_certs.session.files import place_of
from tcc_runtime.errors import mismatch

if TYPE_CHECKING:
    from tcc.outputs import DiagnosticJson
    from tcc_certs.errors import Rejected
    from tcc_certs.replay.findings import Finding as LineFinding
    from tcc_certs.report import RuleFinding as RuleFinding
    from tcc_compiler.language.diagnostics import Diagnostic
    from tcc_compiler.language.source import Source, Span


Severity: TypeAlias = Literal["error", "warning", "note"]
Listed: TypeAlias = "Mapping[str, list[Any]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A file, a line of it, or a range in it.

    Attributes:
        file: the name of the file, as the user gave it.
        line: the line, from 1; None for the file as a whole.
        columns: the first column, the last line, and the column after the end, all from 1 and in
            characters; None for the whole line.
    """

    file: str
    line: int | None = None
    columns: tuple[int, int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedFinding:
    """A finding of any command.

    Attributes:
        code: a code that ``tcc explain`` knows.
        message: the problem, as a sentence without a full stop.
        place: the place of the problem; None if no file has it.
        hint: how to fix it.
        notes: messages about related places, each with its place.
    """

    code: str
    message: str
    place: Place | None
    severity: Severity = "error"
    hint: str | None = None
    notes: Sequence[tuple[str, Place | None]] = ()


def of_diagnostics(found: Iterable[Diagnostic]) -> list[ReportedFinding]:
    """Convert the diagnostics of a grammar to findings."""
    return [
        ReportedFinding(
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


def of_check(found: Iterable[RuleFinding], artifact: Path) -> list[ReportedFinding]:
    """Convert the findings of a check; their place is the whole file, which has no lines."""
    place = Place(file=str(artifact))
    return [
        ReportedFinding(
            code=one.code.value,
            message=f"{one.path}: {mismatch(one.expected, one.found)}",
            place=place,
        )
        for one in found
    ]


def of_validation(
    found: Iterable[LineFinding], files: Sequence[Path], lines: Sequence[int] = ()
) -> list[ReportedFinding]:
    """Convert the findings of a ledger's validation, each with its line.

    Args:
        files: the files of the ledger, in order.
        lines: the number of lines in each file.
    """
    findings = []
    for one in found:
        file, line = place_of(files, lines, one.line)
        findings.append(
            ReportedFinding(
                code=one.code.value,
                message=f"{one.field}: {mismatch(one.expected, one.found)}",
                place=Place(file=str(file), line=line if line > 0 else None),
            )
        )
    return findings


def of_refusal(refusal: Rejected, path: Path) -> ReportedFinding:
    """Convert the refusal of an artifact or a ledger to a finding about its file."""
    said = f"{refusal.path}: {refusal.mismatch}"
    return ReportedFinding(code=refusal.code.value, message=said, place=Place(file=str(path)))


def as_object(found: ReportedFinding) -> DiagnosticJson:
    """Return a finding as the JSON object that every command uses."""
    from tcc.outputs import DiagnosticJson, NoteJson, optional

    notes = [NoteJson(message=message, **_members(place)) for message, place in found.notes]
    return DiagnosticJson(
        code=found.code,
        severity=found.severity,
        message=found.message,
        **_members(found.place),
        hint=optional(found.hint or None),
        notes=optional(notes or None),
    )


def _members(place: Place | None) -> dict[str, Any]:
    if place is None:
        return {}
    fields: dict[str, Any] = {"file": place.file}
    if place.line is not None:
        fields["line"] = place.line
    if place.columns is not None:
        fields["column"], fields["end_line"], fields["end_column"] = place.columns
    return fields


_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def print_diagnostics(
    command: str,
    diagnostics: Sequence[Diagnostic],
    sources: Mapping[str, Source],
    output_format: str,
    listed: Listed | None = None,
) -> None:
    """Print diagnostics in one of :data:`tcc.options.FORMATS`.

    Args:
        command: the command, which names the JSON document.
        sources: the text of each file, by file name.
        listed: the statements of each file, see :func:`sarif`.
    """
    if output_format == "text":
        _text(diagnostics, sources)
    elif output_format == "json":
        from tcc.outputs import RefusedOutput

        refused = RefusedOutput(diagnostics=[as_json(one) for one in diagnostics])
        screen.print_output(refused, command)
    else:
        print_found(of_diagnostics(diagnostics), output_format, sources, listed)


def print_found(
    found: Sequence[ReportedFinding],
    output_format: str,
    sources: Mapping[str, Source] | None = None,
    listed: Listed | None = None,
) -> None:
    """Print findings as ``sarif`` or ``github``; for `listed` see :func:`sarif`."""
    if output_format == "sarif":
        screen.say_json(json.dumps(sarif(found, sources or {}, listed), indent=2))
    else:
        for one in found:
            screen.say(annotation(one))


def as_json(diagnostic: Diagnostic) -> DiagnosticJson:
    """Return a diagnostic as the JSON object that every command uses."""
    return as_object(of_diagnostics([diagnostic])[0])


def _text(found: Sequence[Diagnostic], sources: Mapping[str, Source]) -> None:
    from tcc_compiler.language.diagnostics import render

    for diagnostic in found:
        screen.say_lines(render(diagnostic, sources), err=True)
        screen.say("", err=True)
    if not found:
        return
    counts = Counter(diagnostic.severity for diagnostic in found)
    parts = [
        f"{counts[word]} {word}{'s' if counts[word] > 1 else ''}"
        for word in ("error", "warning", "note")
        if counts[word]
    ]
    screen.say(", ".join(parts), err=True)


def annotation(found: ReportedFinding) -> str:
    """Return the workflow command that reports a finding, with its hint in parentheses."""
    text = found.message if not found.hint else f"{found.message} ({found.hint})"
    return command(_COMMANDS[found.severity], text, found.code, found.place)


def command(level: str, text: str, title: str, place: Place | None = None) -> str:
    """Return a workflow command; `level` is error, warning or notice."""
    properties = {**_properties(place), "title": title}
    told = ",".join(f"{name}={_escaped(str(value), True)}" for name, value in properties.items())
    return f"::{level} {told}::{_escaped(text, False)}"


def _properties(place: Place | None) -> dict[str, object]:
    if place is None:
        return {}
    found: dict[str, object] = {"file": _relative(place.file)}
    if place.line is None:
        return found
    found["line"] = place.line
    if place.columns is not None:
        column, end_line, end_column = place.columns
        found["endLine"] = end_line
        if end_line == place.line:
            found |= {"col": column, "endColumn": end_column}
    return found


def _relative(file: str) -> str:
    """Path relative to the working folder, as GitHub expects; steps run in the checkout."""
    whole, here = Path(os.path.abspath(file)), Path.cwd()  # noqa: PTH100 - links are not followed
    return whole.relative_to(here).as_posix() if whole.is_relative_to(here) else file


def _escaped(text: str, is_property: bool) -> str:
    for plain, code in (("%", "%25"), ("\r", "%0D"), ("\n", "%0A")):
        text = text.replace(plain, code)
    return text.replace(":", "%3A").replace(",", "%2C") if is_property else text


SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)


def sarif(
    found: Sequence[ReportedFinding],
    sources: Mapping[str, Source],
    listed: Listed | None = None,
) -> dict[str, Any]:
    """Return a SARIF log with one run that has these findings.

    Args:
        found: the findings, in the order in which to list them.
        sources: the texts of files, by file name.  Findings in other files have lines but no
            columns.
        listed: the statements of each examined file, as the JSON of commands has them.  They become
            a property of the file in ``artifacts``.
    """
    from tcc.code_pages import titles  # loads the whole catalogue, which few commands need

    codes = sorted({one.code for one in found})
    known = titles()
    driver = {
        "name": "tcc",
        "version": version(),
        "rules": [_rule(code, known.get(code, code)) for code in codes],
    }
    results = [_result(one, codes.index(one.code), sources) for one in found]
    run: dict[str, Any] = {"tool": {"driver": driver}, "columnKind": "utf16CodeUnits"}
    if listed:
        run["artifacts"] = [
            {"location": {"uri": uri_of(file)}, "properties": {"statements": statements}}
            for file, statements in listed.items()
        ]
    run["results"] = results
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(code: str, title: str) -> dict[str, Any]:
    from tcc.code_pages import link_of, text_of

    text = text_of(code) or title
    return {
        "id": code,
        "shortDescription": {"text": title},
        "fullDescription": {"text": text.split("\n\n")[1] if "\n\n" in text else text},
        "help": {"text": text},
        "helpUri": link_of(code),
    }


def _result(one: ReportedFinding, index: int, sources: Mapping[str, Source]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": one.code,
        "ruleIndex": index,
        "level": one.severity,
        "message": {"text": one.message if not one.hint else f"{one.message} ({one.hint})"},
    }
    if one.place is not None:
        result["locations"] = [{"physicalLocation": _physical(one.place, sources)}]
    related = [
        {"id": number, "message": {"text": text}, "physicalLocation": _physical(place, sources)}
        for number, (text, place) in enumerate(one.notes)
        if place is not None
    ]
    return result | ({"relatedLocations": related} if related else {})


def _physical(place: Place, sources: Mapping[str, Source]) -> dict[str, Any]:
    location: dict[str, Any] = {"artifactLocation": {"uri": uri_of(place.file)}}
    if place.line is not None:
        location["region"] = _region(place, place.line, sources.get(place.file))
    return location


def _region(place: Place, line: int, source: Source | None) -> dict[str, int]:
    if place.columns is None or source is None:
        return {"startLine": line}
    column, end_line, end_column = place.columns
    return {
        "startLine": line,
        "startColumn": utf16_column(source.line(line), column),
        "endLine": end_line,
        "endColumn": utf16_column(source.line(end_line), end_column),
    }


def utf16_column(line: str, column: int) -> int:
    """Convert a column in characters to a column in UTF-16 units; both count from 1."""
    if line.isascii():
        return column
    return column + sum(char > "\uffff" for char in line[: column - 1])


def uri_of(file: str) -> str:
    """Return a file as a URI: relative if it is below the working folder, else absolute."""
    whole = Path(os.path.abspath(file))  # noqa: PTH100 - links are not followed: the name is what was given
    here = Path.cwd()
    if not whole.is_relative_to(here):
        return whole.as_uri()
    return quote(os.fsencode(whole.relative_to(here).as_posix()))
