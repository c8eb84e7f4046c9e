"""A DSSE envelope: what is signed, its type, and signatures over both together.

Source: DSSE 1.0.2, protocol.md (the pre-authentication encoding) and envelope.md.  The reader is
stricter than that text: an unknown member, a member named twice, URL-safe Base64 and bits left over
in it are refused, so that no byte of an envelope that was written here can be another one.
Cost: linear in the bytes, of which there are at most 1 MiB.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tcc_runtime.mcp.wire import Unreadable, read_json

PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"
MOST_BYTES: Final = 1 << 20
_MOST_SIGNATURES = 64


class SigningError(Exception):
    """Something signed, or to be signed, is refused.

    Args:
        code: of the catalogue.
        what: what is wrong.
    """

    def __init__(self, code: str, what: str) -> None:
        self.code = code
        self.what = what
        super().__init__(f"{code}: {what}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """A signature; `keyid` is empty where it names no key."""

    keyid: str
    sig: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """What was signed, its type, and the signatures."""

    payload: bytes
    payload_type: str
    signatures: Sequence[Signature]


def pae(payload_type: str, payload: bytes) -> bytes:
    """The bytes that are signed: type and payload, each with its length before it."""
    kind = payload_type.encode("utf-8")
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def write_envelope(envelope: Envelope) -> bytes:
    """The one text of an envelope: JSON without spaces."""
    document = {
        "payload": base64.b64encode(envelope.payload).decode("ascii"),
        "payloadType": envelope.payload_type,
        "signatures": [
            {"keyid": one.keyid, "sig": base64.b64encode(one.sig).decode("ascii")}
            for one in envelope.signatures
        ],
    }
    return json.dumps(document, separators=(",", ":")).encode("ascii")


def read_envelope(data: bytes) -> Envelope:
    """The envelope in `data`.

    Raises:
        SigningError: TCC851, it holds none.
    """
    if len(data) > MOST_BYTES:
        raise SigningError("TCC851", f"larger than {MOST_BYTES} bytes")
    try:
        document = read_json(data)
    except Unreadable as error:
        raise SigningError("TCC851", f"no JSON: {error}") from None
    members = _members(document, "the envelope", {"payload", "payloadType", "signatures"})
    kind, listed = members["payloadType"], members["signatures"]
    if not isinstance(kind, str):
        raise SigningError("TCC851", "payloadType: a text is needed")
    if not isinstance(listed, list) or not 1 <= len(listed) <= _MOST_SIGNATURES:
        raise SigningError("TCC851", f"signatures: a list of 1 to {_MOST_SIGNATURES} is needed")
    return Envelope(
        payload=_decoded(members["payload"], "payload"),
        payload_type=kind.encode("utf-8", "replace").decode("utf-8"),
        signatures=tuple(_signature(one) for one in listed),
    )


def _signature(value: object) -> Signature:
    members = _members(value, "a signature", {"sig"}, {"keyid"})
    keyid = members.get("keyid", "")
    if not isinstance(keyid, str):
        raise SigningError("TCC851", "keyid: a text is needed")
    return Signature(keyid=keyid, sig=_decoded(members["sig"], "sig"))


def _members(
    value: object, what: str, required: set[str], optional: frozenset[str] | set[str] = frozenset()
) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SigningError("TCC851", f"{what} is no object")
    wrong = sorted((required - value.keys()) | (value.keys() - required - optional))
    if wrong:
        name = json.dumps(wrong[0][:80])
        how = "is missing" if wrong[0] in required else "is none of its members"
        raise SigningError("TCC851", f"{what}: {name} {how}")
    return value


def _decoded(value: object, what: str) -> bytes:
    if not isinstance(value, str):
        raise SigningError("TCC851", f"{what}: a text is needed")
    try:
        found = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise SigningError("TCC851", f"{what}: no standard Base64") from None
    if base64.b64encode(found).decode("ascii") != value:
        raise SigningError("TCC851", f"{what}: Base64 that is not in its one form")
    return found
