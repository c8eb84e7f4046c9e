"""Partial derivatives written out: the trimmed nondeterministic graph of a core, on trees.

The rules are those of docs/spec/core.md, section 5.  A state is an expression and the prefix that
led to it, so the definition decides each finished word.  A difference takes a set of words from its
base.  The graph is exponential, and no code is shared with the compiler.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from tcc_certs.policy.core import Core
from tcc_certs.policy.plans import Alt, Both, Diff, Empty, OneCall, Repeat, RuleRef, Seq, members
from tcc_certs.policy.reader import read_core
from tests.oracle.build import Node, build, build_graph
from tests.oracle.plans import Words, meets_all, plans, words


@dataclass(frozen=True)
class Off:
    """A base, and the words that are taken off it."""

    base: Any
    off: Words


def without(core: Core, relaxed: Collection[int]) -> Core:
    """The core without the statements of these numbers."""
    kept = [one for number, one in enumerate(core.statements) if number not in relaxed]
    return replace(core, statements=tuple(kept))


def build_relaxed(core_bytes: bytes, relaxed: Sequence[int], most: int, **options: Any) -> bytes:
    """The artifact of the plans of at most `most` calls without the relaxed statements."""
    found = plans(without(read_core(core_bytes), relaxed), most)
    return build(core_bytes, found, relaxed=tuple(relaxed), **options)


def build_network(
    core_bytes: bytes, most: int, relaxed: Sequence[int] = (), **options: Any
) -> bytes | None:
    """The nondeterministic artifact of derivations of at most `most` calls; None without a plan."""
    root = Network(without(read_core(core_bytes), relaxed), most).root()
    if root is None:
        return None
    relaxed = tuple(relaxed)
    return build_graph(core_bytes, root, nondeterministic=True, relaxed=relaxed, **options)


class Network:
    """The graph of one core, prefixes of at most `most` calls."""

    def __init__(self, core: Core, most: int) -> None:
        self.core = core
        self.most = most
        rules: dict[str, Words] = dict.fromkeys(core.rules, frozenset())
        for _ in range((most + 1) * (len(rules) + 1) + 1):
            rules = {n: words(core, body, rules, most) for n, body in core.rules.items()}
        self.rules: Mapping[str, Words] = rules
        self.made: dict[Any, Node | None] = {}

    def root(self) -> Node | None:
        """The root, None where there is no plan."""
        return self._node(self._plain(self.core.plan), ())

    def _node(self, term: Any, prefix: tuple[int, ...]) -> Node | None:
        key = term, prefix
        if key not in self.made:
            stop = self._nullable(term) and meets_all(self.core, prefix)
            node = Node(accept=stop)
            if len(prefix) < self.most:
                for c in range(len(self.core.calls)):
                    for following in self._partial(c, term):
                        child = self._node(following, (*prefix, c))
                        if child is not None:
                            node.twins.append((c, child))
            self.made[key] = node if stop or node.twins else None
        return self.made[key]

    def _plain(self, term: Any) -> Any:
        """The expression with its differences as sets of words."""
        match term:
            case Seq(items) | Alt(items) | Both(items):
                return type(term)(tuple(map(self._plain, items)))
            case Repeat(body, low, high):
                return Repeat(self._plain(body), low, high)
            case Diff(base, minus):
                off = frozenset().union(
                    *(words(self.core, part, self.rules, self.most) for part in minus)
                )
                return Off(self._plain(base), off)
            case _:
                return term

    def _nullable(self, term: Any) -> bool:
        match term:
            case Empty():
                return True
            case OneCall():
                return False
            case RuleRef(name):
                return () in self.rules[name]
            case Seq(items) | Both(items):
                return all(map(self._nullable, items))
            case Alt(items):
                return any(map(self._nullable, items))
            case Off(base, off):
                return self._nullable(base) and () not in off
            case Repeat(body, low):
                return low == 0 or self._nullable(body)
        raise TypeError(term)

    def _partial(self, c: int, term: Any) -> set[Any]:
        match term:
            case OneCall(pattern):
                return {Empty()} if c in set(members(self.core.patterns[pattern])) else set()
            case RuleRef(name):
                return self._partial(c, self._plain(self.core.rules[name]))
            case Alt(items):
                return set().union(*(self._partial(c, item) for item in items))
            case Seq(items):
                found = set()
                for at, item in enumerate(items):
                    rest = items[at + 1 :]
                    found |= {Seq((y, *rest)) for y in self._partial(c, item)}
                    if not self._nullable(item):
                        break
                return found
            case Both(items):
                return {Both(row) for row in product(*(self._partial(c, x) for x in items))}
            case Off(base, off):
                after = frozenset(word[1:] for word in off if word[:1] == (c,))
                return {Off(y, after) for y in self._partial(c, base)}
            case Repeat(body, low, high):
                if high == 0:
                    return set()
                low = 0 if self._nullable(body) else low
                rest = Repeat(body, max(low - 1, 0), None if high is None else high - 1)
                return {Seq((y, rest)) for y in self._partial(c, body)}
            case Empty():
                return set()
        raise TypeError(term)
