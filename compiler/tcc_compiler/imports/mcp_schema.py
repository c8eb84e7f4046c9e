"""The JSON Schema of an argument as a domain of the language, and what the domain does not hold.

What a grammar can list is listed: enum, const, boolean, integers between close bounds. Other texts
and numbers are open, with their limits; the rest is JSON of any shape. Whatever a schema says and
its domain does not hold is reported as lost. A bound that a schema does not give beside its other
one is -2^63 or 2^64 - 1.

Specification: docs/spec/imports.md, section 2. Cost: linear in the schema; patterns
are for :mod:`tcc_compiler.imports.patterns`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from tcc_certs.errors import Rejected
from tcc_certs.policy.nodes import Name, written
from tcc_certs.values.numbers import LEAST_WHOLE, MOST_WHOLE, canonical_number
from tcc_certs.values.text_syntax import MAX_STEPS, ensure_quick, read_tree, size_of
from tcc_compiler.frozen import frozen
from tcc_compiler.imports.patterns import dialect_of
from tcc_compiler.names.types import is_literal

# Schemas.

_ANNOTATIONS = frozenset(
    (
        "$comment", "$schema", "$id", "default", "deprecated", "description", "examples",
        "readOnly", "title", "writeOnly", "type", "x-mcp-header",
    )
)  # fmt: skip


@frozen
class ArgumentDomain:
    """The domain of an argument.

    Attributes:
        text: its text behind the colon of the parameter.
        values: how many are listed; 0 where it is open.
        opened: the open domain in its place, for a tool with too many calls.
        lost: constraints of the schema that it does not hold, a sentence each.
        null: null is one of its values; where it is open, null counts as left out.
    """

    text: str
    values: int = 0
    opened: ArgumentDomain | None = None
    lost: tuple[str, ...] = ()
    null: bool = False


@dataclass(slots=True)
class _Losses:
    """Constraints of a schema that its domain does not hold, as they are found."""

    said: list[str] = field(default_factory=list)

    def other(self, schema: Mapping[str, Any], used: frozenset[str]) -> tuple[str, ...]:
        """The losses so far, and the keywords of the schema that were not used."""
        left = [name for name in unheld(schema) if name not in used]
        return (*self.said, *([f"not held: {', '.join(left)}"] if left else []))


def unheld(schema: Mapping[str, Any]) -> list[str]:
    """The keywords of a schema that constrain values, except its type, sorted."""
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


# Words that begin a type, if they are the first value of a domain.
_TYPES = frozenset(
    {"date", "flag", "integer", "json", "list", "number", "object", "path", "text", "time", "url"}
)


def value_text(value: object) -> str | None:
    """A JSON scalar as a grammar lists it; None where programs read it differently."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "true" if value else "false"
    if isinstance(value, str):
        if _encodes(value) and name_text(value) == value and value not in _TYPES:
            return value
        return quoted(value) if _encodes(value) else None
    return canonical_text(value)


def canonical_text(value: object) -> str | None:
    """A number as a grammar writes it; None where it is no value."""
    try:
        return canonical_number(value)
    except Rejected:
        return None


def quoted(text: str) -> str:
    """A string of the grammar language, whose strings are JSON's; in ASCII."""
    return json.dumps(text)


def name_text(name: str) -> str:
    """A name as a grammar writes it: in backticks unless it is a plain identifier."""
    return written([Name(name)])


def _encodes(text: str) -> bool:
    return not any(0xD800 <= ord(char) < 0xE000 for char in text)


def is_number(value: object) -> bool:
    """Whether a JSON value is a number."""
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def listed_domain(
    schema: Mapping[str, Any], values: Sequence[Any], used: frozenset[str]
) -> ArgumentDomain | None:
    """The domain that lists these values.

    Args:
        used: the keywords of the schema that say so.

    Returns:
        None where no value has the schema's type.
    """
    if any(isinstance(value, Mapping | list) for value in values):
        return ArgumentDomain(text="json", lost=("its shape is not held: enum",))
    losses = _Losses()
    texts: dict[str, Any] = {}
    for value in values:
        text = value_text(value) if has_type(value, schema.get("type")) else None
        if text is not None:
            texts[text] = value
        elif has_type(value, schema.get("type")):
            losses.said.append(f"the value {json.dumps(str(value)[:40])} is refused everywhere")
    if not texts:
        return None
    lost = losses.other(schema, used)
    opened = _opened(list(texts.values()), lost)
    text, null = " | ".join(texts), "null" in texts
    return ArgumentDomain(text=text, values=len(texts), opened=opened, lost=lost, null=null)


