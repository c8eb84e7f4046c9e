"""Files that commands read: regular files, grammars in folders, and standard input.

`-` names a grammar on standard input.  Diagnostics call it ``<stdin>``, and files that it uses are
looked up from the working directory.  Standard input is read once, up to the size limit of
grammars.  :mod:`tcc_runtime.ledger.outputs` writes files.  Imports click lazily, because batches
and the library use this module without a command.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tcc_compiler.frontend import Compiled as Frontend
    from tcc_compiler.options import Options
    from tcc_compiler.pipeline import Compiled

GRAMMAR_ENDING: Final = ".tcg"
GRAMMAR_ENDINGS: Final = frozenset({GRAMMAR_ENDING, ".graphml", ".json"})
# Compared by identity (`is`), because a real file may also be named `<stdin>`.
STDIN: Final = Path("<stdin>")
_READ = "tcc.stdin"
_HEAD = 1 << 16


def is_regular(path: Path) -> bool:
    """Return whether a path is a regular file.  Reading a pipe or a device might never end."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False


def looks_like_ledger(first: bytes) -> bool:
    """Return whether these first bytes look like the ledger of a run or a session.

    Used for better error messages only; the validator decides.
    """
    line = first.partition(b"\n")[0]
    return line[:2] == b'{"' and (b'"kind":"open"' in line or b'"kind":"session"' in line)


def looks_like_artifact(first: bytes) -> bool:
    """Return whether these first bytes look like an artifact: a length, then a JSON header."""
    return first[4:8] == bytes(4) and first[8:9] == b"{"


def first_bytes(path: Path) -> bytes:
    """Return the first 64 KiB of a regular file, or no bytes if it cannot be read."""
    if not is_regular(path):
        return b""
    try:
        with path.open("rb") as file:
            return file.read(_HEAD)
    except OSError:
        return b""


def same_file(path: Path, others: Iterable[Path]) -> bool:
    """Return whether `path` exists and, after following links, is the same file as any other."""
    return path.exists() and any(other.exists() and path.samefile(other) for other in others)


def ledger_name(folder: Path, number: int) -> Path:
    """Return the path of a run's ledger in a batch folder; runs are numbered from 1."""
    return folder.resolve() / f"{number:08d}.ledger"


def is_grammar(path: Path) -> bool:
    """Return whether a path is a grammar to compile: STDIN, or a file with a grammar's suffix."""
    return path is STDIN or path.suffix in GRAMMAR_ENDINGS


def read_stdin() -> bytes:
    """Read standard input, up to one byte more than a grammar may have.

    Raises:
        click.UsageError: the command has already read standard input, or it is closed.
    """
    import click

    from tcc_compiler.language.source import MAX_SOURCE_BYTES

    meta = click.get_current_context().find_root().meta
    if meta.setdefault(_READ, 0):
        raise click.UsageError("standard input is read once: name one grammar by `-`")
    meta[_READ] = 1
    if sys.stdin is None:
        raise click.UsageError("standard input is closed")
    return sys.stdin.buffer.read(MAX_SOURCE_BYTES + 1)


def compile_given(path: Path, options: Options, *, examples: bool = True) -> Compiled:
    """Compile a grammar from a file or standard input.

    Args:
        examples: whether a failing example or expectation is an error.
    """
    from tcc_compiler.pipeline import compile_bytes, compile_file

    if path is not STDIN:
        return compile_file(path, options, examples=examples)
    return compile_bytes(read_stdin(), options, str(STDIN), Path(), examples=examples)


def read_given(path: Path) -> Frontend:
    """Read a grammar from a file or standard input, up to its core; compile nothing."""
    from tcc_compiler.frontend import read_grammar_bytes
    from tcc_compiler.pipeline import read_source

    if path is not STDIN:
        return read_source(path)
    return read_grammar_bytes(read_stdin(), str(STDIN), Path())


def files_of(named: Iterable[Path]) -> list[Path]:
    """Return the named files, and the grammars below the named folders, each once; keep STDIN.

    Raises:
        click.BadParameter: a folder contains no grammar, or a file is a graph instead of text.
    """
    import click

    found: dict[Path, None] = {}
    for path in named:
        if path is not STDIN and path.is_dir():
            inside = sorted(_below(path))
            if not inside:
                raise click.BadParameter(f"there is no {GRAMMAR_ENDING} file in {path}")
            found |= dict.fromkeys(inside)
        elif path.suffix in (".graphml", ".json"):
            raise click.BadParameter(f"{path} is a graph, and this is about texts")
        else:
            found[path] = None
    return list(found)


def _below(folder: Path) -> Iterator[Path]:
    """Yield the grammars in a folder and its subfolders; skip hidden folders."""
    for top, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(top) / name for name in files if name.endswith(GRAMMAR_ENDING))
