"""``tcc diff``: compares the plans and sessions of a new grammar with an old grammar's."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from tcc import screen
from tcc.findings import print_found
from tcc.library import plan_questions
from tcc.library.proving import TIMEOUT
from tcc.opening import OutOfTime, at_most, open_artifact, options_of, refuse
from tcc.options import FORMATS, GIVEN, chosen, compile_options, is_regular_file, json_option
from tcc.screen import CLEAN, DECLINED, FINDINGS
from tcc_certs.errors import Code, Rejected
from tcc_runtime.analysis.comparison import Comparison
from tcc_runtime.artifact.load import Artifact

if TYPE_CHECKING:
    from tcc_compiler.options import Options


@click.command("diff")
@click.argument("old", type=GIVEN, callback=is_regular_file)
@click.argument("new", type=GIVEN, callback=is_regular_file)
@click.option(
    "--breaking",
    type=click.Choice(["wider", "narrower"]),
    default="wider",
    show_default=True,
    help="end with 1 if NEW allows something new (wider), or forbids something that OLD "
    "allows (narrower)",
)
@click.option(
    "--format",
    "--output-format",
    "output_format",
    type=click.Choice([*FORMATS, "markdown"]),
    default="text",
    show_default=True,
    help="text for people, json for programs, sarif for code scanning, github for annotations"
    " in GitHub Actions, markdown for comments",
)
@compile_options
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    old: Path,
    new: Path,
    breaking: Literal["wider", "narrower"],
    output_format: str,
    as_json: bool,
    **given: Any,
) -> None:
    """Compare the plans and sessions of NEW with those of OLD; each is an artifact or a grammar.

    Reports the exact numbers of added and removed plans, with a shortest and a cheapest example, a
    session that only NEW allows and one that only OLD allows, and the statements, tools and fields
    that differ. Exit code 1: NEW may allow something that OLD refuses. 2: undecided.
    """
    shown = chosen(output_format, as_json)
    options = options_of(given)
    try:
        with at_most(options.timeout):
            begun = time.monotonic()
            before = _opened(old, new, options)
            left = _with_what_is_left(options, begun)
            after = _opened(new, old, left)
            seconds = TIMEOUT
            if options.timeout is not None:
                seconds = min(TIMEOUT, max(options.timeout - (time.monotonic() - begun), 0.001))
            found = plan_questions.compare_written(before, after, seconds)
    except OutOfTime:
        refuse(new, Rejected(Code.LIMIT, "diff", "an answer within --timeout", "more seconds"))
    broken = found.breaks(breaking)
    code = _exit(found, broken)
    if shown == "json":
        screen.print_output(plan_questions.diff_output(found, broken))
    elif shown == "github":
        plan_questions.print_github(found, code, new)
    elif shown == "sarif":
        print_found(plan_questions.broken_findings(found, broken, new), "sarif")
    elif shown == "markdown":
        plan_questions.print_markdown(found, code)
    else:
        plan_questions.print_text(found, broken)
    ctx.exit(code)


def _with_what_is_left(options: Options, begun: float) -> Options:
    """Return the options with the time that remains: the limit is for both sides together."""
    if options.timeout is None:
        return options
    left = options.timeout - (time.monotonic() - begun)
    return replace(options, timeout=max(left, 0.001))


def _opened(path: Path, beside: Path, options: Options) -> Artifact:
    """Open one side.  Its examples may fail, because only its plans and sessions are compared."""
    return open_artifact(
        path,
        command="diff",
        options=options,
        beside=beside,
        examples=False,
        bounds=("max_states", "timeout"),
    )


def _exit(found: Comparison, broken: bool) -> int:
    if broken:
        return FINDINGS
    return DECLINED if found.verdict is None else CLEAN
