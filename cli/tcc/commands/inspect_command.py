"""``tcc inspect``: what is in an artifact."""

from __future__ import annotations

from pathlib import Path

import click

from tcc import screen
from tcc.describe import describe, print_description
from tcc.opening import artifact_argument, json_option, open_artifact


@click.command("inspect")
@artifact_argument
@click.option("--core", is_flag=True, help="print the grammar that was compiled, resolved, as JSON")
@click.option("--by-depth", is_flag=True, help="count plans by their number of calls, at any cost")
@json_option
def command(artifact: Path, core: bool, by_depth: bool, as_json: bool) -> None:
    """Show what is in ARTIFACT (or in a grammar, compiled on the spot)."""
    opened = open_artifact(artifact, command="inspect")
    if core:
        screen.say_json(bytes(opened.file.columns["core"].data).decode("utf-8"))
        return
    fields = describe(opened, by_depth=by_depth)
    if as_json:
        screen.print_json("inspect", fields)
    else:
        print_description(opened, fields)
