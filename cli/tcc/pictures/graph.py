"""Artifacts as networkx graphs, shared or unrolled, and those graphs as node-link JSON and GraphML.

Attributes are strings, numbers and booleans only, so that every writer of networkx accepts them
(docs/pictures.md).  A decimal is a float if that float's shortest text is the decimal, else its
exact text.  In files, counts are decimal strings.  So is every integer beyond 2^53, which other
JSON readers would round.  Hidden characters, and characters that XML does not allow, are JSON
escapes inside the quoted texts of calls; `tcc compile` reads both forms alike.
Cost: linear in calls, states and edges.
"""

from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from tcc.screen import FORMAT_VERSION, decimal
from tcc_certs.errors import Code, Rejected, escaped_json
from tcc_certs.formats.codec import format_decimal
from tcc_certs.policy.core import Tool
from tcc_certs.policy.listing import relaxed_texts
from tcc_certs.policy.plans import Call
from tcc_certs.values.declared import json_of
from tcc_runtime.artifact.load import Artifact

if TYPE_CHECKING:
    import networkx as nx
from dataclasses import dataclass

from tcc_certs.race.digest import child_context, leaf_digest
from tcc_runtime.analysis.graph import PlanGraph, graph_of

Kind: TypeAlias = Literal["node", "leaf", "cut"]

MOST_STEPS: Final = 4_000_000  # edges that counting follows
MOST_TEXT: Final = 1 << 26  # characters of all prefixes together


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """A node of the unrolled part of the prefix DAG.

    Attributes:
        number: the index of the node; the root has 0, and parents come before children.
        parent: the number of the parent; None for the root.
        call: the index of the call that leads to the node; None for the root, and for stopping.
        kind: `node` if its children follow, `leaf` for a complete plan, `cut` if it is not followed
            further.
        prefix: the calls so far, as canonical texts with spaces between them.
        depth: the number of these calls.
        state: the state after these calls; for an artifact with exact counts, a state of its
            automaton.
        accept: whether a plan may stop here.
        plans: the number of plans that begin with the prefix; 1 for a leaf.
        cost: the cost of the calls so far, low ends, in nano-units.
        cost_to_go: the least cost of the rest of a plan, in nano-units.
        rank: the most calls in the rest of a plan.
        context: the context digest D.
        leaf_id: the digest L of a leaf, else None.
    """

    number: int
    parent: int | None
    call: int | None
    kind: Kind
    prefix: str
    depth: int
    state: int
    accept: bool
    plans: int
    cost: int
    cost_to_go: int
    rank: int
    context: bytes
    leaf_id: bytes | None


def sizes(plans: PlanGraph, depth: int) -> tuple[list[int], bool]:
    """Count the nodes of the unrolled part for depths 0, 1, .. `depth`, without listing them.

    Returns:
        the counts and whether they are complete.  The list ends early if no node is left to follow;
        the last count then holds for every greater depth.  It is incomplete if counting would take
        more than MOST_STEPS steps.
    """
    found: list[int] = []
    level = {} if plans.root is None else {plans.root: 1}
    before = steps = 0
    while level:
        found.append(before + sum(level.values()))
        if len(found) > depth:
            break
        # The nodes that are followed, and for each of them its leaf if a plan may stop there.
        following = {q: ways for q, ways in level.items() if plans.rank(q)}
        before = found[-1] + sum(ways for q, ways in following.items() if plans.accepts(q))
        level = {}
        for q, ways in following.items():
            row = plans.edges(q)
            steps += len(row)
            if steps > MOST_STEPS:
                return found, False
            for _, target in row:
                level[target] = level.get(target, 0) + ways
    return found, True


def unroll(artifact: Artifact, depth: int, limit: int) -> list[Prefix]:
    """Return the prefixes of at most `depth` calls, in breadth-first order, siblings in call order.

    Raises:
        ValueError: `depth` is negative.
        Rejected: D201, there are more than `limit` prefixes or their texts are too long, or the
            plans of an artifact with bounds are too many states to unfold.
    """
    if depth < 0:
        raise ValueError(f"a depth is 0 or more, not {depth}")
    plans = graph_of(artifact)
    _require_few(plans, depth, limit)
    made = _Unrolling(artifact, plans, depth)
    return made.nodes


def _require_few(plans: PlanGraph, depth: int, limit: int) -> None:
    counted, whole = sizes(plans, depth)
    if whole and (not counted or counted[-1] <= limit):
        return
    fits = sum(1 for size in counted if size <= limit) - 1
    number = _number(counted[-1])
    there = f"{number} nodes" if whole else f"more than {number} nodes"
    way = f"; depth {fits} has {counted[fits]}" if fits >= 0 else ""
    raise Rejected(Code.LIMIT, f"depth {depth}", f"at most {limit} nodes{way}", there)


def _number(count: int) -> str:
    from tcc.screen import decimal

    return decimal(count)


