"""The file of an artifact or a grammar that another one may replace while a gate runs.

Text: docs/sessions.md.  Cost: one look at the file for each new session.
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
    """Identity, size and time of a file; None if the file is missing."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def in_memory(artifact: Artifact) -> Artifact:
    """The same artifact, without its file, which somebody may overwrite in place.

    Raises:
        Rejected: the file was overwritten since it was checked.
    """
    data = write_container(artifact.file.columns)
    return load(data, checked=artifact.digest.hex())


class Replaced:
    """Looks whether a file was replaced.

    Args:
        signature: of the file that is in use.
    """

    def __init__(self, path: Path, signature: Signature) -> None:
        self._path, self._signature = path, signature

    def __call__(self) -> Artifact | None:
        """The artifact of a file that was replaced; None: it was not.

        Raises:
            ReloadRefused: the file has no valid artifact.  It is read again once it is replaced.
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
