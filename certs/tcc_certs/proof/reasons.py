"""Reasons that close a branch of an argument: its literals cannot all have their truths.

Order and arithmetic.  A number that may be unknown has two *ends*, and a known one has one.  An end
of an unknown number is infinite.  In a session put one number in place of every infinite end that
is larger than all sums of the others: then all facts below hold for these finite numbers, so
a contradiction of a combination of facts (Farkas) is a contradiction of the branch.

Equality.  Two terms that are surely equal have the same known state, so each may replace the other.
Cost: linear in the literals that a reason names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import prod
from typing import Any, NamedTuple, TypeAlias

from tcc_certs.policy import forms, meaning
from tcc_certs.policy.kinds import walk
from tcc_certs.policy.meaning import Truth, totals_of
from tcc_certs.proof.ground import VIEW, Ground, ground, rewritten
from tcc_certs.proof.rules import Wrong, includes
from tcc_certs.proof.scene import Formula, Scene, calls_in, is_plain, order
from tcc_certs.values.declared import NumberType
from tcc_certs.values.fields import Field
from tcc_certs.values.places import UNKNOWN, State, exact_number, listed_states

Variable: TypeAlias = Ground  # ("high", term), ("low", term) or ("value", term)
Truths: TypeAlias = "Mapping[int, bool]"


class Fact(NamedTuple):
    """A linear inequality: the sum of `terms` is at most `most`, or less where `strict`."""

    terms: Mapping[Variable, Fraction]
    most: Fraction
    strict: bool


def value_of(formula: Formula, truths: Truths) -> bool | None:
    """Return whether a formula is true; None: it is not decided yet."""
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
    """Return whether both ends of a term are finite, or none is: a product needs both."""
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
    match term:
        case ("count", ("source", _, ("items", of, int() as most), *_), _) if scene.is_argument(of):
            found.append(_at_most(high, ({}, Fraction(most)), False))
    return found


def _may_be_missing(scene: Scene, source: Ground) -> bool:
    """Return whether a source may have the elements of a missing list, and so no count."""
    match source[2]:
        case ("calls" | "merged", *_):
            return False
        case ("rows", of, _, _):
            return _may_be_missing(scene, of)
        case ("items", of, _):
            return not scene.declarations(of)
    return True


def fact_between(scene: Scene, one: Variable, other: Variable) -> Fact | None:
    """That a variable is at most a multiple of another in every session; None: it may be larger."""
    most: Any = None
    match one, other:
        case ("value", ("time", (_, first))), ("value", ("time", (_, second))):
            most = int(second in scene.actors[first].above)
        case ("low", ("count", inner, False)), ("low", ("count", outer, False)):
            most = int(includes(inner, outer))
        case _:
            less, more = counted_of(scene, one), counted_of(scene, other)
            if less is not None and more is not None and _is_part(less, more):
                most = _quotient(scene, less, more)
    if not most:
        return None
    factor = Fraction(most)
    return _at_most(({one: Fraction(1)}, Fraction(0)), ({other: factor}, Fraction(0)), False)


def fact_at_most(variable: Variable, most: Any) -> Fact:
    """That a variable is at most a number.

    Raises:
        Wrong: there is no such number.
    """
    if most is None:
        raise Wrong
    return Fact({variable: Fraction(1)}, Fraction(most), False)


class Counted(NamedTuple):
    """The calls before a view that a count or a sum adds up.

    Attributes:
        view: the call, or the end, before which they are.
        tools: the tools of the calls.
        where: conditions of all of them, about a bound element.
        keys: of a limit, equalities of its keys with those of the view; None: it has a key that
            a call may lack, or that may change.
        within: the window before the view, in milliseconds; None: the whole session.
        marks: sources of `since`; calls before their last element do not count.
        field: the argument that is added; None: each call adds 1.
        is_limit: whether a limit counts them.  Its conditions hold when each call is decided.
        across: whether calls of other sessions count, too.
        has_time: whether conditions of a limit ask for the time or for an attribute.
    """

    view: Ground
    tools: forms.Tools
    where: frozenset[Ground]
    keys: frozenset[Ground] | None = frozenset()
    within: int | None = None
    marks: frozenset[Ground] = frozenset()
    field: str | None = None
    is_limit: bool = False
    across: bool = False
    has_time: bool = False


def counted_of(scene: Scene, variable: Variable) -> Counted | None:
    """Return which calls the value of a variable adds up; None: it is no count and no sum."""
    match variable:
        case ("value", ("counted", limit, call)) if scene.rules[limit].kind == "limit":
            return _of_limit(scene, scene.rules[limit], call)
        case ("high", ("count", ("source", view, ("calls", tools), where, within, marks), False)):
            return Counted(view, frozenset(tools), frozenset(where), frozenset(), within,
                           frozenset(marks))  # fmt: skip
        case (
            "high",
            ("sum", ("source", view, ("rows", of, get, None), (), None, ()), ("bound", 0)),
        ) if get[:2] == ("get", ("bound", 0)) and of[1] == view:
            found = counted_of(scene, ("high", ("count", of, False)))
            return None if found is None else found._replace(field=get[2])
    return None


def _of_limit(scene: Scene, rule: Any, view: Ground) -> Counted:
    """Return the calls that a limit counts when it decides the call `view`."""
    keys = [_key_of(scene, rule, term, view) for term in rule.per]
    return Counted(
        view=view,
        tools=rule.tools,
        where=frozenset([ground(one, {0: ("bound", 0), VIEW: view}) for one in rule.where]),
        keys=None if None in keys else frozenset([one for one in keys if one is not None]),
        within=rule.within,
        field=rule.field,
        is_limit=True,
        across=rule.across,
        has_time=any(isinstance(form, forms.Now | forms.Attribute) for form in walk(rule.where)),
    )


def _key_of(scene: Scene, rule: Any, term: Any, view: Ground) -> Ground | None:
    """The equality of a key with that of the view; None: a call may lack it, or it may change."""
    match term:
        case forms.Attribute(name) if scene.declared(("attr", name)) is not None:
            return "same", ("attr", name), ("attr", name)
        case forms.Get(forms.Element(0), name):
            found = [_argument(scene, tool, name) for tool in rule.tools]
            if all(one is not None and not one.optional and is_plain(one) for one in found):
                return "same", ("get", ("bound", 0), name), ("get", view, name)
    return None


def _argument(scene: Scene, tool: str, name: str) -> Field | None:
    """The argument of a tool with this name."""
    arguments = scene.policy.core.tool_of[tool].arguments
    return next((one for one in arguments if one.name == name), None)


def _normal(condition: Ground) -> Ground:
    """A condition of a source; an equality of a field is a `same` whose first operand it is."""
    match condition:
        case ("compare", "=", left, (right,)):
            condition = "same", left, right
    if condition[0] == "same" and condition[1][0:2] != ("get", ("bound", 0)):
        condition = "same", condition[2], condition[1]
    return condition


def _is_part(one: Counted, other: Counted) -> bool:
    """Return whether `other` adds up all calls that `one` adds up."""
    if one.view != other.view or one.across > other.across or other.keys is None:
        return False
    if one.is_limit is not other.is_limit and (one.has_time or other.has_time):
        return False
    if other.within is not None and (one.within is None or one.within > other.within):
        return False
    keys = one.keys or frozenset()
    equal = keys.union(map(_normal, one.where))
    return (
        one.tools <= other.tools
        and other.marks <= one.marks
        and all(part in one.where or _normal(part) in keys for part in other.where)
        and all(key in equal or (key[1] == key[2] and not one.across) for key in other.keys)
    )


def _quotient(scene: Scene, one: Counted, other: Counted) -> Any | None:
    """Return a bound of the ratio between what a call adds to `one` and to `other`.

    None: there is no bound.  Calls that only `other` adds up never make `other` smaller.
    """
    all_added = added_by(scene, other.tools, other.field)
    if all_added is None or all_added[0] < 0:
        return None
    if one.field == other.field:
        return 1
    least, most = [added_by(scene, one.tools, of.field) for of in (other, one)]
    if least is None or most is None or least[0] <= 0:
        return None
    return Fraction(max(0, most[1]), least[0])


def added_by(scene: Scene, tools: Iterable[str], field: str | None) -> tuple[Any, Any] | None:
    """The least and the greatest amount that a call adds; None: it may be any number, or none."""
    if field is None:
        return 1, 1
    ends: list[Any] = []
    for tool in tools:
        declared = _argument(scene, tool, field)
        if declared is None or declared.optional:
            return None
        kind = declared.type
        if isinstance(kind, NumberType) and kind.low is not None and kind.high is not None:
            ends += exact_number(kind.low), exact_number(kind.high)
        elif kind is None and all(state[0] == "n" for state in listed_states(declared)):
            ends += [state[1] for state in listed_states(declared)]
        else:
            return None
    return min(ends), max(ends)


def most_before(scene: Scene, variable: Variable, statement: int) -> Any | None:
    """Return an upper bound of a count or a sum that follows from one limit or total.

    None: none follows.  The policy let the last counted call through, and no call adds less than
    0.  So the amounts of all counted calls are within the bound of the statement.  From the bound
    of a total the least amount of the view is subtracted.  A bound of another amount is divided by
    the least amount of a call, and multiplied by the greatest one.
    """
    counted, rule = counted_of(scene, variable), scene.rules.get(statement)
    if counted is None or counted.across or rule is None or statement < 0:
        return None
    if rule.kind == "total":
        tool = scene.actors[counted.view[1]].tool
        own = 0 if tool is None else _least(scene, rule.what, [tool], ())
        room, least = exact_number(rule.total) - own, None
        if _is_never_negative(scene, rule.what):
            least = _least(scene, rule.what, counted.tools, counted.where)
    elif isinstance(rule.most, forms.Constant) and _is_bounded(scene, counted, rule):
        room = rule.most.state[1]
        if rule.field == counted.field:
            return max(0, room)
        added = added_by(scene, counted.tools, rule.field)
        least = None if added is None else added[0]
    else:
        return None
    most = added_by(scene, counted.tools, counted.field)
    if least is None or least <= 0 or most is None:
        return None
    return max(0, Fraction(room, least) // 1) * max(0, most[1])


def _is_never_negative(scene: Scene, what: str) -> bool:
    """Return whether no call has an amount below 0 under a total."""
    if what not in scene.amounts:
        scene.amounts[what] = _least(scene, what, scene.policy.core.tool_of, ()) >= 0
    return bool(scene.amounts[what])


def _is_bounded(scene: Scene, counted: Counted, rule: Any) -> bool:
    """Return whether a limit counts all these calls, and under one value of its keys."""
    part = _of_limit(scene, rule, counted.view)
    if part.keys is None:
        return False
    named = {key[1] for key in counted.keys or ()}
    for condition in map(_normal, counted.where):
        is_fixed = not counted.is_limit or not calls_in(condition)
        if condition[0] == "same" and is_fixed and scene.is_exact(condition[2]):
            named.add(condition[1])  # all counted calls have one value of this key
    is_one_key = all(key[1] in named or key[1] == key[2] for key in part.keys)
    return is_one_key and _is_part(counted, part._replace(keys=frozenset()))


def _least(scene: Scene, what: str, tools: Iterable[str], where: Iterable[Ground]) -> Any:
    """The least amount of a call of some tools under a total, if a filter may be true of it."""
    if what == "depth":
        return 1
    plain = frozenset([one for one in where if not calls_in(one)])
    key = what, frozenset(tools), plain
    if key not in scene.amounts:
        found = [_least_of(scene, what, tool, plain) for tool in key[1]]
        scene.amounts[key] = min(found, default=0)
    return scene.amounts[key]


def _least_of(scene: Scene, what: str, name: str, where: Iterable[Ground]) -> Any:
    tool, (names, rows) = scene.policy.core.tool_of[name], scene.policy.amounts[name]
    arguments = {one.name for one in tool.arguments}
    # A call that is none of the core adds nothing.
    found = [] if len(rows) == prod([len(listed_states(one)) for one in tool.listed]) else [0]
    for states, amounts in rows:
        listed = zip(names, states, strict=True)
        values = {("get", ("bound", 0), of): state for of, state in listed if of in arguments}
        if all(truth_at(one, values, name) is not False for one in where):
            found.append(amounts[what])
    return min(found, default=0)


def bounds_of(scene: Scene, what: str) -> Iterator[Any]:
    """Yield upper bounds of a total that follow from limits and totals of the policy.

    A limit or a total gives one if it bounds each tool that adds to the total.  The last bound adds
    up the bounds of all tools, if each tool has one.

    Args:
        what: of the total: ``depth``, ``price``, ``cost``, ``latency`` or ``epsilon``.
    """
    core = scene.policy.core
    # A call that is none of the core counts under `limit depth`, and adds nothing to other totals.
    found = dict.fromkeys(core.tool_of, Fraction(what == "depth"))
    for call in core.calls:
        name = core.tools[call.tool].name
        found[name] = max(found[name], Fraction(totals_of(call)[what]))
    greatest = {tool: most for tool, most in found.items() if most}
    many: dict[str, Any] = {}  # the most calls of a tool
    for rule in scene.policy.rules:
        least: dict[str, Any] = {}
        room: Any = 0
        if rule.kind == "total" and _is_never_negative(scene, rule.what):
            room = max(0, exact_number(rule.total))
            least = {tool: _least(scene, rule.what, [tool], ()) for tool in greatest}
        elif isinstance(rule.most, forms.Constant) and not (rule.where or rule.per or rule.within):
            room = max(0, rule.most.state[1])
            ends = {tool: added_by(scene, [tool], rule.field) for tool in rule.tools or ()}
            least = {tool: pair[0] for tool, pair in ends.items() if pair is not None}
        least = {tool: least[tool] for tool in greatest if least.get(tool, 0) > 0}
        for tool, amount in least.items():
            calls = Fraction(room, amount) // 1
            many[tool] = min(calls, many.get(tool, calls))
        if least.keys() == greatest.keys():
            times = [Fraction(most, least[tool]) for tool, most in greatest.items()]
            yield room * max(times, default=0)
    if many.keys() == greatest.keys():
        yield sum([most * many[tool] for tool, most in greatest.items()])


def is_contradiction(scene: Scene, facts: Sequence[tuple[Fact, Fraction]]) -> bool:
    """Return whether facts, with multipliers of at least 0, add up to 0 < 0 or 0 <= -n."""
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
    if term[0] == "counted":
        return scene.rules[term[1]].field is None
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
    """Return a literal with terms replaced by their representatives in `names`."""

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
