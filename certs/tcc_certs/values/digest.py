"""Keyed digests: what a session says of values, keys and results that it does not show.

Normative text: docs/spec/session.md, section 2.  The key is one a session, the owner's; without it
a digest says only which values are the same.  Cost: one BLAKE3 each.
"""

from __future__ import annotations

from blake3 import blake3

from tcc_certs.values.canonical import utf8

_COMMITMENT = "tcc.session/1.0 digest key"
_RECORDS = "tcc.session/1.1 record key"
KEY_BYTES = 32
CALL_KEY_BYTES = 16
MAC_BYTES = 16


def digest(key: bytes, kind: bytes, data: bytes) -> bytes:
    """The digest of a value: its type byte and its canonical bytes, without its name."""
    return blake3(kind + data, key=key).digest()


def call_key(key: bytes, session_id: str, seq: int) -> bytes:
    """The idempotency key of call number `seq` of a session; two sessions may have one key."""
    session = bytes.fromhex(session_id.replace("-", ""))
    return blake3(b"key" + session + seq.to_bytes(8, "little"), key=key).digest(CALL_KEY_BYTES)


def reference_digest(key: bytes, reference: str) -> bytes:
    """The digest of the identity that a caller gave to a call.

    Raises:
        Rejected: R106 it holds half of a surrogate pair.
    """
    return blake3(b"ref" + utf8(reference, "ref"), key=key).digest()


def key_commitment(key: bytes) -> bytes:
    """What a session says of its key before it uses it."""
    return blake3(key, derive_key_context=_COMMITMENT).digest()


def record_key(key: bytes) -> bytes:
    """The key of the records' MACs: derived, so that no digest of a value is ever one of them."""
    return blake3(key, derive_key_context=_RECORDS).digest()


def record_mac(derived: bytes, previous: bytes, body: bytes) -> bytes:
    """The MAC of a record.

    Args:
        derived: from :func:`record_key`.
        previous: the hash of the record before it; zeros of the first.
        body: its canonical bytes without ``mac`` and ``~``.
    """
    return blake3(b"mac" + previous + body, key=derived).digest(MAC_BYTES)
