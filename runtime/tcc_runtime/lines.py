"""The many records of a ledger, `node` and `leaf`, put together by hand.

Format: docs/spec/ledger.md, section 3.  Lines are made of parts in the order of their sorted keys;
a test holds them equal to the canonical writer's bytes.  Cost: the formatting of a few numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from json.encoder import encode_basestring

from tcc_certs.formats.codec import Json, encode
from tcc_runtime.guards import Guard
from tcc_runtime.node import Expansion, Node

_REPR_BYTES = 48
_REPR_CALLS = 3
_VARIANT = {f"{digit:x}": "89ab"[digit & 3] for digit in range(16)}
_DIGITS = 10**20
_HALF = 1 << 63
_FRACTION = (1 << 64) - 1


class Marks:
    """Whether the claim was lowered already: only the first record that does it says so."""

    __slots__ = ("lowered",)

    def __init__(self, lowered: bool = False) -> None:
        self.lowered = lowered

    def guards(self, names: list[Guard], lowers: bool) -> dict[str, Json]:
        """The members `guards` and `claim_type` of a record where `names` fired."""
        found: dict[str, Json] = {}
        if names:
            found["guards"] = sorted({name.value for name in names})
        if lowers and not self.lowered:
            self.lowered = True
            found["claim_type"] = "NoCert"
        return found


def q64_text(value: int) -> str:
    """Q64.64 text; tcc_certs.formats.fixed.format_q64 is the definition."""
    product = abs(value) * _DIGITS + _HALF
    scaled = product >> 64
    if product & _FRACTION == 0:
        scaled &= ~1  # a tie goes to the even one
    digits = f"{scaled:021d}"
    return f"{'-' if value < 0 else ''}{digits[:-20]}.{digits[-20:]}"


def leaf_line(value: int, node_id: str, word: int, incumbent: int | None) -> bytes:
    """`leaf`, of a leaf whose value was published when it was pushed."""
    best = "" if incumbent is None else f'"incumbent":"{q64_text(incumbent)}",'
    shown = q64_text(value)
    return (f'{{"U_P":"{word}","V":"{shown}",{best}"kind":"leaf","node_id":"{node_id}"}}').encode()


def expand_line(expansion: Expansion, node_id: str) -> bytes:
    """`expand`, of a node whose arrival was published when it was pushed, without Phi."""
    winner = "phantom" if expansion.winner is None else expansion.winner
    dead = '"dead_end":true,' if expansion.dead_end else ""
    return (
        f'{{"W":"{expansion.word}",{dead}"kind":"expand","node_id":"{node_id}",'
        f'"winner":"{winner}"}}'
    ).encode()


class NodeLines:
    """Renders `node` records of one run.

    Args:
        started_ms: of the run.
        upper: whether the artifact's counts are bounds.

    Attributes:
        stamp: the start of every node_id.
    """

    __slots__ = ("_count", "stamp")

    def __init__(self, started_ms: int, upper: bool = False) -> None:
        self._count = "Nub" if upper else "N"
        time = f"{started_ms:012x}"
        self.stamp = f"{time[:8]}-{time[8:]}-7"

    def node_id(self, digest: str) -> str:
        """The UUIDv7 of a digest in hex; tcc_certs.race.digest.uuid7 is the definition."""
        variant = _VARIANT[digest[16]]
        return f"{self.stamp}{digest[13:16]}-{variant}{digest[17:20]}-{digest[20:32]}"

    def root(self, node: Node, marks: Marks) -> bytes:
        """The root's."""
        return self._line(node, None, b"", marks)

    def children(self, expansion: Expansion, parent_id: str, marks: Marks) -> Iterator[bytes]:
        """The children's, in canonical order."""
        tail = _last_calls(expansion.node, _REPR_CALLS - 1)
        whole = _last_calls(expansion.node, _REPR_CALLS)
        for child in expansion.children:
            calls = whole if child.call is None else [*tail, child.call.raw]
            yield self._line(child, parent_id, b" ".join(calls), marks)

    def _line(self, node: Node, parent_id: str | None, shown: bytes, marks: Marks) -> bytes:
        digest, state = node.digest.hex(), node.state
        plans = "1" if state is None else state.plans
        count = "" if plans is None else f'"{self._count}":"{plans}",'
        word = "" if node.word is None else f'"U":"{node.word}",'
        call = parent = place = ""
        if parent_id is not None:
            text = "stop" if node.call is None else node.call.text
            call = f'"call":{encode_basestring(text)},'
            parent = f',"parent_id":"{parent_id}"'
            place = f',"tie_token":{node.place}'
        number = "" if state is None else f',"state":{state.shown}'
        log = "" if node.neg_log_t is None else f'"neg_log_t":"{q64_text(node.neg_log_t)}",'
        claim = guards = ""
        if node.clamp:
            claim, guards = clamp_members(marks)
        return (
            f'{{{count}{word}{call}{claim}"ctx_digest":"{digest}",'
            f'"ctx_repr":{context_text(shown)},{guards}'
            f'"key_raw":"{q64_text(node.key)}","kind":"node",'
            f"{log}"
            f'"node_id":"{self.node_id(digest)}"{parent}{number}{place}}}'
        ).encode()


def clamp_members(marks: Marks) -> tuple[str, str]:
    """The members `claim_type` and `guards` of a record with a clamped number."""
    members = marks.guards([Guard.CLAMP], True)
    claim = f'"claim_type":"{members["claim_type"]}",' if "claim_type" in members else ""
    return claim, f'"guards":{encode(members["guards"]).decode()},'


def _last_calls(node: Node, most: int) -> list[bytes]:
    """The last calls of a prefix, at most `most`, in order."""
    calls: list[bytes] = []
    step: Node | None = node
    while step is not None and step.call is not None and len(calls) < most:
        calls.append(step.call.raw)
        step = step.parent
    return calls[::-1]


def context_text(calls: bytes) -> str:
    """`ctx_repr`, with its quotes, of the last calls of a prefix."""
    return encode_basestring(_cut(calls))


def _cut(text: bytes) -> str:
    """The last 48 bytes or fewer, from the start of a character on."""
    kept = text[-_REPR_BYTES:]
    start = 0
    while start < len(kept) and kept[start] & 0xC0 == 0x80:
        start += 1
    return kept[start:].decode()
