"""``tcc graph``: draws the states of an artifact, or exports them as a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, TypeGuard

import click

from tcc import screen
from tcc.files import same_file
from tcc.opening import open_bounded, options_of, refusing, writing
from tcc.options import artifact_argument, compile_options
from tcc.pictures import picture_of
from tcc.pictures.graph import FORMATS as GRAPHS, Format as GraphFormat, graph_text, shared_graph
from tcc.pictures.svg import FORMATS as PICTURES, Format as PictureFormat, drawn
from tcc_runtime.ledger.outputs import write_whole

_MOST_ITEMS = 1 << 18


_ENDINGS: Final = {
    ".dot": "dot",
    ".gv": "dot",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
    ".svg": "svg",
    ".html": "html",
    ".htm": "html",
    ".graphml": "graphml",
    ".json": "node-link",
}


def drawing_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options `--format`, `--json` and `-o` of commands that draw."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="the same as --format json"),
        click.option(
            "-o",
            "--output",
            type=click.Path(dir_okay=False, path_type=Path),
            help="output file; by default the output is printed",
        ),
        click.option(
            "--format",
            "output_format",
            type=click.Choice((*PICTURES, *GRAPHS)),
            help="a picture (dot, mermaid, svg, html), or the whole graph for programs (json,"
            " node-link, graphml); by default decided by the suffix of -o",
        ),
    ):
        command = option(command)
    return command


def chosen_format(output_format: str | None, as_json: bool, output: Path | None, bare: str) -> str:
    """Return the format that the options select, else the suffix of `output`, else `bare`.

    Raises:
        click.UsageError: --json and another --format are given.
    """
    if as_json and output_format not in (None, "json"):
        raise click.UsageError(f"--json and --format {output_format} exclude each other")
    if as_json or output_format is not None:
        return output_format or "json"
    return bare if output is None else _ENDINGS.get(output.suffix.lower(), bare)


def is_graph(form: str) -> TypeGuard[GraphFormat]:
    """Return whether a format is a graph for programs."""
    return form in GRAPHS


def is_picture(form: str) -> TypeGuard[PictureFormat]:
    """Return whether a format is a picture."""
    return form in PICTURES


def deliver(text: str, output: Path | None, output_format: str, read: Iterable[Path]) -> None:
    """Print a text that ends in a line feed, or write it to `output`.

    Args:
        read: the input files of the command.

    Raises:
        click.ClickException: `output` cannot be written, or is an input file.
    """
    if output is None:
        if output_format in GRAPHS and output_format != "graphml":
            screen.say_json(text.removesuffix("\n"))
        else:
            screen.say_lines(text.removesuffix("\n"))
        return
    if same_file(output, read):
        raise click.BadParameter(f"{str(output)!r} is what is drawn", param_hint="-o")
    with writing(output):
        write_whole(output, text.encode("utf-8"))
    screen.good(f"wrote {output} ({output_format})")


@click.command("graph")
@artifact_argument
@drawing_options
@click.option(
    "--show",
    "max_shown",
    type=click.IntRange(1, 2000),
    default=200,
    show_default=True,
    metavar="STATES",
    help="in a picture: show at most this many states, nearest to the root first",
)
@compile_options
def command(
    artifact: Path,
    output_format: str | None,
    output: Path | None,
    as_json: bool,
    max_shown: int,
    **given: Any,
) -> None:
    """Draw the states of ARTIFACT (or of a grammar) and the calls between them.

    A picture shows the first states, and says how many it omits; svg and html need no other
    program. The formats for programs have all states, with at most 2^18 states and edges together.
    """
    form = chosen_format(output_format, as_json, output, "dot")
    read: list[Path] = []
    opened = open_bounded(artifact, command="graph", options=options_of(given), read=read)
    if is_graph(form):
        with refusing(artifact):
            graph = shared_graph(opened, _MOST_ITEMS)
        deliver(graph_text(graph, form, "graph"), output, form, read)
    elif is_picture(form):
        picture = picture_of(opened, max_shown)
        deliver(drawn(picture, form), output, form, read)
        if picture.left_out is not None:
            screen.say(f"shown: {picture.left_out}; see --show", err=True)
