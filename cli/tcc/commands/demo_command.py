"""``tcc demo``: runs the pipeline on real questions, and serves its tools."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from tcc import screen
from tcc.commands.experiments_command import bars
from tcc.options import input_option, json_option
from tcc.screen import CLEAN, FINDINGS

_SHOWN = (
    ("expansions_q", "exp/q"),
    ("expansions_q_+-", "+-"),
    ("wall_q_ms", "ms/q"),
    ("wall_q_ms_+-", "+-"),
    ("stop_slack", "slack"),
    ("replay", "replay"),
    ("sessions", "sessions"),
    ("kappa", "kappa"),
    ("calls", "calls/q"),
    ("accuracy", "right (95 %)"),
)


@click.group("demo")
def command() -> None:
    """Run the whole pipeline on real questions."""


@command.command("pipeline")
@click.option(
    "--questions",
    type=click.IntRange(1),
    help="number of questions, spread over all kinds; by default all seventy",
)
@click.option(
    "--mode",
    "slugs",
    multiple=True,
    metavar="MODE",
    help="mode of the search (docs/pipeline.md); repeatable; by default all modes",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("tcc-pipeline"),
    show_default=True,
    help="new or empty folder for the corpus, artifacts, ledgers, sessions and noisy categories",
)
@input_option(
    "--categories",
    "noisy categories of an earlier run (categories.json of its folder), instead of new ones",
)
@json_option
@click.pass_context
def pipeline(
    ctx: click.Context,
    /,
    questions: int | None,
    slugs: tuple[str, ...],
    out: Path,
    categories: Path | None,
    as_json: bool,
) -> None:
    """Answer numeric questions by a pipeline of tools, each call made through a gate.

    The tools retrieve texts, summarise and calculate. Every search and every session is recorded in
    OUT/ledgers and validated. For comparison the same tools run in LangGraph's own loop, scripted,
    without a plan. Exit code 1: a ledger is not VALID.
    """
    from tcc_experiments.pipeline.campaign import campaign, chosen, read_record
    from tcc_experiments.pipeline.comparison import by_mode
    from tcc_experiments.pipeline.errors import require_extra
    from tcc_experiments.pipeline.modes import MODES

    known = {mode.slug: mode for mode in MODES}
    unknown = [slug for slug in slugs if slug not in known]
    if unknown:
        said = f"there is no mode {unknown[0]!r}; there are: {', '.join(known)}"
        raise click.BadParameter(said, param_hint="--mode")
    modes = [mode for mode in MODES if not slugs or mode.slug in slugs]
    require_extra()
    noisy = None if categories is None else read_record(categories)
    _empty(out)
    with bars(quiet=as_json) as on_part:
        rows = campaign(
            out,
            chosen(questions),
            modes,
            noisy,
            lambda done, total: on_part("questions", done, total),
        )
    valid = all(row.get("replay", True) and row.get("session", True) for row in rows)
    if as_json:
        from tcc.outputs.runs import DemoOutput

        screen.print_output(DemoOutput(modes=by_mode(rows), queries=rows, valid=valid))
    else:
        _print(by_mode(rows), out)
    ctx.exit(CLEAN if valid else FINDINGS)


@command.command("desk")
@click.argument("corpus", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--digest", metavar="HEX", help="required digest of the corpus")
def desk(corpus: Path, digest: str | None) -> None:
    """Serve the pipeline's tools over CORPUS, as an MCP server over stdio.

    `tcc demo pipeline` writes the corpus: corpus.db in its output folder.
    """
    from tcc_experiments.pipeline.corpus import Corpus
    from tcc_experiments.pipeline.desk import serve

    serve(Corpus(corpus, digest))


def _empty(folder: Path) -> None:
    """Create a folder, and check that it is empty, so that no file is overwritten.

    Raises:
        click.BadParameter: the folder is not empty.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        said = f"{str(folder)!r} is not empty: name a new folder"
        raise click.BadParameter(said, param_hint="--out")


def _print(table: list[dict[str, Any]], out: Path) -> None:
    head = ["mode", *(label for _, label in _SHOWN)]
    lines = [head, *([str(row["mode"]), *_cells(row)] for row in table)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(head))]
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        screen.say("  ".join(cells).rstrip())
    screen.good(f"kept in {out}: corpus, artifacts, noisy categories, and every ledger")


def _cells(row: Mapping[str, Any]) -> list[str]:
    return ["" if row[name] is None else f"{row[name]}" for name, _ in _SHOWN]
