"""Comments ``# lint: allow CODE`` in a grammar; TCC714 reports wrong or superfluous ones.

At the end of a line, the comment allows lints of statements that begin or end on this line. On a
separate line before the `grammar` statement, it allows lints of the whole file. Text after the
codes is the reason.
Specification: docs/lint.md. Cost: linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from tcc_compiler.frozen import frozen
from tcc_compiler.language.diagnostics import Diagnostic, quote, suggest
from tcc_compiler.language.source import Region, Source, Span
from tcc_compiler.lint.finding import LintFinding

_MARK = re.compile(r'"(?:[^"\\\n]++|\\[^\n])*+"?|#[^\n]*+')
_LINT = re.compile(r"#\s*lint\s*:\s*(\w*)[ \t]*")
_CODE = re.compile(r"[A-Za-z]+[0-9]+")
_NEXT = re.compile(r"[ \t]*,?[ \t]*")


@frozen
class Allowance:
    """One code of one comment.

    Attributes:
        line: the line that the comment applies to; None for the whole file.
        region: the characters of the code.
    """

    code: str
    file: str
    line: int | None
    region: Region


class Allowances:
    """The allowances of the files of a grammar, and a record of the used ones."""

    def __init__(self, sources: Sequence[Source], head: int, known: Collection[str]) -> None:
        """Read the comments.

        Args:
            sources: the files by their numbers; the first is the root file.
            head: where the `grammar` statement of the root file begins.
            known: the codes that may be allowed.
        """
        self._sources = sources
        self._known = known
        self._used: set[int] = set()
        self._problems: list[LintFinding] = []
        self._listed: list[Allowance] = []
        for number, source in enumerate(sources):
            for start, end in _comments(source.text):
                self._read(source, Region(number, start, end), head if number == 0 else -1)
        self._of_line: dict[tuple[str, int | None, str], list[int]] = {}
        for at, allowance in enumerate(self._listed):
            key = (allowance.file, allowance.line, allowance.code)
            self._of_line.setdefault(key, []).append(at)
        self._root = sources[0].name if sources else ""

    def _read(self, source: Source, region: Region, head: int) -> None:
        text = source.text[region.start : region.end]
        found = _LINT.match(text)
        if found is None:
            return
        codes = list(_codes(text, found.end()))
        if found[1] != "allow" or not codes:
            message = f"{quote(text.strip())} allows nothing"
            self._problem(region, message, "write `# lint: allow CODE`, with a code of a lint")
            return
        for code, start, end in codes:
            at = Region(region.source, region.start + start, region.start + end)
            if code not in self._known:
                near = suggest(code, sorted(self._known))
                self._problem(at, f"there is no lint {quote(code)} to allow", near)
                continue
            line, _ = source.place(region.start)
            whole = region.end <= head and not source.line(line).split("#")[0].strip()
            self._listed.append(
                Allowance(
                    code=code, file=source.name, line=None if whole else line, region=at
                )
            )  # fmt: skip

    def _problem(self, region: Region, message: str, hint: str | None) -> None:
        span = self._sources[region.source].span(region)
        self._problems.append(_comment_finding(message, span, hint))

    def allows(self, diagnostic: Diagnostic) -> bool:
        """Return whether a comment allows a lint, and mark the comment as used."""
        span = diagnostic.span
        if span is None:
            lines: list[int | None] = [None]
            file = self._root
        else:
            lines = [span.line, span.end_line, None]
            file = span.file
        found = False
        for line in lines:
            for at in self._of_line.get((file, line, diagnostic.code), ()):
                self._used.add(at)
                found = True
        return found

    def findings(self, undecided: Collection[str]) -> Iterator[LintFinding]:
        """Yield TCC714 for wrong comments, and for unused codes except those in `undecided`."""
        yield from self._problems
        for at, allowance in enumerate(self._listed):
            if at in self._used or allowance.code in undecided:
                continue
            span = self._sources[allowance.region.source].span(allowance.region)
            where = "this file" if allowance.line is None else "this line"
            yield _comment_finding(
                f"there is no {allowance.code} in {where} to allow", span,
                "take it out; an allowance stands at the end of its statement's line, or "
                "before `grammar` for the whole file",
            )  # fmt: skip


def _comments(text: str) -> Iterator[tuple[int, int]]:
    for mark in _MARK.finditer(text):
        if mark.group().startswith("#"):
            yield mark.start(), mark.end()


def _codes(text: str, at: int) -> Iterator[tuple[str, int, int]]:
    """Yield consecutive codes, with or without commas; any other text ends them."""
    while (found := _CODE.match(text, at)) is not None:
        yield found.group(), found.start(), found.end()
        parted = _NEXT.match(text, found.end())
        at = found.end() if parted is None else parted.end()


def _comment_finding(message: str, span: Span, hint: str | None) -> LintFinding:
    return LintFinding(
        diagnostic=Diagnostic(
            code="TCC714", severity="warning", message=message, span=span, hint=hint
        )
    )
