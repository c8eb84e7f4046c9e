"""Which ``tcc.toml`` holds for a file: the nearest upward from it, or one that was named.

Specification: docs/lint.md.  Cost: one look in each folder; what reads the file is imported where
there is one.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from tcc.configuration import Config

NAME: Final = "tcc.toml"


def find_config(file: Path) -> Path | None:
    """The ``tcc.toml`` of the nearest folder above a file that has one."""
    folder = Path(os.path.realpath(file.parent))
    for above in (folder, *folder.parents):
        path = above / NAME
        if os.path.lexists(path):  # what is no file that can be read is told, not passed over
            return path
    return None


def config_for(file: Path, chosen: Path | None = None, *, none: bool = False) -> Config:
    """What holds for a grammar.

    Args:
        chosen: this file, wherever the grammar is.
        none: no file at all.

    Raises:
        ConfigError: it cannot be read, or says what it may not.
    """
    path = None if none else chosen or find_config(file)
    if path is None:
        return Config()
    from tcc.config_file import read_config

    return read_config(path)