def _opened(values: Sequence[Any], lost: tuple[str, ...]) -> ArgumentDomain:
    """The same values, open: a pattern lists texts, bounds enclose numbers."""
    if all(isinstance(value, str) for value in values):
        return ArgumentDomain(text=f"text {' | '.join(map(quoted, values))}", lost=lost)
    if all(isinstance(value, bool) for value in values):
        whole = () if len(values) == 2 else ("one of two values is let through, too",)
        return ArgumentDomain(text="flag", lost=(*lost, *whole))
    if all(is_number(value) for value in values):
        texts = [canonical_number(value) for value in values]
        low, high = min(texts, key=Decimal), max(texts, key=Decimal)
        kind = "number" if any("." in text for text in texts) else "integer"
        said = f"any {kind} between its values is let through"
        return ArgumentDomain(text=f"{kind} {low} .. {high}", lost=(*lost, said))
    return ArgumentDomain(text="json", lost=(*lost, "its values are not held"))


_RANGE = 64
_DIGITS = 400
_BOUNDS = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"))


def integer_domain(schema: Mapping[str, Any]) -> ArgumentDomain | None:
    """The domain of a whole number; None where no value is one."""
    losses = _Losses()
    low, high = _whole_bounds(schema)
    if low is not None and high is not None and low > high:
        return None
    lost = losses.other(schema, _BOUNDS)
    if low is None and high is None:
        return ArgumentDomain(text="integer", lost=lost)
    first, last = _surviving(low, high)
    if first > last:
        return ArgumentDomain(
            text="integer", lost=(*lost, "its bounds are not held: they are beyond 64 bits")
        )
    opened = ArgumentDomain(text=f"integer {first} .. {last}", lost=lost)
    if last - first < _RANGE:
        return ArgumentDomain(
            text=f"{first}..{last}", values=last - first + 1, opened=opened, lost=lost
        )
    return opened


def _surviving(low: int | None, high: int | None) -> tuple[int, int]:
    """The bounds, within 64 bits; a missing one is the end of that range."""
    least = LEAST_WHOLE if low is None else max(LEAST_WHOLE, low)
    return least, MOST_WHOLE if high is None else min(MOST_WHOLE, high)


def _whole_bounds(schema: Mapping[str, Any]) -> tuple[int | None, int | None]:
    lows = [math.ceil(value) for value in numbers_of(schema, "minimum")]
    lows += [math.floor(value) + 1 for value in numbers_of(schema, "exclusiveMinimum")]
    highs = [math.floor(value) for value in numbers_of(schema, "maximum")]
    highs += [math.ceil(value) - 1 for value in numbers_of(schema, "exclusiveMaximum")]
    return max(lows, default=None), min(highs, default=None)


def number_domain(schema: Mapping[str, Any]) -> ArgumentDomain | None:
    """The domain of a number; None where no value is one."""
    losses = _Losses()
    lows = numbers_of(schema, "minimum") + numbers_of(schema, "exclusiveMinimum")
    highs = numbers_of(schema, "maximum") + numbers_of(schema, "exclusiveMaximum")
    low, high = max(lows, default=None), min(highs, default=None)
    if low is not None and high is not None and low > high:
        return None
    _exclusive(schema, losses)
    if low is None and high is None:
        return ArgumentDomain(text="number", lost=losses.other(schema, _BOUNDS))
    first = canonical_text(LEAST_WHOLE if low is None else low)
    last = canonical_text(MOST_WHOLE if high is None else high)
    if first is None or last is None or Decimal(first) > Decimal(last):
        losses.said.append("its bounds are not held: they are no values")
        return ArgumentDomain(text="number", lost=losses.other(schema, _BOUNDS))
    lost = losses.other(schema, _BOUNDS)
    return ArgumentDomain(text=f"number {first} .. {last}", lost=lost)


