"""Mends of lints, made in the text of a grammar: comments stay, and so does every other statement.

A statement that goes takes its line along where nothing else stands on it; a comment behind it
stays on a line of its own.  Cost: linear in the text.
"""

from __future__ import annotations

from collections.abc import Iterable

from tcc_compiler.lint.finding import Edit, Finding


def mended(text: str, findings: Iterable[Finding]) -> str:
    """The text after the fixes of `findings`; of edits that overlap the first is made."""
    edits = sorted(
        {
            (edit.start, -edit.end, edit.text): edit for found in findings for edit in found.fix
        }.items()
    )
    parts: list[str] = []
    at = 0
    for _, edit in edits:
        start, end = _reach(text, edit)
        if start < at:
            continue
        parts += [text[at:start], edit.text]
        at = end
    return "".join([*parts, text[at:]])


def _reach(text: str, edit: Edit) -> tuple[int, int]:
    """From where to where characters go: the whole line, or the spaces before what follows."""
    if not edit.statement:
        return edit.start, edit.end
    line = text.rfind("\n", 0, edit.start) + 1
    alone = not text[line : edit.start].strip(" \t")
    end = edit.end
    while end < len(text) and text[end] in " \t\r":
        end += 1
    if alone and text[end : end + 1] in ("\n", ""):
        return line, min(end + 1, len(text))
    if alone:
        return edit.start, end
    # Something stands before it: the spaces between go with it, and what follows keeps its own.
    start = edit.start
    while start > line and text[start - 1] in " \t":
        start -= 1
    return start, edit.end
