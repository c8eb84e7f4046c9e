"""From a networkx graph in memory to a graph; its nodes and attributes may be any objects.

Normative text: docs/spec/language.md, section 11.  Of the attributes only those that mean something
are looked at, and of their values only the plain ones: numbers of numpy and of other subclasses
are taken as what they are a kind of, and no method of a foreign object is called.  Cost: linear.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from tcc_compiler.imports.graph import Edge, Graph, GraphRefused, check_size, graph_of, key_of

if TYPE_CHECKING:
    import networkx as nx

AMOUNTS: Final = ("cost", "cost_high", "price", "latency_ms", "epsilon")
_OF_GRAPH: Final = ("name", "version", "depth")
_OF_NODE: Final = ("start", "goal", "accept", "tool", *AMOUNTS)
_OF_EDGE: Final = ("call", *AMOUNTS)
# Stands for a value of any other type, and is itself of a type that no attribute may have.
_OTHER: Final = ("neither a text, a number nor a truth value",)


def graph_of_networkx(graph: nx.Graph[Any]) -> Graph:
    """The graph that a networkx graph holds; its ids are texts or integers.

    Raises:
        GraphRefused: TCC603 no graph of networkx, undirected, an id of another type, or two nodes
            of one id; TCC609 too large.
    """
    import networkx as nx

    if not isinstance(graph, nx.Graph):
        raise GraphRefused("TCC603", "this is no graph of networkx")
    if not graph.is_directed():
        raise GraphRefused("TCC603", "the graph is undirected")
    check_size(graph.number_of_nodes(), graph.number_of_edges())
    nodes: dict[str, dict[str, object]] = {}
    for node, data in graph.nodes(data=True):
        key = key_of(_plain(node), "the id of a node")
        if key in nodes:
            raise GraphRefused("TCC603", f"two nodes have the id {key}")
        nodes[key] = _known(data, _OF_NODE)
    edges = [
        Edge(
            source=key_of(_plain(source), "the source of an edge"),
            target=key_of(_plain(target), "the target of an edge"),
            attributes=_known(data, _OF_EDGE),
        )
        for source, target, data in graph.edges(data=True)
    ]
    return graph_of(_known(graph.graph, _OF_GRAPH), nodes, edges)


def _known(attributes: Mapping[str, object], names: Iterable[str]) -> dict[str, object]:
    return {name: _plain(attributes[name]) for name in names if name in attributes}


def _plain(value: object) -> object:
    """The value as a text, a number or a truth value of Python's own types."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    numpy = sys.modules.get("numpy")
    if numpy is not None and type(value).__module__ == "numpy" and isinstance(value, numpy.generic):
        own = value.item()
        return own if isinstance(own, (str, bool, int, float)) else _OTHER
    return _OTHER
