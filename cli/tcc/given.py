"""Grammars that commands are given: a file, or `-`, which is standard input.

A grammar on standard input is called `<stdin>`, and the files that it uses lie in the working
directory or below.  It is read once, and no more of it than a grammar may have.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tcc.files import GRAMMAR_ENDINGS

if TYPE_CHECKING:
    from tcc_compiler.frontend import Frontend
    from tcc_compiler.options import Options
    from tcc_compiler.pipeline import Compiled

# A file may have this name, so it is this object that stands for standard input.
STDIN: Final = Path("<stdin>")
_READ = "tcc.stdin"


class GivenPath(click.Path):
    """A file's path, or :data:`STDIN` for `-`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """As click does, but for `-`."""
        return STDIN if value == "-" or value is STDIN else super().convert(value, param, ctx)


GIVEN: Final = GivenPath(exists=True, dir_okay=False, path_type=Path)


def is_grammar(path: Path) -> bool:
    """Whether this is to be compiled: standard input, or a file with such an ending."""
    return path is STDIN or path.suffix in GRAMMAR_ENDINGS


def read_stdin() -> bytes:
    """All of standard input, or one byte more than a grammar may have.

    Raises:
        click.UsageError: this command has read it before, or it is closed.
    """
    from tcc_compiler.language.source import MAX_SOURCE_BYTES

    meta = click.get_current_context().find_root().meta
    if meta.setdefault(_READ, 0):
        raise click.UsageError("standard input is read once: name one grammar by `-`")
    meta[_READ] = 1
    if sys.stdin is None:
        raise click.UsageError("standard input is closed")
    return sys.stdin.buffer.read(MAX_SOURCE_BYTES + 1)


def compile_given(path: Path, options: Options) -> Compiled:
    """Compile a grammar, as :func:`tcc_compiler.pipeline.compile_file` does."""
    from tcc_compiler.pipeline import compile_bytes, compile_file

    if path is not STDIN:
        return compile_file(path, options)
    return compile_bytes(read_stdin(), options, str(STDIN), Path())


def read_given(path: Path) -> Frontend:
    """Read a grammar to its core, as :func:`tcc_compiler.pipeline.read_source` does."""
    from tcc_compiler.frontend import read_grammar_bytes
    from tcc_compiler.pipeline import read_source

    if path is not STDIN:
        return read_source(path)
    return read_grammar_bytes(read_stdin(), str(STDIN), Path())
