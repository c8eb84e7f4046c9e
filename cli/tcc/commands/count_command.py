"""``tcc count``: counts plans."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tcc import screen
from tcc.describe import bounds_plans
from tcc.opening import open_bounded, options_of
from tcc.options import artifact_argument, compile_options, json_option
from tcc_certs.policy.listing import relaxed_texts
from tcc_runtime.artifact.plans import plans_by_depth


@click.command("count")
@artifact_argument
@click.option("--by-depth", is_flag=True, help="count the plans of each number of calls")
@compile_options
@json_option
def command(artifact: Path, by_depth: bool, as_json: bool, **given: Any) -> None:
    """Count the plans of ARTIFACT (or of a grammar).

    The number is exact, or an upper bound ("at most") for an artifact whose counts are bounds.
    """
    opened = open_bounded(artifact, command="count", options=options_of(given))
    plans = screen.decimal(opened.plans(opened.root))
    depths = [screen.decimal(n) for n in plans_by_depth(opened)] if by_depth else None
    if as_json:
        from tcc.outputs import optional
        from tcc.outputs.grammars import CountOutput

        output = CountOutput(
            plans=plans,
            counts=opened.manifest.counts,
            left_to_run=list(relaxed_texts(opened.core, opened.manifest.relaxed)),
            plans_by_depth=optional(depths),
        )
        screen.print_output(output)
        return
    least = "at most " if bounds_plans(opened) else ""
    for calls, count in enumerate(depths or []):
        screen.say(str(calls), f"{least}{count}")
    if depths is None:
        screen.say(f"{least}{plans}")
