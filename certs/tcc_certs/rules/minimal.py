"""C6, minimal: digests are right, states distinct and in order, and nothing is superfluous.

S(q) binds acceptance, calls, costs and the digests below, so distinct digests are distinct
residual plans, and numbering by (rank, S) is unique.  Every state but the root has an edge into
it from a greater number, so the root reaches all; every state accepts or has an edge to a lesser
number, so none is dead.  Cost: one BLAKE3 a state, 64 bytes an edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, count, islice
from operator import eq, ge, gt

from blake3 import blake3

from tcc_certs.automaton import Automaton
from tcc_certs.errors import Code, Rejected, require
from tcc_certs.rules.sweep import Block

_HEADS = (b"\x10\x00", b"\x10\x01")
_PAIR = 64  # bytes of an edge in S: A(call), S(target)


def check_digests(
    block: Block,
    accept: Sequence[int],
    call_digest: Sequence[bytes],
    digests: Sequence[bytes],
    nondeterministic: bool = False,
) -> None:
    """S(q) = BLAKE3(0x10 | accept | A(call) | S(target) ..).

    Args:
        block: its targets precede their sources (C2).
        accept: [n], 0 or 1.
        call_digest: [c], A(a).
        digests: [n], the rows of the column ``state_digest``.
        nondeterministic: edges of one call stand in S by the digests of their targets.

    Raises:
        Rejected: C601 at the first state whose digest differs.
    """
    body = _sorted_body if nondeterministic else _body
    edges = body(block, call_digest, digests)
    ends = [_PAIR * end for end in block.offsets]
    # One hasher that is used again takes two thirds of the time of a new one for each state.
    hasher = blake3()
    reset, update, digest = hasher.reset, hasher.update, hasher.digest
    due = []
    for accepts, low, high in zip(block.at_states(accept), ends, ends[1:], strict=False):
        reset()
        update(_HEADS[accepts] + edges[low:high])
        due.append(digest())
    block.compare(due, digests, Code.STATE_DIGEST, "state_digest")


def _body(block: Block, call_digest: Sequence[bytes], digests: Sequence[bytes]) -> bytes:
    """The pairs A(call) | S(target) of all edges."""
    parts = [b""] * (2 * block.offsets[-1])
    parts[::2] = block.at_calls(call_digest)
    parts[1::2] = block.at_targets(digests)
    return b"".join(parts)


def _sorted_body(block: Block, call_digest: Sequence[bytes], digests: Sequence[bytes]) -> bytes:
    """The same, those of a state by (call, S(target))."""
    calls = block.at_calls(range(len(call_digest)))
    pairs = list(zip(calls, block.at_targets(digests), strict=True))
    rows: list[list[tuple[int, bytes]]] = block.fold(sorted, pairs, [])
    return b"".join([call_digest[call] + target for row in rows for call, target in row])


class Usage:
    """Which states have an edge into them, and which calls are on none."""

    __slots__ = ("_entered", "_unused")

    def __init__(self, states: int, calls: int) -> None:
        self._entered = bytearray(states)
        self._unused = set(range(calls))

    def note(self, block: Block) -> None:
        """Looks at one block, whose targets and calls are in range; refuses nothing."""
        entered = self._entered
        for target in block.targets:
            entered[target] = 1
        if self._unused:
            self._unused.difference_update(block.calls)

    def check(self, automaton: Automaton) -> None:
        """All states are reached and alive, all calls used; every block was noted.

        Raises:
            Rejected: C603 a state that nothing reaches, C604 one that reaches nothing, C605 a call
                on no edge.
        """
        lost = self._entered.find(0, 0, automaton.root)
        if lost >= 0:
            raise Rejected(Code.UNREACHABLE, f"state {lost}", "an edge into it", "none")
        ends = map(eq, automaton.edge_start, islice(automaton.edge_start, 1, None))
        dead = next(compress(count(), map(gt, ends, automaton.accept)), None)
        if dead is not None:
            raise Rejected(Code.DEAD_STATE, f"state {dead}", "acceptance or an edge", "neither")
        unused = min(self._unused, default=None)
        if unused is not None:
            raise Rejected(Code.UNUSED_CALL, f"call {unused}", "an edge with it", "none")


def check_minimal(
    automaton: Automaton, digests: Sequence[bytes], root: bytes, usage: Usage
) -> None:
    """The order of the states, reachability, life, and use of every call.

    Args:
        automaton: targets precede sources, ranks right (C2).
        digests: [n], S(q), right.
        root: S(root) of the manifest.
        usage: every block was noted.

    Raises:
        Rejected: M102 the manifest's root, C602 the order, C603 a state that nothing reaches, C604
            a state that reaches nothing, C605 a call on no edge.
    """
    require(digests[automaton.root].hex(), root.hex(), Code.MANIFEST_VALUE, "manifest.root")
    _check_numbering(automaton.rank, digests)
    usage.check(automaton)


def _check_numbering(rank: Sequence[int], digests: Sequence[bytes]) -> None:
    """(rank, S) strictly increases: ranks do not fall, and digests do only where ranks rise."""
    ranks_fall = compress(count(1), map(gt, rank, islice(rank, 1, None)))
    digests_fall = compress(count(1), map(ge, digests, islice(digests, 1, None)))
    first = (
        next(ranks_fall, None),
        next((at for at in digests_fall if rank[at - 1] == rank[at]), None),
    )
    at = min((at for at in first if at is not None), default=None)
    if at is not None:
        due = "(rank, digest) greater than the state's before"
        raise Rejected(Code.STATE_ORDER, f"state_digest[{at}]", due, digests[at].hex())
