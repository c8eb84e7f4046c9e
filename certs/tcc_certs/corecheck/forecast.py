"""The outlook of every term, rules and recursion included.

Rules may reach themselves, so theirs are the least that satisfy their equations, found by working
until nothing changes; an end that keeps moving is sent far away, which is always true.
Cost: linear in the terms, a few times over for rules that recurse.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from tcc_certs.corecheck import outlook as look
from tcc_certs.corecheck.budget import Budget
from tcc_certs.corecheck.letters import Alphabet
from tcc_certs.corecheck.outlook import Outlook
from tcc_certs.corecheck.terms import Term, Terms

_PATIENCE = 32


class Forecast:
    """Outlooks by term, made as they are asked for."""

    __slots__ = ("_budget", "_calls", "_meters", "_of_rule", "_ready", "_terms")

    def __init__(
        self, terms: Terms, alphabet: Alphabet, watched: Sequence[int], budget: Budget
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
                return look.of_empty(self._meters)
            case "call":
                return self._calls[one]
            case "rule":
                return self._of_rule[one]
            case "seq":
                return look.in_sequence(below[parts[0]], below[parts[1]])
            case "alt":
                return look.any_of([below[part] for part in parts])
            case "and":
                return look.all_of([below[part] for part in parts])
            case "diff":
                return below[parts[0]]
            case _:
                return look.repeated(below[parts[0]], one, two, self._meters)

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
                now = look.widened(self._of_rule[rule], now)
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
    alphabet: Alphabet, watched: Sequence[int], budget: Budget
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
        found.append(look.of_calls([alphabet.letters[n].weights for n in numbers], touched))
    return found
