"""Grammars that are laid out: which files, how each differs from its layout, and writing it.

Cost: that of reading and laying out, linear in the texts.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from tcc.compilation import GUARDS
from tcc.exits import CLEAN, DECLINED, FINDINGS
from tcc.findings import as_json
from tcc.given import STDIN, read_stdin
from tcc.unified import unified
from tcc_certs.plain import escaped
from tcc_compiler.format.text import Formatted, format_bytes
from tcc_compiler.language.source import read_bytes
from tcc_runtime.ledger.outputs import write_whole

ENDING = ".tcg"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A file and its layout.

    Attributes:
        refused: why it could not be written; None where it could, or had not to be.
    """

    path: Path
    made: Formatted
    refused: str | None = None

    @property
    def changed(self) -> bool:
        """Whether the layout is not what the file holds."""
        return self.made.text is not None and self.made.text != self.made.source.text

    @property
    def failed(self) -> int:
        """The exit code that errors ask for: 0 where there are none."""
        if self.refused is not None:
            return DECLINED
        codes = {diagnostic.code for diagnostic in self.made.diagnostics}
        return CLEAN if not codes else DECLINED if codes <= GUARDS else FINDINGS

    def difference(self) -> str:
        """A unified difference from the file to its layout; empty where there is none."""
        if not self.changed or self.made.text is None:
            return ""
        return unified(self.made.source.text, self.made.text, escaped(str(self.path)))

    def fields(self) -> dict[str, Any]:
        """The JSON fields of a file."""
        found = [as_json(diagnostic) for diagnostic in self.made.diagnostics]
        fields = {"file": str(self.path), "changed": self.changed, "diagnostics": found}
        return fields | ({} if self.refused is None else {"error": self.refused})


def laid_out(path: Path) -> Layout:
    """Read a file, or standard input, and lay it out."""
    data = read_stdin() if path is STDIN else read_bytes(path)
    return Layout(path=path, made=format_bytes(data, str(path)))


def written(layout: Layout) -> Layout:
    """Write the layout into the file, where it is another; the old bytes are there or the new."""
    if not layout.changed or layout.made.text is None:
        return layout
    try:
        write_whole(layout.path, layout.made.text.encode())
    except OSError as error:
        said = f"cannot write {layout.path}: {error.strerror or error}"
        return Layout(path=layout.path, made=layout.made, refused=said)
    return layout


def files_of(named: Iterable[Path]) -> list[Path]:
    """The files that are named, and those in folders, each once; STDIN stays.

    Raises:
        click.BadParameter: a folder has no grammar in it; a graph, which is no text.
    """
    found: dict[Path, None] = {}
    for path in named:
        if path is not STDIN and path.is_dir():
            inside = sorted(_below(path))
            if not inside:
                raise click.BadParameter(f"there is no {ENDING} file in {path}")
            found |= dict.fromkeys(inside)
        elif path.suffix in (".graphml", ".json"):
            raise click.BadParameter(f"{path} is a graph, and this is about texts")
        else:
            found[path] = None
    return list(found)


def _below(folder: Path) -> Iterator[Path]:
    """The grammars in a folder and below; folders whose name begins with a point are left out."""
    for top, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(top) / name for name in files if name.endswith(ENDING))
