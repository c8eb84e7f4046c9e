"""Rules of arguments: formulas that hold in every session that a branch describes.

A *witness* names a call, or an element of a list, that exists because a literal has a truth.  All
other rules add a formula that holds for the calls of a branch whatever the literals are.  A rule
takes numbers of literals and of calls, so a file cannot state another fact.
Cost: linear in the statement or the source that a rule instantiates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from tcc_certs.policy import meaning
from tcc_certs.policy.core import Learned
from tcc_certs.proof.ground import MISSING, Ground, at_call, constant, direct_parts, picked, picks
from tcc_certs.proof.scene import (
    Formula,
    Scene,
    both,
    either,
    has_sources,
    implies,
    is_plain,
    may_be_null,
    opposite,
)
from tcc_certs.values.declared import FlagType, PathType, TextType, UrlType
from tcc_certs.values.fields import Field, ListType, NullableType
from tcc_certs.values.places import NONE, UNKNOWN, listed_states, rest_of


class Wrong(Exception):
    """A rule does not apply to the literals, calls or statements of its step."""


class Case(NamedTuple):
    """A call that a witness adds, an element of a list, or nothing.

    Attributes:
        field: that the call teaches.
        base: of the list of the element.
    """

    tool: str | None
    view: int
    field: str = ""
    base: Ground | None = None


Make: TypeAlias = "Callable[[int | None], list[Formula]]"


# Witnesses.


def cases(scene: Scene, literal: Ground, truth: bool) -> list[Case]:
    """The calls that may be the witness of a literal with this truth.

    Raises:
        Wrong: the literal has no witness.
    """
    match literal:
        case ("some" | "none", (_, _, ("items" | "pairs", *_) as base, *_), _):
            if (literal[0] == "some") is not truth:
                raise Wrong
            element = Case(None, 0, base=base)
            is_there = truth or (base[0] == "items" and scene.is_argument(base[1]))
            return [element] if is_there else [element, Case(None, 0)]
        case ("some", source, _) if truth:
            return _cases_of(scene, source)
        case ("none", source, _) if not truth:
            return _cases_of(scene, source)
        case ("clear", mark, _, _, _) if not truth:
            return _cases_of(scene, mark)
        case ("latest", source, _, _) if not truth:
            return _cases_of(scene, source)
        case ("truth", condition, _, _) if not truth and picks(condition):
            return [*_cases_of(scene, picks(condition)[0]), Case(None, 0)]
        case ("settled" | "timely", statement, view) if not truth:
            return [
                Case(one, view[1])
                for one in scene.ordered(scene.rules[statement].tools or frozenset())
            ]
        case ("paid", statement, _, view) if truth:
            return [Case(one, view[1]) for one in scene.ordered(scene.rules[statement].pays)]
        case ("known", ("attr", name)) if truth:
            given = next((one for one in scene.policy.core.given if one.name == name), None)
            if isinstance(given, Learned):
                return [Case(tool, 0, field) for tool, field in given.sources]
    raise Wrong


def _cases_of(scene: Scene, source: Ground) -> list[Case]:
    _, (_, view), base, *_ = source
    if base[0] != "calls":
        raise Wrong
    return [Case(tool, view) for tool in scene.ordered(base[1])]


def enter(scene: Scene, case: Case) -> int | None:
    """Add the call or the element of a witness, and return its number; None: it has none."""
    if case.base is not None:
        return scene.enter_element(case.base)
    return None if case.tool is None else scene.enter(case.tool, case.view)


def witness(scene: Scene, literal: Ground, case: Case, call: int | None) -> Formula:
    """Return the formula that holds of the witness of a literal: `call`, or nothing."""
    this = None if call is None else scene.this(call)
    match literal:
        case ("some", source, negative):
            found = scene.member(source, _at(call), negative, True, False)
            if source[2][0] != "calls":
                return both([_is_known(scene, source), found])
            # The latest member that is surely in the source.
            return both([found, scene.lit("latest", source, negative, this)])
        case ("none", source, negative) if source[2][0] != "calls":
            if call is None:  # the list is not known, or two lists have different lengths
                return source[2][0] == "pairs" or opposite(_is_known(scene, source))
            member = scene.member(source, call, negative, False, negative)
            return both([_is_known(scene, source), member])
        case ("none", source, negative):
            return scene.member(source, _at(call), negative, False, negative)
        case ("clear", mark, one, negative, sure):
            member = scene.member(mark, _at(call), negative, sure, False)
            return both([member, opposite(scene.before(_at(call), one[1]))])
        case ("latest", source, negative, one):
            member = scene.member(source, _at(call), negative, True, False)
            return both([member, scene.before(one[1], _at(call))])
        case ("truth", condition, negative, wanted):
            source = picks(condition)[0]
            if this is None:
                lacks = opposite(scene.lit("some", source, False))
                inner = scene.truth(picked(condition, source, MISSING), negative, wanted)
                return both([lacks, opposite(inner)])
            inner = scene.truth(picked(condition, source, this), negative, wanted)
            member = scene.member(source, _at(call), False, False, False)
            return both([member, scene.lit("latest", source, False, this), opposite(inner)])
        case ("settled", statement, view):
            paid = scene.lit("paid", statement, this, view)
            return both([scene.is_open(statement, _at(call)), opposite(paid)])
        case ("timely", statement, view):
            paid = scene.lit("paid", statement, this, view)
            return both([scene.is_due(statement, _at(call), view[1]), opposite(paid)])
        case ("paid", statement, one, _):
            return scene.pays(statement, one[1], _at(call))
        case ("known", attribute):
            field = ("get", this, case.field)
            return both([scene.lit("done", this), scene.compared("=", field, attribute, True)])
    raise Wrong


def _is_known(scene: Scene, source: Ground) -> Formula:
    """That the lists of a source are known: they have an element."""
    return both([scene.known(of) for of in source[2][1:] if isinstance(of, tuple)])


def _at(call: int | None) -> int:
    if call is None:
        raise Wrong
    return call


def entered(scene: Scene, call: int) -> list[Formula]:
    """Return the formula that a call has at most one outcome.

    Only of a tool whose errors mean failed can an error be read that changed nothing.
    """
    done, failed, answered = [
        scene.lit(outcome, ("call", call)) for outcome in ("done", "failed", "answered")
    ]
    tool = scene.policy.core.tool_of.get(scene.actors[call].tool or "")
    never = tool is not None and not tool.errors_failed
    return [
        either([opposite(done), opposite(failed)]),
        either([opposite(done), opposite(answered)]),
        opposite(answered) if never else either([opposite(failed), opposite(answered)]),
    ]


def made(scene: Scene, call: int) -> Formula:
    """That a call may have had its effect: then a choice of the unknown outcomes has it."""
    this = ("call", call)
    done, failed, answered = [scene.lit(one, this) for one in ("done", "failed", "answered")]
    return either([done, both([opposite(failed), opposite(answered)])])


# Formulas of literals, for calls.


def use(scene: Scene, call: int, statement: int) -> Formula:
    """The policy lets a call through, or lets the session end."""
    if statement < 0 or statement not in scene.rules:
        raise Wrong
    return scene.allows(statement, call)


def settled(scene: Scene, statement: int, call: int) -> Formula:
    """A session that may end has no open obligation of a statement: of this call neither."""
    rule = scene.rules.get(statement)
    if rule is None or statement < 0 or rule.kind != "owe" or scene.actors[0].tool is not None:
        raise Wrong
    if call == 0:
        raise Wrong
    end = ("call", 0)
    paid = scene.lit("paid", statement, ("call", call), end)
    return implies(scene.is_open(statement, call), paid)


def first(scene: Scene, call: int) -> int:
    """Add the first call of the tool of a call, which is that call or an earlier one.

    Returns:
        its number.
    """
    actor = scene.actors[call]
    if actor.tool is None:
        raise Wrong
    return scene.enter_like(call)


def leads(scene: Scene, one: int, call: int) -> Formula:
    """No call of a tool is earlier than its first one."""
    if not scene.actors[one].is_first or scene.actors[one].tool != scene.actors[call].tool:
        raise Wrong
    return opposite(scene.before(call, one))


def at(scene: Scene, literal: Ground, call: int) -> Formula:
    """Return a universal literal for one call."""
    this = scene.this(call)
    lit = scene.lit(*literal)
    if this[0] == "item" and literal[0] not in ("some", "none"):
        raise Wrong
    match literal:
        case ("some", source, negative):
            member = scene.member(source, call, negative, True, False)
            return implies(opposite(lit), opposite(member))
        case ("none", source, negative):
            return implies(lit, opposite(scene.member(source, call, negative, False, negative)))
        case ("clear", mark, one, negative, sure):
            member = scene.member(mark, call, negative, sure, False)
            return implies(both([lit, member]), scene.before(call, one[1]))
        case ("latest", source, negative, one):
            member = scene.member(source, call, negative, True, False)
            return implies(both([lit, member]), opposite(scene.before(one[1], call)))
        case ("timely", statement, view):
            paid = scene.lit("paid", statement, this, view)
            return implies(both([lit, scene.is_due(statement, call, view[1])]), paid)
        case ("paid", statement, one, view):
            pays = both([scene.pays(statement, one[1], call), scene.before(call, view[1])])
            return implies(opposite(lit), opposite(pays))
        case ("truth", condition, negative, wanted) if picks(condition):
            source = picks(condition)[0]
            if source[2][0] != "calls":
                raise Wrong
            member = scene.member(source, call, False, False, False)
            inner = scene.truth(picked(condition, source, this), negative, wanted)
            latest = scene.lit("latest", source, False, this)
            return implies(both([lit, member, latest]), inner)
    raise Wrong


def missing(scene: Scene, literal: Ground) -> Formula:
    """Return the formula of a literal about a last element, for the case that it is missing."""
    match literal:
        case ("truth", condition, negative, wanted) if picks(condition):
            source = picks(condition)[0]
            inner = scene.truth(picked(condition, source, MISSING), negative, wanted)
            if source[2][0] == "calls":
                some = scene.lit("some", source, False)
            else:  # an element that is surely in the source, of which the condition is true
                found = picked(condition, source, ("bound", 0))
                also = () if condition[0] in _ASKED else (found if wanted else ("not", found),)
                some = scene.exists(source, also, False, True)
            return implies(scene.lit(*literal), either([some, inner]))
    raise Wrong


_ASKED = ("some", "every", "among")  # conditions whose truth depends on the `not`s around them


def _has_least(scene: Scene, of: Ground) -> bool:
    """Return whether a list has an element wherever it is known."""
    types = [one.type for one in scene.declarations(of)]
    return bool(types) and all(isinstance(one, ListType) and one.least for one in types)


def filled(scene: Scene, literal: Ground) -> Formula:
    """Relate a literal about the elements of a list to whether the list is known.

    A known list of a type with a least number of elements has an element.  An unknown list may have
    an element, unless a condition is false even of an unknown one.  If pairs surely have
    no element of some kind, both lists are known.
    """
    match literal:
        case ("none", ("source", view, ("pairs", left, right) as base, *_), _):
            plain = scene.lit("some", ("source", view, base, (), None, ()), False)
            is_there = [both([scene.known(of), _has_least(scene, of)]) for of in (left, right)]
            return implies(both([scene.lit(*literal), either(is_there)]), plain)
        case ("some" | "none", ("source", view, ("items", of, _) as base, filters, *_), negative):
            found: list[Formula] = []
            if _has_least(scene, of):
                plain = "source", view, base, (), None, ()
                found.append(implies(scene.known(of), scene.lit("some", plain, False)))
            if literal[0] == "none":
                unknown = [at_call(one, constant(UNKNOWN)) for one in filters]
                never = scene.all_of(unknown, negative, False)
                absent = scene.may_lack(of) and scene.lit("null", of)
                found.append(implies(scene.lit(*literal), either([scene.known(of), absent, never])))
            return both(found)
    raise Wrong


# Formulas of literals alone.


def operands(literal: Ground) -> list[Ground]:
    """The terms that a literal compares."""
    if literal[0] in ("eq", "ne", "lt", "le", "same", "differ", "under", "outside"):
        return list(literal[1:])
    if literal[0] in ("match", "unmatch"):
        return [literal[1]]
    return []


def knows(scene: Scene, literal: Ground) -> Formula:
    """A comparison is sure only of values that are known."""
    if literal[0] not in ("eq", "ne", "lt", "le", "match", "unmatch", "under", "outside"):
        raise Wrong
    known = [scene.known(term) for term in operands(literal)]
    return implies(scene.lit(*literal), both(known))


def sure(scene: Scene, literal: Ground) -> Formula:
    """Two known values of plain types are equal or different."""
    match literal:
        case ("eq" | "ne", left, right):
            if not _is_plain(scene, left) or not _is_plain(scene, right):
                raise Wrong
            known = both([scene.known(left), scene.known(right)])
            equal, apart = scene.lit("eq", left, right), scene.lit("ne", left, right)
            return implies(known, either([equal, apart]))
        case ("same" | "differ", left, right):
            if not scene.is_argument(left) or not scene.is_argument(right):
                raise Wrong
            if not _is_plain(scene, left) or not _is_plain(scene, right):
                raise Wrong
            return either([scene.lit("same", left, right), scene.lit("differ", left, right)])
    raise Wrong


def _is_plain(scene: Scene, term: Ground) -> bool:
    if term[0] == "attr":
        return all(map(is_plain, scene.declarations(term)))
    declared = scene.declared(term)
    return scene.is_exact(term) or (declared is not None and is_plain(declared))


def same(scene: Scene, literal: Ground) -> Formula:
    """Of two terms that have values, `same` is equality."""
    match literal:
        case ("same" | "differ" | "eq" | "ne", left, right):
            known = both([scene.known(left), scene.known(right)])
            equal = implies(scene.lit("same", left, right), scene.lit("eq", left, right))
            alike = implies(scene.lit("eq", left, right), scene.lit("same", left, right))
            apart = implies(scene.lit("ne", left, right), scene.lit("differ", left, right))
            differ = implies(scene.lit("differ", left, right), scene.lit("ne", left, right))
            return both([implies(known, both([equal, differ])), alike, apart])
    raise Wrong


def apart(scene: Scene, literal: Ground) -> Formula:
    """Two different numbers are in order, and of two known numbers one of three is true."""
    match literal:
        case ("eq" | "ne" | "lt" | "le", left, right):
            if scene.kind(left) is None or scene.kind(left) != scene.kind(right):
                raise Wrong
            if scene.is_nullable(left) or scene.is_nullable(right):
                raise Wrong
            less, more = scene.lit("lt", left, right), scene.lit("lt", right, left)
            found: list[Formula] = []
            if scene.is_exact(left) and scene.is_exact(right):
                found.append(either([scene.lit("eq", left, right), less, more]))
            else:
                found.append(implies(scene.lit("ne", left, right), either([less, more])))
                known = both([scene.known(left), scene.known(right)])
                if _has_values(scene, left) and _has_values(scene, right):
                    equal = scene.lit("eq", left, right)
                    found.append(implies(known, either([equal, less, more])))
            return both(found)
    raise Wrong


def _has_values(scene: Scene, term: Ground) -> bool:
    """Return whether a known value of a term is one number, and no interval."""
    return scene.is_exact(term) or scene.declared(term) is not None


def domain(scene: Scene, literal: Ground, position: int) -> Formula:
    """A term has one of the values of its type, is absent, or is unknown."""
    terms = operands(literal)
    if not 0 <= position < len(terms):
        raise Wrong
    term = terms[position]
    declared = scene.declared(term)
    if declared is None:
        raise Wrong
    found: list[Formula] = []
    for state in _values(declared):
        if state == NONE:
            continue
        if state[0] == "*":
            others = [
                both([scene.compared("=", term, constant(one), False),
                      opposite(scene.compared("=", term, constant(one), True))])
                for one in sorted(rest_of(declared.values)[1], key=repr)
            ]  # fmt: skip
            found.append(both([*others, scene.lit("known", term)]))
        else:
            found.append(scene.compared("=", term, constant(state), True))
    if not scene.is_argument(term):
        found.append(opposite(scene.lit("known", term)))
    elif scene.may_lack(term):
        found.append(both([opposite(scene.lit("known", term)), scene.lit("null", term)]))
    return either(found)


def _values(declared: Field) -> Sequence[Any]:
    kind = declared.type
    if kind is None:
        return listed_states(declared)
    if isinstance(kind, NullableType):
        return [("z", None), *_values(Field(name="", steps=(), type=kind.of))]
    if isinstance(kind, FlagType):
        return [("b", False), ("b", True)]
    if isinstance(kind, TextType) and kind.among:
        return [("s", text) for text in kind.among]
    raise Wrong


def scoped(scene: Scene, literal: Ground) -> Formula:
    """A known path or URL is under the directory or scope of its type."""
    match literal:
        case ("under" | "outside" | "eq" | "ne" | "match" | "unmatch", *_):
            found: list[Formula] = []
            for term in operands(literal):
                declared = None if term[0] == "const" else scene.declared(term)
                kind = None if declared is None else declared.type
                if isinstance(kind, PathType | UrlType) and kind.under is not None:
                    scope = constant(("p" if isinstance(kind, PathType) else "u", kind.under))
                    found.append(implies(scene.known(term), scene.lit("under", term, scope)))
            return both(found)
    raise Wrong


def nested(scene: Scene, literal: Ground, other: Ground) -> Formula:
    """Relate two `under` literals of one term: nested scopes imply, separate scopes exclude."""
    match literal, other:
        case (
            ("under" | "outside", term, ("const", one)),
            ("under" | "outside", second, ("const", two)),
        ) if term == second and one[0] == two[0]:
            under = scene.lit("under", term, literal[2])
            if meaning.under(one, two) is True:
                is_out = scene.lit("outside", term, other[2])
                inner_out = scene.lit("outside", term, literal[2])
                around = implies(under, scene.lit("under", term, other[2]))
                return both([around, implies(is_out, inner_out)])
            # A host with a wildcard may have URLs in common with a longer path of another host.
            is_wild = one[0] == "u" and any("//*." in state[1] for state in (one, two))
            if meaning.under(one, two) is meaning.under(two, one) is False and not is_wild:
                return implies(under, scene.lit("outside", term, other[2]))
    raise Wrong


def absent(scene: Scene, literal: Ground) -> Formula:
    """A known argument is not absent, and an argument that is not null has a value."""
    if literal[0] not in ("null", "nonnull"):
        raise Wrong
    term = literal[1]
    declared = scene.declared(term) if scene.is_argument(term) else None
    if declared is None or not is_plain(declared):
        raise Wrong
    null, nonnull = scene.lit("null", term), scene.lit("nonnull", term)
    found = [implies(nonnull, scene.lit("known", term)), either([null, nonnull])]
    if not may_be_null(declared):
        found.append(implies(null, opposite(scene.lit("known", term))))
    return both(found)


def count(scene: Scene, literal: Ground, position: int) -> Formula:
    """A count is at least 1 if a call is surely counted, and 0 if no call may be."""
    counts = [part for part in direct_parts(literal) if part[0] == "count" and not part[2]]
    if not 0 <= position < len(counts):
        raise Wrong
    return _counted(scene, counts[position][1])


def counts(scene: Scene, literal: Ground) -> Formula:
    """The same of a source that is empty or not."""
    if literal[0] not in ("some", "none"):
        raise Wrong
    return _counted(scene, literal[1])


def _counted(scene: Scene, source: Ground) -> Formula:
    is_one = source[2][0] in ("calls", "items", "pairs")
    if not is_one or MISSING in source[2] or picks(source):
        raise Wrong
    term = ("count", source, False)
    one, zero = constant(("n", 1)), constant(("n", 0))
    some, none = scene.lit("some", source, False), scene.lit("none", source, False)
    at_least, at_most = scene.lit("le", one, term), scene.lit("le", term, zero)
    return both([
        implies(some, at_least), implies(at_least, some),
        implies(none, at_most), implies(at_most, none),
    ])  # fmt: skip


def polarity(scene: Scene, literal: Ground) -> Formula:
    """Under `no` a source may also have calls whose errors were read."""
    match literal:
        case ("some" | "none", source, _) if source[2][0] == "calls" and not has_sources(source):
            found = []
            some = scene.lit("some", source, False), scene.lit("some", source, True)
            found += [implies(some[0], some[1]), implies(some[1], some[0])]
            none = scene.lit("none", source, False), scene.lit("none", source, True)
            found.append(implies(none[1], none[0]))
            tools = [scene.policy.core.tool_of[tool] for tool in source[2][1]]
            if not any(tool.errors_failed for tool in tools):  # no error of theirs can be read
                found.append(implies(none[0], none[1]))
            return both(found)
    raise Wrong


def includes(inner: Ground, outer: Ground) -> bool:
    """Return whether every member of a source surely is a member of another, by their texts."""
    _, view, base, conditions, within, marks = inner
    _, other_view, other_base, other_conditions, other_within, other_marks = outer
    if view != other_view or base[0] != "calls" or other_base[0] != "calls":
        return False
    if other_within is not None and (within is None or within > other_within):
        return False
    return (
        set(base[1]) <= set(other_base[1])
        and set(other_conditions) <= set(conditions)
        and set(other_marks) <= set(marks)
    )


def include(scene: Scene, literal: Ground, other: Ground) -> Formula:
    """A source that has fewer members than another is empty if the other one is."""
    match literal, other:
        case ("some" | "none", inner, negative), ("some" | "none", outer, polarity_of):
            if negative != polarity_of or not includes(inner, outer):
                raise Wrong
            some = implies(scene.lit("some", inner, negative), scene.lit("some", outer, negative))
            none = implies(scene.lit("none", outer, negative), scene.lit("none", inner, negative))
            return both([some, none])
    raise Wrong


def ordered(scene: Scene, one: int, two: int, three: int) -> Formula:
    """Return the formula that the order of three calls is transitive."""
    premise = both([scene.before(one, two), scene.before(two, three)])
    return implies(premise, scene.before(one, three))


def distinct(scene: Scene, one: int, two: int) -> Formula:
    """Of two calls of different tools one is earlier."""
    if scene.actors[one].tool == scene.actors[two].tool:
        raise Wrong
    return either([scene.before(one, two), scene.before(two, one)])


LEMMAS: Mapping[str, Callable[[Scene, Ground], Formula]] = {
    "knows": knows,
    "sure": sure,
    "same": same,
    "apart": apart,
    "absent": absent,
    "polarity": polarity,
    "counts": counts,
    "missing": missing,
    "filled": filled,
    "scoped": scoped,
}
