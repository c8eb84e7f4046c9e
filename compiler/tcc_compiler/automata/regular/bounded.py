"""The words of at most so many calls of an expression, put together from those of its parts.

A language is a state of one shared minimal automaton without cycles: equal languages are one
number, so a part that can be derived in very many ways is as small as its words are.  That is what
:mod:`tcc_compiler.automata.regular.network` cannot see in rules that stand in themselves more than
once: there each way to nest them is a stack of its own.  Rules begin with no words, and are
evaluated until none changes: a rule is not left-recursive, so with each round longer words are
right, and the words of at most `most` calls are the one solution.
Cost: one entry for each pair of states that an operation meets; capped.
Sources: Daciuk, Mihov, Watson and Watson, Incremental construction of minimal acyclic finite-state
automata, 2000, for the shared automaton; Kleene iteration for the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TypeAlias

from tcc_compiler.automata.machine import Machine
from tcc_compiler.automata.regular.nodes import Kind, Nodes
from tcc_compiler.resources import Guard

NOTHING = 0
EMPTY = 1
_Key: TypeAlias = "tuple[str, int, int, int]"  # operation, two languages, most calls
_Visit: TypeAlias = "Generator[_Key, int, int]"


class _Full(Exception):
    """More entries than the cap."""


class Words:
    """Finite languages by number, and operations on them."""

    def __init__(self, cap: int, guard: Guard) -> None:
        """Args: cap: the most entries, of states, edges and results."""
        self._cap = cap
        self._guard = guard
        self._held = 0
        self._number: dict[tuple[bool, tuple[tuple[int, int], ...]], int] = {}
        self._known: dict[_Key, int] = {}
        self.accept: list[bool] = []
        self.edges: list[tuple[tuple[int, int], ...]] = []
        self._shortest: list[int] = []
        self._longest: list[int] = []
        self._state(False, {})
        self._state(True, {})

    def _state(self, accept: bool, targets: Mapping[int, int]) -> int:
        edges = tuple(sorted((x, q) for x, q in targets.items() if q != NOTHING))
        number = self._number.setdefault((accept, edges), len(self.accept))
        if number == len(self.accept):
            self.accept.append(accept)
            self.edges.append(edges)
            below = [q for _, q in edges]
            shortest = 1 + min((self._shortest[q] for q in below), default=0)
            self._shortest.append(0 if accept else shortest)
            self._longest.append(1 + max((self._longest[q] for q in below), default=-1))
            self.hold(1 + len(edges))
        return number

    def hold(self, entries: int) -> None:
        """So many entries more, or steps that count like them."""
        self._held += entries
        self._guard.tick(entries)
        if self._held > self._cap:
            raise _Full

    def one_call(self, letters: Sequence[int]) -> int:
        """One call, any of `letters`."""
        return self._state(False, dict.fromkeys(letters, EMPTY))

    def either(self, first: int, second: int) -> int:
        """The words of one or the other."""
        return self._find(("either", min(first, second), max(first, second), 0))

    def both(self, first: int, second: int) -> int:
        """The words that are in both."""
        return self._find(("both", min(first, second), max(first, second), 0))

    def without(self, first: int, second: int) -> int:
        """The words of the first that are not in the second."""
        return self._find(("without", first, second, 0))

    def then(self, first: int, second: int, most: int) -> int:
        """A word of the first and one of the second, at most so many calls together."""
        return self._find(("then", first, second, most))

    def repeated(self, body: int, low: int, high: int | None, most: int) -> int:
        """From `low` to `high` words of the body; a body with the empty word has no `low`."""
        if low > most:
            return NOTHING
        found = EMPTY
        for _ in range(min(most, most if high is None else high) - low):
            before, found = found, self.either(EMPTY, self.then(body, found, most))
            if found == before:
                break
        for _ in range(low):
            before, found = found, self.then(body, found, most)
            if found == before:
                break
        return found

    def _find(self, key: _Key) -> int:
        """The result of an operation, by a stack of our own."""
        stack: list[tuple[_Key, _Visit]] = []
        answer = self._quick(key)
        while answer is None or stack:
            if answer is None:
                stack.append((key, self._visit(key)))
            asked, visit = stack[-1]
            try:
                key = next(visit) if answer is None else visit.send(answer)
                answer = self._quick(key)
            except StopIteration as end:
                stack.pop()
                self.hold(1)
                answer = self._known[asked] = int(end.value)
        return answer

    def _quick(self, key: _Key) -> int | None:
        """The result where it is plain or known."""
        kind, first, second, most = key
        if kind in ("either", "both") and first == second:
            return first
        if kind in ("either", "both") and first == NOTHING:
            return second if kind == "either" else NOTHING
        if kind == "without" and NOTHING in (first, second):
            return first
        if kind == "then":
            if NOTHING in (first, second) or self._shortest[first] + self._shortest[second] > most:
                return NOTHING
            whole = self._longest[first] + self._longest[second] <= most
            if whole and EMPTY in (first, second):
                return second if first == EMPTY else first
        return self._known.get(key)

    def _visit(self, key: _Key) -> _Visit:
        """Ask for the results that this one is made of."""
        kind, first, second, most = key
        if kind == "then":
            return (yield from self._visit_then(first, second, most))
        accept = _ACCEPT[kind](self.accept[first], self.accept[second])
        others = dict(self.edges[second])
        targets = dict(others) if kind == "either" else {}
        for letter, target in self.edges[first]:
            other = others.get(letter, NOTHING)
            if kind == "either":
                found = yield ("either", min(target, other), max(target, other), 0)
            elif kind == "both":
                found = yield ("both", min(target, other), max(target, other), 0)
            else:
                found = yield ("without", target, other, 0)
            targets[letter] = found
        return self._state(accept, targets)

    def _visit_then(self, first: int, second: int, most: int) -> _Visit:
        targets = {}
        for letter, target in self.edges[first]:
            targets[letter] = yield ("then", target, second, most - 1)
        through = self._state(False, targets)
        if not self.accept[first]:
            return through
        if first != EMPTY:
            rest = yield ("then", EMPTY, second, most)
            return (yield ("either", min(through, rest), max(through, rest), 0))
        for letter, target in self.edges[second] if most else ():
            targets[letter] = yield ("then", EMPTY, target, most - 1)
        return self._state(self.accept[second], targets)


_ACCEPT: Mapping[str, Callable[[bool, bool], bool]] = {
    "either": lambda first, second: first or second,
    "both": lambda first, second: first and second,
    "without": lambda first, second: first and not second,
}


def bounded_machine(
    nodes: Nodes, root: int, patterns: Sequence[Sequence[int]], most: int, cap: int, guard: Guard
) -> Machine | None:
    """The smallest machine of the words of `root` of at most `most` calls; None past `cap`."""
    words = Words(cap, guard)
    try:
        first = _solve(nodes, root, patterns, most, words)
    except _Full:
        return None
    number = {first: 0}
    order = [first]
    edges = []
    for state in order:  # grows as it is read
        for _, target in words.edges[state]:
            if target not in number:
                number[target] = len(order)
                order.append(target)
        edges.append(tuple((letter, number[target]) for letter, target in words.edges[state]))
    return Machine(start=0, accept=[words.accept[state] for state in order], edges=edges)


def _solve(
    nodes: Nodes, root: int, patterns: Sequence[Sequence[int]], most: int, words: Words
) -> int:
    """The language of `root`: every node from its parts, again until no rule changes."""
    order = _parts_first(nodes, root)
    value = dict.fromkeys(order, NOTHING)
    while True:
        before = dict(value)
        words.hold(len(order))
        for node in order:
            value[node] = _evaluate(nodes, node, value, patterns, most, words)
        if value == before:
            return value[root]


def _parts_first(nodes: Nodes, root: int) -> list[int]:
    """The root and all below it; parts before what is made of them, but for recursion."""
    order: list[int] = []
    seen = {root}
    walk = [(root, iter(nodes.parts[root]))]
    while walk:
        node, rest = walk[-1]
        for part in rest:
            if part not in seen:
                seen.add(part)
                walk.append((part, iter(nodes.parts[part])))
                break
        else:
            order.append(node)
            walk.pop()
    return order


def _evaluate(
    nodes: Nodes,
    node: int,
    value: Mapping[int, int],
    patterns: Sequence[Sequence[int]],
    most: int,
    words: Words,
) -> int:
    """The words of a node, from what its parts are so far."""
    parts = [value[part] for part in nodes.parts[node]]
    match nodes.kind[node]:
        case Kind.EMPTY:
            return EMPTY
        case Kind.CALL:
            return words.one_call(patterns[nodes.pattern[node]]) if most else NOTHING
        case Kind.PAIR:
            return words.then(parts[0], parts[1], most)
        case Kind.REPEAT:
            return words.repeated(parts[0], nodes.low[node], nodes.high[node], most)
        case Kind.BOTH:
            combine = words.both
        case Kind.DIFF:
            combine = words.without
        case _:
            combine = words.either
    found = parts[0]
    for part in parts[1:]:
        found = combine(found, part)
    return found
