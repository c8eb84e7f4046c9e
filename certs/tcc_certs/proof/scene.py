"""Formulas about a few calls of a session, with the two truths of each condition.

A condition of the language is true, false or unsure.  A formula is about two *literals* instead:
that the condition is surely true, and that it is surely false.  Neither is the negation of the
other, so a missing value and an unknown outcome need no third value here.  A literal that no
branch of an argument has assigned may be either.

Literals speak of what is known when call 0 is decided.  What a statement let through then, it
lets through with this knowledge, too: a decision never depends on a value that becomes known later
(docs/spec/core.md, section "Meaning").  Bounds of work are left out; they only refuse more calls.

A formula is `True`, `False`, ``("lit", literal, sign)``, ``("and", parts)`` or ``("or", parts)``.
Literals are numbered in the order in which formulas name them.
Cost: linear in the statement that a formula is made of.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from tcc_certs.policy import meaning
from tcc_certs.policy.core import Learned
from tcc_certs.policy.forms import Rule, Tools
from tcc_certs.policy.meaning import MAX_STEPS, NO_VALUE, Policy
from tcc_certs.proof.ground import (
    MISSING,
    PAIRED,
    VIEW,
    Ground,
    at_call,
    choice,
    constant,
    ground,
    parts,
    picks,
    rewritten,
    unrolled,
)
from tcc_certs.values.declared import FlagType, JsonType, NumberType, PathType, TextType, UrlType
from tcc_certs.values.fields import (
    DateType,
    Field,
    FieldType,
    ListType,
    NullableType,
    RecordType,
    TimeType,
    UnionType,
)
from tcc_certs.values.text_pattern import pattern_of

Formula: TypeAlias = "bool | tuple[Any, ...]"

MAX_ACTORS = 1 << 10  # of a branch
NULL = constant(("z", None))
_MIRRORED = {"<": ("lt", False), "<=": ("le", False), ">": ("lt", True), ">=": ("le", True)}


def both(formulas: Iterable[Formula]) -> Formula:
    """The conjunction of formulas."""
    found = []
    for formula in formulas:
        if formula is False:
            return False
        if formula is not True:
            found.append(formula)
    return True if not found else found[0] if len(found) == 1 else ("and", tuple(found))


def either(formulas: Iterable[Formula]) -> Formula:
    """The disjunction of formulas."""
    found = []
    for formula in formulas:
        if formula is True:
            return True
        if formula is not False:
            found.append(formula)
    return False if not found else found[0] if len(found) == 1 else ("or", tuple(found))


def opposite(formula: Formula) -> Formula:
    """The negation of a formula."""
    if isinstance(formula, bool):
        return not formula
    tag, inner, *rest = formula
    if tag == "lit":
        return tag, inner, not rest[0]
    return "or" if tag == "and" else "and", tuple([opposite(part) for part in inner])


def implies(premise: Formula, conclusion: Formula) -> Formula:
    """A formula that holds unless the premise alone does."""
    return either([opposite(premise), conclusion])


@dataclass(frozen=True, slots=True)
class Actor:
    """A call that an argument speaks of, or an element of a list.

    Attributes:
        tool: None: it is the end of the session, or an element.
        above: the calls that it is surely earlier than.
        is_first: whether it is the first call of its tool in the session.
        base: of an element, the base of sources of its list.
        declared: of an element, its type, if that is known.
    """

    tool: str | None
    above: frozenset[int] = frozenset()
    is_first: bool = False
    base: Ground | None = None
    declared: Field | None = None


class _Shared(NamedTuple):
    """Tables that all scenes of a policy share."""

    rules: dict[int, Rule]
    places: dict[str, int]
    fields: dict[str, dict[str, tuple[Field, bool]]]
    amounts: dict[Any, Any]


def _shared(policy: Policy) -> _Shared:
    found: _Shared | None = policy.__dict__.get("_of_scenes")
    if found is None:
        fields = {
            tool.name: {one.name: (one, False) for one in tool.arguments}
            | {one.name: (one, True) for one in tool.answers}
            for tool in policy.core.tools
        }
        places = {tool.name: at for at, tool in enumerate(policy.core.tools)}
        found = _Shared(dict(enumerate(policy.rules)), places, fields, {})
        policy.__dict__["_of_scenes"] = found
    return found


class Scene:
    """The calls of a branch of an argument, and the literals of all branches.

    Args:
        policy: the statements that every session satisfies.
        question: the statement that call 0 breaks, as :attr:`rules` has it under ``-1``; None:
            call 0 is only reached.

    Attributes:
        literals: each literal, by its number.
        amounts: kept by :mod:`tcc_certs.proof.reasons`.
    """

    def __init__(self, policy: Policy, question: Rule | None) -> None:
        self.policy = policy
        shared = _shared(policy)
        self.rules: Mapping[int, Rule] = shared.rules
        if question is not None:
            self.rules = ChainMap({-1: question}, shared.rules)
        self.actors: list[Actor] = []
        self.literals: list[Ground] = []
        self._numbers: dict[Ground, int] = {}
        self.amounts = shared.amounts
        self._places = shared.places
        self._given = {one.name: one for one in policy.core.given}
        self._fields = shared.fields

    # Calls.

    def enter(self, tool: str | None, view: int | None = None) -> int:
        """Add a call that is earlier than `view`, and return its number."""
        above = frozenset() if view is None else self.actors[view].above | {view}
        return self._enter(Actor(tool, above))

    def enter_like(self, call: int) -> int:
        """Add the first call of the tool of a call, and return its number."""
        actor = self.actors[call]
        return self._enter(Actor(actor.tool, actor.above, True))

    def enter_element(self, base: Ground) -> int:
        """Add an element of a list, and return its number."""
        kinds = [self._element(of) for of in base[1:] if isinstance(of, tuple)]
        kind: FieldType | None = kinds[0]
        if base[0] == "pairs":
            pair = zip(("left", "right"), kinds, strict=True)
            members = [Field(name=name, steps=(), type=one) for name, one in pair if one]
            kind = RecordType(fields=tuple(members))
        declared = None if kind is None else Field(name="", steps=(), type=kind)
        return self._enter(Actor(None, base=base, declared=declared))

    def _enter(self, actor: Actor) -> int:
        """Add an actor.

        Raises:
            ValueError: a branch has too many.  Each call holds the set of the calls after it.
        """
        if len(self.actors) == MAX_ACTORS:
            raise ValueError("too many calls")
        self.actors.append(actor)
        return len(self.actors) - 1

    def this(self, number: int) -> Ground:
        """The ground object of a call, or of an element of a list."""
        return "call" if self.actors[number].base is None else "item", number

    def ordered(self, tools: Tools) -> list[str]:
        """The tools of a set, in the order of the core."""
        return sorted(tools, key=self._places.__getitem__)

    def before(self, one: int, other: int) -> Formula:
        """That a call is earlier than another."""
        if other in self.actors[one].above:
            return True
        if one == other or one in self.actors[other].above:
            return False
        return self.lit("before", ("call", one), ("call", other))

    # Literals.

    def lit(self, *literal: Any) -> Formula:
        """A literal as a formula."""
        if literal[0] in PAIRED:
            literal = (literal[0], *sorted(literal[1:], key=order))
        number = self._numbers.get(literal)
        if number is None:
            number = self._numbers[literal] = len(self.literals)
            self.literals.append(literal)
        return "lit", number, True

    def number(self, literal: Ground) -> int | None:
        """The number of a literal that a formula has named."""
        if literal[0] in PAIRED:
            literal = (literal[0], *sorted(literal[1:], key=order))
        return self._numbers.get(literal)

    # Declarations of terms.

    def field(self, term: Ground) -> tuple[Field, bool] | None:
        """The field of a call, element or record that a term is, and whether it is an answer."""
        match term:
            case ("get", ("call", call), name):
                return self._fields[self.actors[call].tool or ""].get(name)
            case ("item", number):
                declared = self.actors[number].declared
                return None if declared is None else (declared, False)
            case ("get", of, name):
                found = self.field(of)
                if found is not None and isinstance(found[0].type, RecordType):
                    for one in found[0].type.fields:
                        if one.name == name:
                            lacks = one.optional or self.may_lack(of)
                            return replace(one, optional=lacks), found[1]
        return None

    def _element(self, of: Ground) -> FieldType | None:
        """The type of the elements of a list, if that is known."""
        kinds = {_list_type(one) for one in self.declarations(of)}
        kind = kinds.pop() if len(kinds) == 1 else None
        return None if kind is None else kind.of

    def declared(self, term: Ground) -> Field | None:
        """The declaration of an argument, an answer or an attribute of the start."""
        if term[0] == "attr":
            given = self._given.get(term[1])
            return None if given is None or isinstance(given, Learned) else given
        found = self.field(term)
        return None if found is None else found[0]

    def declarations(self, term: Ground) -> list[Field]:
        """The declarations of a term; a learned attribute may have several."""
        given = self._given.get(term[1]) if term[0] == "attr" else None
        if isinstance(given, Learned):
            return [self._fields[tool][name][0] for tool, name in given.sources]
        declared = self.declared(term)
        return [] if declared is None else [declared]

    def kind(self, term: Ground) -> str | None:
        """``n`` or ``t`` if a term is a number or a time wherever it has a value of its type."""
        match term[0]:
            case "const":
                return str(term[1][0]) if term[1][0] in ("n", "t") else None
            case "time":
                return "t"
            case "count" | "sum" | "counted":
                return "n"
            case "clock":
                return "t" if term[1] == "day" else "n"
            case "+" | "-" | "*" | "min" | "max":
                kinds = self.kind(term[1]), self.kind(term[2])
                if None in kinds or term[0] == "*":
                    return None if None in kinds else "n"
                if term[0] in ("min", "max"):
                    return kinds[0]
                return "t" if kinds in (("t", "n"), ("n", "t")) else "n"
            case "attr":
                kinds_of = {_kind(declared) for declared in self.declarations(term)}
                return kinds_of.pop() if len(kinds_of) == 1 else None
        declared = self.declared(term)
        return None if declared is None else _kind(declared)

    def is_exact(self, term: Ground) -> bool:
        """Return whether a term surely has one known value that differs from all others."""
        match term[0]:
            case "const":
                return term[1][0] not in NO_VALUE
            case "time" | "counted":
                return True
            case "+" | "-" | "*" | "min" | "max":
                return self.is_number(term[1]) and self.is_number(term[2])
        field = self.field(term)
        if field is not None and field[1]:
            return False
        declared = self.declared(term)
        if declared is None or declared.optional:
            return False
        return is_plain(declared)

    def is_number(self, term: Ground) -> bool:
        """Return whether a term surely is a known number or time."""
        exact = self.is_exact(term) and self.kind(term) is not None
        return exact and not self.is_nullable(term)

    def is_nullable(self, term: Ground) -> bool:
        """Return whether a known value of a term may be null."""
        return any(isinstance(one.type, NullableType) for one in self.declarations(term))

    def may_lack(self, term: Ground) -> bool:
        """Return whether a term may be absent."""
        if term[0] in ("const", "time", "counted", "count", "sum", "+", "-", "*"):
            return term == constant(("none", None))
        declared = self.declared(term)
        return declared is None or declared.optional

    def is_argument(self, term: Ground) -> bool:
        """Return whether a term is an argument or a given attribute: known, or surely absent."""
        field = self.field(term)
        return self.declared(term) is not None and not (field is not None and field[1])

    def known(self, term: Ground) -> Formula:
        """That a term has a known value."""
        is_there = self.is_argument(term) and not self.may_lack(term)
        return is_there or self.is_exact(term) or self.lit("known", term)

    # Truths of conditions.

    def truth(self, condition: Ground, negative: bool, wanted: bool) -> Formula:
        """That a condition is surely true, or surely false.

        Args:
            negative: whether it is under an odd number of `not` and `no`.
        """
        match condition[0]:
            case "not":
                return self.truth(condition[1], not negative, not wanted)
            case "all" | "any":
                found = [self.truth(part, negative, wanted) for part in condition[1]]
                return both(found) if (condition[0] == "all") == wanted else either(found)
            case "isof":
                _, element, tools = condition
                is_in = element[0] == "call" and self.actors[element[1]].tool in tools
                return is_in == wanted
        if picks(condition):
            negative = negative and condition[0] in ("some", "every", "among")
            return self.lit("truth", condition, negative, wanted)
        match condition:
            case ("some", source):
                return self.exists(source, (), negative, wanted)
            case ("every", source, conditions):
                # No element for which the conditions are not surely true.
                return self.exists(
                    source, (("not", ("all", conditions)),), not negative, not wanted
                )
            case ("among", term, source) if term != NULL:
                equal = "compare", "=", ("bound", 0), (term,)
                exists = self.exists(source, (equal,), negative, wanted)
                return exists if wanted else both([self.known(term), exists])
            case ("present", of):
                if wanted:
                    return self.known(of)
                return self.may_lack(of) and self.lit("truth", condition, False, False)
            case ("compare", operator, left, options):
                found = [self.compared(operator, left, option, wanted) for option in options]
                return either(found) if wanted else both(found)
            case ("between", of, low, high):
                ends = [self.compared(">=", of, low, wanted), self.compared("<=", of, high, wanted)]
                return both(ends) if wanted else either(ends)
            case ("same", left, right):
                return self._same(left, right, wanted)
            case ("matches", of, pattern):
                return self._chosen([of], lambda one: self._matches(one, pattern, wanted))
            case ("under", of, scope):
                return self._chosen([of, scope], lambda one, two: self._under(one, two, wanted))
        return self.lit("truth", condition, negative, wanted)

    def exists(
        self, source: Ground, also: tuple[Ground, ...], negative: bool, wanted: bool
    ) -> Formula:
        """That a source surely has an element of which more conditions are true, or surely none."""
        found: list[Formula] = []
        for one in unrolled((*source[:3], (*source[3], *also), *source[4:])):
            base = one[2]
            is_list = base[0] in ("items", "pairs") and one[4] is None and not one[5]
            if is_list and MISSING in base[1:]:
                found.append(False)
            elif is_list or base[0] == "calls":
                asks = negative and (base[0] == "calls" or has_sources(one))
                found.append(self.lit("some" if wanted else "none", one, asks))
            else:
                found.append(self.lit("truth", ("some", one), negative, wanted))
        return either(found) if wanted else both(found)

    def _chosen(self, terms: Sequence[Ground], make: Callable[..., Formula]) -> Formula:
        """Make a formula of terms without `match`: an arm, and that it is the arm of its value.

        The formula has to be false if a term has no value.
        """
        chosen = next((one for one in map(choice, terms) if one is not None), None)
        if chosen is None or NULL in [test for tests, _ in chosen[2] for test in tests]:
            return make(*terms)
        _, of, arms, rest = chosen

        def having(term: Ground) -> Formula:
            def leaf(part: Ground, _: int) -> Ground | None:
                return term if part == chosen else part if part[0] == "source" else None

            return self._chosen([rewritten(one, leaf) for one in terms], make)

        found = having(rest[0]) if rest else False
        for tests, then in reversed(arms):
            is_it = either([self.compared("=", of, test, True) for test in tests])
            is_not = both([self.compared("=", of, test, False) for test in tests])
            found = either([both([is_it, having(then)]), both([is_not, found])])
        return found

    def all_of(self, conditions: Sequence[Ground], negative: bool, wanted: bool) -> Formula:
        """That all conditions are surely true, or that one is surely false."""
        found = [self.truth(one, negative, wanted) for one in conditions]
        return both(found) if wanted else either(found)

    def compared(self, operator: str, left: Ground, right: Ground, wanted: bool) -> Formula:
        """That a comparison is surely true, or surely false."""
        if operator == "=" and right == NULL:
            return self._null(left, wanted)
        return self._chosen(
            [left, right], lambda one, other: self._compared(operator, one, other, wanted)
        )

    def _compared(self, operator: str, left: Ground, right: Ground, wanted: bool) -> Formula:
        if left[0] == right[0] == "const":
            return meaning.compare(operator, left[1], right[1]) is wanted
        if any(one[0] == "const" and one[1][0] in NO_VALUE for one in (left, right)):
            return False
        if operator == "=":
            if left == right and self.is_exact(left):
                return wanted
            if wanted:
                return self.lit("eq", left, right)
            if self.is_exact(left) and self.is_exact(right):
                return opposite(self.lit("eq", left, right))
            return self.lit("ne", left, right)
        tag, mirrored = _MIRRORED[operator]
        if mirrored:
            left, right = right, left
        if wanted:
            return self.lit(tag, left, right)
        return self.lit("le" if tag == "lt" else "lt", right, left)

    def _null(self, of: Ground, wanted: bool) -> Formula:
        if of[0] == "const":
            return meaning.is_null(of[1]) is wanted
        declared = self.declared(of)
        is_there = self.is_argument(of) and not self.may_lack(of)
        if declared is not None and is_there and is_plain(declared) and not may_be_null(declared):
            return not wanted
        return self.lit("null" if wanted else "nonnull", of)

    def _same(self, left: Ground, right: Ground, wanted: bool) -> Formula:
        if not self.may_lack(left) and not self.may_lack(right):
            return self.compared("=", left, right, wanted)
        if left[0] == right[0] == "const":
            return meaning.same(left[1], right[1]) is wanted
        if wanted:
            return self.lit("same", left, right)
        return self.lit("differ", left, right)

    def _matches(self, of: Ground, pattern: str, wanted: bool) -> Formula:
        if of[0] == "const":
            return meaning.matches(of[1], pattern) is wanted
        if self.is_short(of, pattern):
            found = self.lit("match", of, pattern)
            return found if wanted else opposite(found)
        return self.lit("match" if wanted else "unmatch", of, pattern)

    def _under(self, of: Ground, scope: Ground, wanted: bool) -> Formula:
        if of[0] == scope[0] == "const":
            return meaning.under(of[1], scope[1]) is wanted
        declared = self.declared(of)
        letter = {PathType: "p", UrlType: "u"}.get(type(declared and declared.type))
        if scope[0] == "const" and scope[1][0] == letter and self.is_exact(of):
            found = self.lit("under", of, scope)
            return found if wanted else opposite(found)
        return self.lit("under" if wanted else "outside", of, scope)

    def is_short(self, of: Ground, pattern: str) -> bool:
        """Return whether a term surely is a text that can be compared with a pattern."""
        declared = self.declared(of)
        if declared is None or not isinstance(declared.type, TextType) or not self.is_exact(of):
            return False
        return declared.type.most * pattern_of(pattern).size <= MAX_STEPS

    # Members of sources.

    def member(
        self, source: Ground, call: int, negative: bool, sure: bool, answered: bool
    ) -> Formula:
        """That a call is surely in a source of calls, or maybe; the same of an element of a list.

        Args:
            answered: whether a call whose error was read is maybe in it.
        """
        _, (_, view), base, conditions, within, marks = source
        actor, this = self.actors[call], self.this(call)
        if actor.tool not in base[1] if base[0] == "calls" else actor.base != base:
            return False
        found: list[Formula] = []
        if base[0] == "calls":
            found.append(self.before(call, view))
        if base[0] == "calls" and sure:
            found.append(self.lit("done", this))
        elif base[0] == "calls":
            found.append(opposite(self.lit("failed", this)))
            found += [] if answered else [opposite(self.lit("answered", this))]
        for condition in conditions:
            inside = at_call(condition, this)
            truth = self.truth(inside, negative, sure)
            found.append(truth if sure else opposite(truth))
        if within is not None:
            start = ("-", ("time", ("call", view)), constant(("n", within)))
            found.append(self.lit("le", start, ("time", this)))
        found += [self.lit("clear", mark, this, negative, not sure) for mark in marks]
        return both(found)

    def is_open(self, statement: int, call: int) -> Formula:
        """That a call opens an obligation of a statement."""
        rule = self.rules[statement]
        if self.actors[call].tool not in (rule.tools or ()):
            return False
        this = ("call", call)
        where = [ground(one, {0: this, VIEW: this}) for one in rule.where]
        return both([
            opposite(self.lit("failed", this)),
            opposite(self.lit("answered", this)),
            opposite(self.all_of(where, False, False)),
        ])  # fmt: skip

    def pays(self, statement: int, call: int, payer: int) -> Formula:
        """That a call pays the obligation of another."""
        rule = self.rules[statement]
        if self.actors[payer].tool not in rule.pays:
            return False
        levels = {0: ("call", call), 1: ("call", payer), VIEW: ("call", call)}
        paying = [ground(one, levels) for one in rule.paying]
        return both([
            self.lit("done", ("call", payer)),
            self.before(call, payer),
            self.all_of(paying, False, True),
        ])  # fmt: skip

    def is_due(self, statement: int, call: int, view: int) -> Formula:
        """Return the formula that a call opens an obligation that is overdue at another call."""
        span = constant(("n", self.rules[statement].within))
        due = "+", ("time", ("call", call)), span
        late = self.lit("lt", due, ("time", ("call", view)))
        return both([self.is_open(statement, call), self.before(call, view), late])

    # Statements.

    def where(self, statement: int, call: int, negative: bool, wanted: bool) -> Formula:
        """That the filter of a statement is surely true for a call, or surely false."""
        this = ("call", call)
        conditions = [ground(one, {0: this, VIEW: this}) for one in self.rules[statement].where]
        return self.all_of(conditions, negative, wanted)

    def allows(self, statement: int, call: int) -> Formula:
        """That a statement lets a call through, or lets the session end."""
        rule = self.rules[statement]
        this = ("call", call)
        if rule.tools is None:
            if self.actors[call].tool is not None or rule.then is None:
                return True
            return self.truth(ground(rule.then, {VIEW: this}), False, True)
        if self.actors[call].tool not in rule.tools or rule.kind in ("ask", "total"):
            return True
        excluded = self.where(statement, call, True, False)
        if rule.kind == "owe":
            if rule.within is None:
                return True
            return either([excluded, self.lit("timely", statement, this)])
        if rule.kind == "forbid":
            return excluded
        levels = {0: this, VIEW: this}
        if rule.kind == "limit":
            idle = self.where(statement, call, False, False)
            amount = constant(("n", 1)) if rule.field is None else ("get", this, rule.field)
            total = ("+", amount, ("counted", statement, this))
            most = ground(rule.most, levels)
            within = self.truth(("compare", "<=", total, (most,)), False, True)
            return either([excluded, idle, within])
        if rule.then is None:
            return excluded
        return either([excluded, self.truth(ground(rule.then, levels), False, True)])


def has_sources(source: Ground) -> bool:
    """Return whether a source has marks, or another source in its conditions."""
    _, _, _, conditions, _, marks = source
    return bool(marks) or any(part[0] == "source" for one in conditions for part in parts(one))


def order(term: Ground) -> str:
    """A key that orders the two operands of a literal.

    It stays the same order if calls get other numbers in the same order.
    """
    return _CALL.sub(lambda found: f"{int(found[1]):09}", repr(term))


_CALL = re.compile(r"(?<=\('(?:call|item)', )([0-9]+)(?=\))")


def contradicts(literal: Ground) -> Ground | None:
    """Return the literal that contradicts a literal; None: there is no such literal."""
    match literal[0]:
        case "truth":
            return *literal[:3], not literal[3]
        case "lt":
            return "le", literal[2], literal[1]
        case "le":
            return "lt", literal[2], literal[1]
    found = _OPPOSITES.get(literal[0])
    return None if found is None else (found, *literal[1:])


_PAIRS = (
    ("eq", "ne"), ("same", "differ"), ("match", "unmatch"), ("null", "nonnull"), ("some", "none"),
    ("under", "outside"),
)  # fmt: skip
_OPPOSITES = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])}


def _list_type(declared: Field) -> ListType | None:
    kind = declared.type.of if isinstance(declared.type, NullableType) else declared.type
    return kind if isinstance(kind, ListType) else None


@cache
def is_plain(declared: Field) -> bool:
    """Return whether all values of a field are known to be equal or different."""
    if declared.type is None:
        return declared.values[-1:] != ("*",)
    return _is_plain(declared.type)


def may_be_null(declared: Field) -> bool:
    """Return whether null may be a value of a field."""
    if declared.type is None:
        return "null" in declared.values
    return isinstance(declared.type, NullableType | UnionType | JsonType)


@cache
def _is_plain(kind: Any) -> bool:
    match kind:
        case NullableType(of=of) | ListType(of=of):
            return _is_plain(of)
        case RecordType():
            return False
        case UnionType() | PathType() | UrlType():
            return True
    return isinstance(kind, TextType | NumberType | FlagType | TimeType | DateType | JsonType)


def _kind(declared: Field) -> str | None:
    kind = declared.type.of if isinstance(declared.type, NullableType) else declared.type
    match kind:
        case NumberType():
            return "n"
        case TimeType() | DateType():
            return "t"
        case None:
            values = [value for value in declared.values if value]
            whole = all(value.lstrip("-").replace(".", "").isdigit() for value in values)
            return "n" if whole and values else None
    return None


def calls_in(of: Ground) -> frozenset[int]:
    """The numbers of the calls, and of the elements of lists, that a ground object names."""
    return frozenset([part[1] for part in parts(of) if part[0] in ("call", "item")])
