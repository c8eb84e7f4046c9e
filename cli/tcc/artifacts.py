"""The artifact of the library: as the runtime has it, and as graphs of networkx.

The runtime knows nothing of networkx; these methods import it when they are called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcc_runtime.artifact.load import Artifact as RuntimeArtifact

if TYPE_CHECKING:
    import networkx as nx


class Artifact(RuntimeArtifact):
    """What :func:`tcc.load` and the compilers give: the runtime's artifact, and its graphs."""

    def to_networkx(self, *, limit: int = 1 << 20) -> nx.MultiDiGraph[Any]:
        """The automaton as it stands, a node for each state and an edge for each of its edges.

        :func:`tcc.compile_graph` reads it: what comes out has the same plans, calls and costs.

        Args:
            limit: states and edges together, at most.

        Returns:
            a graph whose every attribute is a text, a number or a truth value (docs/pictures.md).

        Raises:
            tcc_certs.errors.Rejected: D201 it has more; or an unverified artifact is damaged.
        """
        from tcc.graphs.shared import shared_graph

        return shared_graph(self, limit)

    def prefix_dag(self, depth: int, *, limit: int = 10_000) -> nx.MultiDiGraph[Any]:
        """The context-indexed prefix DAG down to prefixes of `depth` calls.

        Its sinks are the complete plans so far, and the prefixes that are not followed further;
        their `plans` add up to the number of all plans.

        Args:
            depth: calls of the longest prefix, 0 or more.
            limit: nodes, at most.

        Raises:
            ValueError: `depth` is negative.
            tcc_certs.errors.Rejected: D201 it has more nodes, and so many; or the plans of an
                artifact with bounds are too many states to unfold.
        """
        from tcc.graphs.prefix_graph import prefix_graph

        return prefix_graph(self, depth, limit)
