"""The options ``--config`` and ``--no-config``, and defaults of options from ``tcc.toml``.

What is said on the command line wins.  Specification: docs/lint.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from tcc.config import config_for
from tcc.configuration import Config, ConfigError
from tcc.exits import BAD_USAGE


def config_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of every command that reads a ``tcc.toml``."""
    chosen = click.option(
        "--config",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="this tcc.toml; by default that of the nearest folder above",
    )
    none = click.option("--no-config", is_flag=True, help="read no tcc.toml")
    return chosen(none(command))


def config_of(given: dict[str, Any], file: Path, *, output_format: str = "text") -> Config:
    """The configuration for a file; `config` and `no_config` are taken out of `given`.

    Raises:
        click.exceptions.Exit: it is refused, and was shown.
    """
    ctx = click.get_current_context()
    chosen, none = given.pop("config", None), given.pop("no_config", False)
    if chosen is not None and none:
        raise click.UsageError("--config and --no-config exclude each other", ctx)
    try:
        return config_for(file, chosen, none=none)
    except ConfigError as error:
        from tcc.findings import print_diagnostics

        command = ctx.info_name or "error"
        sources = {error.source.name: error.source}
        print_diagnostics(command, error.diagnostics, sources, output_format)
        raise click.exceptions.Exit(BAD_USAGE) from None


def fill(given: dict[str, Any], defaults: Mapping[str, Any]) -> None:
    """Put defaults where the command line says nothing."""
    ctx = click.get_current_context()
    for name, value in defaults.items():
        if ctx.get_parameter_source(name) in (None, ParameterSource.DEFAULT) and name in given:
            given[name] = value
