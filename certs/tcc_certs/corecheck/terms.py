"""Terms: expressions of the core as numbered nodes, with their derivatives.

Terms are normalised when they are made: unions and intersections are flat and sorted, and have each
member once.  Equal terms have the same number.  Counted repeats are not written out; a derivative
lowers their counts.

The derivative of a term by a call is the term of all words that may follow the call (Brzozowski,
Derivatives of Regular Expressions, 1964), here with recursive rules and counted repeats.  The
partial derivatives of a term by a call are a set of terms, one for each way to continue
(docs/spec/core.md, section 5).  For these an intersection keeps equal members (twins), and the
subtracted terms of a difference are replaced by their full derivatives.

All calls of a letter's group have the same derivatives, so a group is used in place of a call.

Cost: linear in the terms and sets that are computed.  The set of an intersection is the product of
the sets of its members.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from itertools import product
from typing import TypeAlias

from tcc_certs.corecheck.letters import Alphabet, WorkBudget
from tcc_certs.policy.core import Core
from tcc_certs.policy.expressions import nullable_rules, parts
from tcc_certs.policy.plans import Alt, Both, Diff, Empty, Expr, OneCall, Repeat, RuleRef, Seq

_Visit: TypeAlias = "Generator[Term, Term, Term]"


TermSet: TypeAlias = "tuple[Term, ...]"  # sorted, without NOTHING
_PartVisit: TypeAlias = "Generator[Term, TermSet, Iterable[Term]]"


Term: TypeAlias = int
Node: TypeAlias = "tuple[str, tuple[int, ...], int, int | None]"  # kind, parts and two numbers

NOTHING: Term = 0  # has no words
EMPTY: Term = 1  # has only the empty word
_LEVELS = 2  # how deep a union joins members with the same head; more would give too many terms


class TermTable:
    """All terms of one core that have been made, by number.

    Attributes:
        nodes: (kind, parts, number, number) of each term.  For ``call`` the first number is its
            pattern, and for ``rule`` the index of the rule.  ``repeat`` has its two bounds.
        nullable: for each term whether it has the empty word.
        bodies: for each rule the term of its expression.
        plan: the term of the plan.
        budget: the work budget.
    """

    def __init__(self, core: Core, budget: WorkBudget, twins: bool = False) -> None:
        """Make the terms of `core`; with `twins` an intersection keeps equal members."""
        self.budget = budget
        self._twins = twins
        self._number: dict[Node, Term] = {}
        self.nodes: list[Node] = []
        self.nullable: list[bool] = []
        self._make("nothing", (), False)
        self._make("empty", (), True)
        self._rule_index = {name: index for index, name in enumerate(core.rules)}
        nullable = nullable_rules(core.rules)
        self._rule_nullable = [nullable[name] for name in core.rules]
        self.bodies: Sequence[Term] = [self.term(body) for body in core.rules.values()]
        self.plan = self.term(core.plan)

    def _make(
        self, kind: str, parts: tuple[int, ...], nullable: bool, one: int = 0, two: int | None = 0
    ) -> Term:
        node = (kind, parts, one, two)
        number = self._number.get(node)
        if number is None:
            self.budget.spend(1 + len(parts))
            number = self._number[node] = len(self.nodes)
            self.nodes.append(node)
            self.nullable.append(nullable)
        return number

    def term(self, expression: Expr) -> Term:
        """The term of an expression of the core."""
        done: list[Term] = []
        todo: list[tuple[Expr, int]] = [(expression, -1)]
        while todo:
            node, count = todo.pop()
            if count < 0:
                inner = parts(node)
                todo.append((node, len(inner)))
                todo.extend((part, -1) for part in reversed(inner))
            else:
                first = len(done) - count
                done[first:] = [self._of(node, done[first:])]
        return done[0]

    def _of(self, node: Expr, parts: Sequence[Term]) -> Term:
        match node:
            case Empty():
                return EMPTY
            case OneCall(pattern):
                return self._make("call", (), False, pattern)
            case RuleRef(name):
                index = self._rule_index[name]
                return self._make("rule", (), self._rule_nullable[index], index)
            case Seq():
                result = EMPTY
                for part in reversed(parts):
                    result = self.sequence(part, result)
                return result
            case Alt():
                return self.union(parts)
            case Both():
                return self.intersection(parts)
            case Diff():
                return self.difference(parts[0], parts[1:])
            case Repeat(_, low, high):
                return self.repeat(parts[0], low, high)

    def sequence(self, first: Term, second: Term) -> Term:
        """The term of a word of `first` followed by a word of `second`.

        Sequences are nested to the right, so equal sequences are equal nodes.
        """
        if NOTHING in (first, second):
            return NOTHING
        if EMPTY in (first, second):
            return second if first == EMPTY else first
        heads = []
        while self.nodes[first][0] == "seq":
            head, first = self.nodes[first][1]
            heads.append(head)
        heads.append(first)
        self.budget.spend(len(heads))
        for head in reversed(heads):
            nullable = self.nullable[head] and self.nullable[second]
            second = self._make("seq", (head, second), nullable)
        return second

    def union(self, parts: Iterable[Term], levels: int = _LEVELS) -> Term:
        """The union of terms: flat, sorted, and without NOTHING.

        EMPTY is dropped if another member has the empty word.  Without twins, members with the same
        head are joined: x y | x z becomes x (y | z), to a depth of `levels`.  Otherwise a union
        could get a member for every way to nest.
        """
        found = set(self._flat("alt", parts)) - {NOTHING}
        if levels and not self._twins:
            found = self._factored(found, levels - 1)
        nullable = any(self.nullable[part] for part in found if part != EMPTY)
        if nullable:
            found.discard(EMPTY)
        if len(found) < 2:
            return found.pop() if found else NOTHING
        return self._make("alt", tuple(sorted(found)), nullable or EMPTY in found)

    def _factored(self, parts: set[Term], levels: int) -> set[Term]:
        """The members of the same union, with no two that have the same head."""
        rests: dict[Term, list[Term]] = {}
        for part in sorted(parts):
            kind, inner, _, _ = self.nodes[part]
            head, rest = inner if kind == "seq" else (part, EMPTY)
            rests.setdefault(head, []).append(rest)
        if len(rests) < len(parts):
            return {self.sequence(head, self.union(found, levels)) for head, found in rests.items()}
        return parts

    def intersection(self, parts: Iterable[Term]) -> Term:
        """The intersection of terms: flat and sorted.

        It is simplified if NOTHING or EMPTY is in it.
        """
        flat = self._flat("and", parts)
        found = flat if self._twins else sorted(set(flat))
        nullable = all(self.nullable[part] for part in found)
        if NOTHING in found:
            return NOTHING
        if EMPTY in found:
            return EMPTY if nullable else NOTHING
        return found[0] if len(found) == 1 else self._make("and", tuple(found), nullable)

    def difference(self, base: Term, minus: Iterable[Term]) -> Term:
        """The words of `base` that no term of `minus` has.

        The subtracted terms are flat and sorted.
        """
        if self.nodes[base][0] == "diff":
            base, *before = self.nodes[base][1]
            minus = [*minus, *before]
        off = set(self._flat("alt", minus)) - {NOTHING}
        nullable = self.nullable[base] and not any(self.nullable[part] for part in off)
        if base == NOTHING or base in off:
            return NOTHING
        if base == EMPTY:
            return EMPTY if nullable else NOTHING
        return self._make("diff", (base, *sorted(off)), nullable) if off else base

    def repeat(self, body: Term, low: int, high: int | None) -> Term:
        """The term of `low` to `high` words of `body`; `high` None: any number.

        If the body has the empty word, `low` becomes 0: empty words can make up for missing ones.
        """
        if self.nullable[body]:
            low = 0
        if body == NOTHING:
            return EMPTY if low == 0 else NOTHING
        if body == EMPTY or high == 0:
            return EMPTY
        if high == 1:
            return body if low == 1 else self.union((EMPTY, body))
        if self.nodes[body][0] == "repeat" and self.nodes[body][2:] == (0, None):
            return body
        return self._make("repeat", (body,), low == 0, low, high)

    def _flat(self, kind: str, parts: Iterable[Term]) -> list[Term]:
        """The parts, sorted; a part of the given kind is replaced by its members."""
        found, nodes, members = list[Term](), self.nodes, 0
        for part in parts:
            own, inner, _, _ = nodes[part]
            members += len(inner)
            found += inner if own == kind else (part,)
        self.budget.spend(members)
        return sorted(found)


class Derivatives(TermTable):
    """The terms of one core, and their derivatives.

    Each derivative is made once, except for the derivative of a single call.
    """

    def __init__(
        self, core: Core, alphabet: Alphabet, budget: WorkBudget, twins: bool = False
    ) -> None:
        """Make the terms of `core`; with `twins` an intersection keeps equal members."""
        super().__init__(core, budget, twins)
        self._groups = alphabet.groups
        self._known: dict[tuple[Term, int], Term] = {}
        self._asked: dict[Term, int] = {}

    def derivative(self, term: Term, group: int) -> Term:
        """The term of all words that may follow a call of `group` in the words of `term`."""
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
                # Those of call terms are not stored: there are too many pairs of a call and a
                # group.
                if self.nodes[asked][0] != "call":
                    self._known[asked, group] = answer
        return answer

    def _is_new(self, term: Term, group: int) -> bool:
        """Return whether this derivative is made for the first time.

        For a call term, the groups asked for so far are kept as the bits of a number.
        """
        if self.nodes[term][0] != "call":
            return True
        asked, bit = self._asked.get(term, 0), 1 << group
        self._asked[term] = asked | bit
        return not asked & bit

    def _visit(self, term: Term, group: int) -> _Visit:
        """Yield the parts whose derivatives are needed; return the derivative of the term."""
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
        """Derive a sequence: a word begins in its first member, or in a later one.

        A later member counts only if all members before it have the empty word.
        """
        found = []
        while self.nodes[term][0] == "seq":
            head, rest = self.nodes[term][1]
            found.append(self.sequence((yield head), rest))
            if not self.nullable[head]:
                return self.union(found)
            term = rest
        found.append((yield term))
        return self.union(found)


class PartialDerivatives:
    """The partial derivatives of the terms of one core; each set is computed once."""

    __slots__ = ("_budget", "_known", "_terms")

    def __init__(self, terms: Derivatives, budget: WorkBudget) -> None:
        self._terms = terms
        self._budget = budget
        self._known: dict[tuple[Term, int], TermSet] = {}

    def of(self, term: Term, group: int) -> TermSet:
        """The terms that a call of `group` leads to from `term`."""
        stack: list[tuple[Term, _PartVisit]] = []
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

    def _visit(self, term: Term, group: int) -> _PartVisit:
        """Yield the parts whose sets are needed; return the set of the term."""
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
