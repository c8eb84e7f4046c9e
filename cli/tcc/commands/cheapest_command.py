"""``tcc cheapest``: the plans of least cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tcc import screen
from tcc.opening import artifact_argument, json_option, open_artifact, options_of, refuse
from tcc.options import compile_options
from tcc.picking import cheapest, plan_fields
from tcc_certs.errors import Rejected


@click.command("cheapest")
@artifact_argument
@click.option(
    "-n", "count", type=click.IntRange(1), default=1, show_default=True, help="that many plans"
)
@compile_options
@json_option
def command(artifact: Path, count: int, as_json: bool, **given: Any) -> None:
    """List the plans of ARTIFACT (or of a grammar) that cost least, cheapest first.

    Costs are sums of the low ends; plans of one cost come in call order. Where there are fewer
    plans than that, all of them.
    """
    opened = open_artifact(artifact, command="cheapest", options=options_of(given))
    try:
        found = cheapest(opened, count)
    except Rejected as refusal:
        refuse(artifact, refusal)
    if as_json:
        screen.print_json("cheapest", {"plans": [plan_fields(plan) for plan in found]})
        return
    for plan in found:
        screen.say(plan.cost, " ".join(plan.calls) or "()")
