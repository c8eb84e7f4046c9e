"""Mutations of bytes and of JSON: what the fuzzers do to well-formed inputs.

Every function takes the random generator first and returns a new value; nothing is kept, so that an
input follows from its number alone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any

NUMBERS = (0, 1, -1, 2, 7, 255, 256, 2**31, 2**32 - 1, 2**32, 2**53 - 1, 2**53, -(2**53), 2**63 - 1,
           2**63, -(2**63), 2**64 - 1, 2**64, 10**30)  # fmt: skip
TEXTS = ("", "0", "-0", "00", "1e9", "9" * 16, "9" * 400, "-" + "9" * 17, "0.5", "0.50", "NaN",
         "Infinity", "a", "\u0000", "\ud800", "\U0001f600", "é", "a" * 300, "1.0", "null",
         "0" * 64, "f" * 64, "F" * 64, "g" * 64)  # fmt: skip
TOKENS = (b"", b"\0", b"\xff", b'"', b"\\", b"\\u0000", b"\\ud800", b"{", b"}", b"[", b"]", b"[[",
          b"{}", b"[]", b":", b",", b"null", b"true", b"1e5", b"-0", b"0.5", b"\r\n", b"\n", b" ",
          b"NaN", b"Infinity", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"9" * 20, b"9" * 5000,
          b"[" * 60, b"(" * 200, b"\xff" * 8, b"\0" * 8, b"\0" * 7 + b"\x80")  # fmt: skip


def mutate_bytes(
    rng: Random, data: bytes, others: Sequence[bytes], tokens: Sequence[bytes]
) -> bytes:
    """One to four edits: flips, bytes set, tokens put in, parts dropped, doubled, or spliced."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        size = len(changed)
        at = rng.randrange(size + 1)
        match rng.randrange(9):
            case 0 | 1 if size:
                changed[at % size] ^= 1 << rng.randrange(8)
            case 2 if size:
                changed[at % size] = rng.randrange(256)
            case 3:
                changed[at:at] = rng.choice(tokens)
            case 4:
                token = rng.choice(tokens)
                changed[at : at + len(token)] = token
            case 5:
                del changed[at : at + rng.choice((1, 1, 2, 8, 64, 4096))]
            case 6:
                part = changed[at : at + rng.choice((1, 8, 64, 512))]
                changed[at:at] = part * rng.choice((1, 1, 2, 30))
            case 7:
                other = rng.choice(others)
                start = rng.randrange(len(other) + 1)
                changed[at:] = other[start:]
            case _:
                other = rng.choice(others)
                start = rng.randrange(len(other) + 1)
                changed[at:at] = other[start : start + rng.choice((1, 8, 64))]
    return bytes(changed)


def mutate_json(rng: Random, value: Any, donors: Sequence[Any]) -> Any:
    """One to three members changed, removed, doubled, moved, or taken from one of `donors`."""
    changed = copied(value)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        changed = _edit(rng, changed, donors)
    return changed


def copied(value: Any) -> Any:
    """An own copy of a JSON value."""
    return json.loads(json.dumps(value))


def _edit(rng: Random, value: Any, donors: Sequence[Any]) -> Any:
    places = list(_places(value))
    if not places:
        return _fresh(rng, value, donors)
    parent, name = rng.choice(places)
    match rng.randrange(8):
        case 0:
            del parent[name]
        case 1 if isinstance(parent, list):
            parent.insert(name, copied(parent[name]))
        case 1:
            parent[rng.choice(TEXTS)] = parent[name]
        case 2:
            other, place = rng.choice(places)
            parent[name] = copied(other[place]) if place in _keys(other) else 0
        case 3 if isinstance(parent, list):
            rng.shuffle(parent)
        case 4:
            parent[name] = [copied(parent[name])] * rng.choice((1, 2, 40))
        case _:
            parent[name] = _fresh(rng, parent[name], donors)
    return value


def _keys(parent: Any) -> Any:
    return parent if isinstance(parent, dict) else range(len(parent))


def _places(value: Any) -> Any:
    todo = [value]
    while todo:
        parent = todo.pop()
        if isinstance(parent, (dict, list)):
            for name in _keys(parent):
                yield parent, name
            todo.extend(parent[name] for name in _keys(parent))


def _fresh(rng: Random, value: Any, donors: Sequence[Any]) -> Any:
    """Another value: near the old one, of its kind, of another, or from a donor."""
    kind = rng.randrange(6)
    if kind < 3 and type(value) is int:
        return rng.choice((value + 1, value - 1, -value, value * 2, *NUMBERS))
    if kind < 3 and isinstance(value, str) and value:
        at = rng.randrange(len(value))
        bent = value[:at] + rng.choice("0a9.-~") + value[at + 1 :]
        return rng.choice((value[:at], value + value, bent, value.upper(), value + "0"))
    match kind:
        case 3:
            return rng.choice(TEXTS)
        case 4:
            return rng.choice((True, False, None, [], {}, [[]], {"a": 1}, 0.5, *NUMBERS))
        case _:
            places = list(_places(rng.choice(donors))) or [([0], 0)]
            parent, name = rng.choice(places)
            return copied(parent[name])
