"""The plan expression as a machine, over state sets or over partial derivatives.

`determinise` is the subset construction, over stacks instead of states. If limits bound the weight
of a word (the driver), it visits states by the least weight of a prefix. A state that cannot finish
within the bound gets no edges. So with a limit on depth the exploration ends even under recursion.
This removes only words that break the limit; the limit itself is applied later, exactly.

`follow` makes no sets. Its states are partial derivatives: interned stacks of nodes, as in
:mod:`tcc_compiler.automata.regular.network`. A call leads from a stack to one stack for each way to
read it. The operands of `&` advance together, by every choice of one stack for each operand. The
first operand of `-` is a stack; each further operand is a state set of the network.
Specification: docs/spec/core.md, section 5. There is no Python recursion, however deep an
expression is.
Cost: linear in the sets and their members. Their number may be exponential, hence the caps. For
partial derivatives one stack each; the choices of `&` multiply.
Sources: Rabin and Scott, 1959; Antimirov, Partial derivatives of regular expressions and finite
automaton constructions, 1996; Caron, Champarnaud and Mignot, Partial derivatives of an extended
regular expression, 2011.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from itertools import product
from typing import TypeAlias

from tcc_compiler.automata.regular.network import Network
from tcc_compiler.automata.regular.nodes import NodeKind, Nodes
from tcc_compiler.automata.table import Edges, Machine
from tcc_compiler.frozen import frozen
from tcc_compiler.resources import Guard

BOTTOM = 0
# The operands of a `&` (stacks) or of a `-` (a stack, then state sets of the network).
Operands: TypeAlias = "tuple[NodeKind, tuple[int, ...]]"
Steps: TypeAlias = "Mapping[int, Sequence[int]]"


class Partials:
    """Interned stacks over a node table whose repeats are kept as written.

    An item of a stack is a node number, or a negative number for operands in progress.

    Attributes:
        complete: [stacks], whether the stack derives the empty word.
        least: [stacks], a lower bound on the weight of the words that complete the stack.
    """

    def __init__(self, nodes: Nodes, patterns: Sequence[Sequence[int]], guard: Guard) -> None:
        self._nodes = nodes
        self._patterns = patterns
        self._guard = guard
        self._network = Network(nodes, patterns, guard)
        self._top = [nodes.empty]
        self._below = [BOTTOM]
        self.complete = [True]
        self.least = [0]
        self._stacks: dict[tuple[int, int], int] = {}
        self._operands: list[Operands] = []
        self._numbers: dict[Operands, int] = {}
        self._steps: dict[int, Steps] = {BOTTOM: {}}
        self._room = 0

    def initial(self, node: int) -> int | None:
        """Return the stack with only `node`; None if the node derives no word."""
        return None if self._nodes.least[node] is None else self._push(node, BOTTOM)

    def step(self, stack: int) -> Steps:
        """Return the next stacks by letter; letters and stacks are increasing."""
        todo = [stack]
        while todo:
            top = todo[-1]
            missing = [] if top in self._steps else self._advance(top)
            if missing:
                todo.extend(missing)
            else:
                todo.pop()
        return self._steps[stack]

    def _advance(self, stack: int) -> list[int]:
        """Find the next stacks of `stack`, or return the stacks of operands to step first."""
        nodes = self._nodes
        found: dict[int, set[int]] = {}
        missing: list[int] = []
        todo = self._due(stack)
        seen = set(todo)
        while todo:
            self._guard.tick()
            item, below = todo.pop()
            if item < 0:
                missing += self._advance_operands(self._operands[~item], below, found)
                continue
            parts, kind = nodes.parts[item], nodes.kind[item]
            more: list[tuple[int, int]] = []
            match kind:
                case NodeKind.CALL:
                    for letter in self._patterns[nodes.pattern[item]]:
                        found.setdefault(letter, set()).add(below)
                case NodeKind.PAIR:
                    more = [(parts[0], self._push(parts[1], below))]
                    more += [(parts[1], below)] if nodes.nullable[parts[0]] else []
                case NodeKind.ALT | NodeKind.RULE:
                    more = [(part, below) for part in parts]
                case NodeKind.REPEAT:
                    more = [(parts[0], self._push(nodes.rest(item), below))]
                case NodeKind.BOTH | NodeKind.DIFF:
                    more = [(self._begin(kind, parts), below)]
                case NodeKind.EMPTY:
                    pass
            for key in more:
                if key not in seen and (key[0] < 0 or nodes.least[key[0]] is not None):
                    seen.add(key)
                    todo.append(key)
        if not missing:
            self._steps[stack] = {letter: sorted(found[letter]) for letter in sorted(found)}
            self._hold(sum(map(len, found.values())))
        return missing

    def _due(self, stack: int) -> list[tuple[int, int]]:
        """Return the items that may be read next, each with the stack below it."""
        found = []
        while stack != BOTTOM:
            item, below = self._top[stack], self._below[stack]
            found.append((item, below))
            if not self._item_complete(item):
                break
            stack = below
        return found

    def _begin(self, kind: NodeKind, parts: Sequence[int]) -> int:
        """Return the item of the operands of a `&` or `-` before their first call."""
        stacks = [
            self._push(part, BOTTOM) for part in parts[: None if kind is NodeKind.BOTH else 1]
        ]
        sets = [self._network.initial(part) for part in parts[len(stacks) :]]
        return self._item((kind, (*stacks, *sets)))

    def _item(self, operands: Operands) -> int:
        number = self._numbers.setdefault(operands, len(self._operands))
        if number == len(self._operands):
            self._operands.append(operands)
            self._hold(1 + len(operands[1]))
        return ~number

    def _advance_operands(
        self, operands: Operands, below: int, found: dict[int, set[int]]
    ) -> list[int]:
        """Add the next stacks of operands to `found`, or return the stacks to step first."""
        kind, parts = operands
        stacks = parts if kind is NodeKind.BOTH else parts[:1]
        missing = [stack for stack in stacks if stack not in self._steps]
        if missing:
            return missing
        rows = [self._steps[stack] for stack in stacks]
        off = [self._network.step(number) for number in parts[len(stacks) :]]
        for letter in rows[0]:
            if not all(letter in row for row in rows):
                continue
            sets = sorted({row[letter] for row in off if letter in row})
            after = found.setdefault(letter, set())
            for choice in product(*(row[letter] for row in rows)):
                after.add(self._push(self._item((kind, (*choice, *sets))), below))
                self._guard.tick()
        return []

    def _push(self, item: int, below: int) -> int:
        """Return `below` with `item` on top, or `below` itself if `item` is the empty sequence."""
        if item == self._nodes.empty:
            return below
        key = (item, below)
        number = self._stacks.get(key)
        if number is None:
            self._stacks[key] = number = len(self._top)
            self._top.append(item)
            self._below.append(below)
            self.complete.append(self._item_complete(item) and self.complete[below])
            self.least.append(self._item_least(item) + self.least[below])
            self._hold(1)
        return number

    def _item_complete(self, item: int) -> bool:
        if item >= 0:
            return self._nodes.nullable[item]
        kind, parts = self._operands[~item]
        if kind is NodeKind.BOTH:
            return all(self.complete[stack] for stack in parts)
        return self.complete[parts[0]] and not any(self._network.sets[n][0] for n in parts[1:])

    def _item_least(self, item: int) -> int:
        if item >= 0:
            return self._nodes.least[item] or 0
        kind, parts = self._operands[~item]
        return max(self.least[stack] for stack in (parts if kind is NodeKind.BOTH else parts[:1]))

    def _hold(self, more: int) -> None:
        self._room += more
        self._guard.room(self._room)


_ROOM = 64


@frozen
class Driver:
    """A bound that every plan meets: the sum of its letters' weights, each at least 0.

    Attributes:
        weights: [letters], the weight of each letter.
        bound: the most that a plan may weigh.
        text: the limits that the bound is made of.
        depth: True if every weight is 1.
    """

    weights: Sequence[int]
    bound: int
    text: str
    depth: bool


def determinise(
    network: Network, first: int, driver: Driver | None, cap: int, guard: Guard
) -> Machine | None:
    """Return the automaton of the state sets that are reached from set `first`.

    Args:
        driver: cuts what cannot finish within its bound; None cuts nothing.
        cap: the most states; `_ROOM` times as many members of sets. Past either, return None.
    """
    number = {first: 0}
    sets = [first]
    spent = {first: 0}
    accept: dict[int, bool] = {}
    edges: dict[int, Edges] = {}
    heap = [(0, 0)]
    while heap:
        weight, q = heapq.heappop(heap)
        if q in edges:
            continue
        guard.tick()
        if _lost(network, sets[q], weight, driver):
            accept[q], edges[q] = False, ()
            continue
        row = []
        for letter, target in network.step(sets[q]).items():
            spent_there = weight + driver.weights[letter] if driver else 0
            if target not in number:
                number[target] = len(sets)
                sets.append(target)
                spent[target] = spent_there + 1
            p = number[target]
            if spent_there < spent[target]:
                spent[target] = spent_there
                heapq.heappush(heap, (spent_there, p))
            row.append((letter, p))
        accept[q], edges[q] = network.sets[sets[q]][0], tuple(row)
        guard.note(len(sets))
        if len(sets) > cap or network.room > _ROOM * cap:
            return None
    order = range(len(sets))
    return Machine(start=0, accept=[accept[q] for q in order], edges=[edges[q] for q in order])


def follow(partials: Partials, root: int, driver: Driver | None, guard: Guard) -> Machine:
    """Return the nondeterministic automaton of the partial derivatives reached from node `root`.

    Args:
        driver: cuts what cannot finish within its bound; None cuts nothing.

    Raises:
        CompileRefused: TCC403 or TCC404 from the guard.
    """
    first = partials.initial(root)
    if first is None:
        return Machine(start=0, accept=[False], edges=[()], nondeterministic=True)
    number = {first: 0}
    stacks = [first]
    spent = {first: 0}
    edges: dict[int, Edges] = {}
    heap = [(0, 0)]
    held = 0
    while heap:
        weight, q = heapq.heappop(heap)
        if q in edges:
            continue
        row = []
        if driver is None or weight + partials.least[stacks[q]] <= driver.bound:
            for letter, targets in partials.step(stacks[q]).items():
                spent_there = weight + driver.weights[letter] if driver else 0
                for target in targets:
                    p = number.setdefault(target, len(stacks))
                    if p == len(stacks):
                        stacks.append(target)
                    if spent_there < spent.get(target, spent_there + 1):
                        spent[target] = spent_there
                        heapq.heappush(heap, (spent_there, p))
                    row.append((letter, p))
        edges[q] = tuple(row)
        held += len(row)
        guard.tick(1 + len(row))
        guard.states(len(stacks))
        guard.room(held)
    return Machine(
        start=0,
        accept=[partials.complete[stack] for stack in stacks],
        edges=[edges[q] for q in range(len(stacks))],
        nondeterministic=True,
    )


def _lost(network: Network, number: int, weight: int, driver: Driver | None) -> bool:
    least = network.least[number]
    return least is None or (driver is not None and weight + least > driver.bound)


def determinise_by_depth(
    network: Network, first: int, depth: int, cap: int, guard: Guard
) -> Machine | None:
    """Return the automaton of the words of at most `depth` calls, one layer for each depth.

    Positions that cannot finish in the remaining calls are dropped from the sets. So the result is
    small even where the automaton without a limit is large because of longer words. Return None
    past `cap`, as in :func:`determinise`.
    """
    layer = {_prune(network, first, depth): 0}
    accept: list[bool] = []
    edges: list[Edges] = []
    made = 1
    for left in range(depth, -1, -1):
        below: dict[int, int] = {}
        for number in layer:
            guard.tick()
            accept.append(network.sets[number][0])
            row = []
            for letter, target in network.step(number).items() if left else ():
                pruned = _prune(network, target, left - 1)
                if pruned:
                    p = below.setdefault(pruned, made)
                    made += p == made
                    row.append((letter, p))
            edges.append(tuple(row))
            guard.note(made)
            if made > cap or network.room > _ROOM * cap:
                return None
        layer = below
        if not layer:
            break
    return Machine(start=0, accept=accept, edges=edges)


def _prune(network: Network, number: int, left: int) -> int:
    """Return the set without the positions that need more than `left` calls to finish."""
    complete, positions = network.sets[number]
    kept = tuple(p for p in positions if network.position_least[p] <= left)
    return number if len(kept) == len(positions) else network.intern(complete, kept)
