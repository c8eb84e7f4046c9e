"""Digests of prefix contexts and leaves, and the PRF of the race; those of an artifact with them.

Cost: one BLAKE3 call each.  Every layout here is normative; see docs/spec/artifact.md and
docs/spec/race.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from blake3 import blake3

from tcc_certs.formats.codec import Json, blake, encode

_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}
FIRST_ARRIVAL, WINNER, RESIDUAL, PER_LEAF, REST_WINNER, REST_ARRIVAL = 1, 2, 3, 4, 5, 6


def root_context(document: Mapping[str, Json]) -> bytes:
    """D(root)."""
    return blake(b"tcc.ctx.root.v1\x00" + encode(document))


def child_context(parent: bytes, call: bytes) -> bytes:
    """D(v . a), from D(v) and the call's canonical text."""
    return blake(b"\x01" + parent + call)


def leaf_digest(context: bytes) -> bytes:
    """L(P), the leaf under the prefix context D(P): stop here."""
    return blake(b"\x02" + context)


def rest_place(context: bytes, step: int) -> bytes:
    """What the uniforms of a step of the rest race at D(v) are drawn for."""
    return context + step.to_bytes(4, "little")


def rest_digest(context: bytes, step: int) -> bytes:
    """The id of what of a node is left at a step of the rest race; orders ties alone."""
    return blake(b"\x03" + rest_place(context, step))


def hkdf(ikm: bytes, salt: bytes, info: bytes) -> bytes:
    """HKDF-SHA256 (RFC 5869), 32 bytes of output."""
    from hmac import digest  # here: it loads OpenSSL, and who compiles draws no race

    return digest(digest(salt, ikm, "sha256"), info + b"\x01", "sha256")


def race_key(seed: bytes, salt: bytes) -> bytes:
    """K, the PRF key of one race; `salt` is D(root) where no beacon and no nonce are used."""
    return hkdf(seed, salt, b"tcc.race.v1")


def uniform(key: bytes, purpose: int, identity: bytes) -> int:
    """x(p, id): 64 bits of the PRF, as an integer; U = (x + 1/2) / 2^64."""
    word = blake3(bytes((purpose,)) + identity, key=key).digest(8)
    return int.from_bytes(word, "little")


class Uniforms:
    """x(p, id) of one race key, by one hasher that is used again; not for two threads at once.

    Attributes:
        hasher: keyed with K; in any state between two calls.
    """

    __slots__ = ("hasher",)

    def __init__(self, key: bytes) -> None:
        self.hasher = blake3(key=key)

    def __call__(self, purpose: int, identity: bytes, name: str = "") -> int:
        """The uniform; `name` is that of its field in a ledger, which says nothing here."""
        hasher = self.hasher
        hasher.reset()
        hasher.update(bytes((purpose,)) + identity)
        return int.from_bytes(hasher.digest(8), "little")


def opening_salt(seed: bytes) -> bytes:
    """The default opening salt of a seed commitment."""
    return hkdf(seed, b"", b"tcc.opening.v1")


def seed_commitment(seed: bytes, salt: bytes) -> bytes:
    """The commitment to a seed that a ledger opens with."""
    return blake(b"tcc.seed.v1\x00" + seed + salt)


def uuid7(milliseconds: int, digest: bytes) -> str:
    """A UUIDv7 of a time and of the first 16 bytes of a digest (RFC 9562), in its usual text."""
    return uuid7_of_hex(uuid7_stamp(milliseconds), digest.hex())


@lru_cache(maxsize=16)
def uuid7_stamp(milliseconds: int) -> str:
    """What every UUIDv7 of a time starts with."""
    time = f"{milliseconds:012x}"
    return f"{time[:8]}-{time[8:]}-7"


def uuid7_of_hex(stamp: str, h: str) -> str:
    """The UUIDv7 with this start, of a digest in hex."""
    return f"{stamp}{h[13:16]}-{_VARIANT[h[16]]}{h[17:20]}-{h[20:32]}"
