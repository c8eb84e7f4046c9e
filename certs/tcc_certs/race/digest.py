"""Digests of prefix contexts, of leaves and of an artifact, and the pseudorandom words of the race.

Each digest takes one BLAKE3 call.  Every layout in this module is normative; see
docs/spec/artifact.md and docs/spec/race.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from blake3 import blake3

from tcc_certs.formats.codec import Json, blake, encode

_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}
FIRST_ARRIVAL, WINNER, RESIDUAL, PER_LEAF, REST_WINNER, REST_ARRIVAL = 1, 2, 3, 4, 5, 6


def root_context(document: Mapping[str, Json]) -> bytes:
    """D(root), the digest of the root context document."""
    return blake(b"tcc.ctx.root.v1\x00" + encode(document))


def child_context(parent: bytes, call: bytes) -> bytes:
    """D(v.a), from D(v) and the canonical text of the call a."""
    return blake(b"\x01" + parent + call)


def leaf_digest(context: bytes) -> bytes:
    """L(P), the id of the plan P that ends at the prefix with the digest `context`."""
    return blake(b"\x02" + context)


def rest_place(context: bytes, step: int) -> bytes:
    """The id that the uniforms of one step of the rest race at a node are derived from."""
    return context + step.to_bytes(4, "little")


def rest_digest(context: bytes, step: int) -> bytes:
    """The id of a `rest` item: the remainder of a node at one step; it only decides ties."""
    return blake(b"\x03" + rest_place(context, step))


def hkdf(ikm: bytes, salt: bytes, info: bytes) -> bytes:
    """HKDF-SHA256 (RFC 5869) with 32 bytes of output."""
    from hmac import digest  # imported here: it loads OpenSSL, which a compiler does not need

    return digest(digest(salt, ikm, "sha256"), info + b"\x01", "sha256")


def race_key(seed: bytes, salt: bytes) -> bytes:
    """K, the key of one race; `salt` is D(root)."""
    return hkdf(seed, salt, b"tcc.race.v1")


def uniform(key: bytes, purpose: int, identity: bytes) -> int:
    """x(p, id): 64 pseudorandom bits as an integer; U = (x + 1/2) / 2^64."""
    word = blake3(bytes((purpose,)) + identity, key=key).digest(8)
    return int.from_bytes(word, "little")


class Uniforms:
    """Computes x(p, id) for one race key.

    It reuses one hasher, so two threads must not use an object at the same time.

    Attributes:
        hasher: keyed with K; its state between two calls does not matter.
    """

    __slots__ = ("hasher",)

    def __init__(self, key: bytes) -> None:
        self.hasher = blake3(key=key)

    def __call__(self, purpose: int, identity: bytes, name: str = "") -> int:
        """The uniform x(purpose, identity).

        Args:
            name: the field of a ledger for the uniform; this class ignores it.
        """
        hasher = self.hasher
        hasher.reset()
        hasher.update(bytes((purpose,)) + identity)
        return int.from_bytes(hasher.digest(8), "little")


def opening_salt(seed: bytes) -> bytes:
    """The default opening salt for the commitment to a seed."""
    return hkdf(seed, b"", b"tcc.opening.v1")


def seed_commitment(seed: bytes, salt: bytes) -> bytes:
    """The commitment to a seed; a ledger begins with it."""
    return blake(b"tcc.seed.v1\x00" + seed + salt)


def uuid7(milliseconds: int, digest: bytes) -> str:
    """The text of a UUIDv7 (RFC 9562) from a time and the first 16 bytes of a digest."""
    return uuid7_of_hex(uuid7_stamp(milliseconds), digest.hex())


@lru_cache(maxsize=16)
def uuid7_stamp(milliseconds: int) -> str:
    """The first characters of every UUIDv7 of this time, up to the version digit."""
    time = f"{milliseconds:012x}"
    return f"{time[:8]}-{time[8:]}-7"


def uuid7_of_hex(stamp: str, h: str) -> str:
    """The UUIDv7 with this start and the other digits from a digest in hex."""
    return f"{stamp}{h[13:16]}-{_VARIANT[h[16]]}{h[17:20]}-{h[20:32]}"
