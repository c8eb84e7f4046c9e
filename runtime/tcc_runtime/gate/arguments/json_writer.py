"""Canonical JSON of any value: the bytes that digests are made of, or why there are none.

Every check comes in the order of the definition, :mod:`tcc_certs.values.canonical`, so that a value
with several faults has the same code here and there.
Text: docs/spec/session.md, section 2.
Cost: linear in the value, a Python step for each part of it.
"""

from __future__ import annotations

from decimal import Decimal
from json.encoder import encode_basestring

from tcc_certs.errors import Code, Rejected
from tcc_certs.values.canonical import MAX_DEPTH
from tcc_certs.values.numbers import LEAST_WHOLE, MOST_WHOLE, canonical_number


def json_text(value: object, most: int) -> bytes | Code:
    """The canonical JSON of a value of exact types, of so many bytes at most."""
    writer = _Writer(most)
    try:
        writer.write(value, MAX_DEPTH)
    except Rejected as refusal:
        return refusal.code
    return b"".join(writer.parts)


def number_text(value: object) -> str | Code:
    """The canonical decimal of a number; most numbers are short ones."""
    if type(value) is int and LEAST_WHOLE <= value <= MOST_WHOLE:
        return str(value)
    if type(value) is float:
        text = repr(value)
        if text.endswith(".0") and text != "-0.0":
            return text[:-2]
        if "e" not in text and "n" not in text and text != "-0.0":
            return text
    elif type(value) is not int and type(value) is not Decimal:
        return Code.OPEN_VALUE
    try:
        return canonical_number(value)
    except Rejected as refusal:
        return refusal.code


class _Writer:
    """Collects the parts of a text; the order of its checks is that of the definition."""

    __slots__ = ("_left", "_most", "parts")

    def __init__(self, most: int) -> None:
        self.parts: list[bytes] = []
        self._most = self._left = most

    def write(self, value: object, depth: int) -> None:
        """Put down a value; `depth` lists and objects may still open."""
        if type(value) is dict:
            self._object(value, depth)
        elif type(value) is list or type(value) is tuple:
            self._open(b"[", depth)
            mark = b""
            for item in value:
                self._put(mark)
                mark = b","
                self.write(item, depth - 1)
            self._put(b"]")
        else:
            self._put(_scalar(value))

    def _object(self, value: dict[object, object], depth: int) -> None:
        self._open(b"{", depth)
        names = []
        for name in value:
            if type(name) is not str:
                raise Rejected(Code.NO_VALUE, "value", "texts as names", type(name).__name__)
            names.append(name)
        mark = b""
        for name in sorted(names):
            self._put(mark + _scalar(name) + b":")
            mark = b","
            self.write(value[name], depth - 1)
        self._put(b"}")

    def _open(self, mark: bytes, depth: int) -> None:
        if depth <= 0:
            raise Rejected(Code.NO_VALUE, "value", f"nesting of at most {MAX_DEPTH}", "deeper")
        self._put(mark)

    def _put(self, part: bytes) -> None:
        self._left -= len(part)
        if self._left < 0:
            raise Rejected(Code.OPEN_VALUE, "value", f"at most {self._most} bytes", "more")
        self.parts.append(part)


def _scalar(value: object) -> bytes:
    if type(value) is str:
        try:
            return encode_basestring(value).encode()
        except UnicodeEncodeError:
            raise Rejected(Code.NO_VALUE, "value", "no lone surrogate", "one") from None
    if value is None or type(value) is bool:
        return b"null" if value is None else b"true" if value else b"false"
    text = number_text(value)
    if isinstance(text, Code):
        raise Rejected(Code.NO_VALUE, "value", "a JSON value", type(value).__name__)
    return text.encode()
