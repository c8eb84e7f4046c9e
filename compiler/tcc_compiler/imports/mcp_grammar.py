"""Turn the tools of a server or library into a skeleton of a grammar, which its owner narrows.

Each argument is listed, open or left out, depending on its schema (:mod:`mcp_schema`). Tools are
sorted by name. Constraints of a schema that the grammar does not check become comments at the tool,
and warnings. If the listed arguments of a tool make too many calls, some are made open; arguments
that lose no constraint come first. An output schema describes answers. These are all open, so they
do not
multiply calls.
Normative text: docs/spec/imports.md, section 2. Cost: linear in the schemas; at most `MOST_PARTS`
parts of each tool are read.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tcc_certs.errors import escaped
from tcc_certs.formats.codec import MAX_NAME
from tcc_certs.policy import nodes as n
from tcc_compiler.frozen import frozen
from tcc_compiler.imports.mcp_schema import (
    ANNOTATIONS,
    ANY_OBJECT,
    ArgumentDomain,
    Described,
    Schemas,
    Spellings,
    merged,
    name_text,
    quoted,
)
from tcc_compiler.layout.format import format_text

MAX_CALLS = 1024
MAX_ALL_CALLS = 65536
_DEPTH = 20
_MAX_DOC = 200
_MOST_NAMED = 8  # the most names in a warning
_READ = frozenset(("type", "properties", "required", "additionalProperties"))
_HEADER = """\
# A skeleton, made from the tools that {source} lists: it allows any {depth} calls in any order.
# Narrow it: take tools away, list values, say what has to come before what.
#   before delete_x require get_x     limit count(delete_x) <= 1     plan = a b? c*
# Texts have at most 65536 characters and JSON values 65536 bytes where nothing else is said.
# A bound that a schema does not give beside its other one is -2^63 or 2^64 - 1.
# Arguments that are not named here are refused, and so are members of objects in arguments.
# {any_object} is an object with any members.
# "errors mean failed" in the braces of a tool says that nothing was changed where it answers with
# an error; without it that is unknown.  It is right for tools that only read; that a call may be
# repeated says nothing of it.
# Lists have at most 1000 elements.  Statements compare the answers that `gives` declares:
#   before delete_x require last(get_x(same id)).status = "open"
"""
_READS = "# The server says that it only reads: if so, {{ errors mean failed }} is right."
_BECAUSE = "The server's schema."
_SETS = (
    ("read_only", "readOnlyHint", "only read"),
    ("destructive", "destructiveHint", "may destroy something"),
)


@frozen
class Warned:
    """A part of a schema that the skeleton does not check.

    Attributes:
        code: TCC612 or TCC613.
        place: the tool, and the argument if the warning is about one.
        message: a sentence.
    """

    code: str
    place: str
    message: str


@frozen
class Skeleton:
    """The text of a grammar, and the parts of the schemas that it does not check."""

    text: str
    warnings: tuple[Warned, ...]


@frozen
class ToolDeclaration:
    """A tool of a skeleton.

    Attributes:
        lost: constraints that the grammar does not check, as pairs (argument, sentence). The
            argument is empty if the constraint is about the whole tool.
        answers: the declarations of its answers.
        hints: the annotations that are true.
        bound: the server, and the server's tool, that this tool is bound to.
    """

    name: str
    doc: str
    parameters: tuple[Described, ...]
    lost: tuple[tuple[str, str], ...]
    answers: tuple[str, ...] = ()
    hints: frozenset[str] = frozenset()
    bound: tuple[str, str] | None = None

    @property
    def calls(self) -> int:
        """How many calls of the tool plans can distinguish."""
        return math.prod(one.choices for one in self.parameters if one.domain.values)

    @property
    def head(self) -> str:
        """The declaration without the attributes in braces."""
        inside = ", ".join([one.text for one in self.parameters])
        gives = f" gives ({', '.join(self.answers)})" if self.answers else ""
        return f"tool {name_text(self.name)}{f'({inside})' if inside else ''}{gives}"

    def text(self) -> str:
        """Return the declaration, after comments on the constraints that it does not check."""
        said = [f"{place}: {lost}" if place else lost for place, lost in self.lost]
        lines = [f"# {_comment(one)}" for one in said]
        lines += [_READS.format()] if "readOnlyHint" in self.hints else []
        told = [f"doc {quoted(_shortened(self.doc))}"] if self.doc else []
        told += [f"bind mcp {quoted(self.bound[0])} {quoted(self.bound[1])}"] if self.bound else []
        inner = f" {{ {' '.join(told)} }}" if told else ""
        return "\n".join([*lines, f"{self.head}{inner}\n"])

    def statements(self) -> list[str]:
        """Return statements for the bounds that a type cannot express."""
        found = []
        for one in self.parameters:
            for bound in one.domain.bounds:
                sign, _, number = bound.partition(" ")
                then: n.Node = n.Compare(sign, n.Word(one.name), n.Number(number))
                if one.optional or one.domain.null:
                    then = n.Or((n.Compare("=", n.Word(one.name), n.Null()), then))
                text = n.statement_text(n.Require(on=n.Word(self.name), then=then))
                found.append(f"{text} because {quoted(_BECAUSE)}\n")
        return found


def skeleton_of(
    tools: Iterable[Mapping[str, Any]],
    name: str,
    bound: Mapping[str, tuple[str, str]] | None = None,
    depth: int = _DEPTH,
    source: str = "the server",
) -> Skeleton:
    """Return the skeleton of a grammar for these tools.

    Args:
        tools: as a server lists them; numbers may be `Decimal`.
        name: the grammar's name, an identifier.
        bound: for each tool that is bound to a server, the server's name and its name of the tool.
        depth: the most calls of a session.
        source: the party that lists the tools, for the header comment.
    """
    kept, warnings = declarations_of(tools, bound)
    head = _HEADER.format(depth=depth, source=source, any_object=ANY_OBJECT)
    parts = [f'grammar {name} version "1"', head + _left_out(warnings)]
    parts += [tool.text() for tool in kept]
    parts += _sets(kept)
    parts += [text for tool in kept for text in tool.statements()]
    parts.append(f"limit depth <= {depth}\n")
    text = "\n".join(parts)
    return Skeleton(text=format_text(text).text or text, warnings=warnings)


def declarations_of(
    tools: Iterable[Mapping[str, Any]], bound: Mapping[str, tuple[str, str]] | None = None
) -> tuple[list[ToolDeclaration], tuple[Warned, ...]]:
    """Return the declarations of the tools, sorted by name, and the unchecked parts of schemas."""
    warnings: list[Warned] = []
    spellings = Spellings()
    read = [
        _tool(tool, warnings, spellings, bound or {})
        for tool in sorted(tools, key=lambda tool: str(tool["name"]))
    ]
    kept = _bounded([tool for tool in read if tool is not None])
    for tool in kept:
        warnings += [_warned(tool.name, place, said) for place, said in tool.lost]
    ordered = sorted(warnings, key=lambda item: (item.place, item.code, item.message))
    return kept, tuple(ordered)


def sets_of(tools: Sequence[ToolDeclaration]) -> dict[str, list[str]]:
    """Return the names of the tools with each hint, by the name of the `let` for them.

    The name of the `let` differs from all names of tools and fields.
    """
    taken = {tool.name for tool in tools}
    taken |= {one.name for tool in tools for one in tool.parameters}
    found = {}
    for word, hint, _ in _SETS:
        names = [tool.name for tool in tools if hint in tool.hints]
        if names:
            found[next(one for one in _words(word) if one not in taken)] = names
    return found


def set_text(word: str, names: Sequence[str]) -> str:
    """Return a `let` for a set of tools."""
    nodes: list[n.Node] = [n.Word(name) for name in names]
    body = nodes[0] if len(nodes) == 1 else n.Union(tuple(nodes))
    return n.definition_text(n.Definition(name=word, body=body))


def _words(word: str) -> Iterable[str]:
    yield word
    yield f"{word}_tools"
    yield from (f"{word}_tools_{number}" for number in range(2, 1 << 20))


def _sets(tools: Sequence[ToolDeclaration]) -> list[str]:
    found = []
    for word, names in sets_of(tools).items():
        what = next(what for known, _, what in _SETS if word.startswith(known))
        found.append(f"# The server says that these {what}; nobody has checked it.")
        found.append(f"{set_text(word, names)}\n")
    return found


def _tool(
    tool: Mapping[str, Any],
    warnings: list[Warned],
    spellings: Spellings,
    bound: Mapping[str, tuple[str, str]],
) -> ToolDeclaration | None:
    """Return a tool's declaration; None, with a warning, if the language cannot express it."""
    name, schema = str(tool["name"]), tool.get("inputSchema")
    reason = spellings.fault(name)
    if not reason and not isinstance(schema, Mapping):
        reason = "its schema does not list its arguments"
    if not reason and isinstance(schema, Mapping):
        read = _parameters(schema, spellings)
        if not isinstance(read, str):
            doc, hints = tool.get("description"), tool.get("annotations")
            parameters, lost = read
            answers, left = _answers(tool.get("outputSchema"), parameters, spellings)
            known = hints if isinstance(hints, Mapping) else {}
            return ToolDeclaration(
                name=name,
                doc=doc if isinstance(doc, str) else "",
                parameters=parameters,
                lost=(*lost, *(("", said) for said in left)),
                answers=answers,
                hints=frozenset([hint for _, hint, _ in _SETS if known.get(hint) is True]),
                bound=bound.get(name),
            )
        reason = read
    warnings.append(Warned(code="TCC612", place=quoted(name[:128]), message=f"left out: {reason}"))
    return None


