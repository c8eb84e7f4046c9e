"""Opens the inputs of commands: artifacts, grammars, quotes, atoms, accounts, adapters.

A grammar is compiled first.  A refused input is reported and ends the command: exit code 2 if the
input is declined (a limit, not a fault), else 1.  :func:`at_most` implements ``--timeout`` even for
work that does not read the clock.  :func:`watch` implements ``--watch``.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import click
from click.core import ParameterSource

from tcc import files, screen
from tcc.options import COMPILING, Config, ConfigError, find_config, flag, taken
from tcc.screen import BAD_USAGE, DECLINED, FINDINGS
from tcc_certs.errors import Rejected
from tcc_certs.values.declared import PathType, TextType, UrlType
from tcc_runtime.artifact.load import Artifact, load

if TYPE_CHECKING:
    from tcc_certs.policy.atoms import Atom
    from tcc_compiler.options import Options
    from tcc_compiler.pipeline import Compiled
    from tcc_runtime.account.account import Account
    from tcc_runtime.adapters.adapter import Adapter
    from tcc_runtime.pricing.quotes import QuoteBook

CLAIM = "claim:"  # precedes the name of a token's claim in a value of `--given`
_GRACE = 0.25  # seconds
# Compiler options that `tcc run` accepts for artifacts too, because they are also run options.
_RUN_OPTIONS = ("count_bits",)


class OutOfTime(Exception):
    """The time limit of `--timeout` has passed."""


@contextmanager
def at_most(seconds: float | None) -> Iterator[None]:
    """Interrupt the block after `seconds`; None sets no limit.

    The alarm comes 0.25 s late, so that phases which read the clock can end first with a more
    precise message.  On systems without alarms, such as Windows, only those phases end.

    Raises:
        OutOfTime: the time limit has passed.
    """
    if seconds is None or not hasattr(signal, "setitimer"):
        yield
        return

    def over(_number: int, _frame: object) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, over)
    # Repeated each second, because an exception raised inside a destructor is lost.
    signal.setitimer(signal.ITIMER_REAL, seconds + _GRACE, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def config_of(given: dict[str, Any], file: Path, *, output_format: str = "text") -> Config:
    """Return the configuration of a file; remove `config` and `no_config` from `given`.

    Raises:
        click.UsageError: both `config` and `no_config` are set.
        click.exceptions.Exit: the configuration is refused; its diagnostics were printed.
    """
    ctx = click.get_current_context()
    chosen, none = given.pop("config", None), given.pop("no_config", False)
    if chosen is not None and none:
        raise click.UsageError("--config and --no-config exclude each other", ctx)
    if none or (chosen is None and find_config(file) is None):
        return Config()
    from tcc.configuration import config_for

    try:
        return config_for(file, chosen)
    except ConfigError as error:
        from tcc.findings import print_diagnostics

        command = ctx.info_name or "error"
        sources = {error.source.name: error.source}
        print_diagnostics(command, error.diagnostics, sources, output_format)
        raise click.exceptions.Exit(BAD_USAGE) from None


def options_of(given: dict[str, Any]) -> Options:
    """Return the compiler options of the command line, and remove them from `given`.

    The fast kernel checks the compiled artifact, as the pure one takes longer than the compiler.

    Raises:
        click.BadParameter: beta is no exact decimal of at least 0.
    """
    from tcc.library import answers
    from tcc_certs.errors import Code
    from tcc_certs.formats.codec import parse_decimal
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
    return Options(check=fast, answers=answers, **chosen)


def show_or_exit(
    compiled: Compiled, *, command: str, output_format: str = "text", keep_warnings: bool = False
) -> None:
    """Print the diagnostics of a compilation; end the command if there is no artifact.

    Args:
        keep_warnings: print nothing if there is an artifact, because the command prints the
            warnings itself.
    """
    if compiled.unmet:
        from tcc.library.plan_questions import with_reasons

        compiled = replace(compiled, diagnostics=with_reasons(compiled))
    if compiled.diagnostics and not (keep_warnings and compiled.artifact is not None):
        from tcc.findings import print_diagnostics

        print_diagnostics(command, compiled.diagnostics, compiled.sources, output_format)
    if compiled.artifact is None:
        from tcc.library import only_guards

        guarded = only_guards(compiled.diagnostics)
        click.get_current_context().exit(DECLINED if guarded else FINDINGS)


def open_artifact(
    path: Path,
    *,
    command: str,
    options: Options | None = None,
    checked: bytes | None = None,
    no_verify: bool = False,
    read: list[Path] | None = None,
    beside: Path | None = None,
    examples: bool = True,
    bounds: Sequence[str] = (),
    gate: bool = False,
) -> Artifact:
    """Open and check an artifact; compile a grammar, from a file or from `-`, first.

    Args:
        checked, no_verify: values of :func:`trust_options`.
        read: a list that receives the path of every file read, including files that a grammar uses.
        beside: the other input of the command.  If it is a grammar, compiler options are accepted
            although `path` is an artifact.
        examples: whether a failing example or expectation of a grammar is an error.
        bounds: compiler options that are accepted with an artifact too, because they bound the
            command as well.
        gate: whether to compile a grammar for a gate if the options name no purpose.

    Raises:
        click.UsageError: options exclude each other, or do not fit an artifact or a grammar.
        click.exceptions.Exit: the input is refused or has errors; the reason was printed.
        click.ClickException: the file cannot be read.
    """
    if checked is not None and no_verify:
        raise click.UsageError("--checked and --no-verify exclude each other")
    read = [] if read is None else read
    read.append(path)
    if not files.is_grammar(path):
        _refuse_ledger(path)
        if beside is None or not files.is_grammar(beside):
            refuse_compile_options(_RUN_OPTIONS if command == "run" else bounds)
    elif checked is not None or no_verify:
        raise click.UsageError("--checked and --no-verify are for artifacts, and this is a grammar")
    else:
        from tcc.library import check_for_use, opened
        from tcc_compiler.options import Options

        options = replace(options or Options(), check=check_for_use)
        if gate and options.purpose is None:
            options = replace(options, purpose="gate")
        compiled = files.compile_given(path, options, examples=examples)
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


def open_bounded(path: Path, **more: Any) -> Artifact:
    """Open an artifact as :func:`open_artifact` does; decline one with unbounded plans (D204)."""
    opened = open_artifact(path, **more)
    try:
        opened.require_bounded()
    except Rejected as refusal:
        refuse(path, refusal)
    return opened


def require_artifact(path: Path) -> None:
    """Reject a grammar or a ledger where an artifact is needed, and name the command to run."""
    if files.is_grammar(path):
        name, made = ("-", "A.tcca") if path is files.STDIN else (path, path.with_suffix(".tcca"))
        raise click.UsageError(
            f"{path} is a grammar, and certificates are in artifacts: "
            f"run `tcc compile {name} -o {made}` first, then name {made} here"
        )
    _refuse_ledger(path)


def require_ledger(path: Path) -> None:
    """Reject a grammar or an artifact where the command needs a ledger."""
    if path.suffix == ".tcg":
        raise click.UsageError(f"{path} is a grammar, and no ledger")
    if files.looks_like_artifact(files.first_bytes(path)):
        raise click.UsageError(f"{path} is an artifact, and no ledger: see `tcc check {path}`")


def _refuse_ledger(path: Path) -> None:
    if files.looks_like_ledger(files.first_bytes(path)):
        raise click.UsageError(
            f"{path} is a ledger, and no artifact: see `tcc validate {path} --artifact ARTIFACT`"
        )


def refuse_compile_options(but: Sequence[str] = ()) -> None:
    """Reject compiler options if the input is an artifact: they would have no effect."""
    ctx = click.get_current_context()
    for option in COMPILING:
        given = ctx.get_parameter_source(option.name) not in (None, ParameterSource.DEFAULT)
        if given and option.name not in but:
            raise click.UsageError(
                f"{flag(option)} is for compiling a grammar, and this is an artifact", ctx
            )


def _asked() -> str:
    """Return the output format that the command line requests."""
    params = click.get_current_context().params
    if params.get("as_json"):
        return "json"
    asked = str(params.get("output_format", "text"))
    return asked if asked in ("json", "sarif", "github") else "text"


def refuse(path: Path, refusal: Rejected) -> NoReturn:
    """Print the reason why an input is refused, and end the command."""
    verdict = "declined" if refusal.code.declines else "invalid"
    screen.say(f"{path}: {verdict}: {refusal}", err=True)
    asked = _asked()
    if asked == "json":
        from tcc.outputs import RuleFindingJson
        from tcc.outputs.verdicts import ErrorOutput

        finding = RuleFindingJson(
            code=refusal.code.value,
            path=refusal.path,
            expected=refusal.expected,
            found=refusal.found,
        )
        screen.print_output(ErrorOutput(error=str(refusal), findings=[finding]))
    elif asked != "text":
        from tcc.findings import of_refusal, print_found

        print_found([of_refusal(refusal, path)], asked)
    raise click.exceptions.Exit(DECLINED if refusal.code.declines else FINDINGS)


@contextmanager
def refusing(path: Path) -> Iterator[None]:
    """Context manager that prints a refusal of the file `path` and ends the command."""
    try:
        yield
    except Rejected as refusal:
        refuse(path, refusal)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Context manager that reports a failed write with the path of the file.

    Raises:
        click.ClickException: the block raised OSError.
    """
    try:
        yield
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror or error}") from None


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    with refusing(path):
        try:
            yield
        except OSError as error:
            raise click.ClickException(f"{path}: {error.strerror}") from None


