"""Open arguments of a call: copied, held to their types, and in the canonical form of digests.

The definitions are :mod:`tcc_certs.values.types` and :mod:`tcc_certs.values.text_pattern`.  Here a
checker is made once for each parameter and gives the same bytes and the same codes, for exact types
of JSON alone: a subclass of one could answer differently each time it is asked, and is refused.
Text: docs/gate.md; docs/spec/core.md, section 2; docs/spec/session.md, section 2.
Cost: linear in the value; a text with a pattern some tens of nanoseconds a character.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from functools import reduce
from json.encoder import JSONEncoder, encode_basestring
from operator import getitem
from typing import Any, Final, TypeAlias

from tcc_certs.errors import Code, Rejected
from tcc_certs.values.canonical import MAX_DEPTH
from tcc_certs.values.numbers import canonical_number
from tcc_certs.values.text_pattern import Pattern, pattern_of
from tcc_certs.values.text_syntax import Chars, Either, Join, Node, Parser, Times
from tcc_certs.values.types import FlagType, JsonType, NumberType, OpenType, TextType

# A copy of arguments: somebody may go on changing them, in another thread say.

_DEPTH: Final = MAX_DEPTH + 1  # what is deeper is no value, and the gate refuses it


def snapshot(value: Any, depth: int = _DEPTH) -> Any:
    """A copy of a JSON value down to its texts and numbers; what has no such form stays."""
    if depth <= 0:
        return value
    # One step of the interpreter takes the members; only then are they gone through.
    if isinstance(value, dict):
        return {name: snapshot(item, depth - 1) for name, item in dict(value).items()}
    if isinstance(value, list):
        return [snapshot(item, depth - 1) for item in list(value)]
    if type(value) is tuple:
        return tuple([snapshot(item, depth - 1) for item in value])
    return value


_MOST_STEPS: Final = 1 << 20  # characters times positions
_START: Final = 1  # the set of the place before the text alone


def matcher(source: str) -> Callable[[str], bool]:
    """What tells whether all of a text matches.

    Raises:
        Rejected: C801 `source` is no pattern of the dialect.
    """
    pattern = pattern_of(source)
    tree = Parser(source, "pattern").parse()
    if not is_deterministic(pattern) or _loops_on_nothing(tree):
        return lambda text: reduce(getitem, text, pattern.set_of(_START)).accepts
    quick = re.compile(_translated(tree)).fullmatch
    longest = _MOST_STEPS // size_of(pattern)

    def matches(text: str) -> bool:
        return quick(text) is not None if len(text) <= longest else pattern.matches(text)

    return matches


def is_deterministic(pattern: Pattern) -> bool:
    """Whether after every position each character is at one position at most.

    A pattern that is too large to be worth the look is taken for one that is not.
    """
    follows = {pattern.after(1 << place) for place in range(size_of(pattern))}
    if len(follows) * len(pattern.at) > _MOST_STEPS:
        return False
    for follow in follows:
        for positions in pattern.at:
            seen = follow & positions
            if seen & (seen - 1):
                return False
    return True


def size_of(pattern: Pattern) -> int:
    """How many positions it has, that before the text among them."""
    return max(1, *[positions.bit_length() for positions in pattern.at])


def _loops_on_nothing(node: Node) -> bool:
    """Whether a repeat has a body that may be empty: engines differ in how they leave such."""
    match node:
        case Chars():
            return False
        case Join(items) | Either(items):
            return any(_loops_on_nothing(item) for item in items)
        case Times(body):
            return _may_be_empty(body) or _loops_on_nothing(body)


def _may_be_empty(node: Node) -> bool:
    match node:
        case Chars():
            return False
        case Join(items):
            return all(_may_be_empty(item) for item in items)
        case Either(items):
            return any(_may_be_empty(item) for item in items)
        case Times(body, low):
            return low == 0 or _may_be_empty(body)


def _translated(node: Node) -> str:
    """The same pattern for :mod:`re`, with nothing in it that means more than it says."""
    match node:
        case Chars(ranges):
            inside = "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges)
            return f"[{inside}]" if inside else "(?!)"
        case Join(items):
            return "".join(_translated(item) for item in items)
        case Either(items):
            return f"(?:{'|'.join(_translated(item) for item in items)})"
        case Times(body, low, high):
            return f"(?:{_translated(body)}){{{low},{'' if high is None else high}}}"


# Checkers of values, one for each type.

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
