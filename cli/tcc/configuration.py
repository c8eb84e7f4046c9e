"""What a ``tcc.toml`` says, and how it is refused.

Specification: docs/lint.md.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from tcc_compiler.language.diagnostics import Diagnostic
    from tcc_compiler.language.source import Source

LONG_SEARCH: Final = 100_000  # expansions, from which on a search is long
Level: TypeAlias = 'Literal["error", "warning", "off"]'


class ConfigError(Exception):
    """A ``tcc.toml`` that is refused.

    Attributes:
        diagnostics: what is wrong with it.
        source: its text.
    """

    def __init__(self, diagnostics: Sequence[Diagnostic], source: Source) -> None:
        self.diagnostics = tuple(diagnostics)
        self.source = source
        super().__init__(f"{source.name}: {self.diagnostics[0].message}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What a ``tcc.toml`` says.

    Attributes:
        path: the file, None where there is none.
        allow: codes of lints that are not told.
        levels: levels of lints by code.
        per_file: patterns of paths, from the folder of the file, and codes that are not told there.
        long_search: expansions from which on a predicted search is long.
        compile, run: defaults of options by the names of their fields.
    """

    path: Path | None = None
    allow: frozenset[str] = frozenset()
    levels: Mapping[str, Level] = field(default_factory=dict)
    per_file: Mapping[str, frozenset[str]] = field(default_factory=dict)
    long_search: int = LONG_SEARCH
    compile: Mapping[str, Any] = field(default_factory=dict)
    run: Mapping[str, Any] = field(default_factory=dict)

    def level(self, code: str, file: str) -> Level | None:
        """Of a lint in a file: ``off`` where it is allowed, None where nothing is said."""
        if code in self.allow or self._allowed_in(code, file):
            return "off"
        return self.levels.get(code)

    def _allowed_in(self, code: str, file: str) -> bool:
        if self.path is None:
            return False
        folder = os.path.realpath(self.path.parent)
        path = os.path.relpath(os.path.realpath(file), folder).replace(os.sep, "/")
        return any(
            code in codes and fnmatch.fnmatchcase(path, pattern)
            for pattern, codes in self.per_file.items()
        )
