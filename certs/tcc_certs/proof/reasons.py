"""Reasons that close a branch of an argument: its literals cannot all have their truths.

Order and arithmetic.  A number that may be unknown has two *ends*, and a known one has one.  An end
of an unknown number is infinite.  In a session put one number in place of every infinite end that
is larger than all sums of the others: then all facts below hold for these finite numbers, so
a contradiction of a combination of facts (Farkas) is a contradiction of the branch.

Equality.  Two terms that are surely equal have the same known state, so each may replace the other.
Cost: linear in the literals that a reason names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from tcc_certs.policy import forms, meaning
from tcc_certs.policy.kinds import walk
from tcc_certs.policy.meaning import Truth
from tcc_certs.proof.ground import VIEW, Ground, ground, rewritten
from tcc_certs.proof.rules import Wrong, includes
from tcc_certs.proof.scene import Formula, Scene, order
from tcc_certs.values.declared import NumberType
from tcc_certs.values.fields import Field
from tcc_certs.values.places import UNKNOWN, State, exact_number

Variable: TypeAlias = Ground  # ("high", term), ("low", term) or ("value", term)
Truths: TypeAlias = "Mapping[int, bool]"


class Fact(NamedTuple):
    """A linear inequality: the sum of `terms` is at most `most`, or less where `strict`."""

    terms: Mapping[Variable, Fraction]
    most: Fraction
    strict: bool


def value_of(formula: Formula, truths: Truths) -> bool | None:
    """Whether a formula is true; None: it is not decided yet."""
    if isinstance(formula, bool):
        return formula
    tag, inner, *sign = formula
    if tag == "lit":
        found = truths.get(inner)
        return None if found is None else found == sign[0]
    decided = tag == "or"
    open_part = False
    for part in inner:
        value = value_of(part, truths)
        if value is decided:
            return decided
        open_part = open_part or value is None
    return None if open_part else not decided


# Linear facts.


class _Ends(NamedTuple):
    """The two ends of a term, each as coefficients and a constant."""

    low: tuple[dict[Variable, Fraction], Fraction]
    high: tuple[dict[Variable, Fraction], Fraction]


def ends_of(scene: Scene, term: Ground) -> _Ends:
    """The ends of a term, over variables."""
    zero = Fraction(0)
    match term:
        case ("const", (kind, value)) if kind in ("n", "t"):
            found: dict[Variable, Fraction] = {}
            return _Ends((found, Fraction(value)), (found, Fraction(value)))
        case ("+", left, right) if scene.kind(term) is not None:
            one, other = ends_of(scene, left), ends_of(scene, right)
            return _Ends(_added(one.low, other.low), _added(one.high, other.high))
        case ("-", left, right) if scene.kind(term) is not None:
            one, other = ends_of(scene, left), ends_of(scene, right)
            least, most = _scaled(other.high, Fraction(-1)), _scaled(other.low, Fraction(-1))
            return _Ends(_added(one.low, least), _added(one.high, most))
        case ("*", left, right) if scene.kind(term) is not None:
            for factor, of in ((left, right), (right, left)):
                if factor[0] == "const" and factor[1][1] != 0 and _is_point(scene, of):
                    ends, by = ends_of(scene, of), Fraction(factor[1][1])
                    low, high = _scaled(ends.low, by), _scaled(ends.high, by)
                    return _Ends(low, high) if by > 0 else _Ends(high, low)
    if scene.is_number(term):
        value = {("value", term): Fraction(1)}, zero
        return _Ends(value, value)
    return _Ends(({("low", term): Fraction(1)}, zero), ({("high", term): Fraction(1)}, zero))


def _is_point(scene: Scene, term: Ground) -> bool:
    """Whether both ends of a term are finite, or none is: a product needs both."""
    is_count = term[0] == "count" and term[1][2][0] == "calls"
    return is_count or scene.is_number(term) or scene.declared(term) is not None


_Sum: TypeAlias = "tuple[dict[Variable, Fraction], Fraction]"


def _added(one: _Sum, other: _Sum) -> _Sum:
    terms = dict(one[0])
    for variable, factor in other[0].items():
        terms[variable] = terms.get(variable, Fraction(0)) + factor
    return terms, one[1] + other[1]


def _scaled(one: _Sum, by: Fraction) -> _Sum:
    return {variable: factor * by for variable, factor in one[0].items()}, one[1] * by


def _at_most(one: _Sum, other: _Sum, strict: bool) -> Fact:
    """That one sum is at most another."""
    terms, rest = _added(one, _scaled(other, Fraction(-1)))
    return Fact({name: factor for name, factor in terms.items() if factor}, -rest, strict)


def facts_of(scene: Scene, literal: Ground, truth: bool) -> list[Fact]:
    """The linear facts that a literal with this truth states."""
    match literal:
        case ("lt" | "le", left, right):
            if scene.kind(left) is None or scene.kind(left) != scene.kind(right):
                return []
            one, other = ends_of(scene, left), ends_of(scene, right)
            strict = literal[0] == "lt"
            if truth:
                return [_at_most(one.high, other.low, strict)]
            return [_at_most(other.low, one.high, not strict)]
        case ("eq", left, right) if truth:
            if scene.kind(left) is None or scene.kind(left) != scene.kind(right):
                return []
            if scene.is_nullable(left) and scene.is_nullable(right):
                return []
            one, other = ends_of(scene, left), ends_of(scene, right)
            return [_at_most(one.high, other.low, False), _at_most(other.high, one.low, False)]
        case ("before", one_call, other_call):
            if not truth:
                return []
            ends = ends_of(scene, ("time", one_call)), ends_of(scene, ("time", other_call))
            return [_at_most(ends[0].high, ends[1].low, False)]
        case ("known", term) if truth:
            declared = scene.declared(term)
            if declared is None or scene.kind(term) is None or scene.is_nullable(term):
                return []
            found = ends_of(scene, term)
            return [_at_most(found.high, found.low, False), *_bounds(scene, term, declared)]
    return []


def _bounds(scene: Scene, term: Ground, declared: Field) -> list[Fact]:
    """The bounds of a declared number that is known."""
    kind = declared.type
    if not isinstance(kind, NumberType) or kind.low is None or kind.high is None:
        return []
    ends = ends_of(scene, term)
    low, high = [Fraction(exact_number(end)) for end in (kind.low, kind.high)]
    return [_at_most(ends.high, ({}, high), False), _at_most(({}, low), ends.low, False)]


def facts_about(scene: Scene, variable: Variable) -> list[Fact]:
    """The linear facts that hold of a variable in every session."""
    end, term = variable
    found: list[Fact] = []
    if end == "value":
        declared = scene.declared(term)
        if declared is not None and scene.is_argument(term):
            found += _bounds(scene, term, declared)
        if term[0] == "counted":
            found.append(_at_most(({}, Fraction(0)), ({variable: Fraction(1)}, Fraction(0)), False))
        return found
    low, high = (
        ({("low", term): Fraction(1)}, Fraction(0)),
        ({("high", term): Fraction(1)}, Fraction(0)),
    )
    found.append(_at_most(low, high, False))
    if term[0] == "count" and not _may_be_missing(scene, term[1]):
        found.append(_at_most(({}, Fraction(0)), low, False))
    return found


def _may_be_missing(scene: Scene, source: Ground) -> bool:
    """Whether the elements of a source may be those of a list that is missing: it has no count."""
    match source[2]:
        case ("calls" | "merged", *_):
            return False
        case ("rows", of, _, _):
            return _may_be_missing(scene, of)
        case ("items", of, _):
            return not scene.declarations(of)
    return True


def fact_between(scene: Scene, one: Variable, other: Variable) -> Fact | None:
    """That a variable is at most another in every session; None: it may be larger."""
    holds = False
    match one, other:
        case ("value", ("time", (_, first))), ("value", ("time", (_, second))):
            holds = second in scene.actors[first].above
        case (end, ("count", inner, False)), (other_end, ("count", outer, False)):
            holds = end == other_end and includes(inner, outer)
        case ("value", ("counted", first, call)), ("value", ("counted", second, other_call)):
            holds = call == other_call and _counts_less(scene, first, second)
        case ("high", (("count" | "sum"), *_) as term), ("value", ("counted", limit, call)):
            holds = _is_counted(scene, term, limit, call)
        case ("value", ("counted", limit, call)), ("high", (("count" | "sum"), *_) as term):
            holds = _has_counted(scene, term, limit, call)
    if not holds:
        return None
    return _at_most(({one: Fraction(1)}, Fraction(0)), ({other: Fraction(1)}, Fraction(0)), False)


def fact_at_most(variable: Variable, most: Any) -> Fact:
    """That a variable is at most a number.

    Raises:
        Wrong: there is no such number.
    """
    if most is None:
        raise Wrong
    return Fact({variable: Fraction(1)}, Fraction(most), False)


def total_before(scene: Scene, variable: Variable, statement: int) -> Any | None:
    """Return the bound of `limit depth` for a count; None if the statement is another one.

    `limit depth` counts every call that may have had an effect, so no count exceeds it.
    """
    match variable:
        case ("value", ("counted", limit, (_, view))):
            counted = scene.rules[limit]
            if counted.kind != "limit" or counted.field is not None or counted.across:
                return None
        case ("high", ("count", ("source", (_, view), ("calls", _), *_), _)):
            pass
        case _:
            return None
    rule = scene.rules.get(statement)
    if statement < 0 or rule is None or rule.what != "depth":
        return None
    return exact_number(rule.total) - (scene.actors[view].tool is not None)


def _counts_less(scene: Scene, one: int, other: int) -> bool:
    """Whether a limit counts at most what another one counts."""
    inner, outer = scene.rules[one], scene.rules[other]
    if inner.kind != "limit" or outer.kind != "limit" or inner.field != outer.field:
        return False
    if outer.within is not None and (inner.within is None or inner.within > outer.within):
        return False
    if inner.across and not outer.across:
        return False
    return (
        set(inner.tools or ()) <= set(outer.tools or ())
        and set(outer.where) <= set(inner.where)
        and set(outer.per) <= set(inner.per)
        and all(_is_kept(scene, rule) for rule in (inner, outer))
    )


def _is_kept(scene: Scene, rule: Any) -> bool:
    """Whether the keys of a limit are required arguments or attributes that never change."""
    return all(_key_of(scene, rule, term) is not None for term in rule.per)


def _key_of(scene: Scene, rule: Any, term: Any) -> str | None:
    """The required argument of all counted tools that a `per` term is; "": an attribute."""
    if isinstance(term, forms.Attribute):
        declared = scene.declared(("attr", term.name))
        return None if declared is None else ""
    if not isinstance(term, forms.Get) or term.of != forms.Element(0):
        return None
    for tool in rule.tools or ():
        declared = next(
            (one for one in scene.policy.core.tool_of[tool].arguments if one.name == term.name),
            None,
        )
        if declared is None or declared.optional:
            return None
    return term.name


def _parts_of_limit(
    scene: Scene, limit: int, call: Ground
) -> tuple[set[Ground], set[Ground]] | None:
    """The filter of a limit, and the equalities of its keys, over a bound element."""
    rule = scene.rules[limit]
    if rule.kind != "limit":
        return None
    where = {ground(one, {0: ("bound", 0), VIEW: call}) for one in rule.where}
    keys: set[Ground] = set()
    for term in rule.per:
        name = _key_of(scene, rule, term)
        if name is None:
            return None
        if name:
            keys.add(("same", ("get", ("bound", 0), name), ("get", call, name)))
    return where, keys


def _source_parts(term: Ground, call: Ground, field: str | None) -> Ground | None:
    """The source that a count or the sum of a field has, if it looks before `call`."""
    source: Ground = term[1]
    if source[1] != call:
        return None
    if term[0] == "count":
        return source if field is None and not term[2] and source[2][0] == "calls" else None
    if source[2][0] != "rows":
        return None
    _, inner, get, most = source[2]
    if most is not None or get != ("get", ("bound", 0), field) or term[2] != ("bound", 0):
        return None
    plain = not source[3] and source[4] is None and not source[5]
    return inner if plain and inner[2][0] == "calls" and inner[1] == call else None


def _normal(conditions: Iterable[Ground]) -> set[Ground]:
    """Conditions of a source, with an equality with an argument as a `same`."""
    found: set[Ground] = set()
    for one in conditions:
        match one:
            case ("compare", "=", left, (right,)):
                one = "same", left, right
        if one[0] == "same" and one[1][0:2] != ("get", ("bound", 0)):
            one = "same", one[2], one[1]
        found.add(one)
    return found


def _is_counted(scene: Scene, term: Ground, limit: int, call: Ground) -> bool:
    """Whether a limit counts every call that may be in a source of a count or a sum."""
    rule, found = scene.rules[limit], _parts_of_limit(scene, limit, call)
    source = _source_parts(term, call, rule.field)
    if found is None or source is None or not _is_timeless(rule):
        return False
    where, keys = found
    _, _, (_, tools), conditions, within, _ = source
    if rule.within is not None and (within is None or within > rule.within):
        return False
    return set(tools) <= set(rule.tools or ()) and where | keys <= set(conditions) | _normal(
        conditions
    )


def _has_counted(scene: Scene, term: Ground, limit: int, call: Ground) -> bool:
    """Whether every call that a limit counts may be in a source of a count or a sum."""
    rule, found = scene.rules[limit], _parts_of_limit(scene, limit, call)
    source = _source_parts(term, call, rule.field)
    if found is None or source is None or not _is_timeless(rule) or rule.across:
        return False
    where, keys = found
    _, _, (_, tools), conditions, within, marks = source
    if marks or (within is not None and (rule.within is None or rule.within > within)):
        return False
    if any(one not in where and not _normal([one]) <= keys for one in conditions):
        return False
    return set(rule.tools or ()) <= set(tools)


def _is_timeless(rule: Any) -> bool:
    """Whether the filter of a limit asks neither for the time nor for what a session learns."""
    return not any(isinstance(form, forms.Now | forms.Attribute) for form in walk(rule.where))


def is_contradiction(scene: Scene, facts: Sequence[tuple[Fact, Fraction]]) -> bool:
    """Whether a combination of facts with multipliers of at least 0 says that 0 < 0 or less."""
    terms: dict[Variable, Fraction] = {}
    most, strict = Fraction(0), False
    for fact, factor in facts:
        if factor < 0:
            return False
        if factor == 0:
            continue
        fact = tightened(scene, fact)
        for variable, by in fact.terms.items():
            terms[variable] = terms.get(variable, Fraction(0)) + by * factor
        most += fact.most * factor
        strict = strict or fact.strict
    return not any(terms.values()) and (most < 0 or (most == 0 and strict))


def tightened(scene: Scene, fact: Fact) -> Fact:
    """The same of whole numbers: less than 3 is at most 2."""
    if not all(
        factor.denominator == 1 and _is_whole(scene, one) for one, factor in fact.terms.items()
    ):
        return fact
    most = fact.most
    if fact.strict:
        most = Fraction(most // 1 - 1 if most.denominator == 1 else most // 1)
    return Fact(fact.terms, Fraction(most // 1), False)


def _is_whole(scene: Scene, variable: Variable) -> bool:
    term = variable[1]
    if term[0] in ("count", "time"):
        return True
    declared = scene.declared(term)
    whole = declared is not None and isinstance(declared.type, NumberType) and declared.type.whole
    return whole and variable[0] == "value"


# Equality.


def renaming(equalities: Iterable[Ground]) -> tuple[dict[Ground, Ground], bool]:
    """For each term of literals ``eq`` that are true the term that stands for it.

    Returns:
        the terms, and whether two different constants would be equal.
    """
    parents: dict[Ground, Ground] = {}

    def find(term: Ground) -> Ground:
        while term in parents:
            term = parents[term]
        return term

    clash = False
    for _, left, right in equalities:
        one, other = find(left), find(right)
        if one == other:
            continue
        if one[0] == "const" and other[0] == "const":
            clash = clash or meaning.compare("=", one[1], other[1]) is False
            continue
        if one[0] == "const" or (other[0] != "const" and order(one) < order(other)):
            one, other = other, one
        parents[one] = other
    return {term: find(term) for term in parents}, clash


def renamed(literal: Ground, names: Mapping[Ground, Ground]) -> Ground:
    """A literal with each term replaced by the one that stands for it."""

    def leaf(part: Ground, _: int) -> Ground | None:
        return names.get(part)

    found = rewritten(literal, leaf)
    if literal[0] in ("eq", "ne", "same", "differ"):
        return (found[0], *sorted(found[1:], key=order))
    return found


def evaluated(literal: Ground, known: Collection[Ground]) -> bool | None:
    """The truth of a literal that follows from its terms alone; None: it may be either.

    Args:
        known: terms that have known values.
    """
    match literal:
        case ("eq", left, right) if left == right and left in known:
            return True
        case ("ne", left, right) if left == right:
            return False
        case ("eq" | "ne", ("const", one), ("const", other)):
            return meaning.compare("=", one, other) is (literal[0] == "eq")
        case ("lt" | "le", ("const", one), ("const", other)):
            return meaning.compare("<" if literal[0] == "lt" else "<=", one, other) is True
        case ("match" | "unmatch", ("const", state), pattern):
            return meaning.matches(state, pattern) is (literal[0] == "match")
        case ("under" | "outside", ("const", state), ("const", scope)):
            return meaning.under(state, scope) is (literal[0] == "under")
        case ("null" | "nonnull", ("const", state)):
            return meaning.is_null(state) is (literal[0] == "null")
        case ("same" | "differ", ("const", one), ("const", other)):
            return meaning.same(one, other) is (literal[0] == "same")
        case ("known", ("const", state)):
            return state[0] not in meaning.NO_VALUE
    return None


def truth_at(condition: Ground, values: Mapping[Ground, State], tool: str = "") -> Truth:
    """Return the truth of a condition about a bound element, from the values of some terms.

    Other terms are unknown, and so are sources.

    Args:
        tool: of the element, if it is a call.
    """

    def truth(part: Ground) -> Truth:
        match part:
            case ("not", of):
                return meaning.negation(truth(of))
            case ("all", inside):
                return meaning.conjunction(map(truth, inside))
            case ("any", inside):
                return meaning.disjunction(map(truth, inside))
            case ("isof", ("bound", 0), tools):
                return tool in tools
            case ("compare", operator, left, options):
                return meaning.disjunction([compared(operator, left, one) for one in options])
            case ("between", of, low, high):
                return meaning.conjunction([compared(">=", of, low), compared("<=", of, high)])
            case ("same", left, right):
                return meaning.same(state(left), state(right))
            case ("matches", of, pattern):
                return meaning.matches(state(of), pattern)
            case ("under", of, scope):
                return meaning.under(state(of), state(scope))
        return None

    def compared(operator: str, left: Ground, right: Ground) -> Truth:
        if operator == "=" and right == ("const", ("z", None)):
            return meaning.is_null(state(left))
        return meaning.compare(operator, state(left), state(right))

    def state(term: Ground) -> State:
        match term:
            case ("const", (str() as kind, value)):
                return kind, value
            case ("+" | "-" | "*" | "min" | "max", left, right):
                return meaning.arithmetic(term[0], state(left), state(right))
        return values.get(term, UNKNOWN)

    return truth(condition)
