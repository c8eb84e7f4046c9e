"""The formats in which findings are told, and the option that asks for one of them.

Apart from :mod:`tcc.findings`, which writes them: most commands find nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

FORMATS = ("text", "json", "sarif", "github")


def format_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option of every command that gives findings."""
    return click.option(
        "--output-format",
        type=click.Choice(FORMATS),
        default="text",
        show_default=True,
        help="for people, programs, code scanning, workflows of GitHub; json is --json",
    )(command)


def chosen(output_format: str, as_json: bool) -> str:
    """The format that the two options come to; it is known to what ends a command early, too."""
    if as_json and output_format not in ("text", "json"):
        raise click.UsageError(f"--json and --output-format {output_format} exclude each other")
    if as_json and output_format == "text":
        output_format = "json"
    params = click.get_current_context().params
    params["as_json"], params["output_format"] = output_format == "json", output_format
    return output_format
