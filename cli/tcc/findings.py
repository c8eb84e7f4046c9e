"""Findings in the four formats that people and their tools read: text, json, sarif, github.

Whatever a command found is made into :class:`tcc.found.Found` and leaves here.  Every format stays
well-formed however broken the input is, and there is one document even where nothing was found.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tcc import screen
from tcc.found import Found, as_object, of_diagnostics

if TYPE_CHECKING:
    from tcc_compiler.language.diagnostics import Diagnostic
    from tcc_compiler.language.source import Source


def print_diagnostics(
    command: str,
    diagnostics: Sequence[Diagnostic],
    sources: Mapping[str, Source],
    output_format: str,
) -> None:
    """Print `diagnostics` in a format of :mod:`tcc.output_formats`.

    Args:
        command: whose JSON document they are.
        sources: the text of each file by its name.
    """
    if output_format == "text":
        _text(diagnostics, sources)
    elif output_format == "json":
        screen.print_json(command, {"diagnostics": [as_json(d) for d in diagnostics]})
    else:
        print_found(of_diagnostics(diagnostics), output_format, sources)


def print_found(
    found: Sequence[Found], output_format: str, sources: Mapping[str, Source] | None = None
) -> None:
    """Print findings as ``sarif`` or ``github`` has them."""
    if output_format == "sarif":
        from tcc.sarif import sarif

        screen.say_json(json.dumps(sarif(found, sources or {}), indent=2))
    else:
        from tcc.annotations import annotation

        for one in found:
            screen.say(annotation(one))


def as_json(diagnostic: Diagnostic) -> dict[str, Any]:
    """One diagnostic as the JSON object that every command uses."""
    return as_object(of_diagnostics([diagnostic])[0])


def _text(found: Sequence[Diagnostic], sources: Mapping[str, Source]) -> None:
    from tcc_compiler.language.diagnostics import render

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
