"""Read node-link JSON, GraphML and networkx graphs into nodes, edges and attributes.

Nodes and edges are sorted, so the grammar of a graph does not depend on the order in its file.
Node-link JSON is read without networkx. GraphML is checked for document types and entities before
networkx reads it. networkx is imported only for graphs that need it.
Specification: docs/spec/imports.md, section 1. Cost: linear in the text, plus a sort.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias
from xml.parsers import expat

from tcc_compiler.frozen import frozen

if TYPE_CHECKING:
    import networkx as nx

MAX_NODES = 1 << 16
MAX_EDGES = 1 << 18

Attributes: TypeAlias = "Mapping[str, object]"


class GraphRefused(Exception):
    """Raised if a graph is refused as a whole; has a code, a message and a character offset."""

    def __init__(self, code: str, message: str, offset: int = 0) -> None:
        self.code = code
        self.message = message
        self.offset = offset
        super().__init__(f"{code}: {message}")


@frozen
class GraphEdge:
    """An edge between two nodes, which are given by their keys."""

    source: str
    target: str
    attributes: Attributes


@frozen
class Graph:
    """A directed graph; parallel edges are allowed.

    Attributes:
        attributes: the attributes of the graph as a whole.
        nodes: the attributes of each node by its key, sorted by key.
        edges: sorted by source, then target, then attributes.
    """

    attributes: Attributes
    nodes: Mapping[str, Attributes]
    edges: tuple[GraphEdge, ...]


def key_of(identity: object, what: str) -> str:
    """Return the key of a node, which is its identity as JSON text.

    Raises:
        GraphRefused: TCC603, the identity is neither a string nor an integer of at most 256 bits.
    """
    if isinstance(identity, str) or (isinstance(identity, int) and not isinstance(identity, bool)):
        if isinstance(identity, int) and identity.bit_length() > 256:
            raise GraphRefused("TCC603", f"{what} is an integer of more than 256 bits")
        return json.dumps(identity, ensure_ascii=False)
    raise GraphRefused("TCC603", f"{what} is neither a text nor an integer")


def check_size(nodes: int, edges: int) -> None:
    """Check the numbers of nodes and edges against the limits before the graph is built.

    Raises:
        GraphRefused: TCC609, there are too many.
    """
    if nodes > MAX_NODES or edges > MAX_EDGES:
        raise GraphRefused("TCC609", f"a graph has at most {MAX_NODES} nodes and {MAX_EDGES} edges")


def graph_of(
    attributes: Attributes, nodes: Mapping[str, Attributes], edges: list[GraphEdge]
) -> Graph:
    """Return the graph with nodes and edges sorted.

    Raises:
        GraphRefused: TCC603, an edge leads from or to a node that does not exist.
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


def _attribute_key(edge: GraphEdge) -> list[tuple[str, str]]:
    known = ("call", "cost", "cost_high", "price", "latency_ms", "epsilon")
    return [(name, repr(edge.attributes[name])) for name in known if name in edge.attributes]


# networkx. Only attributes with a meaning are read, and only plain values. A number of numpy or of
# another subclass is read as its base type. No method of a foreign object is called.

AMOUNTS: Final = ("cost", "cost_high", "price", "latency_ms", "epsilon")
_OF_GRAPH: Final = ("name", "version", "depth")
_OF_NODE: Final = ("start", "goal", "accept", "tool", *AMOUNTS)
_OF_EDGE: Final = ("call", *AMOUNTS)
# Stands for a value of any other type. No attribute may have its own type.
_OTHER: Final = ("neither a text, a number nor a truth value",)


