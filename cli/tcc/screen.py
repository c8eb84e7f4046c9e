"""Output of the commands: lines and tables for people, JSON documents, live progress, exit codes.

People get plain text, coloured on a terminal only.  ``--json`` prints one object whose first
members are ``format`` and ``format_version``.  All commands print through this module.  Text from
files, paths and errors cannot break a line: hidden and control characters are escaped
(:mod:`tcc_certs.errors`), in text and in JSON.  Imports only click and the standard library at
first, so that ``tcc --version`` stays fast.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

import click

if TYPE_CHECKING:
    from tcc_runtime.outcome import Progress

FORMAT_VERSION = "1.0"

# Exit codes of every command.
CLEAN = 0
FINDINGS = 1
BAD_USAGE = 2
DECLINED = 2
INTERNAL = 3

OnPass: TypeAlias = Callable[[str, int], None]
OnSearch: TypeAlias = "Callable[[float, int, int], None]"
OnExpand: TypeAlias = "Callable[[Progress], bool | None]"
_REDRAW = 0.1  # seconds between two updates of the live line
_Q64 = 1 << 64


def say(*cells: str, err: bool = False, **style: Any) -> None:
    """Print one line.

    Args:
        cells: the parts of the line, escaped and joined by tabs.
        err: whether to print to stderr instead of stdout.
        style: arguments of :func:`click.style`, visible on a terminal only.
    """
    text = "\t".join(_shown(cell, err) for cell in cells)
    click.echo(click.style(text, **style) if style else text, err=err)


def say_lines(text: str, *, err: bool = False) -> None:
    """Print a text of several lines; each line is escaped."""
    for line in text.split("\n"):
        say(line, err=err)


def say_text(text: str) -> None:
    """Print the text of a file unchanged, for other programs; escape it on a terminal."""
    if sys.stdout.isatty():
        say_lines(text.removesuffix("\n"))
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
    sys.stdout.buffer.flush()


def say_json(document: str) -> None:
    """Print a JSON text with hidden characters escaped."""
    from tcc_certs.errors import escaped_json

    click.echo(_encodable(escaped_json(document), False))


class Declared(Protocol):
    """The interface of the classes in :mod:`tcc.outputs`, which is not imported here: it is
    slow."""

    document: ClassVar[str]

    def as_fields(self) -> dict[str, Any]:
        """Return the members of the document in order, as plain JSON values."""


def print_output(output: Declared, document: str | None = None) -> None:
    """Print the JSON document of a command.

    Args:
        document: the name of the document; None takes the name that `output` declares.
    """
    print_document(headed(document or output.document, output.as_fields()))


def headed(document: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a document, preceded by ``format`` and ``format_version``."""
    return {"format": f"tcc.{document}", "format_version": FORMAT_VERSION} | dict(fields)


def print_document(document: Mapping[str, Any]) -> None:
    """Print a JSON document."""
    say_json(json.dumps(document, indent=2, ensure_ascii=False))


def print_fields(rows: Iterable[tuple[str, object]]) -> None:
    """Print names and values in two columns."""
    rows = list(rows)
    width = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        text = _shown(str(value), False)
        click.echo(f"  {click.style(name.ljust(width), dim=True)}  {text}")


def _shown(text: str, err: bool) -> str:
    """Return `text` with hidden characters escaped, as the stream's encoding can print it."""
    if not (text.isascii() and text.isprintable()):
        from tcc_certs.errors import escaped  # lazily, so that `tcc --version` stays fast

        text = escaped(text)
    return _encodable(text, err)


