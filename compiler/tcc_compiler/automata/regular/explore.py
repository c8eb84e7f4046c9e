"""The automaton of the plan expression, by whichever way of determinising stays small.

Three ways are tried in turn, with growing caps, so that the work is within a constant factor of the
best way. The first is the subset construction. With a limit on depth, the second is the same with
one layer for each depth. If rules also refer to themselves, the third computes the words of each
part by depth. Recursion that needs a bound on depth but has none is examined first
(:mod:`tcc_compiler.automata.regular.finiteness`). If determinising takes too many states, the small
but nondeterministic automaton of partial derivatives can be used instead.

Words by depth: a language is a state of one shared minimal automaton without cycles. Equal
languages have one number. So a part that can be derived in many ways is only as large as its set of
words. The stacks of :mod:`tcc_compiler.automata.regular.network` differ for each way of nesting, in
rules that refer to themselves more than once. Rules begin with no words, and are evaluated until
none changes. Rules are not left-recursive, so each round makes longer words right, and the words of
at most `most` calls are the only solution.
Cost: one entry for each pair of states that an operation meets; capped.
Sources: Daciuk, Mihov, Watson and Watson, Incremental construction of minimal acyclic finite-state
automata, 2000, for the shared automaton; Kleene iteration for the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from math import lcm
from typing import TypeAlias

from tcc_certs.policy.core import Core
from tcc_compiler.automata.constraint.statements import sums_of
from tcc_compiler.automata.letters import Letters
from tcc_compiler.automata.regular.determinise import (
    Driver,
    determinise,
    determinise_by_depth,
    follow,
)
from tcc_compiler.automata.regular.network import Network
from tcc_compiler.automata.regular.nodes import NodeKind, Nodes, build, grows
from tcc_compiler.automata.table import Machine
from tcc_compiler.resources import CompileRefused, Guard

# Finite languages: the words of a part up to some number of calls, computed from its parts.

NOTHING = 0
EMPTY = 1
_Key: TypeAlias = "tuple[str, int, int, int]"  # operation, two languages, most calls
_Visit: TypeAlias = "Generator[_Key, int, int]"


class _Full(Exception):
    """Raised if there are more entries than the cap."""


class Words:
    """Finite languages by number, and operations on them."""

    def __init__(self, cap: int, guard: Guard) -> None:
        """Begin with two languages, NOTHING and EMPTY; `cap` limits states, edges and results."""
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
        """Count further entries, or steps that count like entries."""
        self._held += entries
        self._guard.tick(entries)
        if self._held > self._cap:
            raise _Full

    def one_call(self, letters: Sequence[int]) -> int:
        """Return the language of one call, any of `letters`."""
        return self._state(False, dict.fromkeys(letters, EMPTY))

    def either(self, first: int, second: int) -> int:
        """Return the union of two languages."""
        return self._find(("either", min(first, second), max(first, second), 0))

    def both(self, first: int, second: int) -> int:
        """Return the intersection of two languages."""
        return self._find(("both", min(first, second), max(first, second), 0))

    def without(self, first: int, second: int) -> int:
        """Return the words of the first that are not in the second."""
        return self._find(("without", first, second, 0))

    def then(self, first: int, second: int, most: int) -> int:
        """Return the words of the first followed by words of the second, up to `most` calls."""
        return self._find(("then", first, second, most))

    def repeated(self, body: int, low: int, high: int | None, most: int) -> int:
        """Return `low` to `high` words of `body`; `low` must be 0 if `body` has the empty word."""
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
        """Return the result of an operation, with an explicit stack instead of recursion."""
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
        """Return the result if it is trivial or known, else None."""
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
        """Compute a result; yield the key of each result that it needs, and be sent that result."""
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
    """Return the minimal machine of `root`'s words of at most `most` calls; None past `cap`."""
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
    """Return the language of `root`: evaluate every node repeatedly until none changes."""
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
    """Return the root and all nodes below it, parts first as far as recursion allows."""
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
    """Return the words of a node, given the words found so far for its parts."""
    parts = [value[part] for part in nodes.parts[node]]
    match nodes.kind[node]:
        case NodeKind.EMPTY:
            return EMPTY
        case NodeKind.CALL:
            return words.one_call(patterns[nodes.pattern[node]]) if most else NOTHING
        case NodeKind.PAIR:
            return words.then(parts[0], parts[1], most)
        case NodeKind.REPEAT:
            return words.repeated(parts[0], nodes.low[node], nodes.high[node], most)
        case NodeKind.BOTH:
            combine = words.both
        case NodeKind.DIFF:
            combine = words.without
        case _:
            combine = words.either
    found = parts[0]
    for part in parts[1:]:
        found = combine(found, part)
    return found


# The ways of determinising.

_FIRST_CAP = 1 << 13
_GROWTH = 8
_ENTRIES = 8  # entries of the tables of bounded words, for each state of a cap


def explore(core: Core, letters: Letters, guard: Guard) -> Machine:
    """Return the machine of the plan expression; not trimmed.

    It has every plan that meets the limits, and no word that the expression does not derive. Words
    that break a limit may be missing.

    Raises:
        CompileRefused: TCC401 or TCC406 for unbounded recursion; TCC402, there is no plan; TCC403
            or TCC404 from the guard.
    """
    driver = find_driver(core, letters, guard)
    nodes, root = _nodes(core, letters, driver, guard)
    if grows(nodes) and not (driver and driver.depth):
        return _explore_recursion(core, letters, nodes, root, driver, guard)
    return _take_turns(nodes, letters, root, driver, guard)


