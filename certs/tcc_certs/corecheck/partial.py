"""Partial derivatives: for a term and a letter's group the set of terms, one for each way to go on.

Normative text: docs/spec/core.md, section 6.  Terms are those of :mod:`tcc_certs.corecheck.terms`,
made with twins kept in intersections; what a difference takes off goes on by its whole derivative.
Cost: linear in the sets that are met; an intersection's is the product of its members'.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from itertools import product
from typing import TypeAlias

from tcc_certs.corecheck.budget import Budget
from tcc_certs.corecheck.derivatives import Derivatives
from tcc_certs.corecheck.terms import NOTHING, Term

TermSet: TypeAlias = "tuple[Term, ...]"  # increasing, without NOTHING
_Visit: TypeAlias = "Generator[Term, TermSet, Iterable[Term]]"


class Partials:
    """Partial derivatives of the terms of one core, each taken once."""

    __slots__ = ("_budget", "_known", "_terms")

    def __init__(self, terms: Derivatives, budget: Budget) -> None:
        self._terms = terms
        self._budget = budget
        self._known: dict[tuple[Term, int], TermSet] = {}

    def of(self, term: Term, group: int) -> TermSet:
        """The terms that a call of `group` leads to from `term`."""
        stack: list[tuple[Term, _Visit]] = []
        answer = self._known.get((term, group))
        while answer is None or stack:
            if answer is None:
                self._budget.spend(1)
                stack.append((term, self._visit(term, group)))
            asked, visit = stack[-1]
            try:
                term = next(visit) if answer is None else visit.send(answer)
                answer = self._known.get((term, group))
            except StopIteration as end:
                stack.pop()
                answer = tuple(sorted(set(end.value) - {NOTHING}))
                self._budget.spend(len(answer))
                self._known[asked, group] = answer
        return answer

    def _visit(self, term: Term, group: int) -> _Visit:
        """Ask for the sets of the parts; answer with that of the term."""
        terms = self._terms
        kind, parts, one, two = terms.nodes[term]
        match kind:
            case "call":
                return [terms.derivative(term, group)]
            case "rule":
                return (yield terms.bodies[one])
            case "alt":
                union: list[Term] = []
                for part in parts:
                    union.extend((yield part))
                return union
            case "seq":
                head, rest = parts
                found = [terms.sequence(y, rest) for y in (yield head)]
                if terms.nullable[head]:
                    found.extend((yield rest))
                return found
            case "and":
                rows = []
                for part in parts:
                    rows.append((yield part))
                return self._meet(rows)
            case "diff":
                base = yield parts[0]
                off = [terms.derivative(part, group) for part in parts[1:]]
                return [terms.difference(y, off) for y in base]
            case "repeat":
                rest = terms.repeat(parts[0], max(one - 1, 0), None if two is None else two - 1)
                return [terms.sequence(y, rest) for y in (yield parts[0])]
            case _:
                return []

    def _meet(self, rows: Iterable[TermSet]) -> Iterable[Term]:
        for chosen in product(*rows):
            self._budget.spend(len(chosen))
            yield self._terms.intersection(chosen)
