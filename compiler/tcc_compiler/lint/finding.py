"""What a lint finds: a diagnostic of the compiler, and perhaps a mend that changes no plan.

Specification: docs/lint.md.  Cost: that of the diagnostics.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcc_compiler.frozen import frozen
from tcc_compiler.language.diagnostics import Diagnostic
from tcc_compiler.language.source import Source
from tcc_compiler.language.spans import Region


@frozen
class Edit:
    """Characters `start` to `end` of the root file are to be `text`; an empty text takes them out.

    Attributes:
        statement: whether they are a whole statement, with which its line may go.
    """

    start: int
    end: int
    text: str
    statement: bool = False


@frozen
class Finding:
    """One lint.

    Attributes:
        diagnostic: code, severity, message, place and notes.
        fix: edits after which it is gone, and the plans are the same; those of all findings of one
            grammar may be made together.
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


def removed(region: Region, source: Source) -> tuple[Edit, ...]:
    """The mend that takes a statement of the root file out; none for another file."""
    if region.source:
        return ()
    # The region of an expression ends before the parentheses that close it.
    text = source.statement(source.span(region))
    return (Edit(start=region.start, end=region.start + len(text), text="", statement=True),)


def in_order(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings by place."""
    return tuple(sorted(findings, key=lambda finding: finding.order))
