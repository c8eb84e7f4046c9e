"""Findings of lints: a diagnostic, the edits that fix it, and the text after such edits.

A fix does not change the core, and keeps all comments and other statements. The line of a removed
statement is removed too, if it has no other text.
Specification: docs/lint.md. Cost: linear in the text and the findings.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tcc_compiler.frozen import frozen
from tcc_compiler.language.diagnostics import Diagnostic
from tcc_compiler.syntax.tree import Tree


@frozen
class Edit:
    """Replaces characters `start` to `end` of the root file with `text`, which may be empty.

    Attributes:
        statement: True if the characters are a whole statement, whose line may be removed with it.
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
        """The sort key: file and place, then code."""
        span = self.diagnostic.span
        line, column = (0, 0) if span is None else (span.line, span.column)
        file = "" if span is None else span.file
        return file, line, column, self.diagnostic.code, self.diagnostic.message


@frozen
class LintNote:
    """An unanswered question, or a remark. It is no finding, so it does not change the exit code.

    Attributes:
        statement: the text that the question is about; None if it is about no single statement.
        question: ``always``, ``reachable``, ``implies``, or the code of an undecided lint.
        missing: the reason why there is no answer.
    """

    diagnostic: Diagnostic
    statement: str | None = None
    question: str | None = None
    missing: str | None = None


def removal(tree: Tree) -> tuple[Edit, ...]:
    """Return the edit that removes a statement of the root file."""
    return (Edit(start=tree.start, end=tree.end, text="", statement=True),)


def in_order(findings: Sequence[LintFinding]) -> tuple[LintFinding, ...]:
    """Return the findings sorted by place."""
    return tuple(sorted(findings, key=lambda finding: finding.order))


def fixed_text(text: str, findings: Iterable[LintFinding]) -> str:
    """Return the text after the fixes of `findings`; of overlapping edits the first is made."""
    made = [edit for found in findings for edit in found.fix]
    edits = sorted({(edit.start, -edit.end, edit.text): edit for edit in made}.items())
    parts: list[str] = []
    at = 0
    bare = False  # whether the line before `at` has no text left
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
    """Return the characters to remove: the whole line, or a statement with spaces before it.

    Args:
        line: where the line of the edit begins.
        bare: whether the line before the edit has no text left.
    """
    if not edit.statement:
        return edit.start, edit.end
    end = edit.end
    while end < len(text) and text[end] in " \t\r":
        end += 1
    if bare:
        whole = text[end : end + 1] in ("\n", "")
        return (line, min(end + 1, len(text))) if whole else (edit.start, end)
    # Other text precedes the statement: remove the spaces between the two, keep those after it.
    start = edit.start
    while start > line and text[start - 1] in " \t":
        start -= 1
    return start, edit.end


_MOST = 60  # the most characters of a name in a message
_MOST_LISTED = 6


def listed(names: Sequence[str]) -> str:
    """Return the names quoted, in a list; of many names only the first ones."""
    shown = ", ".join(f"`{name[:_MOST]}`" for name in names[:_MOST_LISTED])
    rest = len(names) - _MOST_LISTED
    return f"{shown} and {rest} more" if rest > 0 else shown
