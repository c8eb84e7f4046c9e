"""Turn a JSON Schema into a domain of the language, and report constraints that are not checked.

Values that a grammar can list are listed: enum, const, boolean, and integers between close bounds.
Other schemas become open domains: texts and numbers with their limits, lists, objects, and unions
of these. The rest becomes JSON of any shape. Every constraint of the schema that the domain does
not check is reported as lost.

References are followed within the whole schema, at most `DEEPEST` deep and through at most
`MOST_PARTS` parts; everything beyond becomes JSON. Several schemas for one value (`allOf`, or a
reference with further members) are merged into one.
Specification: docs/spec/imports.md, section 2. Cost: linear in the parts that are read. Patterns
are translated by :mod:`tcc_compiler.imports.patterns`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, TypeAlias
from unicodedata import normalize

from tcc_certs.errors import Rejected, is_plain
from tcc_certs.formats.codec import MAX_NAME
from tcc_certs.policy.nodes import Name, written
from tcc_certs.values.numbers import LEAST_WHOLE, MOST_WHOLE, canonical_number
from tcc_certs.values.text_syntax import MAX_STEPS, ensure_quick, read_tree, size_of
from tcc_compiler.frozen import frozen
from tcc_compiler.imports.patterns import dialect_of
from tcc_compiler.names.types import is_literal

MOST_PARTS = 512  # the most parts of the schemas of one tool
DEEPEST = 8  # the most nested lists, objects and choices
HIGHEST = 12  # the most nested types
MOST_ELEMENTS = 1000  # the most elements of a list
MOST_CHOICES = 64  # the most parts of an anyOf or oneOf, or elements of a tuple
MOST_POINTS = 8  # the most numbers that are listed in an open domain
_RANGE = 64
_DIGITS = 400
_LONGEST = 1 << 20
_USUAL = 65536
_MOST_REFERENCES = 16

ANNOTATIONS = frozenset(
    (
        "$comment", "$schema", "$id", "$anchor", "$defs", "definitions", "default", "deprecated",
        "description", "examples", "readOnly", "title", "writeOnly", "x-mcp-header",
    )
)  # fmt: skip
_TEXTS = frozenset(("minLength", "maxLength", "pattern", "format"))
_NUMBERS = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"))
_ARRAYS = frozenset(
    ("items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains",
     "minContains", "maxContains", "unevaluatedItems")
)  # fmt: skip
_OBJECTS = frozenset(
    ("properties", "required", "additionalProperties", "patternProperties", "propertyNames",
     "minProperties", "maxProperties", "dependentRequired", "dependentSchemas",
     "unevaluatedProperties")
)  # fmt: skip
_OF_KIND: Mapping[str, frozenset[str]] = {
    "string": _TEXTS, "number": _NUMBERS, "integer": _NUMBERS, "array": _ARRAYS,
    "object": _OBJECTS, "boolean": frozenset(), "null": frozenset(),
}  # fmt: skip
_TYPED = frozenset((*_TEXTS, *_NUMBERS, *_ARRAYS, *_OBJECTS))
# Formats that are types of the language, as in RFC 3339; a time has seconds and a zone.
_FORMATS = {"date-time": "time", "date": "date"}
ANY_OBJECT = 'object (all: json at "", member?: json)'

Schema: TypeAlias = "Mapping[str, Any]"


@frozen
class ArgumentDomain:
    """The values that a grammar allows for a schema.

    A domain is listed if `values` is not empty, else open.

    Attributes:
        types: for an open domain, the texts of its types, except null.
        values: for a listed domain, the texts of its values, including null.
        interval: for consecutive integers, the text that is written instead of `values`.
        opened: the open domain that can replace a listed one; None if there is none.
        lost: constraints of the schema that the domain does not check, one sentence each.
        null: for an open domain, whether null is a value.
        members: whether the schema leaves the members of some object in it open.
        bounds: comparisons that a statement has to make, such as ``> 0``.
        height: how many levels of types are nested.
    """

    types: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    interval: str = ""
    opened: ArgumentDomain | None = None
    lost: tuple[str, ...] = ()
    null: bool = False
    members: bool = False
    bounds: tuple[str, ...] = ()
    height: int = 1

    @property
    def text(self) -> str:
        """The domain as a grammar writes it."""
        if self.values:
            return self.interval or " | ".join(self.values)
        return " or ".join([*self.types, *(["null"] if self.null else [])])

    @property
    def is_json(self) -> bool:
        """True if the domain is JSON of any shape."""
        return self.types == ("json",)

    def lacking(self, *lost: str) -> ArgumentDomain:
        """Return the domain with further constraints that it does not check."""
        opened = None if self.opened is None else self.opened.lacking(*lost)
        return replace(self, lost=(*self.lost, *lost), opened=opened)

    def nullable(self) -> ArgumentDomain:
        """Return the domain with null as a further value."""
        if self.is_json or self.null or "null" in self.values:
            return self
        opened = None if self.opened is None else self.opened.nullable()
        if self.values:
            return replace(self, values=(*self.values, "null"), interval="", opened=opened)
        return replace(self, null=True, height=self.height + 1)


def merged(one: Schema, other: Schema) -> dict[str, Any] | None:
    """Return the schema of values that have both schemas; None if it cannot be expressed."""
    one, other = _closed(one, other), _closed(other, one)
    found = dict(one)
    for name, value in other.items():
        if name not in found or found[name] == value or name in ANNOTATIONS:
            found[name] = value
            continue
        both = _BOTH.get(name)
        joined = None if both is None else both(found[name], value)
        if joined is None:
            return None
        found[name] = joined
    return found


def _closed(schema: Schema, beside: Schema) -> Schema:
    """Return a closed schema with `False` for each property that only `beside` names."""
    own, others = schema.get("properties", {}), beside.get("properties", {})
    if schema.get("additionalProperties") is not False or not isinstance(others, Mapping):
        return schema
    more = {name: False for name in others if isinstance(own, Mapping) and name not in own}
    return {**schema, "properties": {**own, **more}} if more else schema


def _all_properties(one: object, other: object) -> object:
    if not isinstance(one, Mapping) or not isinstance(other, Mapping):
        return None
    found = dict(one)
    for name, inner in other.items():
        known = found.get(name, inner)
        if known == inner:
            found[name] = inner
        else:
            found[name] = False if False in (known, inner) else {"allOf": [known, inner]}
    return found


def _all_names(one: object, other: object) -> object:
    if not isinstance(one, list) or not isinstance(other, list):
        return None
    return [*one, *[name for name in other if name not in one]]


def _all_types(one: object, other: object) -> object:
    kinds, others = (kind if isinstance(kind, list) else [kind] for kind in (one, other))
    shared = [
        kind for kind in kinds if kind in others or (kind == "integer" and "number" in others)
    ]
    shared += [kind for kind in others if kind == "integer" and "number" in kinds]
    return list(dict.fromkeys(shared))


def _closing(one: object, other: object) -> object:
    if one in (True, {}) or other in (True, {}):
        return other if one in (True, {}) else one
    return False if one is False or other is False else None


def _greater(one: Any, other: Any) -> object:
    return max(one, other) if is_number(one) and is_number(other) else None


def _lesser(one: Any, other: Any) -> object:
    return min(one, other) if is_number(one) and is_number(other) else None


def _shared_values(one: object, other: object) -> object:
    if not isinstance(one, list) or not isinstance(other, list):
        return None
    return [value for value in one if any(type(v) is type(value) and v == value for v in other)]


_BOTH: Mapping[str, Callable[[object, object], object]] = {
    "properties": _all_properties, "required": _all_names, "type": _all_types,
    "additionalProperties": _closing, "enum": _shared_values,
    "minimum": _greater, "minLength": _greater, "minItems": _greater, "exclusiveMinimum": _greater,
    "maximum": _lesser, "maxLength": _lesser, "maxItems": _lesser, "exclusiveMaximum": _lesser,
}  # fmt: skip


class Schemas:
    """Reads the schemas of one tool, part by part.

    Args:
        whole: the schema that references point into.
        spellings: the names of the grammar.
    """

    def __init__(self, whole: Schema, spellings: Spellings) -> None:
        self._whole = whole
        self._spellings = spellings
        self._left = MOST_PARTS

    # One schema for one value.

    def flat(self, schema: object, depth: int = 0) -> Schema | bool:
        """Return the schema merged with the schemas that it refers to and its `allOf` parts.

        A reference stays if its target does not exist or is outside of the schema, or in a circle.
        """
        for _ in range(_MOST_REFERENCES):
            if not isinstance(schema, Mapping):
                return schema is not False
            if "$ref" in schema:
                target = self._target(schema["$ref"])
                rest = {name: schema[name] for name in schema if name != "$ref"}
                if isinstance(target, bool):
                    schema = rest if target else False
                    continue
                both = None if target is None else merged(target, rest)
                if both is None:
                    break
                schema = both
            elif isinstance(schema.get("allOf"), list):
                joined = self._all_of(schema, depth + 1)
                if joined is None:
                    break
                schema = joined
            else:
                break
        return schema if isinstance(schema, Mapping) else schema is not False

    def _all_of(self, schema: Schema, depth: int) -> Schema | bool | None:
        """Return the schema merged with its `allOf` parts; None if that is not possible."""
        found: Schema = {name: schema[name] for name in schema if name != "allOf"}
        for part in schema["allOf"]:
            self._left -= 1
            inner = self.flat(part, depth) if self._left > 0 and depth <= DEEPEST else None
            if inner is None or isinstance(inner, bool):
                if inner is True:
                    continue
                return inner
            both = merged(found, inner)
            if both is None:
                return None
            found = both
        return found

    def _target(self, reference: object) -> Schema | bool | None:
        """Return the target of a reference within the whole schema; None if it does not exist."""
        if reference == "#":
            return self._whole
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return None
        found: object = self._whole
        for step in reference[2:].split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and name.isdecimal() and int(name[:6]) < len(found):
                found = found[int(name[:6])]
            elif isinstance(found, Mapping) and name in found:
                found = found[name]
            else:
                return None
        return found if isinstance(found, Mapping | bool) else None

    # Domains.

    def domain(self, given: object, depth: int = 0) -> ArgumentDomain | None:
        """Return the domain of the values of a schema; None if it has no values."""
        self._left -= 1
        schema = self.flat(given)
        if isinstance(schema, bool):
            return _JSON if schema else None
        found = self._domain(schema, depth)
        return any_json(schema) if found is not None and found.height > HIGHEST else found

    def _domain(self, schema: Schema, depth: int) -> ArgumentDomain | None:
        listed = _listed_values(schema)
        if listed is not None:
            self._left -= len(listed) // 64
            return _listed(schema, listed)
        if self._left < 0 or depth > DEEPEST:
            return any_json(schema)
        for word in ("anyOf", "oneOf"):
            if isinstance(schema.get(word), list):
                return self._choice(schema, word, depth)
        kind = schema.get("type")
        if isinstance(kind, list):
            kinds = dict.fromkeys([one for one in kind if isinstance(one, str)])
            return _joined([self._of_kind(schema, one, depth) for one in kinds])
        return self._of_kind(schema, kind, depth)

    def _of_kind(self, schema: Schema, kind: object, depth: int) -> ArgumentDomain | None:
        """Return the domain of the schema's values of one JSON type."""
        if not isinstance(kind, str) or kind not in _OF_KIND:
            return any_json(schema)
        match kind:
            case "array":
                found = self._array(schema, depth)
            case "object":
                found = self._object(schema, depth)
            case _:
                found = _SCALARS[kind](schema)
        if found is None or found.is_json:
            return found
        left = [name for name in unheld(schema) if name not in _TYPED]
        return found.lacking(f"not held: {', '.join(left)}") if left else found

    def _choice(self, schema: Schema, word: str, depth: int) -> ArgumentDomain | None:
        """Return the domain of an `anyOf` or a `oneOf`."""
        around = {name: schema[name] for name in schema if name != word}
        if len(schema[word]) > MOST_CHOICES or self._left < 0:
            constants = _constants(schema[word])
            return any_json(schema) if constants is None else _listed(around, constants)
        found = []
        for part in schema[word]:
            inner = self.flat(part)
            if inner is False:
                continue
            both = around if isinstance(inner, bool) else merged(around, inner)
            if both is None:
                return any_json(schema)
            found.append(self.domain(both, depth + 1))
        return _joined(found, exclusive=word == "oneOf")

    # Arrays.

    def _array(self, schema: Schema, depth: int) -> ArgumentDomain | None:
        least, most = _count(schema, "minItems") or 0, _count(schema, "maxItems")
        lost: list[str] = []
        if depth >= DEEPEST or least > MOST_ELEMENTS:
            return any_json(schema)
        if most is not None and most > MOST_ELEMENTS:
            lost.append(f"at most {MOST_ELEMENTS} elements")
        most = MOST_ELEMENTS if most is None else min(most, MOST_ELEMENTS)
        of, most = self._elements(schema, most, depth, lost)
        if least > most:
            return None
        if of is None or most == 0:
            return ArgumentDomain(types=("list max 0 of json",), lost=tuple(lost), height=2)
        lost += of.lost
        lost += ["a bound of its elements that is exclusive is let through"] if of.bounds else []
        used = ("items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems")
        left = [name for name in unheld(schema) if name in _ARRAYS and name not in used]
        lost += [f"not held: {', '.join(left)}"] if left else []
        parts = ["list", *([f"min {least}"] if least else [])]
        parts += [f"max {most}"] if most != MOST_ELEMENTS else []
        parts += ["distinct"] if schema.get("uniqueItems") is True else []
        text = of.text
        if len(of.types) > 1 or of.null:
            text = f"({text})"
        elif text.startswith("object ("):
            text = text.removeprefix("object ")
        return ArgumentDomain(
            types=(f"{' '.join(parts)} of {text}",), lost=tuple(lost), members=of.members,
            height=of.height + 1,
        )  # fmt: skip

    def _elements(
        self, schema: Schema, most: int, depth: int, lost: list[str]
    ) -> tuple[ArgumentDomain | None, int]:
        """Return the domain of an array's elements, and the most elements; append to `lost`."""
        tuple_ = schema.get("prefixItems")
        rest = schema.get("items", True)
        if not isinstance(tuple_, list) and isinstance(rest, list):  # drafts before 2020
            tuple_, rest = rest, schema.get("additionalItems", True)
        if not isinstance(tuple_, list):
            return self._open(rest, depth + 1), most
        items = [*tuple_[:most], *([] if rest is False else [rest])]
        most = min(most, len(tuple_)) if rest is False else most
        if len(items) > MOST_CHOICES:
            lost.append("its elements are not held")
            return _JSON, most
        found: list[ArgumentDomain | None] = []
        for at, item in enumerate(items):
            of = self._open(item, depth + 1)
            if of is None and at < len(tuple_):
                most = min(most, at)
                break
            found.append(of)
        if len(dict.fromkeys(one.text for one in found if one is not None)) > 1:
            lost.append("which element has which of its types is not held")
        return _joined(found), most

    def _open(self, schema: object, depth: int) -> ArgumentDomain | None:
        """Return the open domain of an element."""
        found = self.domain(schema, depth)
        if found is None or not found.values:
            return found
        return found.opened or ArgumentDomain(types=("json",), lost=("its values are not held",))

    # Objects.

    def _object(self, schema: Schema, depth: int) -> ArgumentDomain | None:
        properties, required = schema.get("properties", {}), schema.get("required", [])
        more = schema.get("additionalProperties", True)
        if not isinstance(properties, Mapping) or not isinstance(required, list):
            return any_json(schema)
        if depth >= DEEPEST or self._left < 0 or "patternProperties" in schema:
            return _any_object(schema)
        if not properties and not required:
            return _any_object(schema)
        fields: list[Described] = []
        lost: list[str] = []
        for name in dict.fromkeys([*properties, *required]):
            if self._left < 0 or not isinstance(name, str):
                return _any_object(schema)
            needed = name in required
            inner = self.domain(properties.get(name, more), depth + 1)
            if inner is None and needed:
                return None
            if inner is None or self._spellings.fault(name):
                if needed:
                    return _any_object(schema)
                if inner is not None:
                    lost.append(f"{quoted(name[:MAX_NAME])} of an object is refused")
                continue
            fields.append(Described(name=name, domain=inner, optional=not needed))
            lost += [f"{quoted(name)}: {said}" for said in inner.lost]
            if inner.bounds:
                lost.append(f"{quoted(name)}: a bound that is exclusive is let through")
        if not fields:
            return _any_object(schema)
        used = ("properties", "required", "additionalProperties")
        left = [name for name in unheld(schema) if name in _OBJECTS and name not in used]
        lost += [f"not held: {', '.join(left)}"] if left else []
        inside = ", ".join([field.text for field in fields])
        return ArgumentDomain(
            types=(f"object ({inside})",), lost=tuple(lost),
            members=more is not False or any(field.domain.members for field in fields),
            height=1 + max(field.domain.height for field in fields),
        )  # fmt: skip


