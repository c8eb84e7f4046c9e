"""What a condition about the elements of a list says of another one about the same list.

A condition says that some element satisfies conditions (`Exists`), or that every element does
(`ForAll`).  Conditions with sources inside are left out.
Cost: the product of the conditions of both.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple, TypeAlias

from tcc_certs.proof.ground import Ground, at_call, parts
from tcc_certs.proof.reasons import truth_at
from tcc_certs.proof.rules import Wrong
from tcc_certs.proof.scene import NULL, Formula, Scene, both, either, implies, opposite
from tcc_certs.values.places import State

ELEMENT: Ground = ("bound", 0)


class Exists(NamedTuple):
    """An element is surely in the list, and all conditions are true of it."""

    base: Ground
    conditions: tuple[Ground, ...]


class ForAll(NamedTuple):
    """Of each element that may be in the list a condition of `unless` is false, or all are true."""

    base: Ground
    unless: tuple[Ground, ...]
    conditions: tuple[Ground, ...]


Claim: TypeAlias = "Exists | ForAll"


def claim_of(literal: Ground) -> Claim:
    """Return the claim of a literal about the elements of a list.

    Raises:
        Wrong: it is about no list, or its conditions have sources.
    """
    match literal:
        case ("truth", ("some" | "every" | "among", *_) as condition, _, wanted):
            pass
        case _:
            raise Wrong
    source = condition[2] if condition[0] == "among" else condition[1]
    _, _, base, filters, within, marks = source
    if base[0] not in ("items", "pairs") or within is not None or marks:
        raise Wrong
    match condition:
        case ("some", _):
            last = filters[-1:]
            if wanted:
                found: Claim = Exists(base, filters)
            elif last:
                found = ForAll(base, filters[:-1], (_negated(last[0]),))
            else:
                raise Wrong
        case ("every", _, conditions):
            if wanted:
                found = ForAll(base, filters, conditions)
            else:
                found = Exists(base, (*filters, _negated(_joined(conditions))))
        case ("among", term, _):
            if term == NULL:
                raise Wrong
            equal = "compare", "=", ELEMENT, (term,)
            if wanted:
                found = Exists(base, (*filters, equal))
            else:
                found = ForAll(base, filters, (_negated(equal),))
    if any(part[0] == "source" for one in found[1:] for part in parts(one)):
        raise Wrong
    return found


def _negated(condition: Ground) -> Ground:
    inside: Ground = condition[1] if condition[0] == "not" else ("not", condition)
    return inside


def _joined(conditions: tuple[Ground, ...]) -> Ground:
    return conditions[0] if len(conditions) == 1 else ("all", conditions)


def listed(scene: Scene, literal: Ground, other: Ground) -> Formula:
    """Return the formula that relates two literals about the elements of one list.

    Raises:
        Wrong: nothing.
    """
    one, two = claim_of(literal), claim_of(other)
    if one.base != two.base:
        raise Wrong
    first, second = scene.lit(*literal), scene.lit(*other)
    match one, two:
        case ForAll(), ForAll():
            # Where a condition of the first `unless` is false, a condition of the second is, too.
            narrower = all(_is_entailed(part, two.unless) for part in one.unless)
            never = any(_is_entailed(_negated(part), one.conditions) for part in two.unless)
            holds = all(_is_entailed(part, one.conditions) for part in two.conditions)
            if narrower and (never or holds):
                return implies(first, second)
        case Exists(), Exists():
            if all(_is_entailed(part, one.conditions) for part in two.conditions):
                return implies(first, second)
        case Exists(), ForAll():
            if all(_is_entailed(part, one.conditions) for part in two.unless):
                return _instance(scene, one, two, first, second)
    raise Wrong


def _is_entailed(condition: Ground, by: Collection[Ground]) -> bool:
    """Return whether a condition is true of each element of which all of `by` are true.

    If the condition is false of an element, one of `by` is false of it, too.
    """
    if condition in by:
        return True
    if any(truth_at(condition, {ELEMENT: state}) is True for state in _values(by)):
        return True
    if condition[0] != "not":
        return False
    of = condition[1]
    refuted = [truth_at(one, {ELEMENT: state}) for one in by for state in _values((of,))]
    return False in refuted or any(one[0] == "not" and _is_entailed(one[1], (of,)) for one in by)


def _values(conditions: Collection[Ground]) -> list[State]:
    """The constants that conditions let an element be equal to."""
    return [
        one[3][0][1]
        for one in conditions
        if one[:3] == ("compare", "=", ELEMENT) and len(one[3]) == 1 and one[3][0][0] == "const"
    ]


def _instance(scene: Scene, one: Exists, two: ForAll, first: Formula, second: Formula) -> Formula:
    """Relate a claim that an element exists to a claim about all elements of the same list."""
    for part in two.conditions:
        refuted = _negated(part) in one.conditions
        if refuted or any(
            truth_at(part, {ELEMENT: state}) is False for state in _values(one.conditions)
        ):
            return either([opposite(first), opposite(second)])
    found = []
    for condition in one.conditions:
        match condition:
            case ("compare", "=", ("bound", 0), (term,)):
                found += [scene.truth(at_call(part, term), False, True) for part in two.conditions]
    if not found:
        raise Wrong
    return implies(both([first, second]), both(found))