def _exclusive(schema: Mapping[str, Any], losses: _Losses) -> None:
    if "exclusiveMinimum" in schema or "exclusiveMaximum" in schema:
        losses.said.append("a bound that is exclusive is let through")


def numbers_of(schema: Mapping[str, Any], name: str) -> list[Decimal]:
    """The value of a bound, if it is a number; one that no double comes near bounds nothing."""
    value = schema.get(name)
    exact = Decimal(str(value)) if is_number(value) else Decimal("NaN")
    return [exact] if exact.is_finite() and abs(exact.adjusted()) <= _DIGITS else []


_LONGEST = 1 << 20
_USUAL = 65536
SHAPES = ("$ref", "$dynamicRef", "oneOf", "anyOf", "allOf", "not", "if")


def domain_of(schema: object) -> ArgumentDomain | None:
    """The domain of an argument with that schema; None where no value is one."""
    if schema is False:
        return None
    if not isinstance(schema, Mapping):
        return ArgumentDomain(text="json")
    listed = listed_values(schema)
    if listed is not None:
        used = ("const", "enum") if "const" in schema else ("enum",)
        used = used if "enum" in schema or "const" in schema else ("oneOf", "anyOf")
        return listed_domain(schema, listed, frozenset(used))
    inner = not_null(schema)
    if inner is not None:
        found = domain_of(inner)
        return None if found is None else or_null(found, left_out=False)
    return _by_type(schema)


NULL_REFUSED = "null is refused"


def or_null(found: ArgumentDomain, *, left_out: bool) -> ArgumentDomain:
    """The domain that has null as well.

    Args:
        left_out: null may count as left out, where the domain is open; else it is refused there.
    """
    if found.null or found.text == "json":
        return found
    if not found.values:
        return replace(found, null=True) if left_out else also(found, NULL_REFUSED)
    inner = None if found.opened is None else or_null(found.opened, left_out=left_out)
    text, values = f"{found.text} | null", found.values + 1
    return replace(found, text=text, values=values, opened=inner, null=True)


def listed_values(schema: Mapping[str, Any]) -> Sequence[Any] | None:
    """The values that a schema lists; None where it lists none."""
    if "const" in schema:
        return [schema["const"]]
    if isinstance(schema.get("enum"), Sequence) and not isinstance(schema["enum"], str):
        listed: Sequence[Any] = schema["enum"]
        return listed
    return constants_of(schema)


def _by_type(schema: Mapping[str, Any]) -> ArgumentDomain | None:
    kind = schema.get("type")
    if any(word in schema for word in SHAPES) or not isinstance(kind, str):
        return any_json(schema)
    if kind == "boolean":
        lost = _Losses().other(schema, frozenset())
        opened = ArgumentDomain(text="flag", lost=lost)
        return ArgumentDomain(text="true | false", values=2, opened=opened, lost=lost)
    if kind == "integer":
        return integer_domain(schema)
    if kind == "number":
        return number_domain(schema)
    if kind == "string":
        return _text(schema)
    if kind == "null":
        return listed_domain(schema, [None], frozenset())
    return any_json(schema)


def any_json(schema: Mapping[str, Any]) -> ArgumentDomain:
    """JSON of any shape, and what the schema says of the shape as lost."""
    left = unheld(schema)
    kind = schema.get("type")
    said = ", ".join([*([json.dumps(kind)] if kind is not None else []), *left])
    return ArgumentDomain(text="json", lost=(f"its shape is not held: {said}",) if said else ())


