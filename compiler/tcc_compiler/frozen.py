"""The decorator of the compiler's data classes: frozen, slotted, made without source text.

``@frozen`` gives what ``@dataclass(frozen=True, slots=True, kw_only=True)`` gives: fields,
equality, hash, repr, pattern matching, `replace`, copies and pickles. It has no `__post_init__` and
no base class with fields.

The standard decorator writes and compiles the source of six methods for every class. That was a
quarter of the time of ``tcc compile`` for a small grammar. Here the methods are closures over the
names of the fields. Cost: a class takes a tenth of the time of the standard decorator; an instance
takes less than twice that of a frozen dataclass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import Any, NoReturn, TypeAlias, dataclass_transform

Method: TypeAlias = Callable[..., Any]


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(Field, field))
def frozen(cls: Any = None, /, *, kw_only: bool = True, eq: bool = True) -> Any:
    """Return the class as a frozen, slotted dataclass.

    Args:
        kw_only: True: its fields can be given by name only.
        eq: True: two instances with equal fields are equal. False: each instance equals only
            itself.
    """

    def made_of(given: type[Any]) -> type[Any]:
        made = dataclass(init=False, repr=False, eq=False, slots=True, kw_only=kw_only)(given)
        methods = _methods(made, kw_only) | (_equality(made) if eq else {})
        for name, method in methods.items():
            if name not in given.__dict__:
                setattr(made, name, method)
        return made

    return made_of if cls is None else made_of(cls)


def _methods(made: Any, kw_only: bool) -> dict[str, Method]:
    names = [one.name for one in fields(made)]
    shown = [one.name for one in fields(made) if one.repr]

    def __repr__(self: Any) -> str:
        given = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{self.__class__.__qualname__}({given})"

    def __getstate__(self: Any) -> list[Any]:
        return [getattr(self, name) for name in names]

    def __setstate__(self: Any, state: Sequence[Any]) -> None:
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    return {
        "__init__": _init(made, kw_only),
        "__repr__": __repr__,
        "__getstate__": __getstate__,
        "__setstate__": __setstate__,
        "__setattr__": _refuse_to_set,
        "__delattr__": _refuse_to_delete,
    }


def _init(made: Any, kw_only: bool) -> Method:
    own = fields(made)
    # The setter of each slot, used once by `__init__`; `__setattr__` always refuses.
    slots = {one.name: getattr(made, one.name).__set__ for one in own}
    in_order = () if kw_only else tuple(slots.values())
    names = slots.keys()
    constants = {one.name: one.default for one in own if one.default is not MISSING}

    def __init__(self: Any, *values: Any, **given: Any) -> None:
        if values and len(values) == len(in_order) and not given:
            for put, value in zip(in_order, values, strict=True):
                put(self, value)
            return
        if not values and given.keys() != names:
            given = constants | given
        if values or given.keys() != names:
            given = _completed(made, () if kw_only else own, values, given)
        for name, value in given.items():
            slots[name](self, value)

    return __init__


def _completed(
    made: Any, in_order: Sequence[Field[Any]], values: Sequence[Any], given: dict[str, Any]
) -> dict[str, Any]:
    """Return every field's value by name: positional ones, named ones, then the defaults.

    Raises:
        TypeError: a field has no value or two, or a name is no field.
    """
    if len(values) > len(in_order):
        raise TypeError(f"{made.__qualname__}() takes {len(in_order)} values, not {len(values)}")
    placed = {one.name: value for one, value in zip(in_order, values, strict=False)}
    if wrong := [name for name in given if name in placed or name not in made.__slots__]:
        raise TypeError(f"{made.__qualname__}() has no place for {wrong[0]!r}")
    whole = placed | given
    for one in fields(made):
        if one.name in whole:
            continue
        if one.default_factory is not MISSING:
            whole[one.name] = one.default_factory()
        elif one.default is not MISSING:
            whole[one.name] = one.default
        else:
            raise TypeError(f"{made.__qualname__}() needs {one.name!r}")
    return whole


def _equality(made: Any) -> dict[str, Method]:
    compared = [one.name for one in fields(made) if one.compare]
    values = attrgetter(*compared) if compared else type  # no fields: all instances are equal

    def __eq__(self: Any, other: object) -> bool:
        if self.__class__ is not other.__class__:
            return NotImplemented
        return bool(values(self) == values(other))

    def __hash__(self: Any) -> int:
        return hash(values(self))

    return {"__eq__": __eq__, "__hash__": __hash__}


def _refuse_to_set(self: Any, name: str, value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")
