"""``tcc experiments``: measures the paper's tables and figures on this machine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tcc import screen
from tcc.options import json_option
from tcc.screen import CLEAN, FINDINGS

if TYPE_CHECKING:
    from tcc_experiments.model import Experiment
    from tcc_experiments.results import Differing

OnPart = Callable[[str, int, int], None]


@click.command("experiments")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--quick", is_flag=True, help="use small sizes; about a minute in all")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("tcc-experiments"),
    show_default=True,
    help="folder for csv/, figures/ and RESULTS.md",
)
@click.option(
    "--processes",
    type=click.IntRange(1, 64),
    default=2,
    show_default=True,
    help="number of processes",
)
@click.option(
    "--no-figures", is_flag=True, help="write tables and RESULTS.md only; matplotlib is not needed"
)
@click.option("--latex", is_flag=True, help="write each table to latex/, too, as a LaTeX table")
@click.option(
    "--ledgers",
    type=click.Path(file_okay=False, path_type=Path),
    help="folder for the validated ledger of every run and its artifact; runs all parts again",
)
@click.option(
    "--draw",
    is_flag=True,
    help="draw new noisy categories for the pipeline, instead of those on record",
)
@click.option(
    "--against",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="compare the tables with those in this folder; exit code 1 if any differs",
)
@click.option("--list", "lists", is_flag=True, help="list the experiments, and run none")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    names: tuple[str, ...],
    quick: bool,
    out: Path,
    processes: int,
    no_figures: bool,
    latex: bool,
    ledgers: Path | None,
    draw: bool,
    against: Path | None,
    lists: bool,
    as_json: bool,
) -> None:
    """Measure the experiments NAME..., or all of them.

    NAME is an experiment, or the paper's label of a table, figure or theorem, such as
    fig:baselinesA. Finished parts are kept in OUT/.parts and not run again, so an interrupted
    command resumes.
    """
    from tcc_experiments.figures import MissingMatplotlib, pyplot
    from tcc_experiments.model import Size
    from tcc_experiments.pipeline.errors import MissingPackage, require_extra
    from tcc_experiments.pipeline.experiment import drawing
    from tcc_experiments.results import RESULTS, differing, publish
    from tcc_experiments.runner import EXPERIMENTS, Store, run

    known = [word for e in EXPERIMENTS.values() for word in (e.name, *e.paper)]
    unknown = [name for name in names if name not in known and name != "all"]
    if unknown:
        listed = ", ".join([*EXPERIMENTS, "all", *(word for word in known if ":" in word)])
        raise click.BadParameter(f"there is no experiment {unknown[0]!r}; there are: {listed}")
    every = not names or "all" in names
    wanted = [e for e in EXPERIMENTS.values() if every or {e.name, *e.paper} & set(names)]
    if lists:
        print_list(wanted, as_json)
        return
    if draw:
        wanted = [drawing() if e.name == "pipeline" else e for e in wanted]
    try:
        if not no_figures:
            pyplot()
    except MissingMatplotlib as missing:
        raise click.UsageError(f"{missing}; or give --no-figures") from None
    try:
        if any(experiment.name == "pipeline" for experiment in wanted):
            require_extra()
    except MissingPackage as missing:
        raise click.UsageError(f"{missing}; or name the experiments without it") from None
    size = Size.QUICK if quick else Size.FULL
    concluded = {}
    with bars(quiet=as_json) as on_part:
        rows = run(wanted, size, Store(out / ".parts"), processes, on_part, ledgers)
    found_otherwise = []
    for experiment in wanted:
        conclusion = experiment.conclude(rows[experiment.name])
        if against is not None:  # before it is written: it may be the same folder
            found_otherwise += differing(against, conclusion)
        publish(out, experiment, conclusion, size, not no_figures, latex)
        concluded[experiment.name] = conclusion.findings
    if as_json:
        from tcc.outputs import optional
        from tcc.outputs.runs import DifferingCellJson, ExperimentsOutput, PaperClaimJson

        cells = [DifferingCellJson(**asdict(cell)) for cell in found_otherwise]
        output = ExperimentsOutput(
            size=size,
            findings={
                name: [
                    PaperClaimJson(
                        claim=f.claim, found=f.found, verdict=f.verdict, because=f.because
                    )
                    for f in findings
                ]
                for name, findings in concluded.items()
            },
            differing=optional(None if against is None else cells),
        )
        screen.print_output(output)
        ctx.exit(FINDINGS if found_otherwise else CLEAN)
    for name, findings in concluded.items():
        for finding in findings:
            screen.say(f"{name.ljust(14)}{str(finding.verdict).ljust(18)}{finding.claim}")
    screen.good(f"wrote {out / RESULTS}")
    if against is not None:
        print_differing(against, found_otherwise)
        ctx.exit(FINDINGS if found_otherwise else CLEAN)


def print_list(wanted: Sequence[Experiment], as_json: bool) -> None:
    """Print the experiments with the paper's labels; the JSON also has their durations."""
    if as_json:
        from tcc.outputs.runs import ExperimentJson, ExperimentListOutput, SecondsJson

        listed = [
            ExperimentJson(
                name=e.name,
                title=e.title,
                paper=list(e.paper),
                seconds=SecondsJson(**{str(size): taken for size, taken in e.seconds.items()}),
            )
            for e in wanted
        ]
        screen.print_output(ExperimentListOutput(experiments=listed))
        return
    for e in wanted:
        labels = ", ".join(e.paper) or "no label of the paper"
        screen.say(f"{e.name.ljust(14)}{e.title} ({labels})")


def print_differing(folder: Path, found: Sequence[Differing]) -> None:
    """Print each cell that differs from the published one, by table, row and column."""
    for cell in found:
        if not cell.column:
            whole = f"row {cell.row}" if cell.row else "the table"
            side = "not there" if cell.here else "not here"
            screen.bad(f"{cell.table}.csv: {whole} is {side}")
            continue
        place = f"{cell.table}.csv: row {cell.row}, " if cell.row else f"{cell.table}.csv: "
        screen.bad(
            f"{place}column {cell.column}: {cell.here or 'nothing'} here, "
            f"{cell.there or 'nothing'} there"
        )
    if not found:
        screen.good(f"the tables of {folder} are these, times left out")


@contextmanager
def bars(*, quiet: bool) -> Iterator[OnPart]:
    """Yield a callback that updates a bar for each experiment, or does nothing without a
    terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda name, done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        tasks = {}

        def on_part(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = progress.add_task(name, total=total)
            progress.update(tasks[name], completed=done)

        yield on_part