def explore_partial(core: Core, letters: Letters, guard: Guard) -> Machine:
    """Return the nondeterministic machine of the partial derivatives of the plan expression.

    It is not trimmed. It has the plans of :func:`explore`, each once for every way to derive it.

    Raises:
        CompileRefused: as :func:`explore`.
    """
    driver = find_driver(core, letters, guard)
    nodes, root = _nodes(core, letters, driver, guard, as_written=True)
    if grows(nodes) and not (driver and driver.depth):
        bound = _longest(core, letters, nodes, root, guard)
        if bound is not None:
            driver = depth_driver(letters, bound, f"plans of at most {bound} calls")
            nodes, root = _nodes(core, letters, driver, guard, as_written=True)
        elif driver is None or grows(nodes, freely=True):
            raise _undecided()
    from tcc_compiler.automata.regular.determinise import Partials

    return follow(Partials(nodes, letters.patterns, guard), root, driver, guard)


def _nodes(
    core: Core, letters: Letters, driver: Driver | None, guard: Guard, as_written: bool = False
) -> tuple[Nodes, int]:
    weights = driver.weights if driver else [1] * len(letters.calls)
    nodes, root = build(
        core,
        [[weights[letter] for letter in pattern] for pattern in letters.patterns],
        guard,
        as_written,
    )
    _check_least(nodes.least[root], driver, guard)
    if driver is None:
        # An automaton without cycles has at least as many states as its longest word has calls.
        guard.states(nodes.longest(root) or 0)
    return nodes, root


def _check_least(least: int | None, driver: Driver | None, guard: Guard) -> None:
    """Raise an error at once if the shortest or lightest plan is out of reach."""
    if least is None or (driver and least > driver.bound):
        within = f" within `{driver.text}`" if driver and least is not None else ""
        raise CompileRefused(
            "TCC402",
            f"there is no plan: the plan expression derives none{within}",
            hint="take statements away until plans appear",
            place="plan",
        )
    if driver is None or driver.depth:
        # There are at least as many states as the shortest plan has calls.
        guard.states(least)


def _explore_recursion(
    core: Core, letters: Letters, nodes: Nodes, root: int, driver: Driver | None, guard: Guard
) -> Machine:
    network = Network(nodes, letters.patterns, guard)
    cap = min(_FIRST_CAP, guard.max_states // 8)
    machine = determinise(network, network.initial(root), driver, cap, guard)
    if machine is not None:
        return machine
    bound = _longest(core, letters, nodes, root, guard)
    if bound is not None:
        driver = depth_driver(letters, bound, f"plans of at most {bound} calls")
        nodes, root = _nodes(core, letters, driver, guard)
        return _take_turns(nodes, letters, root, driver, guard)
    if driver is None or grows(nodes, freely=True):
        raise _undecided()
    return _take_turns(nodes, letters, root, driver, guard, network)


def _longest(core: Core, letters: Letters, nodes: Nodes, root: int, guard: Guard) -> int | None:
    from tcc_compiler.automata.regular.finiteness import longest_plan  # only for recursion

    return longest_plan(core, letters, nodes, root, guard)


def _undecided() -> CompileRefused:
    return CompileRefused(
        "TCC406",
        "it could not be decided whether the recursion of the rules gives finitely many plans",
        hint="add `limit depth <= N`",
        place="plan",
    )


def _take_turns(
    nodes: Nodes,
    letters: Letters,
    root: int,
    driver: Driver | None,
    guard: Guard,
    network: Network | None = None,
) -> Machine:
    """Try one way after another, with growing caps; `network` is reused if it is given."""
    network = network or Network(nodes, letters.patterns, guard)
    first = network.initial(root)
    cap = min(_FIRST_CAP, guard.max_states)
    depth = driver.bound if driver and driver.depth else None
    nested = depth is not None and grows(nodes)
    while True:
        machine = None
        if depth is not None and nested:
            machine = bounded_machine(nodes, root, letters.patterns, depth, _ENTRIES * cap, guard)
        if machine is None:
            machine = determinise(network, first, driver, cap, guard)
        if machine is None and depth is not None:
            machine = determinise_by_depth(network, first, depth, cap, guard)
        if machine is not None:
            return machine
        guard.growth(len(network.sets), network.calls)
        if cap == guard.max_states:
            guard.states(cap + 1)
        cap = min(cap * _GROWTH, guard.max_states)


def find_driver(core: Core, letters: Letters, guard: Guard) -> Driver | None:
    """Return the limit on depth if there is one, else a combination of all other sums.

    A plan that stays within each sum also stays within the sum of the sums. Each sum is weighted so
    that its own bound counts as much as the others'. Sums with negative amounts are left out.
    Cost: letters times sums, by the clock of `guard`.

    Raises:
        CompileRefused: TCC404.
    """
    every = sums_of(core, letters)
    depths = [one.bound for one in every if one.what == "depth"]
    if depths:
        return depth_driver(letters, min(depths), f"limit depth <= {min(depths)}")
    guard.tick(sum(1 + len(one.amounts) for one in every))
    sums = [one for one in every if min(one.amounts, default=0) >= 0 <= one.bound]
    if not sums:
        return None
    whole = lcm(*(max(1, one.bound) for one in sums))
    bound = whole * len(sums)
    weights = [0] * len(letters.calls)
    for one in sums:
        guard.tick(1 + len(one.amounts))
        for letter, amount in enumerate(one.amounts):
            # A call that alone exceeds its bound must exceed the bound of the combination, too.
            alone = bound + 1 if amount > one.bound else amount * (whole // max(1, one.bound))
            weights[letter] += alone
    text = " and ".join([one.text for one in sums[:4]])
    return Driver(weights=weights, bound=bound, text=text, depth=False)


def depth_driver(letters: Letters, bound: int, text: str) -> Driver:
    """Return the driver of a bound on the number of calls."""
    return Driver(weights=[1] * len(letters.calls), bound=bound, text=text, depth=True)