@frozen
class Described:
    """A field as it is declared: its name, its domain, and whether it may be missing."""

    name: str
    domain: ArgumentDomain
    optional: bool

    @property
    def choices(self) -> int:
        """The number of its listed values; a missing optional value counts as one."""
        return len(self.domain.values) + self.optional

    @property
    def text(self) -> str:
        """The name and the type, as a grammar writes them."""
        return f"{name_text(self.name)}{'?' * self.optional}: {self.domain.text}"


class Spellings:
    """The names of a grammar. Two names with the same normal form (NFC) count as equal."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def fault(self, name: str) -> str:
        """Return why a grammar cannot have a name; empty if it can. Then the name is recorded."""
        if not (1 <= len(name) <= MAX_NAME and is_plain(name) and "`" not in name):
            return f"a name has 1 to {MAX_NAME} characters, none of them hidden or a backtick"
        if not name.isascii() and self._known.setdefault(normalize("NFC", name), name) != name:
            return "another name has the same normal form (NFC)"
        return ""


_JSON = ArgumentDomain(types=("json",))


def any_json(schema: Schema) -> ArgumentDomain:
    """Return the domain of any JSON; all constraints of the schema are lost."""
    left = unheld(schema)
    kind = schema.get("type")
    said = ", ".join([*([json.dumps(kind)] if kind is not None else []), *left])
    return replace(_JSON, lost=(f"its shape is not held: {said}",) if said else ())


def _any_object(schema: Schema) -> ArgumentDomain:
    """Return the domain of any object; all constraints on its members are lost."""
    left = [name for name in unheld(schema) if name in _OBJECTS]
    left = [name for name in left if schema[name] not in (True, {}, [])]
    said = (f"its members are not held: {', '.join(left)}",) if left else ()
    return ArgumentDomain(types=(ANY_OBJECT,), lost=said, height=2)


def _joined(
    found: Sequence[ArgumentDomain | None], *, exclusive: bool = False
) -> ArgumentDomain | None:
    """Return the union of several domains; None if no domain has a value.

    Args:
        exclusive: whether the schema refuses values that are in two of the domains.
    """
    parts = list(dict.fromkeys(part for part in found if part is not None))
    if not parts:
        return None
    lost = [said for part in parts for said in part.lost]
    if exclusive and _overlap([part for part in found if part is not None]):
        lost.append("a value of several of its choices is let through")
    lost = list(dict.fromkeys(lost))
    if len(parts) == 1:
        return replace(parts[0], lost=tuple(lost))
    null = any(part.null or "null" in part.values for part in parts)
    if all(part.values for part in parts):
        values = tuple(dict.fromkeys(value for part in parts for value in part.values))
        opened = _joined([part.opened for part in parts if part.values != ("null",)])
        opened = opened.nullable() if opened is not None and null else opened
        return ArgumentDomain(values=values, opened=opened, lost=tuple(lost))
    rest = [part for part in parts if part.values != ("null",)]
    if len(rest) == 1:
        return replace(rest[0].nullable(), lost=tuple(lost))
    opens = [part.opened if part.values else part for part in rest]
    types = list(dict.fromkeys(kind for part in opens if part is not None for kind in part.types))
    lost += [said for part in opens if part is not None for said in part.lost if said not in lost]
    if any(part is not None and part.bounds for part in opens):
        lost.append("a bound that is exclusive is let through")
    if "json" in types or None in opens:
        return ArgumentDomain(types=("json",), lost=tuple(lost))
    # A time or date in a union becomes a text, because it is written as one.
    types = list(dict.fromkeys("text" if kind in ("time", "date") else kind for kind in types))
    if any(_is_two(types, word) for word in ("list", "object")):
        lost.append("its shape is not held: several kinds of arrays or objects")
        return ArgumentDomain(types=("json",), lost=tuple(lost))
    return ArgumentDomain(
        types=tuple(types), null=null, lost=tuple(lost),
        members=any(part is not None and part.members for part in opens),
        height=1 + null + max(part.height for part in opens if part is not None),
    )  # fmt: skip


def _is_two(types: Sequence[str], word: str) -> bool:
    return sum([kind.split(" ", 1)[0] == word for kind in types]) > 1


_JSON_KIND = {"integer": "number", "time": "text", "date": "text"}


def _overlap(parts: Sequence[ArgumentDomain]) -> bool:
    """Return whether two of the domains may share a value."""
    if all(part.values for part in parts):
        values = [value for part in parts for value in part.values]
        return len(set(values)) < len(values)
    seen: set[str] = set()
    for part in parts:
        opened = part.opened if part.values and part.opened is not None else part
        kinds = {kind.split(" ", 1)[0] for kind in opened.types}
        kinds = {_JSON_KIND.get(kind, kind) for kind in kinds}
        kinds |= {"null"} if part.null or "null" in part.values else set()
        if seen & kinds or "json" in seen or (seen and "json" in kinds):
            return True
        seen |= kinds
    return False


def unheld(schema: Schema) -> list[str]:
    """Return the keywords of a schema that constrain values, except `type`, sorted."""
    return sorted(set(schema) - ANNOTATIONS - {"type"})


def has_type(value: object, kind: object) -> bool:
    """Return whether a value has one of the types in `kind`; without types always True."""
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


# Words that begin a type if they are written first in a domain.
_TYPES = frozenset(
    {"date", "flag", "integer", "json", "list", "number", "object", "path", "text", "time", "url"}
)


def value_text(value: object) -> str | None:
    """Return a JSON scalar as a grammar lists it; None if programs do not agree on its value."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "true" if value else "false"
    if isinstance(value, str):
        if _encodes(value) and name_text(value) == value and value not in _TYPES:
            return value
        return quoted(value) if _encodes(value) else None
    return canonical_text(value)


