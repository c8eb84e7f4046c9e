"""Open parameters of tools: their schema.

Normative text: docs/spec/core.md, section 2.  What a value of one may be is decided in
:mod:`tcc_certs.values`; here a core is held to types that have a value at all and one way of being
written.  Cost: linear in the bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

from tcc_certs.errors import Code, Rejected, ensure, require
from tcc_certs.formats.codec import Json
from tcc_certs.formats.names import read_name
from tcc_certs.formats.schema import as_flag, as_list, as_object, as_text, as_whole
from tcc_certs.values.kinds import (
    FlagType,
    JsonType,
    NumberType,
    OpenParameter,
    OpenType,
    TextType,
)
from tcc_certs.values.numbers import compare, ensure_survives

_SCHEMA = Code.CORE_SCHEMA
MAX_SIZE = 1 << 20  # code points of a text, bytes of a JSON value
_ALL = ["name", "type"]
_MEMBERS: Mapping[str, tuple[list[str], list[str]]] = {  # members that are required, and others
    "text": ([*_ALL, "max", "min"], ["optional", "pattern"]),
    "integer": (_ALL, ["high", "low", "optional"]),
    "number": (_ALL, ["high", "low", "optional"]),
    "flag": (_ALL, ["optional"]),
    "json": ([*_ALL, "max"], ["optional"]),
}


def read_opened(value: Json, path: str) -> tuple[OpenParameter, ...]:
    """The open parameters of a tool, in declared order, one at least.

    Raises:
        Rejected: C801.
    """
    items = as_list(value, path, _SCHEMA, 1)
    return tuple(_opened(item, f"{path}[{i}]") for i, item in enumerate(items))


def _opened(value: Json, path: str) -> OpenParameter:
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(kind, str) or kind not in _MEMBERS:
        raise Rejected(_SCHEMA, f"{path}.type", "a type of open parameters", kind)
    item = as_object(value, path, _SCHEMA, *_MEMBERS[kind])
    return OpenParameter(
        name=read_name(item["name"], f"{path}.name", _SCHEMA),
        type=_type(item, kind, path),
        optional=as_flag(item, "optional", path, _SCHEMA),
    )


def _type(item: Mapping[str, Json], kind: str, path: str) -> OpenType:
    match kind:
        case "text":
            return _text(item, path)
        case "flag":
            return FlagType()
        case "json":
            return JsonType(most=as_whole(item["max"], f"{path}.max", _SCHEMA, MAX_SIZE + 1))
        case _:
            return _number(item, kind == "integer", path)


def _text(item: Mapping[str, Json], path: str) -> TextType:
    least = as_whole(item["min"], f"{path}.min", _SCHEMA, MAX_SIZE + 1)
    most = as_whole(item["max"], f"{path}.max", _SCHEMA, MAX_SIZE + 1)
    ensure(least <= most, _SCHEMA, f"{path}.max", f"at least {least}", most)
    if "pattern" not in item:
        return TextType(least=least, most=most)
    from tcc_certs.values.text_source import ensure_quick

    pattern = as_text(item["pattern"], f"{path}.pattern", _SCHEMA)
    ensure_quick(pattern, most, f"{path}.pattern")
    return TextType(least=least, most=most, pattern=pattern)


def _number(item: Mapping[str, Json], whole: bool, path: str) -> NumberType:
    require("low" in item, "high" in item, _SCHEMA, f"{path}.high")
    if "low" not in item:
        return NumberType(whole=whole)
    low, high = (_end(item[name], whole, f"{path}.{name}") for name in ("low", "high"))
    ensure(compare(low, high) <= 0, _SCHEMA, f"{path}.high", f"at least {low}", high)
    return NumberType(whole=whole, low=low, high=high)


def _end(value: Json, whole: bool, path: str) -> str:
    """An end of a range: canonical, and a value of the type."""
    text = as_text(value, path, _SCHEMA)
    ensure_survives(text, path, _SCHEMA)
    ensure(not whole or "." not in text, _SCHEMA, path, "a whole number", text)
    return text
