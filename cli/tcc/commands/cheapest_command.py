"""``tcc cheapest``: lists the plans of least cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tcc import screen
from tcc.library.plan_questions import cheapest, plan_json
from tcc.opening import open_bounded, options_of, refusing
from tcc.options import artifact_argument, compile_options, json_option


@click.command("cheapest")
@artifact_argument
@click.option(
    "-n", "count", type=click.IntRange(1), default=1, show_default=True, help="number of plans"
)
@compile_options
@json_option
def command(artifact: Path, count: int, as_json: bool, **given: Any) -> None:
    """List the N cheapest plans of ARTIFACT (or of a grammar), cheapest first.

    The cost of a plan is the sum of its calls' costs; a cost that is a range counts with its low
    end. Of plans of equal cost shorter ones come first, then those that come first in call order.
    """
    opened = open_bounded(artifact, command="cheapest", options=options_of(given))
    with refusing(artifact):
        found = cheapest(opened, count)
    if as_json:
        from tcc.outputs.questions import CheapestOutput

        screen.print_output(CheapestOutput(plans=[plan_json(plan) for plan in found]))
        return
    for plan in found:
        screen.say(plan.cost, " ".join(plan.calls) or "()")
