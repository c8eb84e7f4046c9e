"""Costs that are ranges: what is known of each edge, and what has to be asked before a pop.

Normative text: docs/spec/race.md, section 19.  An edge is an
occurrence of a call, named by the digest of the node that it leads to.  An answer narrows its
interval strictly or counts for nothing, so costs of prefixes only rise, and a key that was pushed
before stays an upper bound.
Cost: one step for each call of a prefix, at each pop; memory: the edges
that were asked about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tcc_certs.kernel import CheckedArtifact
from tcc_certs.policy.plans import Model
from tcc_certs.replay.amounts import AskRule
from tcc_certs.replay.asking.account import AccountRecord, DrawnRecord
from tcc_certs.replay.asking.controller import UNNAMED, Choice, Controller, most_useful
from tcc_certs.replay.language import Language
from tcc_certs.replay.tree import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """What an artifact says of its calls for a run that asks; by index of the call.

    Attributes:
        tool: index of its tool in the core.
        models: the ways to ask, never none.
        same: whether the tool promises one cost for each edge.
    """

    tool: Sequence[int]
    models: Sequence[Sequence[Model]]
    same: Sequence[bool]


def read_asking(artifact: CheckedArtifact) -> Asking:
    """The tools of the artifact's calls."""
    core = artifact.core
    owner = [core.calls[number].tool for number in artifact.core_calls]
    return Asking(
        tool=owner,
        models=[core.tools[number].models or (UNNAMED,) for number in owner],
        same=[core.tools[number].quotes_same for number in owner],
    )


@dataclass(slots=True)
class Edge:
    """What is known of an edge.

    Attributes:
        low, high: its interval, nano-units.
        tried: the models that were asked, in order.
    """

    low: int
    high: int
    tried: list[int] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        """Whether the cost is not a point yet."""
        return self.low != self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A question that waits for its answer: the node whose edge it is about, and the model."""

    node: Node
    choice: Choice


class ReplayRefinement:
    """The edges of a run over an artifact with ranges, and its controller.

    Attributes:
        asks: whether asking goes on; once a budget has failed nothing more is asked.
        same: whether every answer so far came from a tool that promises one cost for each edge,
            and lay where it had to.
        drawn: what was drawn on the account of the run; None: it has none.
        refused: models for which the account had too little since the last ask.
    """

    def __init__(
        self,
        language: Language,
        asking: Asking,
        rule: AskRule,
        account: AccountRecord | None = None,
    ) -> None:
        self.controller = Controller(rule)
        self.asks = True
        self.same = True
        self.drawn = None if account is None else DrawnRecord(account)
        self.refused: list[int] = []
        self._asking = asking
        self._language = language
        self._rule = rule
        self._index = {text: call for call, text in enumerate(language.texts)}
        self._edges: dict[bytes, Edge] = {}

    @property
    def overspent(self) -> bool:
        """Whether the asks so far took more than a cap allows, of the run or of its account."""
        drawn = self.drawn
        return self.controller.overspent or (drawn is not None and drawn.overdrawn)

    def call_of(self, node: Node) -> int:
        """The call of the edge that leads to `node`, which is no leaf and not the root."""
        return self._index[node.call]

    def edge(self, node: Node) -> Edge:
        """What is known of the edge that leads to `node`."""
        call = self.call_of(node)
        declared = Edge(self._language.cost_low[call], self._language.cost_high[call])
        return self._edges.get(node.digest, declared)

    def width(self, node: Node) -> int:
        """How wide the interval of its edge is, nano-units."""
        edge = self.edge(node)
        return edge.high - edge.low

    def costs(self, node: Node) -> tuple[int, int]:
        """The least and the greatest that the calls of a prefix may cost, as far as is known."""
        edges = [self.edge(step) for step in _path(node)]
        return sum([edge.low for edge in edges]), sum([edge.high for edge in edges])

    def unasked(self, node: Node) -> Node | None:
        """The node whose edge has to be asked about before `node` may be popped.

        A leaf wants every cost of its plan as a point; where the run asks at nodes too, a node
        wants one answer for its own edge.
        """
        if not self.asks:
            return None
        if node.states is None:
            return next((step for step in _path(node) if self.edge(step).is_open), None)
        if self._rule.ask != "node" or node.parent is None or node.left is not None:
            return None
        edge = self.edge(node)
        return node if edge.is_open and not edge.tried else None

    def choice(self, node: Node, slack: int | None) -> Choice | None:
        """The model that the edge of `node` is asked by next; None: none is left that fits.

        Args:
            slack: of the item that is asked for, Q64.64; None: it is not known.
        """
        if self._rule.ask == "never":
            return None
        models, tried = self._asking.models[self.call_of(node)], self.edge(node).tried
        tried = tried + self.refused
        most = most_useful(self._language.beta, slack)
        return self.controller.choose(self.tool(node), models, tried, self.width(node), most)

    def tool(self, node: Node) -> int:
        """The tool of the edge of `node`."""
        return self._asking.tool[self.call_of(node)]

    def narrow(self, node: Node, number: int, answer: tuple[int, int] | None) -> int | None:
        """Take the answer of a model for the edge of `node`.

        Args:
            answer: an interval; None where there was no answer.

        Returns:
            by how much the low cost rose; None where the answer is not strictly inside (RangeFail).
        """
        edge = self._edges.setdefault(node.digest, self.edge(node))
        edge.tried.append(number)
        if answer is None:
            return 0
        low, high = answer
        inside = edge.low <= low <= high <= edge.high and high - low < edge.high - edge.low
        self.same &= inside and self._asking.same[self.call_of(node)]
        if not inside:
            return None
        gained, edge.low, edge.high = low - edge.low, low, high
        return gained


def _path(node: Node) -> list[Node]:
    """The nodes that the calls of a prefix lead to, first to last."""
    path: list[Node] = []
    step: Node = node if node.states is not None or node.parent is None else node.parent
    if node.left is not None:  # the remainder of a node has the node's prefix
        step = replace(node, digest=node.left.context, left=None)
    while step.parent is not None:
        path.append(step)
        step = step.parent
    return path[::-1]
