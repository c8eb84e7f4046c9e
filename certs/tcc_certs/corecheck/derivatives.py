"""Derivatives of terms by a letter's group.

The derivative of a term by a call is the term of all words that may follow it (Brzozowski,
Derivatives of Regular Expressions, 1964); with rules for recursion and with counted repeats, which
are counted down.  A derivative is taken once, but for that of a single call.
Cost: linear in the terms that are met.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias

from tcc_certs.core.model import Core
from tcc_certs.corecheck.budget import Budget
from tcc_certs.corecheck.letters import Alphabet
from tcc_certs.corecheck.terms import EMPTY, NOTHING, Term, Terms

_Visit: TypeAlias = "Generator[Term, Term, Term]"


class Derivatives(Terms):
    """The terms of one core that have been met, and what may follow a call in each."""

    def __init__(self, core: Core, alphabet: Alphabet, budget: Budget, twins: bool = False) -> None:
        """Terms of `core`; with `twins` an intersection keeps equal members."""
        super().__init__(core, budget, twins)
        self._groups = alphabet.groups
        self._known: dict[tuple[Term, int], Term] = {}
        self._asked: dict[Term, int] = {}

    def derivative(self, term: Term, group: int) -> Term:
        """The words that may follow a call of `group` in the words of `term`."""
        stack: list[tuple[Term, _Visit]] = []
        answer = self._known.get((term, group))
        while answer is None or stack:
            if answer is None:
                if self._is_new(term, group):
                    self.budget.spend(1)
                stack.append((term, self._visit(term, group)))
            asked, visit = stack[-1]
            try:
                term = next(visit) if answer is None else visit.send(answer)
                answer = self._known.get((term, group))
            except StopIteration as end:
                stack.pop()
                answer = int(end.value)
                # That of a call is made again: there are too many pairs of a call and a group.
                if self.nodes[asked][0] != "call":
                    self._known[asked, group] = answer
        return answer

    def _is_new(self, term: Term, group: int) -> bool:
        """Whether this derivative was never made before; of a call a bit for each group says so."""
        if self.nodes[term][0] != "call":
            return True
        asked, bit = self._asked.get(term, 0), 1 << group
        self._asked[term] = asked | bit
        return not asked & bit

    def _visit(self, term: Term, group: int) -> _Visit:
        """Ask for the derivatives of the parts; answer with that of the term."""
        kind, parts, one, two = self.nodes[term]
        match kind:
            case "call":
                return EMPTY if group in self._groups[one] else NOTHING
            case "rule":
                return (yield self.bodies[one])
            case "seq":
                return (yield from self._visit_sequence(term))
            case "alt" | "and" | "diff":
                derived = []
                for part in parts:
                    derived.append((yield part))
                if kind == "alt":
                    return self.union(derived)
                if kind == "and":
                    return self.intersection(derived)
                return self.difference(derived[0], derived[1:])
            case "repeat":
                body = parts[0]
                rest = self.repeat(body, max(one - 1, 0), None if two is None else two - 1)
                return self.sequence((yield body), rest)
            case _:
                return NOTHING

    def _visit_sequence(self, term: Term) -> _Visit:
        """Each member up to the first that may not be empty, followed by those behind it."""
        found = []
        while self.nodes[term][0] == "seq":
            head, rest = self.nodes[term][1]
            found.append(self.sequence((yield head), rest))
            if not self.nullable[head]:
                return self.union(found)
            term = rest
        found.append((yield term))
        return self.union(found)
