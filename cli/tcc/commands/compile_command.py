"""``tcc compile``: a grammar, or a graph, to a certified artifact."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tcc import screen
from tcc.describe import describe, print_description
from tcc.files import same_file
from tcc.findings import as_json as as_object
from tcc.findings import chosen, format_option, print_diagnostics
from tcc.opening import json_option, options_of, show_or_exit
from tcc.options import compile_options
from tcc.progress import compile_line
from tcc_runtime.artifact.load import load
from tcc_runtime.ledger.outputs import write_whole

if TYPE_CHECKING:
    from tcc_compiler.pipeline import Compiled


@click.command("compile")
@click.argument("grammar", type=click.Path(dir_okay=False, path_type=Path))
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path))
@compile_options
@format_option
@json_option
def command(
    grammar: Path, output: Path | None, output_format: str, as_json: bool, **given: Any
) -> None:
    """Compile GRAMMAR (.tcg, .graphml or node-link .json) to a certified artifact.

    Without -o the artifact is written beside the grammar, with the ending .tcca.
    """
    from tcc_compiler.pipeline import compile_file

    started = time.perf_counter()
    shown = chosen(output_format, as_json)
    options = options_of(given)
    with compile_line(quiet=shown != "text") as progress:
        compiled = compile_file(grammar, replace(options, progress=progress))
    show_or_exit(compiled, command="compile", output_format=shown, keep_warnings=shown != "text")
    path = output or grammar.with_suffix(".tcca")
    data = compiled.artifact or b""
    _write(path, data, grammar, compiled)
    took = f"compiled {grammar} to {path} ({time.perf_counter() - started:.2f} s)"
    if shown in ("sarif", "github"):
        print_diagnostics("compile", compiled.diagnostics, compiled.sources, shown)
        screen.say(took, err=True)
        return
    # The pipeline has certified these bytes: they are not checked a second time to be described.
    artifact = load(data, verify=False)
    fields = describe(artifact)
    if shown == "json":
        warnings = [as_object(diagnostic) for diagnostic in compiled.diagnostics]
        screen.print_json("compile", fields | ({"diagnostics": warnings} if warnings else {}))
        return
    fields.pop("plans_by_depth", None)
    screen.good(took)
    print_description(artifact, fields)


def _write(path: Path, data: bytes, grammar: Path, compiled: Compiled) -> None:
    inputs = [source.path for source in compiled.sources.values() if source.path is not None]
    if same_file(path, [grammar, *inputs]):
        raise click.BadParameter(f"{str(path)!r} is what is compiled", param_hint="-o")
    try:
        write_whole(path, data)
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror or error}") from None