def _parameters(
    schema: Mapping[str, Any], spellings: Spellings
) -> tuple[tuple[Described, ...], tuple[tuple[str, str], ...]] | str:
    """Return the parameters and the unchecked constraints; or a reason why no arguments fit."""
    shapes = Schemas(schema, spellings)
    flat = shapes.flat(schema)
    if isinstance(flat, bool) or "$ref" in flat:
        return "its schema does not list its arguments"
    lost: list[tuple[str, str]] = []
    flat = _spread(flat, shapes, lost)
    kind, properties = flat.get("type"), flat.get("properties", {})
    required = flat.get("required", [])
    kinds = kind if isinstance(kind, list) else [kind]
    if kind is not None and "object" not in kinds:
        return "its schema has no arguments: it describes no object"
    if not isinstance(properties, Mapping) or not isinstance(required, list):
        return "its schema does not list its arguments"
    more = flat.get("additionalProperties", True)
    lost += [("", said) for said in _around(flat)]
    found: list[Described] = []
    members = False
    for name in dict.fromkeys([*properties, *[one for one in required if isinstance(one, str)]]):
        domain = shapes.domain(properties.get(name, more))
        reason = spellings.fault(name)
        if (domain is None or reason) and name in required:
            return f"its argument {quoted(name[:128])} cannot be given"
        if domain is None or reason:
            lost.append((name[:128], f"left out: {reason or 'it has no value'}"))
            continue
        members = members or domain.members
        found.append(Described(name=name, domain=domain, optional=name not in required))
    if members:
        lost.append(("", "members of objects that its schema leaves open are refused"))
    return tuple(found), tuple(lost)


