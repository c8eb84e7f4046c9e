"""A core with `ask` statements.  The compiler declines them, so they are added to the core."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from tcc_certs.kernel import CheckedArtifact
from tcc_certs.policy import nodes
from tests.oracle_session.writer import SessionWriter, artifact_of

LEAD = nodes.Ask(
    on=nodes.Word("pay"),
    where=(nodes.Compare(">", nodes.Word("amount"), nodes.Number("10")),),
    who="lead",
    within=nodes.Duration("1", "h"),
)
BOSS = nodes.Ask(
    on=nodes.Word("pay"),
    where=(nodes.Compare(">", nodes.Word("amount"), nodes.Number("99")),),
    who="boss",
)
ONE = "1" * 32


@cache
def asking() -> CheckedArtifact:
    """Payments above 10 need the lead, within an hour; above 99 the boss, too."""
    artifact = artifact_of(
        'grammar g version "1"\ntool find(id: text)\ntool pay(id: text, amount: number)\n'
        "limit depth <= 12\nbefore pay require find(same id)"
    )
    statements = (*artifact.core.statements, LEAD, BOSS)
    pay = replace(artifact.core.tool_of["pay"], errors_failed=True)
    tools = tuple([pay if tool.name == "pay" else tool for tool in artifact.core.tools])
    return replace(artifact, core=replace(artifact.core, tools=tools, statements=statements))


def asked(amount: int = 50) -> SessionWriter:
    """A session in which the lead is asked about a payment."""
    writer = SessionWriter(asking())
    writer.made("find", id="a")
    writer.ask("pay", ONE, 2, id="a", amount=amount)
    return writer
