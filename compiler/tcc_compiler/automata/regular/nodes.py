"""The core's expressions as one shared table of nodes, with one node for equal expressions.

Sequences become pairs (first, rest), so that equal rests share a node. A rule is one node that
points to its body, so recursion is a cycle of the table. This module also finds which nodes derive
the empty sequence, and the least weight of a word of each node.
Cost: linear in the expressions, plus a heap for the least weights.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from enum import IntEnum

from tcc_certs.policy import plans
from tcc_certs.policy.core import Core
from tcc_certs.policy.expressions import fold
from tcc_compiler.automata.table import components
from tcc_compiler.resources import Guard


class NodeKind(IntEnum):
    """The kind of a node; `Nodes.parts` has the nodes that it consists of."""

    EMPTY = 0
    CALL = 1
    PAIR = 2
    ALT = 3
    BOTH = 4
    DIFF = 5
    REPEAT = 6
    RULE = 7


class Nodes:
    """The table of nodes. Node numbers never change; only counted repeats are added later.

    Attributes:
        kind, parts: [nodes]. The only part of a RULE is its body; the first part of a DIFF is the
            expression that is subtracted from.
        pattern: [nodes], the pattern of a CALL.
        low, high: [nodes], the bounds of a REPEAT; high is None if there is no upper bound.
        nullable: [nodes], whether the node derives the empty sequence.
        least: [nodes], the least weight of a word; None if the node derives no word. For BOTH, DIFF
            and nodes that contain them it is a lower bound.
    """

    def __init__(
        self, weights: Sequence[Sequence[int]], guard: Guard, as_written: bool = False
    ) -> None:
        """Set up an empty table.

        Args:
            weights: for each pattern, the weights of its letters; an empty sequence if it has no
                call.
            as_written: True keeps nested repeats and equal operands of `&`. Simplifying them would
                not change the words, but the ways to derive them.
        """
        self.kind: list[NodeKind] = []
        self.parts: list[tuple[int, ...]] = []
        self.pattern: list[int] = []
        self.low: list[int] = []
        self.high: list[int | None] = []
        self.nullable: list[bool] = []
        self.least: list[int | None] = []
        self._known: dict[tuple[object, ...], int] = {}
        self._least_call = [min(group, default=None) for group in weights]
        self._guard = guard
        self._as_written = as_written
        self.empty = self._node(NodeKind.EMPTY, ())

    def _node(
        self,
        kind: NodeKind,
        parts: tuple[int, ...],
        pattern: int = 0,
        low: int = 0,
        high: int | None = None,
    ) -> int:
        key = (kind, parts, pattern, low, high)
        found = self._known.get(key)
        if found is not None:
            return found
        self._known[key] = number = len(self.kind)
        self.kind.append(kind)
        self.parts.append(parts)
        self.pattern.append(pattern)
        self.low.append(low)
        self.high.append(high)
        self.nullable.append(False)
        self.least.append(None)
        return number

    def repeat(self, body: int, low: int, high: int | None) -> int:
        """Return the node of `body` repeated, and set its `nullable` and `least` from its body."""
        if high == 0:
            return self.empty
        low = 0 if self.nullable[body] else low
        before = len(self.kind)
        node = self._node(NodeKind.REPEAT, (body,), low=low, high=high)
        if node == before:
            self._guard.room(node)
            self.nullable[node] = low == 0
            least = self.least[body]
            self.least[node] = 0 if low == 0 else None if least is None else low * least
        return node

    def rest(self, node: int) -> int:
        """Return the node of the rest of a repeat after one more of its body."""
        low, high = self.low[node], self.high[node]
        return self.repeat(self.parts[node][0], max(low - 1, 0), None if high is None else high - 1)

    def add(self, expr: plans.Expr, rules: Mapping[str, int]) -> int:
        """Return the node of `expr`."""
        return fold(expr, lambda node, parts: self._combine(node, parts, rules))

    def _combine(self, expr: plans.Expr, parts: tuple[int, ...], rules: Mapping[str, int]) -> int:
        match expr:
            case plans.Empty():
                return self.empty
            case plans.OneCall():
                return self._node(NodeKind.CALL, (), pattern=expr.pattern)
            case plans.RuleRef():
                return rules[expr.name]
            case plans.Seq():
                rest = parts[-1]
                for part in reversed(parts[:-1]):
                    rest = self._node(NodeKind.PAIR, (part, rest))
                return rest
            case plans.Alt():
                return self._node(NodeKind.ALT, tuple(dict.fromkeys(parts)))
            case plans.Both():
                kept = parts if self._as_written else set(parts)
                return self._node(NodeKind.BOTH, tuple(sorted(kept)))
            case plans.Diff():
                return self._node(NodeKind.DIFF, (parts[0], *sorted(set(parts[1:]))))
            case plans.Repeat():
                if expr.high == 0:
                    return self.empty
                return self._node(NodeKind.REPEAT, parts, low=expr.low, high=expr.high)

    def add_rules(self, rules: Mapping[str, plans.Expr]) -> dict[str, int]:
        """Add a node for each rule, pointing to its body; return the nodes by name."""
        # Different patterns keep the rules' nodes distinct until their bodies are known.
        names = sorted(rules)
        numbers = {name: self._node(NodeKind.RULE, (), pattern=at) for at, name in enumerate(names)}
        for name in names:
            self.parts[numbers[name]] = (self.add(rules[name], numbers),)
        return numbers

    def settle(self) -> None:
        """Merge repeats of repeats; then find `nullable` and `least` of every node."""
        for node, kind in enumerate(self.kind):
            if kind is NodeKind.REPEAT and not self._as_written:
                self._flatten(node)
        self._find_nullable()
        self._find_least()

    def _flatten(self, node: int) -> None:
        """If the body of a repeat is a repeat from 0 or 1 times, replace it with that body's body.

        The possible totals of the inner counts then have no gaps, so one pair of bounds describes
        them. Nested bounds, each with its own count, would make sets of every combination of
        counts.
        """
        chain = [node]
        seen = {node}
        while True:
            body = self._behind_rules(self.parts[chain[-1]][0])
            if self.kind[body] is not NodeKind.REPEAT or self.low[body] > 1 or body in seen:
                break
            seen.add(body)
            chain.append(body)
        for outer, inner in zip(chain[-2::-1], chain[:0:-1], strict=True):
            high, times = self.high[inner], self.high[outer]
            self.parts[outer] = self.parts[inner]
            self.low[outer] *= self.low[inner]
            self.high[outer] = None if high is None or times is None else high * times

    def _behind_rules(self, node: int) -> int:
        seen = set()
        while self.kind[node] is NodeKind.RULE and node not in seen:
            seen.add(node)
            node = self.parts[node][0]
        return node

    def _find_nullable(self) -> None:
        known: list[bool | None] = [None] * len(self.kind)
        for node in range(len(self.kind)):
            todo = [node]
            while todo:
                self._guard.tick()
                top = todo[-1]
                missing = [] if known[top] is not None else self._decide(top, known)
                if missing:
                    todo.extend(missing)
                else:
                    todo.pop()
        self.nullable = [bool(value) for value in known]

    def _decide(self, node: int, known: list[bool | None]) -> list[int]:
        """Decide whether `node` is nullable, or return the parts to decide first.

        The rest of a pair matters only if its first part is nullable. No rule is left-recursive, so
        the questions are never circular.
        """
        kind, parts = self.kind[node], self.parts[node]
        if kind is NodeKind.PAIR and known[parts[0]] is None:
            return [parts[0]]
        if kind in (NodeKind.EMPTY, NodeKind.CALL) or (
            kind is NodeKind.PAIR and not known[parts[0]]
        ):
            known[node] = kind is NodeKind.EMPTY
            return []
        if kind is NodeKind.REPEAT and self.low[node] == 0:
            known[node] = True
            return []
        missing = [part for part in parts if known[part] is None]
        if not missing:
            values = [bool(known[part]) for part in parts]
            if kind is NodeKind.ALT:
                known[node] = any(values)
            elif kind is NodeKind.DIFF:
                known[node] = values[0] and not any(values[1:])
            else:
                known[node] = all(values)
        return missing

    def _find_least(self) -> None:
        """Find `least` by Knuth's generalisation of Dijkstra's algorithm, lightest nodes first."""
        users: list[list[int]] = [[] for _ in self.kind]
        waiting = [0] * len(self.kind)
        heap: list[tuple[int, int]] = []
        for node, kind in enumerate(self.kind):
            parts = self.parts[node]
            if kind is NodeKind.DIFF:
                parts = parts[:1]
            if kind is NodeKind.REPEAT and self.nullable[parts[0]]:
                self.low[node] = 0
            if kind is NodeKind.EMPTY or (kind is NodeKind.REPEAT and self.low[node] == 0):
                heap.append((0, node))
                continue
            if kind is NodeKind.CALL:
                least = self._least_call[self.pattern[node]]
                if least is not None:
                    heap.append((least, node))
                continue
            waiting[node] = 1 if kind is NodeKind.ALT else len(parts)
            for part in parts:
                users[part].append(node)
        heapq.heapify(heap)
        while heap:
            value, node = heapq.heappop(heap)
            if self.least[node] is not None:
                continue
            self._guard.tick()
            self.least[node] = value
            for user in users[node]:
                waiting[user] -= 1
                if waiting[user] == 0:
                    heapq.heappush(heap, (self._weigh(user), user))

    def _weigh(self, node: int) -> int:
        """Return a node's least weight, from its settled parts; for an ALT one is enough."""
        values = [self.least[part] for part in self.parts[node]]
        found = [value for value in values if value is not None]
        match self.kind[node]:
            case NodeKind.PAIR:
                return sum(found)
            case NodeKind.BOTH:
                return max(found)
            case NodeKind.DIFF:
                return found[0]
            case NodeKind.REPEAT:
                return self.low[node] * found[0]
            case _:
                return min(found)

    def longest(self, root: int) -> int | None:
        """Return the most calls of a word of `root`; None with `&`, `-`, recursion or no bound."""
        known: dict[int, int] = {}
        opened: set[int] = set()
        todo = [root]
        while todo:
            node = todo[-1]
            kind = self.kind[node]
            if kind in (NodeKind.BOTH, NodeKind.DIFF):
                return None
            # A part that derives no word makes its pair derive none, and adds nothing to an
            # alternative.
            parts = [part for part in self.parts[node] if self.least[part] is not None]
            missing = [part for part in parts if part not in known]
            if node in known or not missing:
                if node not in known:
                    inner = [known[part] for part in parts]
                    most = self._most_calls(node, inner)
                    if most is None:
                        return None
                    known[node] = most
                todo.pop()
                continue
            if node in opened:
                return None
            opened.add(node)
            self._guard.tick(1 + len(missing))
            todo += missing
        return known[root]

    def _most_calls(self, node: int, inner: Sequence[int]) -> int | None:
        """Return the most calls of a node, given those of its parts that derive words."""
        match self.kind[node]:
            case NodeKind.CALL:
                return 1
            case NodeKind.PAIR:
                return sum(inner) if self.least[node] is not None else 0
            case NodeKind.REPEAT:
                high, most = self.high[node], max(inner, default=0)
                return 0 if not most else None if high is None else high * most
            case _:
                return max(inner, default=0)


