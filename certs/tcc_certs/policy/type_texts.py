"""Tools, fields and types in the syntax of a grammar.

Normative text: docs/spec/language.md.  Listings, refusals and comparisons use these texts.
"""

from __future__ import annotations

from tcc_certs.policy.core import Tool
from tcc_certs.policy.nodes import Name, quoted, written
from tcc_certs.values.declared import FlagType, JsonType, NumberType, PathType, TextType, UrlType
from tcc_certs.values.fields import (
    DateType,
    Field,
    FieldType,
    ListType,
    NullableType,
    RecordType,
    TimeType,
    UnionType,
    pointer_of,
)


def field_text(field: Field) -> str:
    """Return the declaration of a field, such as ``note?: text max 200``."""
    return f"{name_text(field.name)}{'?' * field.optional}: {domain_text(field)}{place_text(field)}"


def tool_text(tool: Tool) -> str:
    """Return the declaration of a tool without attributes: ``find(id: text) gives (..)``."""
    takes, gives = [", ".join(map(field_text, some)) for some in (tool.arguments, tool.answers)]
    text = name_text(tool.name) + (f"({takes})" if takes else "")
    return f"{text} gives ({gives})" if gives else text


def domain_text(field: Field) -> str:
    """Return the type of an open field, or the values of a listed field: ``open | closed``."""
    if field.type is not None:
        return type_text(field.type)
    return " | ".join([value for value in field.values if value])


def name_text(name: str) -> str:
    """Return a name, in backticks if it is no identifier."""
    return written([Name(name)])


def type_text(of: FieldType) -> str:
    """Return the text of a type; bounds that equal the default are left out."""
    match of:
        case TextType(among=among) if among:
            return f"text {' | '.join(map(quoted, among))}"
        case TextType(least=least, most=most, pattern=pattern):
            words = ["text"]
            words += [f"min {least}"] * (least != TextType().least)
            words += [f"max {most}"] * (most != TextType().most)
            words += [f"~ {quoted(pattern)}"] if pattern is not None else []
            return " ".join(words)
        case NumberType(whole=whole, low=low, high=high):
            kind = "integer" if whole else "number"
            return kind if low is None else f"{kind} {low} .. {high}"
        case FlagType():
            return "flag"
        case PathType(under=under) | UrlType(under=under):
            word = "path" if isinstance(of, PathType) else "url"
            return word if under is None else f"{word} under {quoted(under)}"
        case JsonType(most=most):
            return "json" if most == JsonType().most else f"json max {most}"
        case ListType(of=inner, least=least, most=most, distinct=distinct):
            words = ["list"]
            words += [f"min {least}"] * (least > 0)
            words += [f"max {most}"] * (most < ListType(of=inner).most)
            words += ["distinct"] * distinct
            return " ".join([*words, "of", _element_text(inner)])
        case RecordType(fields=fields):
            return f"object {_record_text(fields)}"
        case TimeType(zone=zone):
            return "time" if zone is None else f"time {_zone_text(zone)}"
        case DateType(zone=zone):
            return f"date {_zone_text(zone)}" if zone else "date"
        case NullableType(of=inner):
            return f"{type_text(inner)} or null"
        case UnionType(of=types):
            return " or ".join(map(type_text, types))
    raise TypeError(of)


def place_text(field: Field) -> str:
    """Return the pointer of a field as `` at "/a/b"``.

    '' if it is the member of the field's name.
    """
    return "" if field.steps == (field.name,) else f" at {quoted(pointer_of(field.steps))}"


def _element_text(of: FieldType) -> str:
    if isinstance(of, RecordType):
        return _record_text(of.fields)
    return f"({type_text(of)})" if isinstance(of, NullableType | UnionType) else type_text(of)


def _record_text(fields: tuple[Field, ...]) -> str:
    return f"({', '.join(map(field_text, fields))})"


def _zone_text(zone: int) -> str:
    sign, size = "-" if zone < 0 else "+", abs(zone)
    return f'"{sign}{size // 60:02}:{size % 60:02}"' if size else "utc"
