"""Text patterns as regular expressions of `re`, where both say the same of every text.

Engines differ in what they try first and in how they leave a repeat of nothing, so that a pattern
is translated only where there is one way to go on after each character, and no repeat has a body
that may be empty.  Of all others the definition, :mod:`tcc_certs.values.text_pattern`, tells.
Text: docs/spec/core.md, section 2.
Cost: once for each pattern, the product of its positions and its kinds of characters.
"""

from __future__ import annotations

import re
from typing import Final

from tcc_certs.values.text_pattern import TextPattern
from tcc_certs.values.text_syntax import Chars, Either, Join, Node, PatternReader, Times

MOST_STEPS: Final = 1 << 20  # characters times positions


def expression_of(source: str, pattern: TextPattern) -> re.Pattern[str] | None:
    """The expression that matches the same texts; None where that is not sure."""
    tree = PatternReader(source, "pattern").parse()
    if not is_deterministic(pattern) or _loops_on_nothing(tree):
        return None
    return re.compile(_translated(tree))


def is_deterministic(pattern: TextPattern) -> bool:
    """Whether after every position each character is at one position at most.

    A pattern that is too large to be worth the look is taken for one that is not.
    """
    follows = {pattern.after(1 << place) for place in range(size_of(pattern))}
    if len(follows) * len(pattern.at) > MOST_STEPS:
        return False
    for follow in follows:
        for positions in pattern.at:
            seen = follow & positions
            if seen & (seen - 1):
                return False
    return True


def size_of(pattern: TextPattern) -> int:
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
