"""Expressions over patterns as a tree, and the way to walk it.

Normative text: docs/spec/language.md.  Operators that take many operands are flat, so the height of
a tree is the number of times its operators change; no tree is higher than the limit of the parser.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from tcc_compiler.frozen import frozen
from tcc_compiler.language.ast.leaves import Number, Pattern
from tcc_compiler.language.spans import Region


@frozen(kw_only=False)
class NoCall:
    """``()``, the empty sequence."""

    region: Region
    height: int = 0


@frozen(kw_only=False)
class AnyCall:
    """``any``."""

    region: Region
    height: int = 0


@frozen(kw_only=False)
class Reference:
    """A tool pattern or a rule."""

    pattern: Pattern
    region: Region
    height: int = 0


@frozen(kw_only=False)
class Many:
    """Two operands or more of one operator; none of them has the same operator on top."""

    kind: Literal["seq", "alt", "and"]
    items: tuple[Expression, ...]
    region: Region
    height: int


@frozen(kw_only=False)
class Minus:
    """The base without what the others derive; the base is no Minus."""

    base: Expression
    others: tuple[Expression, ...]
    region: Region
    height: int


@frozen(kw_only=False)
class Repeated:
    """``body`` at least `low` times and at most `high`; None is without end."""

    body: Expression
    low: Number
    high: Number | None
    region: Region
    height: int


Expression: TypeAlias = NoCall | AnyCall | Reference | Many | Minus | Repeated


def postorder(expression: Expression) -> list[Expression]:
    """The nodes of a tree, operands before their operator, in the order of the text."""
    nodes: list[Expression] = []
    todo = [expression]
    while todo:
        node = todo.pop()
        nodes.append(node)
        todo.extend(operands(node))
    nodes.reverse()
    return nodes


def operands(node: Expression) -> tuple[Expression, ...]:
    """What an operator is applied to, in the order of the text."""
    match node:
        case Many():
            return node.items
        case Minus():
            return (node.base, *node.others)
        case Repeated():
            return (node.body,)
        case _:
            return ()