class _Unrolling:
    """The growing list of nodes, which is also the queue of nodes to follow."""

    def __init__(self, artifact: Artifact, plans: PlanGraph, depth: int) -> None:
        self.nodes: list[Prefix] = []
        self._plans = plans
        self._depth = depth
        self._text = 0
        if plans.root is None:
            return
        self._add(None, None, "", 0, plans.root, 0, artifact.root_digest)
        for node in self.nodes:  # grows during the iteration
            if node.kind == "node":
                self._follow(node)

    def _follow(self, node: Prefix) -> None:
        plans = self._plans
        if node.accept:
            self._stop(node)
        for call, target in plans.edges(node.state):
            text = plans.texts[call]
            prefix = f"{node.prefix} {text}" if node.prefix else text
            cost = node.cost + plans.cost_low[call]
            context = child_context(node.context, text.encode())
            self._add(node.number, call, prefix, node.depth + 1, target, cost, context)

    def _add(
        self,
        parent: int | None,
        call: int | None,
        prefix: str,
        depth: int,
        state: int,
        cost: int,
        context: bytes,
    ) -> None:
        plans, rank = self._plans, self._plans.rank(state)
        kind: Kind = "leaf" if not rank else "cut" if depth == self._depth else "node"
        self._text += len(prefix)
        if self._text > MOST_TEXT:
            raise Rejected(
                Code.LIMIT, f"depth {self._depth}", f"{MOST_TEXT} characters of prefixes", "more"
            )
        self.nodes.append(
            Prefix(
                number=len(self.nodes),
                parent=parent,
                call=call,
                kind=kind,
                prefix=prefix,
                depth=depth,
                state=state,
                accept=plans.accepts(state),
                plans=plans.plans(state),
                cost=cost,
                cost_to_go=plans.cost_to_go(state),
                rank=rank,
                context=context,
                leaf_id=leaf_digest(context) if kind == "leaf" else None,
            )
        )

    def _stop(self, node: Prefix) -> None:
        """Add the leaf of a prefix where a plan may stop but also continue."""
        self.nodes.append(
            Prefix(
                number=len(self.nodes),
                parent=node.number,
                call=None,
                kind="leaf",
                prefix=node.prefix,
                depth=node.depth,
                state=node.state,
                accept=True,
                plans=1,
                cost=node.cost,
                cost_to_go=0,
                rank=0,
                context=node.context,
                leaf_id=leaf_digest(node.context),
            )
        )


_NANO = 10**9


def decimal_number(nano: int) -> float | str:
    """Return nano-units as a float if a float is exact, else as decimal text."""
    text = format_decimal(nano, 9)
    near = float(text)
    return near if Fraction(repr(near)) == Fraction(nano, _NANO) else text


def call_attributes(artifact: Artifact) -> list[dict[str, Any]]:
    """Return the attributes of edges for each call of the artifact, in the order of its calls.

    Raises:
        Rejected: the artifact is unverified, and its core lacks a call that an edge has.
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
    """Return the listed arguments as the text of a JSON object, without omitted arguments."""
    pairs = []
    for field, place in zip(tool.listed, call.values, strict=True):
        values = ("", *field.values) if field.optional else field.values
        text = values[place]
        if text:
            value = json_of(text)
            written = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else text
            pairs.append(f"{json.dumps(field.name, ensure_ascii=False)}: {written}")
    return f"{{{', '.join(pairs)}}}"


# The shared graph: states and edges of the automaton.

_DIGEST = 32


def shared_graph(artifact: Artifact, limit: int) -> nx.MultiDiGraph[Any]:
    """Return the automaton as a graph.

    Raises:
        Rejected: D201, the automaton has more than `limit` states and edges together.
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
    """Return the attributes of the graph, which describe the artifact."""
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
        "relaxed": "; ".join(relaxed_texts(artifact.core, manifest.relaxed)),
    }


class _States:
    """Computes the attributes of states."""

    def __init__(self, artifact: Artifact) -> None:
        self._artifact = artifact
        columns = artifact.file.columns
        self._digests = columns["state_digest"].data
        self._rounded = artifact.manifest.round_counts is not None
        if self._rounded:
            self._mantissa = columns["race_mantissa"].items()
            self._exponent = columns["race_exponent"].items()

    def attributes(self, q: int) -> dict[str, Any]:
        """Return the attributes of state `q`; `tcc compile` reads back `start` and `accept`."""
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
        """Return the race count, if any; a rounded one as mantissa and exponent."""
        if self._artifact.manifest.gate:
            return {}
        if self._rounded:
            return {"race_mantissa": self._mantissa[q], "race_exponent": self._exponent[q]}
        return {"race_count": self._artifact.race_count(q)}


# The unrolled part of the prefix DAG.


def prefix_graph(artifact: Artifact, depth: int, limit: int) -> nx.MultiDiGraph[Any]:
    """Return the prefixes of at most `depth` calls as a tree whose nodes are numbered from 0.

    Raises:
        ValueError, Rejected: as :func:`tcc.pictures.graph.unroll` raises them.
    """
    import networkx as nx

    prefixes = unroll(artifact, depth, limit)
    calls = call_attributes(artifact)
    # Unrolling an artifact with bounds gives the true plans, so their number is exact here.
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
    """Return the graph as text in one of FORMATS, ending with one line feed.

    Args:
        command: the name of the JSON document.  The format `json` is node-link data preceded by
            `format` and `format_version`.
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
    """Return one JSON object with a line for each item of its lists, so that diffs are readable."""
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
    """Return a copy of the graph with attributes in the form for files."""
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
