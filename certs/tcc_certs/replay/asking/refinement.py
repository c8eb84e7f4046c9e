"""Costs that are ranges: the known interval of each edge, and the questions before a pop.

Normative text: docs/spec/race.md, section 19.  An edge is an occurrence of a call, named by the
digest of the node that it leads to.  An answer narrows its interval strictly, or it is ignored.  So
costs of prefixes only rise, and earlier keys remain upper bounds.  Cost: one step for each call of
a prefix, at each pop.  Memory: the edges with questions.
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
    """The data of an artifact that a run with questions needs, by the index of the call.

    Attributes:
        tool: the index of its tool in the core.
        models: the models that can be asked, at least one.
        same: whether the tool promises one cost for each edge.
    """

    tool: Sequence[int]
    models: Sequence[Sequence[Model]]
    same: Sequence[bool]


def read_asking(artifact: CheckedArtifact) -> Asking:
    """Return the tools and models of the artifact's calls."""
    core = artifact.core
    owner = [core.calls[number].tool for number in artifact.core_calls]
    return Asking(
        tool=owner,
        models=[core.tools[number].models or (UNNAMED,) for number in owner],
        same=[core.tools[number].quotes_same for number in owner],
    )


@dataclass(slots=True)
class Edge:
    """The known cost of an edge.

    Attributes:
        low, high: its interval, nano-units.
        tried: the models that were asked, in order.
    """

    low: int
    high: int
    tried: list[int] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        """True if the cost is not yet a single number."""
        return self.low != self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A question without an answer so far: the node whose edge it is about, and the model."""

    node: Node
    choice: Choice


class ReplayRefinement:
    """The edges of a run over an artifact with cost ranges, and its controller.

    Attributes:
        asks: whether questions are allowed; False after a budget failed.
        same: whether every answer so far came from a tool that promises one cost for each edge, and
            narrowed its interval.
        drawn: the draws on the run's account; None: no account.
        refused: the models that the account refused since the last question.
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
        """True if the questions exceed a cap of the run or of its account."""
        drawn = self.drawn
        return self.controller.overspent or (drawn is not None and drawn.overdrawn)

    def call_of(self, node: Node) -> int:
        """Return the call of the edge to `node`, which is neither a leaf nor the root."""
        return self._index[node.call]

    def edge(self, node: Node) -> Edge:
        """Return the known cost of the edge to `node`."""
        call = self.call_of(node)
        declared = Edge(self._language.cost_low[call], self._language.cost_high[call])
        return self._edges.get(node.digest, declared)

    def width(self, node: Node) -> int:
        """Return the width of the interval of the edge to `node`, nano-units."""
        edge = self.edge(node)
        return edge.high - edge.low

    def costs(self, node: Node) -> tuple[int, int]:
        """Return the least and the greatest cost that the calls of a prefix may have."""
        edges = [self.edge(step) for step in _path(node)]
        return sum([edge.low for edge in edges]), sum([edge.high for edge in edges])

    def unasked(self, node: Node) -> Node | None:
        """Return the node whose edge needs a question before `node` may be popped, or None.

        A leaf needs every cost of its plan as a single number.  If the run also asks at nodes, a
        node needs one answer about its own edge.
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
        """Return the model for the next question about the edge to `node`.

        None if no model fits, if all were asked, or if the run never asks.

        Args:
            slack: the slack of the item that needs the question, Q64.64; None: not known.
        """
        if self._rule.ask == "never":
            return None
        models, tried = self._asking.models[self.call_of(node)], self.edge(node).tried
        tried = tried + self.refused
        most = most_useful(self._language.beta, slack)
        return self.controller.choose(self.tool(node), models, tried, self.width(node), most)

    def tool(self, node: Node) -> int:
        """Return the tool of the edge to `node`."""
        return self._asking.tool[self.call_of(node)]

    def narrow(self, node: Node, number: int, answer: tuple[int, int] | None) -> int | None:
        """Apply the answer of a model about the edge to `node`.

        Args:
            answer: an interval; None: the model had no information.

        Returns:
            the rise of the low cost; None if the answer is not strictly inside (RangeFail).
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
    """Return the nodes that the calls of a prefix lead to, first to last."""
    path: list[Node] = []
    step: Node = node if node.states is not None or node.parent is None else node.parent
    if node.left is not None:  # the remainder of a node has the node's prefix
        step = replace(node, digest=node.left.context, left=None)
    while step.parent is not None:
        path.append(step)
        step = step.parent
    return path[::-1]
