"""A graph file, or a graph in memory, to a core or to what is wrong with it.

Normative text: docs/spec/language.md, section 11.  Cost: linear in the graph.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcc_compiler.core import core_bytes
from tcc_compiler.diagnostics import Report
from tcc_compiler.frontend import Frontend, failed, unreadable
from tcc_compiler.imports.grammar import grammar_of
from tcc_compiler.imports.graph import Graph, Refused
from tcc_compiler.imports.graphml import graph_of_networkx, read_graphml
from tcc_compiler.imports.node_link import read_node_link
from tcc_compiler.source import Source, Unreadable, decode, read_bytes, source_of
from tcc_compiler.spans import Region

if TYPE_CHECKING:
    import networkx as nx

GRAPH_SUFFIXES = (".graphml", ".json")


def read_graph(path: Path, look: Callable[[], None] | None = None) -> Frontend:
    """The front end's result for a graph file: node-link ``.json``, or else GraphML."""
    data = read_bytes(path)
    text = data if isinstance(data, Unreadable) else decode(data)
    if isinstance(text, Unreadable):
        return unreadable(str(path), text)
    source = source_of(text, str(path), path)
    reader = read_node_link if path.suffix.lower() == ".json" else read_graphml
    return _read(source, lambda: reader(text), _identifier(path.stem), look)


def read_networkx(graph: nx.Graph[Any], name: str = "graph") -> Frontend:
    """The front end's result for a networkx graph; `name` where the graph has none."""
    return _read(source_of("", f"<{name}>"), lambda: graph_of_networkx(graph), _identifier(name))


def _read(
    source: Source, read: Callable[[], Graph], name: str, look: Callable[[], None] | None = None
) -> Frontend:
    report = Report([source], look)
    try:
        grammar = grammar_of(read(), name, report)
    except Refused as refusal:
        at = Region(0, refusal.offset, refusal.offset)
        report.error(refusal.code, at, refusal.message)
        grammar = None
    if grammar is None or report.failed:
        return failed(report, [source])
    return Frontend(
        diagnostics=(),
        core=core_bytes(grammar),
        examples=(),
        expects=(),
        sources={source.name: source},
        places={},
    )


def _identifier(text: str) -> str:
    """A name made of a file's: what an identifier may not have becomes ``_``."""
    made = re.sub(r"[^A-Za-z0-9_]", "_", text)
    return made if made and not made[0].isdigit() else f"_{made}"
