"""The replay of an exact run: record after record, with the frontier that the run had.

Normative text: docs/spec/ledger.md, section 3.  Each record is held against the one that is due
(:mod:`tcc_certs.replay.records`), which is made from the artifact, the seed and the records before
it; after a field that differs the replay goes on with the value that is due.

No prefix context is expanded twice, and no set of digests is needed to see it: a node enters the
frontier only as a child of a popped node, once, at its place in canonical order, and leaves it when
it is popped.  So by induction from the root every node of the prefix tree enters at most once, and
two of them with one digest would be a collision of BLAKE3.

Cost: two logarithms a node, one exponential a leaf.  Memory: the frontier and its ancestors.
"""

from __future__ import annotations

import heapq
from bisect import insort
from collections import deque

from tcc_certs.digest import FIRST_ARRIVAL, RESIDUAL, WINNER, uniform, uuid7
from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.ledger import Record
from tcc_certs.ledger_schema import text
from tcc_certs.race import leaf_uniform, winner
from tcc_certs.replay.findings import Findings
from tcc_certs.replay.header import Header
from tcc_certs.replay.language import Language
from tcc_certs.replay.records import (
    compare,
    expand_record,
    leaf_record,
    node_record,
    potential_fields,
)
from tcc_certs.replay.tree import (
    Node,
    Slot,
    child_digest,
    push,
    push_root,
    scale,
    share,
    slots,
)


