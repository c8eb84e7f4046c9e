"""``tcc experiments``: the paper's tables and figures, measured on this machine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from tcc import screen
from tcc.opening import json_option

OnPart = Callable[[str, int, int], None]


@click.command("experiments")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--quick", is_flag=True, help="small sizes, about a minute in all")
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
    help="that measure at the same time",
)
@click.option("--no-figures", is_flag=True, help="tables and RESULTS.md alone; needs no matplotlib")
@click.option(
    "--ledgers",
    type=click.Path(file_okay=False, path_type=Path),
    help="keep the ledger of every run there, validated, beside its artifact; runs all parts again",
)
@click.option("--list", "lists", is_flag=True, help="name the experiments, and run none")
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
    ledgers: Path | None,
    lists: bool,
    as_json: bool,
) -> None:
    """Measure the experiments NAME..., or all of them.

    What is finished is kept in OUT/.parts and not run again; a run that was cut off goes on.
    """
    from tcc_experiments.catalogue import EXPERIMENTS
    from tcc_experiments.figures import MissingExtra, pyplot
    from tcc_experiments.model import Size
    from tcc_experiments.pipeline.errors import MissingExtra as MissingPipeline
    from tcc_experiments.pipeline.errors import require_extra
    from tcc_experiments.results import RESULTS, publish
    from tcc_experiments.runner import Store, run

    unknown = [name for name in names if name not in EXPERIMENTS and name != "all"]
    if unknown:
        known = ", ".join(EXPERIMENTS)
        raise click.BadParameter(f"there is no experiment {unknown[0]!r}; there are: {known}, all")
    every = not names or "all" in names
    wanted = [e for name, e in EXPERIMENTS.items() if every or name in names]
    if lists and as_json:
        named = [{"name": e.name, "title": e.title} for e in wanted]
        screen.print_json("experiments", {"experiments": named})
        return
    if lists:
        for experiment in wanted:
            screen.say(f"{experiment.name.ljust(14)}{experiment.title}")
        return
    try:
        if not no_figures:
            pyplot()
    except MissingExtra as missing:
        raise click.UsageError(f"{missing}; or give --no-figures") from None
    try:
        if any(experiment.name == "pipeline" for experiment in wanted):
            require_extra()
    except MissingPipeline as missing:
        raise click.UsageError(f"{missing}; or name the experiments without it") from None
    size = Size.QUICK if quick else Size.FULL
    concluded = {}
    with bars(quiet=as_json) as on_part:
        rows = run(wanted, size, Store(out / ".parts"), processes, on_part, ledgers)
    for experiment in wanted:
        conclusion = experiment.conclude(rows[experiment.name])
        publish(out, experiment, conclusion, size, not no_figures)
        concluded[experiment.name] = conclusion.findings
    if as_json:
        found = {
            name: [
                {
                    "claim": f.claim,
                    "found": f.found,
                    "verdict": str(f.verdict),
                    "because": f.because,
                }
                for f in findings
            ]
            for name, findings in concluded.items()
        }
        screen.print_json("experiments", {"size": str(size), "findings": found})
        return
    for name, findings in concluded.items():
        for finding in findings:
            screen.say(f"{name.ljust(14)}{str(finding.verdict).ljust(18)}{finding.claim}")
    screen.good(f"wrote {out / RESULTS}")


@contextmanager
def bars(*, quiet: bool) -> Iterator[OnPart]:
    """A callback that keeps a bar for each experiment; one that does nothing without a terminal."""
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
