"""Answers that lead nowhere: a call may be made, and with one of its answers no plan goes on.

A gate lets such a call through, and after the answer there is nothing that it may allow.  Tools
that are `strict` never come to that.  One finding for each tool, with a shortest way there.
Cost: that of :mod:`tcc_compiler.automata.unanswered`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tcc_certs.core.model import Core
from tcc_compiler.automata.answers import is_observed
from tcc_compiler.automata.letters import Letters
from tcc_compiler.automata.table import Table
from tcc_compiler.automata.unanswered import unanswered, unanswered_text
from tcc_compiler.language.diagnostics import Diagnostic
from tcc_compiler.language.source import Source
from tcc_compiler.lint.finding import Finding
from tcc_compiler.resolve.program import Program


def unanswered_calls(
    program: Program, core: Core, letters: Letters, table: Table, sources: Sequence[Source]
) -> Iterator[Finding]:
    """TCC712 for each tool with observed parameters that has such an answer."""
    open_tools = {at for at, tool in enumerate(core.tools) if is_observed(tool) and not tool.strict}
    if not open_tools:
        return
    for item in unanswered(core, letters, table):
        tool = core.calls[item.answered[0]].tool
        if tool in open_tools:
            open_tools.discard(tool)
            statement = program.tools[core.tools[tool].name]
            yield Finding(
                diagnostic=Diagnostic(
                    code="TCC712",
                    severity="warning",
                    message=unanswered_text(core, item),
                    span=sources[statement.region.source].span(statement.name.region),
                    hint="say what follows that answer, or make the tool `strict`",
                )
            )
        if not open_tools:
            return
