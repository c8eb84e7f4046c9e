"""``# lint: allow CODE`` put where it allows a lint, beside the comment that stands there.

Specification: docs/lint.md.  Cost: linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from tcc_compiler.language.diagnostics import Diagnostic
from tcc_compiler.language.source import Source, source_of
from tcc_compiler.lint.comments import Allowed
from tcc_compiler.lint.finding import Edit

_MARK = re.compile(r'"(?:[^"\\\n]++|\\[^\n])*+"?|#[^\n]*+')
_ALLOWING = re.compile(
    r"#\s*lint\s*:\s*allow[ \t]+[A-Za-z]+[0-9]+(?:[ \t]*,?[ \t]*[A-Za-z]+[0-9]+)*"
)


def allowance(source: Source, diagnostic: Diagnostic, known: Collection[str]) -> Edit | None:
    """The edit after which a comment allows a lint of `source`; None where there is none.

    Args:
        known: the codes that may be allowed.
    """
    if diagnostic.code not in known:
        return None
    made = _edit(source, diagnostic)
    text = source.text[: made.start] + made.text + source.text[made.end :]
    after = Allowed((source_of(text, source.name),), _head(diagnostic, made), known)
    return made if after.allows(diagnostic) else None


def _head(diagnostic: Diagnostic, made: Edit) -> int:
    """Where the first statement begins, as far as this comment is concerned."""
    return -1 if diagnostic.span is not None else made.start + len(made.text)


def _edit(source: Source, diagnostic: Diagnostic) -> Edit:
    span, code = diagnostic.span, diagnostic.code
    if span is None:
        return Edit(start=0, end=0, text=f"# lint: allow {code}\n")
    start = source.starts[span.end_line - 1]
    line = source.line(span.end_line)
    comment = next((m.start() for m in _MARK.finditer(line) if m[0].startswith("#")), None)
    if comment is None:
        end = start + len(line.rstrip())
        return Edit(start=end, end=end, text=f"  # lint: allow {code}")
    allowing = _ALLOWING.match(line, comment)
    if allowing is not None:
        end = start + allowing.end()
        return Edit(start=end, end=end, text=f", {code}")
    return Edit(start=start + comment, end=start + comment + 1, text=f"# lint: allow {code}")
