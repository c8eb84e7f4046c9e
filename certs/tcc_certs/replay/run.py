"""The replay of a run: record after record, with the frontier that the run had.

Normative text: docs/spec/ledger.md, section 3.  What each kind of record has to say, and what it
changes here, stands in :mod:`tcc_certs.replay.kinds`, a page a kind.  The expected record is made
from the artifact, the seed and the records before it; after a field that differs the replay goes on
with the expected value.  What a node is pushed with and what its pop tells is for the policy in
force (:mod:`tcc_certs.replay.policy`).

No prefix context is expanded twice, and no set of digests is needed to see it: a node enters the
frontier only as a child of a popped node, once, at its place in canonical order, and leaves it when
it is popped.  So by induction from the root every node of the prefix tree enters at most once, and
two of them with one digest would be a collision of BLAKE3.

Cost: the policy's.  Memory: the frontier and its ancestors, and the leaves that were found.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from tcc_certs.errors import Code, Rejected, ensure, require
from tcc_certs.formats.codec import Json
from tcc_certs.formats.ledger import Record
from tcc_certs.race.digest import Uniforms
from tcc_certs.replay.best import Best
from tcc_certs.replay.constraints import Constraints
from tcc_certs.replay.diagnostics import NodeSink
from tcc_certs.replay.expansion import Expansion
from tcc_certs.replay.findings import NO_CERT, Findings
from tcc_certs.replay.frontier import Frontier
from tcc_certs.replay.header import Header
from tcc_certs.replay.kappa import Kappa
from tcc_certs.replay.language import Language
from tcc_certs.replay.left import Left, Listing
from tcc_certs.replay.policy import Policy, Word
from tcc_certs.replay.records import guarded, hold_against, pop_of, popped_item
from tcc_certs.replay.refinement import Ask, Refinement
from tcc_certs.replay.root import Root
from tcc_certs.replay.shares import share_of
from tcc_certs.replay.tree import Node, Slot
from tcc_certs.replay.turn import Turn, at_cost, next_turn, refuser
from tcc_certs.replay.words import logged_words, uniform_words


class Run:
    """The state of a run between two records.

    Attributes:
        root: where it begins.
        frontier: what was pushed and not popped.
        best: the leaves found.
        policy: the race and the keys in force.
        refinement: where costs are ranges, what is known of them; else None.
        ask: the question whose answer is expected.
        narrows: whether the downgrade of a run whose counts are rounded is expected.
        falls_back: whether the downgrade after `BudgetFail` is expected.
        claim: what a certified stop would claim now.
        nodes, leaf_nodes, expansions: how many there were; listing: the children of states.
        parent: the node that was popped last; won: which of its children inherits its arrival.
        pushes: the children of it that are expected yet; left: what is left of it, likewise.
        outside: shares of what left the frontier for good: popped leaves, brackets and forbidden
            children of expanded nodes; a sum of residues (:mod:`tcc_certs.replay.shares`).
        tell: gets the diagnostics of each node; None: nobody asked for them.
    """

    def __init__(
        self,
        *,
        language: Language,
        root: Root,
        constraints: Constraints,
        header: Header,
        policy: Policy,
        refinement: Refinement | None,
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
        self.frontier = Frontier()
        self.best = Best(header.top)
        self.claim = header.first_claim(root.rank)
        self.nodes = self.leaf_nodes = self.expansions = self.outside = 0
        self.parent: Node | None = None
        self.won: int | None = None
        self.pushes: deque[Slot] = deque()
        self.left: Left | None = None
        self.listing = listing or Listing(language)
        self._word = None if key is None else uniform_words(key)

    @property
    def leaves(self) -> int:
        """How many leaves were popped."""
        return self.best.number

    @property
    def awaits(self) -> str | None:
        """The kind of record that has to come next, where only one may."""
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
        """What comes next."""
        return next_turn(
            self.frontier.top,
            self.best,
            self.header,
            self.policy,
            self.refinement,
            self.expansions,
        )

    def word(self, record: Record) -> Word:
        """The run's uniforms; those that `record` has in its fields where the seed is unknown."""
        return self._word or logged_words(record)

    def hold(
        self,
        expected: dict[str, Json],
        record: Record,
        line: int,
        guards: list[str] | None = None,
        fails: bool = False,
        place: Node | None = None,
    ) -> None:
        """Hold a record against the expected one, with its guards; they may lower the claim.

        Args:
            fails: whether one of the guards takes the claim down.
            place: the child that it has to be about, whatever else it gets wrong.
        """
        lowers = fails and self.claim != NO_CERT
        if guards:
            expected = guarded(expected, guards, lowers)
        hold_against(expected, record, line, place, self.findings)
        if lowers:
            self.claim = NO_CERT

    def pop(self, turn: Turn, record: Record) -> Node:
        """The item that leaves the frontier, at the cost that it has now; `turn` comes next.

        Raises:
            Rejected: L607 the search had to stop before; L601 another item is expected; L604, L701,
                L702 a guard, a requeue or an ask comes before, or does not come.
        """
        node, now = self.frontier.top, self.turn
        if node is None or now is Turn.CLOSE:
            raise Rejected(Code.STOP_RULE, "kind", "close", record.get("kind"))
        if now is not turn or self.key is None:
            # Else the record that is expected says which item it is about; see hold_against.
            again = turn is Turn.REQUEUE
            named, found = popped_item(self.header.started_ms, node, again), pop_of(record)
            ensure(found == named, Code.POP_ORDER, "node_id", named, found)
        if now is not turn:
            raise Rejected(refuser(now, turn), "kind", now.value, record.get("kind"))
        self.frontier.pop()
        return at_cost(node, self.refinement)

    def begin(self, node: Node, made: Expansion, popped: int, unit: int) -> None:
        """Children of `node`, and what is left of them, are expected from here on.

        Args:
            popped: n of the item that was popped, in units of 2^-unit, as all masses here.

        Raises:
            Rejected: L608 what it pushes and what is lost do not make that up.
        """
        kept = sum([slot.mass for slot in made.pushed])
        kept += 0 if made.left is None else made.left.mass
        require(popped, kept + made.lost, Code.COVERAGE, "coverage")
        self.outside += share_of(node.weight, made.lost, unit)
        self.resume(node, made.won, made.pushed, made.left)

    def resume(
        self, node: Node, won: int | None, pushes: Iterable[Slot], left: Left | None
    ) -> None:
        """Of what `node` pushes this is expected yet; what was lost of it is counted."""
        self.parent, self.won, self.pushes, self.left = node, won, deque(pushes), left
