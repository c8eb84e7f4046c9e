"""``tcc report``: one page about an artifact, a run or a session, for who has to be shown it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tcc import screen
from tcc.files import GRAMMAR_ENDINGS, looks_like_artifact, same_file
from tcc.opening import open_artifact, options_of, refuse_compile_options, require_artifact, writing
from tcc.options import (
    INPUT,
    OUTPUT,
    audit_options,
    compile_options,
    input_option,
    is_regular_file,
    json_option,
    pin_option,
)
from tcc.pages.build import Built, of_artifact, of_ledger
from tcc.pages.markup import page_bytes
from tcc.screen import CLEAN
from tcc_runtime.ledger.outputs import write_whole

_OF_LEDGERS = ("seed", "opening_salt", "opening", "beacon", "nonce", "counts", "key")


@click.command("report")
@click.argument("source", type=INPUT, callback=is_regular_file)
@input_option(
    "--artifact", "of a ledger: the artifact that was run, or that the session is held to"
)
@click.option("-o", "--output", type=OUTPUT, required=True, help="the page, a file")
@input_option("--since", "of an artifact: an older artifact or grammar; what changed since then")
@pin_option
@audit_options
@compile_options
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    source: Path,
    artifact: Path | None,
    output: Path,
    since: Path | None,
    pin: bytes | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Write a page about SOURCE: an artifact (or a grammar), the ledger of a run, or of a session.

    One HTML file that loads nothing from elsewhere. SOURCE is checked, or validated, first; the
    page says the verdict at its top, and the command ends with its exit code. Of what does not hold
    nothing is told but what was found to be wrong.
    """
    read = [path for path in (source, artifact, since) if path is not None]
    pinned = None if pin is None else pin.hex()
    if artifact is None:
        built = _of_artifact(source, since, pinned, given, read)
    else:
        built = _of_ledger(source, artifact, since, pinned, given)
    if same_file(output, read):
        raise click.BadParameter(f"{str(output)!r} is what is reported on", param_hint="-o")
    with writing(output):
        write_whole(output, page_bytes(built.page))
    _print(built, output, as_json)
    ctx.exit(built.code)


def _of_artifact(
    source: Path, since: Path | None, pin: str | None, given: dict[str, Any], read: list[Path]
) -> Built:
    for name in _OF_LEDGERS:
        if given.pop(name) is not None:
            raise click.UsageError(
                f"--{name.replace('_', '-')} is for ledgers: name --artifact too"
            )
    options = options_of(given)
    old = None
    if since is not None:
        old = open_artifact(since, command="report", options=options, read=read, beside=source)
    if source.suffix in GRAMMAR_ENDINGS:
        opened = open_artifact(source, command="report", options=options, read=read)
        return of_artifact(opened, old, pin)
    if since is None or since.suffix not in GRAMMAR_ENDINGS:
        refuse_compile_options()
    data = source.read_bytes()
    if data[:1] == b"{" and not looks_like_artifact(data):
        raise click.UsageError(
            f"{source} is a ledger: name its artifact, tcc report {source} --artifact A -o R.html"
        )
    return of_artifact(data, old, pin)


def _of_ledger(
    ledger: Path, artifact: Path, since: Path | None, pin: str | None, given: dict[str, Any]
) -> Built:
    require_artifact(artifact)
    if since is not None:
        raise click.UsageError("--since is for artifacts, and this is a ledger")
    refuse_compile_options()
    options_of(given)  # taken out
    with ledger.open("rb") as file:
        if looks_like_artifact(file.read(16)):
            raise click.UsageError(f"{ledger} is an artifact; --artifact is for its ledgers")
    return of_ledger(ledger, artifact.read_bytes(), {**given, "pin": pin})


def _print(built: Built, output: Path, as_json: bool) -> None:
    if as_json:
        from tcc.outputs.verdicts import ReportOutput

        told = ReportOutput(
            kind=built.kind, verdict=built.verdict, summary=built.summary, output=str(output)
        )
        screen.print_output(told)
        return
    screen.say(f"wrote {output}, about {'an' if built.kind == 'artifact' else 'a'} {built.kind}")
    say = screen.good if built.code == CLEAN else screen.bad
    say(f"{built.verdict}: {built.summary}")
