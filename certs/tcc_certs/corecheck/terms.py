"""Terms: expressions of the core as numbered nodes, their derivatives and partial derivatives.

Terms are normalised as they are made (unions and intersections flat, sorted, each member once), and
equal terms have one number; counted repeats are never written out.  The derivative of a term by a
call is the term of all words that may follow it (Brzozowski, Derivatives of Regular Expressions,
1964); with rules for recursion and with counted repeats, which are counted down.  The partial
derivatives of a term by a call are a set of terms, one for each way to go on (docs/spec/core.md,
section 6): made with twins kept in intersections; what a difference takes off goes on by its whole
derivative.  Both are by a letter's group.
Cost: linear in the terms and sets that are met; a set of an intersection is the product of its
members'.
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


TermSet: TypeAlias = "tuple[Term, ...]"  # increasing, without NOTHING
_PartVisit: TypeAlias = "Generator[Term, TermSet, Iterable[Term]]"


Term: TypeAlias = int
Node: TypeAlias = "tuple[str, tuple[int, ...], int, int | None]"  # kind, parts, two numbers

NOTHING: Term = 0  # no word
EMPTY: Term = 1  # the empty word alone
_LEVELS = 2  # of heads that a union takes together: deeper ones are too many different terms


class TermTable:
    """All terms of one core that have been met.

    Attributes:
        nodes: by number, (kind, parts, number, number): ``call`` has its pattern, ``rule`` the
            rule's index, ``repeat`` its two bounds.
        nullable: by number, whether the empty word is in the term.
        bodies: by rule index, the term of the rule's expression.
        plan: the term of the plan.
        budget: what the work is counted on.
    """

    def __init__(self, core: Core, budget: WorkBudget, twins: bool = False) -> None:
        """Terms of `core`; with `twins` an intersection keeps equal members."""
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
        """Nested to the right: equal sequences are equal nodes."""
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
        """Flat, sorted, without NOTHING; without EMPTY where another member has the empty word.

        x y | x z is x (y | z), so many levels down: else there is a member for every way to nest.
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
        """The same union with no head twice."""
        rests: dict[Term, list[Term]] = {}
        for part in sorted(parts):
            kind, inner, _, _ = self.nodes[part]
            head, rest = inner if kind == "seq" else (part, EMPTY)
            rests.setdefault(head, []).append(rest)
        if len(rests) < len(parts):
            return {self.sequence(head, self.union(found, levels)) for head, found in rests.items()}
        return parts

    def intersection(self, parts: Iterable[Term]) -> Term:
        """Flat and sorted; NOTHING and EMPTY decide it."""
        flat = self._flat("and", parts)
        found = flat if self._twins else sorted(set(flat))
        nullable = all(self.nullable[part] for part in found)
        if NOTHING in found:
            return NOTHING
        if EMPTY in found:
            return EMPTY if nullable else NOTHING
        return found[0] if len(found) == 1 else self._make("and", tuple(found), nullable)

    def difference(self, base: Term, minus: Iterable[Term]) -> Term:
        """One base, a flat sorted list of what is taken off."""
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
        """A body that may be empty needs no least count, as empty rounds fill it up."""
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
        """The parts, those of the kind itself taken apart; increasing."""
        found, nodes, members = list[Term](), self.nodes, 0
        for part in parts:
            own, inner, _, _ = nodes[part]
            members += len(inner)
            found += inner if own == kind else (part,)
        self.budget.spend(members)
        return sorted(found)


class Derivatives(TermTable):
    """The terms of one core that have been met, and what may follow a call in each.

    A derivative is made once, but for that of a single call.
    """

    def __init__(
        self, core: Core, alphabet: Alphabet, budget: WorkBudget, twins: bool = False
    ) -> None:
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


class PartialDerivatives:
    """Partial derivatives of the terms of one core, each taken once."""

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