def _spread(
    schema: Mapping[str, Any], shapes: Schemas, lost: list[tuple[str, str]]
) -> Mapping[str, Any]:
    """Return the schema with the arguments of all alternatives, required only if all require it."""
    for word in ("anyOf", "oneOf", "if"):
        alternatives = schema.get(word)
        if word == "if":
            alternatives = (
                [schema.get(one, {}) for one in ("then", "else")] if word in schema else 0
            )
        if not isinstance(alternatives, list):
            continue
        rest = {
            name: schema[name] for name in schema if name not in (word, "then", "else")
        } if word == "if" else {name: schema[name] for name in schema if name != word}  # fmt: skip
        branches = [shapes.flat(one) for one in alternatives[:64]]
        known = [one for one in branches if isinstance(one, Mapping)]
        properties = [p for one in known if isinstance(p := one.get("properties", {}), Mapping)]
        needed = [r for one in known if isinstance(r := one.get("required", []), list)]
        own = rest.get("properties", {})
        joined: dict[str, Any] = dict(own) if isinstance(own, Mapping) else {}
        for name in dict.fromkeys(name for one in properties for name in one):
            if name not in joined:
                schemas = [one[name] for one in properties if name in one]
                distinct = [one for at, one in enumerate(schemas) if one not in schemas[:at]]
                joined[name] = distinct[0] if len(distinct) == 1 else {"anyOf": distinct}
        always = (
            [name for name in needed[0] if all(name in one for one in needed)] if needed else []
        )
        always = always if len(needed) == len(branches) and branches else []
        found = merged({**rest, "properties": joined}, {"required": always} if always else {})
        lost.append(("", f"which arguments go together is not held: {word}"))
        schema = found if found is not None else rest
    return schema


