"""The schema of every JSON document that a command prints, by its name (JSON Schema 2020-12).

A document's name is that of its command; ``error`` is what any command prints that cannot do its
work.  Copies stand in docs/schemas; ``python -m tcc.schemas docs/schemas`` writes them again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tcc.schemas.grammars import GRAMMARS
from tcc.schemas.graphs import GRAPHS
from tcc.schemas.parts import SHARED, Schema
from tcc.schemas.questions import QUESTIONS
from tcc.schemas.runs import RUNS
from tcc.schemas.signatures import SIGNATURES
from tcc.schemas.verdicts import VERDICTS
from tcc.screen import FORMAT_VERSION

DOCUMENTS: Final[Mapping[str, Sequence[Schema]]] = {
    **GRAMMARS,
    **RUNS,
    **QUESTIONS,
    **VERDICTS,
    **SIGNATURES,
    **GRAPHS,
}


def schema_of(name: str) -> dict[str, Any]:
    """The schema of the document ``tcc.<name>``, whole.

    Raises:
        KeyError: there is no such document.
    """
    shapes = [_headed(name, shape) for shape in DOCUMENTS[name]]
    body: Mapping[str, Any] = shapes[0] if len(shapes) == 1 else {"oneOf": shapes}
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:tcc:schema:{name}:{FORMAT_VERSION}",
        "title": f"tcc.{name}",
        **body,
    }
    used = _used(schema)
    return {**schema, "$defs": {key: SHARED[key] for key in used}} if used else schema


def _headed(name: str, shape: Schema) -> Schema:
    """A shape with the two members that every document begins with."""
    head = {"format": {"const": f"tcc.{name}"}, "format_version": {"const": FORMAT_VERSION}}
    return {
        **shape,
        "properties": {**head, **shape["properties"]},
        "required": [*head, *shape["required"]],
    }


def _used(schema: Schema) -> list[str]:
    """The names of what is shared that `schema` refers to, and what that refers to."""
    found: set[str] = set()
    waiting = list(_references(schema))
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _references(SHARED[name])
    return sorted(found)


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        if "$ref" in value:
            yield value["$ref"].rpartition("/")[2]
        for item in value.values():
            yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)
