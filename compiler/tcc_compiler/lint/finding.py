"""Findings: a diagnostic with the edits that fix it, and the text of a grammar after such edits.

A fix does not change the core, and keeps all comments and other statements.  A removed statement
takes its line with it, unless the line has more than the statement.
Specification: docs/lint.md. Cost: linear in the text and the findings.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tcc_compiler.frozen import frozen
from tcc_compiler.language.diagnostics import Diagnostic
from tcc_compiler.syntax.tree import Tree


@frozen
class Edit:
    """Replaces characters `start` to `end` of the root file by `text`; removes them if it is empty.

    Attributes:
        statement: whether they are a whole statement, whose line may be removed with it.
    """

    start: int
    end: int
    text: str
    statement: bool = False


@frozen
class LintFinding:
    """One lint.

    Attributes:
        diagnostic: code, severity, message, place and notes.
        fix: edits that remove the finding and keep the core. The edits of all findings of a grammar
            may be made together.
    """

    diagnostic: Diagnostic
    fix: tuple[Edit, ...] = ()

    @property
    def order(self) -> tuple[str, int, int, str, str]:
        """By file and place, then by code."""
        span = self.diagnostic.span
        line, column = (0, 0) if span is None else (span.line, span.column)
        file = "" if span is None else span.file
        return file, line, column, self.diagnostic.code, self.diagnostic.message


@frozen
class LintNote:
    """A question that was not answered, or a remark: no finding, so the exit code stays.

    Attributes:
        statement: the text that the question is about; None if it is about no single statement.
        question: ``always``, ``reachable``, ``implies``, or the code of a lint that is open.
        missing: the reason why there is no answer.
    """

    diagnostic: Diagnostic
    statement: str | None = None
    question: str | None = None
    missing: str | None = None


def removal(tree: Tree) -> tuple[Edit, ...]:
    """The edit that removes a statement of the root file."""
    return (Edit(start=tree.start, end=tree.end, text="", statement=True),)


def in_order(findings: Sequence[LintFinding]) -> tuple[LintFinding, ...]:
    """The findings by place."""
    return tuple(sorted(findings, key=lambda finding: finding.order))


def fixed_text(text: str, findings: Iterable[LintFinding]) -> str:
    """The text after the fixes of `findings`; only the first of overlapping edits is made."""
    made = [edit for found in findings for edit in found.fix]
    edits = sorted({(edit.start, -edit.end, edit.text): edit for edit in made}.items())
    parts: list[str] = []
    at = 0
    bare = False  # whether nothing is left of the line before `at`
    for _, edit in edits:
        if edit.start < at:
            continue
        line = text.rfind("\n", 0, edit.start) + 1
        before = text[max(at, line) : edit.start].strip(" \t")
        bare = edit.statement and not before and (at <= line or bare)
        start, end = _reach(text, edit, line, bare=bare)
        parts += [text[at : max(at, start)], edit.text]
        at = end
    return "".join([*parts, text[at:]])


def _reach(text: str, edit: Edit, line: int, *, bare: bool) -> tuple[int, int]:
    """The range of characters to remove: the whole line, or the statement with spaces before it.

    Args:
        line: where the line of the edit begins.
        bare: whether nothing is left of the line before the edit.
    """
    if not edit.statement:
        return edit.start, edit.end
    end = edit.end
    while end < len(text) and text[end] in " \t\r":
        end += 1
    if bare:
        whole = text[end : end + 1] in ("\n", "")
        return (line, min(end + 1, len(text))) if whole else (edit.start, end)
    # Other text precedes the statement: remove the spaces between both, keep those behind it.
    start = edit.start
    while start > line and text[start - 1] in " \t":
        start -= 1
    return start, edit.end


_MOST = 60  # characters of a name in a message
_MOST_LISTED = 6


def listed(names: Sequence[str]) -> str:
    """Quoted names; only the first ones of many."""
    shown = ", ".join(f"`{name[:_MOST]}`" for name in names[:_MOST_LISTED])
    rest = len(names) - _MOST_LISTED
    return f"{shown} and {rest} more" if rest > 0 else shown
