"""Configuration of a project, ``tcc.toml``: its values, where it is found, and its options.

The nearest file above a grammar holds, or the one that ``--config`` names; the command line wins
over both.  :mod:`tcc.config_file` reads it, and is imported where there is one.  Specification:
docs/lint.md.  Cost: one lookup in each folder above the grammar.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from tcc_compiler.language.diagnostics import Diagnostic
    from tcc_compiler.language.source import Source

NAME: Final = "tcc.toml"
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
    """Values of a ``tcc.toml``.

    Attributes:
        path: the file; None for the defaults.
        allow: codes of lints that are not reported.
        levels: levels of lints by code.
        per_file: patterns of paths, relative to the file's folder, and codes not reported there.
        long_search: expansions above which a predicted search is long.
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
        """Level of a lint in a file: ``off`` where it is allowed, None where it is not set."""
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


def find_config(file: Path) -> Path | None:
    """``tcc.toml`` of the nearest folder above a file that has one."""
    folder = Path(os.path.realpath(file.parent))
    for above in (folder, *folder.parents):
        path = above / NAME
        if os.path.lexists(path):  # a file that cannot be read is an error, and not passed over
            return path
    return None


def config_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options of every command that reads a ``tcc.toml``."""
    chosen = click.option(
        "--config",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="this tcc.toml; by default that of the nearest folder above",
    )
    none = click.option("--no-config", is_flag=True, help="read no tcc.toml")
    return chosen(none(command))


def fill(given: dict[str, Any], defaults: Mapping[str, Any]) -> None:
    """Set defaults of options that the command line leaves out."""
    ctx = click.get_current_context()
    for name, value in defaults.items():
        if ctx.get_parameter_source(name) in (None, ParameterSource.DEFAULT) and name in given:
            given[name] = value
