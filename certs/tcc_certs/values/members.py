"""Checks that records in a tool's arguments have only declared members.

Normative text: docs/spec/core.md, section 3.  Each field declares its place.  If it is a list of
records, it also declares the places of their fields.  A JSON value is checked and recorded as a
whole, so everything inside it is declared.  Of a record only its fields are recorded, so each
member needs a declaration.  Cost: linear in the value; a list of plain records takes one
interpreter step for each member.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from typing import Any

from tcc_certs.values.canonical import MAX_DEPTH
from tcc_certs.values.fields import Field, FieldType, ListType, NullableType, RecordType, UnionType

_INDEX = re.compile(r"\*|-1|0|[1-9][0-9]*", re.ASCII)


class Place:
    """A place in arguments, and the declared places inside it.

    Attributes:
        whole: whether a field declares the value at this place with everything inside it.
        scalar: whether a value here may be neither a list nor an object.
        arrays, objects: for a union, the places of its list and of its object.
        null: whether null counts as absent here.
        inner: the places inside, by the steps of pointers.
        plain: the names of the members if all of them are whole; None: members need a check.
    """

    __slots__ = ("arrays", "inner", "null", "objects", "plain", "scalar", "whole")

    def __init__(self) -> None:
        self.whole = self.null = self.scalar = False
        self.arrays: Place | None = None
        self.objects: Place | None = None
        self.inner: dict[str, Place] = {}
        self.plain: frozenset[str] | None = None

    def declare(self, steps: Sequence[str], kind: FieldType | None, *, null: bool) -> None:
        """Declare a field at a place below this one; `kind` is None for a listed field."""
        place = self
        for step in steps:
            place = place.inner.setdefault(step, Place())
        # the field has the list of the values at all these places
        if "*" in steps and isinstance(kind, ListType):
            place._hold(kind.of, null=False)
        else:
            place._hold(kind, null=null)

    def _hold(self, kind: FieldType | None, *, null: bool) -> None:
        self.null = self.null or null
        match kind:
            case ListType(of=of):
                self.inner.setdefault("*", Place())._hold(of, null=False)
            case RecordType(fields=fields):
                for one in fields:
                    self.declare(one.steps, one.type, null=one.null)
            case NullableType(of=of):
                self._hold(of, null=True)
            case UnionType(of=types):
                self.scalar = True
                for part in types:
                    if isinstance(part, ListType):
                        self.arrays = self.arrays or Place()
                        self.arrays._hold(part, null=False)
                    elif isinstance(part, RecordType):
                        self.objects = self.objects or Place()
                        self.objects._hold(part, null=False)
            case _:
                self.whole = True

    def close(self) -> None:
        """Finish the tree after all fields are declared."""
        for one in (*self.inner.values(), self.arrays, self.objects):
            if one is not None:
                one.close()
        inner = self.inner
        is_plain = not (self.whole or self.scalar or "*" in inner)
        if is_plain and all(one.whole for one in inner.values()):
            self.plain = frozenset(self.inner)


def declared_in(arguments: Sequence[Field]) -> dict[str, Sequence[Place]]:
    """Return the declared places in each argument that contains a record, by its name."""
    records = [one.name for one in arguments if one.steps == (one.name,) and has_record(one.type)]
    if not records:
        return {}
    root = Place()
    for one in arguments:
        root.declare(one.steps, one.type, null=one.null)
    if root.whole:  # all arguments are a single value
        return {}
    root.close()
    return {name: _inside([root], name) for name in records}


def has_record(kind: FieldType | None) -> bool:
    """Return whether a value of the type may contain a record."""
    if isinstance(kind, ListType | NullableType):
        return has_record(kind.of)
    if isinstance(kind, UnionType):
        return any(map(has_record, kind.of))
    return isinstance(kind, RecordType)


def is_declared(value: object, places: Sequence[Place], depth: int = MAX_DEPTH) -> bool:
    """Return whether all members of a value are declared.

    Args:
        places: the declared places of the value.
        depth: the deepest nesting of lists and objects that is allowed.
    """
    for place in places:
        if place.whole or (value is None and place.null):
            return True
        if place.scalar and type(value) not in (dict, list, tuple):
            return True
    if depth <= 0:
        return False
    places = _of_kind(places, type(value))
    if any(place.whole for place in places):  # an object of a union has a field for its whole value
        return True
    if type(value) is dict:
        if set(map(type, value)) - {str}:
            return False
        if len(places) == 1 and places[0].plain is not None:
            return places[0].plain.issuperset(value)
        return all(
            is_declared(item, inner, depth - 1) if (inner := _inside(places, name)) else False
            for name, item in value.items()
        )
    if type(value) is not list and type(value) is not tuple:
        return False
    many: Sequence[Any] = value
    every = _inside(places, "*")
    if all(place.inner.keys() == {"*"} for place in places):
        if len(every) == 1 and every[0].plain is not None and set(map(type, many)) == {dict}:
            names = set(chain.from_iterable(many))
            return not set(map(type, names)) - {str} and every[0].plain.issuperset(names)
        return all(is_declared(item, every, depth - 1) for item in many)
    if not any(_INDEX.fullmatch(step) for place in places for step in place.inner):
        return False  # the declared value is an object
    return all(
        is_declared(item, inner, depth - 1) if (inner := _at(places, at, len(many))) else False
        for at, item in enumerate(many)
    )


def _of_kind(places: Sequence[Place], kind: type) -> Sequence[Place]:
    """Return the places, in which the list or the object of a union replaces the union."""
    if not any(place.scalar for place in places):
        return places
    own = [place.objects if kind is dict else place.arrays for place in places if place.scalar]
    return [place for place in places if place.inner] + [one for one in own if one is not None]


def _inside(places: Sequence[Place], name: str) -> list[Place]:
    """Return the places of the member with this name."""
    steps = (name,) if name == "*" else (name, "*")
    return [place.inner[step] for place in places for step in steps if step in place.inner]


def _at(places: Sequence[Place], number: int, size: int) -> list[Place]:
    """Return the places of an element of an array."""
    last: Sequence[str] = ("-1",) if number == size - 1 else ()
    steps = (str(number), "*", *last)
    return [place.inner[step] for place in places for step in steps if step in place.inner]
