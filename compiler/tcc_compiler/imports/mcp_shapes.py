"""What core 1.2 has types for, out of JSON Schema: lists, records as their elements, null, answers.

An array is a list of an open type, an object that is an element a record, and where null is one of
two kinds of value, it counts as left out.  What an output schema describes are answers: texts,
numbers, flags and lists, all open, so that they multiply no calls.  References are followed within
the whole schema, as deep as DEEPEST and through at most MOST_PARTS parts: what lies beyond is JSON.
Specification: docs/spec/language.md, section 12.  Cost: linear in MOST_PARTS, for each tool.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tcc_certs.errors import is_plain
from tcc_certs.formats.codec import MAX_NAME
from tcc_compiler.frozen import frozen
from tcc_compiler.imports import mcp_schema

MOST_PARTS = 512  # of the schemas of one tool
DEEPEST = 8  # lists and records inside one another
MOST_ELEMENTS = 1000  # of a list
_ARRAY = frozenset(("items", "minItems", "maxItems", "uniqueItems"))
_RECORD = frozenset(("properties", "required", "additionalProperties"))
# Both are of RFC 3339, a time with seconds and a zone: what is no such text is refused.
_FORMATS = {"date-time": "time", "date": "date"}
_OBJECT = 'its shape is not held: "object"'


@frozen
class Described:
    """A field as it is declared: its name, what it may be, and whether it may be left out."""

    name: str
    domain: mcp_schema.ArgumentDomain
    optional: bool

    @property
    def choices(self) -> int:
        """How many values it has where they are listed."""
        return self.domain.values + self.optional

    @property
    def widened(self) -> bool:
        """Whether it may be left out only because null counts as that."""
        return self.domain.null and not self.domain.values and not self.optional

    @property
    def text(self) -> str:
        """Name and type, as a grammar writes them."""
        null = " or null" if self.domain.null and not self.domain.values else ""
        mark = "?" if self.optional or null else ""
        return f"{mcp_schema.name_text(self.name)}{mark}: {self.domain.text}{null}"


class Shapes:
    """The schemas of one tool, read part by part."""

    def __init__(self, whole: Mapping[str, Any]) -> None:
        self._whole = whole
        self._left = MOST_PARTS

    def domain(self, given: Any, depth: int = 0) -> mcp_schema.ArgumentDomain | None:
        """The domain of what has that schema; None where no value is one."""
        schema = mcp_schema.resolved(given, self._whole)
        if not isinstance(schema, Mapping):
            return mcp_schema.domain_of(schema)
        listed = mcp_schema.listed_values(schema)
        self._left -= 1 + len(listed or ()) // 64
        if self._left < 0 or depth > DEEPEST:
            return mcp_schema.any_json(schema)
        if listed is None:
            inner = mcp_schema.not_null(schema)
            if inner is not None:
                found = self.domain(inner, depth + 1)
                return None if found is None else mcp_schema.or_null(found, left_out=True)
            if schema.get("type") == "array" and not any(
                word in schema for word in mcp_schema.SHAPES
            ):
                return self._list(schema, depth)
            if schema.get("type") == "string" and schema.get("format") in _FORMATS:
                others = ("pattern", "minLength", "maxLength", *mcp_schema.SHAPES)
                if not any(word in schema for word in others):
                    return mcp_schema.ArgumentDomain(text=_FORMATS[str(schema["format"])])
        return mcp_schema.domain_of(schema)

    def answers(self, taken: Sequence[str]) -> tuple[list[str], list[str]]:
        """The fields of an output schema as a grammar writes them, and what is not among them.

        Args:
            taken: the names of the arguments, with which answers share one name space.
        """
        schema = self._whole
        properties, required = schema.get("properties", {}), schema.get("required", [])
        if not isinstance(properties, Mapping) or not isinstance(required, Sequence):
            return [], ["its output schema does not list its answers"]
        found: list[str] = []
        left: list[str] = []
        names = set(taken)
        for member, inner in properties.items():
            domain = self._answer(inner)
            name = member if member not in names else f"{member}_answered"
            if domain is None or name in names or not _names(name):
                left.append(member)
                continue
            names.add(name)
            one = Described(name=name, domain=domain, optional=member not in required).text
            at = member.replace("~", "~0").replace("/", "~1")
            found.append(one if name == member else f"{one} at {mcp_schema.quoted(f'/{at}')}")
        said = ", ".join(mcp_schema.quoted(member[:MAX_NAME]) for member in left[:8])
        return found, [f"of what it answers not compared: {said}"] if left else []

    def _answer(self, given: Any) -> mcp_schema.ArgumentDomain | None:
        """An answer that can be compared with something; None of another."""
        found = self.domain(given)
        if found is not None and found.values:
            found = found.opened
        return None if found is None or found.text == "json" else found

    def _list(self, schema: Mapping[str, Any], depth: int) -> mcp_schema.ArgumentDomain | None:
        items = schema.get("items", True)
        bounds = [_count(schema, name) for name in ("minItems", "maxItems")]
        least, most = bounds[0] or 0, MOST_ELEMENTS if bounds[1] is None else bounds[1]
        if depth >= DEEPEST or isinstance(items, Sequence) or least > MOST_ELEMENTS:
            return mcp_schema.any_json(schema)
        if least > most:
            return None
        lost: list[str] = []
        if bounds[1] is not None and most > MOST_ELEMENTS:
            lost.append(f"at most {MOST_ELEMENTS} elements")
            most = MOST_ELEMENTS
        of = self._element(items, depth + 1)
        if of is None:  # no element is one
            return mcp_schema.ArgumentDomain(text="list max 0 of json") if least == 0 else None
        lost += of.lost
        if of.null:
            lost.append("null is refused as an element")
        left = [name for name in mcp_schema.unheld(schema) if name not in _ARRAY]
        lost += [f"not held: {', '.join(left)}"] if left else []
        parts = ["list", *([f"min {least}"] if least else [])]
        parts += [f"max {most}"] if most != MOST_ELEMENTS else []
        parts += ["distinct"] if schema.get("uniqueItems") is True else []
        return mcp_schema.ArgumentDomain(text=f"{' '.join(parts)} of {of.text}", lost=tuple(lost))

    def _element(self, given: Any, depth: int) -> mcp_schema.ArgumentDomain | None:
        """An element of a list, or a field of one: open, or a record."""
        schema = mcp_schema.resolved(given, self._whole)
        if isinstance(schema, Mapping) and mcp_schema.listed_values(schema) is None:
            plain = not any(word in schema for word in mcp_schema.SHAPES)
            if schema.get("type") == "object" and plain and schema.get("properties"):
                return self._record(schema, depth)
        found = self.domain(schema, depth)
        if found is None or not found.values:
            return found
        return found.opened if found.opened is not None else mcp_schema.ArgumentDomain(text="json")

    def _record(self, schema: Mapping[str, Any], depth: int) -> mcp_schema.ArgumentDomain | None:
        self._left -= 1
        properties, required = schema["properties"], schema.get("required", [])
        known = isinstance(properties, Mapping) and isinstance(required, Sequence)
        if depth >= DEEPEST or self._left < 0 or not known:
            return mcp_schema.any_json(schema)
        fields: list[Described] = []
        lost: list[str] = []
        for name, inner in properties.items():
            if self._left < 0:
                return mcp_schema.any_json(schema)
            within = self._field(inner, depth + 1)
            if within is None and name in required:
                return None
            if within is None or not _names(name):
                lost.append(f"{mcp_schema.quoted(name[:MAX_NAME])} of an element is not looked at")
                continue
            field = Described(name=name, domain=within, optional=name not in required)
            fields.append(field)
            lost += [f"{mcp_schema.quoted(name)}: {said}" for said in within.lost]
            if field.widened:
                lost.append(f"{mcp_schema.quoted(name)}: it may be left out, too")
        if not fields:
            return mcp_schema.ArgumentDomain(text="json", lost=(_OBJECT,))
        left = [name for name in mcp_schema.unheld(schema) if name not in _RECORD]
        lost += [f"not held: {', '.join(left)}"] if left else []
        if schema.get("additionalProperties") is False:
            lost.append("members of its elements that its schema does not name are let through")
        missing = [name for name in required if name not in properties]
        lost += ["not held: required"] if missing else []
        inside = ", ".join(field.text for field in fields)
        return mcp_schema.ArgumentDomain(text=f"({inside})", lost=tuple(lost))

    def _field(self, given: Any, depth: int) -> mcp_schema.ArgumentDomain | None:
        """A field of a record: open, and no record itself."""
        found = self.domain(given, depth)
        if found is None or not found.values:
            return found
        return found.opened if found.opened is not None else mcp_schema.ArgumentDomain(text="json")


def _names(name: str) -> bool:
    return 1 <= len(name) <= MAX_NAME and is_plain(name)


def _count(schema: Mapping[str, Any], name: str) -> int | None:
    """A bound on elements, if it is a whole number from 0 up."""
    found = [
        one
        for one in mcp_schema.numbers_of(schema, name)
        if one >= 0 and one == one.to_integral_value()
    ]
    return min(int(found[0]), MOST_ELEMENTS + 1) if found else None
