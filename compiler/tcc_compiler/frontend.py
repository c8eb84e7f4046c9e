"""The front end: a grammar's text to its core, or to all of its errors.

Normative text: docs/spec/language.md; the core is docs/spec/core.md.  Reads the file it is given
and those that it uses, nothing else.  Whoever has only so much time gives a function `look`, which
is called every few hundred steps and raises where that time is over.
Cost: linear in the text and the calls.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tcc_compiler.core import core_bytes
from tcc_compiler.diagnostics import Diagnostic, Report
from tcc_compiler.place import forbid_place, require_place
from tcc_compiler.resolve.examples import Example, Expect
from tcc_compiler.resolve.files import gather
from tcc_compiler.resolve.grammar import resolve
from tcc_compiler.resolve.limits import limit_text
from tcc_compiler.resolve.program import Program, program_of
from tcc_compiler.resolve.resolved import Resolved
from tcc_compiler.source import (
    MAX_SOURCE_BYTES,
    Source,
    Unreadable,
    decode,
    read_bytes,
    source_of,
    too_large,
)
from tcc_compiler.spans import Region, Span

__all__ = ["Example", "Expect", "Frontend", "read_grammar", "read_grammar_text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontend:
    """What the front end makes of a grammar.

    Attributes:
        diagnostics: by file, then by place.
        core: canonical JSON, None when there are errors.
        examples, expects: in the order of the text; empty when there are errors.
        sources: the files read, by the names that spans have, in the order of reading.
        places: where statements stand, by their places (:mod:`tcc_compiler.place`).
        unplanned: where the grammar begins that has neither `plan` nor `start` and `goal`, so that
            everything else that it allows is a plan; None for others.
    """

    diagnostics: tuple[Diagnostic, ...]
    core: bytes | None
    examples: tuple[Example, ...]
    expects: tuple[Expect, ...]
    sources: Mapping[str, Source]
    places: Mapping[str, Span]
    unplanned: Span | None = None


def read_grammar(path: Path, look: Callable[[], None] | None = None) -> Frontend:
    """The front end's result for a grammar file; whatever the file holds, this returns."""
    data = read_bytes(path)
    text = data if isinstance(data, Unreadable) else decode(data)
    if isinstance(text, Unreadable):
        return unreadable(str(path), text)
    # The folder is that of the path as given, so that a link to a grammar stays where it is.
    resolved = Path(os.path.realpath(path.parent)) / path.name
    return _read(source_of(text, str(path), resolved), look)


def read_grammar_text(
    text: str, name: str = "<text>", look: Callable[[], None] | None = None
) -> Frontend:
    """The front end's result for a text that is in no file; it can use no files."""
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        message = f"character {error.start} is half of a surrogate pair: this is not text"
        return unreadable(name, Unreadable(code="TCC108", message=message))
    decoded = too_large() if len(data) > MAX_SOURCE_BYTES else decode(data)
    if isinstance(decoded, Unreadable):
        return unreadable(name, decoded)
    return _read(source_of(decoded, name), look)


def unreadable(name: str, problem: Unreadable) -> Frontend:
    """The result for a file that is no text."""
    source = source_of(problem.text, name)
    report = Report([source])
    region = Region(0, problem.offset, problem.offset)
    report.error(problem.code, region, problem.message, problem.hint)
    return failed(report, [source])


def failed(report: Report, sources: list[Source]) -> Frontend:
    """The result where there are errors."""
    return Frontend(
        diagnostics=report.diagnostics(),
        core=None,
        examples=(),
        expects=(),
        sources={source.name: source for source in sources},
        places={},
    )


def _read(root: Source, look: Callable[[], None] | None) -> Frontend:
    sources = [root]
    report = Report(sources, look)
    program = program_of(gather(sources, report), report)
    found = resolve(program, report)
    if found is None or report.failed:
        return failed(report, sources)
    resolved, examples, expects = found
    return Frontend(
        diagnostics=report.diagnostics(),
        core=core_bytes(resolved),
        examples=examples,
        expects=expects,
        sources={source.name: source for source in sources},
        places=_places(program, resolved, report),
        unplanned=_unplanned(program, report),
    )


def _unplanned(program: Program, report: Report) -> Span | None:
    if program.plan is not None or program.start is not None or program.grammar is None:
        return None
    return report.span(program.grammar.region)


def _places(program: Program, resolved: Resolved, report: Report) -> Mapping[str, Span]:
    places = {f"tool {name}": report.span(tool.region) for name, tool in program.tools.items()}
    places |= {f"rule {name}": report.span(rule.region) for name, rule in program.rules.items()}
    if program.plan is not None:
        places["plan"] = report.span(program.plan.region)
    for statement, (order, first, second) in zip(program.requires, resolved.requires, strict=True):
        places[require_place(order, first, second)] = report.span(statement.region)
    chains, pairs = iter(resolved.chains), iter(resolved.pairs)
    for forbid in program.forbids:
        place = (
            forbid_place("with", sorted(next(pairs)))
            if forbid.together
            else forbid_place("next", next(chains))
        )
        places[place] = report.span(forbid.region)
    tools = resolved.alphabet.tools
    for bound, limit in zip(program.limits, resolved.limits, strict=True):
        places[f"limit {limit_text(limit, tools)}"] = report.span(bound.region)
    return places
