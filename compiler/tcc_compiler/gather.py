"""Alternatives that are single calls, made one call of a joint pattern: `a | b | c` is a call set.

Nothing that is derived changes, nor in how many ways; but calls that the grammar names one by one
and never tells apart come to share a letter (:mod:`tcc_compiler.letters`), and three hundred tools
may be a dozen letters.  Cost: linear in the expressions, and in the members of the joint patterns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tcc_certs.core.expressions import parts
from tcc_certs.core.model import (
    Alt,
    Both,
    CallSet,
    Core,
    Diff,
    Expr,
    OneCall,
    Repeat,
    Seq,
)


def gathered(core: Core) -> Core:
    """`core` with joint patterns after its own, whose numbers stay what they are."""
    sets = _Sets(core.patterns)
    rules = {name: _gather(expr, sets) for name, expr in core.rules.items()}
    plan = _gather(core.plan, sets)
    return replace(core, patterns=tuple(sets.number), rules=rules, plan=plan)


class _Sets:
    """Call sets by number."""

    def __init__(self, patterns: Sequence[CallSet]) -> None:
        self.number = {pattern: at for at, pattern in enumerate(patterns)}
        self._patterns = list(patterns)

    def join(self, patterns: Sequence[int]) -> int:
        """The number of the union."""
        pairs = sorted(pair for pattern in patterns for pair in self._patterns[pattern])
        joint: list[tuple[int, int]] = []
        for low, high in pairs:
            if joint and low <= joint[-1][1]:
                joint[-1] = (joint[-1][0], max(high, joint[-1][1]))
            else:
                joint.append((low, high))
        found = tuple(joint)
        if found not in self.number:
            self.number[found] = len(self._patterns)
            self._patterns.append(found)
        return self.number[found]


def _gather(expr: Expr, sets: _Sets) -> Expr:
    """`expr`, its parts first, with a stack of our own."""
    done: list[Expr] = []
    todo: list[tuple[Expr, bool]] = [(expr, False)]
    while todo:
        item, ready = todo.pop()
        inner = parts(item)
        if inner and not ready:
            todo.append((item, True))
            todo.extend((part, False) for part in reversed(inner))
            continue
        first = len(done) - len(inner)
        done[first:] = [_with_parts(item, tuple(done[first:]), sets)]
    return done[0]


def _with_parts(expr: Expr, inner: tuple[Expr, ...], sets: _Sets) -> Expr:
    match expr:
        case Alt():
            return _joined(inner, sets)
        case Seq() | Both():
            return replace(expr, items=inner)
        case Diff():
            return replace(expr, base=inner[0], minus=inner[1:])
        case Repeat():
            return replace(expr, body=inner[0])
        case _:
            return expr


def _joined(items: tuple[Expr, ...], sets: _Sets) -> Expr:
    """The alternatives, their single calls as one."""
    calls = [item.pattern for item in items if isinstance(item, OneCall)]
    if len(calls) < 2:
        return Alt(items)
    others = tuple(item for item in items if not isinstance(item, OneCall))
    joint = OneCall(sets.join(calls))
    return Alt((joint, *others)) if others else joint
