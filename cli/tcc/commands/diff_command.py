"""``tcc diff``: which plans a new grammar has that an old one has not."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from tcc import screen
from tcc.findings import print_found
from tcc.library.questions import (
    broken_findings,
    compare_written,
    diff_output,
    print_github,
    print_markdown,
    print_text,
)
from tcc.opening import OutOfTime, at_most, open_artifact, options_of, refuse
from tcc.options import FORMATS, GIVEN, chosen, compile_options, is_regular_file, json_option
from tcc.screen import CLEAN, DECLINED, FINDINGS
from tcc_certs.errors import Code, Rejected
from tcc_runtime.analysis.comparison import Comparison

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
    help="end with 1 where NEW allows something new (wider), or lost something (narrower)",
)
@click.option(
    "--format",
    "--output-format",
    "output_format",
    type=click.Choice([*FORMATS, "markdown"]),
    default="text",
    show_default=True,
    help="for people, programs, code scanning, workflows of GitHub, comments",
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
    """Compare the plans of NEW with those of OLD: artifacts or grammars, each of them.

    Says how many plans were added and removed, exactly, with a shortest and a cheapest one of
    each. Ends with 1 where NEW allows a plan that OLD does not, and where it lets more values
    through: a monitor was removed, or the type of an open parameter is not within the old one.
    """
    shown = chosen(output_format, as_json)
    options = options_of(given)
    try:
        with at_most(options.timeout):
            begun = time.monotonic()
            before = open_artifact(old, command="diff", options=options, beside=new)
            options = _with_what_is_left(options, begun)
            after = open_artifact(new, command="diff", options=options, beside=old)
            found = compare_written(before, after)
    except OutOfTime:
        refuse(new, Rejected(Code.LIMIT, "diff", "an answer within --timeout", "more seconds"))
    broken = found.breaks(breaking)
    if shown == "json":
        screen.print_output(diff_output(found, broken))
    elif shown == "github":
        print_github(found, broken, new)
    elif shown == "sarif":
        print_found(broken_findings(found, broken, new), "sarif")
    elif shown == "markdown":
        print_markdown(found, broken)
    else:
        print_text(found, broken)
    ctx.exit(_exit(found, broken))


def _with_what_is_left(options: Options, begun: float) -> Options:
    """The time of the command is for both sides."""
    if options.timeout is None:
        return options
    left = options.timeout - (time.monotonic() - begun)
    return replace(options, timeout=max(left, 0.001))


def _exit(found: Comparison, broken: bool) -> int:
    if broken:
        return FINDINGS
    return CLEAN if found.verdict is not None else DECLINED