def quotes_in(path: Path, artifact: Artifact) -> QuoteBook:
    """Return the quotes in a file, checked against an artifact; a refused book ends the command."""
    from tcc_runtime.pricing.quotes import read_quotes

    with _reading(path):
        return read_quotes(path.read_bytes(), artifact)


def atoms_in(path: Path) -> tuple[Atom, ...]:
    """Return the atoms in a file, or on standard input for `-`; a refused list ends the command.

    Raises:
        click.ClickException: the file cannot be read, or standard input is closed.
    """
    from tcc_certs.privacy.atoms_file import MAX_BYTES, read_atoms

    with _reading(path):
        return read_atoms(_data(path, MAX_BYTES + 1))


def account_in(path: Path, wait_ms: int | None = None) -> Account:
    """Open the account in a file; a refused account ends the command.

    Args:
        wait_ms: how long to wait while other processes lock the account, in milliseconds; None is
            the default of accounts.
    """
    from tcc_runtime.account.account import WAIT_MS, Account

    with refusing(path):
        return Account(path, must_exist=True, wait_ms=WAIT_MS if wait_ms is None else wait_ms)


def adapters_in(registry: Path) -> tuple[Adapter, ...]:
    """Return the adapters of a registry, each checked against its folder.

    A refused registry ends the command.

    Raises:
        tcc_runtime.adapters.registry.ReaderMissing: safetensors is not installed.
    """
    from tcc_runtime.adapters.registry import read_registry

    with refusing(registry):
        return read_registry(registry)


