"""How commands open what they are given: an artifact, or a grammar that is compiled on the spot.

Whatever is wrong with it is shown, and the command ends with the exit code that says so.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click
from click.core import ParameterSource

from tcc import screen
from tcc.exits import DECLINED, FINDINGS
from tcc.files import first_bytes, is_regular, looks_like_artifact, looks_like_ledger
from tcc.given import GIVEN, STDIN, compile_given, is_grammar
from tcc.options import COMPILING, bytes_option, digest_option, flag, taken
from tcc_certs.errors import Rejected
from tcc_runtime.artifact.load import Artifact, load

if TYPE_CHECKING:
    from tcc_compiler.options import Options
    from tcc_compiler.pipeline import Compiled

_GRACE = 0.25  # seconds
# Of a run this is an option, too.
_RUN_OPTIONS = ("count_bits",)


class OutOfTime(Exception):
    """The seconds of `--timeout` are over."""


@contextmanager
def at_most(seconds: float | None) -> Iterator[None]:
    """Ends what a command does after `seconds`, in whatever phase it is; None: never.

    What looks at the clock itself ends a little before, and says more.  Without alarms, as on
    Windows, nothing else does.

    Raises:
        OutOfTime: they are over.
    """
    if seconds is None or not hasattr(signal, "setitimer"):
        yield
        return

    def over(_number: int, _frame: object) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, over)
    # Again each second: an exception in a destructor is reported and lost.
    signal.setitimer(signal.ITIMER_REAL, seconds + _GRACE, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def is_regular_file(
    ctx: click.Context, parameter: click.Parameter, value: Path | None
) -> Path | None:
    """Refuses an argument that is none: a callback of click."""
    # A pipe or a device may never end, and is read more than once.
    if value is not None and value is not STDIN and not is_regular(value):
        raise click.BadParameter(f"{str(value)!r} is not a regular file", ctx, parameter)
    return value


INPUT = click.Path(exists=True, dir_okay=False, path_type=Path)
ledger_argument = click.argument("ledger", type=INPUT, callback=is_regular_file)
artifact_argument = click.argument("artifact", type=GIVEN, callback=is_regular_file)
# Of commands that serve: their standard input is the client's.
served_argument = click.argument("artifact", type=INPUT, callback=is_regular_file)
json_option = click.option("--json", "as_json", is_flag=True, help="one JSON document")


def input_option(
    name: str, text: str, *, type: click.Path = INPUT, **more: Any
) -> Callable[..., Any]:
    """An option that names a regular file to read."""
    return click.option(name, type=type, callback=is_regular_file, help=text, **more)


def audit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of commands that validate a ledger: what the auditor knows, and the kernel."""
    for option in (
        click.option(
            "--kernel",
            type=click.Choice(["pure", "fast"]),
            default="pure",
            show_default=True,
            help="pure is the definition alone; fast is for large ledgers",
        ),
        digest_option("--key", "of a session's digests"),
        input_option("--counts", "an exact artifact of the same core, for kappa"),
        bytes_option("--nonce", "the client's own randomness"),
        bytes_option("--beacon", "the public randomness"),
        digest_option("--opening", "what was handed out before beacon and nonce were known"),
        digest_option("--opening-salt", "of the commitment, where it is not derived from the seed"),
        digest_option("--seed", "the seed, where the ledger withholds it"),
    ):
        command = option(command)
    return command


def options_of(given: dict[str, Any]) -> Options:
    """Compiler options from what the command line says, which is taken out of `given`.

    What is compiled is checked by the fast kernel: the pure one would take longer than the compiler
    itself.

    Raises:
        click.ClickException: beta is no exact decimal of at least 0.
    """
    from tcc_certs.errors import Code
    from tcc_certs.formats.decimals import parse_decimal
    from tcc_compiler.options import Options
    from tcc_runtime.fastcheck.kernel import check as fast

    chosen = taken(COMPILING, given)
    beta = chosen["beta"]
    try:
        numerator, _ = parse_decimal(beta, "beta", Code.MANIFEST_VALUE)
    except Rejected:
        numerator = -1
    if numerator < 0:
        raise click.BadParameter(f"{beta!r} is no decimal such as 0.5", param_hint="--beta")
    return Options(check=fast, **chosen)


def show_or_exit(
    compiled: Compiled, *, command: str, output_format: str = "text", keep_warnings: bool = False
) -> None:
    """Show every diagnostic of a compilation; end the command where there is no artifact.

    Args:
        keep_warnings: show nothing where there is an artifact: the command shows its warnings.
    """
    if compiled.unmet:
        from tcc.reasons import with_reasons

        compiled = replace(compiled, diagnostics=with_reasons(compiled))
    if compiled.diagnostics and not (keep_warnings and compiled.artifact is not None):
        from tcc.findings import print_diagnostics

        print_diagnostics(command, compiled.diagnostics, compiled.sources, output_format)
    if compiled.artifact is None:
        from tcc.compilation import only_guards

        guarded = only_guards(compiled.diagnostics)
        click.get_current_context().exit(DECLINED if guarded else FINDINGS)


