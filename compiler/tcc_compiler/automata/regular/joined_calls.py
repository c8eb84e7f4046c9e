"""Alternatives that are single calls become one call of a joint pattern: `a | b | c`.

The words and their derivations stay the same; but calls that are named one by one, and always as
alternatives, then have the same letter (:mod:`tcc_compiler.automata.letters`): three hundred tools
may be a dozen letters.
Cost: linear in the expressions, and in the members of the joint patterns.
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


def join_calls(core: Core) -> Core:
    """`core` with joint patterns; they follow its own patterns, which keep their numbers."""
    sets = _Sets(core.patterns)
    rules = {name: _join(expr, sets) for name, expr in core.rules.items()}
    plan = _join(core.plan, sets)
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
        union = tuple(joint)
        if union not in self.number:
            self.number[union] = len(self._patterns)
            self._patterns.append(union)
        return self.number[union]


def _join(expr: Expr, sets: _Sets) -> Expr:
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
    """The alternatives, with one call in place of all single calls."""
    calls = [item.pattern for item in items if isinstance(item, OneCall)]
    if len(calls) < 2:
        return Alt(items)
    others = tuple(item for item in items if not isinstance(item, OneCall))
    joint = OneCall(sets.join(calls))
    return Alt((joint, *others)) if others else joint
