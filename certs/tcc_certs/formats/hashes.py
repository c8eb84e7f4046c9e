"""The digests of an artifact: of calls, of states, and the document of the root context.

Layouts are normative: docs/spec/artifact.md, section 4; J: docs/spec/race.md.
Cost: one BLAKE3 call each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from blake3 import blake3

from tcc_certs.formats.codec import Json


def blake(data: bytes | memoryview) -> bytes:
    """BLAKE3-256 of `data`."""
    return blake3(data).digest()


def call_digest(text: bytes, cost_low: int, cost_high: int) -> bytes:
    """A(a): a call with its declared cost interval, in nano-units."""
    return blake(
        b"\x11"
        + len(text).to_bytes(4, "little")
        + text
        + cost_low.to_bytes(8, "little", signed=True)
        + cost_high.to_bytes(8, "little", signed=True)
    )


def state_digest(accept: bool, edges: Iterable[tuple[bytes, bytes]]) -> bytes:
    """S(q), from the pairs (A(call), S(target)) in call order."""
    parts = [b"\x10\x01" if accept else b"\x10\x00"]
    for call, target in edges:
        parts.append(call)
        parts.append(target)
    return blake(b"".join(parts))


def root_document(name: str, version: str, limits: Iterable[str]) -> Mapping[str, Json]:
    """J, the root context document: what the race of a grammar depends on besides its calls."""
    return {"grammar": name, "limits": sorted(set(limits), key=str.encode), "version": version}
