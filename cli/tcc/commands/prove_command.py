"""``tcc prove``: answers a question about every session that a gate allows."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import click

from tcc import screen
from tcc.library import CompileError
from tcc.library.proving import TIMEOUT, Proof, prove
from tcc.opening import open_artifact
from tcc.options import GIVEN, artifact_argument, finite, is_regular_file, json_option
from tcc.screen import BAD_USAGE, CLEAN, DECLINED, FINDINGS
from tcc_compiler.options import Options

_CODES = {
    "proved": CLEAN, "reachable": CLEAN, "refuted": FINDINGS, "unreachable": FINDINGS,
    "undecided": DECLINED,
}  # fmt: skip


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
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    callback=finite,
    default=TIMEOUT,
    show_default=True,
    help="limit in seconds",
)
@click.option(
    "-o",
    "--output",
    "proof",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="PROOF",
    help="write the proof, which `tcc check PROOF --artifact A` checks",
)
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
    timeout: float,
    proof: Path | None,
    as_json: bool,
) -> None:
    """Prove that every session that a gate allows satisfies STATEMENT.

    --reachable, --implies or --finishable asks another question instead. Exit code 0: proved, or
    reachable. 1: refuted, with a session that a gate has allowed, or unreachable. 2: undecided.
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
    try:
        with screen.prove_line(quiet=as_json) as progress:
            found = prove(
                opened, statement, reachable=reachable, implies=implied, finishable=finishable,
                timeout=timeout, progress=progress,
            )  # fmt: skip
    except CompileError as error:
        refuse_question(ctx, error, statement or reachable or "")
    except ValueError as error:
        raise click.UsageError(str(error), ctx) from None
    if proof is not None and found.proof is not None:
        from tcc_runtime.ledger.outputs import write_whole

        write_whole(proof, found.proof)
    if as_json:
        _print_json(found)
    else:
        _say(found, proof)
    ctx.exit(_CODES[found.verdict])


def refuse_question(ctx: click.Context, error: CompileError, text: str) -> NoReturn:
    """Print the mistakes in a question, and end the command with exit code 2."""
    screen.say(f"the question has mistakes: {text}", err=True)
    for one in error.diagnostics:
        screen.say(f"{one.code}: {one.message}", err=True)
        if one.hint:
            screen.say(f"  help: {one.hint}", err=True)
    ctx.exit(BAD_USAGE)


def _say(found: Proof, proof: Path | None) -> None:
    line = f"{found.verdict}: {found.text or found.kind}"
    if found.verdict in ("proved", "reachable"):
        screen.good(line)
    elif found.verdict == "undecided":
        screen.doubtful(line)
    else:
        screen.bad(line)
    if found.missing:
        screen.say(f"  {found.missing}")
    for text in found.used:
        screen.say(f"  by  {text}")
    if found.session is not None:
        from tcc.outputs import json_line

        document = {"given": found.given, "calls": list(found.session)}
        screen.say("  a session, as `tcc replay` reads it:")
        screen.say(json_line(document).decode())
    if proof is not None:
        screen.say(f"  proof written to {proof}" if found.proof else "  no proof was written")


def _print_json(found: Proof) -> None:
    from tcc.outputs import optional
    from tcc.outputs.questions import ProveOutput, QuestionJson, SessionCallJson

    screen.print_output(
        ProveOutput(
            question=QuestionJson(kind=found.kind, text=optional(found.text)),
            verdict=found.verdict,
            session=optional(
                None
                if found.session is None
                else [SessionCallJson(**call) for call in found.session]
            ),
            given=optional(None if found.given is None else dict(found.given)),
            used=list(found.used),
            rounds=found.rounds,
            states=found.states,
            seconds=round(found.seconds, 3),
            missing=optional(found.missing or None),
        )
    )
