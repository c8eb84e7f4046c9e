"""From GraphML to a graph.

Normative text: docs/spec/language.md, section 11.  Document types and entities are refused before
networkx sees the text.  networkx is imported when a graph is, not before.  Cost: linear in the
text.
"""

from __future__ import annotations

from typing import Any, NoReturn
from xml.parsers import expat

from tcc_compiler.imports.graph import Graph, GraphRefused
from tcc_compiler.imports.in_memory import graph_of_networkx

MAX_XML_DEPTH = 32


def read_graphml(text: str) -> Graph:
    """The graph that a GraphML text writes down.

    Raises:
        GraphRefused: TCC601 no GraphML, TCC602 declarations, TCC603 of another shape,
            TCC609 too large.
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
    """Well-formed, shallow, and without a document type.

    Raises:
        GraphRefused: TCC601, TCC602.
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