def given_in(told: Sequence[str], artifact: Artifact) -> dict[str, Any] | None:
    """Return the attributes of a session from `NAME=VALUE` texts; None if `told` is empty.

    Texts, listed values, paths, URLs, times and dates are taken literally.  Other values are parsed
    as JSON.  The gate checks them against the grammar.

    Raises:
        click.BadParameter: a pair is malformed or repeated, or its value is a claim of a token.
    """
    if not told:
        return None
    from tcc_certs.values.fields import DateType, Field, TimeType  # not needed to compile

    written = (DateType, PathType, TextType, TimeType, UrlType)
    plain = {
        one.name
        for one in artifact.core.given
        if isinstance(one, Field) and (one.type is None or isinstance(one.type, written))
    }
    found: dict[str, Any] = {}
    for pair in told:
        name, equals, value = pair.partition("=")
        if not (name and equals):
            raise click.BadParameter(f"{pair!r} is no NAME=VALUE", param_hint="--given")
        if name in found:
            raise click.BadParameter(f"{name!r} is given twice", param_hint="--given")
        if value.startswith(CLAIM):
            # As a literal text, the claim's name would be the same value for every session.
            raise click.BadParameter(
                f"{pair!r}: claims are of a token, with --http and --jwt-key", param_hint="--given"
            )
        found[name] = value if name in plain else _value(value)
    return found


def _value(text: str) -> Any:
    """Return the JSON value of a text, or the text itself if it is no JSON."""
    try:
        return json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError):
        return text


def _data(path: Path, most: int) -> bytes:
    """Return at most `most` bytes of a file or standard input; the caller refuses longer input."""
    if str(path) == "-":
        if sys.stdin is None:
            raise click.UsageError("standard input is closed")
        return sys.stdin.buffer.read(most)
    if path.exists() and not files.is_regular(path):
        raise click.ClickException(f"{path} is not a regular file")
    with path.open("rb") as handle:
        return handle.read(most)


# ``--watch`` repeats the work whenever a grammar or a file that it uses has changed.
# Every 0.2 s the modification time, size and inode of each file are read.  After a change the work
# waits until two looks agree, at most two seconds, and then runs again.  A missing file has changed
# when it appears.