class Run:
    """The state of a run between two records.

    Attributes:
        frontier: heap of (-key, digest, node).
        best: (-value, digest, leaf) of the best k leaves so far, best first.
        nodes, expansions, leaves: how many there were.
        certified: False once a guard has taken the claim down.
        outside: shares of what left the frontier for good: popped leaves, and brackets.
    """

    def __init__(
        self, language: Language, header: Header, key: bytes | None, findings: Findings
    ) -> None:
        self.language = language
        self.header = header
        self.key = key
        self.findings = findings
        self.frontier: list[tuple[int, bytes, Node]] = []
        self.best: list[tuple[int, bytes, Node]] = []
        self.nodes = self.expansions = self.leaves = 0
        self.certified = True
        self.outside = 0
        self._parent: Node | None = None
        self._won: int | None = None
        self._due: deque[Slot] = deque()

    @property
    def incumbent(self) -> int | None:
        """The k-th best value so far."""
        return -self.best[-1][0] if len(self.best) == self.header.top else None

    @property
    def top(self) -> Node | None:
        """The item that is popped next."""
        return self.frontier[0][2] if self.frontier else None

    @property
    def bounded(self) -> bool:
        """Whether the stop rule holds with a frontier that is not empty."""
        incumbent = self.incumbent
        return bool(self.frontier) and incumbent is not None and -self.frontier[0][0] <= incumbent

    @property
    def waits(self) -> bool:
        """Whether ``node`` records are due."""
        return self.nodes == 0 or bool(self._due)

    def node(self, record: Record, line: int) -> None:
        """A ``node`` record: the root, or the next child of the node just expanded.

        Raises:
            Rejected: L602 another child than the one that is due, L603 a node that is in the
                frontier, L104 no node is due.
        """
        if self.nodes == 0:
            language = self.language
            first = self._uniform(FIRST_ARRIVAL, language.root_digest, record, "U")
            self._enter(push_root(language, self.header.recipe, first), record, line)
            return
        self._check_due(record)
        parent, slot = self._parent, self._due.popleft()
        if parent is None:
            raise Rejected(Code.LEDGER_ORDER, "kind", "expand, leaf or close", "node")
        digest = child_digest(self.language, parent.digest, slot)
        won = slot.position == self._won
        x = None if won else self._uniform(RESIDUAL, digest, record, "U")
        child = push(self.language, self.header.recipe, parent, slot, x)
        _check_place(record, child)
        self._enter(child, record, line)

    def _check_due(self, record: Record) -> None:
        if self._due:
            return
        found = text(record, "ctx_digest")
        twice = any(digest.hex() == found for _, digest, _ in self.frontier)
        code = Code.REPEATED_CONTEXT if twice else Code.LEDGER_ORDER
        raise Rejected(code, "kind", "expand, leaf or close", f"node {found}")

    def _enter(self, node: Node, record: Record, line: int) -> None:
        lowers = self.certified and node.published.clamped
        due = node_record(self.language, self.header, node, lowers)
        compare(due, record, line, Code.NODE_FIELD, self.findings)
        self.certified = self.certified and not lowers
        self.nodes += 1
        heapq.heappush(self.frontier, (-node.published.key, node.digest, node))

    def _uniform(self, purpose: int, identity: bytes, record: Record, name: str) -> int:
        """The uniform from the PRF; the logged one where no seed is known."""
        if self.key is None:
            return int(text(record, name))
        return uniform(self.key, purpose, identity)

    def _pop(self, record: Record) -> Node:
        """The item that leaves the frontier next, which `record` must be about.

        Raises:
            Rejected: L607 the search had to stop before; L601 another item is due.
        """
        node = self.top
        if node is None or self.bounded:
            raise Rejected(Code.STOP_RULE, "kind", "close", record["kind"])
        due = "leaf" if node.state is None else "expand"
        node_id = uuid7(self.header.started_ms, node.digest)
        found = f"{record['kind']} {record['node_id']}"
        ensure(found == f"{due} {node_id}", Code.POP_ORDER, "node_id", f"{due} {node_id}", found)
        heapq.heappop(self.frontier)
        return node

    def expand(self, record: Record, line: int) -> None:
        """An ``expand`` record: the top of the frontier, an internal node.

        Raises:
            Rejected: as :meth:`_pop`; L604 a guard had to end the run before.
        """
        node = self._pop(record)
        if node.state is None:
            raise Rejected(Code.POP_ORDER, "kind", "leaf", "expand")
        guard = self.ending_guard(node.state)
        ensure(guard is None, Code.GUARD, "kind", f"close, by {guard}", "expand")
        total = self.language.race_count[node.state]
        children = slots(self.language, node.state)
        masses = [slot.mass for slot in children]
        x = self._uniform(WINNER, node.digest, record, "W")
        self._won = winner(x, total, masses)
        rank = self.language.automaton.rank[self.language.automaton.root]
        potential, fires = potential_fields(self.header, rank, node)
        lowers = self.certified and fires
        due = expand_record(
            self.header, node, x=x, winner=self._won, potential=potential, lowers=lowers
        )
        compare(due, record, line, Code.NODE_FIELD, self.findings)
        self.certified = self.certified and not lowers
        self.expansions += 1
        self.outside += scale(self.language, node) * (total - sum(masses))
        self._parent, self._due = node, deque(children)

    def ending_guard(self, state: int) -> str | None:
        """The guard that ends the run rather than let a node at `state` be expanded."""
        if self.expansions == self.header.max_expansions:
            return "CapExceeded"
        bits = self.header.count_bits
        if bits and self.language.race_count[state].bit_length() > bits:
            return "CountFail"
        return None

    def leaf(self, record: Record, line: int) -> None:
        """A ``leaf`` record: the top of the frontier, a leaf.

        Raises:
            Rejected: as :meth:`_pop`.
        """
        node = self._pop(record)
        insort(self.best, (-node.published.key, node.digest, node))
        del self.best[self.header.top :]
        self.leaves += 1
        due = leaf_record(self.header, node, leaf_uniform(node.arrival), self.incumbent)
        compare(due, record, line, Code.NODE_FIELD, self.findings)
        self.outside += share(self.language, node)


def _check_place(record: Record, due: Node) -> None:
    """The record is about the child that is due, whatever else it gets wrong."""
    if record.get("tie_token") != due.position and record.get("call") != due.call:
        found = f"{record.get('tie_token')} {record.get('call')}"
        raise Rejected(Code.MISSING_CHILD, "call", f"{due.position} {due.call}", found)