def canonical_text(value: object) -> str | None:
    """Return a number as a grammar writes it; None if the language has no such value."""
    try:
        return canonical_number(value)
    except Rejected:
        return None


def quoted(text: str) -> str:
    """Return a string literal of the grammar language, in ASCII; it is a JSON string."""
    return json.dumps(text)


def name_text(name: str) -> str:
    """Return a name as a grammar writes it: in backticks unless it is a plain identifier."""
    return written([Name(name)])


def _encodes(text: str) -> bool:
    return not any(0xD800 <= ord(char) < 0xE000 for char in text)


def is_number(value: object) -> bool:
    """Return whether a JSON value is a number."""
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


# Listed values.


def _listed_values(schema: Schema) -> Sequence[Any] | None:
    """Return the values that a schema lists by `enum` or `const`; None if it lists none."""
    enum = schema.get("enum")
    if "const" in schema:
        return [schema["const"]] if not isinstance(enum, list) or schema["const"] in enum else []
    return enum if isinstance(enum, list) else None


def _constants(parts: Sequence[Any]) -> list[Any] | None:
    """Return the values of a choice that has only `const` parts; else None."""
    if not all(isinstance(part, Mapping) and unheld(part) == ["const"] for part in parts):
        return None
    return [part["const"] for part in parts]


