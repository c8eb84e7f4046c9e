"""Parts of the many records of a ledger, put together by hand, in the order of their sorted names.

Format: docs/spec/ledger.md, section 3; a test holds the lines equal to the canonical writer's
bytes.  Cost: the formatting of a few numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from json.encoder import encode_basestring

from tcc_certs.formats.codec import Json, encode
from tcc_runtime.guards import Guard

_REPR_BYTES = 48
_MOST_CONTEXTS = 1 << 12
VARIANT = {f"{digit:x}": "89ab"[digit & 3] for digit in range(16)}
_DIGITS = 10**20
_HALF = 1 << 63
_FRACTION = (1 << 64) - 1
_TIE = (1 << 43) - 1  # only a fraction that is a multiple of 2^43 may stand between two texts


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


class Contexts(dict[str, str]):
    """`ctx_repr`, with its quotes, by the last calls of a prefix; the latest few thousand."""

    def __missing__(self, calls: str) -> str:
        if len(self) >= _MOST_CONTEXTS:
            self.clear()
        found = self[calls] = encode_basestring(_cut(calls.encode()))
        return found


def q64_text(value: int) -> str:
    """Q64.64 text; tcc_certs.formats.fixed.format_q64 is the definition."""
    product = abs(value) * _DIGITS + _HALF
    if value & _TIE:
        digits = str(product >> 64).zfill(21)
    else:
        # A tie goes to the even one.
        even = product & _FRACTION == 0
        digits = str((product >> 64) & ~even).zfill(21)
    return f"{'-' if value < 0 else ''}{digits[:-20]}.{digits[-20:]}"


def stamp_of(started_ms: int) -> str:
    """The start of every node_id of a run."""
    time = f"{started_ms:012x}"
    return f"{time[:8]}-{time[8:]}-7"


def node_id(stamp: str, text: str) -> str:
    """The UUIDv7 of a digest in hex; tcc_certs.race.digest.uuid7 is the definition."""
    return f"{stamp}{text[13:16]}-{VARIANT[text[16]]}{text[17:20]}-{text[20:32]}"


def member(name: str, members: Mapping[str, Json], *, before: bool = False) -> str:
    """A member and its comma, which stands after it or `before`; nothing where it is not there."""
    if name not in members:
        return ""
    text = f'"{name}":{encode(members[name]).decode()}'
    return f",{text}" if before else f"{text},"


def clamp_members(marks: Marks) -> tuple[str, str]:
    """The members `claim_type` and `guards` of a record with a clamped number."""
    members = marks.guards([Guard.CLAMP], True)
    return member("claim_type", members), member("guards", members)


def _cut(text: bytes) -> str:
    """The last 48 bytes or fewer, from the start of a character on."""
    kept = text[-_REPR_BYTES:]
    start = 0
    while start < len(kept) and kept[start] & 0xC0 == 0x80:
        start += 1
    return kept[start:].decode()
