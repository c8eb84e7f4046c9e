"""Reads single conditions and statements, and shows diagnostics."""

from __future__ import annotations

from tcc_certs.policy import nodes as n
from tcc_compiler.language.diagnostics import Report, render
from tcc_compiler.language.source import source_of
from tcc_compiler.names.nodes import Builder
from tcc_compiler.names.statements import definition_of, policy_of
from tcc_compiler.syntax.parse import parse


def read(text: str) -> Builder:
    """The builder of a text without mistakes of syntax."""
    source = source_of(text, "<text>")
    report = Report([source])
    file = parse(source, 0, report)
    shown = [render(one, {"<text>": source}) for one in report.diagnostics()]
    assert not shown, "\n".join(shown)
    return Builder(file, report)


def body_of(text: str) -> n.Node:
    """The node of an expression."""
    return let_of(f"let it_is = {text}").body


def let_of(text: str) -> n.Definition:
    """A `let`."""
    b = read(text)
    found = definition_of(b, b.file.statements[0])
    assert not b.report.failed, b.report.diagnostics()
    return found


def statements_of(text: str) -> list[n.Statement]:
    """The statements of a text."""
    b = read(text)
    found = [one.statement for tree in b.file.statements for one in policy_of(b, tree)]
    assert not b.report.failed, b.report.diagnostics()
    return found