def trust_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of commands that run an artifact: what of it to check first."""
    for option in (
        digest_option(
            "--checked",
            "the digest of an artifact whose certificates were checked before: "
            "only that it is that one is checked",
        ),
        click.option(
            "--no-verify", is_flag=True, help="check nothing and open at once: nothing is claimed"
        ),
    ):
        command = option(command)
    return command


def open_artifact(
    path: Path,
    *,
    command: str,
    options: Options | None = None,
    checked: bytes | None = None,
    no_verify: bool = False,
    read: list[Path] | None = None,
    beside: Path | None = None,
) -> Artifact:
    """The artifact in `path`, checked; a grammar, in a file or from `-`, is compiled first.

    Args:
        checked, no_verify: of :func:`trust_options`.
        read: gets every file that this was made from, those that a grammar uses, too.
        beside: what else the command opens: of two, one may be a grammar and have the options.
    """
    if checked is not None and no_verify:
        raise click.UsageError("--checked and --no-verify exclude each other")
    read = [] if read is None else read
    read.append(path)
    if not is_grammar(path):
        _refuse_ledger(path)
        if beside is None or not is_grammar(beside):
            refuse_compile_options(_RUN_OPTIONS if command == "run" else ())
    elif checked is not None or no_verify:
        raise click.UsageError("--checked and --no-verify are for artifacts, and this is a grammar")
    else:
        from tcc.compilation import check_for_use, opened
        from tcc_compiler.options import Options

        compiled = compile_given(path, replace(options or Options(), check=check_for_use))
        read.extend(source.path for source in compiled.sources.values() if source.path is not None)
        failed = compiled.artifact is None
        show_or_exit(compiled, command=command, output_format=_asked() if failed else "text")
        if compiled.artifact is not None:
            return opened(compiled)
    try:
        return load(path, verify=not no_verify, checked=None if checked is None else checked.hex())
    except Rejected as refusal:
        refuse(path, refusal)
    except OSError as error:
        raise click.ClickException(f"cannot read {path}: {error.strerror or error}") from None


def require_artifact(path: Path) -> None:
    """Where only an artifact will do, say of a grammar or a ledger what it is, and what to do."""
    if is_grammar(path):
        name, made = ("-", "A.tcca") if path is STDIN else (path, path.with_suffix(".tcca"))
        raise click.UsageError(
            f"{path} is a grammar, and certificates are in artifacts: "
            f"run `tcc compile {name} -o {made}` first, then name {made} here"
        )
    _refuse_ledger(path)


def require_ledger(path: Path) -> None:
    """Where only a ledger will do, say of a grammar or an artifact that it is one."""
    if path.suffix == ".tcg":
        raise click.UsageError(f"{path} is a grammar, and no ledger")
    if looks_like_artifact(first_bytes(path)):
        raise click.UsageError(f"{path} is an artifact, and no ledger: see `tcc check {path}`")


def _refuse_ledger(path: Path) -> None:
    if looks_like_ledger(first_bytes(path)):
        raise click.UsageError(
            f"{path} is a ledger, and no artifact: see `tcc validate {path} --artifact ARTIFACT`"
        )


def refuse_compile_options(but: Sequence[str] = ()) -> None:
    """An artifact is compiled already: an option of the compiler would do nothing."""
    ctx = click.get_current_context()
    for option in COMPILING:
        given = ctx.get_parameter_source(option.name) not in (None, ParameterSource.DEFAULT)
        if given and option.name not in but:
            raise click.UsageError(
                f"{flag(option)} is for compiling a grammar, and this is an artifact", ctx
            )


def _asked() -> str:
    """The format of findings that the command line asks for."""
    params = click.get_current_context().params
    if params.get("as_json"):
        return "json"
    asked = str(params.get("output_format", "text"))
    return asked if asked in ("json", "sarif", "github") else "text"


def refuse(path: Path, refusal: Rejected) -> NoReturn:
    """Say why an input is refused, and end the command."""
    verdict = "declined" if refusal.code.declines else "invalid"
    screen.say(f"{path}: {verdict}: {refusal}", err=True)
    asked = _asked()
    if asked == "json":
        finding = {
            "code": refusal.code.value,
            "path": refusal.path,
            "expected": refusal.expected,
            "found": refusal.found,
        }
        screen.print_json("error", {"error": str(refusal), "findings": [finding]})
    elif asked != "text":
        from tcc.findings import print_found
        from tcc.found import of_refusal

        print_found([of_refusal(refusal, path)], asked)
    raise click.exceptions.Exit(DECLINED if refusal.code.declines else FINDINGS)
