"""Read the statement of a question about a core.

Cost: linear in the text.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcc_certs.policy import nodes as n
from tcc_certs.policy.core import Core
from tcc_certs.policy.kinds import Fault, Kinds
from tcc_compiler.frozen import frozen
from tcc_compiler.language.diagnostics import Diagnostic, Report
from tcc_compiler.language.source import Region, Source, source_of
from tcc_compiler.names.faults import report_fault
from tcc_compiler.names.nodes import Builder
from tcc_compiler.names.statements import policy_of
from tcc_compiler.syntax.parse import parse

_POLICIES = ("before", "finally_", "forbid", "owe", "limit")


@frozen
class ReadQuestion:
    """The statements of a question, or its mistakes.

    Attributes:
        statements: the statements; a `before` block has one for each clause.
        diagnostics: the mistakes; empty if the text is correct.
        source: the text, for messages.
    """

    statements: tuple[n.Statement, ...]
    diagnostics: Sequence[Diagnostic]
    source: Source


def read_question(text: str, core: Core, *, name: str = "question") -> ReadQuestion:
    """Return the statements of a text, resolved with the names of a core."""
    source = source_of(text, name)
    report = Report([source])
    file = parse(source, 0, report)
    builder = Builder(file, report)
    statements: list[n.Statement] = []
    for tree in file.statements:
        if tree.kind not in _POLICIES:
            hint = "write a statement such as: before refund require approve"
            builder.error("TCC101", tree, "a question is a statement of a policy", hint)
            continue
        for stated in policy_of(builder, tree):
            statements.append(stated.statement)
            if not stated.broken and not report.failed:
                try:
                    Kinds(core).rule(stated.statement)
                except Fault as fault:
                    report_fault(
                        fault, stated.statement, stated.region, builder.spans, core, report
                    )
    if not statements and not report.failed:
        hint = "write a statement such as: before refund require approve"
        report.error("TCC101", Region(0, 0, 0), "the question has no statement", hint)
    return ReadQuestion(
        statements=tuple(statements), diagnostics=report.diagnostics(), source=source
    )
