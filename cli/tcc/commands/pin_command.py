"""``tcc pin``: write down which artifacts are the ones to be used."""

from __future__ import annotations

from pathlib import Path

import click

from tcc import screen
from tcc.exits import FINDINGS
from tcc.findings import print_found
from tcc.found import Found, as_object
from tcc.opening import json_option, refuse, require_artifact
from tcc.output_formats import chosen, format_option
from tcc.pins import NAME, LockError, Pin, lock_text, name_in, pin_of, read_pins
from tcc_certs.errors import Rejected
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
@click.option(
    "--lock",
    type=click.Path(path_type=Path),
    default=Path(NAME),
    show_default=True,
    help="the file of pins",
)
@click.option("--remove", is_flag=True, help="take the pins of these paths away")
@format_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    artifacts: tuple[Path, ...],
    lock: Path,
    remove: bool,
    output_format: str,
    as_json: bool,
) -> None:
    """Pin each ARTIFACT: write its path, digest, grammar and version to a lock.

    Every certificate is checked first. Other pins of the lock stay. `tcc check --locked` then
    refuses what is not as it was pinned.
    """
    shown = chosen(output_format, as_json)
    try:
        there = lock.exists() or lock.is_symlink()
        pins = read_pins(lock) if there or remove else {}
        changed = [name_in(lock, path) for path in artifacts]
    except LockError as error:
        _refuse(error.found, str(error), shown)
        ctx.exit(FINDINGS)
    for name, path in zip(changed, artifacts, strict=True):
        if remove:
            if pins.pop(name, None) is None:
                raise click.UsageError(f"{lock} has no pin for {name}", ctx)
        else:
            pins[name] = _pinned(path)
    try:
        write_whole(lock, lock_text(pins).encode())
    except OSError as error:
        raise click.ClickException(f"cannot write {lock}: {error.strerror or error}") from None
    _show(lock, changed, pins, shown)


def _pinned(path: Path) -> Pin:
    try:
        require_artifact(path)
        return pin_of(load(path))
    except Rejected as refusal:
        refuse(path, refusal)
    except OSError as error:
        raise click.ClickException(f"cannot read {path}: {error.strerror or error}") from None


def _refuse(found: Found, said: str, shown: str) -> None:
    screen.say(said, err=True)
    if shown == "json":
        screen.print_json("error", {"error": said, "diagnostics": [as_object(found)]})
    elif shown != "text":
        print_found([found], shown)


def _show(lock: Path, changed: list[str], pins: dict[str, Pin], shown: str) -> None:
    if shown == "json":
        fields = {
            name: {"digest": pin.digest, "grammar": pin.grammar, "version": pin.version}
            for name, pin in sorted(pins.items())
        }
        screen.print_json("pin", {"lock": str(lock), "artifacts": fields})
    elif shown != "text":
        print_found((), shown)
    else:
        for name in changed:
            pin = pins.get(name)
            told = f"{pin.grammar} {pin.version} {pin.digest}" if pin else "no longer pinned"
            screen.say(f"{name}: {told}")
        screen.good(f"wrote {lock}, {len(pins)} pinned")
