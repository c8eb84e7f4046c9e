"""The tools of an MCP server as the skeleton of a grammar, to be narrowed by whoever owns it.

Each argument is listed, open or left out as its schema says (:mod:`mcp_schema`); tools are sorted
by name.  What the grammar cannot hold of a schema stands beside the tool as a comment and comes
back as a warning.  A tool whose listed arguments would make too many calls has those with the most
values open instead.
Normative text: docs/spec/language.md, section 12.  Cost: linear in the schemas.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tcc_certs.errors import escaped, is_plain
from tcc_compiler.frozen import frozen
from tcc_compiler.imports.mcp_schema import ArgumentDomain, domain_of, quoted, resolved
from tcc_compiler.language.syntax.words import BLOCK_WORDS, KEPT_WORDS, RESERVED

MAX_CALLS = 1024
MAX_ALL_CALLS = 65536
_DEPTH = 20
_MAX_DOC = 200
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KNOWN = frozenset(
    ("$schema", "$id", "$comment", "$defs", "definitions", "type", "properties", "required",
     "title", "description", "default", "examples", "additionalProperties")
)  # fmt: skip
_HEADER = """\
# A skeleton, made from the tools that the server lists: it allows any {depth} calls in any order.
# Narrow it: take tools away, list values, say what has to come before what.
#   require "get_x" before "delete_x"     limit uses("delete_x") <= 1     plan = a b? c*
# Texts have at most 65536 characters and JSON values 65536 bytes where nothing else is said.
# A bound that a schema does not give beside its other one is 2^53 - 1 from zero.
# Arguments that are not named here are refused.  "errors mean failed" in the braces of a tool says
# that nothing was changed where it answers with an error; without it that is unknown.  It is right
# for tools that only read; that a call may be repeated says nothing of it.
"""


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
class _Parameter:
    name: str
    domain: ArgumentDomain
    optional: bool

    @property
    def choices(self) -> int:
        return self.domain.values + self.optional


@frozen
class _Tool:
    name: str
    doc: str
    parameters: tuple[_Parameter, ...]
    lost: tuple[tuple[str, str], ...]

    @property
    def calls(self) -> int:
        return math.prod(one.choices for one in self.parameters if one.domain.values)


def skeleton_of(tools: Iterable[Mapping[str, Any]], name: str) -> Skeleton:
    """The skeleton of a grammar for these tools.

    Args:
        tools: as a server lists them; numbers may be `Decimal`.
        name: the grammar's name, an identifier.
    """
    warnings: list[Warned] = []
    read = [_tool(tool, warnings) for tool in sorted(tools, key=lambda tool: str(tool["name"]))]
    kept = _bounded([tool for tool in read if tool is not None])
    for tool in kept:
        warnings += [_warned(tool.name, place, said) for place, said in tool.lost]
    parts = [f'grammar {name} version "1"', _HEADER.format(depth=_DEPTH) + _left_out(warnings)]
    parts += [_statement(tool) for tool in kept]
    parts.append(f"plan = any*\nlimit depth <= {_DEPTH}\n")
    ordered = sorted(warnings, key=lambda item: (item.place, item.code, item.message))
    return Skeleton(text="\n".join(parts), warnings=tuple(ordered))


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
            doc = tool.get("description")
            parameters, lost = read
            return _Tool(
                name=name,
                doc=doc if isinstance(doc, str) else "",
                parameters=parameters,
                lost=lost,
            )
    warnings.append(Warned(code="TCC612", place=quoted(name[:128]), message=f"left out: {reason}"))
    return None


def _no_name(name: str) -> str | None:
    if 1 <= len(name) <= 128 and is_plain(name):
        return None
    return "a name has 1 to 128 characters, none of them hidden"


def _parameters(
    schema: Mapping[str, Any],
) -> tuple[tuple[_Parameter, ...], tuple[tuple[str, str], ...]] | str:
    """The parameters and what is lost of the schema; a reason where no arguments fit."""
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, Mapping) or not isinstance(required, Sequence):
        return "its schema does not list its arguments"
    if any(name not in properties for name in required):
        return "an argument that it requires is not described"
    found, lost = [], [("", said) for said in _around(schema)]
    for name, inner in properties.items():
        domain, reason = domain_of(resolved(inner, schema)), _no_name(name)
        if (domain is None or reason) and name in required:
            return f"its argument {quoted(name[:128])} cannot be given"
        if domain is None or reason:
            lost.append((name[:128], f"left out: {reason or 'it has no value'}"))
            continue
        found.append(_Parameter(name=name, domain=domain, optional=name not in required))
    return tuple(found), tuple(lost)


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
        parameters[at] = _Parameter(name=one.name, domain=one.domain.opened, optional=one.optional)
    lost = [(one.name, said) for one in parameters for said in one.domain.lost]
    return _Tool(
        name=tool.name, doc=tool.doc, parameters=tuple(parameters), lost=(*tool.lost, *lost)
    )


def _warned(tool: str, parameter: str, said: str) -> Warned:
    place = f"{quoted(tool)} {quoted(parameter)}" if parameter else quoted(tool)
    return Warned(code="TCC613", place=place, message=said)


def _left_out(warnings: Iterable[Warned]) -> str:
    left = [item for item in warnings if item.code == "TCC612"]
    return "".join(f"# {_comment(f'{item.place}: {item.message}')}\n" for item in left)


def _statement(tool: _Tool) -> str:
    lines = [f"# {_comment(f'{place}: {said}' if place else said)}" for place, said in tool.lost]
    listed = [_declared(one) for one in tool.parameters if one.domain.values]
    opened = [_declared(one) for one in tool.parameters if not one.domain.values]
    inside = ", ".join(listed) + (f"; {', '.join(opened)}" if opened else "")
    arguments = f"({inside.strip()})" if inside else ""
    doc = f" {{ doc {quoted(_shortened(tool.doc))} }}" if tool.doc else ""
    return "\n".join([*lines, f"tool {name_text(tool.name)}{arguments}{doc}\n"])


def _declared(one: _Parameter) -> str:
    return f"{name_text(one.name)}{'?' if one.optional else ''}: {one.domain.text}"


def name_text(name: str) -> str:
    """A name as a grammar writes it: quoted where it is no identifier or a word of the language."""
    words = (RESERVED, BLOCK_WORDS, KEPT_WORDS)
    plain = _IDENTIFIER.fullmatch(name) and not any(name in some for some in words)
    return name if plain else quoted(name)


def _shortened(text: str) -> str:
    line = " ".join(text.encode("utf-8", "replace").decode("utf-8").split())
    return line if len(line) <= _MAX_DOC else line[: _MAX_DOC - 3] + "..."


def _comment(text: str) -> str:
    return escaped(text).encode("ascii", "backslashreplace").decode("ascii")
