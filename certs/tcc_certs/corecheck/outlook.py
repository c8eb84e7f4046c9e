"""Outlooks: how little and how much the words of a term can weigh, and which classes they touch.

An outlook is true for every word of its term.  It looks at one level of the term and at the
outlooks below, so it may be too wide: an intersection or a difference can be narrower.  The search
uses it to drop residuals whose limits nothing can meet, and to forget what cannot matter any more.
The outlooks of rules that reach themselves are the least that satisfy their equations.  They are
computed until nothing changes; an end that keeps moving is set to FAR, which is always true.
Cost: linear in the terms, a few times over for recursive rules.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tcc_certs.corecheck.letters import Alphabet, WorkBudget
from tcc_certs.corecheck.terms import Term, TermTable

_PATIENCE = 32


FAR = 1 << 200  # above every sum of a walk: amounts have 64 bits, states 32


class Outlook(NamedTuple):
    """What holds for every word of a term; a term without words has None instead.

    Attributes:
        low: for each meter, what a word weighs at least.
        high: for each meter, what a beginning of a word weighs at most.
        touched: the classes of tables that its calls are in, as bits (:mod:`.memory`).
    """

    low: tuple[int, ...]
    high: tuple[int, ...]
    touched: int


def of_empty(meters: int) -> Outlook:
    """The outlook of the empty word."""
    return Outlook((0,) * meters, (0,) * meters, 0)


def of_calls(weights: Sequence[Sequence[int]], touched: int) -> Outlook | None:
    """One call, of these weights."""
    if not weights:
        return None
    columns = list(zip(*weights, strict=True))
    high = tuple([max(0, *column) for column in columns])
    return Outlook(tuple(map(min, columns)), high, touched)


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
        return None  # a word would weigh more than itself
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
    """Return `new`, with FAR for every end that still moves."""
    if old is None or new is None:
        return new
    return Outlook(
        tuple(-FAR if y != x else x for x, y in zip(old.low, new.low, strict=True)),
        tuple(FAR if y != x else x for x, y in zip(old.high, new.high, strict=True)),
        new.touched,
    )


class Forecast:
    """Outlooks by term, computed on demand."""

    __slots__ = ("_budget", "_calls", "_meters", "_of_rule", "_ready", "_terms")

    def __init__(
        self, terms: TermTable, alphabet: Alphabet, bits: Sequence[int], budget: WorkBudget
    ) -> None:
        self._terms = terms
        self._budget = budget
        self._meters = len(alphabet.bounds)
        self._calls = _pattern_outlooks(alphabet, bits, budget)
        self._ready: list[Outlook | None] = []
        self._of_rule: list[Outlook | None] = [None] * len(terms.bodies)
        self._settle_rules()
        for term in range(len(terms.nodes)):
            self._ready.append(self._evaluate(term, self._ready))

    def of(self, term: Term) -> Outlook | None:
        """Return the outlook of a term; None if it has no word."""
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
        """Compute until the outlook of each rule is that of its body."""
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
    alphabet: Alphabet, bits: Sequence[int], budget: WorkBudget
) -> list[Outlook | None]:
    """For each pattern the outlook of one of its calls.

    Args:
        bits: by the place of a table, the bit of its class 0.
    """
    touched_by = []
    for letter in alphabet.letters:
        touched = 0
        for at, number in letter.classes:
            touched |= 1 << bits[at] + number
        touched_by.append(touched)
    found = []
    for groups in alphabet.groups:
        touched = 0
        numbers: list[int] = []
        for group in sorted(groups):
            numbers.extend(alphabet.by_group[group])
        budget.spend(len(numbers))
        for number in numbers:
            touched |= touched_by[number]
        found.append(of_calls([alphabet.letters[n].weights for n in numbers], touched))
    return found
