"""Arguments as JSON texts, and the code that each is refused with; None: it is let through.

``scripts/frameworks.py`` makes the same calls through frameworks, each in an environment of its
own, so this module imports nothing but the standard library.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

GRAMMAR = """grammar doors version "1"
tool save(id: integer, size: number, note: text max 200, data: json max 4000,
    rows: list max 9 of (name: text max 200, no?: integer at "/place/no", day?: date or null))
plan = save{0,99}
before save require every rows(name != "none")
"""
GIVEN: dict[str, Any] = {
    "id": 5, "size": 0.5, "note": "n", "data": {"a": [1, None]},
    "rows": [{"name": "a"}, {"name": "b", "place": {"no": 3}, "day": None}],
}  # fmt: skip
EXACT = (2**53 + 1, -(2**53) - 1, 2**63 - 1, 2**63, 2**64 - 1, -(2**63))  # kept digit by digit
BEYOND = (2**64, -(2**63) - 1, 2**64 + 1)


def _with(**changes: Any) -> str:
    return json.dumps({**GIVEN, **changes})


def _row(**members: Any) -> list[dict[str, Any]]:
    return [{"name": "a"}, {"name": "b", **members}]


def deep(levels: int) -> str:
    """Arguments in which `data` is so deep."""
    return _with(data="@").replace('"@"', "[" * levels + "]" * levels)


CASES: dict[str, tuple[str, str | None]] = {
    "as declared": (_with(), None),
    "a member that is not declared": (_with(rows=_row(secret="s")), "R105"),
    "one that is null": (_with(rows=_row(secret=None)), "R105"),
    "one without a name": (_with(rows=_row(**{"": 1})), "R105"),
    "one on the way to a place": (_with(rows=_row(place={"no": 3, "x": 1})), "R105"),
    "a text on the way to a place": (_with(rows=_row(place="x")), "R105"),
    "a list on the way to a place": (_with(rows=_row(place=[3])), "R105"),
    "an argument that is not declared": (_with(more=1), "R102"),
    **{f"an integer {n}": (_with(id=n), None) for n in EXACT},
    **{f"a number {n}": (_with(size=n), None) for n in EXACT},
    **{f"JSON with {n}": (_with(data={"n": [n]}), None) for n in EXACT},
    **{f"a member {n}": (_with(rows=_row(place={"no": n})), None) for n in EXACT},
    **{f"an integer {n}": (_with(id=n), "R106") for n in BEYOND},
    **{f"a number {n}": (_with(size=n), "R106") for n in BEYOND},
    **{f"JSON with {n}": (_with(data=[n]), "R106") for n in BEYOND},
    "a number that a double prints": (_with(size=1e22), None),
    "JSON as deep as it may be": (deep(64), None),
    "JSON that is deeper": (deep(65), "R106"),
    "a NUL": (_with(note="a\0b", data={"\0": "\0"}, rows=_row(name="\0")), None),
    "half of a pair": (_with(note="\ud800"), "R106"),
    "half of a pair in JSON": (_with(data=["\udc80"]), "R106"),
    "half of a pair as a name": (_with(data={"\ud800": 1}), "R106"),
    "half of a pair in a record": (_with(rows=_row(name="\ud800")), "R106"),
    "half of a pair as a member": (_with(rows=_row(**{"\ud800": 1})), "R105"),
}


def large(size: int) -> dict[str, tuple[str, str | None]]:
    """Arguments with a text of that many characters."""
    long = "x" * size
    return {
        "a long text": (_with(note=long), "R105"),
        "long JSON": (_with(data=[long]), "R105"),
        "a long member": (_with(rows=_row(name=long)), "R105"),
        "a long name": (_with(rows=_row(**{long: 1})), "R105"),
    }


LARGE = large(16 << 20)


def same(one: Any, other: Any) -> bool:
    """Whether two values are one JSON value, with numbers digit by digit."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if type(one) in (int, float) and type(other) in (int, float):
        return Decimal(repr(one)) == Decimal(repr(other))
    return type(one) is type(other) and bool(one == other)
