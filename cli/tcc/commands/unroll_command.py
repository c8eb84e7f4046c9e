"""``tcc unroll``: writes the prefixes of plans down to a depth, as a picture or for programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tcc.commands.graph_command import chosen_format, deliver, drawing_options, is_graph, is_picture
from tcc.opening import open_bounded, options_of, refusing
from tcc.options import artifact_argument, compile_options
from tcc.pictures import picture_of_prefixes
from tcc.pictures.graph import graph_text, prefix_graph, unroll
from tcc.pictures.svg import drawn


@click.command("unroll")
@artifact_argument
@click.option(
    "--depth", type=click.IntRange(0), required=True, help="number of calls of the longest prefix"
)
@click.option(
    "--max-nodes",
    type=click.IntRange(1, 1 << 20),
    default=10_000,
    show_default=True,
    help="limit on the nodes; if there would be more, report their number and write nothing",
)
@drawing_options
@compile_options
def command(
    artifact: Path,
    depth: int,
    max_nodes: int,
    output_format: str | None,
    output: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Write out the prefix DAG of ARTIFACT (or of a grammar) down to a depth.

    Each node is a prefix of plans: it shows how many plans begin so, what its calls cost, and the
    state that they lead to. The numbers at the terminal nodes add up to the number of all plans.
    """
    form = chosen_format(output_format, as_json, output, "json")
    read: list[Path] = []
    opened = open_bounded(artifact, command="unroll", options=options_of(given), read=read)
    with refusing(artifact):
        if is_graph(form):
            graph = prefix_graph(opened, depth, max_nodes)
            deliver(graph_text(graph, form, "unroll"), output, form, read)
        elif is_picture(form):
            picture = picture_of_prefixes(opened, unroll(opened, depth, max_nodes), depth)
            deliver(drawn(picture, form), output, form, read)
