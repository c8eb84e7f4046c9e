"""Costs that are ranges: the known bounds of each edge, and the asks before a pop.

Text: docs/spec/race.md, section 19.  An edge is one occurrence of a call, named by the digest of
its target node.  Answers only narrow its bounds.  So the cost of a prefix only rises, and a
published key stays an upper bound.  Cost: a walk up the prefix for each item on top; memory: the
edges with questions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tcc_certs.policy.atoms import Atom
from tcc_certs.policy.plans import Model
from tcc_certs.replay.amounts import AskRule, SpentAmounts
from tcc_certs.replay.asking.controller import Choice, Controller, most_useful
from tcc_runtime.account.amounts import AccountAmounts, Remainder
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.errors import AnswerError
from tcc_runtime.item import (
    EDGE,
    ID,
    LEFT,
    SOURCE,
    VIEW,
    Item,
    call_of,
    calls_of,
    node_of,
    nodes_up,
)
from tcc_runtime.pricing.drawing import Drawing, Wish
from tcc_runtime.pricing.quotes import Answer, Question, Quoter, models_of
from tcc_runtime.settings.modes import Terms
from tcc_runtime.states import WeightedCall


@dataclass(slots=True)
class QuotedEdge:
    """An edge with questions.

    Attributes:
        low, high: the known bounds, nano-units.
        occurrence: its number among such edges.
        asked: the numbers of the models that have been asked.
    """

    low: int
    high: int
    occurrence: int
    asked: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredAsk:
    """An ask and its answer.

    Attributes:
        node: the target of the edge.
        choice: the chosen model.
        answer: the bounds, or None.
        took: the amounts.
        gained: by how much the low cost rose, nano-units.
        fails: whether the answer does not narrow the known bounds.
        left: the remainder of the account of the run; None without an account.
    """

    node: Item
    choice: Choice
    answer: tuple[int, int] | None
    took: SpentAmounts
    gained: int
    fails: bool
    left: Remainder | None = None


class Refinement:
    """The asks of one run.

    Args:
        artifact: with costs that are ranges.
        terms, rule: when to ask, and which model.
        quoter: answers; None asks nothing.
        clock: seconds; times answers that do not state how long they took.

    Attributes:
        controller: chooses models and adds up the amounts.
        closed: whether asking has ended, because a budget failed.
        same: whether every answer came from a tool that promises one cost for each edge, and
            narrowed the known bounds.
        drawing: draws on the account of the run; None without an account.
        atoms: of the asks, in order.
    """

    def __init__(
        self,
        artifact: Artifact,
        terms: Terms,
        rule: AskRule,
        quoter: Quoter | None,
        clock: Callable[[], float],
    ) -> None:
        self.controller = Controller(rule)
        self._counts_atoms = terms.taken is not None
        self.closed = False
        self.same = True
        self.drawing: Drawing | None = None
        self.atoms: list[Atom] = []
        self._overdrawn = False
        self._refused: list[int] = []
        self._quoter = quoter
        self._at_nodes = terms.ask == "node"
        self._clock = clock
        core = artifact.core
        owner = {call.text: call.tool for call in core.calls}
        self._owner = [owner[text] for text in artifact.texts]
        self._tools = core.tools
        self._edges: dict[bytes, QuotedEdge] = {}
        self._beta = artifact.manifest.beta

    @property
    def narrowed(self) -> bool:
        """True if an answer has narrowed an edge."""
        return bool(self._edges)

    @property
    def overspent(self) -> bool:
        """True if asks have taken more than a cap allows, and asking has not ended."""
        return not self.closed and (self._overdrawn or self.controller.overspent)

    def low(self, item: Item) -> int:
        """Return the least possible cost of the calls of a prefix, by the known bounds."""
        # This runs for each item of each step, so the walk up the path is written out here.
        edges, low = self._edges, 0
        step = item if item[LEFT] is None else node_of(item)
        while (edge := step[EDGE]) is not None:
            call = edge[2]
            if call is not None:
                known = edges.get(step[ID])
                low += call.cost_low if known is None else known.low
            source = step[SOURCE]
            step = source if source[LEFT] is None else node_of(source)
        return low

    def costs(self, item: Item) -> tuple[int, int]:
        """Return the least and the greatest possible cost of the calls of a prefix, by the known
        bounds.
        """
        low = high = 0
        if not self._edges:
            calls = calls_of(item)
            return sum([call.cost_low for call in calls]), sum([call.cost_high for call in calls])
        for step in nodes_up(item):
            call = call_of(step)
            if call is not None:
                one, other = self._known(step, call)
                low, high = low + one, high + other
        return low, high

    def due(self, item: Item) -> Item | None:
        """Return the node whose edge must be asked about before `item` is popped, or None."""
        if self.closed:
            return None
        if item[VIEW] is None:
            return self._first_open(item)
        call = call_of(item)
        if not self._at_nodes or item[LEFT] is not None or call is None:
            return None
        return item if item[ID] not in self._edges and call.cost_low != call.cost_high else None

    def choice(self, node: Item, slack: int | None) -> Choice | None:
        """Choose the model to ask about the edge into `node`; None: the caps allow none.

        Args:
            slack: of the item that needs the answer, Q64.64; None: not known.
        """
        call = call_of(node)
        if self._quoter is None or call is None:
            return None
        low, high = self._known(node, call)
        known = self._edges.get(node[ID])
        asked = (*(() if known is None else known.asked), *self._refused)
        number = self._owner[call.index]
        models, most = models_of(self._tools[number]), most_useful(self._beta, slack)
        found = self.controller.choose(number, models, asked, high - low, most)
        return None if found is None else replace(found, slack=slack)

    def wish(self, choice: Choice) -> Wish | None:
        """Reserve the expected amounts of an ask in the account; None without an account.

        A model that the account cannot pay is not chosen again before the next ask.
        """
        if self.drawing is None:
            return None
        spent = self.controller.spent
        found = self.drawing.wish(
            drawn_amounts(spent, spent.plus(choice.reserved), choice.reserved)
        )
        self._refused = [] if found.granted else [*self._refused, choice.number]
        return found

    def ask(self, node: Item, choice: Choice) -> AnsweredAsk:
        """Ask, and apply the answer.

        Raises:
            AnswerError: the quoter returned something that is no answer.
            Rejected: K101, K103, K104, K106: the account refuses.
        """
        call = call_of(node)
        if self._quoter is None or call is None:
            raise ValueError("no quoter, or no call to ask about")
        fresh = QuotedEdge(call.cost_low, call.cost_high, len(self._edges))
        edge = self._edges.setdefault(node[ID], fresh)
        question = Question(
            call=call.text,
            model=choice.model.name,
            low=edge.low,
            high=edge.high,
            occurrence=edge.occurrence,
        )
        if self.drawing is not None:
            self.drawing.begin()
        before = self._clock()
        answer = self._quoter(question) or Answer()
        if answer.atom is not None and not self._counts_atoms:
            raise AnswerError("atom", "none, as the run has no delta", "an atom")
        measured = max(0, round((self._clock() - before) * 1000))
        took = taken_amounts(answer, choice.model, measured)
        return self._take(node, call, edge, choice, answer.interval, took)

    def _take(
        self,
        node: Item,
        call: WeightedCall,
        edge: QuotedEdge,
        choice: Choice,
        answer: tuple[int, int] | None,
        took: SpentAmounts,
    ) -> AnsweredAsk:
        width, gained, fails = edge.high - edge.low, 0, False
        number = self._owner[call.index]
        edge.asked.append(choice.number)
        if answer is not None:
            low, high = answer
            fails = not (edge.low <= low <= high <= edge.high) or high - low == width
            self.same &= self._tools[number].quotes_same and not fails
            if not fails:
                gained = low - edge.low
                edge.low, edge.high = answer
        spent, left = self.controller.spent, None
        self.controller.settle(number, choice, took, width, gained)
        self.atoms += [] if took.atom is None else [took.atom]
        if self.drawing is not None:
            left = self.drawing.settle(drawn_amounts(spent, self.controller.spent, took))
            self._overdrawn = left.overdrawn
        return AnsweredAsk(
            node=node,
            choice=choice,
            answer=answer,
            took=took,
            gained=gained,
            fails=fails,
            left=left,
        )

    def _known(self, node: Item, call: WeightedCall) -> tuple[int, int]:
        known = self._edges.get(node[ID])
        return (call.cost_low, call.cost_high) if known is None else (known.low, known.high)

    def _first_open(self, leaf: Item) -> Item | None:
        first: Item | None = None
        for step in nodes_up(leaf):
            call = call_of(step)
            if call is not None:
                low, high = self._known(step, call)
                if low != high:
                    first = step
        return first


def refinement_of(
    artifact: Artifact, terms: Terms, quoter: Quoter | None, clock: Callable[[], float]
) -> Refinement | None:
    """Return the asks of a run; None if no cost is a range."""
    rule = terms.ask_rule
    if rule is None:
        return None
    asked = None if rule.ask == "never" else quoter
    return Refinement(artifact, terms, rule, asked, clock)


def drawn_amounts(before: SpentAmounts, after: SpentAmounts, one: SpentAmounts) -> AccountAmounts:
    """Return the amounts of an ask in an account; its epsilon is the rise of the run's epsilon.

    The rise is never below 0.  Rounding may make the bound of a longer list tighter, but an account
    gives nothing back for an ask.
    """
    raised = max(0, after.epsilon_used - before.epsilon_used)
    return AccountAmounts(price=one.price, latency_ms=one.latency, epsilon=raised)


def taken_amounts(answer: Answer, model: Model, measured: int) -> SpentAmounts:
    """Return the amounts of an answer; amounts that it leaves out are declared or `measured`."""
    return SpentAmounts(
        price=model.price if answer.price is None else answer.price,
        latency=measured if answer.latency_ms is None else answer.latency_ms,
        epsilon=model.epsilon if answer.epsilon is None else answer.epsilon,
        atom=model.atom if answer.atom is None else answer.atom,
    )
