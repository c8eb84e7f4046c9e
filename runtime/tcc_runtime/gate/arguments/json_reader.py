"""JSON texts of answers, read strictly: no duplicate members, exact numbers, bounded nesting.

Text: docs/spec/session.md, section 3; docs/spec/core.md, section 2.
Cost: linear in the text.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from tcc_certs.values.declared import MOST_DIGITS

# Marks an unreadable value. JSON has no value of its class, so every reader takes it as a wrong
# value.
UNREADABLE: Final = object()
# A fixed bound, because the bound of Python's own reader depends on the version.
DEEPEST: Final = 500
_STARTS: Final = frozenset('{["-0123456789tfnNI')
_SPACE: Final = " \t\r\n"


def answer_in(text: str) -> Any:
    """Return the value of a JSON text; a text that is not JSON as it is.

    Returns:
        UNREADABLE for JSON with duplicate members, or nested deeper than `DEEPEST`.  Inside a
            value, UNREADABLE replaces NaN, infinities, and numbers with too many digits for a
            listed value.
    """
    if text.lstrip(_SPACE)[:1] not in _STARTS:
        return text
    try:
        found = _decoder.decode(text)
    except json.JSONDecodeError:
        return text
    except (_Twice, RecursionError):
        return UNREADABLE
    brackets = text.count("[") + text.count("{")
    return UNREADABLE if brackets > DEEPEST and is_deeper(found, DEEPEST) else found


def texts_in(text: str) -> list[Any] | None:
    """Return the values of a JSON list, object or text as nested lists; None for any other text.

    Objects become lists of their values, so the values of duplicate members are included.

    Raises:
        RecursionError: the value is nested deeper than Python's reader allows.
    """
    if text.lstrip(_SPACE)[:1] not in ("{", "[", '"'):
        return None
    try:
        return [_pairs_decoder.decode(text)]
    except json.JSONDecodeError:
        return None


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object with these members.

    Raises:
        ValueError: two members have the same name.
    """
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Twice("a member stands twice")
    return found


def is_deeper(value: Any, most: int) -> bool:
    """Return whether more than `most` lists and objects are nested in one another."""
    level = _below([value])
    for _ in range(most):
        if not level:
            return False
        level = [inner for outer in level for inner in _below(outer)]
    return bool(level)


class _Twice(ValueError):
    """Two members of an object have one name."""


def _below(value: Any) -> list[Any]:
    held = value.values() if isinstance(value, dict) else value
    return [inner for inner in held if isinstance(inner, dict | list)]


def _whole(text: str) -> Any:
    if len(text.lstrip("-")) > MOST_DIGITS:
        return UNREADABLE
    try:
        return int(text)
    except ValueError:  # the process may allow fewer digits
        return UNREADABLE


def _exact(text: str) -> Any:
    try:
        value = Decimal(text)
    except InvalidOperation:
        return UNREADABLE
    _, digits, power = value.as_tuple()
    if not isinstance(power, int) or len(digits) + power > MOST_DIGITS or -power > MOST_DIGITS:
        return UNREADABLE
    return value


def _values(pairs: list[tuple[str, Any]]) -> list[Any]:
    return [value for _, value in pairs]


def _decoder_with(pairs: Callable[[list[tuple[str, Any]]], Any]) -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=pairs,
        parse_int=_whole,
        parse_float=_exact,
        parse_constant=lambda _: UNREADABLE,
    )


_decoder: Final = _decoder_with(once)
_pairs_decoder: Final = _decoder_with(_values)
