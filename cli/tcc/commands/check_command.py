"""``tcc check``: are an artifact's certificates true, and is it the automaton of its grammar?"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Literal

import click

from tcc import screen
from tcc.checking import Checked, check_each, check_locked, checked_fields
from tcc.compilation import CompileError
from tcc.documents import to_json
from tcc.exits import CLEAN, FINDINGS
from tcc.findings import print_diagnostics, print_found
from tcc.found import of_check
from tcc.given import GIVEN
from tcc.opening import input_option, is_regular_file, json_option, require_artifact
from tcc.options import digest_option
from tcc.output_formats import chosen, format_option
from tcc.pins import NAME
from tcc.verification import check
from tcc_certs.report import Report


def _are_regular(
    ctx: click.Context, parameter: click.Parameter, value: tuple[Path, ...]
) -> tuple[Path, ...]:
    for path in value:
        is_regular_file(ctx, parameter, path)
    return value


@click.command("check")
@click.argument("artifacts", nargs=-1, type=GIVEN, callback=_are_regular, metavar="ARTIFACT...")
@click.option("--core", is_flag=True, help="prove the automaton against its core, by residuals")
@input_option("--source", "the grammar file (- reads it) that it has to be made from", type=GIVEN)
@click.option("--exact", is_flag=True, help="refuse what is relaxed, or has counts that are bounds")
@digest_option("--pin", "the artifact digest that is trusted")
@click.option(
    "--locked", is_flag=True, help="refuse what is not as it is pinned; alone: check every pin"
)
@click.option(
    "--lock",
    type=click.Path(path_type=Path),
    default=Path(NAME),
    show_default=True,
    help="the pins, for --locked",
)
@click.option(
    "--kernel",
    type=click.Choice(("pure", "fast")),
    default="pure",
    show_default=True,
    help="fast: the same equations with numpy, for large artifacts",
)
@format_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    artifacts: tuple[Path, ...],
    core: bool,
    source: Path | None,
    pin: bytes | None,
    exact: bool,
    locked: bool,
    lock: Path,
    kernel: Literal["pure", "fast"],
    output_format: str,
    as_json: bool,
) -> None:
    """Verify the certificates of ARTIFACT, one or more.

    --core also proves that it is the automaton of the grammar inside it; --source that this grammar
    is the one in a file; --exact that nothing is relaxed: the automaton holds every statement, and
    every count is exact. --locked holds artifacts to the pins that `tcc pin` wrote.
    """
    shown = chosen(output_format, as_json)
    for path in artifacts:
        require_artifact(path)
    if not artifacts and not locked:
        raise click.UsageError("Missing argument 'ARTIFACT...'.", ctx)
    if (source or pin) and len(artifacts) != 1:
        raise click.UsageError("--source and --pin are for one artifact", ctx)
    pinned = None if pin is None else pin.hex()
    examine = partial(check, core=core, source=source, pin=pinned, exact=exact, kernel=kernel)
    try:
        if locked or len(artifacts) > 1:
            checked = (
                check_locked(lock, artifacts, examine) if locked else check_each(artifacts, examine)
            )
            _show_all(checked, shown)
            ctx.exit(checked.verdict)
        report = examine(artifacts[0])
    except CompileError as error:
        _show_source(error, str(source), shown)
        ctx.exit(FINDINGS)
    except OSError as error:
        where = error.filename or artifacts[0]
        raise click.ClickException(f"cannot read {where}: {error.strerror or error}") from None
    _show(report, artifacts[0], shown)
    ctx.exit(report.verdict)


def _show(report: Report, artifact: Path, shown: str) -> None:
    if shown == "json":
        screen.print_document(to_json(report))
    elif shown != "text":
        print_found(of_check(report.findings, artifact), shown)
    else:
        _say(report, "")


def _show_all(checked: Checked, shown: str) -> None:
    if shown == "json":
        screen.print_json("check", checked_fields(checked))
        return
    if shown != "text":
        print_found(checked.found, shown)
        return
    for path, report in checked.reports:
        _say(report, f"{path}: ")
    for one in checked.pins:
        where = "" if one.place is None else f"{one.place.file}: "
        screen.bad(f"{where}{one.code}: {one.message}")
        if one.hint is not None:
            screen.say(f"  help: {one.hint}")


def _say(report: Report, where: str) -> None:
    say = screen.good if report.verdict == CLEAN else screen.bad
    first, *rest = report.lines
    say(f"{where}{first}")
    for line in rest:
        screen.say(f"  {line}")
    if report.digest:
        screen.print_fields([("digest", report.digest)])


def _show_source(error: CompileError, source: str, shown: str) -> None:
    screen.say(f"{source} has errors, so nothing can be made from it: {error}", err=True)
    if shown != "text":
        print_diagnostics("check", error.diagnostics, {}, shown)