def _encodable(text: str, err: bool) -> str:
    """Return `text` with characters that the stream's encoding lacks as backslash escapes."""
    encoding = (sys.stderr if err else sys.stdout).encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def drop_unwritten() -> None:
    """Flush stdout and stderr; if that fails, discard their buffers so that the exit is silent."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if not stream.closed:
                stream.flush()
    except OSError:
        # Imported lazily: `tcc --help` loads no other package.
        from tcc_certs.verbs import answer

        answer.drop_unwritten()


def good(text: str) -> None:
    """Print a successful result, in green."""
    say(text, fg="green", bold=True)


def bad(text: str) -> None:
    """Print a failure, in red."""
    say(text, fg="red", bold=True)


def doubtful(text: str) -> None:
    """Print a result that claims nothing, in yellow."""
    say(text, fg="yellow", bold=True)


def warn(text: str) -> None:
    """Print a warning to stderr."""
    say(text, fg="yellow", err=True)


def decimal(value: int) -> str:
    """Return the decimal text of an integer of any size (`str` refuses more than 4300 digits)."""
    if value.bit_length() <= _SHORT:
        return str(value)
    import gmpy2

    return str(gmpy2.mpz(value).digits())


_SHORT = 8192  # bits, fewer than 4300 digits


def big(value: int) -> str:
    """Return a count for people: `12 345` up to 15 digits, then such as `1.23 * 10^17`."""
    return big_text(decimal(value))


def big_text(digits: str) -> str:
    """Do the same as :func:`big` for a count that is decimal text already."""
    if len(digits) <= 15:
        return f"{int(digits):,}".replace(",", " ")
    return f"{digits[0]}.{digits[1:3]} * 10^{len(digits) - 1}"


@contextmanager
def live_line(*, quiet: bool) -> Iterator[OnExpand | None]:
    """Yield a callback that redraws one line with a run's progress, or None without a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    # Drawn in this thread: an interrupted run must not wait for the lock of a drawing thread.
    with Live(console=Console(stderr=True), auto_refresh=False, transient=True) as live:
        last = 0.0

        def on_expand(progress: Progress) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= _REDRAW:
                last = now
                live.update(Text(run_line(progress), style="dim"), refresh=True)

        yield on_expand


def run_line(progress: Progress) -> str:
    """Return the live line of a run: incumbent, bound, gap and expansions, rounded."""
    return (
        f"incumbent {_key_text(progress.incumbent)}  bound {_key_text(progress.bound)}  "
        f"gap {_key_text(progress.gap)}  expansions {progress.expansions}"
    )


def _key_text(value: int | None) -> str:
    return "-" if value is None else f"{value / _Q64:.4f}"


@contextmanager
def compile_line(*, quiet: bool) -> Iterator[OnPass | None]:
    """Yield a callback for the compiler's progress, or None if stderr is no terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    with Live(console=Console(stderr=True), auto_refresh=False, transient=True) as live:
        # The compiler calls a few times a second at most.
        yield lambda name, states: live.update(
            Text(compiling_line(name, states), style="dim"), refresh=True
        )


@contextmanager
def count_line(what: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Yield a callback `(done, of)` that redraws one line; without a terminal it does nothing."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, of: None
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    with Live(console=Console(stderr=True), auto_refresh=False, transient=True) as live:
        yield lambda done, of: live.update(
            Text(f"{what}: {done} of {of}", style="dim"), refresh=True
        )


def compiling_line(name: str, states: int) -> str:
    """Return the live line of a compilation: the pass, and the number of states so far."""
    return f"compiling: {name}" + (f", {states} states" if states else "")


@contextmanager
def prove_line(*, quiet: bool) -> Iterator[OnSearch | None]:
    """Yield a callback for the progress of a proof search, or None if stderr is no terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    with Live(console=Console(stderr=True), auto_refresh=False, transient=True) as live:
        # The engine calls a few times a second.
        yield lambda seconds, rounds, states: live.update(
            Text(proving_line(seconds, rounds, states), style="dim"), refresh=True
        )


def proving_line(seconds: float, rounds: int, states: int) -> str:
    """Return the live line of a proof search: seconds so far, round, and open branches."""
    return f"proving: {seconds:.0f} s, round {rounds}, {states} branches"


def version() -> str:
    """Return the version of the installed package, or `0+unknown` for a source tree."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("tcc")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "0+unknown"
