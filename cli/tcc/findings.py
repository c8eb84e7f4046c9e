"""Findings in the four formats that people and their tools read: text, json, sarif, github.

Whatever a command found is made into :class:`tcc.found.Found` and leaves here.  Every format stays
well-formed however broken the input is, and there is one document even where nothing was found.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from tcc import screen
from tcc.found import Found, as_object, of_diagnostics
from tcc_compiler.language.diagnostics import Diagnostic, render
from tcc_compiler.language.source import Source

FORMATS = ("text", "json", "sarif", "github")


def format_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option of every command that gives findings."""
    return click.option(
        "--output-format",
        type=click.Choice(FORMATS),
        default="text",
        show_default=True,
        help="for people, programs, code scanning, workflows of GitHub; json is --json",
    )(command)


def chosen(output_format: str, as_json: bool) -> str:
    """The format that the two options come to; it is known to what ends a command early, too."""
    if as_json and output_format == "text":
        output_format = "json"
    params = click.get_current_context().params
    params["as_json"], params["output_format"] = output_format == "json", output_format
    return output_format


def print_diagnostics(
    command: str,
    diagnostics: Sequence[Diagnostic],
    sources: Mapping[str, Source],
    output_format: str,
) -> None:
    """Print `diagnostics` in one of FORMATS; `sources` holds the text of each file by its name."""
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
