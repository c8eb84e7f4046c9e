"""Canonical JSON of any value; uses the fast standard writer where it gives the same bytes.

The definition is :func:`tcc_certs.values.canonical.json_text`.  Normative text:
docs/spec/session.md, section 2.  Cost: linear in the value.
"""

from __future__ import annotations

from decimal import Decimal
from itertools import chain
from typing import Any, Final

from msgspec.json import Encoder

from tcc_certs.errors import Code, Rejected
from tcc_certs.values.canonical import MAX_DEPTH, json_text
from tcc_certs.values.numbers import LEAST_WHOLE, MOST_WHOLE

CONTAINERS: Final = frozenset({dict, list, tuple})
_EXACT: Final = frozenset({str, int, float, bool, type(None)}) | CONTAINERS
JSON: Final = _EXACT | {Decimal}
SCALARS: Final = JSON - CONTAINERS
_MOST_PARTS: Final = 1 << 16
_written: Final = Encoder(order="sorted").encode


def json_bytes(value: object, most: int) -> bytes | Code:
    """Return the canonical JSON of a value, at most `most` bytes; or the code of its fault."""
    quick = _quick(value)
    if quick is not None and len(quick) <= most:
        return quick
    try:
        return json_text(value, most=most)
    except Rejected as refusal:
        return refusal.code


def _quick(value: object) -> bytes | None:
    """Return the bytes of the standard writer; None if they may not be canonical.

    None for other classes, member names that are no texts, large numbers, numbers that are written
    with an exponent, and too many levels or parts.
    """
    level: list[object] = [value]
    left = _MOST_PARTS
    for _ in range(MAX_DEPTH + 1):
        kinds = set(map(type, level))
        left -= len(level)
        if not kinds <= _EXACT or left < 0 or not _are_short(level, kinds):
            return None
        if not kinds & CONTAINERS:
            break
        objects: list[Any] = level
        lists: list[Any] = []
        if kinds != {dict}:
            objects = [part for part in level if type(part) is dict]
            lists = [part for part in level if type(part) is list or type(part) is tuple]
        left -= sum(map(len, objects))
        if left < 0 or set(map(type, chain.from_iterable(objects))) - {str}:
            return None
        level = list(chain.from_iterable(map(dict.values, objects)))
        level += chain.from_iterable(lists)
    else:
        return None
    try:
        return _written(value)
    except UnicodeEncodeError:
        return None


def _are_short(parts: list[object], kinds: set[type]) -> bool:
    """Return whether all numbers are written without an exponent, as canonical JSON writes them."""
    if int in kinds:
        whole = [part for part in parts if type(part) is int]
        if min(whole) < LEAST_WHOLE or max(whole) > MOST_WHOLE:
            return False
    if float in kinds:
        # The writer prints smaller numbers with an exponent, and whole floats with a point.
        other = [part for part in parts if type(part) is float]
        return all(1e-4 <= abs(part) < 1e15 and part % 1 != 0 for part in other)
    return True
