"""Outlooks: how little and how much the words of a term can weigh, and which patterns they touch.

An outlook is true of every word of its term, and cheap: it looks at one level of the term and at
the outlooks below.  It may be too wide (an intersection or a difference can be narrower than it
says), never too narrow.  It lets the search give up on a residual whose limits can no longer be
met, and forget a counter that can no longer matter.  Rules may reach themselves, so theirs are the
least that satisfy their equations, found by working until nothing changes; an end that keeps moving
is sent far away, which is always true.
Cost: linear in the terms, a few times over for rules that recurse.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tcc_certs.corecheck.letters import Alphabet, WorkBudget
from tcc_certs.corecheck.terms import Term, TermTable

_PATIENCE = 32


# Beyond every sum that a walk can meet: limits have 64 bits, states 32.
FAR = 1 << 200


class Outlook(NamedTuple):
    """Of every word: at least ``low[i]``, at most ``high[i]`` on meter i; calls only of `touched`.

    `touched` has a bit for each pattern of a require or a forbid.  A term without words has no
    outlook: None stands in its place.
    """

    low: tuple[int, ...]
    high: tuple[int, ...]
    touched: int


def of_empty(meters: int) -> Outlook:
    """The empty word alone."""
    return Outlook((0,) * meters, (0,) * meters, 0)


def of_calls(weights: Sequence[Sequence[int]], touched: int) -> Outlook | None:
    """One call, of these weights."""
    if not weights:
        return None
    columns = list(zip(*weights, strict=True))
    return Outlook(tuple(map(min, columns)), tuple(map(max, columns)), touched)


def in_sequence(first: Outlook | None, second: Outlook | None) -> Outlook | None:
    """A word of the one, then a word of the other."""
    if first is None or second is None:
        return None
    return Outlook(
        tuple(map(_add_low, first.low, second.low)),
        tuple(map(_add_high, first.high, second.high)),
        first.touched | second.touched,
    )


def _add_low(x: int, y: int) -> int:
    return -FAR if min(x, y) <= -FAR else min(FAR, x + y)


def _add_high(x: int, y: int) -> int:
    return FAR if max(x, y) >= FAR else max(-FAR, x + y)


def any_of(parts: Iterable[Outlook | None]) -> Outlook | None:
    """A word of any of them."""
    some = [part for part in parts if part is not None]
    if not some:
        return None
    touched = 0
    for part in some:
        touched |= part.touched
    return Outlook(
        tuple(map(min, zip(*(part.low for part in some), strict=True))),
        tuple(map(max, zip(*(part.high for part in some), strict=True))),
        touched,
    )


def all_of(parts: Iterable[Outlook | None]) -> Outlook | None:
    """A word of all of them."""
    some = []
    touched = -1
    for part in parts:
        if part is None:
            return None
        some.append(part)
        touched &= part.touched
    low = tuple(map(max, zip(*(part.low for part in some), strict=True)))
    high = tuple(map(min, zip(*(part.high for part in some), strict=True)))
    if any(x > y for x, y in zip(low, high, strict=True)):
        return None
    return Outlook(low, high, touched)


def repeated(body: Outlook | None, least: int, most: int | None, meters: int) -> Outlook | None:
    """From `least` to `most` words of the body, one after the other."""
    if body is None:
        return of_empty(meters) if least == 0 else None
    return Outlook(
        tuple(_times(x, least if x >= 0 else most) for x in body.low),
        tuple(_times(y, most if y > 0 else least) for y in body.high),
        body.touched,
    )


def _times(end: int, times: int | None) -> int:
    if end == 0 or times == 0:
        return 0
    if times is None or abs(end) >= FAR:
        return FAR if end > 0 else -FAR
    return max(-FAR, min(FAR, end * times))


def widened(old: Outlook | None, new: Outlook | None) -> Outlook | None:
    """`new`, with every end that is still moving sent far away."""
    if old is None or new is None:
        return new
    return Outlook(
        tuple(-FAR if y != x else x for x, y in zip(old.low, new.low, strict=True)),
        tuple(FAR if y != x else x for x, y in zip(old.high, new.high, strict=True)),
        new.touched,
    )


class Forecast:
    """Outlooks by term, made as they are asked for."""

    __slots__ = ("_budget", "_calls", "_meters", "_of_rule", "_ready", "_terms")

    def __init__(
        self, terms: TermTable, alphabet: Alphabet, watched: Sequence[int], budget: WorkBudget
    ) -> None:
        self._terms = terms
        self._budget = budget
        self._meters = len(alphabet.bounds)
        self._calls = _pattern_outlooks(alphabet, watched, budget)
        self._ready: list[Outlook | None] = []
        self._of_rule: list[Outlook | None] = [None] * len(terms.bodies)
        self._settle_rules()
        for term in range(len(terms.nodes)):
            self._ready.append(self._evaluate(term, self._ready))

    def of(self, term: Term) -> Outlook | None:
        """The outlook of `term`; None where it has no word."""
        # Parts have lesser numbers than the terms that they are parts of.
        for number in range(len(self._ready), term + 1):
            self._ready.append(self._evaluate(number, self._ready))
        return self._ready[term]

    def _evaluate(
        self, term: Term, below: Sequence[Outlook | None] | dict[Term, Outlook | None]
    ) -> Outlook | None:
        kind, parts, one, two = self._terms.nodes[term]
        self._budget.spend(len(parts))
        match kind:
            case "nothing":
                return None
            case "empty":
                return of_empty(self._meters)
            case "call":
                return self._calls[one]
            case "rule":
                return self._of_rule[one]
            case "seq":
                return in_sequence(below[parts[0]], below[parts[1]])
            case "alt":
                return any_of([below[part] for part in parts])
            case "and":
                return all_of([below[part] for part in parts])
            case "diff":
                return below[parts[0]]
            case _:
                return repeated(below[parts[0]], one, two, self._meters)

    def _settle_rules(self) -> None:
        """Work until every rule's outlook is that of its body."""
        scopes = [self._scope(body) for body in self._terms.bodies]
        users: list[list[int]] = [[] for _ in scopes]
        for rule, scope in enumerate(scopes):
            for term in scope:
                kind, _, one, _ = self._terms.nodes[term]
                if kind == "rule":
                    users[one].append(rule)
        changes = [0] * len(scopes)
        queue = deque(range(len(scopes)))
        waiting = set(queue)
        while queue:
            rule = queue.popleft()
            waiting.discard(rule)
            now = self._of_body(scopes[rule])
            if now == self._of_rule[rule]:
                continue
            changes[rule] += 1
            if changes[rule] > _PATIENCE:
                now = widened(self._of_rule[rule], now)
            self._of_rule[rule] = now
            fresh = [user for user in users[rule] if user not in waiting]
            queue.extend(fresh)
            waiting.update(fresh)

    def _scope(self, body: Term) -> list[Term]:
        """The body and all below it, parts first; rules are not entered."""
        found = {body}
        todo = [body]
        while todo:
            new = [part for part in self._terms.nodes[todo.pop()][1] if part not in found]
            found.update(new)
            todo.extend(new)
        self._budget.spend(len(found))
        return sorted(found)

    def _of_body(self, scope: Sequence[Term]) -> Outlook | None:
        found: dict[Term, Outlook | None] = {}
        for term in scope:
            found[term] = self._evaluate(term, found)
        return found[scope[-1]]


def _pattern_outlooks(
    alphabet: Alphabet, watched: Sequence[int], budget: WorkBudget
) -> list[Outlook | None]:
    """One call of each pattern; bit i of `touched` is set where it may be in ``watched[i]``."""
    bits = [0] * len(alphabet.by_group)
    for bit, pattern in enumerate(watched):
        for group in alphabet.groups[pattern]:
            bits[group] |= 1 << bit
    found = []
    for groups in alphabet.groups:
        touched = 0
        numbers: list[int] = []
        for group in sorted(groups):
            touched |= bits[group]
            numbers.extend(alphabet.by_group[group])
        budget.spend(len(numbers))
        found.append(of_calls([alphabet.letters[n].weights for n in numbers], touched))
    return found
