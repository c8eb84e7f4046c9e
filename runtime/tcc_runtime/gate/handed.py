"""Atoms and adapters as callers hand them in: as values, or as what says them.

Text: docs/privacy.md, docs/adapters.md.  Cost: linear in them; of a registry its folders.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tcc_certs.core.atoms import Atom
from tcc_certs.privacy.atoms_file import atoms_of
from tcc_runtime.adapters.adapter import Adapter


def atoms_in(atoms: Sequence[Mapping[str, Any] | Atom]) -> tuple[Atom, ...]:
    """Atoms, or objects that say them.

    Raises:
        Rejected: E101 to E104, one is none.
    """
    return tuple([atom if isinstance(atom, Atom) else atoms_of([dict(atom)])[0] for atom in atoms])


def adapters_in(adapters: str | Path | Iterable[Adapter] | None) -> tuple[Adapter, ...] | None:
    """The adapters of a registry, or those that are given.

    Raises:
        Rejected: A101 to A107.
    """
    if isinstance(adapters, str | Path):
        from tcc_runtime.adapters.registry import read_registry

        return read_registry(Path(adapters))
    return None if adapters is None else tuple(adapters)
