"""The replay of a run: record after record, with the frontier that the run had.

Normative text: docs/spec/ledger.md, section 3.  Each record is held against the one that is due
(:mod:`tcc_certs.replay.records`), which is made from the artifact, the seed and the records before
it; after a field that differs the replay goes on with the value that is due.  What a node is pushed
with and what its pop tells is for the policy in force (:mod:`tcc_certs.replay.policy`).

No prefix context is expanded twice, and no set of digests is needed to see it: a node enters the
frontier only as a child of a popped node, once, at its place in canonical order, and leaves it when
it is popped.  So by induction from the root every node of the prefix tree enters at most once, and
two of them with one digest would be a collision of BLAKE3.

Cost: the policy's.  Memory: the frontier and its ancestors, and the leaves that were found.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import replace

from tcc_certs.codec import Json
from tcc_certs.digest import Uniforms
from tcc_certs.errors import Code, Rejected
from tcc_certs.fixed import format_q64
from tcc_certs.ledger import Record
from tcc_certs.replay.best import Best
from tcc_certs.replay.constraints import Constraints
from tcc_certs.replay.draws import made_of
from tcc_certs.replay.expansion import Expansion
from tcc_certs.replay.findings import NO_CERT, Findings
from tcc_certs.replay.frontier import Frontier
from tcc_certs.replay.guards import ACYCLICITY, CLAMP, potential
from tcc_certs.replay.header import Header
from tcc_certs.replay.kappa import Kappa
from tcc_certs.replay.language import Language
from tcc_certs.replay.left import Left, Listing
from tcc_certs.replay.policy import Policy, with_key
from tcc_certs.replay.records import (
    due_pop,
    guarded,
    hold_against,
    is_about,
    no_node_due,
    node_record,
    pop_of,
    popped_record,
)
from tcc_certs.replay.refinement import Ask, Refinement
from tcc_certs.replay.tree import Node, Slot, below, child_digest, root_node, share
from tcc_certs.replay.turn import Turn, at_cost, next_turn, refuser
from tcc_certs.replay.words import words


class Run:
    """The state of a run between two records.

    Attributes:
        frontier: what was pushed and not popped.
        best: the leaves found.
        policy: the race and the keys in force.
        refinement: where costs are ranges, what is known of them; else None.
        ask: the question whose answer is due.
        falls_back: whether the downgrade after `BudgetFail` is due.
        claim: what a certified stop would claim now.
        nodes, leaf_nodes, expansions: how many there were; listing: the children of states.
        outside: shares of what left the frontier for good: popped leaves, brackets and forbidden
            children of expanded nodes.
    """

    def __init__(
        self,
        *,
        language: Language,
        constraints: Constraints,
        header: Header,
        policy: Policy,
        refinement: Refinement | None,
        key: Uniforms | None,
        kappa: Kappa,
        findings: Findings,
        listing: Listing | None = None,
    ) -> None:
        self.language = language
        self.constraints = constraints
        self.header = header
        self.policy = policy
        self.refinement = refinement
        self.ask: Ask | None = None
        self.falls_back = False
        self.key = key
        self.kappa = kappa
        self.findings = findings
        self.frontier = Frontier()
        self.best = Best(header.top)
        self.root_rank = language.rank(language.root)
        self.claim = header.first_claim(self.root_rank)
        self.nodes = self.leaf_nodes = self.expansions = self.outside = 0
        self.parent: Node | None = None
        self._won: int | None = None
        self._due: deque[Slot] = deque()
        self._left: Left | None = None
        self.listing = listing or Listing(language)

    @property
    def leaves(self) -> int:
        """How many leaves were popped."""
        return self.best.number

    @property
    def awaits(self) -> str | None:
        """The kind of record that has to come next, where only one may."""
        if self.nodes == 0 or self._due:
            return "node"
        if self._left is not None:
            return "rest"
        if self.ask is not None:
            return "refine"
        return "downgrade" if self.falls_back else None

    @property
    def turn(self) -> Turn:
        """What comes next."""
        return next_turn(
            self.frontier.top,
            best=self.best,
            header=self.header,
            language=self.language,
            policy=self.policy,
            refinement=self.refinement,
            expansions=self.expansions,
        )

    def node(self, record: Record, line: int) -> None:
        """A ``node`` record: the root, or the next child of the node just expanded.

        Raises:
            Rejected: L602 another child than the one that is due, L603 a node that is in the
                frontier, L104 no node is due.
        """
        if not self.nodes:
            self._enter(root_node(self.language, self.constraints, self.kappa.root), record, line)
            return
        if not self._due:
            raise no_node_due(self.frontier.digests(), record)
        parent, slot = self.parent, self._due.popleft()
        if parent is None:
            raise Rejected(Code.LEDGER_ORDER, "kind", "expand, leaf or close", "node")
        digest = child_digest(self.language, parent.digest, slot)
        exact = self.kappa.step(parent.exact, slot)
        child = below(self.language, parent, slot, digest, slot.position == self._won, exact)
        self._enter(child, record, line, child)

    def _enter(self, node: Node, record: Record, line: int, place: Node | None = None) -> None:
        pushed = self.policy.push(node, words(self.key, record))
        due = node_record(self.language, self.header.started_ms, node, pushed.fields)
        self.hold(due, [CLAMP] * pushed.clamped, pushed.clamped, record, line, place)
        self.nodes += 1
        self.leaf_nodes += node.states is None
        self.kappa.note(node.states, node.exact)
        self.frontier.push(with_key(node, pushed))

    def hold(
        self,
        due: dict[str, Json],
        guards: list[str],
        fails: bool,
        record: Record,
        line: int,
        place: Node | None = None,
    ) -> None:
        """Hold a record against the one that is due, with its guards; they may lower the claim."""
        lowers = fails and self.claim != NO_CERT
        hold_against(guarded(due, guards, lowers), record, line, place, self.findings)
        if lowers:
            self.claim = NO_CERT

    def pop(self, turn: Turn, record: Record) -> Node:
        """The item that leaves the frontier, at the cost that it has now; `turn` comes next.

        Raises:
            Rejected: L607 the search had to stop before; L601 another item is due; L604, L701, L702
                a guard, a requeue or an ask comes before, or does not come.
        """
        node, due = self.frontier.top, self.turn
        if node is None or due is Turn.CLOSE:
            raise Rejected(Code.STOP_RULE, "kind", "close", record.get("kind"))
        named = due_pop(self.header.started_ms, node, turn is Turn.REQUEUE)
        if not is_about(record, named):
            raise Rejected(Code.POP_ORDER, "node_id", named, pop_of(record))
        if due is not turn:
            raise Rejected(refuser(due, turn), "kind", due.value, record.get("kind"))
        self.frontier.pop()
        return at_cost(node, self.refinement)

    def expand(self, record: Record, line: int) -> None:
        """An ``expand`` record: the top of the frontier, an internal node.

        Raises:
            Rejected: as :meth:`pop`.
        """
        node = self.pop(Turn.EXPAND, record)
        word = words(self.key, record)
        popped = self.policy.pop(node, word)
        if popped.arrival is not node.arrival:
            node = replace(node, came=popped.arrival)
        children = self.listing.children(node.states or ())
        made = made_of(self.policy, self.language, self.constraints, node, children, word)
        phi = potential(self.header, self.root_rank, node)
        due = popped_record(
            "expand", self.header.started_ms, node, {**popped.fields, **made.fields, **phi.fields}
        )
        guards = [ACYCLICITY] * phi.fails + [CLAMP] * (phi.clamped or popped.clamped)
        self.hold(due, guards, phi.fails or popped.clamped, record, line)
        self.expansions += 1
        self.begin(node, made)

    def begin(self, node: Node, made: Expansion) -> None:
        """Children of `node`, and what is left of them, are due from here on."""
        self.outside += made.lost
        self.resume(node, made.won, made.pushed, made.left)

    def resume(self, node: Node, won: int | None, due: Iterable[Slot], left: Left | None) -> None:
        """Of what `node` pushes this is due yet; what was lost of it is counted."""
        self.parent, self._won, self._due, self._left = node, won, deque(due), left

    def take_left(self) -> Left | None:
        """What was left by the last draw; from here on it is in the frontier."""
        left, self._left = self._left, None
        return left

    def leaf(self, record: Record, line: int) -> None:
        """A ``leaf`` record: the top of the frontier, a leaf.

        Raises:
            Rejected: as :meth:`pop`.
        """
        node = self.pop(Turn.LEAF, record)
        popped = self.policy.pop(node, words(self.key, record))
        self.best.add(node, popped.value)
        due = popped_record("leaf", self.header.started_ms, node, popped.fields)
        if self.best.incumbent is not None:
            due["incumbent"] = format_q64(self.best.incumbent)
        self.hold(due, [CLAMP] * popped.clamped, popped.clamped, record, line)
        self.outside += share(self.language, node)

    def found(self, leaf: Node) -> None:
        """A leaf was popped by a record that went straight; its key is its value."""
        self.best.add(leaf, leaf.key)
        self.outside += share(self.language, leaf)
