"""One byte string for one JSON value, and keyed digests of values, keys and records.

Normative text: docs/spec/session.md, section 2.  Texts are their UTF-8, numbers their canonical
decimals; whole JSON values have a canonical form of their own: members by code point, no spaces,
numbers as canonical decimals, strings as canonical JSON has them.  The key of digests is one a
session, the owner's; without it a digest says only which values are the same.
Cost: linear in the bytes; a value that grows past the given size is left there and then; one
BLAKE3 each.
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
    """Type byte and canonical bytes: texts, numbers, flags and null as themselves, else JSON.

    Raises:
        Rejected: R106 it is no JSON value.
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
    """The bytes of a text.

    Raises:
        Rejected: R106 it holds half of a surrogate pair.
    """
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise Rejected(Code.NO_VALUE, path, "no lone surrogate", "a lone surrogate") from None


def json_text(value: object, depth: int = MAX_DEPTH, most: int = MAX_VALUE_BYTES) -> bytes:
    """The canonical JSON of any JSON value: dicts, lists, tuples, texts, numbers, flags, None.

    Args:
        depth: how many lists and objects may be inside one another.
        most: how many bytes it may have.

    Raises:
        Rejected: R106 it is no JSON value, or is nested too deeply; R105 it has too many bytes.
    """
    writer = _Writer(most)
    writer.write(value, depth)
    return b"".join(writer.parts)


def json_value(text: str) -> object:
    """The value of a JSON text; numbers that are not whole are decimals, exact.

    Raises:
        Rejected: R106 it is no JSON.  What two texts of one value are is not asked here.
    """
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=_no_number)
    except (ValueError, RecursionError, ArithmeticError):
        raise Rejected(Code.NO_VALUE, "value", "JSON", text) from None


def _no_number(text: str) -> NoReturn:
    raise Rejected(Code.NO_VALUE, "value", "a finite number", text)


class _Writer:
    """Collects the parts of a text that has at most `most` bytes."""

    def __init__(self, most: int) -> None:
        self.parts: list[bytes] = []
        self._left = most
        self._most = most

    def write(self, value: object, depth: int) -> None:
        """Put down a value; `depth` lists and objects may still open."""
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
    """The digest of a value: its type byte and its canonical bytes, without its name."""
    return blake3(kind + data, key=key).digest()


def call_key(key: bytes, session_id: str, seq: int) -> bytes:
    """The idempotency key of call number `seq` of a session; two sessions may have one key."""
    return bytes.fromhex(CallKeys(key, session_id).of(seq))


class CallKeys:
    """:func:`call_key` of one session, in hex.

    Args:
        key: of the session's digests.
    """

    __slots__ = ("_begun",)

    def __init__(self, key: bytes, session_id: str) -> None:
        self._begun = blake3(b"key" + bytes.fromhex(session_id.replace("-", "")), key=key)

    def of(self, seq: int) -> str:
        """The key of call number `seq`."""
        hasher = self._begun.copy()  # as threads may ask for keys at a time
        hasher.update(seq.to_bytes(8, "little"))
        return hasher.digest(CALL_KEY_BYTES).hex()  # faster than `hexdigest`


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


class RecordMacs:
    """:func:`record_mac` under one key, whose hasher is kept.

    Args:
        key: of the session's digests.
    """

    __slots__ = ("_hasher", "_same")

    def __init__(self, key: bytes) -> None:
        from hmac import compare_digest  # here: it loads OpenSSL, and who has no key needs none

        self._hasher = blake3(key=record_key(key))
        self._same = compare_digest

    def same(self, previous: bytes, body: bytes, found: bytes) -> bool:
        """Whether a record's MAC is `found`; the time says nothing of where they differ."""
        self._hasher.reset()
        self._hasher.update(b"mac" + previous + body)
        return self._same(self._hasher.digest(MAC_BYTES), found)
