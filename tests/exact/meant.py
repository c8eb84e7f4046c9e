"""What literals, formulas and facts of the kernel mean in a session, by the definition.

Ground objects become forms again, with a level of its own for each call, and the definition
evaluates them over the calls before their view.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tcc_certs.policy import forms, meaning
from tcc_certs.policy.core import Core
from tcc_certs.policy.history import ANSWERED, DONE, FAILED, Draw, ListHistory
from tcc_certs.policy.meaning import Evaluation, Policy
from tcc_certs.proof.ground import Ground
from tcc_certs.proof.reasons import Fact, ends_of
from tcc_certs.proof.scene import Formula, Scene
from tcc_certs.values.places import NONE

FAR = 10**12  # in place of an infinite end
_CALLS = 1000  # the level of call 0


@dataclass(frozen=True)
class Present:
    """A term is not absent: the only condition of the kernel that no statement has."""

    of: Any


class _Evaluation(Evaluation):
    def _asked(self, condition: Any, negative: bool) -> Any:
        if not isinstance(condition, Present):
            return super()._asked(condition, negative)
        state = self.term(condition.of)
        return False if state == NONE else None if state[0] in meaning.NO_VALUE else True


@dataclass
class Meant:
    """A session whose calls are the actors of a scene.

    Args:
        calls: by the numbers of actors, with elements of lists; call 0 is decided.
    """

    scene: Scene
    policy: Policy
    core: Core
    calls: Sequence[Any]
    history: ListHistory
    draws: dict[tuple[int, int], Draw | None]

    # Forms again.

    def form(self, of: Ground, depth: int = 0) -> Any:
        tag = of[0]
        match of:
            case ("const", state):
                return forms.Constant(state)
            case ("call" | "item", number):
                return forms.Element(_CALLS + number)
            case ("bound", back):
                return forms.Element(10 + depth - 1 - back)
            case ("get", inner, name):
                return forms.Get(self.form(inner, depth), name)
            case ("callof", inner):
                return forms.CallOf(self.form(inner, depth))
            case ("attr", name):
                return forms.Attribute(name)
            case ("time", (_, number)):
                return forms.Constant(("t", self.calls[number].at_ms))
            case ("last", source):
                return forms.Last(self.form(source, depth))
            case ("count", source, distinct):
                return forms.Count(self.form(source, depth), distinct)
            case ("choose", inner, arms, rest):
                return forms.Choose(
                    self.form(inner, depth),
                    tuple([
                        (tuple([self.form(one, depth) for one in tests]), self.form(then, depth))
                        for tests, then in arms
                    ]),
                    self.form(rest[0], depth) if rest else None,
                )  # fmt: skip
            case ("sum", source, term):
                return forms.Sum(self.form(source, depth), self.form(term, depth + 1))
            case ("source", _, base, conditions, within, marks):
                return forms.Source(
                    base=self._base(base, depth),
                    level=10 + depth,
                    conditions=tuple([self.form(one, depth + 1) for one in conditions]),
                    within=within,
                    marks=tuple([self.form(mark, depth) for mark in marks]),
                )
            case ("counted", statement, (_, number)):
                return forms.Constant(("n", self.counted(statement, number)))
            case ("not", inner):
                return forms.Not(self.form(inner, depth))
            case ("present", inner):
                return Present(self.form(inner, depth))
            case ("all", inner):
                return forms.All(tuple([self.form(one, depth) for one in inner]))
            case ("any", inner):
                return forms.AnyOf(tuple([self.form(one, depth) for one in inner]))
            case ("some", source):
                return forms.Some(self.form(source, depth))
            case ("every", source, conditions):
                inner = tuple([self.form(one, depth + 1) for one in conditions])
                return forms.Every(self.form(source, depth), inner)
            case ("compare", operator, left, options):
                terms = tuple([self.form(one, depth) for one in options])
                return forms.Compare(operator, self.form(left, depth), terms)
            case ("same", left, right):
                return forms.Same(self.form(left, depth), self.form(right, depth))
            case ("between", inner, low, high):
                return forms.Between(*[self.form(one, depth) for one in (inner, low, high)])
            case ("among", inner, source):
                return forms.Among(self.form(inner, depth), self.form(source, depth))
            case ("matches", inner, pattern):
                return forms.Matches(self.form(inner, depth), pattern)
        if tag in ("+", "-", "*", "min", "max"):
            return forms.Arithmetic(tag, self.form(of[1], depth), self.form(of[2], depth))
        raise TypeError(of)

    def _base(self, base: Ground, depth: int) -> forms.Base:
        match base:
            case ("calls", tools):
                return forms.Calls(frozenset(tools))
            case ("rows", source, get, most):
                inner = self.form(source, depth)
                return forms.Rows(inner, self.form(get, depth + 1), most)
            case ("items", of, most):
                return forms.Items(self.form(of, depth), most)
            case ("pairs", left, right):
                return forms.Pairs(self.form(left, depth), self.form(right, depth))
            case ("merged", sources):
                return forms.Merged(tuple([self.form(one, depth) for one in sources]))
        raise TypeError(base)

    # Values and truths.

    def evaluation(self, view: int) -> Evaluation:
        """The definition before a call, with all that is known when call 0 is decided."""
        before = [one for one in self.history.calls if one.at < self.calls[view].at]
        history = ListHistory(self.core, self.history._given)
        history._learned = self.history._learned
        history.calls = before
        found = _Evaluation(history, None, self.calls[view].at_ms)
        found.bound = 1 << 20
        for number, call in enumerate(self.calls):
            found.elements[_CALLS + number] = call
        return found

    def view_of(self, of: Any) -> int:
        """The view of the sources in a ground object; they have one."""
        if isinstance(of, tuple):
            if of[:1] == ("source",):
                return int(of[1][1])
            for part in of:
                found = self.view_of(part)
                if found:
                    return found
        return 0

    def state(self, term: Ground) -> Any:
        return self.evaluation(self.view_of(term))._alone(self.form(term))

    def counted(self, statement: int, number: int) -> Any:
        """What a limit counted when a call was decided, of calls that count with this knowledge."""
        draw = self.draws[statement, number]
        rule = self.scene.rules[statement]
        total: Any = 0
        for (limit, other), one in self.draws.items():
            if limit != statement or one is None or draw is None:
                continue
            call = self.calls[other]
            late = rule.within is not None and call.at_ms < self.calls[number].at_ms - rule.within
            if call.at >= self.calls[number].at or late or call.outcome in (FAILED, ANSWERED):
                continue
            if one.key is None or draw.key is None or one.key == draw.key:
                total += one.amount
        return total

    def truth(self, literal: Ground) -> bool:
        match literal:
            case ("eq" | "ne", left, right):
                found = meaning.compare("=", self.state(left), self.state(right))
                return found is (literal[0] == "eq")
            case ("lt" | "le", left, right):
                sign = "<" if literal[0] == "lt" else "<="
                return meaning.compare(sign, self.state(left), self.state(right)) is True
            case ("same" | "differ", left, right):
                found = meaning.same(self.state(left), self.state(right))
                return found is (literal[0] == "same")
            case ("match" | "unmatch", term, pattern):
                return meaning.matches(self.state(term), pattern) is (literal[0] == "match")
            case ("null" | "nonnull", term):
                return meaning.is_null(self.state(term)) is (literal[0] == "null")
            case ("known", term):
                return self.state(term)[0] not in meaning.NO_VALUE
            case ("some" | "none", source, negative):
                condition = forms.Some(self.form(source))
                found = self.evaluation(source[1][1]).truth(condition, negative)
                return found is (literal[0] == "some")
            case ("truth", condition, negative, wanted):
                view = self.view_of(condition)
                return self.evaluation(view).truth(self.form(condition), negative) is wanted
            case ("latest", source, negative, (_, number)):
                members = self._members(source, negative)
                return not any(sure and at > self.calls[number].at for at, sure in members)
            case ("clear", mark, (_, number), negative, only_sure):
                members = self._members(mark, negative)
                return all(
                    at < self.calls[number].at for at, sure in members if sure or not only_sure
                )
            case ("before", (_, one), (_, other)):
                return self.calls[one].at < self.calls[other].at
            case ("done" | "failed" | "answered", (_, number)):
                return self.calls[number].outcome == literal[0] and bool(
                    {"done": DONE, "failed": FAILED, "answered": ANSWERED}[literal[0]]
                )
        raise TypeError(literal)

    def _members(self, source: Ground, negative: bool) -> list[tuple[int, bool]]:
        found = self.evaluation(source[1][1]).members(self.form(source), False, negative)
        return [(meaning.call_of(one.element).at, one.sure) for one in found.items]

    def holds(self, formula: Formula) -> bool:
        if isinstance(formula, bool):
            return formula
        tag, inner, *sign = formula
        if tag == "lit":
            return self.truth(self.scene.literals[inner]) == sign[0]
        found = [self.holds(part) for part in inner]
        return any(found) if tag == "or" else all(found)

    # Facts.

    def value(self, variable: Ground) -> Fraction:
        """A variable of facts, with a large number in place of an infinite end."""
        end, term = variable
        ends = meaning.ends_of(self.state(term)) or ("n", None, None)
        if end == "high":
            return Fraction(FAR if ends[2] is None else ends[2])
        return Fraction(-FAR if ends[1] is None else ends[1])

    def fact_holds(self, fact: Fact) -> bool:
        total = sum([factor * self.value(one) for one, factor in fact.terms.items()], Fraction(0))
        return total < fact.most if fact.strict else total <= fact.most


__all__ = ["Meant", "ends_of"]
