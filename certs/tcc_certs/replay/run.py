"""The state of a run between two records: its frontier, its guards and the next step.

Normative text: docs/spec/ledger.md, sections 3 and 5; docs/spec/race.md, sections 5, 9, 10, 18 and
19.  :mod:`tcc_certs.replay.kinds` has the expected content and the effect of each kind of record.
The expected record follows from the artifact, the seed and the earlier records.  After a wrong
field the replay continues with the expected value.  The policy in force
(:mod:`tcc_certs.replay.races.coupled`) computes the numbers of pushes and pops.

No prefix context is expanded twice, and no set of digests is needed to check this.  A node enters
the frontier only as a child of a popped node, once, at its place in canonical order.  It leaves the
frontier when it is popped.  So by induction from the root every node of the prefix tree enters at
most once.  Two nodes with the same digest would be a collision of BLAKE3.

Cost: one mass for each child, the search for the winner of each draw
(:mod:`tcc_certs.replay.races.children`), and the cost of the policy.  Memory: the frontier and its
ancestors, and the leaves that were found.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tcc_certs.errors import Code, Rejected, ensure, require
from tcc_certs.formats.codec import Json, divide_nearest
from tcc_certs.formats.ledger import Q32_MAX, Q32_MIN, Record, format_q32
from tcc_certs.race.arrivals import winner
from tcc_certs.race.digest import WINNER, Uniforms
from tcc_certs.race.enclosures import NANO
from tcc_certs.replay.findings import NO_CERT, Findings
from tcc_certs.replay.header import Header
from tcc_certs.replay.kappa import Kappa, NodeSink
from tcc_certs.replay.language import Language, RunRoot
from tcc_certs.replay.races.children import Children, Left, Listing, whole
from tcc_certs.replay.races.coupled import RacePolicy, Word, logged_words
from tcc_certs.replay.records import RunTexts, guarded, hold_against, pop_of, popped_item, record_of
from tcc_certs.replay.tree import Best, Node, ReplayFrontier, Slot, share_of, slots
from tcc_certs.statements import Constraints

if TYPE_CHECKING:
    from tcc_certs.replay.asking.refinement import Ask, ReplayRefinement

# Tells whether the record is the expected one; see ReplayedRun.hold.
Holds: TypeAlias = "Callable[..., bool]"
Step: TypeAlias = "Callable[[ReplayedRun, Word, Holds], bool]"

# The result of an expansion or a draw: children, the winner, and the lost share.

PHANTOM = "phantom"


class Expansion(NamedTuple):
    """The result of the expansion of a node, or of a draw from it.

    Attributes:
        pushed: the allowed children to push, in canonical order.
        won: the position of the winner; None for a phantom or a forbidden child.
        fields: the fields ``W``, ``winner`` and ``dead_end`` that the record must have.
        lost: the bracket (phantom mass) and the masses of the forbidden children, in the units of
            the children's masses.
        left: in the rest race, the remaining children before this draw; None if the draw takes the
            last child.
        drawn: the position that the draw takes; None: the phantom mass.
    """

    pushed: tuple[Slot, ...]
    won: int | None
    fields: Mapping[str, Json]
    lost: int
    left: Left | None = None
    drawn: int | None = None


def expand(
    language: Language,
    constraints: Constraints,
    node: Node,
    listed: Children,
    draws_winner: bool,
    word: Word,
) -> Expansion:
    """Return the expansion of `node`, an internal node whose children are `listed`."""
    children, masses, total = slots(listed, constraints, node.tally), listed.masses, listed.total
    pushed = tuple([slot for slot in children if slot.tally is not None])
    fields: dict[str, Json] = {}
    won = None
    if draws_winner:
        x = word(WINNER, node.digest, "W")
        first = winner(x, total, masses)
        won = first if first is not None and children[first].tally is not None else None
        fields = {"W": str(x), "winner": PHANTOM if won is None else str(won)}
    if not pushed:
        fields["dead_end"] = True
    bracket = total - sum(masses)
    forbidden = sum([slot.mass for slot in children if slot.tally is None])
    return Expansion(pushed=pushed, won=won, fields=fields, lost=bracket + forbidden)


@cache
def rest_race() -> Any:
    """Return the module of the rest race; other runs do not load it."""
    from tcc_certs.replay.races import rest

    return rest


def made_of(
    policy: RacePolicy,
    language: Language,
    constraints: Constraints,
    node: Node,
    children: Children,
    word: Word,
) -> Expansion:
    """Return the expansion of `node`, whose children are `children`, in the race of `policy`."""
    if policy.one_by_one:
        left = whole(node.digest, children)
        made: Expansion = rest_race().drawn(language, constraints, node, left, word)
        return made
    return expand(language, constraints, node, children, policy.draws_winner, word)


# The run.

# ---- Guards: the replay checks that each fires exactly where it has to.

ACYCLICITY, BUDGET, CAP, CLAMP, COUNT, RANGE, TIMEOUT = (
    "AcyclicityFail", "BudgetFail", "CapExceeded", "NumClamp", "CountFail", "RangeFail", "Timeout",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Potential:
    """Phi at an expansion.

    Attributes:
        fields: the fields ``phi_before``, ``phi_after`` and ``delta_phi`` that the record must
            have.
        fails: whether `AcyclicityFail` fires.
        clamped: whether any of the fields had to be clamped.
    """

    fields: Mapping[str, Json]
    fails: bool
    clamped: bool


_NO_POTENTIAL = Potential(fields={}, fails=False, clamped=False)


def potential(header: Header, root_rank: int, node: Node) -> Potential:
    """Return Phi of a node and of its parent, if the guard needs it.

    Phi = (L - depth) + alpha * cost_high.  Here both have the common denominator 10^places * 10^9.
    """
    numerator, places = header.alpha
    parent = node.parent
    if numerator <= 0 or parent is None:
        return _NO_POTENTIAL  # Phi falls by 1 at each step, and eta is at most 1
    unit = NANO * 10**places
    before = (root_rank - parent.depth) * unit + numerator * parent.cost_high
    after = (root_rank - node.depth) * unit + numerator * node.cost_high
    eta, eta_places = header.eta
    exact = {"phi_before": before, "phi_after": after, "delta_phi": after - before}
    rounded = {name: divide_nearest(value << 32, unit) for name, value in exact.items()}
    held = {name: min(max(value, Q32_MIN), Q32_MAX) for name, value in rounded.items()}
    return Potential(
        fields={name: format_q32(value) for name, value in held.items()},
        fails=(after - before) * 10**eta_places > -eta * unit,
        clamped=held != rounded,
    )


def capped(header: Header, expansions: int) -> bool:
    """Return whether the cap on expansions forbids another expansion."""
    return expansions == header.max_expansions


# ---- The next step, which follows from the item on top of the frontier.


class Turn(StrEnum):
    """The next step, named by the kind of its record.

    CAP: the run ends by its cap on expansions.
    """

    CLOSE = "close"
    REQUEUE = "requeue"
    CAP = "close, by CapExceeded"
    BUDGET = "budget"
    LEAF = "leaf"
    EXPAND = "expand"
    DRAW = "draw"


_CODES = {
    Turn.REQUEUE: Code.REQUEUE,
    Turn.CAP: Code.GUARD,
    Turn.BUDGET: Code.ASK,
}


def refuser(expected: Turn, found: Turn) -> Code:
    """Return the code that refuses the step `found` where `expected` is next."""
    return _CODES.get(expected) or _CODES.get(found) or Code.POP_ORDER


def at_cost(node: Node, refinement: ReplayRefinement | None) -> Node:
    """Return the node with the least cost that its calls may have, as far as is known."""
    if refinement is None:
        return node
    low, _ = refinement.costs(node)
    return node if low == node.cost_low else replace(node, cost_low=low)


class ReplayedRun:
    """The state of a run between two records.

    Attributes:
        root: the start of the run.
        frontier: the items that were pushed and not popped.
        best: the leaves found.
        policy: the race and the keys in force.
        refinement: the known costs, if costs are ranges; else None.
        ask: the question whose answer is next.
        narrows: whether the next record is the downgrade of a run with rounded counts.
        falls_back: whether the next record is the downgrade after `BudgetFail`.
        claim: the claim of a certified stop at this point.
        nodes, leaf_nodes, expansions: the numbers of pushed nodes, pushed leaves and expansions.
        listing: the children of states.
        parent: the node that was popped last.
        won: the position of its child that inherits its arrival.
        pushes: its children whose `node` records are still to come.
        left: its remaining children, whose `rest` record is still to come.
        outside: the shares that left the frontier for good: popped leaves, and the brackets and
            forbidden children of expanded nodes.  It is a sum of residues
            (:mod:`tcc_certs.replay.tree`).
        tell: receives the diagnostics of each node; None: no diagnostics.
    """

    def __init__(
        self,
        *,
        language: Language,
        root: RunRoot,
        constraints: Constraints,
        header: Header,
        policy: RacePolicy,
        refinement: ReplayRefinement | None,
        key: Uniforms | None,
        kappa: Kappa,
        findings: Findings,
        listing: Listing | None = None,
        tell: NodeSink | None = None,
    ) -> None:
        self.tell = tell
        self.language = language
        self.root = root
        self.constraints = constraints
        self.header = header
        self.policy = policy
        self.refinement = refinement
        self.ask: Ask | None = None
        self.narrows = language.rounded and header.mode != "fallback"
        self.falls_back = False
        self.key = key
        self.kappa = kappa
        self.findings = findings
        self.frontier = ReplayFrontier()
        self.best = Best(header.top)
        self.claim = header.first_claim(root.rank)
        self.nodes = self.leaf_nodes = self.expansions = self.outside = 0
        self.parent: Node | None = None
        self.won: int | None = None
        self.pushes: deque[Slot] = deque()
        self.left: Left | None = None
        self.listing = listing or Listing(language)
        self.texts = RunTexts(language, header.started_ms, self.listing.met[1])

    @property
    def leaves(self) -> int:
        """The number of popped leaves."""
        return self.best.number

    @property
    def awaits(self) -> str | None:
        """The kind of the next record, if only one kind is possible; else None."""
        if self.narrows:
            return "downgrade"
        if self.pushes or not self.nodes:
            return "node"
        if self.left is not None:
            return "rest"
        if self.ask is not None:
            return "refine"
        return "downgrade" if self.falls_back else None

    @property
    def turn(self) -> Turn:
        """The next step, unless the run is ended from outside or by its time limit."""
        top, refinement, incumbent = self.frontier.top, self.refinement, self.best.incumbent
        if refinement is not None and refinement.asks and refinement.overspent:
            return Turn.BUDGET
        if top is None or (incumbent is not None and top.key <= incumbent):
            return Turn.CLOSE
        if refinement is not None:
            node = at_cost(top, refinement)
            if node is not top and self.policy.again(node).key < top.key:
                return Turn.REQUEUE  # answers since its push have lowered its key
        if top.left is not None:
            return Turn.DRAW
        if top.states is not None and capped(self.header, self.expansions):
            return Turn.CAP
        if refinement is not None and refinement.unasked(top) is not None:
            return Turn.BUDGET
        return Turn.LEAF if top.states is None else Turn.EXPAND

    def word(self, record: Record) -> Word:
        """Return the uniforms of the run; without a seed, those in the fields of `record`."""
        return self.key or logged_words(record)

    def hold(
        self,
        record: Record,
        line: int,
        expected: Record | bytes,
        guards: list[str] | None = None,
        fails: bool = False,
        place: Node | None = None,
    ) -> bool:
        """Compare a record with the expected record and its guards, which may lower the claim.

        Args:
            fails: whether any of the guards lowers the claim to NoCert.
            place: the child that the record must be about, even if other fields are wrong.

        Returns:
            True: the run continues with the expected values.
        """
        lowers = fails and self.claim != NO_CERT
        if guards:
            expected = guarded(record_of(expected), guards, lowers)
        hold_against(expected, record, line, place, self.findings)
        if lowers:
            self.claim = NO_CERT
        return True

    @property
    def top(self) -> Node:
        """The item that leaves the frontier next, at its present cost.

        Raises:
            Rejected: L607: the frontier is empty.
        """
        top = self.frontier.top
        if top is None:
            raise Rejected(Code.STOP_RULE, "kind", "close", "a pop")
        return at_cost(top, self.refinement)

    def check_pop(self, turn: Turn, record: Record) -> None:
        """Check that `turn` is the next step, and that the record is about the item on top.

        Raises:
            Rejected: L607 the search had to stop before.  L601 another item is expected.  L604,
                L701, L702 a guard, a requeue or a question is missing or unexpected.
        """
        node, now = self.frontier.top, self.turn
        if node is None or now is Turn.CLOSE:
            raise Rejected(Code.STOP_RULE, "kind", "close", record.get("kind"))
        if now is not turn or self.key is None:
            # Otherwise `hold_against` compares the item with that of the expected record.
            again = turn is Turn.REQUEUE
            named, found = popped_item(self.header.started_ms, node, again), pop_of(record)
            ensure(found == named, Code.POP_ORDER, "node_id", named, found)
        if now is not turn:
            raise Rejected(refuser(now, turn), "kind", now.value, record.get("kind"))

    def begin(self, node: Node, name: str, made: Expansion, popped: int, unit: int) -> None:
        """Pop `node`; the records of its children and of their remainder are next.

        Args:
            name: the UUID of the node.
            popped: n of the popped item, in units of 2^-unit, like all masses here.

        Raises:
            Rejected: L608: the pushed masses and the lost mass do not add up to `popped`.  Nothing
                was changed.
        """
        left, kept = made.left, sum([slot.mass for slot in made.pushed])
        kept += 0 if left is None else left.mass_without(made.drawn)
        require(popped, kept + made.lost, Code.COVERAGE, "coverage")
        self.frontier.pop()
        if made.lost:
            self.outside += share_of(node.weight, made.lost, unit)
        self.parent, self.won, self.pushes = node, made.won, deque(made.pushed)
        self.left = None if left is None else left.without(made.drawn, made.won is None)
        self.texts.expect(node, name)
