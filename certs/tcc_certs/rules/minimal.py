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
    rows = zip(block.at_states(accept), ends, ends[1:], strict=False)
    due = [blake3(_HEADS[accepts] + edges[low:high]).digest() for accepts, low, high in rows]
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


def check_minimal(automaton: Automaton, digests: Sequence[bytes], root: bytes, calls: int) -> None:
    """The order of the states, reachability, life, and use of every call.

    Args:
        automaton: targets precede sources, ranks right (C2).
        digests: [n], S(q), right.
        root: S(root) of the manifest.
        calls: c.

    Raises:
        Rejected: M102 the manifest's root, C602 the order, C603 a state that nothing reaches, C604
            a state that reaches nothing, C605 a call on no edge.
    """
    require(digests[automaton.root].hex(), root.hex(), Code.MANIFEST_VALUE, "manifest.root")
    keys = zip(automaton.rank, digests, strict=True)
    later = islice(zip(automaton.rank, digests, strict=True), 1, None)
    at = next(compress(count(1), map(ge, keys, later)), None)
    if at is not None:
        due = "(rank, digest) greater than the state's before"
        raise Rejected(Code.STATE_ORDER, f"state_digest[{at}]", due, digests[at].hex())
    _check_useful(automaton, calls)


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
