"""``tcc replay``: reports what a grammar would have refused in recorded sessions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import click

from tcc import screen
from tcc.opening import given_in, open_artifact, options_of
from tcc.options import artifact_argument, compile_options, given_option, json_option
from tcc.screen import CLEAN, FINDINGS
from tcc.traces import FORMATS, Trace, read_traces
from tcc.traces.replaying import Replayed, replay
from tcc_runtime.errors import GivenRefused

_EXAMPLES = 3  # examples shown for a statement without --all

sessions_argument = click.argument(
    "files",
    metavar="FILE..",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
form_option = click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="auto",
    show_default=True,
    help="format of the recorded sessions",
)


@click.command("replay")
@artifact_argument
@sessions_argument
@form_option
@click.option("--values", is_flag=True, help="show values in examples, instead of digests")
@click.option("--all", "every", is_flag=True, help="show each refused call, instead of three")
@click.option("--stop", is_flag=True, help="skip the rest of a session after a refused call")
@given_option(
    "value that the grammar asks for when a session opens, for records without it; repeatable"
)
@compile_options
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    artifact: Path,
    files: tuple[Path, ...],
    form: str,
    values: bool,
    every: bool,
    stop: bool,
    told: tuple[str, ...],
    as_json: bool,
    **given: Any,
) -> None:
    """Report what ARTIFACT (or a grammar) would have refused in the sessions recorded in FILE.

    FILE holds one session, or one per line. Each call is decided after the calls before it, with
    the recorded answers. A refused call counts as not made, so that one mistake counts once. Limits
    across sessions count each session alone. Exit code 1: a call is refused.
    """
    opened = open_artifact(artifact, command="replay", options=options_of(given), gate=True)
    traces: Iterator[Trace] = chain.from_iterable(read_traces(path, form) for path in files)
    try:
        found = replay(
            opened,
            traces,
            values=values,
            stop=stop,
            told=given_in(told, opened),
            most=None if every or as_json else _EXAMPLES,
        )
    except GivenRefused as error:
        raise click.BadParameter(str(error), param_hint="--given") from None
    if as_json:
        _print_output(found)
    else:
        _print(found)
    ctx.exit(FINDINGS if found.refused else CLEAN)


def _print(found: Replayed) -> None:
    for blamed in found.statements:
        times = "once" if blamed.count == 1 else f"{blamed.count} times"
        screen.say(f"{blamed.code}  {blamed.text}", f"refused {times}")
        for example in blamed.examples:
            screen.say(f"        {example.session}, call {example.position}: {example.call}")
    for limit in found.counted_per_session:
        screen.say(f"note: this limit counted each session alone: {limit}")
    if found.refused:
        sessions = f"{len(found.refusing)} of {found.sessions} sessions"
        screen.bad(f"refused: {found.refused} of {found.calls} calls, in {sessions}")
    else:
        screen.good(f"refused: none of {found.calls} calls of {found.sessions} sessions")


def _print_output(found: Replayed) -> None:
    from tcc.outputs.questions import ReplayedCallJson, ReplayedStatementJson, ReplayOutput

    statements = [
        ReplayedStatementJson(
            text=blamed.text,
            code=blamed.code,
            count=blamed.count,
            examples=[
                ReplayedCallJson(session=one.session, call=one.call, position=one.position)
                for one in blamed.examples
            ],
        )
        for blamed in found.statements
    ]
    output = ReplayOutput(
        sessions=found.sessions,
        calls=found.calls,
        refused=found.refused,
        refused_sessions=len(found.refusing),
        statements=statements,
        counted_per_session=list(found.counted_per_session),
    )
    screen.print_output(output)
