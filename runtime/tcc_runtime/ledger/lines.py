"""The many records of a ledger, `node` and `leaf`, put together by hand.

Format: docs/spec/ledger.md, section 3.  Lines are made of parts in the order of their sorted keys;
a test holds them equal to the canonical writer's bytes.  Cost: the formatting of a few numbers.
"""

from __future__ import annotations

from json.encoder import encode_basestring

from tcc_certs.formats.codec import Json, encode
from tcc_runtime.guards import Guard

_REPR_BYTES = 48
VARIANT = {ord(f"{digit:x}"): b"89ab"[digit & 3 : (digit & 3) + 1] for digit in range(16)}
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
    """Q64.64 text; tcc_certs.fixed.format_q64 is the definition."""
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


def stamp_of(started_ms: int) -> bytes:
    """The start of every node_id of a run."""
    time = f"{started_ms:012x}"
    return f"{time[:8]}-{time[8:]}-7".encode()


def node_id(stamp: bytes, text: bytes) -> bytes:
    """The UUIDv7 of a digest in hex; tcc_certs.digest.uuid7 is the definition."""
    variant = VARIANT[text[16]]
    return b"%b%b-%b%b-%b" % (stamp, text[13:16], variant, text[17:20], text[20:32])


def clamp_members(marks: Marks) -> tuple[bytes, bytes]:
    """The members `claim_type` and `guards` of a record with a clamped number."""
    members = marks.guards([Guard.CLAMP], True)
    claim = b"" if "claim_type" not in members else b'"claim_type":"NoCert",'
    return claim, b'"guards":%b,' % encode(members["guards"])


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
