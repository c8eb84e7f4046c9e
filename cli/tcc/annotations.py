"""Findings as workflow commands of GitHub Actions, which show them beside the changed lines.

Source: GitHub's documentation of workflow commands; a percent sign and line ends are escaped
everywhere, a colon and a comma in properties too.  Columns are told where a finding is on one line,
as GitHub takes them there alone.  Cost: linear in the findings.
"""

from __future__ import annotations

import os
from pathlib import Path

from tcc.found import Found, Place

_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def annotation(found: Found) -> str:
    """The workflow command for a finding."""
    text = found.message if not found.hint else f"{found.message} ({found.hint})"
    return command(_COMMANDS[found.severity], text, found.code, found.place)


def command(level: str, text: str, title: str, place: Place | None = None) -> str:
    """A workflow command: `level` is error, warning or notice."""
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
    """GitHub knows files by their path in the checkout, in which a step runs."""
    whole, here = Path(os.path.abspath(file)), Path.cwd()  # noqa: PTH100 - links are not followed
    return whole.relative_to(here).as_posix() if whole.is_relative_to(here) else file


def _escaped(text: str, is_property: bool) -> str:
    for plain, code in (("%", "%25"), ("\r", "%0D"), ("\n", "%0A")):
        text = text.replace(plain, code)
    return text.replace(":", "%3A").replace(",", "%2C") if is_property else text
