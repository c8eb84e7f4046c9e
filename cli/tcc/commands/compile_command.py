"""``tcc compile``: a grammar, or a graph, to a certified artifact."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from tcc import screen
from tcc.describe import describe, print_description
from tcc.files import write_atomically
from tcc.opening import compile_options, compile_or_exit, json_option, options_of
from tcc_runtime.load import load


@click.command("compile")
@click.argument("grammar", type=click.Path(dir_okay=False, path_type=Path))
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path))
@compile_options
@click.option(
    "--output-format",
    type=click.Choice(("text", "json", "sarif", "github")),
    default="text",
    show_default=True,
    help="of the diagnostics",
)
@json_option
def command(
    grammar: Path, output: Path | None, output_format: str, as_json: bool, **given: Any
) -> None:
    """Compile GRAMMAR (.tcg, .graphml or node-link .json) to a certified artifact.

    Without -o the artifact is written beside the grammar, with the ending .tcca.
    """
    started = time.perf_counter()
    shown = "json" if as_json and output_format == "text" else output_format
    compiled = compile_or_exit(grammar, options_of(**given), command="compile", output_format=shown)
    path = output or grammar.with_suffix(".tcca")
    data = compiled.artifact or b""
    try:
        write_atomically(path, data)
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror or error}") from None
    # The pipeline has certified these bytes: they are not checked a second time to be described.
    artifact = load(data, verify=False)
    fields = describe(artifact)
    if as_json:
        screen.print_json("compile", fields)
        return
    fields.pop("plans_by_depth", None)
    screen.good(f"compiled {grammar} to {path} ({time.perf_counter() - started:.2f} s)")
    print_description(artifact, fields)
