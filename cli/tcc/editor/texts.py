"""The texts that are open in the editor: they stand for their files wherever one is read.

Cost: one look-up a file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pygls import uris

from tcc.editor.positions import Places
from tcc_compiler.language.source import Source, Unreadable, read_bytes, too_large


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A text that is open.

    Attributes:
        path: the file that it is in, its folder resolved; None where it is in none yet.
        name: how diagnostics name it.
    """

    uri: str
    text: str
    path: Path | None
    name: str


def document_of(uri: str, text: str) -> Document:
    """The document of a URI; only those of files have a path."""
    found = uris.to_fs_path(uri) if uri.startswith("file:") else None
    if not found or "\0" in found:
        return Document(uri=uri, text=text, path=None, name=uri)
    path = Path(found)
    resolved = Path(os.path.realpath(path.parent)) / path.name
    return Document(uri=uri, text=text, path=resolved, name=str(path))


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """All that is open at one moment, and how its columns are counted.

    Attributes:
        documents: by URI.
        folders: those that the editor has open.
    """

    documents: Mapping[str, Document]
    folders: tuple[Path, ...] = ()
    encoding: str = "utf-16"

    def read(self, path: Path, limit: int) -> bytes | Unreadable:
        """The bytes of a file as the editor has them."""
        document = self.at(path)
        if document is None:
            return read_bytes(path, limit)
        data = document.text.encode("utf-8", "surrogatepass")
        return data if len(data) <= limit else too_large(limit)

    def at(self, path: Path) -> Document | None:
        """The open document of a file, by its resolved path."""
        for document in self.documents.values():
            if document.path is not None and os.path.realpath(document.path) == str(path):
                return document
        return None

    def uri(self, source: Source, root: Document) -> str:
        """The URI of a source of a grammar whose root is open."""
        if source.path is None or source.path == root.path:
            return root.uri
        document = self.at(Path(os.path.realpath(source.path)))
        if document is not None:
            return document.uri
        return uris.from_fs_path(str(source.path)) or root.uri

    def places(self, text: str) -> Places:
        """The places of a text."""
        return Places(text, self.encoding)
