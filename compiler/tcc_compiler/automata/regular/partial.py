"""Partial derivatives: the plan expression as a nondeterministic automaton, made on demand.

Specification: docs/spec/core.md, section 6.  What may follow a call is a stack of nodes,
shared and interned like those of :mod:`tcc_compiler.automata.regular.network`; a call leads from a
stack to one stack for each way of taking it, and no sets of them are made.  The operands of `&`
move beside each other, every choice of one stack each; what `-` takes off is one state set for
each operand, determinised by the network.
Cost: one stack a derivative; the choices of `&` multiply.  No Python recursion.
Source: Antimirov, Partial derivatives of regular expressions and finite automaton constructions,
1996; Caron, Champarnaud and Mignot, Partial derivatives of an extended regular expression, 2011.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TypeAlias

from tcc_compiler.automata.regular.network import Network
from tcc_compiler.automata.regular.nodes import Kind, Nodes
from tcc_compiler.resources.guard import Guard

BOTTOM = 0
# The operands of a `&` (stacks) or of a `-` (a stack, then state sets of the network).
Operands: TypeAlias = "tuple[Kind, tuple[int, ...]]"
Steps: TypeAlias = "Mapping[int, Sequence[int]]"


class Partials:
    """Interned stacks over a node table whose repeats stand as they were written.

    An item of a stack is a node, or operands under way: then a number below 0.

    Attributes:
        complete: [stacks], whether nothing more has to be read.
        least: [stacks], a lower bound on the weight of what completes the stack.
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
        """The stack of `node` alone; None where it derives nothing."""
        return None if self._nodes.least[node] is None else self._push(node, BOTTOM)

    def step(self, stack: int) -> Steps:
        """Where a stack goes: letter -> stacks, letters and stacks increasing."""
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
        """Find where `stack` goes, or say which stacks of operands have to be stepped first."""
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
                case Kind.CALL:
                    for letter in self._patterns[nodes.pattern[item]]:
                        found.setdefault(letter, set()).add(below)
                case Kind.PAIR:
                    more = [(parts[0], self._push(parts[1], below))]
                    more += [(parts[1], below)] if nodes.nullable[parts[0]] else []
                case Kind.ALT | Kind.RULE:
                    more = [(part, below) for part in parts]
                case Kind.REPEAT:
                    more = [(parts[0], self._push(nodes.rest(item), below))]
                case Kind.BOTH | Kind.DIFF:
                    more = [(self._begin(kind, parts), below)]
                case Kind.EMPTY:
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
        """The items that may be read next, each with what stands below it."""
        found = []
        while stack != BOTTOM:
            item, below = self._top[stack], self._below[stack]
            found.append((item, below))
            if not self._item_complete(item):
                break
            stack = below
        return found

    def _begin(self, kind: Kind, parts: Sequence[int]) -> int:
        """The operands of a `&` or `-` before their first call, as an item."""
        stacks = [self._push(part, BOTTOM) for part in parts[: None if kind is Kind.BOTH else 1]]
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
        """Add where operands go over each letter, or say which stacks have to be stepped first."""
        kind, parts = operands
        stacks = parts if kind is Kind.BOTH else parts[:1]
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
        """`below` with `item` due first; nothing is pushed for the empty sequence."""
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
        if kind is Kind.BOTH:
            return all(self.complete[stack] for stack in parts)
        return self.complete[parts[0]] and not any(self._network.sets[n][0] for n in parts[1:])

    def _item_least(self, item: int) -> int:
        if item >= 0:
            return self._nodes.least[item] or 0
        kind, parts = self._operands[~item]
        return max(self.least[stack] for stack in (parts if kind is Kind.BOTH else parts[:1]))

    def _hold(self, more: int) -> None:
        self._room += more
        self._guard.room(self._room)
