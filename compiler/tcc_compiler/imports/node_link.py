"""From node-link JSON, as networkx writes it, to a graph; read without networkx.

Normative text: docs/spec/language.md, section 11.  Cost: linear in the bytes.
"""

from __future__ import annotations

import json
from typing import NoReturn

from tcc_compiler.imports.graph import (
    Attributes,
    Edge,
    Graph,
    GraphRefused,
    check_size,
    graph_of,
    key_of,
)


def read_node_link(text: str) -> Graph:
    """The graph that a JSON text writes down.

    Raises:
        GraphRefused: TCC601 no JSON, TCC603 of another shape, TCC609 too large.
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


def _edges(items: list[object]) -> list[Edge]:
    edges = []
    for i, item in enumerate(items):
        edge = _object(item, f"edges[{i}]")
        source = key_of(edge.get("source"), f"edges[{i}].source")
        target = key_of(edge.get("target"), f"edges[{i}].target")
        edges.append(Edge(source=source, target=target, attributes=edge))
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
