"""Canonical bytes of JSON values, and keyed digests of values, keys and records.

Normative text: docs/spec/session.md, section 2.  Texts are UTF-8, and numbers are canonical
decimals.  Whole JSON values have a canonical form: members sorted by code point, no spaces, numbers
as canonical decimals, strings as in canonical JSON.  Each session has a key for digests, which
belongs to the owner.  Without the key, a digest only shows which values are equal.  Cost: linear in
the bytes, and one BLAKE3 call for each digest.  Writing stops when a value exceeds the given size.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import NoReturn

from blake3 import blake3

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import encode
from tcc_certs.values.numbers import canonical_number

TEXT, NUMBER, FLAG, EMPTY, JSON = b"s", b"n", b"b", b"z", b"j"
PATH, URL = b"p", b"u"
MAX_DEPTH = 64
MAX_VALUE_BYTES = 1 << 24


def canonical(value: object) -> tuple[bytes, bytes]:
    """Return the type byte and canonical bytes of a value; lists and objects become JSON.

    Raises:
        Rejected: R106: it is no JSON value.
    """
    if value is None:
        return EMPTY, b""
    if isinstance(value, bool):
        return FLAG, b"true" if value else b"false"
    if isinstance(value, str):
        return TEXT, utf8(value, "value")
    if isinstance(value, (int, float, Decimal)):
        return NUMBER, canonical_number(value).encode()
    return JSON, json_text(value)


def utf8(text: str, path: str) -> bytes:
    """Return the UTF-8 bytes of a text.

    Raises:
        Rejected: R106: it has a lone surrogate.
    """
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise Rejected(Code.NO_VALUE, path, "no lone surrogate", "a lone surrogate") from None


def json_text(value: object, depth: int = MAX_DEPTH, most: int = MAX_VALUE_BYTES) -> bytes:
    """Return the canonical JSON of a value of dicts, lists, tuples, texts, numbers, flags, None.

    Args:
        depth: the deepest nesting of lists and objects.
        most: the most bytes.

    Raises:
        Rejected: R106 it is no JSON value, or is nested too deeply; R105 it has too many bytes.
    """
    writer = _Writer(most)
    writer.write(value, depth)
    return b"".join(writer.parts)


def json_value(text: str) -> object:
    """Return the value of a JSON text; numbers that are not whole are exact decimals.

    The text need not be canonical.

    Raises:
        Rejected: R106: it is not JSON.
    """
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=_no_number)
    except (ValueError, RecursionError, ArithmeticError):
        raise Rejected(Code.NO_VALUE, "value", "JSON", text) from None


def _no_number(text: str) -> NoReturn:
    raise Rejected(Code.NO_VALUE, "value", "a finite number", text)


class _Writer:
    """Collects the parts of a text of at most `most` bytes."""

    def __init__(self, most: int) -> None:
        self.parts: list[bytes] = []
        self._left = most
        self._most = most

    def write(self, value: object, depth: int) -> None:
        """Write a value; at most `depth` more lists and objects may be nested."""
        kind = type(value)
        if isinstance(value, dict) and kind is dict:
            self._object(value, depth)
        elif isinstance(value, (list, tuple)) and (kind is list or kind is tuple):
            self._open(b"[", depth)
            for at, item in enumerate(value):
                self._put(b"," if at else b"")
                self.write(item, depth - 1)
            self._put(b"]")
        else:
            self._put(_scalar(value))

    def _object(self, value: dict[object, object], depth: int) -> None:
        self._open(b"{", depth)
        names = [name for name in value if type(name) is str]
        ensure(len(names) == len(value), Code.NO_VALUE, "value", "texts as names", "others")
        for at, name in enumerate(sorted(names)):
            self._put((b"," if at else b"") + _scalar(name) + b":")
            self.write(value[name], depth - 1)
        self._put(b"}")

    def _open(self, mark: bytes, depth: int) -> None:
        ensure(depth > 0, Code.NO_VALUE, "value", f"nesting of at most {MAX_DEPTH}", "deeper")
        self._put(mark)

    def _put(self, part: bytes) -> None:
        self._left -= len(part)
        ensure(self._left >= 0, Code.OPEN_VALUE, "value", f"at most {self._most} bytes", "more")
        self.parts.append(part)


def _scalar(value: object) -> bytes:
    if type(value) is str:
        utf8(value, "value")
        return encode(value)
    if value is None or type(value) is bool:
        return b"null" if value is None else b"true" if value else b"false"
    if type(value) is int or type(value) is float or type(value) is Decimal:
        return canonical_number(value).encode()
    raise Rejected(Code.NO_VALUE, "value", "a JSON value", type(value).__name__)


# Keyed digests.

_COMMITMENT = "tcc.session/2 digest key"
_RECORDS = "tcc.session/2 record key"
CALL_KEY_BYTES = 16
MAC_BYTES = 16


def digest(key: bytes, kind: bytes, data: bytes) -> bytes:
    """Return the digest of a value: of its type byte and canonical bytes, without its name."""
    return blake3(kind + data, key=key).digest()


def call_key(key: bytes, session_id: str, seq: int) -> bytes:
    """Return the idempotency key of call number `seq` of a session; sessions may share a key."""
    return bytes.fromhex(CallKeys(key, session_id).of(seq))


class CallKeys:
    """The idempotency keys of one session, as :func:`call_key`, in hex.

    Args:
        key: the key of the session's digests.
    """

    __slots__ = ("_begun",)

    def __init__(self, key: bytes, session_id: str) -> None:
        self._begun = blake3(b"key" + bytes.fromhex(session_id.replace("-", "")), key=key)

    def of(self, seq: int) -> str:
        """Return the key of call number `seq`."""
        hasher = self._begun.copy()  # a copy, because threads may use this object concurrently
        hasher.update(seq.to_bytes(8, "little"))
        return hasher.digest(CALL_KEY_BYTES).hex()  # faster than `hexdigest`


def reference_digest(key: bytes, reference: str) -> bytes:
    """Return the digest of the id that a caller gave to a call.

    Raises:
        Rejected: R106: it has a lone surrogate.
    """
    return blake3(b"ref" + utf8(reference, "ref"), key=key).digest()


def key_commitment(key: bytes) -> bytes:
    """Return the commitment to a session's key."""
    return blake3(key, derive_key_context=_COMMITMENT).digest()


def record_key(key: bytes) -> bytes:
    """Return the key of the records' MACs.  It is derived, so no digest of a value equals a MAC."""
    return blake3(key, derive_key_context=_RECORDS).digest()


def record_mac(derived: bytes, previous: bytes, body: bytes) -> bytes:
    """Return the MAC of a record.

    Args:
        derived: the result of :func:`record_key`.
        previous: the hash of the previous record; zeros for the first.
        body: its canonical bytes without ``mac`` and ``~``.
    """
    return blake3(b"mac" + previous + body, key=derived).digest(MAC_BYTES)


class RecordMacs:
    """Computes :func:`record_mac` under one key, and reuses its hasher.

    Args:
        key: the key of the session's digests.
    """

    __slots__ = ("_hasher", "_same")

    def __init__(self, key: bytes) -> None:
        # imported only here: it loads OpenSSL, which only key holders need
        from hmac import compare_digest

        self._hasher = blake3(key=record_key(key))
        self._same = compare_digest

    def same(self, previous: bytes, body: bytes, found: bytes) -> bool:
        """Return whether a record has the MAC `found`, in constant time."""
        self._hasher.reset()
        self._hasher.update(b"mac" + previous + body)
        return self._same(self._hasher.digest(MAC_BYTES), found)
