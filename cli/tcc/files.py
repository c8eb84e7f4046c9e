"""Files that commands read: regular ones, grammars in folders, and standard input.

`-` names a grammar on standard input; diagnostics call it ``<stdin>``, and the files that it uses
lie in the working directory or below.  It is read once, up to the largest size of a grammar.  Files
are written by :mod:`tcc_runtime.ledger.outputs`.  Imports no click, as batches and the library read
files too.
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
# Standard input, by identity: a file may have this name too.
STDIN: Final = Path("<stdin>")
_READ = "tcc.stdin"
_HEAD = 1 << 16


def is_regular(path: Path) -> bool:
    """Whether a path is a regular file: a pipe or a device may never end."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False


def looks_like_ledger(first: bytes) -> bool:
    """Whether a file with these first bytes looks like a ledger, of a run or of a session.

    A guess for messages; the validator decides.
    """
    line = first.partition(b"\n")[0]
    return line[:2] == b'{"' and (b'"kind":"open"' in line or b'"kind":"session"' in line)


def looks_like_artifact(first: bytes) -> bool:
    """Whether a file with these first bytes looks like an artifact: a length, then its header."""
    return first[4:8] == bytes(4) and first[8:9] == b"{"


def first_bytes(path: Path) -> bytes:
    """First bytes of a regular file; none where it cannot be read."""
    if not is_regular(path):
        return b""
    try:
        with path.open("rb") as file:
            return file.read(_HEAD)
    except OSError:
        return b""


def same_file(path: Path, others: Iterable[Path]) -> bool:
    """Whether `path` exists and is one of `others`, through links."""
    return path.exists() and any(other.exists() and path.samefile(other) for other in others)


def ledger_name(folder: Path, number: int) -> Path:
    """Path of the ledger of a batch's run, numbered from 1."""
    return folder.resolve() / f"{number:08d}.ledger"


def is_grammar(path: Path) -> bool:
    """Whether a path is a grammar to compile: standard input, or a file with its suffix."""
    return path is STDIN or path.suffix in GRAMMAR_ENDINGS


def read_stdin() -> bytes:
    """Read standard input, up to one byte more than a grammar may have.

    Raises:
        click.UsageError: this command has read it already, or it is closed.
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
    """Compile a grammar, as :func:`tcc_compiler.pipeline.compile_file` does.

    Args:
        examples: whether its examples and expectations have to hold.
    """
    from tcc_compiler.pipeline import compile_bytes, compile_file

    if path is not STDIN:
        return compile_file(path, options, examples=examples)
    return compile_bytes(read_stdin(), options, str(STDIN), Path(), examples=examples)


def read_given(path: Path) -> Frontend:
    """Read a grammar to its core, as :func:`tcc_compiler.pipeline.read_source` does."""
    from tcc_compiler.frontend import read_grammar_bytes
    from tcc_compiler.pipeline import read_source

    if path is not STDIN:
        return read_source(path)
    return read_grammar_bytes(read_stdin(), str(STDIN), Path())


def files_of(named: Iterable[Path]) -> list[Path]:
    """Named files, and grammars in named folders, each once; STDIN stays.

    Raises:
        click.BadParameter: a folder has no grammar, or a file is a graph, which is no text.
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
    """Grammars in a folder and below; hidden folders are skipped."""
    for top, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(top) / name for name in files if name.endswith(GRAMMAR_ENDING))
