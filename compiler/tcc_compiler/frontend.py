"""The front end: from the text of a grammar to its core, or to all of its errors.

Normative text: docs/spec/language.md; the core is docs/spec/core.md.  Reads the given
file and those that it uses, nothing else.  `check_time` is called every few hundred steps, and ends
the reading by raising.  Cost: linear in the text and the calls.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from tcc_compiler.frozen import frozen
from tcc_compiler.language import source as texts
from tcc_compiler.language.ast import ExactStatement
from tcc_compiler.language.diagnostics import Diagnostic, Report
from tcc_compiler.resolve.core import Resolved, core_bytes
from tcc_compiler.resolve.program import Program, Read, gather, program_of
from tcc_compiler.resolve.resolver import resolve
from tcc_compiler.resolve.statements import Example, Expect

__all__ = [
    "Example",
    "Expect",
    "Frontend",
    "read_grammar",
    "read_grammar_bytes",
    "read_grammar_text",
]


@frozen
class ExactExpect:
    """An exact question, with the answer that it holds (docs/proving.md).

    Attributes:
        text: ``never ..``, a pattern, or the name of a file.
    """

    kind: Literal["never", "reachable", "implies"]
    text: str
    span: texts.Span


@frozen
class Frontend:
    """The result of the front end.

    Attributes:
        diagnostics: by file, then by place.
        core: canonical JSON, None when there are errors.
        examples, expects: in the order of the text; empty when there are errors.
        sources: the files read, by the names that spans have, in the order of reading.
        places: the span of each statement, by its place (:mod:`tcc_compiler.resources`).
        unplanned: the span of the `grammar` statement where no `plan`, `start` and `goal` says
            what a plan is; else None.
        program: the statements, None when there are errors.
        exacts: exact questions whose answers are expected, in the order of the text.
        written: each place with the region of every statement that it comes from.
    """

    diagnostics: tuple[Diagnostic, ...]
    core: bytes | None
    examples: tuple[Example, ...]
    expects: tuple[Expect, ...]
    sources: Mapping[str, texts.Source]
    places: Mapping[str, texts.Span]
    unplanned: texts.Span | None = None
    program: Program | None = None
    exacts: tuple[ExactExpect, ...] = ()
    written: tuple[tuple[str, texts.Region], ...] = ()


def read_grammar(path: Path, check_time: Callable[[], None] | None = None) -> Frontend:
    """The result for a grammar file; raises for no contents of the file."""
    data = texts.read_bytes(path)
    text = data if isinstance(data, texts.Unreadable) else texts.decode(data)
    if isinstance(text, texts.Unreadable):
        return unreadable(str(path), text)
    # A symbolic link to a grammar belongs to the folder of the link, not to that of its target.
    resolved = Path(os.path.realpath(path.parent)) / path.name
    return _read(texts.source_of(text, str(path), resolved), check_time)


def read_grammar_text(
    text: str,
    name: str = "<text>",
    check_time: Callable[[], None] | None = None,
    path: Path | None = None,
    read: Read = texts.read_bytes,
) -> Frontend:
    """The result for a text that comes from no file, and so can use none.

    Args:
        path: the file that the text is to be in: it may use what that file may.
        read: gives the bytes of a used file.
    """
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        message = f"character {error.start} is half of a surrogate pair: this is not text"
        return unreadable(name, texts.Unreadable(code="TCC108", message=message))
    return read_grammar_bytes(data, name, check_time=check_time, path=path, read=read)


def read_grammar_bytes(
    data: bytes,
    name: str,
    folder: Path | None = None,
    check_time: Callable[[], None] | None = None,
    path: Path | None = None,
    read: Read = texts.read_bytes,
) -> Frontend:
    """The result for bytes that come from no file.

    Args:
        folder: the files that they use lie in it, or below; None where they can use none.
        path: the file that they are to be in: they may use what that file may.
        read: gives the bytes of a used file.
    """
    decoded = texts.too_large() if len(data) > texts.MAX_SOURCE_BYTES else texts.decode(data)
    if isinstance(decoded, texts.Unreadable):
        return unreadable(name, decoded)
    inside = None if folder is None else Path(os.path.realpath(folder))
    resolved = None if path is None else Path(os.path.realpath(path.parent)) / path.name
    return _read(texts.source_of(decoded, name, resolved, inside), check_time, read)


def unreadable(name: str, problem: texts.Unreadable) -> Frontend:
    """The result for a file that cannot be read as text."""
    source = texts.source_of(problem.text, name)
    report = Report([source])
    region = texts.Region(0, problem.offset, problem.offset)
    report.error(problem.code, region, problem.message, problem.hint)
    return failed(report, [source])


def failed(report: Report, sources: list[texts.Source]) -> Frontend:
    """The result where there are errors."""
    return Frontend(
        diagnostics=report.diagnostics(),
        core=None,
        examples=(),
        expects=(),
        sources={source.name: source for source in sources},
        places={},
    )


def _read(
    root: texts.Source, check_time: Callable[[], None] | None, read: Read = texts.read_bytes
) -> Frontend:
    sources = [root]
    report = Report(sources, check_time)
    program = program_of(gather(sources, report, read), report)
    outcome = resolve(program, report)
    if outcome is None or report.failed:
        return failed(report, sources)
    resolved, examples, expects = outcome
    return Frontend(
        diagnostics=report.diagnostics(),
        core=core_bytes(resolved),
        examples=examples,
        expects=expects,
        sources={source.name: source for source in sources},
        places=_places(program, resolved, report),
        unplanned=_unplanned(program, report),
        program=program,
        exacts=tuple(
            ExactExpect(
                kind=one.kind,
                text=_asked(sources, one),
                span=report.span(one.region),
            )
            for one in program.exacts
        ),
        written=tuple(resolved.written),
    )


def _asked(sources: list[texts.Source], one: ExactStatement) -> str:
    """The words of a question; of a file its name."""
    if one.path is not None:
        return one.path.value
    return sources[one.asked.source].text[one.asked.start : one.asked.end]


def _unplanned(program: Program, report: Report) -> texts.Span | None:
    if program.plan is not None or program.start is not None or program.grammar is None:
        return None
    return report.span(program.grammar.region)


def _places(program: Program, resolved: Resolved, report: Report) -> Mapping[str, texts.Span]:
    places = {f"tool {name}": report.span(tool.region) for name, tool in program.tools.items()}
    places |= {f"rule {name}": report.span(rule.region) for name, rule in program.rules.items()}
    if program.plan is not None:
        places["plan"] = report.span(program.plan.region)
    if program.start is not None and program.goal is not None:
        places["start"] = report.span(program.start.region)
        places["goal"] = report.span(program.goal.region)
    places |= {place: report.span(region) for place, region in resolved.places.items()}
    return places
