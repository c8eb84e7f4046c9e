"""Minimising: states with equal residual languages are merged.

An automaton without cycles becomes a table first (:mod:`tcc_compiler.automata.merge`); with cycles
a partition of the states and one of the edges refine each other in turn.
Cost: linear in the edges without cycles, else edges times the logarithm of the states.
Source: Valmari, Fast brief practical DFA minimization, 2012.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tcc_compiler.automata.machine import Edges, Machine
from tcc_compiler.automata.merge import merged
from tcc_compiler.automata.table import Table, as_table
from tcc_compiler.resources.guard import Guard


def minimise(machine: Machine, guard: Guard) -> Machine | Table:
    """The smallest automaton of the language of `machine`, which is trimmed; a table if acyclic.

    In a nondeterministic automaton bisimilar states are merged, and only where it is acyclic.
    """
    table = as_table(machine)
    if table is not None:
        return merged(table, guard)
    if machine.nondeterministic:
        return machine
    return _quotient(machine, _refine(machine, guard))


class _Partition:
    """A partition of 0 .. size-1 that is refined by marking some elements and splitting.

    Attributes:
        elements: all elements, those of a block side by side.
        block: [size], the block of each element.
        first, end: the blocks' places in `elements`.
    """

    def __init__(self, groups: Iterable[Sequence[int]], size: int) -> None:
        self.elements: list[int] = []
        self.first: list[int] = []
        self.end: list[int] = []
        self.block = [0] * size
        self._place = [0] * size
        for group in groups:
            self.first.append(len(self.elements))
            for element in group:
                self.block[element] = len(self.end)
                self._place[element] = len(self.elements)
                self.elements.append(element)
            self.end.append(len(self.elements))
        self._marked = [0] * len(self.end)
        self._touched: list[int] = []

    def mark(self, element: int) -> None:
        """Move `element` to the marked front of its block; at most once between splits."""
        block = self.block[element]
        there = self.first[block] + self._marked[block]
        here, other = self._place[element], self.elements[there]
        self.elements[here], self._place[other] = other, here
        self.elements[there], self._place[element] = element, there
        if not self._marked[block]:
            self._touched.append(block)
        self._marked[block] += 1

    def split(self) -> None:
        """Part the marked from the unmarked; the smaller half becomes a new block."""
        for block in self._touched:
            first, end = self.first[block], self.end[block]
            middle = first + self._marked[block]
            self._marked[block] = 0
            if middle == end:
                continue
            if middle - first <= end - middle:
                self.first[block], low, high = middle, first, middle
            else:
                self.end[block], low, high = middle, middle, end
            for place in range(low, high):
                self.block[self.elements[place]] = len(self.end)
            self.first.append(low)
            self.end.append(high)
            self._marked.append(0)
        self._touched.clear()


def _refine(machine: Machine, guard: Guard) -> list[int]:
    """A class for each state of any trimmed machine."""
    sources: list[int] = []
    by_letter: dict[int, list[int]] = {}
    into: list[list[int]] = [[] for _ in machine.accept]
    for q, edges in enumerate(machine.edges):
        for letter, target in edges:
            by_letter.setdefault(letter, []).append(len(sources))
            into[target].append(len(sources))
            sources.append(q)
    sides: list[list[int]] = [[], []]
    for q, accepting in enumerate(machine.accept):
        sides[accepting].append(q)
    states = _Partition([side for side in sides if side], machine.states)
    edge_blocks = _Partition([by_letter[letter] for letter in sorted(by_letter)], len(sources))
    done, block = 1, 0
    while block < len(edge_blocks.end):
        for edge in edge_blocks.elements[edge_blocks.first[block] : edge_blocks.end[block]]:
            states.mark(sources[edge])
        states.split()
        guard.tick(edge_blocks.end[block] - edge_blocks.first[block])
        block += 1
        while done < len(states.end):
            for q in states.elements[states.first[done] : states.end[done]]:
                for edge in into[q]:
                    edge_blocks.mark(edge)
            edge_blocks.split()
            done += 1
    return states.block


def _quotient(machine: Machine, classes: Sequence[int]) -> Machine:
    """The machine of the classes, numbered in order of discovery."""
    number = {classes[machine.start]: 0}
    members = [machine.start]
    edges: list[Edges] = []
    for q in members:
        row = []
        for letter, target in machine.edges[q]:
            p = number.setdefault(classes[target], len(members))
            if p == len(members):
                members.append(target)
            row.append((letter, p))
        edges.append(tuple(row))
    return Machine(start=0, accept=[machine.accept[q] for q in members], edges=edges)
