"""Diagnostics in the four formats that people and their tools read: text, json, sarif, github.

SARIF is version 2.1.0; the github format is the workflow command of GitHub Actions.  Every format
stays well-formed however broken the grammar is.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from tcc import screen
from tcc_compiler.language.diagnostics import Diagnostic, render
from tcc_compiler.language.source import Source

FORMATS = ("text", "json", "sarif", "github")


def print_diagnostics(
    command: str,
    diagnostics: Sequence[Diagnostic],
    sources: Mapping[str, Source],
    output_format: str,
) -> None:
    """Print `diagnostics` in one of FORMATS; `sources` holds the text of each file by its name."""
    _WRITERS[output_format](command, diagnostics, sources)


def as_json(diagnostic: Diagnostic) -> dict[str, Any]:
    """One diagnostic as the JSON object that every command uses."""
    found: dict[str, Any] = {
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
    }
    if diagnostic.span is not None:
        found |= asdict(diagnostic.span)
    if diagnostic.hint:
        found["hint"] = diagnostic.hint
    if diagnostic.notes:
        found["notes"] = [
            {"message": note.message} | ({} if note.span is None else asdict(note.span))
            for note in diagnostic.notes
        ]
    return found


def _text(_: str, found: Sequence[Diagnostic], sources: Mapping[str, Source]) -> None:
    for diagnostic in found:
        screen.say_lines(render(diagnostic, sources), err=True)
        screen.say("", err=True)
    if not found:
        return
    errors = sum(d.severity == "error" for d in found)
    warnings = len(found) - errors
    parts = [
        f"{n} {w}{'s' if n > 1 else ''}" for n, w in ((errors, "error"), (warnings, "warning"))
    ]
    screen.say(", ".join(p for p, n in zip(parts, (errors, warnings), strict=True) if n), err=True)


def _json(command: str, found: Sequence[Diagnostic], _: Mapping[str, Source]) -> None:
    screen.print_json(command, {"diagnostics": [as_json(d) for d in found]})


def _github(_: str, found: Sequence[Diagnostic], __: Mapping[str, Source]) -> None:
    for d in found:
        place: dict[str, object] = {"title": d.code}
        if d.span is not None:
            place |= {
                "file": d.span.file,
                "line": d.span.line,
                "endLine": d.span.end_line,
                "col": d.span.column,
                "endColumn": d.span.end_column,
            }
        fields = ",".join(
            f"{key}={escape_command(str(value), True)}" for key, value in place.items()
        )
        text = d.message if not d.hint else f"{d.message} ({d.hint})"
        screen.say(f"::{d.severity} {fields}::{escape_command(text, False)}")


def escape_command(text: str, is_property: bool) -> str:
    """A text in a workflow command, or in a property of one."""
    # The workflow-command syntax: % and line ends everywhere, : and , inside properties too.
    for plain, code in (("%", "%25"), ("\r", "%0D"), ("\n", "%0A")):
        text = text.replace(plain, code)
    return text.replace(":", "%3A").replace(",", "%2C") if is_property else text


def _sarif(_: str, found: Sequence[Diagnostic], sources: Mapping[str, Source]) -> None:
    codes = sorted({d.code for d in found})
    driver = {
        "name": "tcc",
        "rules": [{"id": code} for code in codes],
    }
    run = {"tool": {"driver": driver}, "results": [_sarif_result(d, codes) for d in found]}
    document = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{**run, "columnKind": "unicodeCodePoints"}],
    }
    screen.say_json(json.dumps(document, indent=2))


def _sarif_result(d: Diagnostic, codes: Sequence[str]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": d.code,
        "ruleIndex": codes.index(d.code),
        "level": d.severity,
        "message": {"text": d.message if not d.hint else f"{d.message} ({d.hint})"},
    }
    if d.span is not None:
        region = {
            "startLine": d.span.line,
            "startColumn": d.span.column,
            "endLine": d.span.end_line,
            "endColumn": d.span.end_column,
        }
        from urllib.parse import quote  # here, since no other format needs it

        place = {"artifactLocation": {"uri": quote(os.fsencode(d.span.file))}, "region": region}
        result["locations"] = [{"physicalLocation": place}]
    return result


_Writer = Callable[[str, Sequence[Diagnostic], Mapping[str, Source]], None]
_WRITERS: Mapping[str, _Writer] = {
    "text": _text,
    "json": _json,
    "sarif": _sarif,
    "github": _github,
}
