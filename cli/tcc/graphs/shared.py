"""The shared graph of an artifact: its states and edges, with everything it says of them.

Attributes: docs/pictures.md.  They are texts, numbers and truth values alone, so that every writer
of networkx takes them.  Cost: linear in the states and the edges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcc.graphs.amounts import call_attributes, decimal_number
from tcc_certs.core.enforced import enforced
from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.decimals import format_decimal
from tcc_runtime.artifact.load import Artifact

if TYPE_CHECKING:
    import networkx as nx

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
