"""Fields and types as a grammar declares them, for a slow reader of their values.

Nothing here is read by, or from, the compiler.  Values are JSON values; a number is an int, a float
or a Decimal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Type:
    """The type of an open field.

    Attributes:
        kind: ``text integer number flag json time date list record``.
        low, high: bounds of a number; of a text its length, of a list its size, of json its bytes.
        pattern: of a text.
        zone: of a time or date without one: ``utc``, ``+hh:mm``; None where it is another type.
        distinct, of: of a list, its elements.
        fields: of a record.
    """

    kind: str
    low: Any = None
    high: Any = None
    pattern: str | None = None
    zone: str | None = None
    distinct: bool = False
    of: Type | None = None
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Field:
    """An argument, an answer, a field of a record, or a given attribute.

    Attributes:
        values: listed ones; None of an open field.
        type: of an open field.
        null: ``or null``.
        place: a pointer, without which it is the member of that name.
        answer: of the answer, not an argument.
        rest: a listed answer takes ``*``, whatever is not listed.
    """

    name: str
    values: tuple[Any, ...] | None = None
    type: Type | None = None
    optional: bool = False
    null: bool = False
    place: str | None = None
    answer: bool = False
    rest: bool = False

    @property
    def listed(self) -> bool:
        """Whether it is part of the call."""
        return self.values is not None
