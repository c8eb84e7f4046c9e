"""The values that a type of an open field allows, and their canonical bytes.

Normative text: docs/spec/core.md, section 3; canonical bytes: docs/spec/session.md, section 2.
Cost: linear in the value.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.values import paths, urls
from tcc_certs.values.canonical import (
    FLAG,
    JSON,
    NUMBER,
    PATH,
    TEXT,
    URL,
    json_text,
    json_value,
    utf8,
)
from tcc_certs.values.declared import (
    FlagType,
    JsonType,
    NumberType,
    OpenType,
    PathType,
    TextType,
    UrlType,
)
from tcc_certs.values.numbers import canonical_number, compare, ensure_survives
from tcc_certs.values.text_pattern import pattern_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueFault:
    """The reason why a value does not fit its type: R105 its type or limits.

    R106 it is not JSON.
    """

    code: Code
    expected: str


def check(kind: OpenType, value: object) -> ValueFault | None:
    """Return None if `value` is a JSON value of the type, else the reason."""
    try:
        encoded(kind, value)
    except Rejected as refusal:
        return ValueFault(code=refusal.code, expected=refusal.expected)
    return None


def encoded(kind: OpenType, value: object) -> tuple[bytes, bytes]:
    """Return the type byte and canonical bytes of a value of the type.

    Raises:
        Rejected: R105 it has another type or exceeds a limit; R106 it is no JSON value.
    """
    match kind:
        case TextType():
            return TEXT, _text(kind, value)
        case NumberType():
            return NUMBER, _number(kind, value).encode()
        case FlagType():
            _ensure(isinstance(value, bool), "true or false", type(value).__name__)
            return FLAG, b"true" if value else b"false"
        case JsonType(most=most):
            return JSON, json_text(value, most=most)
        case PathType() | UrlType():
            return PATH if isinstance(kind, PathType) else URL, located(kind, value).encode()


def check_text(kind: OpenType, text: str) -> None:
    """Check that a text is one that :func:`encoded` may give as canonical bytes.

    Raises:
        Rejected: R105, R106: it is not.
    """
    match kind:
        case TextType():
            _text(kind, text)
        case NumberType():
            ensure_survives(text, "value", Code.OPEN_VALUE)
            _number(kind, Decimal(text))
        case FlagType():
            _ensure(text in ("true", "false"), "true or false", text)
        case JsonType(most=most):
            same = json_text(json_value(text), most=most) == utf8(text, "value")
            _ensure(same, "canonical JSON", text)
        case PathType() | UrlType():
            _ensure(located(kind, text) == text, "a normal form", text)


def located(kind: PathType | UrlType, value: object) -> str:
    """Return the normal form of a path or URL.

    Raises:
        Rejected: R105 it is no path or URL, or not under the directory or scope of its type; R106
            it has a lone surrogate.
    """
    if not isinstance(value, str):
        raise Rejected(Code.OPEN_VALUE, "value", "a text", type(value).__name__)
    is_path = isinstance(kind, PathType)
    found = (paths.normal if is_path else urls.normal)(str.__str__(value))
    if kind.under is not None:
        is_under = (paths.is_under if is_path else urls.is_under)(found, kind.under)
        _ensure(is_under, f"a value under {kind.under}", found)
    return found


def _text(kind: TextType, value: object) -> bytes:
    if not isinstance(value, str):
        raise Rejected(Code.OPEN_VALUE, "value", "a text", type(value).__name__)
    _ensure(kind.least <= len(value), f"at least {kind.least} characters", len(value))
    _ensure(len(value) <= kind.most, f"at most {kind.most} characters", len(value))
    data = utf8(value, "value")
    if kind.among:
        _ensure(value in kind.among, f"one of {', '.join(kind.among)}", value)
    if kind.pattern is not None:
        matches = pattern_of(kind.pattern).matches(value)
        _ensure(matches, f"a text that matches {kind.pattern}", "another")
    return data


def _number(kind: NumberType, value: object) -> str:
    text = canonical_number(value)
    _ensure(not (kind.whole and "." in text), "a whole number", text)
    if kind.low is not None and kind.high is not None:
        within = compare(kind.low, text) <= 0 <= compare(kind.high, text)
        _ensure(within, f"{kind.low} .. {kind.high}", text)
    return text


def _ensure(holds: bool, expected: str, found: object) -> None:
    ensure(holds, Code.OPEN_VALUE, "value", expected, found)