def _listed(schema: Schema, values: Sequence[Any]) -> ArgumentDomain | None:
    """Return the domain that lists all `values` of the schema's type."""
    values = [value for value in values if has_type(value, schema.get("type"))]
    if any(isinstance(value, Mapping | list) for value in values):
        return replace(_JSON, lost=("its shape is not held: enum",))
    lost: list[str] = []
    texts: dict[str, Any] = {}
    for value in values:
        text = value_text(value)
        if text is None:
            lost.append(f"the value {json.dumps(str(value)[:40])} is refused everywhere")
        else:
            texts[text] = value
    if not texts:
        return None
    left = [name for name in unheld(schema) if name not in ("const", "enum", "anyOf", "oneOf")]
    lost += [f"not held: {', '.join(left)}"] if left else []
    opened = _opened(list(texts.values()))
    opened = None if opened is None else opened.lacking(*lost)
    return ArgumentDomain(values=tuple(texts), opened=opened, lost=tuple(lost))


def _opened(values: Sequence[Any]) -> ArgumentDomain | None:
    """Return an open domain with these values; None if no type has them."""
    lost: list[str] = []
    types: list[str] = []
    texts = [value for value in values if isinstance(value, str)]
    if texts:
        types.append(f"text {' | '.join(map(quoted, texts))}")
    flags = [value for value in values if isinstance(value, bool)]
    if flags:
        types.append("flag")
        lost += [] if len(flags) == 2 else ["one of two values is let through, too"]
    numbers = sorted([canonical_number(v) for v in values if is_number(v)], key=Decimal)
    if numbers:
        low, high = numbers[0], numbers[-1]
        whole = not any("." in text for text in numbers)
        kind = "integer" if whole else "number"
        if whole and int(high) - int(low) == len(numbers) - 1:
            types.append(f"{kind} {low} .. {high}")
        elif len(numbers) <= MOST_POINTS:
            types += [f"{'number' if '.' in n else 'integer'} {n} .. {n}" for n in numbers]
        else:
            types.append(f"{kind} {low} .. {high}")
            lost.append(f"any {kind} between its values is let through")
    if not types:
        return None
    null = None in values
    height = 1 + (len(types) > 1) + null
    return ArgumentDomain(types=tuple(types), null=null, lost=tuple(lost), height=height)


