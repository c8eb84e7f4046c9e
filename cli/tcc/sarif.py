"""Findings as SARIF 2.1.0, for code scanning: each code a rule with its page and a link to it.

URIs are relative to the folder in which the command runs (absolute for files outside of it) and
percent-encoded; columns count UTF-16 units, as SARIF's default has it, ends are exclusive.
Source: OASIS, SARIF version 2.1.0, sections 3.4 (artifactLocation), 3.30 (region), 3.49 (rules).
Cost: linear in the findings, and in the lines that their columns are on.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tcc.code_pages import link_of, text_of, titles
from tcc.found import Found, Place
from tcc.release import version
from tcc_compiler.language.source import Source

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)


def sarif(found: Sequence[Found], sources: Mapping[str, Source]) -> dict[str, Any]:
    """The SARIF log of these findings, of one run.

    Args:
        found: in the order in which they are to be listed.
        sources: the texts of files by their names; of a file that is not among them places are
            lines without columns.
    """
    codes = sorted({one.code for one in found})
    known = titles()
    driver = {
        "name": "tcc",
        "version": version(),
        "rules": [_rule(code, known.get(code, code)) for code in codes],
    }
    results = [_result(one, codes.index(one.code), sources) for one in found]
    run = {"tool": {"driver": driver}, "columnKind": "utf16CodeUnits", "results": results}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(code: str, title: str) -> dict[str, Any]:
    text = text_of(code) or title
    return {
        "id": code,
        "shortDescription": {"text": title},
        "fullDescription": {"text": text.split("\n\n")[1] if "\n\n" in text else text},
        "help": {"text": text},
        "helpUri": link_of(code),
    }


def _result(one: Found, index: int, sources: Mapping[str, Source]) -> dict[str, Any]:
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
    """A column that counts characters, counted in UTF-16 units; both from 1."""
    if line.isascii():
        return column
    return column + sum(char > "\uffff" for char in line[: column - 1])


def uri_of(file: str) -> str:
    """A file as a URI: relative to the working folder where it is in there, else absolute."""
    whole = Path(os.path.abspath(file))  # noqa: PTH100 - links are not followed: the name is what was given
    here = Path.cwd()
    if not whole.is_relative_to(here):
        return whole.as_uri()
    return quote(os.fsencode(whole.relative_to(here).as_posix()))
