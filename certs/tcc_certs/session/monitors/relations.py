"""Sets of calls, terms and relations of version 1.2, compiled to functions of three values.

Normative text: docs/spec/core.md, section 7.  A field is a value, none or unknown; a relation is
True, False or None for unsure.  Of two kinds that have no order nothing is sure, so that a
statement which no checker should have passed lets nothing through.
Cost: a relation its terms; one over a list its elements, of which there are at most 1,000; one over
lists inside of lists at most 2^20 times, where what depends on no element is found once.  A call
counts what was asked for it, so that whoever asks of many calls knows when to stop.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import repeat
from operator import eq, ge, gt, itemgetter, le, lt, ne
from typing import Any, TypeAlias

from tcc_certs.core.policies import Tree
from tcc_certs.session.monitors.keyed import Event, Truth
from tcc_certs.values.places import NONE, REST, UNKNOWN, State, constant, exact_number, literal
from tcc_certs.values.text_pattern import like_of, likes_of, pattern_of

Names: TypeAlias = "Mapping[str, State]"
Term: TypeAlias = "Callable[[Event, Event, Names], State]"  # of the call, the earlier one, elements
Relation: TypeAlias = "Callable[[Event, Event, Names], Truth]"
LACKING = (NONE, UNKNOWN)
VAGUE = frozenset(["none", "unknown", "*"])  # kinds of which nobody knows the value
_IT = frozenset(["it"])
_LOCAL = frozenset(["it", "as"])
_MADE = frozenset(["count", "look", "max", "sum"])  # terms that take more than a look-up to find
DIGESTED = "#"  # the kind of a value of which a ledger has the digest alone
MAX_WAYS = 1 << 20  # ways to choose an element of each list inside of which a relation stands
NO_NAMES: Names = {}


# Three values.


def both(parts: Iterable[Truth]) -> Truth:
    """False if one part is, else unsure if one is."""
    found: Truth = True
    for part in parts:
        if part is False:
            return False
        found = found if part else None
    return found


def either(parts: Iterable[Truth]) -> Truth:
    """True if one part is, else unsure if one is."""
    found: Truth = False
    for part in parts:
        if part is True:
            return True
        found = None if part is None else found
    return found


def same(one: State, other: State) -> Truth:
    """Whether two states are one value; what is not listed may be any value but those."""
    if one[0] in VAGUE or other[0] in VAGUE:
        if one in LACKING or other in LACKING:
            return None
        (_, listed), value = (one, other) if one[0] == "*" else (other, one)
        return False if value in listed else None
    return one == other


def _opposite(one: Truth) -> Truth:
    return None if one is None else not one


def _differ(one: State, other: State) -> Truth:
    return _opposite(same(one, other))


# Sets, terms and relations, compiled.


def compiled_set(calls: Tree) -> Callable[[Event], Truth]:
    """Whether a call is in a set."""
    match calls:
        case ("calls", tool, where):
            bound = [(name, frozenset(map(constant, texts))) for name, texts in where]

            def among(call: Event) -> Truth:
                if call.tool != tool:
                    return False
                found: Truth = True
                for name, values in bound:
                    state = call.states[name]
                    if state == UNKNOWN:
                        found = None
                    elif (REST if state[0] == "*" else state) not in values:
                        return False
                return found

            return among
        case ("or", sets):
            some = [compiled_set(one) for one in sets]
            return lambda call: either([one(call) for one in some])
        case ("but", one, other):
            base, less = compiled_set(one), compiled_set(other)
            return lambda call: both([base(call), _opposite(less(call))])
        case _:
            return lambda call: True


def compiled_term(tree: Tree) -> Term:
    """What a term is."""
    made = tree[0] in _MADE or (tree[0] in ("own", "seen") and len(tree) > 2)
    term = _compiled_term(tree)
    return _once(term) if made and not speaks_of(tree, _LOCAL) else term


def _compiled_term(tree: Tree) -> Term:
    match tree:
        case ("s" | "n" | "b" | "z" | "ms", *_):
            return _constant(literal(tree))
        case ("list", items):
            return _constant(("l", tuple(map(literal, items))))
        case ("own", name):
            return lambda own, seen, names: own.states[name]
        case ("seen", name):
            return lambda own, seen, names: seen.states[name]
        case ("own" | "seen" as side, name, part):
            whole = compiled_term((side, name))
            return lambda own, seen, names: _column(whole(own, seen, names), part)
        case ("it",):
            return lambda own, seen, names: names["it"]
        case ("as", name):
            alias = _alias(name)
            return lambda own, seen, names: names[alias]
        case ("as", name, part):
            alias = _alias(name)
            return lambda own, seen, names: _cell(names[alias], part)
        case ("session", name):
            return lambda own, seen, names: own.session.get(name, UNKNOWN)
        case ("now",):
            return lambda own, seen, names: ("t", own.stamp)
        case ("max", one, other):
            return _greater(compiled_term(one), compiled_term(other))
        case ("sum", items):
            return _sum([(exact_number(factor), compiled_term(one)) for factor, one in items])
        case ("look", name, keys, of, *read):
            return _looked_up(name, [compiled_term(key) for key in keys], of, bool(read))
        case ("count", of):
            many = compiled_term(of)

            def count(own: Event, seen: Event, names: Names) -> State:
                found = many(own, seen, names)
                if found[0] == "l":
                    return "n", len(found[1])
                return found if found in LACKING else UNKNOWN

            return count
        case ("count", of, relation):
            return _counted(compiled_term(of), relation)
    return _constant(UNKNOWN)


def _looked_up(name: str, keys: Sequence[Term], of: str, read: bool) -> Term:
    def looked_up(own: Event, seen: Event, names: Names) -> State:
        if own.look is None:
            return UNKNOWN
        return own.look(own, name, tuple([key(own, seen, names) for key in keys]), of, read)

    return looked_up


def _inside(own: Event, names: Names, count: int) -> Names | None:
    """The names for relations over a list of `count`; None: there are too many ways to choose."""
    if _WAYS not in names:
        names = {_WAYS: ("n", 1), _FOUND: ("found", {})}
    ways: int = names[_WAYS][1] * count
    if ways > MAX_WAYS:
        return None
    own.asked += count
    return {**names, _WAYS: ("n", ways)}


_WAYS, _FOUND = "", " "  # no elements have these names


def _once(term: Term) -> Term:
    """A term that does not depend on elements: it is found for the first one of them."""

    def found(own: Event, seen: Event, names: Names) -> State:
        kept = names.get(_FOUND)
        if kept is None:
            return term(own, seen, names)
        if term not in kept[1]:
            kept[1][term] = term(own, seen, names)
        state: State = kept[1][term]
        return state

    return found


def _alias(name: str) -> str:
    """What an element is kept under that has a name: an element without one is ``it``."""
    return f"as {name}"


def _constant(state: State) -> Term:
    return lambda own, seen, names: state


def _cell(record: State, name: str) -> State:
    if record[0] != "r":
        return NONE if record == NONE else UNKNOWN
    found: State = dict(record[1]).get(name, UNKNOWN)
    return found


def _column(records: State, name: str) -> State:
    if records in LACKING:
        return records
    cells = [_cell(one, name) for one in records[1]] if records[0] == "l" else [UNKNOWN]
    lacking = next((cell for cell in cells if cell in LACKING), None)
    return ("l", tuple(cells)) if lacking is None else lacking


def _greater(one: Term, other: Term) -> Term:
    def greater(own: Event, seen: Event, names: Names) -> State:
        left, right = one(own, seen, names), other(own, seen, names)
        if left in LACKING:
            return left
        if right in LACKING or left[0] != right[0] or left[0] not in ("n", "t"):
            return right if right in LACKING else UNKNOWN
        return left if left[1] >= right[1] else right

    return greater


def _sum(parts: Sequence[tuple[int | Fraction, Term]]) -> Term:
    def total(own: Event, seen: Event, names: Names) -> State:
        found: int | Fraction = 0
        times: int | Fraction = 0
        for factor, term in parts:
            state = term(own, seen, names)
            kind, value = state
            if kind == "t":
                times += factor
            elif kind != "n":
                return state if state in LACKING else UNKNOWN
            found += factor * value
        if isinstance(found, Fraction) and found.denominator == 1:
            found = found.numerator
        if times == 1:
            return "t", found
        return ("n", found) if times == 0 else UNKNOWN

    return total


def _counted(of: Term, relation: Tree) -> Term:
    holds = _of_elements([(of, "it")], [relation])

    def count(own: Event, seen: Event, names: Names) -> State:
        many = of(own, seen, names)
        if many in LACKING or many[0] != "l":
            return many if many in LACKING else UNKNOWN
        within = _inside(own, names, len(many[1]))
        if within is None:
            return UNKNOWN
        found = holds(own, seen, within, [many[1]])
        return UNKNOWN if None in found else ("n", sum(map(bool, found)))

    return count


_kind = itemgetter(0)
ORDERS = {"<": lt, "<=": le, ">": gt, ">=": ge}
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def compiled_relation(tree: Tree) -> Relation:
    """Whether a relation holds."""
    match tree:
        case ("=" | "!=" as op, one, other):
            left, right = compiled_term(one), compiled_term(other)
            agree = same if op == "=" else _differ
            return lambda own, seen, names: agree(left(own, seen, names), right(own, seen, names))
        case ("<" | "<=" | ">" | ">=" as op, one, other):
            return _ordered(ORDERS[op], compiled_term(one), compiled_term(other))
        case ("in" | "not in" as op, one, other):
            return _among(compiled_term(one), _members(other), op == "not in")
        case ("~" | "!~" as op, one, pattern):
            return _like(compiled_term(one), pattern, op == "!~")
        case ("?", inner):
            left, whole = compiled_term(inner[1]), compiled_relation(inner)
            return lambda own, seen, names: (
                True if left(own, seen, names) == NONE else whole(own, seen, names)
            )
        case ("every", of, ("in" | "not in" as op, ("it",), many)) if not speaks_of(many, _IT):
            return _every_among(compiled_term(of), _members(many), op == "not in")
        case ("every", of, inner):
            return _group(True, [(compiled_term(of), "it")], [inner])
        case ("all" | "some" as word, lists, inner):
            named = [(compiled_term(one), _alias(name)) for one, name in lists]
            return _group(word == "all", named, inner)
    return lambda own, seen, names: None


def _ordered(holds: Callable[[Any, Any], bool], one: Term, other: Term) -> Relation:
    def ordered(own: Event, seen: Event, names: Names) -> Truth:
        (kind, left), (other_kind, right) = one(own, seen, names), other(own, seen, names)
        # A reader takes no other order; were there one, it would be sure of nothing.
        return holds(left, right) if kind == other_kind and kind in ("n", "t") else None

    return ordered


_Members: TypeAlias = "Callable[[Event, Event, Names], Collection[State] | None]"


def _members(many: Tree) -> _Members:
    """The elements of a list in which others are looked for; None: it is not known.

    Inside of lists one that depends on an element counts as one of them, and another one is a set.
    """
    of, depends = compiled_term(many), speaks_of(many, _LOCAL)

    def members(own: Event, seen: Event, names: Names) -> Collection[State] | None:
        kind, items = of(own, seen, names)
        if kind != "l":
            return None
        kept: dict[object, Any] | None = names[_FOUND][1] if _FOUND in names else None
        if depends and kept is not None and _inside(own, names, len(items)) is None:
            return None
        if kept is not None and not depends:
            items = kept[members] = kept.get(members) or frozenset(items)
        found: Collection[State] = items
        return found

    return members


def _among(one: Term, many: _Members, negated: bool) -> Relation:
    def among(own: Event, seen: Event, names: Names) -> Truth:
        left, items = one(own, seen, names), many(own, seen, names)
        if left in LACKING or items is None:
            return None
        if left[0] == "*":
            found = either([same(left, item) for item in items])
        else:
            found = left in items or (None if UNKNOWN in items or NONE in items else False)
        return _opposite(found) if negated else found

    return among


def _every_among(of: Term, many: _Members, negated: bool) -> Relation:
    """``every LIST in LIST``, in the length of both: the second is made a set once."""

    def every(own: Event, seen: Event, names: Names) -> Truth:
        left, items = of(own, seen, names), many(own, seen, names)
        if left[0] != "l":
            return None
        if items is None:
            return None if left[1] else True
        if _FOUND in names and _inside(own, names, len(left[1])) is None:
            return None
        values = frozenset(items)
        lacks = None if any(one in values for one in LACKING) else False
        each = [None if item in LACKING else (item in values or lacks) for item in left[1]]
        return both(map(_opposite, each) if negated else each)

    return every


def _like(one: Term, source: str, negated: bool) -> Relation:
    matches = _asked(source)

    def like(own: Event, seen: Event, names: Names) -> Truth:
        kind, value = one(own, seen, names)
        if kind in VAGUE:
            return None
        if kind == DIGESTED:
            holds = own.marks.get((source, value))
        else:
            holds = matches(own, names, value) if kind == "s" else False
        return _opposite(holds) if negated else holds

    return like


def _asked(source: str) -> Callable[[Event, Names, str], Truth]:
    """Whether a text matches: inside of lists each text is asked once."""
    matches, size = like_of(source), pattern_of(source).size

    def asked(own: Event, names: Names, text: str) -> Truth:
        kept: dict[Any, Truth] = names[_FOUND][1] if _FOUND in names else {}
        if (source, text) not in kept:
            own.asked += len(text) * size >> 6
            kept[source, text] = matches(text)
        return kept[source, text]

    return asked


# Relations about elements: a truth for each, of pairs the elements at the same places.

_Elements: TypeAlias = "Sequence[Sequence[State]]"  # for each list its elements, as many in each
_Each: TypeAlias = "Callable[[Event, Event, Names, _Elements], Sequence[Truth]]"


def _group(every: bool, lists: Sequence[tuple[Term, str]], relations: Sequence[Tree]) -> Relation:
    holds = _of_elements(lists, relations, alone=len(relations) == 1)

    def group(own: Event, seen: Event, names: Names) -> Truth:
        found = [of(own, seen, names) for of, _ in lists]
        if found[0][0] != "l" or found[-1][0] != "l":
            return None
        if len(found[0][1]) != len(found[-1][1]):
            return False
        within = _inside(own, names, len(found[0][1]))
        if within is None:
            return None
        truths = holds(own, seen, within, [many[1] for many in found])
        return (not every) if (not every) in truths else None if None in truths else every

    return group


def _of_elements(
    lists: Sequence[tuple[Term, str]], relations: Sequence[Tree], *, alone: bool = False
) -> _Each:
    """Whether all relations hold, of each element or pair; `alone`: each truth once is enough."""
    names = [name for _, name in lists]
    parts = [_of_each(one, names, alone) or _one_by_one(one, names) for one in relations]
    if len(parts) == 1:
        return parts[0]

    def each(own: Event, seen: Event, outer: Names, items: _Elements) -> Sequence[Truth]:
        found = [part(own, seen, outer, items) for part in parts]
        return [both(truths) for truths in zip(*found, strict=True)]

    return each


def _one_by_one(tree: Tree, names: Sequence[str]) -> _Each:
    relation = compiled_relation(tree)

    def each(own: Event, seen: Event, outer: Names, items: _Elements) -> Sequence[Truth]:
        return [
            relation(own, seen, {**outer, **dict(zip(names, one, strict=True))})
            for one in zip(*items, strict=True)
        ]

    return each


def _of_each(tree: Tree, names: Sequence[str], alone: bool) -> _Each | None:
    """The same of one simple relation, whose other side is made once; None of other ones."""
    op, *sides = tree
    if op in ("~", "!~"):
        at = _element(sides[0], names)
        return None if at is None else _each_like(at, sides[1], op == "!~")
    if op not in ("=", "!=", *ORDERS):
        return None
    at, other = _element(sides[0], names), _element(sides[1], names)
    if at is not None and other is not None:
        return _each_pair(at, other, op)
    if at is None:
        at, sides, op = other, sides[::-1], str(FLIPPED.get(op, op))
    if at is None or _depends(sides[1], names):
        return None
    due = compiled_term(sides[1])
    if op in ORDERS:
        return _each_ordered(at, ORDERS[op], due)
    return _each_equal(at, due, op == "!=", alone)


def _depends(tree: object, names: Sequence[str]) -> bool:
    """Whether a term speaks of elements with these names; those of lists around them are fixed."""
    if not isinstance(tree, tuple):
        return False
    named = tree == ("it",) or (tree[:1] == ("as",) and _alias(tree[1]) in names)
    return named or any(_depends(part, names) for part in tree)


_Column: TypeAlias = "Callable[[_Elements], Sequence[State]]"


def _element(term: Tree, names: Sequence[str]) -> _Column | None:
    """The elements that a term speaks of, or a field of each; None of other terms."""
    name = "it" if term == ("it",) else _alias(term[1]) if term[0] == "as" else ""
    if name not in names:
        return None
    at = names.index(name)
    if len(term) < 3:
        return lambda items: items[at]
    return lambda items: [_cell(item, term[2]) for item in items[at]]


def _each_equal(of: _Column, due: Term, negated: bool, alone: bool) -> _Each:
    def each(own: Event, seen: Event, outer: Names, items: _Elements) -> Sequence[Truth]:
        other, column = due(own, seen, outer), of(items)
        if other[0] in VAGUE or not VAGUE.isdisjoint(map(_kind, column)):
            agree = _differ if negated else same
            return [agree(one, other) for one in column]
        if alone:
            count = column.count(other)
            return [negated] * (count < len(column)) + [not negated] * (count > 0)
        return list(map(ne if negated else eq, column, repeat(other)))

    return each


def _each_pair(one: _Column, other: _Column, op: str) -> _Each:
    holds = ORDERS.get(op)

    def each(own: Event, seen: Event, outer: Names, items: _Elements) -> Sequence[Truth]:
        pairs = zip(one(items), other(items), strict=True)
        if holds is not None:
            return [
                holds(x[1], y[1]) if x[0] == y[0] and x[0] in ("n", "t") else None for x, y in pairs
            ]
        agree = _differ if op == "!=" else same
        return [agree(x, y) for x, y in pairs]

    return each


def _each_ordered(of: _Column, holds: Callable[[Any, Any], bool], due: Term) -> _Each:
    def each(own: Event, seen: Event, outer: Names, items: _Elements) -> Sequence[Truth]:
        kind, value = due(own, seen, outer)
        if kind not in ("n", "t"):
            return [None] * len(items[0])
        return [holds(v, value) if k == kind else None for k, v in of(items)]

    return each


def _each_like(of: _Column, source: str, negated: bool) -> _Each:
    matches, ask, size = likes_of(source), _asked(source), pattern_of(source).size

    def each(own: Event, seen: Event, outer: Names, items: _Elements) -> Sequence[Truth]:
        marks, column = own.marks, of(items)
        texts = [v for k, v in column if k == "s"]
        if outer[_WAYS][1] > len(column):  # it is asked of these elements more than once
            found: Sequence[Truth] = [ask(own, outer, text) for text in texts]
        else:
            found = matches(texts)
            own.asked += sum(map(len, texts)) * size >> 6
        if len(texts) < len(column):
            each_text = iter(found)
            found = [
                next(each_text)
                if k == "s"
                else marks.get((source, v))
                if k == DIGESTED
                else None
                if k in VAGUE
                else False
                for k, v in column
            ]
        return [_opposite(one) for one in found] if negated else found

    return each


def speaks_of(tree: object, words: frozenset[str]) -> bool:
    """Whether a term or a relation has a part of one of these kinds."""
    if not isinstance(tree, tuple):
        return False
    return (bool(tree) and tree[0] in words and tree[0] != "") or any(
        speaks_of(part, words) for part in tree
    )
