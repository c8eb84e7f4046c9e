"""Graphs as files, written by networkx: node-link JSON and GraphML.

Counts are decimal texts there, and so is every other integer beyond 2^53, which other readers of
JSON would round.  Hidden characters, and those that XML has not, are escapes of JSON inside the
quoted texts of calls, which `tcc compile` reads as the same.  Cost: linear in the graph.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from tcc.screen import FORMAT_VERSION, decimal
from tcc_certs.plain import escaped_json

if TYPE_CHECKING:
    import networkx as nx

Format: TypeAlias = Literal["json", "node-link", "graphml"]

FORMATS: Final = ("json", "node-link", "graphml")
_COUNTS: Final = ("plans", "race_count", "race_mantissa")
_EXACT: Final = 1 << 53
_NO_XML = re.compile("[\ufffe\uffff]")


def graph_text(graph: nx.MultiDiGraph[Any], output_format: Format, command: str) -> str:
    """The graph in one of FORMATS, one line feed at its end.

    Args:
        command: whose document `json` is: node-link with `format` and `format_version` before it.
    """
    import networkx as nx

    written = _written(graph)
    if output_format == "graphml":
        return "\n".join(nx.generate_graphml(written)) + "\n"
    document = nx.node_link_data(written, edges="edges")
    if output_format == "json":
        document = {"format": f"tcc.{command}", "format_version": FORMAT_VERSION} | document
    return _json_text(document)


def _json_text(document: dict[str, Any]) -> str:
    """One JSON object; of its lists a line for each item, so that a change is seen in a diff."""
    parts = []
    for name, value in document.items():
        if isinstance(value, list) and value:
            items = ",\n".join([json.dumps(item, ensure_ascii=False) for item in value])
            text = f"[\n{items}\n]"
        else:
            text = json.dumps(value, ensure_ascii=False)
        parts.append(f"{json.dumps(name)}: {text}")
    return "{{{}}}\n".format(",\n".join(parts))


def _written(graph: nx.MultiDiGraph[Any]) -> Any:
    """The same graph with attributes as files have them."""
    import networkx as nx

    copy: Any = nx.MultiDiGraph(**_attributes(graph.graph))
    for node, data in graph.nodes(data=True):
        copy.add_node(node, **_attributes(data))
    for source, target, key, data in graph.edges(keys=True, data=True):
        copy.add_edge(source, target, _text(key), **_attributes(data))
    return copy


def _attributes(data: dict[str, Any]) -> dict[str, Any]:
    return {name: _value(name, value) for name, value in data.items()}


def _value(name: str, value: Any) -> Any:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return decimal(value) if name in _COUNTS or abs(value) > _EXACT else value
    return value


def _text(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    return _NO_XML.sub(lambda found: f"\\u{ord(found[0]):04x}", escaped_json(text))
