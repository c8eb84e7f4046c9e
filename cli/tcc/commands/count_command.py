"""``tcc count``: how many plans there are."""

from __future__ import annotations

from pathlib import Path

import click

from tcc import screen
from tcc.describe import bounds_plans
from tcc.opening import artifact_argument, json_option, open_artifact
from tcc_runtime.artifact.plans import plans_by_depth


@click.command("count")
@artifact_argument
@click.option("--by-depth", is_flag=True, help="by their number of calls")
@json_option
def command(artifact: Path, by_depth: bool, as_json: bool) -> None:
    """Count the plans of ARTIFACT (or of a grammar): exactly, or at most so many."""
    opened = open_artifact(artifact, command="count")
    plans = screen.decimal(opened.plans(opened.root))
    depths = [screen.decimal(n) for n in plans_by_depth(opened)] if by_depth else None
    if as_json:
        fields = {"plans": plans, "counts": opened.manifest.counts}
        screen.print_json(
            "count", fields if depths is None else {**fields, "plans_by_depth": depths}
        )
        return
    least = "at most " if bounds_plans(opened) else ""
    for calls, count in enumerate(depths or []):
        click.echo(f"{calls}\t{least}{count}")
    if depths is None:
        click.echo(f"{least}{plans}")
