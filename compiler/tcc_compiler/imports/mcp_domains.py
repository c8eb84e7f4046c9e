"""What an argument may be, as a grammar says it; and JSON scalars as a grammar writes them.

Normative text: docs/spec/language.md, sections 3 and 12.  Cost: linear in what is written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from tcc_certs.errors import Rejected
from tcc_certs.values.numbers import canonical_number
from tcc_compiler.frozen import frozen

_ANNOTATIONS = frozenset(
    (
        "$comment", "$schema", "$id", "default", "deprecated", "description", "examples",
        "readOnly", "title", "writeOnly", "type", "x-mcp-header",
    )
)  # fmt: skip


@frozen
class Domain:
    """What an argument may be.

    Attributes:
        text: as it stands behind the colon.
        values: how many are listed; 0 where it is open.
        opened: the open domain in its place, for a tool with too many calls.
        lost: what the schema says beyond it, a sentence each.
    """

    text: str
    values: int = 0
    opened: Domain | None = None
    lost: tuple[str, ...] = ()


@dataclass(slots=True)
class Losses:
    """What a schema says and its domain does not, as it is found out."""

    said: list[str] = field(default_factory=list)

    def other(self, schema: Mapping[str, Any], used: frozenset[str]) -> tuple[str, ...]:
        """What was said to be lost, and the keywords of the schema that were not looked at."""
        left = [name for name in unheld(schema) if name not in used]
        return (*self.said, *([f"not held: {', '.join(left)}"] if left else []))


def unheld(schema: Mapping[str, Any]) -> list[str]:
    """The keywords of a schema that say something of values, sorted; but for its type."""
    return sorted(set(schema) - _ANNOTATIONS)


def has_type(value: object, kind: object) -> bool:
    """Whether a value has one of the schema's types; without any it has."""
    kinds = kind if isinstance(kind, list) else [kind] if isinstance(kind, str) else []
    if not kinds:
        return True
    if value is None:
        return "null" in kinds
    if isinstance(value, bool):
        return "boolean" in kinds
    if isinstance(value, str):
        return "string" in kinds
    if not is_number(value):
        return False
    exact = Decimal(str(value))
    return "number" in kinds or ("integer" in kinds and exact == exact.to_integral_value())


def value_text(value: object) -> str | None:
    """A JSON scalar as a grammar writes it; None where no program may rely on it."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "true" if value else "false"
    if isinstance(value, str):
        return quoted(value) if _encodes(value) else None
    return canonical_text(value)


def canonical_text(value: object) -> str | None:
    """A number as a grammar writes it; None where its nearest double is another one."""
    try:
        return canonical_number(value)
    except Rejected:
        return None


def quoted(text: str) -> str:
    """A string of the grammar language, whose strings are JSON's; in ASCII."""
    return json.dumps(text)


def _encodes(text: str) -> bool:
    return not any(0xD800 <= ord(char) < 0xE000 for char in text)


def is_number(value: object) -> bool:
    """Whether a JSON value is a number."""
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)
