"""``tcc enumerate``: lists plans in call order, one per line."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import click

from tcc import screen
from tcc.describe import bounds_plans
from tcc.opening import open_bounded, options_of
from tcc.options import artifact_argument, compile_options, json_option
from tcc.screen import DECLINED
from tcc_certs.policy.listing import relaxed_texts
from tcc_runtime.artifact.plans import enumerate_plans

_DEFAULT = 1000


@click.command("enumerate")
@artifact_argument
@click.option(
    "--limit",
    type=click.IntRange(1),
    help=f"list at most this many plans (default {_DEFAULT})",
)
@compile_options
@json_option
@click.pass_context
def command(
    ctx: click.Context, /, artifact: Path, limit: int | None, as_json: bool, **given: Any
) -> None:
    """List the plans of ARTIFACT (or of a grammar) in call order, each once.

    Only plans of the grammar are listed, whichever statements the artifact leaves to a run.

    Without --limit, exit code 2 says that the list was cut at the default.
    """
    opened = open_bounded(artifact, command="enumerate", options=options_of(given))
    wanted = _DEFAULT if limit is None else limit
    found = enumerate_plans(opened)
    first = islice(found, wanted)
    total = opened.plans(opened.root)
    bound = bounds_plans(opened)
    if as_json:
        plans = [list(plan) for plan in first]
    else:
        for plan in first:
            screen.say(" ".join(plan) or "()")
    # An upper bound does not show whether more plans exist, so one more plan is looked up.
    more = total > wanted and (not bound or next(found, None) is not None)
    if as_json:
        from tcc.outputs.grammars import EnumerateOutput

        output = EnumerateOutput(
            plans=plans,
            counts=opened.manifest.counts,
            total=screen.decimal(total),
            left_to_run=list(relaxed_texts(opened.core, opened.manifest.relaxed)),
            complete=not more,
        )
        screen.print_output(output)
    if limit is None and more:
        most = f"{'at most ' if bound else ''}{screen.big(total)}"
        screen.say(f"the first {wanted} of {most} plans; see --limit", err=True)
        ctx.exit(DECLINED)
