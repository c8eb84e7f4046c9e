"""``tcc serve mcp``: an artifact's plans as MCP tools, for agents that plan before they act."""

from __future__ import annotations

from pathlib import Path

import click

import tcc
from tcc.opening import open_artifact, served_argument
from tcc.options import digest_option
from tcc.planning import Planner
from tcc_runtime.mcp.serving import serve


@click.group("serve")
def command() -> None:
    """Answer programs that ask."""


@command.command("mcp")
@served_argument
@digest_option("--checked", "the digest of an artifact whose certificates were checked before")
@click.pass_context
def mcp(ctx: click.Context, /, artifact: Path, checked: bytes | None) -> None:
    """Serve ARTIFACT (or a grammar, compiled on the spot) over stdio, as five MCP tools.

    route searches for the best plans, allowed lists the calls that may follow others, check says
    whether one may, validate verifies a ledger, explain says what a code means. Nothing is called.
    """
    opened = open_artifact(artifact, command="serve", checked=checked)
    planner = Planner(opened)
    info = {"name": f"tcc {opened.core.name}", "version": tcc.__version__}
    said = f"Plans of the grammar {opened.core.name}. They plan and check, and call nothing."
    serve(planner.tools(), planner.call, info=info, instructions=said)
    ctx.exit(0)
