"""The seed of a ledger: handed in, or found in its last record; and what it must commit to.

Normative text: docs/spec/ledger.md, section 7.  The uniforms can be checked as they come only if
the seed is known before they do, and it stands in the last line: so the input is read to its end
once for that line alone, and then once more for everything.  Nothing rests on the first reading:
the seed has to match the commitment in the header, and `close` is held against it in the second.
Cost: one pass over the bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tcc_certs.errors import Code, Rejected, ensure, require
from tcc_certs.formats.codec import decode
from tcc_certs.formats.ledger_forms import HEX
from tcc_certs.limits import MAX_LINE_BYTES
from tcc_certs.race.digest import opening_salt, seed_commitment

_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    """A seed and the salt of its commitment, 32 bytes each."""

    seed: bytes
    salt: bytes

    def check(self, commitment: bytes) -> None:
        """The commitment is to this seed.

        Raises:
            Rejected: L301 it is to another one.
        """
        expected = seed_commitment(self.seed, self.salt)
        require(expected.hex(), commitment.hex(), Code.SEED, "seed_commitment")


def given_seed(seed: bytes | None, salt: bytes | None) -> Seed | None:
    """The seed that the caller hands in; without a salt, the default one.

    Raises:
        Rejected: L301, L302 not 32 bytes; L302 a salt without a seed.
    """
    if seed is None:
        ensure(salt is None, Code.OPENING, "argument opening_salt", "a seed with it", "none")
        return None
    ensure(len(seed) == _BYTES, Code.SEED, "argument seed", "32 bytes", len(seed))
    if salt is None:
        salt = opening_salt(seed)
    ensure(len(salt) == _BYTES, Code.OPENING, "argument opening_salt", "32 bytes", len(salt))
    return Seed(seed=seed, salt=salt)


def logged_seed(chunks: Iterable[bytes]) -> Seed | None:
    """The seed in the last line, if that line looks like a record with one."""
    try:
        record = decode(_last_line(chunks), "last line")
    except Rejected:
        return None
    if not isinstance(record, dict):
        return None
    seed, salt = record.get("seed"), record.get("opening_salt")
    if not (isinstance(seed, str) and isinstance(salt, str) and HEX[1](seed) and HEX[1](salt)):
        return None
    return Seed(seed=bytes.fromhex(seed), salt=bytes.fromhex(salt))


def _last_line(chunks: Iterable[bytes]) -> bytes:
    """What stands before the last LF and after the one before it; empty where that is too long."""
    last, pieces, size = b"", list[bytes](), 0
    for chunk in chunks:
        end = chunk.rfind(b"\n")
        if end >= 0:
            start = chunk.rfind(b"\n", 0, end)
            before = [] if start >= 0 else pieces
            last = b"".join([*before, chunk[start + 1 : end]]) if size <= MAX_LINE_BYTES else b""
            pieces, size = [], 0
        rest = chunk[end + 1 :]
        size += len(rest)
        if size <= MAX_LINE_BYTES:
            pieces.append(rest)
    return last
