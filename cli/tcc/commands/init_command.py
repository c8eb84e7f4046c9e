"""``tcc init``: starts a grammar, and a workflow that checks it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import click

from tcc import screen
from tcc.opening import writing
from tcc.options import json_option
from tcc_certs.formats.codec import MAX_NAME
from tcc_runtime.ledger.outputs import create, write_whole

_TEMPLATE = "agent"  # the grammar's name in the templates
_WORKFLOW = Path(".github", "workflows", "tcc.yml")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@click.command("init")
@click.argument(
    "folder", metavar="[DIR]", default=".", type=click.Path(file_okay=False, path_type=Path)
)
@click.option("--name", help="name of the grammar; by default that of the folder")
@click.option("--no-ci", is_flag=True, help="write no workflow for GitHub Actions")
@click.option("--force", is_flag=True, help="replace existing files")
@json_option
def command(folder: Path, name: str | None, no_ci: bool, force: bool, as_json: bool) -> None:
    """Start a commented grammar in DIR, and a workflow that checks it.

    If one of the files exists, nothing is written, unless --force is given.
    """
    chosen = _from_folder(folder) if name is None else _checked(name)
    texts = {folder / f"{chosen}.tcg": _template("agent.tcg", chosen)}
    if not no_ci:
        texts[folder / _WORKFLOW] = _template("tcc.yml", chosen)
    _write(texts, force)
    steps = _steps(folder, chosen, ci=not no_ci)
    if as_json:
        from tcc.outputs.grammars import InitOutput

        written = [str(path) for path in texts]
        screen.print_output(InitOutput(grammar=chosen, written=written, next=list(steps)))
        return
    for path in texts:
        screen.good(f"wrote {path}")
    screen.say("next:")
    for step in steps:
        screen.say(f"  {step}")


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name) or len(name) > MAX_NAME:
        said = f"{name!r} is no name: letters, digits and _, at most {MAX_NAME}, no digit first"
        raise click.BadParameter(said, param_hint="--name")
    return name


def _from_folder(folder: Path) -> str:
    """Convert a folder's name to a grammar's name; other characters become ``_``."""
    made = re.sub(r"[^A-Za-z0-9_]+", "_", folder.resolve().name).strip("_")[: MAX_NAME - 1]
    if not made:
        return _TEMPLATE
    return f"_{made}" if made[0].isdigit() else made


def _template(file: str, name: str) -> str:
    text = files("tcc").joinpath("templates", file).read_text("utf-8")
    text = text.replace(f"grammar {_TEMPLATE} ", f"grammar {name} ")
    return re.sub(rf"\b{_TEMPLATE}\.(tcg|tcca)\b", rf"{name}.\1", text)


def _write(texts: Mapping[Path, str], force: bool) -> None:
    """Write all files, or none if one exists and `force` is false.

    Raises:
        click.ClickException: a file exists, or cannot be written.
    """
    there = [str(path) for path in texts if os.path.lexists(path)]
    if there and not force:
        said = f"{' and '.join(there)} would be replaced: --force does, --name writes another"
        raise click.ClickException(said)
    for path, text in texts.items():
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            if force:
                write_whole(path, text.encode())
            else:
                _write_new(path, text.encode())


def _write_new(path: Path, data: bytes) -> None:
    """Write a new file; remove it again if it cannot be written completely."""
    with os.fdopen(create(path, overwrite=False), "wb", buffering=0) as file:
        try:
            while data:
                data = data[file.write(data) :]
        except OSError:
            path.unlink(missing_ok=True)
            raise


def _steps(folder: Path, name: str, *, ci: bool) -> Sequence[str]:
    """Return the next steps for the user, in order."""
    path = folder / f"{name}.tcg"
    steps = [
        f"write your own tools, rules and limits into {path}",
        f"tcc test {path} --watch",
        f"tcc compile {path}",
        f"tcc check {path.with_suffix('.tcca')} --core --source {path}",
    ]
    if not ci:
        return steps
    root = next((up for up in (folder.resolve(), *folder.resolve().parents) if _is_root(up)), None)
    if root is not None and root != folder.resolve():
        steps.append(f"move {folder / _WORKFLOW} to {root / _WORKFLOW}, with the paths from there")
    return [*steps, "set the variable TCC_SOURCE of the repository to what pip installs tcc from"]


def _is_root(folder: Path) -> bool:
    return (folder / ".git").exists()
