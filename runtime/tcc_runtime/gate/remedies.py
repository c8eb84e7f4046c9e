"""Texts that explain a refusal: the arguments that matter, and what would be allowed.

The texts are in the language.  Values of the refused call replace ``same f``, ``this.f`` and
arguments inside a filter.  The body of a `let` replaces its name.
Text: docs/gate.md.  Cost: :class:`Remedies` builds a text once for each statement, tool and set of
failing parts.  A refusal fills in the values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from tcc_certs.policy import forms, nodes
from tcc_certs.policy.core import Core, Tool
from tcc_certs.policy.kinds import Kinds, walk
from tcc_certs.policy.nodes import And, Compare, Name, Node, Or, Pieces, quoted, text_of, written
from tcc_certs.session.entries import listed_text
from tcc_certs.values.fields import DateType, Field, FieldType
from tcc_certs.values.places import NONE, State, decimal_of

_LONGEST: Final = 100  # characters of a value
_MOST_TEXTS: Final = 1 << 12


class Remedies:
    """Texts for the refusals of a core, each built on first use.

    Args:
        rules: the statements of the core, with their names resolved.
    """

    def __init__(self, core: Core, rules: Sequence[forms.Rule]) -> None:
        self._core, self._rules = core, rules
        self._tools = {tool.name: tool for tool in core.tools}
        self._kinds: Kinds | None = None
        self._opened: dict[int, Mapping[int, nodes.Definition]] = {}
        self._texts: dict[tuple[int, str, tuple[int, ...]], Filling] = {}
        self._names: dict[tuple[int, str], tuple[Field, ...]] = {}

    def arguments(self, number: int, tool: str, values: Mapping[str, State]) -> str:
        """Return the arguments that a statement reads, such as ``amount = 60``."""
        found = self._names.get((number, tool))
        if found is None:
            found = self._names[number, tool] = self._read(number, tool)
        texts = [(one.name, _value_text(one, values.get(one.name))) for one in found]
        return ", ".join([f"{written([Name(name)])} = {text}" for name, text in texts if text])

    def _read(self, number: int, tool: str) -> tuple[Field, ...]:
        rule = self._rules[number]
        names = {form.name for form in walk(rule) if isinstance(form, forms.Get)
                 and form.of == forms.Element(0)}  # fmt: skip
        names |= set() if rule.field is None else {rule.field}
        return tuple([one for one in self._tools[tool].arguments if one.name in names])

    def require(self, number: int, tool: str, failing: Sequence[int]) -> Filling:
        """Return the condition under which a `require` would allow the call.

        Args:
            failing: the parts of the condition that are not true.
        """
        return self._text(number, tool, tuple(failing))

    def forbid(self, number: int, tool: str) -> Filling:
        """Return the condition under which a `forbid` would allow the call."""
        return self._text(number, tool, ())

    def owe(self, number: int, tool: str) -> Filling:
        """Return the call that pays a debt of a call of `tool`."""
        return self._text(number, tool, ())

    def _text(self, number: int, tool: str, failing: tuple[int, ...]) -> Filling:
        key = number, tool, failing
        found = self._texts.get(key)
        if found is None:
            if len(self._texts) == _MOST_TEXTS:
                self._texts.clear()
            found = self._texts[key] = self._made(number, self._tools[tool], failing)
        return found

    def _made(self, number: int, tool: Tool, failing: Sequence[int]) -> Filling:
        statement = self._core.statements[number]
        writer = _Writer(tool, self._opened_in(number), statement)
        node: Node
        match statement:
            case nodes.Require(where=where, then=then):
                node = then
                if isinstance(then, And) and failing:
                    parts = [then.parts[at] for at in failing]
                    node = parts[0] if len(parts) == 1 else And(tuple(parts))
                node = writer.node(node)
                if where:
                    unless = _flat([_negated(writer.node(one)) for one in where])
                    node = Or((*unless, *_flat([node])))
            case nodes.Forbid(where=where) if where:
                unless = _flat([_negated(writer.node(one)) for one in where])
                node = unless[0] if len(unless) == 1 else Or(unless)
            case nodes.Owe(calls=calls, pays=pays):
                paying = writer.filter(pays)
                node = nodes.Where(calls, paying) if paying else calls
            case _:
                return Filling("", {})
        return Filling(text_of(node), {one.name: one for one in tool.arguments})

    def _opened_in(self, number: int) -> Mapping[int, nodes.Definition]:
        """Return the `let` that each word of a statement names, by the id of the word."""
        found = self._opened.get(number)
        if found is None:
            if self._kinds is None:
                self._kinds = Kinds(self._core)
            self._kinds.conditions, self._kinds.opened = {}, {}
            self._kinds.rule(self._core.statements[number])
            found = self._opened[number] = self._kinds.opened
        return found


class Filling:
    """A text with placeholders for the values of arguments.

    Args:
        text: in which each placeholder is the name of an argument between two U+0000.  ``=`` before
            the name means that the placeholder replaces ``same f``.
        fields: the arguments, by name.
    """

    __slots__ = ("_fields", "_parts")

    def __init__(self, text: str, fields: Mapping[str, Field]) -> None:
        self._parts = text.split("\0")
        self._fields = fields

    def text(self, values: Mapping[str, State]) -> str:
        """Return the text with the values filled in.  If a value is unknown, the text has
        ``same f`` or ``this.f``.

        Args:
            values: the known arguments.
        """
        parts = self._parts
        if len(parts) == 1:
            return parts[0]
        found = list(parts)
        for at in range(1, len(parts), 2):
            name = parts[at].removeprefix("=")
            value = _value_text(self._fields[name], values.get(name))
            if parts[at] == name:
                found[at] = value or written(["this", ".", Name(name)])
            else:
                shown = written([Name(name)])
                found[at] = f"{shown} = {value}" if value else f"same {shown}"
        return "".join(found)


@dataclass(frozen=True, slots=True)
class _Hole(Node):
    """A placeholder for the value of an argument of the refused call.

    Attributes:
        is_same: whether the placeholder is the whole comparison ``f = VALUE``.
    """

    name: str
    is_same: bool = False

    def pieces(self, out: Pieces) -> None:
        out.append(f"\0{'=' * self.is_same}{self.name}\0")


class _Writer:
    """Rewrites nodes of a statement for the refusal of a call.

    Args:
        tool: the tool of the refused call.
        opened: the `let` that a word names, by the id of the word.
    """

    def __init__(
        self, tool: Tool, opened: Mapping[int, nodes.Definition], statement: nodes.Statement
    ) -> None:
        # U+0000 delimits placeholders.
        self._fields = {one.name for one in tool.arguments if not {"\0", "="} & {*one.name}}
        self._opened = opened
        lets = statement.lets if isinstance(statement, nodes.Require | nodes.Ask) else ()
        self._block = {id(let.body) for let in lets}

    def node(self, node: Node, inside: bool = False, bare: bool = True) -> Node:
        """Return the node with placeholders for arguments of the call that the reader could not
        interpret there.

        Args:
            inside: whether the node is in a filter.
            bare: whether a bare word can be an argument of the call.
        """
        match node:
            case nodes.Word(name):
                let = self._opened.get(id(node))
                if let is not None:
                    return self.node(let.body, inside, id(let.body) in self._block)
                return _Hole(name) if inside and bare and name in self._fields else node
            case nodes.Get(nodes.This(), name) if inside and name in self._fields:
                return _Hole(name)
            case nodes.Where(nodes.Word() as word, arguments):
                let = self._opened.get(id(word))
                if let is not None and let.parameters:
                    return self._applied(node, let, arguments, inside, bare)
        parts = nodes.parts_of(node)
        match node:
            case nodes.Where(of, conditions):
                return nodes.Where(self.node(of, inside, bare), self.filter(conditions))
            case nodes.Apply("sum", (of, term)):
                return nodes.Apply(
                    "sum", (self.node(of, inside, bare), self.node(term, True, False))
                )
        return nodes.with_parts(node, [self.node(part, inside, bare) for part in parts])

    def filter(self, conditions: Sequence[Node]) -> tuple[Node, ...]:
        """Return the conditions of a filter, with one comparison for each field of `same`."""
        found: list[Node] = []
        for condition in conditions:
            if isinstance(condition, nodes.Same):
                known = [name for name in condition.names if name in self._fields]
                rest = tuple([name for name in condition.names if name not in known])
                found += [nodes.Same(rest)] if rest else []
                found += [_Hole(name, True) for name in known]
            else:
                found.append(self.node(condition, True, False))
        return tuple(found)

    def _applied(
        self,
        node: Node,
        let: nodes.Definition,
        arguments: Sequence[Node],
        inside: bool,
        bare: bool,
    ) -> Node:
        """Return the body of a `let` with its arguments; or the node itself, if they would change
        meaning.
        """
        if inside and any(
            isinstance(part, nodes.Word | nodes.It) for one in arguments for part in nodes.walk(one)
        ):
            return node  # the arguments refer to the element of this filter
        given = [self.node(one, True, bare) for one in arguments]
        body = self.node(let.body, inside, id(let.body) in self._block)
        return _replaced(body, dict(zip(let.parameters, given, strict=True)))


def _replaced(body: Node, arguments: Mapping[str, Node]) -> Node:
    if isinstance(body, nodes.Word):
        return arguments.get(body.name, body)
    if isinstance(body, _Hole):
        return body
    parts = [_replaced(part, arguments) for part in nodes.parts_of(body)]
    return nodes.with_parts(body, parts)


_OPPOSITE: Mapping[str, str] = {
    "=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">", "~": "!~", "!~": "~",
    "in": "not in", "not in": "in", "under": "not under", "not under": "under",
}  # fmt: skip


def _negated(node: Node) -> Node:
    match node:
        case Compare(operator) | nodes.Between(operator):
            return replace(node, operator=_OPPOSITE[operator])
        case nodes.Not(of):
            return of
        case And(parts):
            return Or(tuple([_negated(part) for part in parts]))
        case Or(parts):
            return And(tuple([_negated(part) for part in parts]))
    return nodes.Not(node)


def _flat(some: Sequence[Node]) -> tuple[Node, ...]:
    """Return the alternatives, with those inside an `or` as separate items."""
    return tuple([part for one in some for part in (one.parts if isinstance(one, Or) else [one])])


def _value_text(field: Field, state: State | None) -> str:
    """Return a value in the language, or an empty text if that would be long or is unknown."""
    if state is None:
        return ""
    if state == NONE:
        return "null"
    if field.type is None:
        return listed_text(field.values, state)
    kind, value = state
    text = ""
    match kind:
        case "s" | "p" | "u":
            text = quoted(value) if len(value) <= _LONGEST else ""
        case "n":
            text = decimal_of(value)
        case "b":
            text = "true" if value else "false"
        case "t":
            text = quoted(_moment_text(value, field.type))
        case "z":
            text = "null"
    return text if len(text) <= _LONGEST else ""


def _moment_text(ms: Any, of: FieldType | None) -> str:
    if isinstance(of, DateType):
        return time_text(int(ms) + (of.zone or 0) * 60_000)[:10]
    return time_text(ms)


def time_text(ms: Any) -> str:
    """Return a time in the language, or an empty text if the calendar does not have it."""
    try:
        return datetime.fromtimestamp(int(ms) / 1000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return ""
