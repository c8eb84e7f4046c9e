"""Read a grammar: a file, a text or bytes become a core, or the list of all its errors.

:mod:`tcc_compiler.names.compile` does the work; this module adds the decoding of bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tcc_compiler.language import source as texts
from tcc_compiler.names.compile import Compiled, compile_file, compile_source, unreadable
from tcc_compiler.names.files import Read

__all__ = ["Compiled", "read_grammar", "read_grammar_bytes", "read_grammar_text"]

read_grammar = compile_file


def read_grammar_text(
    text: str,
    name: str = "<text>",
    check_time: Callable[[], None] | None = None,
    path: Path | None = None,
    read: Read = texts.read_bytes,
) -> Compiled:
    """Return the result for a text that is not read from a file.

    Args:
        path: the file that the text will be stored in. With it, the text may use the files that a
            file at this path may use; without it, none.
        read: returns the bytes of a used file.
    """
    return compile_source(text, name, path=path, check_time=check_time, read=read)


def read_grammar_bytes(
    data: bytes,
    name: str,
    folder: Path | None = None,
    check_time: Callable[[], None] | None = None,
) -> Compiled:
    """Return the result for bytes that are not read from a file but, for instance, from a pipe.

    Args:
        folder: the folder for used files, which must be in it or below it. None: the text can use
            no files.
    """
    decoded = texts.too_large() if len(data) > texts.MAX_SOURCE_BYTES else texts.decode(data)
    if isinstance(decoded, texts.Unreadable):
        return unreadable(name, decoded)
    return compile_source(decoded, name, folder=folder, check_time=check_time)
