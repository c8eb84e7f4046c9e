"""``tcc why``: why a sequence of calls is no plan, and what could be there instead."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from tcc import screen
from tcc.library.questions import Why, statement_line, why, why_output
from tcc.opening import open_artifact, options_of, refusing
from tcc.options import artifact_argument, compile_options, json_option
from tcc.screen import CLEAN, FINDINGS
from tcc_certs.core.enforced import shortened
from tcc_runtime.artifact.root import CallTextError


@click.command("why")
@artifact_argument
@click.argument("plan")
@click.option("--prefix", is_flag=True, help="ask whether a plan begins with these calls")
@click.option("--all", "every", is_flag=True, help="all smallest sets of statements to blame")
@compile_options
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    artifact: Path,
    plan: str,
    prefix: bool,
    every: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Say whether PLAN is a plan of ARTIFACT (or of a grammar), and if not, why.

    PLAN is calls with spaces between them, written as `tcc run` prints them or as a grammar writes
    its patterns; "" is the empty plan. Blamed is a smallest set of statements without which it
    would be possible. Of a grammar they come as they are written, with their places. Ends with 1
    where PLAN is not allowed.
    """
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
