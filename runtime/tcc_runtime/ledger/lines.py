"""Parts of the many records of a ledger, put together by hand, in the order of their sorted names.

Format: docs/spec/ledger.md, section 3; a test holds the lines equal to the canonical writer's
bytes.  Cost: the formatting of a few numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from json.encoder import encode_basestring

from tcc_certs.formats.codec import Json, encode
from tcc_certs.formats.fixed import digits_q64, format_q64
from tcc_runtime.guards import Guard
from tcc_runtime.states import Call

_REPR_BYTES = 48
_MOST_CONTEXTS = _MOST_NUMBERS = 1 << 12
VARIANT = {f"{digit:x}": "-" + "89ab"[digit & 3] for digit in range(16)}
# 10^20 / 2^64 is 5^20 / 2^44; only a multiple of 2^43 may stand between two texts.
DROP = 44
FIVES = 5**20
HALF = 1 << DROP - 1
TIE = HALF - 1
ONE, MINUS_ONE = 1 << 64, -1 << 64  # what lies between them may need a leading 0


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


class Contexts(dict[tuple[Call, ...], "Following"]):
    """`ctx_repr`, with its quotes, by the last calls of a prefix: those before the last, and it.

    Some thousand entries at most, whatever the run; then it begins anew.
    """

    __slots__ = ("_size",)

    def __init__(self) -> None:
        self._size = 0

    def __missing__(self, before: tuple[Call, ...]) -> Following:
        self.grow()
        found = self[before] = Following(self, before)
        return found

    def grow(self) -> None:
        """Another entry is going to be kept, here or in one of these."""
        self._size += 1
        if self._size > _MOST_CONTEXTS:
            self._size = 1
            self.clear()

    def of(self, calls: tuple[Call, ...]) -> str:
        """`ctx_repr` of a prefix with these last calls."""
        return self[calls[:-1]][calls[-1]] if calls else '""'


class Following(dict[Call, str]):
    """`ctx_repr` of the prefixes that go on with one call, by that call."""

    __slots__ = ("_before", "_contexts")

    def __init__(self, contexts: Contexts, before: tuple[Call, ...]) -> None:
        self._contexts = contexts
        self._before = before

    def __missing__(self, call: Call) -> str:
        self._contexts.grow()
        text = " ".join([call.text for call in (*self._before, call)])
        found = self[call] = encode_basestring(_cut(text.encode()))
        return found


def q64_text(value: int) -> str:
    """Q64.64 text; tcc_certs.formats.fixed.format_q64 is the definition."""
    digits = str(value * FIVES + HALF >> DROP)
    if ONE > value > MINUS_ONE or not value & TIE:
        digits = rare_digits(digits, value)
    return f"{digits[:-20]}.{digits[-20:]}"


def rare_digits(digits: str, value: int) -> str:
    """The digits of a number that is small, or may stand between two texts."""
    return digits.zfill(21 + (value < 0)) if value & TIE else digits_q64(value)


class KeyTexts(dict[int, str]):
    """Keys without noise, which many nodes have, as Q64.64 text, by minus the key."""

    def __missing__(self, order: int) -> str:
        if len(self) >= _MOST_NUMBERS:
            self.clear()
        found = self[order] = format_q64(-order)
        return found


key_texts = KeyTexts()


def stamp_of(started_ms: int) -> str:
    """The start of every node_id of a run."""
    time = f"{started_ms:012x}"
    return f"{time[:8]}-{time[8:]}-7"


def node_id(stamp: str, text: str) -> str:
    """The UUIDv7 of a digest in hex; tcc_certs.race.digest.uuid7 is the definition."""
    return f"{stamp}{text[13:16]}{VARIANT[text[16]]}{text[17:20]}-{text[20:32]}"


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
