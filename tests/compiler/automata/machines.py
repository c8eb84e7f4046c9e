"""Random machines, and their words by walking every path: what passes are held against."""

from __future__ import annotations

import random

from tcc_compiler.automata.table import Machine


def random_machine(rng: random.Random, states: int, letters: int, *, cycles: bool) -> Machine:
    """A machine in which some states may be useless; without `cycles` its edges go up."""
    edges = []
    for q in range(states):
        lowest = 0 if cycles else q + 1
        edges.append(
            tuple(
                (letter, rng.randrange(lowest, states))
                for letter in range(letters)
                if lowest < states and rng.random() < 0.6
            )
        )
    accept = [rng.random() < 0.4 for _ in range(states)]
    return Machine(start=0, accept=accept, edges=edges)


def words(machine: Machine, most: int, start: int | None = None) -> frozenset[tuple[int, ...]]:
    """The words of at most `most` letters from a state."""
    found = set()
    todo: list[tuple[int, tuple[int, ...]]] = [(machine.start if start is None else start, ())]
    while todo:
        q, word = todo.pop()
        if machine.accept[q]:
            found.add(word)
        if len(word) < most:
            todo += [(target, (*word, letter)) for letter, target in machine.edges[q]]
    return frozenset(found)
