"""The source of a pattern: one of the dialect, and not too large.

Normative text: docs/spec/core.md, section 2.  Nothing is built by which texts could be matched, so
reading takes time in proportion to the source, however often a part of it is repeated.
"""

from __future__ import annotations

from tcc_certs.errors import Code, ensure
from tcc_certs.values.text_syntax import MAX_POSITIONS, Chars, Either, Join, Node, Parser, Times


def read_tree(source: str, path: str) -> Node:
    """What `source` writes down.

    Raises:
        Rejected: C801 at `path`: it is none of the dialect, or has more than 1,000 positions.
    """
    tree = Parser(source, path).parse()
    size = _size(tree)
    most = f"at most {MAX_POSITIONS} positions"
    ensure(size <= MAX_POSITIONS, Code.CORE_SCHEMA, path, most, size)
    return tree


def _size(node: Node) -> int:
    """How many positions a tree has once its repeats are written out."""
    match node:
        case Chars():
            return 1
        case Join(items) | Either(items):
            return sum([_size(item) for item in items])
        case Times(body, low, high):
            return _size(body) * (max(low, 1) if high is None else high)