# Scalars.


def _flag(schema: Schema) -> ArgumentDomain:
    opened = ArgumentDomain(types=("flag",))
    return ArgumentDomain(values=("true", "false"), opened=opened)


def _null(schema: Schema) -> ArgumentDomain:
    return ArgumentDomain(values=("null",))


def _integer(schema: Schema) -> ArgumentDomain | None:
    low, high = _whole_bounds(schema)
    if low is not None and high is not None and low > high:
        return None
    lost = _of_multiple(schema)
    if low is None and high is None:
        return ArgumentDomain(types=("integer",), lost=lost)
    first = LEAST_WHOLE if low is None else max(LEAST_WHOLE, low)
    last = MOST_WHOLE if high is None else min(MOST_WHOLE, high)
    if first > last:
        said = "its bounds are not held: they are beyond 64 bits"
        return ArgumentDomain(types=("integer",), lost=(*lost, said))
    opened = ArgumentDomain(types=(f"integer {first} .. {last}",), lost=lost)
    if last - first >= _RANGE:
        return opened
    values = tuple([str(number) for number in range(first, last + 1)])
    return ArgumentDomain(values=values, interval=f"{first}..{last}", opened=opened, lost=lost)


def _of_multiple(schema: Schema) -> tuple[str, ...]:
    step = schema.get("multipleOf")
    return () if step is None or (is_number(step) and step == 1) else ("not held: multipleOf",)


