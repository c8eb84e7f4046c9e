"""``tcc why``: explains why a sequence of calls is no plan, and what could come instead."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from tcc import screen
from tcc.commands.prove_command import refuse_question
from tcc.library import CompileError
from tcc.library.plan_questions import Why, statement_json, statement_line, why, why_output
from tcc.library.proving import TIMEOUT
from tcc.library.session_questions import WhySession, why_session
from tcc.opening import open_artifact, options_of, refusing
from tcc.options import artifact_argument, compile_options, json_option
from tcc.screen import CLEAN, DECLINED, FINDINGS
from tcc_certs.policy.listing import shortened
from tcc_runtime.artifact.root import CallTextError

if TYPE_CHECKING:
    from tcc_compiler.options import Options


@click.command("why")
@artifact_argument
@click.argument("plan", required=False)
@click.option("--reachable", metavar="PATTERN", help="ask whether a session can end in such a call")
@click.option("--finish", is_flag=True, help="ask whether a session can finish")
@click.option("--prefix", is_flag=True, help="ask whether a plan begins with PLAN")
@click.option("--all", "every", is_flag=True, help="list all smallest sets of statements to blame")
@compile_options
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    artifact: Path,
    plan: str | None,
    reachable: str | None,
    finish: bool,
    prefix: bool,
    every: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Say whether PLAN is a plan of ARTIFACT (or of a grammar), and if not, why.

    PLAN is a text of calls separated by spaces, written as `tcc run` prints them or as patterns of
    a grammar; "" is the empty plan. The reason is a smallest set of statements without which PLAN
    would be a plan; those of a grammar are shown as written, with their places. Exit code 1: PLAN
    is not allowed.

    --reachable and --finish ask about all sessions, with the engine of `tcc prove`: a session shows
    that it is possible, or statements exclude it (exit code 1). Exit code 2: undecided.
    """
    asked = [plan is not None, reachable is not None, finish]
    if sum(asked) != 1:
        raise click.UsageError("ask one question: PLAN, --reachable or --finish", ctx)
    if plan is None:
        if prefix or every:
            raise click.UsageError("--prefix and --all are about PLAN", ctx)
        _of_sessions(ctx, artifact, reachable, options_of(given), as_json)
    opened = open_artifact(artifact, command="why", options=options_of(given))
    try:
        with refusing(artifact):
            found = why(opened, plan, prefix=prefix, every=every)
    except CallTextError as error:
        raise click.BadParameter(str(error), param_hint="PLAN") from None
    if as_json:
        screen.print_output(why_output(found))
    else:
        _print(found, prefix)
    ctx.exit(CLEAN if found.allowed else FINDINGS)


def _of_sessions(
    ctx: click.Context, path: Path, reachable: str | None, options: Options, as_json: bool
) -> NoReturn:
    """Answer a question about all sessions, and end the command."""
    opened = open_artifact(path, command="why", options=options)
    try:
        with refusing(path):
            seconds = TIMEOUT if options.timeout is None else options.timeout
            found = why_session(opened, reachable, timeout=seconds)
    except CompileError as error:
        refuse_question(ctx, error, reachable or "")
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--reachable") from None
    if as_json:
        _print_session_json(found, reachable)
    else:
        _print_session(found, reachable)
    codes = {"reachable": CLEAN, "unreachable": FINDINGS, "undecided": DECLINED}
    ctx.exit(codes[found.verdict])


def _print_session_json(found: WhySession, reachable: str | None) -> None:
    from tcc.outputs import optional
    from tcc.outputs.questions import SessionCallJson, WhySessionsOutput

    calls = found.session
    output = WhySessionsOutput(
        verdict=found.verdict,
        reachable=optional(reachable),
        session=optional(None if calls is None else [SessionCallJson(**call) for call in calls]),
        given=optional(None if found.given is None else dict(found.given)),
        because=[statement_json(one) for one in found.because],
        missing=optional(found.missing or None),
    )
    screen.print_output(output)


def _print_session(found: WhySession, reachable: str | None) -> None:
    what = "can finish" if reachable is None else f"has {reachable}"
    if found.verdict == "undecided":
        screen.doubtful(f"undecided: whether a session {what}")
        screen.say(f"  {found.missing}")
    elif found.session is not None:
        from tcc.outputs import json_line

        screen.good(f"possible: a session {what}")
        document = {"given": found.given, "calls": list(found.session)}
        screen.say("  as `tcc replay` reads it:")
        screen.say(json_line(document).decode())
    else:
        screen.bad(f"never possible: no session {what}")
        rows = [
            ("because" if at == 0 else "and", statement_line(one))
            for at, one in enumerate(found.because)
        ]
        screen.print_fields(rows)


def _print(found: Why, prefix: bool) -> None:
    what = "the beginning of a plan" if prefix else "a plan"
    if found.allowed:
        screen.good(f"allowed: this is {what}")
    elif found.position == len(found.calls):
        screen.bad("not allowed: no plan ends here")
    else:
        asked = found.calls[found.position]
        screen.bad(f"not allowed: call {found.position + 1}, {asked}, cannot be here")
    rows: list[tuple[str, object]] = []
    if found.hint is not None:
        rows.append(("hint", found.hint))
    for name, chosen in (("because", found.because), *(("or", other) for other in found.others)):
        for at, statement in enumerate(chosen):
            rows.append((name if at == 0 else "and", statement_line(statement)))
            if statement.remedy:
                rows.append(("needed", statement.remedy))
    if not found.smallest:
        rows.append(("", "(fewer statements may be enough: it takes too much work to tell)"))
    nothing = "nothing" if not found.may_stop else "nothing more"
    rows.append(("next", shortened(found.allowed_next) or nothing))
    rows.append(("may stop", "yes" if found.may_stop else "no"))
    if not found.allowed and found.nearest is not None:
        rows.append(("nearest", _plan(found.nearest)))
    screen.print_fields(rows)


def _plan(calls: Sequence[str]) -> str:
    return " ".join(calls) or "(the empty plan)"
