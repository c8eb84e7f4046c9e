"""``tcc check``: are an artifact's certificates true, and is it the automaton of its grammar?"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from tcc import screen
from tcc.compilation import CompileError
from tcc.documents import to_json
from tcc.exits import CLEAN, FINDINGS
from tcc.given import GIVEN
from tcc.opening import (
    artifact_argument,
    input_option,
    json_option,
    require_artifact,
)
from tcc.options import digest_option
from tcc.verification import check


@click.command("check")
@artifact_argument
@click.option("--core", is_flag=True, help="prove the automaton against its core, by residuals")
@input_option("--source", "the grammar file (- reads it) that it has to be made from", type=GIVEN)
@click.option("--exact", is_flag=True, help="refuse what is relaxed, or has counts that are bounds")
@digest_option("--pin", "the artifact digest that is trusted")
@click.option(
    "--kernel",
    type=click.Choice(("pure", "fast")),
    default="pure",
    show_default=True,
    help="fast: the same equations with numpy, for large artifacts",
)
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    artifact: Path,
    core: bool,
    source: Path | None,
    pin: bytes | None,
    exact: bool,
    kernel: Literal["pure", "fast"],
    as_json: bool,
) -> None:
    """Verify the certificates of ARTIFACT.

    --core also proves that it is the automaton of the grammar inside it; --source that this grammar
    is the one in a file; --exact that nothing is relaxed: the automaton holds every statement, and
    every count is exact.
    """
    require_artifact(artifact)
    try:
        pinned = None if pin is None else pin.hex()
        report = check(artifact, core=core, source=source, pin=pinned, exact=exact, kernel=kernel)
    except CompileError as error:
        screen.say(f"{source} has errors, so nothing can be made from it: {error}", err=True)
        ctx.exit(FINDINGS)
    except OSError as error:
        raise click.ClickException(f"cannot read {artifact}: {error.strerror or error}") from None
    if as_json:
        screen.print_document(to_json(report))
        ctx.exit(report.verdict)
    say = screen.good if report.verdict == CLEAN else screen.bad
    first, *rest = report.lines
    say(first)
    for line in rest:
        screen.say(f"  {line}")
    if report.digest:
        screen.print_fields([("digest", report.digest)])
    ctx.exit(report.verdict)
