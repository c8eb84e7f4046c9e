"""Canonical states: edges over calls, content digests, and the numbering by (rank, digest).

Specification: docs/spec/artifact.md, section 4 and C6.  Equal languages with equal costs come out
with equal digests, in the same order, whatever grammar they were written in.
Cost: one BLAKE3 a state over its edges, and a sort.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from tcc_certs.digest import call_digest, state_digest
from tcc_certs.grammar import Core
from tcc_compiler.guard import Guard
from tcc_compiler.letters import Letters
from tcc_compiler.machine import Machine

_Key = TypeVar("_Key", bytes, int)


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbering:
    """The states in the artifact's order.

    Attributes:
        order: [states], the machine's states; targets come first, the start last.
        number: [states], the artifact's number of each of the machine's states.
        digest: [states], S of each of the machine's states.
    """

    order: list[int]
    number: list[int]
    digest: list[bytes]


class CallEdges:
    """The edges of states over calls, in call order.

    States that read the same letters share the order in which their calls interleave.
    """

    def __init__(self, machine: Machine, letters: Letters) -> None:
        self._machine = machine
        self._calls = letters.calls
        self._orders: dict[tuple[int, ...], list[tuple[int, int]]] = {}

    def of(self, q: int, key: Sequence[_Key]) -> list[tuple[int, int]]:
        """The pairs (call of the core, target) of state `q`, in order.

        Args:
            key: [states], the order of the targets of one call.
        """
        edges = self._machine.edges[q]
        order = self._order(tuple([letter for letter, _ in edges]))
        pairs = [(call, edges[at][1]) for call, at in order]
        if self._machine.nondeterministic:
            pairs.sort(key=lambda pair: (pair[0], key[pair[1]]))
        return pairs

    def _order(self, row: tuple[int, ...]) -> list[tuple[int, int]]:
        found = self._orders.get(row)
        if found is None:
            found = sorted(
                (call, at) for at, letter in enumerate(row) for call in self._calls[letter]
            )
            self._orders[row] = found
        return found


def certify(
    core: Core,
    machine: Machine,
    order: Sequence[int],
    edges: CallEdges,
    rank: Sequence[int],
    guard: Guard,
) -> Numbering:
    """The digests and the numbering of a minimal machine; `order` has targets first.

    Of a nondeterministic one minimal means: no two states go on alike.
    """
    atoms = [call_digest(c.text.encode(), c.cost_low, c.cost_high) for c in core.calls]
    digest = [b""] * machine.states
    held = 0
    for q in order:
        pairs = [(atoms[call], digest[target]) for call, target in edges.of(q, digest)]
        held += len(pairs)
        guard.tick(1 + len(pairs))
        guard.room(held)
        digest[q] = state_digest(machine.accept[q], pairs)
    ranked = sorted(range(machine.states), key=lambda q: (rank[q], digest[q]))
    number = [0] * machine.states
    for at, q in enumerate(ranked):
        number[q] = at
    return Numbering(order=ranked, number=number, digest=digest)
