"""Arguments that pydantic built, as JSON for a gate, and the copies that a tool is run with.

Frameworks turn the JSON that a model wrote into models, dates and other objects.  The class of such
an object decides how it is written as JSON: it may leave fields out, and it may change before it is
used.  So the gate decides on its JSON, and the tool gets a new object of the same class, built only
from this JSON.  If the JSON of the new object is different, the gate refuses the value (R106).
Text: docs/frameworks.md.  Cost: linear in the value; a validator for each class, once.
"""

from __future__ import annotations

import enum
from functools import lru_cache
from typing import Any, TypeAlias

from pydantic import BaseModel, TypeAdapter
from pydantic_core import to_json, to_jsonable_python

from tcc_runtime.gate.arguments import plain
from tcc_runtime.gate.arguments.json_writer import SCALARS

_DEPTH = 66  # deeper values have no JSON
_ARRAYS = (tuple, set, frozenset)
_Known: TypeAlias = "dict[int, tuple[Any, Any, Any]]"


def json_and_copy(value: Any) -> tuple[Any, Any]:
    """Return the JSON of a value, and the copy that a tool gets.

    For a value without JSON both are the value itself, which the gate refuses.
    """
    return _pair(value, _DEPTH, {})


def _pair(value: Any, depth: int, known: _Known) -> tuple[Any, Any]:
    """Implement :func:`json_and_copy`.

    Args:
        known: maps the id of each visited container to the container, its JSON and its copy.
    """
    if type(value) in SCALARS or depth <= 0:
        return value, value
    if isinstance(value, enum.Enum):  # a constant of the program
        return _pair(value.value, depth - 1, known)[0], value
    plain_value = _of_subclass(value)
    if plain_value is not None:
        return plain_value, plain_value
    if isinstance(value, (bytes, bytearray)):
        return value, value
    if id(value) in known:
        return known[id(value)][1:]
    known[id(value)] = value, value, value  # a value that contains itself gets itself
    found = _container(value, depth - 1, known)
    known[id(value)] = value, *found
    return found


def _container(value: Any, depth: int, known: _Known) -> tuple[Any, Any]:
    if isinstance(value, dict):
        pairs = [
            (*_pair(name, 1, known), *_pair(item, depth, known))
            for name, item in dict(value).items()
        ]
        return {pair[0]: pair[2] for pair in pairs}, {pair[1]: pair[3] for pair in pairs}
    if isinstance(value, list) or type(value) in _ARRAYS:
        items = [_pair(item, depth, known) for item in list(value)]
        made = list if isinstance(value, list) else type(value)
        return [item[0] for item in items], made([item[1] for item in items])
    return _object(value, depth, known)


def _of_subclass(value: Any) -> str | int | float | None:
    """Return the plain str, int or float of an instance of such a class; None for other values."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__add__(value, 0)
    return float.__add__(value, 0.0) if isinstance(value, float) else None


def _object(value: Any, depth: int, known: _Known) -> tuple[Any, Any]:
    """Return the JSON of an object of another class, and a new object built from this JSON."""
    kind: Any = type(value)
    try:
        written = _written(value, depth, known)
        if written is value:
            return value, value
        copy = _adapter(kind).validate_json(to_json(plain(written)))
        same = type(copy) is kind and to_json(plain(_written(copy, depth, {}))) == to_json(
            plain(written)
        )
    except Exception:  # noqa: BLE001  # the class is its owner's, and so are its validators
        return value, value
    return (written, copy) if same else (value, value)


def _written(value: Any, depth: int, known: _Known) -> Any:
    """Return the JSON of an object, as its own class writes it."""
    if isinstance(value, BaseModel):
        return _pair(value.model_dump(by_alias=True), depth, known)[0]
    return to_jsonable_python(value)


@lru_cache(maxsize=256)
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
