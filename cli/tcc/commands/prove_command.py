"""``tcc prove``: decides whether every session that a gate lets through meets a statement."""

from __future__ import annotations

import time
from pathlib import Path

import click

from tcc import screen
from tcc.library import CompileError
from tcc.library.proving import Proof, prove, prove_output, session_lines
from tcc.opening import OutOfTime, at_most, open_artifact
from tcc.options import GIVEN, artifact_argument, is_regular_file, json_option
from tcc.screen import CLEAN, DECLINED, FINDINGS
from tcc_compiler.options import Options
from tcc_runtime.errors import OutputRefused
from tcc_runtime.exact.atoms import OpenQuestion
from tcc_runtime.exact.search import MAX_STATES
from tcc_runtime.ledger.outputs import write_whole

_EXITS = {"proved": CLEAN, "refuted": FINDINGS, "undecided": DECLINED}
_ENDS = {
    "call": "the last call shows it",
    "finish": "and then it may finish",
    "stuck": "and no way on leads to an end",
}


@click.command("prove")
@artifact_argument
@click.argument("statement", required=False)
@click.option("--reachable", metavar="PATTERN", help="ask whether a session can end in such a call")
@click.option(
    "--implies",
    "other",
    metavar="OTHER",
    type=GIVEN,
    callback=is_regular_file,
    help="ask whether OTHER lets every session through",
)
@click.option("--finishable", is_flag=True, help="ask whether every session can be finished")
@click.option(
    "--max-states",
    type=click.IntRange(1),
    default=MAX_STATES,
    show_default=True,
    help="limit on the states that are searched (P503)",
)
@click.option("--timeout", type=click.FloatRange(0, min_open=True), help="limit in seconds (P507)")
@click.option(
    "-o",
    "--output",
    "proof",
    metavar="PROOF",
    type=click.Path(path_type=Path, dir_okay=False),
    help="write the proof; `tcc check PROOF --artifact ARTIFACT` checks it",
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
    max_states: int,
    timeout: float | None,
    proof: Path | None,
    as_json: bool,
) -> None:
    """Prove that every session that a gate lets through meets STATEMENT.

    STATEMENT is any statement of the language about the tools of ARTIFACT (or of a grammar), or
    `never A`, or `never A after B same p`. --reachable, --implies or --finishable asks another
    question instead. Exit code 0: proved. 1: refuted. 2: undecided, with a code. If a session
    decides the question, a shortest one is shown.
    """
    asked = [statement is not None, reachable is not None, other is not None, finishable]
    if sum(asked) != 1:
        raise click.UsageError(
            "ask one question: STATEMENT, --reachable, --implies or --finishable", ctx
        )
    begun = time.monotonic()
    options = Options(timeout=timeout)
    bounds = ("max_states", "timeout")  # of the question, too
    opened = open_artifact(artifact, command="prove", options=options, beside=other, bounds=bounds)
    beside = None
    if other is not None:
        beside = open_artifact(
            other, command="prove", options=options, beside=artifact, bounds=bounds
        )
    left = None if timeout is None else max(0.001, timeout - (time.monotonic() - begun))
    try:
        with at_most(None if left is None else left + 1):
            found = prove(
                opened,
                statement,
                reachable=reachable,
                implies=beside,
                finishable=finishable,
                max_states=max_states,
                timeout=left,
            )
    except CompileError as error:
        raise click.BadParameter(str(error), param_hint="STATEMENT") from None
    except OutOfTime:
        found = _out_of_time(statement, reachable, other)
    if proof is not None and found.verdict != "undecided":
        _write(found, proof)
    if as_json:
        screen.print_output(prove_output(found))
    else:
        _print(found)
    ctx.exit(_EXITS[found.verdict])


def _write(found: Proof, path: Path) -> None:
    """Write the certificate.

    Raises:
        ClickException: there is none, or the file cannot be written.
    """
    try:
        data = found.certificate
    except OpenQuestion as left:
        raise click.ClickException(f"no proof is written: {left}") from None
    if data is None:
        raise click.ClickException("no proof is written: the kernel does not read this question")
    try:
        write_whole(path, data)
    except (OSError, OutputRefused) as error:
        raise click.ClickException(
            f"cannot write {path}: {getattr(error, 'strerror', None) or error}"
        ) from None


def _out_of_time(statement: str | None, reachable: str | None, other: Path | None) -> Proof:
    text = statement if statement is not None else reachable
    asked = "statement" if statement is not None else "reachable" if reachable else None
    return Proof(
        kind=asked or ("finishable" if other is None else "implies"),  # type: ignore[arg-type]
        text=text,
        verdict="undecided",
        session=None,
        codes=("P507",),
        whys=("the time of --timeout is over",),
        states=0,
    )


def _print(found: Proof) -> None:
    name = found.text or found.kind
    say = screen.good if found.proved else screen.bad
    say(f"{found.verdict}: {name}")
    for code, why in zip(found.codes, found.whys, strict=True):
        screen.say(f"  {code}: {why}")
    if found.session is not None:
        for number, line in enumerate(session_lines(found.session), 1):
            screen.say(f"  {number}. {line}")
        screen.say(f"  {_ENDS[found.session.ends]}")
