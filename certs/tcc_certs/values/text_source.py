"""The source of a pattern: one of the dialect, and not too large.

Normative text: docs/spec/core.md, section 2.  Nothing is built by which texts could be matched, so
reading takes time in proportion to the source, however often a part of it is repeated.
"""

from __future__ import annotations

from tcc_certs.errors import Code, ensure
from tcc_certs.values.text_syntax import MAX_POSITIONS, Chars, Either, Join, Node, Parser, Times

MAX_STEPS = 1 << 20  # positions times characters of one text: some 0.1 s at most


def read_tree(source: str, path: str) -> Node:
    """What `source` writes down.

    Raises:
        Rejected: C801 at `path`: it is none of the dialect, or has more than 1,000 positions.
    """
    tree = Parser(source, path).parse()
    size = size_of(tree)
    most = f"at most {MAX_POSITIONS} positions"
    ensure(size <= MAX_POSITIONS, Code.CORE_SCHEMA, path, most, size)
    return tree


def ensure_quick(source: str, most: int, path: str) -> None:
    """A pattern of texts of at most `most` characters, and no more work than one is worth.

    Raises:
        Rejected: C801 at `path`: as :func:`read_tree`; or its positions times the characters that
            may have to be looked at (`most`, or the longest text that matches) are too many.
    """
    tree = read_tree(source, path)
    steps = size_of(tree) * min(most, _longest(tree))
    ensure(steps <= MAX_STEPS, Code.CORE_SCHEMA, path, f"at most {MAX_STEPS} steps a text", steps)


def size_of(node: Node) -> int:
    """How many positions a tree has once its repeats are written out."""
    match node:
        case Chars():
            return 1
        case Join(items) | Either(items):
            return sum([size_of(item) for item in items])
        case Times(body, low, high):
            return size_of(body) * (max(low, 1) if high is None else high)


def _longest(node: Node) -> int:
    """The length of the longest text that matches; a large number where there is none."""
    match node:
        case Chars():
            return 1
        case Join(items):
            return sum([_longest(item) for item in items])
        case Either(items):
            return max([_longest(item) for item in items])
        case Times(body, _, high):
            return _longest(body) * (MAX_STEPS if high is None else high)
