"""Which members of arguments are declared, by listing paths; docs/spec/core.md, section 7."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from tests.oracle_values.language import Field, Type
from tests.oracle_values.values import steps_of

Path: TypeAlias = "tuple[str | int, ...]"


def are_declared(arguments: Any, fields: Sequence[Field], name: str) -> bool:
    """Whether the argument of that name has no member that is not declared.

    Args:
        fields: all arguments of the tool.
    """
    found = [path for one in fields for path in _declared(arguments, one, steps_of(one), ())]
    whole = [path for path, inside in found if inside]
    ways = {path for path, _ in found}
    return all(
        path in ways or any(path[: len(one)] == one for one in whole)
        for path in _paths(arguments, ())
        if path[:1] == (name,)
    )


def has_record(kind: Type | None) -> bool:
    """Whether a value of the type may have a record in it."""
    return kind is not None and (kind.kind == "record" or has_record(kind.of))


def _paths(value: Any, path: Path) -> Iterator[Path]:
    yield path
    for step, item in _members(value):
        yield from _paths(item, (*path, step))


def _members(value: Any) -> list[tuple[str | int, Any]]:
    if isinstance(value, dict):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, (list, tuple)) else []


def _declared(
    arguments: Any, field: Field, steps: Sequence[str], base: Path
) -> Iterator[tuple[Path, bool]]:
    """The paths that a field declares, from a place on; whether with all that is inside."""
    kind, null = field.type, field.null
    if "*" in steps and kind is not None and kind.kind == "list":
        kind, null = kind.of, False  # what is at each of many places
    for path, is_end in _led_to(_at(arguments, base), steps, base):
        if not is_end:
            yield path, False
        elif null and _at(arguments, path) is None:
            yield path, True
        else:
            yield from _held(arguments, kind, path)


def _held(arguments: Any, kind: Type | None, path: Path) -> Iterator[tuple[Path, bool]]:
    here = _at(arguments, path)
    if kind is not None and kind.kind == "record":
        for one in kind.fields:
            yield from _declared(arguments, one, steps_of(one), path)
    elif kind is None or kind.kind != "list":
        yield path, True
    elif isinstance(here, (dict, list, tuple)):  # of an object its type says that it is no list
        yield path, False
        for step, _ in _members(here):
            yield from _held(arguments, kind.of, (*path, step))


def _led_to(value: Any, steps: Sequence[str], path: Path) -> Iterator[tuple[Path, bool]]:
    """Where a pointer leads to, and the objects and arrays on the way."""
    if not steps:
        yield path, True
        return
    step, rest = steps[0], steps[1:]
    if isinstance(value, dict) or (
        isinstance(value, (list, tuple)) and re.fullmatch(r"\*|-1|0|[1-9][0-9]*", step)
    ):
        yield path, False
    last = len(value) - 1 if isinstance(value, (list, tuple)) else None
    for name, item in _members(value):
        if step in ("*", str(name)) or (step == "-1" and name == last):
            yield from _led_to(item, rest, (*path, name))


def _at(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value
