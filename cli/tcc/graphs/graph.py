"""Artifacts as networkx graphs, shared or unrolled, and those graphs as node-link JSON and GraphML.

Attributes are strings, numbers and booleans only, so that every writer of networkx takes them
(docs/pictures.md).  A decimal is a float when that float's shortest text is the decimal, and its
exact text otherwise.  In files counts are decimal strings, as is every integer beyond 2^53, which
other JSON readers would round; hidden characters, and those outside XML, are JSON escapes inside
the quoted texts of calls, which `tcc compile` reads as the same.
Cost: linear in calls, states and edges.
"""

from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from tcc.graphs.unrolling import Prefix, unroll
from tcc.screen import FORMAT_VERSION, decimal
from tcc_certs.core.enforced import enforced
from tcc_certs.core.model import Call, Tool
from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.texts import format_decimal
from tcc_certs.plain import escaped_json
from tcc_certs.values.declared import json_of
from tcc_runtime.artifact.load import Artifact

if TYPE_CHECKING:
    import networkx as nx

_NANO = 10**9


def decimal_number(nano: int) -> float | str:
    """A number of nano-units as a float that says it exactly, or as text."""
    text = format_decimal(nano, 9)
    near = float(text)
    return near if Fraction(repr(near)) == Fraction(nano, _NANO) else text


def call_attributes(artifact: Artifact) -> list[dict[str, Any]]:
    """For each call of the artifact, in order, the attributes of its edges.

    Raises:
        Rejected: of an unverified artifact whose core is damaged, or has not all of its calls.
    """
    core = artifact.core
    known = {call.text: call for call in core.calls}
    weights = artifact.weight
    found = []
    for index, text in enumerate(artifact.texts):
        call = known.get(text)
        if call is None:
            raise Rejected(Code.CORE_MISMATCH, f"call_text[{index}]", "a call of the core", text)
        found.append(
            _edge_attributes(call, core.tools[call.tool]) | {"race_weight": weights[index]}
        )
    return found


def _edge_attributes(call: Call, tool: Tool) -> dict[str, Any]:
    low, high = call.cost_low, call.cost_high
    return {
        "call": call.text,
        "tool": tool.name,
        "arguments": _arguments(call, tool),
        "cost": decimal_number(low),
        **({} if low == high else {"cost_high": decimal_number(high)}),
        "price": call.price,
        "latency_ms": call.latency,
        "epsilon": decimal_number(call.epsilon),
    }


def _arguments(call: Call, tool: Tool) -> str:
    """The listed arguments as the text of a JSON object; one that is left out is not in it."""
    pairs = []
    for parameter, place in zip(tool.parameters, call.values, strict=True):
        text = parameter.values[place]
        if text:
            value = json_of(text)
            written = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else text
            pairs.append(f"{json.dumps(parameter.name, ensure_ascii=False)}: {written}")
    return f"{{{', '.join(pairs)}}}"


# The shared graph: states and edges of the automaton.

_DIGEST = 32


def shared_graph(artifact: Artifact, limit: int) -> nx.MultiDiGraph[Any]:
    """The automaton as a graph; at most `limit` states and edges together.

    Raises:
        Rejected: D201 it has more.
    """
    import networkx as nx

    manifest = artifact.manifest
    size = manifest.states + manifest.edges
    if size > limit:
        raise Rejected(Code.LIMIT, "graph", f"at most {limit} states and edges", size)
    graph: Any = nx.MultiDiGraph(**graph_attributes(artifact))
    calls = call_attributes(artifact)
    states = _States(artifact)
    for q in range(manifest.states - 1, -1, -1):
        graph.add_node(q, **states.attributes(q))
    for q in range(manifest.states - 1, -1, -1):
        for call, target in artifact.edges(q):
            attributes = calls[call]
            graph.add_edge(q, target, attributes["call"], **attributes)
    return graph


