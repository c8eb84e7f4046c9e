"""Outlooks: bounds on the weights of a term's words, and the classes that their calls have.

An outlook holds for every word of its term.  It is computed from one level of the term and the
outlooks below it, so it may be wider than necessary: an intersection or a difference can be
narrower.  The search uses outlooks to drop residuals that must exceed a bound, and to forget sums
and table states that make no difference any more.

Recursive rules give equations between outlooks, and each rule gets the least solution.  The
outlooks are computed again until nothing changes.  An end that keeps changing is set to FAR, which
is always correct.

Cost: linear in the terms; recursive rules take several rounds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tcc_certs.corecheck.letters import Alphabet, WorkBudget
from tcc_certs.corecheck.terms import Term, TermTable

_PATIENCE = 32  # after this many changes of a rule, its changing ends become FAR


FAR = 1 << 200  # more than any sum can be: amounts have 64 bits, and states have 32


class Outlook(NamedTuple):
    """Bounds that hold for every word of a term; a term without words has None instead.

    Attributes:
        low: for each sum the least that a word adds.
        high: for each sum the most that a prefix of a word adds.
        touched: the classes in the tables that its calls can have, as bits (:mod:`.memory`).
    """

    low: tuple[int, ...]
    high: tuple[int, ...]
    touched: int


def of_empty(meters: int) -> Outlook:
    """The outlook of the empty word."""
    return Outlook((0,) * meters, (0,) * meters, 0)


def of_calls(weights: Sequence[Sequence[int]], touched: int) -> Outlook | None:
    """The outlook of one call; None if there is no call to choose from.

    Args:
        weights: the weights of each possible call, one for each sum.
        touched: the classes of all these calls.
    """
    if not weights:
        return None
    columns = list(zip(*weights, strict=True))
    high = tuple([max(0, *column) for column in columns])
    return Outlook(tuple(map(min, columns)), high, touched)


def in_sequence(first: Outlook | None, second: Outlook | None) -> Outlook | None:
    """The outlook of a word of the first term followed by a word of the second."""
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
    """The outlook of a union: each word is a word of at least one part."""
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
    """The outlook of an intersection: each word is a word of every part."""
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
        return None  # no word can weigh at least x and at most y
    return Outlook(low, high, touched)


def repeated(body: Outlook | None, least: int, most: int | None, meters: int) -> Outlook | None:
    """The outlook of `least` to `most` words of the body, one after the other.

    Args:
        most: None if their number has no bound.
        meters: the number of sums.
    """
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
    """Return `new`, with every end that differs from `old` set to FAR."""
    if old is None or new is None:
        return new
    return Outlook(
        tuple(-FAR if y != x else x for x, y in zip(old.low, new.low, strict=True)),
        tuple(FAR if y != x else x for x, y in zip(old.high, new.high, strict=True)),
        new.touched,
    )


class Forecast:
    """The outlooks of all terms, computed when they are first needed."""

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
        """Return the outlook of a term; None if it is known to have no words."""
        # A term has a greater number than its parts.
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
        """Compute the outlooks of rules until each equals the outlook of the rule's body."""
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
        """The body and all terms in it, parts first; references to rules are not followed."""
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
    """The outlook of one call of each pattern.

    Args:
        bits: for each table the bit of its class 0.
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
