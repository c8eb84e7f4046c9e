"""Detects that the file of an artifact or a grammar was replaced while a gate runs.

Documentation: docs/sessions.md.  Cost: one `stat` for each new session.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from tcc.files import is_grammar
from tcc_certs.errors import Rejected
from tcc_certs.formats.container import write_container
from tcc_runtime.artifact.load import Artifact, load

Signature: TypeAlias = "tuple[int, int, int, int] | None"


def signature_of(path: Path) -> Signature:
    """Return device, inode, size and modification time (ns) of a file; None if it is missing."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def in_memory(artifact: Artifact) -> Artifact:
    """Return a copy of the artifact that does not read its file, which others may overwrite.

    Raises:
        Rejected: the file was overwritten after it was checked.
    """
    data = write_container(artifact.file.columns)
    return load(data, checked=artifact.digest.hex())


class Replaced:
    """Returns the new artifact when its file was replaced.

    Args:
        path: the file, an artifact or a grammar.
        signature: the signature of the file that is in use.
    """

    def __init__(self, path: Path, signature: Signature) -> None:
        self._path, self._signature = path, signature

    def __call__(self) -> Artifact | None:
        """Return the artifact of the new file, or None if the file is unchanged.

        Raises:
            ReloadRefused: the new file is missing or has no valid artifact.  Later calls return
                None until the file changes again.
        """
        from tcc_runtime.mcp.hosting import ReloadRefused

        signature = signature_of(self._path)
        if signature == self._signature:
            return None
        self._signature = signature
        try:
            if signature is None:
                raise ReloadRefused(f"{self._path} is gone")
            if not is_grammar(self._path):
                return load(self._path.read_bytes())
            from tcc.library import CompileError, compile_file

            try:
                return compile_file(self._path)
            except CompileError as error:
                raise ReloadRefused(f"{self._path}: {error}") from None
        except (Rejected, OSError) as error:
            raise ReloadRefused(f"{self._path}: {error}") from None
