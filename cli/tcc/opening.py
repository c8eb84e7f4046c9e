"""How commands open what they are given: an artifact, or a grammar that is compiled on the spot.

Whatever is wrong with it is shown, and the command ends with the exit code that says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from tcc.exits import DECLINED, FINDINGS
from tcc_certs.errors import Rejected
from tcc_runtime.load import Artifact, load

if TYPE_CHECKING:
    from tcc_compiler.options import Options
    from tcc_compiler.pipeline import Compiled

GRAMMAR_ENDINGS = {".tcg", ".graphml", ".json"}

artifact_argument = click.argument(
    "artifact", type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
json_option = click.option("--json", "as_json", is_flag=True, help="one JSON document")


def digest_option(name: str, text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """An option of 64 hexadecimal digits, handed to the command as 32 bytes."""
    return click.option(name, metavar="HEX64", help=text, callback=_thirty_two_bytes)


def bytes_option(name: str, text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """An option of hexadecimal digits of any number of bytes."""
    return click.option(name, metavar="HEX", help=text, callback=_any_bytes)


def _any_bytes(ctx: click.Context, parameter: click.Parameter, value: str | None) -> bytes | None:
    if value is None:
        return None
    if re.fullmatch(r"([0-9a-fA-F]{2})+", value) is None:
        raise click.BadParameter("pairs of hexadecimal digits are needed", ctx, parameter)
    return bytes.fromhex(value)


def _thirty_two_bytes(
    ctx: click.Context, parameter: click.Parameter, value: str | None
) -> bytes | None:
    if value is None:
        return None
    if re.fullmatch(r"[0-9a-fA-F]{64}", value) is None:
        raise click.BadParameter("64 hexadecimal digits are needed", ctx, parameter)
    return bytes.fromhex(value)


def compile_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of every command that compiles."""
    for option in (
        click.option("--beta", default="1", show_default=True, help="inverse temperature"),
        click.option(
            "--tilt", default=8, show_default=True, type=click.IntRange(0, 64), help="weight bits"
        ),
        click.option("--max-states", type=click.IntRange(1), help="most states on the way"),
        click.option("--timeout", type=float, help="most seconds for the compilation"),
        click.option("--count-bits", type=click.IntRange(1), help="most bits of the plan count"),
    ):
        command = option(command)
    return command


def options_of(
    beta: str,
    tilt: int,
    max_states: int | None,
    timeout: float | None,
    count_bits: int | None,
) -> Options:
    """Compiler options from what the command line says.

    Raises:
        click.ClickException: beta is no exact decimal of at least 0.
    """
    from tcc.api import _options
    from tcc_certs.errors import Code
    from tcc_certs.fixed import parse_decimal

    try:
        numerator, _ = parse_decimal(beta, "beta", Code.MANIFEST_VALUE)
    except Rejected:
        numerator = -1
    if numerator < 0:
        raise click.BadParameter(f"{beta!r} is no decimal such as 0.5", param_hint="--beta")
    return _options(beta, tilt, max_states, timeout, count_bits)


def compile_or_exit(
    path: Path, options: Options, *, command: str, output_format: str = "text"
) -> Compiled:
    """Compile `path`; show every diagnostic; end the command where there is no artifact."""
    from tcc.findings import print_diagnostics
    from tcc_compiler.pipeline import compile_file

    compiled = compile_file(path, options)
    if compiled.diagnostics:
        print_diagnostics(command, compiled.diagnostics, compiled.sources, output_format)
    if compiled.artifact is None:
        guarded = {d.code for d in compiled.diagnostics} <= {"TCC403", "TCC404", "TCC407"}
        click.get_current_context().exit(DECLINED if guarded else FINDINGS)
    return compiled


def open_artifact(path: Path, *, command: str, options: Options | None = None) -> Artifact:
    """The artifact in `path`, checked; a grammar is compiled first."""
    if path.suffix in GRAMMAR_ENDINGS:
        from tcc_compiler.options import Options

        compiled = compile_or_exit(path, options or Options(), command=command)
        if compiled.artifact is not None:
            return load(compiled.artifact)
    try:
        return load(path)
    except Rejected as refusal:
        refuse(path, refusal)
    except OSError as error:
        raise click.ClickException(f"cannot read {path}: {error.strerror or error}") from None


def refuse(path: Path, refusal: Rejected) -> NoReturn:
    """Say why an input is refused, and end the command."""
    verdict = "declined" if refusal.code.declines else "invalid"
    click.echo(f"{path}: {verdict}: {refusal}", err=True)
    raise click.exceptions.Exit(DECLINED if refusal.code.declines else FINDINGS)
