"""``tcc enumerate``: the plans, one a line, in call order."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import click

from tcc import screen
from tcc.exits import DECLINED
from tcc.opening import artifact_argument, json_option, open_artifact
from tcc_runtime.plans import enumerate_plans

_DEFAULT = 1000


@click.command("enumerate")
@artifact_argument
@click.option(
    "--limit",
    type=click.IntRange(0),
    help=f"at most that many plans (default {_DEFAULT})",
)
@json_option
@click.pass_context
def command(ctx: click.Context, artifact: Path, limit: int | None, as_json: bool) -> None:
    """List the plans of ARTIFACT (or of a grammar) in call order.

    Without --limit a list that was cut at the default ends with exit code 2.
    """
    opened = open_artifact(artifact, command="enumerate")
    wanted = _DEFAULT if limit is None else limit
    found = islice(enumerate_plans(opened), wanted)
    total = opened.plans(opened.root)
    if as_json:
        plans = [list(plan) for plan in found]
        fields = {"plans": plans, "total": screen.decimal(total), "complete": total <= wanted}
        screen.print_json("enumerate", fields)
    else:
        for plan in found:
            click.echo(" ".join(plan) or "()")
    if limit is None and total > wanted:
        click.echo(f"the first {wanted} of {screen.big(total)} plans; see --limit", err=True)
        ctx.exit(DECLINED)
