"""Reads untrusted TOML, and rejects text that takes the standard reader too long.

Text: docs/adapters.md and docs/lint.md.  `tomllib` has no option for these two limits.  A key of n
parts costs `tomllib` the square of n in time and in memory, so the number of dots in a line is
limited.  `tomllib` also accepts integers of any size, and Python has no decimal text for long
hexadecimal ones.  So integers are limited to the 64 bits that TOML promises.
Cost: linear in the text.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any, Final

MOST_DOTS: Final = 64
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


def read_toml(text: str) -> dict[str, Any]:
    """Return the tables of a TOML text.

    Raises:
        ValueError: the text is no TOML (``TOMLDecodeError``), a line other than a comment has more
            than 64 dots, or an integer has more than 64 bits.
        RecursionError: the text is nested too deeply.
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
