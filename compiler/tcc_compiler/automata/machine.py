"""A finite automaton over letters, with or without cycles, state by state.

A letter is a class of calls (:mod:`tcc_compiler.automata.letters`). A state refuses a letter
without an edge. An automaton without cycles becomes a :mod:`tcc_compiler.automata.table`.
Cost: one tuple for each state and one pair for each edge; trimming and components are linear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from tcc_compiler.frozen import frozen

Edges: TypeAlias = "tuple[tuple[int, int], ...]"


@frozen
class Machine:
    """An automaton with states 0 .. n-1, mostly deterministic.

    Attributes:
        start: the state of the empty prefix.
        accept: [n], whether a plan may stop.
        edges: [n], pairs (letter, target) with letters strictly increasing (see below).
        nondeterministic: True where a letter may lead to several targets; no pair stands twice.
    """

    start: int
    accept: Sequence[bool]
    edges: Sequence[Edges]
    nondeterministic: bool = False

    @property
    def states(self) -> int:
        """How many states there are."""
        return len(self.accept)

    def targets(self, q: int) -> list[int]:
        """The targets of state `q`, one for each edge."""
        return [target for _, target in self.edges[q]]


def components(size: int, successors: Callable[[int], Iterable[int]]) -> list[list[int]]:
    """The strongly connected components of a graph, targets before sources.

    Args:
        size: nodes are 0 .. size-1.
        successors: the targets of a node.

    Source: Tarjan, Depth-first search and linear graph algorithms, 1972; with its own stack.
    """
    closed: list[list[int]] = []
    index = [0] * size
    low = [0] * size
    open_nodes: list[int] = []
    count = 0
    for first in range(size):
        if index[first]:
            continue
        count += 1
        index[first] = low[first] = count
        open_nodes.append(first)
        walk = [(first, iter(successors(first)))]
        while walk:
            node, rest = walk[-1]
            for target in rest:
                if not index[target]:
                    count += 1
                    index[target] = low[target] = count
                    open_nodes.append(target)
                    walk.append((target, iter(successors(target))))
                    break
                # A closed node has low = size + 1 and changes nothing.
                if low[target] < low[node]:
                    low[node] = low[target]
            else:
                walk.pop()
                if low[node] == index[node]:
                    closed.append(_close(node, open_nodes, low, size + 1))
                elif low[node] < low[walk[-1][0]]:
                    low[walk[-1][0]] = low[node]
    return closed


def _close(root: int, open_nodes: list[int], low: list[int], closed: int) -> list[int]:
    component: list[int] = []
    while not component or component[-1] != root:
        component.append(open_nodes.pop())
        low[component[-1]] = closed
    return component


def trim(machine: Machine) -> Machine | None:
    """`machine` without useless states, in order of discovery; None where no word is left."""
    live = _finishing(machine)
    if not live[machine.start]:
        return None
    number = {machine.start: 0}
    order = [machine.start]
    for q in order:
        for _, target in machine.edges[q]:
            if live[target] and target not in number:
                number[target] = len(order)
                order.append(target)
    if len(order) == machine.states and machine.start == 0:
        return machine
    return Machine(
        start=0,
        accept=[machine.accept[q] for q in order],
        edges=[
            tuple((letter, number[target]) for letter, target in machine.edges[q] if live[target])
            for q in order
        ],
        nondeterministic=machine.nondeterministic,
    )


def _finishing(machine: Machine) -> list[bool]:
    """For each state, whether an accepting one can be reached."""
    sources: list[list[int]] = [[] for _ in machine.accept]
    for q, edges in enumerate(machine.edges):
        for _, target in edges:
            sources[target].append(q)
    live = list(machine.accept)
    todo = [q for q, accepting in enumerate(live) if accepting]
    while todo:
        for source in sources[todo.pop()]:
            if not live[source]:
                live[source] = True
                todo.append(source)
    return live
