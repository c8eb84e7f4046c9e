"""``tcc test``: do the examples and the expectations of grammars hold?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tcc import screen
from tcc.compilation import only_guards
from tcc.configured import config_of, config_options, fill
from tcc.exits import CLEAN, DECLINED, FINDINGS
from tcc.findings import FORMATS, print_diagnostics
from tcc.findings import as_json as as_object
from tcc.given import GivenPath, compile_given
from tcc.opening import json_option, options_of
from tcc.options import compile_options
from tcc.watching import See, require_watchable, watch, watch_option

if TYPE_CHECKING:
    from tcc_compiler.options import Options


@click.command("test")
@click.argument("grammars", nargs=-1, required=True, type=GivenPath(path_type=Path))
@config_options
@compile_options
@click.option("--output-format", type=click.Choice(FORMATS), default="text", show_default=True)
@watch_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    grammars: tuple[Path, ...],
    output_format: str,
    watching: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Check the accept, reject and expect lines of GRAMMARS; exit 1 when one does not hold.

    - is a grammar on standard input. With --watch they are checked again whenever one, or a file
    that it uses, has changed; the exit code is that of the last time.
    """
    shown = "json" if as_json and output_format == "text" else output_format

    def options(path: Path) -> Options:
        mine = dict(given)
        fill(mine, config_of(mine, path, output_format=shown).compile)
        return options_of(mine)

    def work(see: See) -> int:
        return _test(grammars, options, None if as_json else output_format, see)

    if not watching:
        ctx.exit(work(lambda compiled: None))
    require_watchable(grammars, "json" if as_json else output_format)
    ctx.exit(watch(grammars, work))


def _test(
    grammars: Sequence[Path],
    options: Callable[[Path], Options],
    output_format: str | None,
    see: See,
) -> int:
    """Compile each and tell; of the format None is the one JSON document of the command."""
    results, worst = [], CLEAN
    for path in grammars:
        compiled = compile_given(path, options(path))
        see(compiled)
        if compiled.unmet:
            from tcc.reasons import with_reasons

            compiled = replace(compiled, diagnostics=with_reasons(compiled))
        failed = compiled.artifact is None
        guarded = only_guards(compiled.diagnostics)
        worst = max(worst, (DECLINED if guarded else FINDINGS) if failed else CLEAN)
        checked = {"examples": compiled.examples, "expectations": compiled.expectations}
        found = [as_object(d) for d in compiled.diagnostics]
        results.append(
            {"grammar": str(path), "passed": not failed, **checked, "diagnostics": found}
        )
        if output_format is None:
            continue
        if compiled.diagnostics:
            print_diagnostics("test", compiled.diagnostics, compiled.sources, output_format)
        if not failed and output_format == "text":
            hold = f"{compiled.examples} examples and {compiled.expectations} expectations hold"
            screen.good(f"{path}: {hold}")
    if output_format is None:
        screen.print_json("test", {"passed": worst == CLEAN, "grammars": results})
    return worst
