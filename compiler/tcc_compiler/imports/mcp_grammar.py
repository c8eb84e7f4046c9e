"""The tools of an MCP server as the skeleton of a grammar, to be narrowed by whoever owns it.

Each argument is listed, open or left out as its schema says (:mod:`mcp_schema`); tools are sorted
by name.  What the grammar cannot hold of a schema stands beside the tool as a comment and comes
back as a warning.  A tool whose listed arguments would make too many calls has those with the most
values open instead.

What core 1.2 has types for: an array is a list of an open type, an object that is an element a
record, and null beside another kind of value means left out.  An output schema describes answers:
texts, numbers, flags and lists, all open, so that they multiply no calls.  References are followed
within the whole schema, as deep as DEEPEST and through at most MOST_PARTS parts; what lies beyond
is JSON.
Normative text: docs/spec/imports.md, section 2.  Cost: linear in the schemas, of which at most
MOST_PARTS parts a tool are read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tcc_certs.errors import escaped, is_plain
from tcc_certs.formats.codec import MAX_NAME
from tcc_compiler.frozen import frozen
from tcc_compiler.imports import mcp_schema
from tcc_compiler.imports.mcp_schema import name_text, quoted
from tcc_compiler.layout.format import format_text

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
    def text(self) -> str:
        """Name and type, as a grammar writes them."""
        null = " or null" if self.domain.null and not self.domain.values else ""
        mark = "?" if self.optional else ""
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
            if not _names(name):
                if name in required:
                    return mcp_schema.any_json(schema)
                lost.append(f"{mcp_schema.quoted(name[:MAX_NAME])} of an element is refused")
            if within is None or not _names(name):
                continue
            field = Described(name=name, domain=within, optional=name not in required)
            fields.append(field)
            lost += [f"{mcp_schema.quoted(name)}: {said}" for said in within.lost]
        if not fields:
            return mcp_schema.ArgumentDomain(text="json", lost=(_OBJECT,))
        left = [name for name in mcp_schema.unheld(schema) if name not in _RECORD]
        lost += [f"not held: {', '.join(left)}"] if left else []
        if schema.get("additionalProperties", False) is not False:
            lost.append("members of its elements that its schema does not name are refused")
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
    return 1 <= len(name) <= MAX_NAME and is_plain(name) and "`" not in name


def _count(schema: Mapping[str, Any], name: str) -> int | None:
    """A bound on elements, if it is a whole number from 0 up."""
    found = [
        one
        for one in mcp_schema.numbers_of(schema, name)
        if one >= 0 and one == one.to_integral_value()
    ]
    return min(int(found[0]), MOST_ELEMENTS + 1) if found else None


MAX_CALLS = 1024
MAX_ALL_CALLS = 65536
_DEPTH = 20
_MAX_DOC = 200
_KNOWN = frozenset(
    ("$schema", "$id", "$comment", "$defs", "definitions", "type", "properties", "required",
     "title", "description", "default", "examples", "additionalProperties")
)  # fmt: skip
_HEADER = """\
# A skeleton, made from the tools that the server lists: it allows any {depth} calls in any order.
# Narrow it: take tools away, list values, say what has to come before what.
#   before delete_x require get_x     limit count(delete_x) <= 1     plan = a b? c*
# Texts have at most 65536 characters and JSON values 65536 bytes where nothing else is said.
# A bound that a schema does not give beside its other one is -2^63 or 2^64 - 1.
# Arguments that are not named here are refused, and so are members of records in arguments.
# "errors mean failed" in the braces of a tool says that nothing was changed where it answers with
# an error; without it that is unknown.  It is right for tools that only read; that a call may be
# repeated says nothing of it.
# Lists have at most 1000 elements.  Statements compare the answers that `gives` declares:
#   before delete_x require last(get_x(same id)).status = "open"
"""
_READS = "# The server says that it only reads: if so, { errors mean failed } is right."


@frozen
class Warned:
    """A part of a schema that the skeleton does not hold.

    Attributes:
        code: TCC612 or TCC613.
        place: the tool, and the argument if it is about one.
        message: a sentence.
    """

    code: str
    place: str
    message: str


@frozen
class Skeleton:
    """The text of a grammar, and the parts of the schemas that it does not hold."""

    text: str
    warnings: tuple[Warned, ...]


@frozen
class _Tool:
    name: str
    doc: str
    parameters: tuple[Described, ...]
    lost: tuple[tuple[str, str], ...]
    answers: tuple[str, ...] = ()
    reads: bool = False

    @property
    def calls(self) -> int:
        return math.prod(one.choices for one in self.parameters if one.domain.values)


def skeleton_of(
    tools: Iterable[Mapping[str, Any]],
    name: str,
    bound: Mapping[str, tuple[str, str]] | None = None,
    depth: int = _DEPTH,
) -> Skeleton:
    """The skeleton of a grammar for these tools.

    Args:
        depth: the most calls of a session.
        bound: of each tool that is bound to a server, the server's name and its tool's.
        tools: as a server lists them; numbers may be `Decimal`.
        name: the grammar's name, an identifier.
    """
    warnings: list[Warned] = []
    read = [_tool(tool, warnings) for tool in sorted(tools, key=lambda tool: str(tool["name"]))]
    kept = _bounded([tool for tool in read if tool is not None])
    for tool in kept:
        warnings += [_warned(tool.name, place, said) for place, said in tool.lost]
    parts = [f'grammar {name} version "1"', _HEADER.format(depth=depth) + _left_out(warnings)]
    parts += [_statement(tool, (bound or {}).get(tool.name)) for tool in kept]
    parts.append(f"limit depth <= {depth}\n")
    text = "\n".join(parts)
    ordered = sorted(warnings, key=lambda item: (item.place, item.code, item.message))
    return Skeleton(text=format_text(text).text or text, warnings=tuple(ordered))


def _tool(tool: Mapping[str, Any], warnings: list[Warned]) -> _Tool | None:
    """A tool as it is read; None, with a warning, where the language cannot express it."""
    name, schema = str(tool["name"]), tool.get("inputSchema")
    reason = _no_name(name)
    if not isinstance(schema, Mapping) or "$ref" in schema:
        reason = reason or "its schema does not list its arguments"
    if reason is None and isinstance(schema, Mapping):
        read = _parameters(schema)
        if isinstance(read, str):
            reason = read
        else:
            doc, hints = tool.get("description"), tool.get("annotations")
            parameters, lost = read
            answers, left = _answers(tool.get("outputSchema"), parameters)
            return _Tool(
                name=name,
                doc=doc if isinstance(doc, str) else "",
                parameters=parameters,
                lost=(*lost, *(("", said) for said in left)),
                answers=answers,
                reads=isinstance(hints, Mapping) and hints.get("readOnlyHint") is True,
            )
    warnings.append(Warned(code="TCC612", place=quoted(name[:128]), message=f"left out: {reason}"))
    return None


def _no_name(name: str) -> str | None:
    if _names(name):
        return None
    return f"a name has 1 to {MAX_NAME} characters, none of them hidden or a backtick"


def _parameters(
    schema: Mapping[str, Any],
) -> tuple[tuple[Described, ...], tuple[tuple[str, str], ...]] | str:
    """The parameters and what is lost of the schema; a reason where no arguments fit."""
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, Mapping) or not isinstance(required, Sequence):
        return "its schema does not list its arguments"
    if any(name not in properties for name in required):
        return "an argument that it requires is not described"
    found, lost = [], [("", said) for said in _around(schema)]
    shapes = Shapes(schema)
    for name, inner in properties.items():
        domain = shapes.domain(inner)
        reason = _no_name(name)
        if (domain is None or reason) and name in required:
            return f"its argument {quoted(name[:128])} cannot be given"
        if domain is None or reason:
            lost.append((name[:128], f"left out: {reason or 'it has no value'}"))
            continue
        found.append(Described(name=name, domain=domain, optional=name not in required))
    return tuple(found), tuple(lost)


def _answers(
    schema: object, parameters: Sequence[Described]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The answers that an output schema describes, and what is not among them."""
    if not isinstance(schema, Mapping):
        return (), ()
    found, left = Shapes(schema).answers([one.name for one in parameters])
    return tuple(found), tuple(left)


