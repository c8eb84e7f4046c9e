"""``tcc inspect``: shows the contents of an artifact."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tcc import screen
from tcc.describe import describe, print_description
from tcc.opening import open_artifact, options_of
from tcc.options import artifact_argument, compile_options, json_option


@click.command("inspect")
@artifact_argument
@click.option("--core", is_flag=True, help="print the core: the resolved grammar, as JSON")
@click.option(
    "--by-depth",
    is_flag=True,
    help="count the plans of each number of calls, however long that takes",
)
@compile_options
@json_option
def command(artifact: Path, core: bool, by_depth: bool, as_json: bool, **given: Any) -> None:
    """Show the contents of ARTIFACT (or of a grammar, compiled on the spot)."""
    opened = open_artifact(artifact, command="inspect", options=options_of(given))
    if core:
        screen.say_json(bytes(opened.file.columns["core"].data).decode("utf-8"))
        return
    fields = describe(opened, by_depth=by_depth)
    if as_json:
        from tcc.outputs.grammars import InspectOutput

        screen.print_output(InspectOutput(**fields))
    else:
        print_description(opened, fields, whole=True)
