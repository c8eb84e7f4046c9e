"""Types of open parameters and answers, and their places, as a grammar writes them.

Normative text: docs/spec/language.md.  Reports and refusals show them; a core without open
parameters has none.  Cost: linear in the type.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tcc_certs.core.model import Core
from tcc_certs.formats.codec import encode, written
from tcc_certs.values.declared import FlagType, JsonType, NumberType, TextType

if TYPE_CHECKING:
    from tcc_certs.values.fields import Field, FieldType


def open_types(core: Core) -> Iterator[str]:
    """The open parameters and answers of a core, each with its type and its place."""
    for tool in core.tools:
        for parameter in (*tool.opened, *tool.answers):
            name = written(parameter.name) + "?" * parameter.optional
            placed = place_text(parameter.name, parameter.at)
            kind = type_text(parameter.type) + " or null" * parameter.null
            yield f"{written(tool.name)}.{name}: {kind}{placed}"


def type_text(of: FieldType) -> str:
    """A type as a grammar writes it, what goes without saying left out."""
    match of:
        case TextType(least=least, most=most, pattern=pattern):
            words = ["text"]
            words += [f"min {least}"] * (least != TextType().least)
            words += [f"max {most}"] * (most != TextType().most)
            words += [f"~ {encode(pattern).decode()}"] if pattern is not None else []
            return " ".join(words)
        case NumberType(whole=whole, low=low, high=high):
            kind = "integer" if whole else "number"
            return kind if low is None else f"{kind} {low} .. {high}"
        case FlagType():
            return "flag"
        case JsonType(most=most):
            return "json" if most == JsonType().most else f"json max {most}"
    return _newer_text(of)


def _newer_text(of: FieldType) -> str:
    from tcc_certs.values.fields import DateType, ListType, RecordType, TimeType

    match of:
        case ListType(of=inner, least=least, most=most, distinct=distinct):
            words = ["list"]
            words += [f"min {least}"] * (least > 0)
            words += [f"max {most}"] * (most < ListType(of=inner).most)
            words += ["distinct"] * distinct
            return " ".join([*words, "of", type_text(inner)])
        case RecordType(fields=fields):
            return f"({', '.join(map(_field_text, fields))})"
        case TimeType(zone=None):
            return "time"
        case TimeType(zone=zone):
            return f"time {_zone_text(zone)}"
        case DateType(zone=zone):
            return f"date {_zone_text(zone)}" if zone else "date"
    return "json"


def _field_text(field: Field) -> str:
    name = written(field.name) + "?" * field.optional
    kind = "json" if field.type is None else type_text(field.type)
    return f"{name}: {kind}{' or null' * field.null}{place_text(field.name, field.steps)}"


def _zone_text(zone: int | None) -> str:
    minutes = zone or 0
    sign, size = "-" if minutes < 0 else "+", abs(minutes)
    return f'"{sign}{size // 60:02}:{size % 60:02}"' if size else "utc"


def place_text(name: str, steps: Sequence[str] | None) -> str:
    """Where a field stands, as a grammar writes it; empty where that is the member of its name."""
    if steps is None or tuple(steps) == (name,):
        return ""
    from tcc_certs.values.fields import pointer_of

    return f" at {encode(pointer_of(steps)).decode()}"
