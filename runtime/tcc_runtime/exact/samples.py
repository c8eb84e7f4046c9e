"""Texts that match a pattern."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from tcc_certs.values.text_pattern import pattern_of

_PARSER: Any = vars(re)["_parser"]  # the standard library's reader of patterns


@cache
def samples(pattern: str, least: int = 0) -> tuple[str, ...]:
    """A few texts that match a pattern as a whole, each with `least` characters or more."""
    try:
        tree = _PARSER.parse(pattern, re.DOTALL)
    except (re.error, RecursionError):
        return ()
    known = pattern_of(pattern)
    found: dict[str, None] = {}
    for turn in range(4):
        for more in (0, least, 1):
            text = _written(tree, turn, more)
            if len(text) >= least and known.matches(text):
                found[text] = None
    return tuple(found)


def _written(tree: Any, turn: int, more: int) -> str:
    out = []
    for name, given in tree:
        match str(name):
            case "LITERAL":
                out.append(chr(given))
            case "NOT_LITERAL":
                out.append(next(char for char in "xyz" if ord(char) != given))
            case "ANY":
                out.append("xyab"[turn])
            case "IN":
                out.append(_one_of(given, turn))
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                low, high, inner = given
                times = min(max(low, min(1, high) if turn < 3 else low, more), high)
                out.append("".join([_written(inner, turn, 0) for _ in range(int(times))]))
            case "SUBPATTERN":
                out.append(_written(given[3], turn, more))
            case "BRANCH":
                branches = given[1]
                out.append(_written(branches[turn % len(branches)], turn, more))
    return "".join(out)


def _one_of(given: list[tuple[Any, Any]], turn: int) -> str:
    if str(given[0][0]) == "NEGATE":
        refused = {chr(one) for kind, one in given[1:] if str(kind) == "LITERAL"}
        return next((char for char in "xyab01-_ " if char not in refused), "x")
    kind, one = given[turn % len(given)]
    if str(kind) == "RANGE":
        low, high = one
        return chr(min(low + turn, high))
    if str(kind) == "CATEGORY":
        return "1" if "DIGIT" in str(one) else "x" if "WORD" in str(one) else " "
    return chr(one)