def graph_attributes(artifact: Artifact) -> dict[str, Any]:
    """What is said of the artifact as a whole."""
    manifest, root = artifact.manifest, artifact.root
    return {
        "name": manifest.grammar,
        "version": manifest.version,
        "digest": artifact.digest.hex(),
        "root": root,
        "root_state": manifest.root.hex(),
        "counts": manifest.counts,
        "plans": artifact.plans(root),
        "states": manifest.states,
        "edges": manifest.edges,
        "calls": manifest.calls,
        "max_depth": artifact.rank(root),
        "min_cost": decimal_number(artifact.cost_to_go(root)),
        "beta": format_decimal(*manifest.beta),
        "tilt": manifest.tilt,
        "nondeterministic": manifest.nondeterministic,
        "relaxed": "; ".join(enforced(artifact.core, artifact.relaxed).run),
    }


class _States:
    """The attributes of states."""

    def __init__(self, artifact: Artifact) -> None:
        self._artifact = artifact
        columns = artifact.file.columns
        self._digests = columns["state_digest"].data
        self._rounded = artifact.manifest.round_counts is not None
        if self._rounded:
            self._mantissa = columns["race_mantissa"].items()
            self._exponent = columns["race_exponent"].items()

    def attributes(self, q: int) -> dict[str, Any]:
        """Those of state `q`; `start` and `accept` are what a graph of states is read by."""
        artifact = self._artifact
        return {
            "start": q == artifact.root,
            "accept": artifact.accepts(q),
            "rank": artifact.rank(q),
            "plans": artifact.plans(q),
            **self._race_count(q),
            "cost_to_go": decimal_number(artifact.cost_to_go(q)),
            "residual_to_go": artifact.residual_to_go(q),
            "state_digest": bytes(self._digests[q * _DIGEST : (q + 1) * _DIGEST]).hex(),
        }

    def _race_count(self, q: int) -> dict[str, int]:
        """A rounded count is not written out: its exponent may be anything."""
        if self._rounded:
            return {"race_mantissa": self._mantissa[q], "race_exponent": self._exponent[q]}
        return {"race_count": self._artifact.race_count(q)}


# The unrolled part of the prefix DAG.


def prefix_graph(artifact: Artifact, depth: int, limit: int) -> nx.MultiDiGraph[Any]:
    """The prefixes of at most `depth` calls as a tree; nodes are numbered from the root's 0.

    Raises:
        ValueError, Rejected: as :func:`tcc.graphs.unrolling.unroll`.
    """
    import networkx as nx

    prefixes = unroll(artifact, depth, limit)
    calls = call_attributes(artifact)
    # Of an artifact with bounds these are the true plans, and so is their number.
    plans = prefixes[0].plans if prefixes else 0
    said = graph_attributes(artifact) | {"counts": "exact", "plans": plans}
    graph: Any = nx.MultiDiGraph(**said | {"root": 0, "depth": depth})
    for node in prefixes:
        graph.add_node(node.number, **_prefix_attributes(node))
        if node.parent is not None:
            attributes = {"stop": True} if node.call is None else calls[node.call]
            graph.add_edge(node.parent, node.number, attributes.get("call", ""), **attributes)
    return graph


def _prefix_attributes(node: Prefix) -> dict[str, Any]:
    return {
        "kind": node.kind,
        "prefix": node.prefix,
        "depth": node.depth,
        "state": node.state,
        "accept": node.accept,
        "plans": node.plans,
        "cost": decimal_number(node.cost),
        "cost_to_go": decimal_number(node.cost_to_go),
        "rank": node.rank,
        "context": node.context.hex(),
        **({} if node.leaf_id is None else {"leaf_id": node.leaf_id.hex()}),
    }


# Files.

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

    copy: Any = nx.MultiDiGraph(**_written_attributes(graph.graph))
    for node, data in graph.nodes(data=True):
        copy.add_node(node, **_written_attributes(data))
    for source, target, key, data in graph.edges(keys=True, data=True):
        copy.add_edge(source, target, _text(key), **_written_attributes(data))
    return copy


def _written_attributes(data: dict[str, Any]) -> dict[str, Any]:
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
