"""``--watch``: the same work again whenever a grammar, or a file that it uses, has changed.

Files are looked at five times a second: when they were changed, their size and their number on the
disk.  What has changed is read when it stays as it is from one look to the next, or after two
seconds.  A file that is away is waited for.  Cost: a look-up for each file, each time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import click

from tcc import screen
from tcc.files import STDIN
from tcc.screen import BAD_USAGE, DECLINED

if TYPE_CHECKING:
    from tcc_compiler.pipeline import Compiled

See: TypeAlias = "Callable[[Compiled], None]"
Stamp: TypeAlias = "tuple[int, int, int] | None"
EVERY = 0.2  # seconds between two looks

watch_option = click.option(
    "--watch",
    "watching",
    is_flag=True,
    help="do it again whenever a file has changed, until Ctrl-C",
)


def require_watchable(grammars: Iterable[Path], output_format: str) -> None:
    """Refuse to watch standard input, and to print several documents where one is due.

    Raises:
        click.UsageError: as said.
    """
    if any(path is STDIN for path in grammars):
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
    """Do `work`, and again whenever a file has changed, until the process is interrupted.

    Args:
        grammars: the files that are named.
        work: gives its exit code; it calls what it is given with each compilation.

    Returns:
        the exit code of the last work that was done; 2 where none was.
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
    """The files of the last work, and how they were.

    Invariant: a file is in `stamps` as it was read; one that could not be read as it was before.
    """

    def __init__(self, grammars: Sequence[Path]) -> None:
        self.stamps: dict[Path, Stamp] = dict.fromkeys(grammars)
        self.texts: dict[Path, str] = {}

    def begin(self) -> None:
        """Look at the files that are known, before they are read."""
        self.texts = {}
        self.stamps = {path: stamp(path) for path in self.stamps}

    def take(self, compiled: Compiled) -> None:
        """Note the files of a compilation: those that were read, and those that it asked for."""
        from tcc_compiler.resolve.program import asked_for

        for source in compiled.sources.values():
            if source.path is not None:
                self.texts[source.path] = source.text
            for path in asked_for(source):
                self.stamps.setdefault(path, stamp(path))

    def end(self) -> None:
        """Look at what was read; a file that is another one by now has changed."""
        for path, text in self.texts.items():
            self.stamps[path] = stamp(path)
            if not _holds(path, text):
                self.stamps[path] = _OTHER

    def changed(self) -> bool:
        """Whether some file is not as it was."""
        return any(stamp(path) != known for path, known in self.stamps.items())

    def settle(self, sleep: Callable[[float], None]) -> None:
        """Wait while files change from look to look: who writes one is seldom done at a stroke."""
        for _ in range(_PATIENCE):
            before = [stamp(path) for path in self.stamps]
            sleep(EVERY)
            if before == [stamp(path) for path in self.stamps]:
                return

    def text(self) -> str:
        """How many files are watched, for people."""
        # The file that is named and its resolved path are one.
        number = len({os.path.realpath(path) for path in self.stamps})
        return "1 file" if number == 1 else f"{number} files"


_PATIENCE = 10  # looks, at a file that changes all the time
_OTHER = (-1, -1, -1)  # no file is like this


def _holds(path: Path, text: str) -> bool:
    try:
        return path.read_bytes() == text.encode()
    except OSError:
        return False


def _ended(work: Callable[[See], int], see: See) -> int:
    """The exit code of a piece of work, however it ended; what went wrong is said."""
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
    """When a file was changed (ns), its size in bytes and its number; None where there is none."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
