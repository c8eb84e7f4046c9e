"""Reading a grammar: a file, a text or bytes become a core, or all of its errors.

:mod:`tcc_compiler.names.compile` does the work; this page decodes bytes.
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
    """The result for a text that comes from no file, and so can use none.

    Args:
        path: the file that the text is to be in: it may use what that file may.
        read: gives the bytes of a used file.
    """
    return compile_source(text, name, path=path, check_time=check_time, read=read)


def read_grammar_bytes(
    data: bytes,
    name: str,
    folder: Path | None = None,
    check_time: Callable[[], None] | None = None,
) -> Compiled:
    """The result for bytes that come from no file, such as from a pipe.

    Args:
        folder: the files that they use lie in it, or below; None where they can use none.
    """
    decoded = texts.too_large() if len(data) > texts.MAX_SOURCE_BYTES else texts.decode(data)
    if isinstance(decoded, texts.Unreadable):
        return unreadable(name, decoded)
    return compile_source(decoded, name, folder=folder, check_time=check_time)
