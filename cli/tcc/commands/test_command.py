"""``tcc test``: do the examples and the expectations of grammars hold?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tcc import screen
from tcc.compilation import only_guards
from tcc.configured import config_of, config_options, fill
from tcc.exits import CLEAN, DECLINED, FINDINGS
from tcc.findings import FORMATS, print_diagnostics
from tcc.findings import as_json as as_object
from tcc.opening import json_option, options_of
from tcc.options import compile_options


@click.command("test")
@click.argument("grammars", nargs=-1, required=True, type=click.Path(path_type=Path))
@config_options
@compile_options
@click.option("--output-format", type=click.Choice(FORMATS), default="text", show_default=True)
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    grammars: tuple[Path, ...],
    output_format: str,
    as_json: bool,
    **given: Any,
) -> None:
    """Check the accept, reject and expect lines of GRAMMARS; exit 1 when one does not hold."""
    from tcc_compiler.pipeline import compile_file

    shown = "json" if as_json and output_format == "text" else output_format
    results, worst = [], CLEAN
    for path in grammars:
        mine = dict(given)
        fill(mine, config_of(mine, path, output_format=shown).compile)
        compiled = compile_file(path, options_of(mine))
        failed = compiled.artifact is None
        guarded = only_guards(compiled.diagnostics)
        worst = max(worst, (DECLINED if guarded else FINDINGS) if failed else CLEAN)
        checked = {"examples": compiled.examples, "expectations": compiled.expectations}
        found = [as_object(d) for d in compiled.diagnostics]
        results.append(
            {"grammar": str(path), "passed": not failed, **checked, "diagnostics": found}
        )
        if as_json:
            continue
        if compiled.diagnostics:
            print_diagnostics("test", compiled.diagnostics, compiled.sources, output_format)
        if not failed and output_format == "text":
            hold = f"{compiled.examples} examples and {compiled.expectations} expectations hold"
            screen.good(f"{path}: {hold}")
    if as_json:
        screen.print_json("test", {"passed": worst == CLEAN, "grammars": results})
    ctx.exit(worst)