def not_null(schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The schema of what is not null, where null is one of two kinds of value."""
    kind, either = schema.get("type"), schema.get("anyOf")
    if isinstance(kind, list) and "null" in kind and len(kind) == 2 and kind != ["null", "null"]:
        rest = next(name for name in kind if name != "null")
        return {**schema, "type": rest}
    if not isinstance(either, list) or len(either) != 2 or "type" in schema:
        return None
    others = [part for part in either if not _is_null(part)]
    if len(others) != 1 or not isinstance(others[0], Mapping):
        return None
    return {**{name: schema[name] for name in schema if name != "anyOf"}, **others[0]}


def constants_of(schema: Mapping[str, Any]) -> list[Any] | None:
    """The values of a choice of constants, as schemas give them titles; None for another."""
    if ("oneOf" in schema) is ("anyOf" in schema):
        return None
    parts = schema.get("oneOf", schema.get("anyOf"))
    if not isinstance(parts, list) or not parts:
        return None
    if not all(isinstance(part, Mapping) and "const" in part for part in parts):
        return None
    if any(unheld(part) != ["const"] for part in parts):
        return None
    return [part["const"] for part in parts]


def resolved(schema: Any, whole: Mapping[str, Any]) -> Any:
    """A schema of an argument with what it refers to within the whole one, at its top.

    A reference that leads nowhere, out of the schema, or round in a circle stays, and is lost.
    """
    for _ in range(_MOST_REFERENCES):
        reference = schema.get("$ref") if isinstance(schema, Mapping) else None
        target = _target(reference, whole) if isinstance(reference, str) else None
        if not isinstance(target, Mapping):
            break
        schema = {**target, **{name: schema[name] for name in schema if name != "$ref"}}
    if isinstance(schema, Mapping):
        for word in ("anyOf", "oneOf"):
            parts = schema.get(word)
            if isinstance(parts, list) and any("$ref" in p for p in parts if isinstance(p, dict)):
                inner = [
                    p if not isinstance(p, Mapping) or word in p else _once(p, whole) for p in parts
                ]
                schema = {**schema, word: inner}
    return schema


_MOST_REFERENCES = 16


def _once(schema: Mapping[str, Any], whole: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = schema.get("$ref")
    target = _target(reference, whole) if isinstance(reference, str) else None
    if not isinstance(target, Mapping):
        return schema
    return {**target, **{name: schema[name] for name in schema if name != "$ref"}}


def _target(reference: str, whole: Mapping[str, Any]) -> object:
    """What a reference within the same schema leads to; None where it leads nowhere."""
    if not reference.startswith("#/"):
        return None
    found: object = whole
    for step in reference[2:].split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, Mapping) or name not in found:
            return None
        found = found[name]
    return found


def _is_null(schema: object) -> bool:
    return isinstance(schema, Mapping) and schema.get("type") == "null"


def also(domain: ArgumentDomain, said: str) -> ArgumentDomain:
    """The domain with one more thing that it does not hold."""
    opened = None if domain.opened is None else also(domain.opened, said)
    return replace(domain, opened=opened, lost=(*domain.lost, said))


def _text(schema: Mapping[str, Any]) -> ArgumentDomain | None:
    losses = _Losses()
    least = _length(schema, "minLength", 0)
    most = _length(schema, "maxLength", _USUAL if least <= _USUAL else _LONGEST)
    pattern = schema.get("pattern")
    made = dialect_of(pattern) if isinstance(pattern, str) else None
    longest = _LONGEST if made is None else _checked_at_once(made, min(most, _LONGEST))
    if longest < least <= most:
        made, longest = None, _LONGEST
    if most > longest:
        losses.said.append(f"at most {longest} characters")
    if least > min(most, longest):
        return None
    parts = ["text"]
    parts += [f"min {least}"] if least else []
    parts += [f"max {min(most, longest)}"] if min(most, longest) != _USUAL else []
    if made is not None and is_literal(made) and least <= len(made) <= most:
        parts = ["text", quoted(made)]
    elif made is not None:
        parts.append(f"~ {quoted(made)}")
    elif isinstance(pattern, str):
        losses.said.append(f"the pattern {quoted(pattern)} is not held")
    used = frozenset(("minLength", "maxLength", "pattern"))
    return ArgumentDomain(text=" ".join(parts), lost=losses.other(schema, used))


def _checked_at_once(pattern: str, most: int) -> int:
    """How long texts of a pattern may be: so that one check holds nothing up, `most` at most."""
    try:
        ensure_quick(pattern, most, "pattern")
    except Rejected:
        return MAX_STEPS // size_of(read_tree(pattern, "pattern"))
    return most


def _length(schema: Mapping[str, Any], name: str, usual: int) -> int:
    found = [math.floor(value) for value in numbers_of(schema, name) if value >= 0]
    return found[0] if found else usual