def build(
    core: Core, weights: Sequence[Sequence[int]], guard: Guard, as_written: bool = False
) -> tuple[Nodes, int]:
    """Return the settled table of a core, and the node of its plan; see :class:`Nodes`."""
    nodes = Nodes(weights, guard, as_written)
    root = nodes.add(core.plan, nodes.add_rules(core.rules))
    nodes.settle()
    return nodes, root


def grows(nodes: Nodes, freely: bool = False) -> bool:
    """Return whether recursion passes through a place with something left to derive afterwards.

    Without such recursion every stack is bounded, so there are finitely many positions and stacks.
    The operands of `&` and `-` count as such places.

    Args:
        freely: consider only recursion that adds no positive weight. Without that, a bound on the
            weight bounds the stacks.
    """
    steps = [
        [(part, inner) for part, inner, weight in _steps(nodes, node) if not freely or weight == 0]
        for node in range(len(nodes.kind))
    ]
    group = [0] * len(steps)
    for number, component in enumerate(
        components(len(steps), lambda node: [part for part, _ in steps[node]])
    ):
        for node in component:
            group[node] = number
    return any(
        inner and group[part] == group[node]
        for node, row in enumerate(steps)
        for part, inner in row
    )


def _steps(nodes: Nodes, node: int) -> list[tuple[int, bool, int | None]]:
    """Return (part, whether a remainder follows it, the least weight next to it) for each part."""
    kind, parts = nodes.kind[node], nodes.parts[node]
    if kind is NodeKind.PAIR:
        first, rest = parts
        return [(first, True, nodes.least[rest]), (rest, False, nodes.least[first])]
    inner = kind in (NodeKind.BOTH, NodeKind.DIFF) or (
        kind is NodeKind.REPEAT and nodes.high[node] != 1
    )
    return [(part, inner, 0) for part in parts]
