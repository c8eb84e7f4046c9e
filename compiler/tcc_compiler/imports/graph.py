"""A graph as it was read: nodes, edges, attributes.

Normative text: docs/spec/language.md, section 11.  Nodes and edges are sorted here, so the grammar
of a graph does not depend on the order in which it was written.  Cost: a sort.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeAlias

from tcc_compiler.frozen import frozen

MAX_NODES = 1 << 16
MAX_EDGES = 1 << 18

Attributes: TypeAlias = "Mapping[str, object]"


class GraphRefused(Exception):
    """A graph that is refused as a whole: a diagnostic's code, sentence and character offset."""

    def __init__(self, code: str, message: str, offset: int = 0) -> None:
        self.code = code
        self.message = message
        self.offset = offset
        super().__init__(f"{code}: {message}")


@frozen
class Edge:
    """An edge between two nodes, by their keys."""

    source: str
    target: str
    attributes: Attributes


@frozen
class Graph:
    """A directed graph, parallel edges allowed.

    Attributes:
        attributes: of the graph as a whole.
        nodes: attributes by key, in the order of the keys.
        edges: by source, then target, then attributes.
    """

    attributes: Attributes
    nodes: Mapping[str, Attributes]
    edges: tuple[Edge, ...]


def key_of(identity: object, what: str) -> str:
    """The key of a node: a text as JSON writes it, or an integer.

    Raises:
        GraphRefused: TCC603 for any other identity.
    """
    if isinstance(identity, str) or (isinstance(identity, int) and not isinstance(identity, bool)):
        if isinstance(identity, int) and identity.bit_length() > 256:
            raise GraphRefused("TCC603", f"{what} is an integer of more than 256 bits")
        return json.dumps(identity, ensure_ascii=False)
    raise GraphRefused("TCC603", f"{what} is neither a text nor an integer")


def check_size(nodes: int, edges: int) -> None:
    """Refuse a graph with more nodes or edges than the limits, before anything is made of it.

    Raises:
        GraphRefused: TCC609.
    """
    if nodes > MAX_NODES or edges > MAX_EDGES:
        raise GraphRefused("TCC609", f"a graph has at most {MAX_NODES} nodes and {MAX_EDGES} edges")


def graph_of(attributes: Attributes, nodes: Mapping[str, Attributes], edges: list[Edge]) -> Graph:
    """The graph in its order.

    Raises:
        GraphRefused: TCC603 an edge to a node that is not there.
    """
    for edge in edges:
        for end in (edge.source, edge.target):
            if end not in nodes:
                raise GraphRefused("TCC603", f"an edge names the node {end}, which is not there")
    ordered = sorted(edges, key=lambda edge: (edge.source, edge.target, _attribute_key(edge)))
    return Graph(
        attributes=attributes,
        nodes={key: nodes[key] for key in sorted(nodes)},
        edges=tuple(ordered),
    )


def _attribute_key(edge: Edge) -> list[tuple[str, str]]:
    known = ("call", "cost", "cost_high", "price", "latency_ms", "epsilon")
    return [(name, repr(edge.attributes[name])) for name in known if name in edge.attributes]
