"""``tcc graph``: the states of an artifact as a picture, or as a graph for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tcc import screen
from tcc.drawing import chosen_format, deliver, drawing_options, is_graph, is_picture
from tcc.graphs.formats import graph_text
from tcc.graphs.shared import shared_graph
from tcc.opening import artifact_argument, open_artifact, options_of, refuse
from tcc.options import compile_options
from tcc.pictures.drawn import drawn
from tcc.pictures.of_artifact import picture_of
from tcc_certs.errors import Rejected

_MOST_ITEMS = 1 << 18


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
    help="of a picture: that many states at most, nearest to the root first",
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

    A picture shows the first states and says how many it leaves out; svg and html need no other
    program. For programs all states are written, at most 2^18 with their edges.
    """
    form = chosen_format(output_format, as_json, output, "dot")
    read: list[Path] = []
    opened = open_artifact(artifact, command="graph", options=options_of(given), read=read)
    if is_graph(form):
        try:
            graph = shared_graph(opened, _MOST_ITEMS)
        except Rejected as refusal:
            refuse(artifact, refusal)
        deliver(graph_text(graph, form, "graph"), output, form, read)
    elif is_picture(form):
        picture = picture_of(opened, max_shown)
        deliver(drawn(picture, form), output, form, read)
        if picture.left_out is not None:
            screen.say(f"shown: {picture.left_out}; see --show", err=True)
