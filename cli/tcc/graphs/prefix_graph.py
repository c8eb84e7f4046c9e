"""The unrolled part of the prefix DAG as a graph of networkx.  Attributes: docs/pictures.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcc.graphs.amounts import call_attributes, decimal_number
from tcc.graphs.shared import graph_attributes
from tcc.graphs.unrolling import Prefix, unroll
from tcc_runtime.artifact.load import Artifact

if TYPE_CHECKING:
    import networkx as nx


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
        graph.add_node(node.number, **_attributes(node))
        if node.parent is not None:
            attributes = {"stop": True} if node.call is None else calls[node.call]
            graph.add_edge(node.parent, node.number, attributes.get("call", ""), **attributes)
    return graph


def _attributes(node: Prefix) -> dict[str, Any]:
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
