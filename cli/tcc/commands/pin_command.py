"""``tcc pin``: write down which artifacts are the ones to be used."""

from __future__ import annotations

from pathlib import Path

import click

from tcc import screen
from tcc.files import is_regular
from tcc.findings import Found, Place, as_object, print_found
from tcc.opening import refusing, require_artifact, writing
from tcc.options import chosen, format_option, input_option, json_option, lock_option
from tcc.pins import LockError, Pin, SourceError, lock_text, name_in, pin_of, read_pins
from tcc.screen import FINDINGS
from tcc_runtime.artifact.load import load
from tcc_runtime.ledger.outputs import write_whole


@click.command("pin")
@click.argument(
    "artifacts",
    nargs=-1,
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="ARTIFACT...",
)
@lock_option("the file of pins")
@click.option("--remove", is_flag=True, help="take the pins of these paths away")
@input_option("--source", "the grammar that ARTIFACT is held to (default: as pinned, or beside it)")
@click.option("--no-source", is_flag=True, help="hold ARTIFACT to no grammar")
@format_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    artifacts: tuple[Path, ...],
    lock: Path,
    remove: bool,
    source: Path | None,
    no_source: bool,
    output_format: str,
    as_json: bool,
) -> None:
    """Pin each ARTIFACT: write its path, digest, grammar, version and source to a lock.

    Every certificate is checked first. The source is the grammar of that name beside it (A.tcg of
    A.tcca), where there is one. An artifact that was made from another source is TCC845, and
    nothing is written: compile it anew, or pin it with --no-source. Other pins of the lock stay.
    `tcc check --locked` then refuses what is not as it was pinned.
    """
    shown = chosen(output_format, as_json)
    if (source is not None) + no_source + remove > 1:
        raise click.UsageError("--source, --no-source and --remove exclude each other", ctx)
    if source is not None and len(artifacts) != 1:
        raise click.UsageError("--source is for one artifact", ctx)
    try:
        there = lock.exists() or lock.is_symlink()
        pins = read_pins(lock) if there or remove else {}
        changed = [name_in(lock, path) for path in artifacts]
        given = None if source is None else name_in(lock, source)
    except LockError as error:
        _refuse(error.found, str(error), shown)
        ctx.exit(FINDINGS)
    for name, path in zip(changed, artifacts, strict=True):
        if remove:
            if pins.pop(name, None) is None:
                raise click.UsageError(f"{lock} has no pin for {name}", ctx)
        else:
            held = None if no_source else given or _source_of(name, path, lock, pins.get(name))
            try:
                pins[name] = _pinned(path, lock, held)
            except SourceError as error:
                said = f"the source of {path}: {error}"
                hint = "compile it anew, or: --source G, --no-source"
                where = Place(file=str(lock.parent / (held or "")))
                _refuse(
                    Found(code="TCC845", message=said, place=where, hint=hint),
                    f"TCC845: {where.file}: {said}; {hint}", shown,
                )  # fmt: skip
                ctx.exit(FINDINGS)
    with writing(lock):
        write_whole(lock, lock_text(pins).encode())
    _show(lock, changed, pins, shown)


def _source_of(name: str, path: Path, lock: Path, before: Pin | None) -> str | None:
    """Source of an artifact where none is named: the pinned one, or the grammar beside it.

    A grammar that is beside a link, or that the lock cannot name, does not count.
    """
    if before is not None and before.source is not None:
        return before.source
    beside = path.with_suffix(".tcg")
    return name_in(lock, beside) if beside != path and is_regular(beside) else None


def _pinned(path: Path, lock: Path, source: str | None) -> Pin:
    try:
        with refusing(path):
            require_artifact(path)
            return pin_of(load(path), lock, source)
    except OSError as error:
        raise click.ClickException(f"cannot read {path}: {error.strerror or error}") from None


def _refuse(found: Found, said: str, shown: str) -> None:
    screen.say(said, err=True)
    if shown == "json":
        from tcc.outputs.verdicts import ErrorOutput

        screen.print_output(ErrorOutput(error=said, diagnostics=[as_object(found)]))
    elif shown != "text":
        print_found([found], shown)


def _show(lock: Path, changed: list[str], pins: dict[str, Pin], shown: str) -> None:
    if shown == "json":
        fields = {name: pin.fields for name, pin in sorted(pins.items())}
        from tcc.outputs.verdicts import PinOutput

        screen.print_output(PinOutput(lock=str(lock), artifacts=fields))
    elif shown != "text":
        print_found((), shown)
    else:
        for name in changed:
            pin = pins.get(name)
            told = f"{pin.grammar} {pin.version} {pin.digest}" if pin else "no longer pinned"
            of = f", source {pin.source}" if pin and pin.source else ", no source" if pin else ""
            screen.say(f"{name}: {told}{of}")
        screen.good(f"wrote {lock}, {len(pins)} pinned")
