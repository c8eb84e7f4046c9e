"""``tcc prove``: answers a question about every session that a gate allows."""

from __future__ import annotations

from pathlib import Path

import click

from tcc import screen
from tcc.library.proving import Proof, prove
from tcc.opening import open_artifact
from tcc.options import GIVEN, artifact_argument, is_regular_file, json_option
from tcc.screen import DECLINED
from tcc_compiler.options import Options


@click.command("prove")
@artifact_argument
@click.argument("statement", required=False)
@click.option("--reachable", metavar="CALLS", help="ask whether a session can have such a call")
@click.option(
    "--implies",
    "other",
    metavar="OTHER",
    type=GIVEN,
    callback=is_regular_file,
    help="ask whether OTHER allows every session",
)
@click.option("--finishable", is_flag=True, help="ask whether every session can be finished")
@click.option("--timeout", type=click.FloatRange(0, min_open=True), help="limit in seconds")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    artifact: Path,
    statement: str | None,
    reachable: str | None,
    other: Path | None,
    finishable: bool,
    timeout: float | None,
    as_json: bool,
) -> None:
    """Prove that every session that a gate allows satisfies STATEMENT.

    --reachable, --implies or --finishable asks another question instead. Exit code 2: undecided.
    This release has no engine for such questions, so every question is undecided (TCC491).
    """
    asked = [statement is not None, reachable is not None, other is not None, finishable]
    if sum(asked) != 1:
        raise click.UsageError(
            "ask one question: STATEMENT, --reachable, --implies or --finishable", ctx
        )
    options = Options(timeout=timeout)
    bounds = ("timeout",)
    opened = open_artifact(artifact, command="prove", options=options, beside=other, bounds=bounds)
    implied = None
    if other is not None:
        implied = open_artifact(
            other, command="prove", options=options, beside=artifact, bounds=bounds
        )
    found = prove(opened, statement, reachable=reachable, implies=implied, finishable=finishable)
    if as_json:
        _print_json(found)
    else:
        screen.bad(f"{found.verdict}: {found.text or found.kind}")
        screen.say(f"  {found.missing}")
    ctx.exit(DECLINED)


def _print_json(found: Proof) -> None:
    from tcc.outputs import optional
    from tcc.outputs.questions import ProveOutput, QuestionJson

    screen.print_output(
        ProveOutput(
            question=QuestionJson(kind=found.kind, text=optional(found.text)),
            verdict=found.verdict,
            missing=found.missing,
        )
    )
