"""``tcc test``: checks the examples and the expectations of grammars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tcc import opening, options, screen
from tcc.files import compile_given
from tcc.findings import ReportedFinding, as_object, of_diagnostics, print_diagnostics, print_found
from tcc.library import only_guards
from tcc.screen import CLEAN, DECLINED, FINDINGS

if TYPE_CHECKING:
    from tcc.outputs.grammars import GrammarTestJson
    from tcc_compiler.language.source import Source
    from tcc_compiler.options import Options
    from tcc_compiler.pipeline import Compiled


@click.command("test")
@click.argument("grammars", nargs=-1, required=True, type=options.GivenPath(path_type=Path))
@options.config_options
@options.compile_options
@options.format_option
@opening.watch_option
@options.json_option
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
    """Check the accept, reject and expect lines of GRAMMARS (- is standard input).

    Exit code 1: one of them does not hold. --watch checks them again whenever a grammar, or a file
    that it uses, changes; the exit code is that of the last check.
    """
    shown = options.chosen(output_format, as_json)

    def options_for(path: Path) -> Options:
        mine = dict(given)
        options.fill(mine, opening.config_of(mine, path, output_format=shown).compile)
        return opening.options_of(mine)

    def work(see: opening.See) -> int:
        return _test(grammars, options_for, shown, see)

    if not watching:
        ctx.exit(work(lambda compiled: None))
    opening.require_watchable(grammars, shown)
    ctx.exit(opening.watch(grammars, work))


def _test(
    grammars: Sequence[Path], options_for: Callable[[Path], Options], shown: str, see: opening.See
) -> int:
    """Compile each grammar and report; in every format except text one report at the end."""
    results: list[GrammarTestJson] = []
    found: list[ReportedFinding] = []
    sources: dict[str, Source] = {}
    worst = CLEAN
    for path in grammars:
        compiled = compile_given(path, options_for(path))
        see(compiled)
        if compiled.unmet:
            from tcc.library.plan_questions import with_reasons

            compiled = replace(compiled, diagnostics=with_reasons(compiled))
        worst = max(worst, _exit(compiled))
        if shown == "json":
            results.append(_tested(path, compiled))
        if compiled.diagnostics:
            found += of_diagnostics(compiled.diagnostics)
            sources |= compiled.sources
        if shown == "text":
            _say(path, compiled)
    if shown == "json":
        from tcc.outputs.grammars import TestOutput

        every = [as_object(one) for one in found]
        output = TestOutput(passed=worst == CLEAN, grammars=results, diagnostics=every)
        screen.print_output(output)
    elif shown != "text":
        print_found(found, shown, sources)
    return worst


def _exit(compiled: Compiled) -> int:
    if compiled.artifact is not None:
        return CLEAN
    return DECLINED if only_guards(compiled.diagnostics) else FINDINGS


def _say(path: Path, compiled: Compiled) -> None:
    print_diagnostics("test", compiled.diagnostics, compiled.sources, "text")
    if compiled.artifact is not None:
        screen.good(f"{path}: {_verdict(compiled)}")


def _verdict(compiled: Compiled) -> str:
    """How many examples and expectations hold, and how many of them are not decided."""
    whole = zip((compiled.examples, compiled.expectations), compiled.undecided, strict=True)
    examples, expectations = (every - undecided for every, undecided in whole)
    text = f"{_counted(examples, 'example')} and {_counted(expectations, 'expectation')} hold"
    undecided = sum(compiled.undecided)
    verb = "is" if undecided == 1 else "are"
    return f"{text}; {undecided} {verb} not decided" if undecided else text


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _tested(path: Path, compiled: Compiled) -> GrammarTestJson:
    from tcc.outputs.grammars import GrammarTestJson

    return GrammarTestJson(
        grammar=str(path),
        passed=compiled.artifact is not None,
        examples=compiled.examples,
        expectations=compiled.expectations,
        undecided=sum(compiled.undecided),
        diagnostics=[as_object(one) for one in of_diagnostics(compiled.diagnostics)],
    )
