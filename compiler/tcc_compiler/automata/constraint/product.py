"""The product of an automaton with that of one statement: the words that both allow.

Statements about the order of calls (signatures, `require`, `forbid`) are :class:`Constraint`
values; the product is explored from the start, so only reachable pairs are made.
Cost: edges of the machine times states of the constraint, at most.
"""

from __future__ import annotations

from collections.abc import Callable

from tcc_compiler.automata.machine import Edges, Machine
from tcc_compiler.frozen import frozen
from tcc_compiler.resources.guard import Guard
from tcc_compiler.resources.place import Statement


@frozen
class Constraint:
    """A deterministic automaton over letters; its states are integers.

    Attributes:
        text: the statement, as diagnostics name it.
        statement: the statement of the core; None for signatures.
        start: the state of the empty prefix.
        step: (state, letter) -> state, None where the letter is forbidden.
        accepts: whether a plan may stop in a state.
    """

    text: str
    statement: Statement | None = None
    start: int
    step: Callable[[int, int], int | None]
    accepts: Callable[[int], bool]


def product(machine: Machine, constraint: Constraint, guard: Guard) -> Machine:
    """The automaton of the words of `machine` that `constraint` allows; not trimmed.

    Raises:
        Refused: TCC403, TCC404 from the guard.
    """
    number = {(machine.start, constraint.start): 0}
    pairs = [(machine.start, constraint.start)]
    edges: list[Edges] = []
    moves: dict[tuple[int, int], int | None] = {}
    step = constraint.step
    held = 0
    for q, state in pairs:
        row = []
        for letter, target in machine.edges[q]:
            move = (state, letter)
            if move in moves:
                after = moves[move]
            else:
                after = moves[move] = step(state, letter)
            if after is None:
                continue
            pair = (target, after)
            p = number.get(pair)
            if p is None:
                p = number[pair] = len(pairs)
                pairs.append(pair)
            row.append((letter, p))
        edges.append(tuple(row))
        held += len(row)
        guard.tick(1 + len(machine.edges[q]))
        guard.states(len(pairs))
        guard.room(held)
    accept = [machine.accept[q] and constraint.accepts(state) for q, state in pairs]
    return Machine(start=0, accept=accept, edges=edges, nondeterministic=machine.nondeterministic)
