"""``tcc compile``: compiles a grammar or a graph to a certified artifact."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tcc import opening, options, screen
from tcc.describe import describe, listed_of, print_description
from tcc.files import STDIN, compile_given, same_file
from tcc.main import load_module as load_module, without_threads
from tcc.screen import CLEAN, compile_line
from tcc_compiler.frozen import frozen
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.ledger.outputs import write_whole

if TYPE_CHECKING:
    from tcc_compiler.options import Options
    from tcc_compiler.pipeline import Compiled


_LARGE = 16 << 20  # bytes; a larger artifact gets a hint


@click.command("compile")
@click.argument("grammar", type=options.GivenPath(dir_okay=False, path_type=Path))
@click.option(
    "-o",
    "--output",
    type=options.OUTPUT,
    help="file of the artifact; by default beside the grammar",
)
@options.config_options
@options.compile_options
@options.format_option
@opening.watch_option
@options.json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    grammar: Path,
    output: Path | None,
    output_format: str,
    watching: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Compile GRAMMAR (.tcg, .graphml or node-link .json) to a certified artifact.

    Without -o the artifact is written beside the grammar, with the suffix .tcca. If GRAMMAR is -,
    the grammar is read from standard input, and -o is required. --watch compiles again whenever the
    grammar, or a file that it uses, changes; the exit code is that of the last compilation.
    """
    if grammar is STDIN and output is None:
        raise click.UsageError("a grammar on standard input has no name: say where to, by -o")
    shown = options.chosen(output_format, as_json)
    with without_threads():
        load_module("tcc_compiler.pipeline")
        load_module("tcc_runtime.fastcheck.kernel")
    config = opening.config_of(given, grammar, output_format=shown)
    options.fill(given, config.compile)
    job = _Job(
        grammar=grammar,
        output=output or grammar.with_suffix(".tcca"),
        options=opening.options_of(given),
        shown=shown,
        config=config.path,
    )
    if not watching:
        ctx.exit(job.run(lambda compiled: None))
    opening.require_watchable([grammar], job.shown)
    ctx.exit(opening.watch([grammar], job.run))


@frozen
class _Job:
    """One compilation: its input, its output and its options.

    Attributes:
        shown: the format of the diagnostics.
        config: the configuration file that set defaults of options, or None.
    """

    grammar: Path
    output: Path
    options: Options
    shown: str
    config: Path | None

    def run(self, see: opening.See) -> int:
        """Compile, write and report; end the command if there is no artifact."""
        started = time.perf_counter()
        with compile_line(quiet=self.shown != "text") as progress:
            compiled = compile_given(self.grammar, replace(self.options, progress=progress))
        see(compiled)
        opening.show_or_exit(
            compiled,
            command="compile",
            output_format=self.shown,
            keep_warnings=self.shown != "text",
        )
        self._write(compiled)
        took = time.perf_counter() - started
        said = f"compiled {self.grammar} to {self.output} ({took:.2f} s)"
        # The pipeline has certified these bytes, so they are loaded without another check.
        artifact = load(compiled.artifact or b"", verify=False)
        artifact.kept["written"] = compiled
        if self.shown in ("sarif", "github"):
            from tcc.findings import print_diagnostics

            listed = {str(self.grammar): listed_of(artifact)}
            print_diagnostics("compile", compiled.diagnostics, compiled.sources, self.shown, listed)
            screen.say(said, err=True)
            return CLEAN
        fields = describe(artifact)
        if self.shown == "json":
            from tcc.outputs import optional
            from tcc.outputs.grammars import CompileOutput

            told = None
            if compiled.diagnostics:
                from tcc.findings import as_json

                told = [as_json(said) for said in compiled.diagnostics]
            output = CompileOutput(
                **fields,
                config=optional(None if self.config is None else str(self.config)),
                diagnostics=optional(told),
            )
            screen.print_output(output)
            return CLEAN
        fields.pop("plans_by_depth", None)
        screen.good(said)
        print_description(artifact, fields)
        self._hint(artifact, len(compiled.artifact or b""))
        return CLEAN

    def _hint(self, artifact: Artifact, size: int) -> None:
        """Suggest `--for gate` for a large file in which no call has a cost to search by."""
        searched = any(artifact.cost_low) or any(artifact.cost_high)
        if size > _LARGE and self.options.purpose != "gate" and not searched:
            message = f"hint: {size >> 20} MiB, mostly counts that a run reads and a gate does not"
            screen.say(f"{message}; no call has a cost: --for gate leaves them out", err=True)

    def _write(self, compiled: Compiled) -> None:
        sources = compiled.sources.values()
        inputs = [source.path for source in sources if source.path is not None]
        if same_file(self.output, [self.grammar, *inputs]):
            raise click.BadParameter(f"{str(self.output)!r} is what is compiled", param_hint="-o")
        with opening.writing(self.output):
            write_whole(self.output, compiled.artifact or b"")
