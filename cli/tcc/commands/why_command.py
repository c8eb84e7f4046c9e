"""``tcc why``: explains why a sequence of calls is no plan, and what could come instead."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from tcc import screen
from tcc.library import CompileError
from tcc.library.blaming import Barred, blame_sessions, blamed_output, undecided
from tcc.library.plan_questions import Why, statement_line, why, why_output
from tcc.library.proving import session_lines
from tcc.opening import OutOfTime, at_most, open_artifact, options_of, refusing
from tcc.options import artifact_argument, compile_options, json_option
from tcc.screen import CLEAN, DECLINED, FINDINGS
from tcc_certs.core.enforced import shortened
from tcc_runtime.analysis.statements import WrittenStatement
from tcc_runtime.artifact.root import CallTextError
from tcc_runtime.errors import SettingsError
from tcc_runtime.exact.search import MAX_STATES

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

    With --reachable or --finish: whether any session of a grammar ends in such a call, or can
    finish, monitors included; if not, a smallest set of statements that together make it
    impossible. Exit code 1: impossible. 2: undecided.
    """
    asked = [plan is not None, reachable is not None, finish]
    if sum(asked) != 1:
        raise click.UsageError("ask one question: PLAN, --reachable or --finish", ctx)
    if plan is None:
        if prefix or every:
            raise click.UsageError("--prefix and --all are about PLAN", ctx)
        _of_sessions(ctx, artifact, reachable, options_of(given), as_json)
        return
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


_ENDS = {"possible": CLEAN, "impossible": FINDINGS, "undecided": DECLINED}


def _of_sessions(
    ctx: click.Context, path: Path, reachable: str | None, options: Options, as_json: bool
) -> None:
    """Report which statements together make a call, or the end of a session, impossible."""
    given = ctx.get_parameter_source("max_states") not in (None, ParameterSource.DEFAULT)
    states = options.max_states if given else MAX_STATES
    begun = time.monotonic()
    artifact = open_artifact(path, command="why", options=options)
    if options.timeout is not None:
        left = max(0.001, options.timeout - (time.monotonic() - begun))
        options = replace(options, timeout=left)
    because: Sequence[WrittenStatement] = ()
    try:
        with at_most(None if options.timeout is None else options.timeout + 1):
            found, because = blame_sessions(
                artifact, path, options, reachable=reachable, max_states=states
            )
    except OutOfTime:
        found = undecided("P507")
    except SettingsError as error:
        raise click.BadParameter(str(error), param_hint="ARTIFACT") from None
    except CompileError as error:
        raise click.BadParameter(str(error), param_hint="--reachable") from None
    if as_json:
        screen.print_output(blamed_output(found, because, reachable))
    else:
        _print_blamed(found, because, reachable)
    ctx.exit(_ENDS[found.verdict])


def _print_blamed(
    found: Barred, written: Sequence[WrittenStatement], reachable: str | None
) -> None:
    what = "a session can finish" if reachable is None else f"a session ends in {reachable}"
    if found.verdict == "possible":
        screen.good(f"possible: {what}")
        lines = [] if found.session is None else session_lines(found.session)
        for number, line in enumerate(lines, 1):
            screen.say(f"  {number}. {line}")
        return
    screen.bad(f"{found.verdict}: {what}")
    rows: list[tuple[str, object]] = []
    if found.verdict == "impossible":
        lines = [statement_line(one) for one in written] or ["the plan and the limits on depth"]
        rows += [("because" if at == 0 else "and", line) for at, line in enumerate(lines)]
        if not found.smallest:
            rows.append(("", "(fewer statements may be enough)"))
    rows += [("undecided", f"{code}: tcc explain {code}") for code in found.codes]
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
        rows += [(name if at == 0 else "and", statement_line(s)) for at, s in enumerate(chosen)]
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
