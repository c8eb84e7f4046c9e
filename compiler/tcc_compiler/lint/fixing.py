"""Mends of lints, made in the text of a grammar: comments stay, and so does every other statement.

A statement that goes takes its line along where nothing else stands on it; a comment behind it
stays on a line of its own.  Cost: linear in the text.
"""

from __future__ import annotations

from collections.abc import Iterable

from tcc_compiler.lint.finding import Edit, Finding


def mended(text: str, findings: Iterable[Finding]) -> str:
    """The text after the fixes of `findings`; of edits that overlap the first is made."""
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
    """From where to where characters go: the whole line, or the spaces before what follows.

    Args:
        line: where the line of the edit begins; `bare`, whether nothing of it stands before.
    """
    if not edit.statement:
        return edit.start, edit.end
    end = edit.end
    while end < len(text) and text[end] in " \t\r":
        end += 1
    if bare:
        whole = text[end : end + 1] in ("\n", "")
        return (line, min(end + 1, len(text))) if whole else (edit.start, end)
    # Something stands before it: the spaces between go with it, and what follows keeps its own.
    start = edit.start
    while start > line and text[start - 1] in " \t":
        start -= 1
    return start, edit.end
