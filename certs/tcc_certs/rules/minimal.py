"""C6, minimal: digests are right, states distinct and in order, and nothing is superfluous.

S(q) binds acceptance, calls, costs and the digests below, so distinct digests are distinct
residual plans, and numbering by (rank, S) is unique.  Every state but the root has an edge into
it from a greater number, so the root reaches all; every state accepts or has an edge to a lesser
number, so none is dead.  Cost: one BLAKE3 a state, 64 bytes an edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, count, islice
from operator import add, ge, not_

from blake3 import blake3

from tcc_certs.automaton import Automaton
from tcc_certs.errors import Code, Rejected, require
from tcc_certs.rules.sweep import Block, Differences

_HEADS = (b"\x10\x00", b"\x10\x01")


def check_minimal(
    blocks: Sequence[Block],
    automaton: Automaton,
    call_digest: Sequence[bytes],
    column: bytes,
    root: bytes,
    nondeterministic: bool = False,
) -> None:
    """Digests, their order, reachability, life, and use of every call.

    Args:
        blocks: all states; targets precede sources, ranks right (C2).
        automaton: the same states.
        call_digest: [c], A(a).
        column: [n * 32], the column ``state_digest``.
        root: S(root) of the manifest.
        nondeterministic: edges of one call stand in S by the digests of their targets.

    Raises:
        Rejected: C601 a digest, C602 the order, C603 a state that nothing reaches, C604 a state
            that reaches nothing, C605 a call on no edge, M102 the manifest's root.
    """
    digests = [column[at : at + 32] for at in range(0, len(column), 32)]
    _check_digests(blocks, automaton.accept, call_digest, digests, nondeterministic)
    require(digests[automaton.root].hex(), root.hex(), Code.MANIFEST_VALUE, "manifest.root")
    keys = zip(automaton.rank, digests, strict=True)
    later = islice(zip(automaton.rank, digests, strict=True), 1, None)
    at = next(compress(count(1), map(ge, keys, later)), None)
    if at is not None:
        due = "(rank, digest) greater than the state's before"
        raise Rejected(Code.STATE_ORDER, f"state_digest[{at}]", due, digests[at].hex())
    _check_useful(automaton, len(call_digest))


def _check_digests(
    blocks: Sequence[Block],
    accept: Sequence[int],
    call_digest: Sequence[bytes],
    digests: Sequence[bytes],
    nondeterministic: bool,
) -> None:
    """S(q) = BLAKE3(0x10 | accept | A(call) | S(target) ..)."""
    differences: Differences[bytes] = Differences()
    for block in blocks:
        if nondeterministic:
            bodies = _sorted_bodies(block, call_digest, digests)
        else:
            pairs = map(add, block.at_calls(call_digest), block.at_targets(digests))
            bodies = block.fold(b"".join, pairs, b"")
        heads = [_HEADS[accepts] for accepts in block.at_states(accept)]
        due = [blake3(head + body).digest() for head, body in zip(heads, bodies, strict=True)]
        differences.note(block.states, due, block.at_states(digests))
    if differences.first is not None:
        state, expected, found = differences.first
        raise Rejected(Code.STATE_DIGEST, f"state_digest[{state}]", expected.hex(), found.hex())


def _sorted_bodies(
    block: Block, call_digest: Sequence[bytes], digests: Sequence[bytes]
) -> list[bytes]:
    """For each state its pairs (A(call), S(target)) by (call, S(target)), joined."""
    calls = block.at_calls(range(len(call_digest)))
    pairs = zip(calls, block.at_targets(digests), strict=True)
    rows: list[list[tuple[int, bytes]]] = block.fold(sorted, pairs, [])
    return [b"".join([call_digest[call] + target for call, target in row]) for row in rows]


def _check_useful(automaton: Automaton, calls: int) -> None:
    entered = bytearray(automaton.states)
    for target in automaton.edge_target:
        entered[target] = 1
    at = entered.find(0, 0, automaton.root)
    if at >= 0:
        raise Rejected(Code.UNREACHABLE, f"state {at}", "an edge into it", "none")
    alive = map(add, automaton.accept, automaton.degrees())
    dead = next(compress(count(), map(not_, alive)), None)
    if dead is not None:
        raise Rejected(Code.DEAD_STATE, f"state {dead}", "acceptance or an edge", "neither")
    used = bytearray(calls)
    for call in automaton.edge_call:
        used[call] = 1
    at = used.find(0)
    if at >= 0:
        raise Rejected(Code.UNUSED_CALL, f"call {at}", "an edge with it", "none")