See: TypeAlias = "Callable[[Compiled], None]"
Stamp: TypeAlias = "tuple[int, int, int] | None"
EVERY = 0.2  # seconds between two looks

watch_option = click.option(
    "--watch",
    "watching",
    is_flag=True,
    help="repeat whenever a file changes, until Ctrl-C",
)


def require_watchable(grammars: Iterable[Path], output_format: str) -> None:
    """Reject `--watch` for standard input and for formats that print a single document.

    Raises:
        click.UsageError: standard input or such a format is given.
    """
    if any(path is files.STDIN for path in grammars):
        raise click.UsageError("--watch is for files, and `-` is standard input")
    if output_format in ("json", "sarif"):
        raise click.UsageError(f"--watch prints many results, and {output_format} is one document")


def watch(
    grammars: Sequence[Path],
    work: Callable[[See], int],
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], str] = lambda: time.strftime("%H:%M:%S"),
) -> int:
    """Do `work`, then repeat it whenever a file changes, until Ctrl-C.

    Args:
        grammars: the files that the user named.
        work: does the work and returns its exit code.  It calls its argument with each compilation,
            so that files used by a grammar are watched too.
        sleep: waits that many seconds between two looks.
        clock: returns the time to print before each run.

    Returns:
        the exit code of the last completed work, or 2 if none was completed.
    """
    code = DECLINED
    seen = _Seen(grammars)
    try:
        while True:
            screen.say(f"[{clock()}] {', '.join(map(str, grammars))}", err=True, dim=True)
            seen.begin()
            code = _ended(work, seen.take)
            seen.end()
            screen.say(f"watching {seen.text()}; Ctrl-C ends", err=True, dim=True)
            while not seen.changed():
                sleep(EVERY)
            seen.settle(sleep)
    except KeyboardInterrupt:
        return code


class _Seen:
    """The watched files and their stamps when they were last read.

    Invariant: `stamps` has the stamp of the content that was read.  For a file that could not be
    read it has the stamp from before the attempt.
    """

    def __init__(self, grammars: Sequence[Path]) -> None:
        self.stamps: dict[Path, Stamp] = dict.fromkeys(grammars)
        self.texts: dict[Path, str] = {}

    def begin(self) -> None:
        """Record the stamps of the known files before the work reads them."""
        self.texts = {}
        self.stamps = {path: stamp(path) for path in self.stamps}

    def take(self, compiled: Compiled) -> None:
        """Add the files that a compilation read, and the files that the grammar names."""
        from tcc_compiler.names.files import used_files

        for source in compiled.sources.values():
            if source.path is not None:
                self.texts[source.path] = source.text
            for path in used_files(source):
                self.stamps.setdefault(path, stamp(path))

    def end(self) -> None:
        """Record the stamps after the work; mark a file as changed if its text differs by now."""
        for path, text in self.texts.items():
            self.stamps[path] = stamp(path)
            if not _holds(path, text):
                self.stamps[path] = _OTHER

    def changed(self) -> bool:
        """Return whether the stamp of any file differs from the recorded one."""
        return any(stamp(path) != known for path, known in self.stamps.items())

    def settle(self, sleep: Callable[[float], None]) -> None:
        """Wait until two looks agree, at most ten looks: writing a file may take several steps."""
        for _ in range(_PATIENCE):
            before = [stamp(path) for path in self.stamps]
            sleep(EVERY)
            if before == [stamp(path) for path in self.stamps]:
                return

    def text(self) -> str:
        """Return the number of watched files, for people."""
        # A named path and its resolved path count as one file.
        number = len({os.path.realpath(path) for path in self.stamps})
        return "1 file" if number == 1 else f"{number} files"


_PATIENCE = 10  # looks at a file that keeps changing
_OTHER = (-1, -1, -1)  # equals no real stamp


def _holds(path: Path, text: str) -> bool:
    try:
        return path.read_bytes() == text.encode()
    except OSError:
        return False


def _ended(work: Callable[[See], int], see: See) -> int:
    """Return the exit code of the work however it ended; print its error."""
    try:
        return work(see)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.ClickException as error:
        screen.say(f"Error: {error.format_message()}", err=True)
    except OSError as error:
        screen.say(f"Error: {error.filename}: {error.strerror or error}", err=True)
    return BAD_USAGE


def stamp(path: Path) -> Stamp:
    """Return a file's modification time (ns), size (bytes) and inode; None if it does not exist."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
