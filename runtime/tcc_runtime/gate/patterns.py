"""Patterns of open texts, matched as fast as the interpreter can.

The definition is :mod:`tcc_certs.values.text_pattern`, which reads a text in one pass.  Where no
character is ever at two positions at once, the standard library's engine has one way through a
text and takes it several times as fast: what it puts aside to come back to fails at its first
character.  All other patterns, and texts so long that coming back could add up, are left to the
definition.
Cost: linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import reduce
from operator import getitem
from typing import Final

from tcc_certs.values.text_pattern import Pattern, pattern_of
from tcc_certs.values.text_syntax import Chars, Either, Join, Node, Parser, Times

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