def _is_exclusive(schema: Schema, name: str) -> bool:
    """Return whether a bound is exclusive as in draft 4: a second keyword is true."""
    return schema.get(f"exclusive{name[0].upper()}{name[1:]}") is True


def _whole_bounds(schema: Schema) -> tuple[int | None, int | None]:
    least, most = (_is_exclusive(schema, name) for name in ("minimum", "maximum"))
    lows = [math.floor(v) + 1 if least else math.ceil(v) for v in numbers_of(schema, "minimum")]
    lows += [math.floor(value) + 1 for value in numbers_of(schema, "exclusiveMinimum")]
    highs = [math.ceil(v) - 1 if most else math.floor(v) for v in numbers_of(schema, "maximum")]
    highs += [math.ceil(value) - 1 for value in numbers_of(schema, "exclusiveMaximum")]
    return max(lows, default=None), min(highs, default=None)


def _number(schema: Schema) -> ArgumentDomain | None:
    if is_number(schema.get("multipleOf")) and schema["multipleOf"] == 1:
        return _integer(schema)
    open_low, open_high = (
        numbers_of(schema, "exclusiveMinimum"),
        numbers_of(schema, "exclusiveMaximum"),
    )
    lows, highs = numbers_of(schema, "minimum"), numbers_of(schema, "maximum")
    open_low += lows if _is_exclusive(schema, "minimum") else []
    open_high += highs if _is_exclusive(schema, "maximum") else []
    low = max([*lows, *open_low], default=None)
    high = min([*highs, *open_high], default=None)
    bounds = [(">", low)] if low is not None and low in open_low else []
    bounds += [("<", high)] if high is not None and high in open_high else []
    if low is not None and high is not None and (low > high or (low == high and bounds)):
        return None
    lost = list(_of_multiple(schema))
    texts = [f"{sign} {canonical_text(value)}" for sign, value in bounds]
    if low is None and high is None:
        return ArgumentDomain(types=("number",), lost=tuple(lost))
    first = canonical_text(LEAST_WHOLE if low is None else low)
    last = canonical_text(MOST_WHOLE if high is None else high)
    if first is None or last is None or Decimal(first) > Decimal(last):
        said = "its bounds are not held: they are no values"
        return ArgumentDomain(types=("number",), lost=(*lost, said))
    return ArgumentDomain(
        types=(f"number {first} .. {last}",), lost=tuple(lost), bounds=tuple(texts)
    )


