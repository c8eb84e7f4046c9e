"""Reads TOML that anybody may have written: rejects what the standard reader takes too long for.

Text: docs/adapters.md, *What is refused*; docs/lint.md.  Why a guard: a key of n parts costs
`tomllib` the square of n, in time and in memory, so a line has a greatest number of dots; and it
takes integers of any size, of which long hexadecimal ones have no decimal text in Python, so
integers have the 64 bits that TOML promises.  `tomllib` has no option for either.
Cost: linear in the text.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any, Final

MOST_DOTS: Final = 64
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


def read_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text.

    Raises:
        ValueError: it is none (``TOMLDecodeError``), a line that is no comment has more than 64
            dots, or an integer more than 64 bits.
        RecursionError: it is nested too deeply.
    """
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > MOST_DOTS and not line.lstrip().startswith("#"):
            raise ValueError(f"line {number} has more than {MOST_DOTS} dots")
    tables = tomllib.loads(text)
    if not all(_LEAST <= number <= _MOST for number in _integers(tables)):
        raise ValueError("an integer has more than 64 bits")
    return tables


def _integers(tables: dict[str, Any]) -> Iterator[int]:
    left: list[object] = [tables]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            left.extend(value.values())
        elif isinstance(value, list):
            left.extend(value)
        elif isinstance(value, int):
            yield value
