"""From a graph file, or a graph in memory, to its core or to its errors.

Normative text: docs/spec/language.md, section 11.  Cost: linear in the graph.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcc_compiler.frontend import Frontend, failed, unreadable
from tcc_compiler.imports.graph import Graph, GraphRefused
from tcc_compiler.imports.graphml import read_graphml
from tcc_compiler.imports.in_memory import graph_of_networkx
from tcc_compiler.imports.node_link import read_node_link
from tcc_compiler.imports.right_linear import grammar_of
from tcc_compiler.language.diagnostics import Report
from tcc_compiler.language.source import Source, Unreadable, decode, read_bytes, source_of
from tcc_compiler.language.spans import Region
from tcc_compiler.resolve.core import core_bytes

if TYPE_CHECKING:
    import networkx as nx


def read_graph(path: Path, check_time: Callable[[], None] | None = None) -> Frontend:
    """The front end's result for a graph file: node-link ``.json``, or else GraphML."""
    data = read_bytes(path)
    text = data if isinstance(data, Unreadable) else decode(data)
    if isinstance(text, Unreadable):
        return unreadable(str(path), text)
    source = source_of(text, str(path), path)
    reader = read_node_link if path.suffix.lower() == ".json" else read_graphml
    return _read(source, lambda: reader(text), _identifier(path.stem), check_time)


def read_networkx(
    graph: nx.Graph[Any], name: str = "graph", check_time: Callable[[], None] | None = None
) -> Frontend:
    """The front end's result for a networkx graph; `name` where the graph has none."""
    source = source_of("", f"<{name}>")
    return _read(source, lambda: graph_of_networkx(graph), _identifier(name), check_time)


def _read(
    source: Source,
    read: Callable[[], Graph],
    name: str,
    check_time: Callable[[], None] | None = None,
) -> Frontend:
    report = Report([source], check_time)
    try:
        graph = read()
        if check_time is not None:  # the parsers look at no clock: when they are done
            check_time()
        grammar = grammar_of(graph, name, report)
    except GraphRefused as refusal:
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
    """An identifier from the name of a file: other characters become ``_``."""
    made = re.sub(r"[^A-Za-z0-9_]", "_", text)
    return made if made and not made[0].isdigit() else f"_{made}"