def numbers_of(schema: Mapping[str, Any], name: str) -> list[Decimal]:
    """Return the value of a bound as a list of one number; empty if it is none or out of range."""
    value = schema.get(name)
    exact = Decimal(str(value)) if is_number(value) else Decimal("NaN")
    return [exact] if exact.is_finite() and abs(exact.adjusted()) <= _DIGITS else []


_ESCAPED = re.compile(r"\\[dDwWsS]")


def _text(schema: Schema) -> ArgumentDomain | None:
    lost: list[str] = []
    format_ = schema.get("format")
    least = _length(schema, "minLength", 0)
    most = _length(schema, "maxLength", _USUAL if least <= _USUAL else _LONGEST)
    pattern = schema.get("pattern")
    if format_ in _FORMATS and not _TEXTS & (schema.keys() - {"format"}):
        said = "only texts of RFC 3339 are let through"
        return ArgumentDomain(types=(_FORMATS[str(format_)],), lost=(said,))
    lost += ["not held: format"] if format_ is not None else []
    made = dialect_of(pattern) if isinstance(pattern, str) else None
    longest = _LONGEST if made is None else _checked_at_once(made, min(most, _LONGEST))
    if longest < least <= most:
        made, longest = None, _LONGEST
    if most > longest:
        lost.append(f"at most {longest} characters")
    if least > min(most, longest):
        return None
    parts = ["text"]
    parts += [f"min {least}"] if least else []
    parts += [f"max {min(most, longest)}"] if min(most, longest) != _USUAL else []
    if made is not None and is_literal(made):
        if not least <= len(made) <= most:
            return None
        parts = ["text", quoted(made)]
    elif made is not None:
        parts.append(f"~ {quoted(made)}")
        if _ESCAPED.search(str(pattern)):
            lost.append("\\d, \\w and \\s have the characters of ECMAScript, not of Python")
    elif isinstance(pattern, str):
        lost.append(f"the pattern {quoted(pattern)} is not held")
    return ArgumentDomain(types=(" ".join(parts),), lost=tuple(lost))


def _checked_at_once(pattern: str, most: int) -> int:
    """Return the greatest length, up to `most`, of texts that one quick check can match."""
    try:
        ensure_quick(pattern, most, "pattern")
    except Rejected:
        return MAX_STEPS // size_of(read_tree(pattern, "pattern"))
    return most


def _length(schema: Mapping[str, Any], name: str, usual: int) -> int:
    found = [math.floor(value) for value in numbers_of(schema, name) if value >= 0]
    return found[0] if found else usual


def _count(schema: Schema, name: str) -> int | None:
    """Return a bound on elements if it is a whole number of at least 0; else None."""
    found = [one for one in numbers_of(schema, name) if one >= 0 and one == one.to_integral_value()]
    return min(int(found[0]), MOST_ELEMENTS + 1) if found else None


_SCALARS: Mapping[str, Callable[[Schema], ArgumentDomain | None]] = {
    "boolean": _flag, "null": _null, "integer": _integer, "number": _number, "string": _text,
}  # fmt: skip
