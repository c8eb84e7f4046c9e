"""Ground objects: conditions, terms and sources that name calls in place of elements.

An argument of a proof speaks of a few calls, by numbers.  Call 0 is the call that would break the
question (or the end of the session), and every other call is earlier.  A ground object is a nested
tuple, so that two statements that ask the same of the same call share one object:

- ``("call", n)`` is a call, ``("item", n)`` an element of a list, and ``("bound", d)`` the element
  of the d-th source around it, from 0;
- ``("const", state)``, ``("get", of, field)``, ``("attr", name)``, ``("time", call)`` (when this
  call was decided), ``("last", source)``, ``("count", source, distinct)``,
  ``("sum", source, term)``, ``("extreme", source, greatest)``, ``("clock", function, term, zone)``,
  ``("host", url)``, ``("choose", ..)``, and ``("+", a, b)`` with the other operators of arithmetic,
  are terms;
- ``("source", view, base, conditions, within, marks)`` has the calls before `view` of a base;
- ``("present", term)`` says that a term is not absent.

Cost: linear in the form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from tcc_certs.policy import forms
from tcc_certs.values.places import State

Ground: TypeAlias = "tuple[Any, ...]"
Levels: TypeAlias = "Mapping[int, Ground | int]"  # a ground element, or the place of a binder

MISSING: Ground = ("const", ("missing", None))
VIEW = -1  # in `Levels`: the call before which sources look
_COMPUTED = frozenset({"+", "-", "*", "min", "max", "get", "clock", "host"})
PAIRED = frozenset({"eq", "ne", "same", "differ"})  # tags whose two operands have no order


def constant(state: State) -> Ground:
    """The ground term of a value."""
    return "const", state


def ground(form: Any, levels: Levels, depth: int = 0) -> Ground:
    """Return the ground object of a condition or a term.

    Args:
        levels: the ground terms of elements of free levels, and under `VIEW` the deciding call.
        depth: how many sources are around the form.
    """

    def inner(part: Any) -> Ground:
        return ground(part, levels, depth)

    match form:
        case forms.Constant(state):
            return constant(state)
        case forms.Element(level):
            found = levels[level]
            return found if isinstance(found, tuple) else ("bound", depth - 1 - found)
        case forms.Get(of, name):
            return "get", inner(of), name
        case forms.CallOf(of):
            element = inner(of)
            return element if element[0] == "call" else ("callof", element)
        case forms.Attribute(name):
            return "attr", name
        case forms.Now():
            return "time", levels[VIEW]
        case forms.Arithmetic(operator, left, right):
            return operator, inner(left), inner(right)
        case forms.Last(of):
            return "last", inner(of)
        case forms.Count(of, distinct):
            return "count", inner(of), distinct
        case forms.Sum(of, term):
            bound = {**levels, of.level: depth}
            return "sum", inner(of), ground(term, bound, depth + 1)
        case forms.Extreme(of, greatest):
            return "extreme", inner(of), greatest
        case forms.Clock(function, of, zone):
            return "clock", function, inner(of), zone
        case forms.Host(of):
            return "host", inner(of)
        case forms.Choose(of, arms, otherwise):
            grounds = tuple([(tuple(map(inner, tests)), inner(then)) for tests, then in arms])
            rest = () if otherwise is None else (inner(otherwise),)
            return "choose", inner(of), grounds, rest
        case forms.Source():
            return _source(form, levels, depth)
        case forms.Not(of):
            return "not", inner(of)
        case forms.All(inside):
            return "all", tuple(map(inner, inside))
        case forms.AnyOf(inside):
            return "any", tuple(map(inner, inside))
        case forms.IsOf(level, tools):
            return "isof", inner(forms.Element(level)), tuple(sorted(tools))
        case forms.Some(of):
            return "some", inner(of)
        case forms.Every(of, conditions):
            bound = {**levels, of.level: depth}
            filters = tuple([ground(one, bound, depth + 1) for one in conditions])
            return "every", inner(of), filters
        case forms.Compare(operator, left, options):
            return "compare", operator, inner(left), tuple(map(inner, options))
        case forms.Same(left, right):
            return "same", inner(left), inner(right)
        case forms.Between(of, low, high):
            return "between", inner(of), inner(low), inner(high)
        case forms.Among(of, source):
            return "among", inner(of), inner(source)
        case forms.Matches(of, pattern):
            return "matches", inner(of), pattern
        case forms.Under(of, scope):
            return "under", inner(of), inner(scope)
    raise TypeError(form)


def _source(source: forms.Source, levels: Levels, depth: int) -> Ground:
    bound = {**levels, source.level: depth}
    match source.base:
        case forms.Calls(tools):
            base: Ground = ("calls", tuple(sorted(tools)))
        case forms.Rows(of, get, most):
            base = "rows", ground(of, levels, depth), ground(get, bound, depth + 1), most
        case forms.Merged(parts):
            base = "merged", tuple([ground(part, levels, depth) for part in parts])
        case forms.Items(of, most):
            base = "items", ground(of, levels, depth), most
        case forms.Pairs(left, right):
            base = "pairs", ground(left, levels, depth), ground(right, levels, depth)
    found = [ground(one, bound, depth + 1) for one in source.conditions]
    conditions = tuple([part for one in found for part in _conjuncts(one)])
    marks = tuple([ground(mark, levels, depth) for mark in source.marks])
    return "source", levels[VIEW], base, conditions, source.within, marks


def _conjuncts(condition: Ground) -> Iterator[Ground]:
    """The conditions that a conjunction joins."""
    if condition[0] == "all":
        for part in condition[1]:
            yield from _conjuncts(part)
    else:
        yield condition


def rewritten(of: Ground, leaf: Callable[[Ground, int], Ground | None], depth: int = 0) -> Ground:
    """Return a ground object with parts replaced.

    Args:
        leaf: returns the replacement of a part inside so many sources; None: look inside it.
    """
    found = leaf(of, depth)
    if found is not None:
        return found

    def inner(part: Any, more: int = 0) -> Any:
        if not isinstance(part, tuple):
            return part
        if part and not isinstance(part[0], str):
            return tuple([inner(one, more) for one in part])
        return rewritten(part, leaf, depth + more) if part else part

    tag = of[0]
    if tag in ("const", "bound", "call", "item"):
        return of
    if tag == "source":
        _, view, base, conditions, within, marks = of
        return tag, inner(view), inner(base), inner(conditions, 1), within, inner(marks)
    if tag == "rows":
        return tag, inner(of[1]), inner(of[2], 1), of[3]
    if tag in ("every", "sum"):
        return tag, inner(of[1]), inner(of[2], 1)
    return tag, *[inner(part) for part in of[1:]]


def at_call(of: Ground, element: Ground) -> Ground:
    """Return a part of a source with its bound element replaced by `element`."""

    def leaf(part: Ground, depth: int) -> Ground | None:
        if part[0] == "get" and part[1] == ("bound", depth) and element[0] == "const":
            return element  # it has no value, so no field has one
        if part[0] != "bound":
            return None
        return element if part[1] == depth else part

    return rewritten(of, leaf)


def unrolled(source: Ground) -> list[Ground]:
    """Return sources of calls or of elements of lists: one has an element exactly if `source` has.

    A condition about a row becomes a condition about its call: it has an element of which that is
    true.

    Args:
        source: names no element of another source around it.
    """
    tag, view, base, conditions, within, marks = source
    if base[0] not in ("rows", "merged") or within is not None:
        return [source]
    if base[0] == "merged":
        parts_of = [
            (tag, part[1], part[2], (*part[3], *conditions), part[4], (*part[5], *marks))
            for part in base[1]
        ]
        return [one for part in parts_of for one in unrolled(part)]
    _, of, get, most = base
    deeper = most is not None

    def leaf(part: Ground, depth: int) -> Ground | None:
        match part:
            case ("callof", ("bound", back)) if back == depth:
                call = "bound", depth + deeper
                return call if of[2][0] == "calls" else ("callof", call)
            case ("bound", back) if back == depth and not deeper:
                return at_call(get, ("bound", depth))
        return None

    inner = tuple([rewritten(one, leaf) for one in conditions])
    if deeper:
        inner = (("some", (tag, view, ("items", get, most), inner, None, ())),)
    else:
        inner = ("present", get), *inner
    return unrolled((*of[:3], (*of[3], *inner), of[4], (*of[5], *marks)))


def choice(term: Ground) -> Ground | None:
    """Return the first `match` of a term that has one value: a sum has one for each element."""
    if term[0] == "choose":
        return term
    if term[0] not in _COMPUTED:
        return None
    inside = [choice(part) for part in term[1:] if isinstance(part, tuple)]
    return next((one for one in inside if one is not None), None)


def parts(of: Ground) -> Iterator[Ground]:
    """A ground object and all objects inside it, in order."""
    stack: list[Any] = [of]
    while stack:
        part = stack.pop()
        if isinstance(part, tuple):
            if part and isinstance(part[0], str):
                yield part
                if part[0] == "const":
                    continue
            stack += reversed(part)


def direct_parts(of: Ground) -> Iterator[Ground]:
    """A ground object and the terms inside it that its own atom evaluates.

    The conditions of a source and the term of a sum are separate atoms.
    """
    stack: list[Any] = [of]
    while stack:
        part = stack.pop()
        if not isinstance(part, tuple):
            continue
        if not part or not isinstance(part[0], str):
            stack += reversed(part)
            continue
        yield part
        match part[0]:
            case "const" | "call" | "item" | "bound":
                pass
            case "source":
                stack.append(part[2])
            case "rows" | "every" | "sum":
                stack.append(part[1])
            case _:
                stack += reversed(part[1:])


def picks(of: Ground) -> list[Ground]:
    """The sources whose last elements an atom picks, in order."""
    found: dict[Ground, None] = {}
    for part in direct_parts(of):
        if part[0] == "last":
            found[part[1]] = None
    return list(found)


def picked(of: Ground, source: Ground, element: Ground) -> Ground:
    """Return an atom with an element in place of the last element of a source."""
    wanted = ("last", source)

    def leaf(part: Ground, depth: int) -> Ground | None:
        if part == wanted:
            return element
        if part[0] == "get" and part[1] == wanted and element == MISSING:
            return MISSING
        if part[0] == "source":  # its conditions and marks are separate atoms
            return "source", part[1], rewritten(part[2], leaf, depth), *part[3:]
        if part[0] in ("every", "sum"):
            return part[0], rewritten(part[1], leaf, depth), part[2]
        return None

    return rewritten(of, leaf)