def _answers(
    schema: object, parameters: Sequence[Described], spellings: Spellings
) -> tuple[tuple[str, ...], list[str]]:
    """Return the answers that an output schema describes, and sentences on the members left out."""
    if not isinstance(schema, Mapping):
        return (), []
    shapes = Schemas(schema, spellings)
    flat = shapes.flat(schema)
    if isinstance(flat, bool):
        return (), []
    properties, required = flat.get("properties", {}), flat.get("required", [])
    if not isinstance(properties, Mapping) or not isinstance(required, Sequence):
        return (), ["its output schema does not list its answers"]
    found: list[str] = []
    left: list[str] = []
    names = {one.name for one in parameters}
    for member, inner in properties.items():
        domain = shapes.domain(inner)
        domain = domain.opened if domain is not None and domain.values else domain
        name = member if member not in names else f"{member}_answered"
        known = domain is not None and not domain.is_json and name not in names
        if not known or domain is None or spellings.fault(name) or domain.types == (ANY_OBJECT,):
            left.append(member)
            continue
        names.add(name)
        one = Described(name=name, domain=domain, optional=member not in required).text
        at = member.replace("~", "~0").replace("/", "~1")
        found.append(one if name == member else f"{one} at {quoted(f'/{at}')}")
    said = ", ".join(quoted(member[:MAX_NAME]) for member in left[:_MOST_NAMED])
    return tuple(found), [f"of what it answers not compared: {said}"] if left else []


def _around(schema: Mapping[str, Any]) -> list[str]:
    left = sorted(set(schema) - ANNOTATIONS - _READ)
    said = [f"not held of its schema: {', '.join(left)}"] if left else []
    if schema.get("additionalProperties") not in (None, False):
        said.append("arguments that its schema does not name are refused")
    return said


def _bounded(tools: Sequence[ToolDeclaration]) -> list[ToolDeclaration]:
    """Return the tools with enough arguments open to keep the calls within the limits."""
    most = MAX_CALLS
    kept = [_narrowed(tool, most) for tool in tools]
    while sum(tool.calls for tool in kept) > MAX_ALL_CALLS and most > 1:
        most //= 2
        kept = [_narrowed(tool, most) for tool in tools]
    return [replace(tool, lost=(*tool.lost, *_losses(tool.parameters))) for tool in kept]


def _narrowed(tool: ToolDeclaration, most: int) -> ToolDeclaration:
    """Return the tool with enough arguments open to have at most `most` calls.

    Listed arguments that lose no constraint become open first: ranges of integers, then others.
    Among equals the longest list comes first.
    """
    parameters = list(tool.parameters)
    calls = math.prod(one.choices for one in parameters if one.domain.values)
    order = [
        (_cost(one.domain), -len(one.domain.values), at)
        for at, one in enumerate(parameters)
        if one.domain.values and one.domain.opened is not None
    ]
    heapq.heapify(order)
    while calls > most and order:
        at = heapq.heappop(order)[2]
        one = parameters[at]
        if one.domain.opened is not None:
            calls //= one.choices
            parameters[at] = replace(one, domain=one.domain.opened)
    return replace(tool, parameters=tuple(parameters))


def _cost(domain: ArgumentDomain) -> int:
    """Return a rank: how much a listed domain loses if it is made open; 0 is least."""
    loses = domain.opened is None or domain.opened.lost != domain.lost
    return 2 if loses else 0 if domain.interval else 1


def _losses(parameters: Sequence[Described]) -> list[tuple[str, str]]:
    return [(one.name, said) for one in parameters for said in one.domain.lost]


def _warned(tool: str, parameter: str, said: str) -> Warned:
    place = f"{quoted(tool)} {quoted(parameter)}" if parameter else quoted(tool)
    return Warned(code="TCC613", place=place, message=said)


def _left_out(warnings: Iterable[Warned]) -> str:
    left = [item for item in warnings if item.code == "TCC612"]
    return "".join(f"# {_comment(f'{item.place}: {item.message}')}\n" for item in left)


def _shortened(text: str) -> str:
    line = " ".join(text.encode("utf-8", "replace").decode("utf-8").split())
    return line if len(line) <= _MAX_DOC else line[: _MAX_DOC - 3] + "..."


def _comment(text: str) -> str:
    return escaped(text).encode("ascii", "backslashreplace").decode("ascii")
