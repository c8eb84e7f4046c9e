"""Trimming: only states that are reachable and co-reachable stay.  Cost: linear in the edges."""

from __future__ import annotations

from tcc_compiler.automata.machine import Machine


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