def _around(schema: Mapping[str, Any]) -> list[str]:
    left = sorted(set(schema) - _KNOWN)
    said = [f"not held of its schema: {', '.join(left)}"] if left else []
    if schema.get("additionalProperties") not in (None, False):
        said.append("arguments that its schema does not name are refused")
    return said


def _bounded(tools: Sequence[_Tool]) -> list[_Tool]:
    """The tools, with so many arguments open that the numbers of calls are within the limits."""
    most = MAX_CALLS
    kept = [_narrowed(tool, most) for tool in tools]
    while sum(tool.calls for tool in kept) > MAX_ALL_CALLS and most > 1:
        most //= 2
        kept = [_narrowed(tool, most) for tool in tools]
    return kept


def _narrowed(tool: _Tool, most: int) -> _Tool:
    """The tool with at most so many calls: the arguments with the most values are open."""
    parameters = list(tool.parameters)
    while math.prod(one.choices for one in parameters if one.domain.values) > most:
        at = max(range(len(parameters)), key=lambda at: (parameters[at].domain.values, -at))
        one = parameters[at]
        if one.domain.opened is None:
            break
        parameters[at] = Described(name=one.name, domain=one.domain.opened, optional=one.optional)
    lost = [(one.name, said) for one in parameters for said in one.domain.lost]
    return replace(tool, parameters=tuple(parameters), lost=(*tool.lost, *lost))


def _warned(tool: str, parameter: str, said: str) -> Warned:
    place = f"{quoted(tool)} {quoted(parameter)}" if parameter else quoted(tool)
    return Warned(code="TCC613", place=place, message=said)


def _left_out(warnings: Iterable[Warned]) -> str:
    left = [item for item in warnings if item.code == "TCC612"]
    return "".join(f"# {_comment(f'{item.place}: {item.message}')}\n" for item in left)


def _statement(tool: _Tool, bound: tuple[str, str] | None) -> str:
    lines = [f"# {_comment(f'{place}: {said}' if place else said)}" for place, said in tool.lost]
    lines += [_READS] if tool.reads else []
    inside = ", ".join([one.text for one in tool.parameters])
    arguments = f"({inside})" if inside else ""
    gives = f" gives ({', '.join(tool.answers)})" if tool.answers else ""
    told = [f"doc {quoted(_shortened(tool.doc))}"] if tool.doc else []
    told += [f"bind mcp {quoted(bound[0])} {quoted(bound[1])}"] if bound else []
    inner = f" {{ {' '.join(told)} }}" if told else ""
    return "\n".join([*lines, f"tool {name_text(tool.name)}{arguments}{gives}{inner}\n"])


def _shortened(text: str) -> str:
    line = " ".join(text.encode("utf-8", "replace").decode("utf-8").split())
    return line if len(line) <= _MAX_DOC else line[: _MAX_DOC - 3] + "..."


def _comment(text: str) -> str:
    return escaped(text).encode("ascii", "backslashreplace").decode("ascii")