def graph_of_networkx(graph: nx.Graph[Any]) -> Graph:
    """Return the graph of a networkx graph whose node ids are texts or integers.

    Raises:
        GraphRefused: TCC603, it is no networkx graph, it is undirected, an id has another type, or
            two nodes have the same id; TCC609, it is too large.
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
        GraphEdge(
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
    """Return the value as a str, bool, int or float of Python itself, or _OTHER."""
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


def read_node_link(text: str) -> Graph:
    """Return the graph of a node-link JSON text.

    Raises:
        GraphRefused: TCC601, it is no JSON; TCC603, its structure is different; TCC609, it is too
            large.
    """
    try:
        value: object = json.loads(text, object_pairs_hook=_members, parse_constant=_no_constant)
    except RecursionError:
        raise GraphRefused("TCC601", "this JSON is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise GraphRefused("TCC601", f"this is no JSON: {error.msg}", error.pos) from None
    except ValueError as error:
        raise GraphRefused("TCC601", f"this is no JSON: {error}") from None
    document = _object(value, "the document")
    if document.get("directed") is not True:
        raise GraphRefused("TCC603", 'the graph is not marked "directed": true')
    items = _list(document.get("nodes"), "'nodes'")
    links = _list(document.get("edges", document.get("links")), "'edges' (or 'links')")
    check_size(len(items), len(links))
    attributes = _object(document.get("graph", {}), "'graph'")
    return graph_of(attributes, _nodes(items), _edges(links))


def _nodes(items: list[object]) -> dict[str, Attributes]:
    nodes: dict[str, Attributes] = {}
    for i, item in enumerate(items):
        node = _object(item, f"nodes[{i}]")
        key = key_of(node.get("id"), f"nodes[{i}].id")
        if key in nodes:
            raise GraphRefused("TCC603", f"two nodes have the id {key}")
        nodes[key] = node
    return nodes


def _edges(items: list[object]) -> list[GraphEdge]:
    edges = []
    for i, item in enumerate(items):
        edge = _object(item, f"edges[{i}]")
        source = key_of(edge.get("source"), f"edges[{i}].source")
        target = key_of(edge.get("target"), f"edges[{i}].target")
        edges.append(GraphEdge(source=source, target=target, attributes=edge))
    return edges


def _object(value: object, what: str) -> Attributes:
    if not isinstance(value, dict):
        raise GraphRefused("TCC603", f"{what} is not an object")
    return value


def _list(value: object, what: str) -> list[object]:
    if not isinstance(value, list):
        raise GraphRefused("TCC603", f"{what} is not a list")
    return value


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("an object names a member twice")
    return members


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON number")


MAX_XML_DEPTH = 32


def read_graphml(text: str) -> Graph:
    """Return the graph of a GraphML text.

    Raises:
        GraphRefused: TCC601, it is no GraphML; TCC602, it has declarations; TCC603, its structure
            is different; TCC609, it is too large.
    """
    _check_xml(text)
    import networkx as nx

    try:
        graph: Any = nx.parse_graphml(text)
    except (nx.NetworkXError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise GraphRefused(
            "TCC601", f"this is no GraphML: {error or type(error).__name__}"
        ) from None
    return graph_of_networkx(graph)


def _check_xml(text: str) -> None:
    """Check that XML is well-formed, not too deep, and has no document type or entities.

    Raises:
        GraphRefused: TCC601, it is malformed or too deep; TCC602, it has declarations.
    """
    depth = 0

    def enter(_name: str, _attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_XML_DEPTH:
            raise GraphRefused("TCC601", f"this XML is nested deeper than {MAX_XML_DEPTH}")

    def leave(_name: str) -> None:
        nonlocal depth
        depth -= 1

    parser = expat.ParserCreate("utf-8")
    parser.StartDoctypeDeclHandler = _no_declaration
    parser.EntityDeclHandler = _no_declaration
    parser.StartElementHandler = enter
    parser.EndElementHandler = leave
    try:
        parser.Parse(text.encode("utf-8"), True)
    except expat.ExpatError as error:
        raise GraphRefused("TCC601", f"this is no XML: {error}") from None


def _no_declaration(*_: object) -> NoReturn:
    raise GraphRefused("TCC602", "this XML declares a document type or entities; they are refused")
