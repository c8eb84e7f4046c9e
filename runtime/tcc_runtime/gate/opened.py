"""Values of open parameters: checked, and in the canonical form that digests are made of.

The definition is :mod:`tcc_certs.values.types`; here a checker is made once for each parameter and
gives the same bytes and the same codes, for exact types of JSON alone (a subclass of one could
answer differently each time it is asked, and is refused).
Text: docs/spec/core.md, section 2; docs/spec/session.md, section 2.
Cost: linear in the value; a text with a pattern some tens of nanoseconds a character.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from json.encoder import JSONEncoder, encode_basestring
from typing import Final, TypeAlias

from tcc_certs.errors import Code, Rejected
from tcc_certs.values.canonical import MAX_DEPTH
from tcc_certs.values.numbers import canonical_number
from tcc_certs.values.types import FlagType, JsonType, NumberType, OpenType, TextType
from tcc_runtime.gate.patterns import matcher

# An open argument: its name, type byte and canonical bytes.
Given: TypeAlias = "tuple[str, bytes, bytes]"
# Why arguments are no call, and which argument it is.
Trouble: TypeAlias = "tuple[Code, str]"
Check: TypeAlias = "Callable[[object], tuple[bytes, bytes] | Code]"

_SAFE: Final = 1 << 53
_EXACT: Final = frozenset({str, int, float, bool, type(None), dict, list, tuple})
_CONTAINERS: Final = frozenset({dict, list, tuple})
_MOST_PARTS: Final = 1 << 16
_encoder = JSONEncoder(
    ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False, check_circular=False
)


def checker(kind: OpenType) -> Check:
    """What holds a value to a type."""
    match kind:
        case TextType():
            return _text(kind)
        case NumberType():
            return _number(kind)
        case FlagType():
            return _flag
        case JsonType(most=most):
            return _json(most)


def _text(kind: TextType) -> Check:
    least, most = kind.least, kind.most
    matches = None if kind.pattern is None else matcher(kind.pattern)

    def check(value: object) -> tuple[bytes, bytes] | Code:
        if type(value) is not str or not least <= len(value) <= most:
            return Code.OPEN_VALUE
        try:
            data = value.encode()
        except UnicodeEncodeError:
            return Code.NO_VALUE
        if matches is not None and not matches(value):
            return Code.OPEN_VALUE
        return b"s", data

    return check


def _number(kind: NumberType) -> Check:
    whole = kind.whole
    low = None if kind.low is None else Decimal(kind.low)
    high = None if kind.high is None else Decimal(kind.high)

    def check(value: object) -> tuple[bytes, bytes] | Code:
        text = number_text(value)
        if isinstance(text, Code):
            return text
        if whole and "." in text:
            return Code.OPEN_VALUE
        if low is not None and high is not None and not low <= Decimal(text) <= high:
            return Code.OPEN_VALUE
        return b"n", text.encode()

    return check


def number_text(value: object) -> str | Code:
    """The canonical decimal of a number; most numbers are short ones."""
    if type(value) is int and -_SAFE <= value <= _SAFE:
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


def _flag(value: object) -> tuple[bytes, bytes] | Code:
    if type(value) is not bool:
        return Code.OPEN_VALUE
    return b"b", b"true" if value else b"false"


def _json(most: int) -> Check:
    def check(value: object) -> tuple[bytes, bytes] | Code:
        found = json_bytes(value, most)
        return found if isinstance(found, Code) else (b"j", found)

    return check


def json_bytes(value: object, most: int) -> bytes | Code:
    """The canonical JSON of a value of exact types, or why it has none."""
    quick = _quick(value)
    if quick is not None and len(quick) <= most:
        return quick
    writer = _Writer(most)
    try:
        writer.write(value, MAX_DEPTH)
    except Rejected as refusal:
        return refusal.code
    return b"".join(writer.parts)


def _quick(value: object) -> bytes | None:
    """The same, by the interpreter's own writer, of a value in which that writes every part alike.

    None where it might not: a part of a class of its own, a name that is no text, a number that is
    large or written with an exponent, too many levels or parts.
    """
    level: list[object] = [value]
    left = _MOST_PARTS
    for _ in range(MAX_DEPTH + 1):
        kinds = set(map(type, level))
        left -= len(level)
        if not kinds <= _EXACT or left < 0 or not _are_short(level, kinds):
            return None
        if not kinds & _CONTAINERS:
            break
        below: list[object] = []
        for part in level:
            if type(part) is dict:
                if set(map(type, part)) - {str}:
                    return None
                below += part.values()
            elif type(part) is list or type(part) is tuple:
                below += part
        level = below
    else:
        return None
    try:
        return _encoder.encode(value).encode()
    except UnicodeEncodeError:
        return None


def _are_short(parts: list[object], kinds: set[type]) -> bool:
    """Whether all numbers among them are written as they are printed."""
    if int in kinds:
        whole = [part for part in parts if type(part) is int]
        if min(whole) < -_SAFE or max(whole) > _SAFE:
            return False
    if float in kinds:
        # Smaller ones are printed with an exponent, whole ones with a point.
        other = [part for part in parts if type(part) is float]
        return all(1e-4 <= abs(part) < 1e15 and part % 1 != 0 for part in other)
    return True


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
