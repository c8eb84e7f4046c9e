"""A core that has the sessions of another core, over the tools and fields of two cores.

Questions about sessions are statements over one core.  If two cores declare a tool differently, the
joined core has the wider declaration, and a statement restricts the narrower side.  A tool that one
side lacks is forbidden there.  Attributes of sessions, the meaning of errors, and the answers that
a statement may read must be equal.
Cost: linear in the two cores.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from tcc_certs.policy.core import Core, Learned, Tool
from tcc_certs.policy.nodes import (
    Between,
    Compare,
    Flag,
    Forbid,
    Get,
    Node,
    Null,
    Number,
    Or,
    Require,
    Same,
    Statement,
    Text,
    This,
    Total,
    Union,
    Word,
    walk,
)
from tcc_certs.policy.type_texts import name_text
from tcc_certs.values.declared import NumberType, PathType, TextType, UrlType, json_of
from tcc_certs.values.fields import Field, FieldType, NullableType
from tcc_certs.values.zones import Zones
from tcc_runtime.analysis.gate_changes import is_within, nodes_of


class Incomparable(Exception):
    """No statement expresses the difference of two cores.  The text of the exception names the
    difference.
    """


@dataclass(frozen=True, slots=True)
class Joined:
    """A core with the sessions of another core.

    Attributes:
        core: the joined core, with the tools and fields of both sides, and further statements.  It
            has all sessions of the given core.  It may have more, if no statement can express a
            difference of declarations.
        asked: statements that refuse the same calls as the declarations of the other side.
    """

    core: Core
    asked: tuple[Statement, ...]


def joined(core: Core, other: Core, idle: Collection[str] = ()) -> Joined:
    """Return a core with the sessions of `core`, over the tools and fields of both cores.

    Args:
        idle: the tools of `core` that occur in no plan, so that its gate refuses them.

    Raises:
        Incomparable: the cores differ in a way that no statement expresses.
    """
    if core.given != other.given:
        raise Incomparable("the attributes of sessions differ")
    zones = _zones(core, other)
    names = {tool.name: tool for tool in other.tools}
    read = _names_in(core) | _names_in(other)
    tools: list[Tool] = []
    held: list[Statement] = [Forbid(on=Word(tool)) for tool in idle]
    asked: list[Statement] = []
    changed = False
    for tool in core.tools:
        twin = names.pop(tool.name, None)
        if twin is None:
            asked.append(Forbid(on=Word(tool.name)))
            tools.append(tool)
            continue
        _require_same(tool, twin, read)
        fields, mine, theirs = _arguments(tool, twin)
        changed = changed or fields != tool.arguments
        tools.append(replace(tool, arguments=fields))
        held += mine
        asked += theirs
    for tool in names.values():
        tools.append(tool)
        held.append(Forbid(on=Word(tool.name)))
    if not changed and not held and zones == core.zones:
        return Joined(core, tuple(asked))
    statements = list(core.statements)
    calls = core.calls
    if changed:  # the calls of plans do not have the fields of the joined core
        calls = ()
        statements = [
            one for one in statements if not isinstance(one, Total) or one.what == "depth"
        ]
    new = replace(
        core, tools=tuple(tools), calls=calls, zones=zones, statements=(*statements, *held)
    )
    return Joined(new, tuple(asked))


def _zones(core: Core, other: Core) -> Zones | None:
    """Return the recorded zones of both cores.

    Raises:
        Incomparable: they record different offsets.
    """
    one, two = core.zones, other.zones
    if one is None or two is None:
        return one or two
    if one.until != two.until or any(
        two.of.get(name, zone) != zone for name, zone in one.of.items()
    ):
        raise Incomparable("the recorded offsets of zones differ")
    return replace(one, of={**one.of, **two.of})


def _require_same(tool: Tool, twin: Tool, read: Collection[str]) -> None:
    """Require that answers and errors of a tool mean the same on both sides.

    Args:
        read: the names that statements may read.
    """
    mine, theirs = ({one.name: one for one in side.answers} for side in (tool, twin))
    for name in {**mine, **theirs}:
        one, other = mine.get(name), theirs.get(name)
        is_read = name in read or any(side and side.type is None for side in (one, other))
        if one != other and is_read:
            raise Incomparable(f"the answer `{name_text(tool.name)}.{name_text(name)}` differs")
    if (tool.errors_failed, tool.error_text) != (twin.errors_failed, twin.error_text):
        raise Incomparable(f"`errors mean failed` of `{name_text(tool.name)}` differs")


def _names_in(core: Core) -> set[str]:
    """Return all names in statements, `let`s and learned attributes."""
    nodes = [let.body for let in core.lets]
    for statement in core.statements:
        nodes += nodes_of(statement)
    found = {field for one in core.given if isinstance(one, Learned) for _, field in one.sources}
    for node in nodes:
        for part in walk(node):
            if isinstance(part, Word | Get):
                found.add(part.name)
            elif isinstance(part, Same):
                found |= set(part.names)
    return found


def _arguments(
    tool: Tool, twin: Tool
) -> tuple[tuple[Field, ...], list[Statement], list[Statement]]:
    """Return the joined arguments of a tool, and the statements for the declarations of each
    side.
    """
    names = {one.name: one for one in twin.arguments}
    fields: list[Field] = []
    mine: list[Statement] = []
    theirs: list[Statement] = []
    for one in tool.arguments:
        other = names.pop(one.name, None)
        if other is None:
            fields.append(replace(one, optional=True))
            theirs.append(_restricted(tool, _compared(one, "=")))
            if not one.optional:
                mine += _expressible(_presence(tool, one))
            continue
        fields.append(_wider(tool, one, other))
        mine += _expressible(_refused(tool, one, fields[-1]))
        theirs += _refused(tool, other, fields[-1])
    for other in names.values():
        fields.append(replace(other, optional=True))
        mine.append(_restricted(tool, _compared(other, "=")))
        theirs += [] if other.optional else _presence(tool, other)
    if [one.name for one in fields] == [one.name for one in twin.arguments]:
        return tuple(fields), mine, theirs
    order = {one.name: at for at, one in enumerate(tool.arguments)}
    return tuple(sorted(fields, key=lambda one: order.get(one.name, len(order)))), mine, theirs


def _expressible(statements: Iterator[Statement]) -> list[Statement]:
    """Return the statements before the first one that cannot be expressed."""
    found = []
    try:
        for one in statements:
            found.append(one)
    except Incomparable:
        pass
    return found


def _presence(tool: Tool, field: Field) -> Iterator[Statement]:
    """Yield a statement that refuses calls without a field."""
    yield _restricted(tool, _compared(field, "!="))


def _wider(tool: Tool, one: Field, other: Field) -> Field:
    """Return a field with the values of both sides."""
    optional = one.optional or other.optional
    if (one.steps, one.null, one.type is None) == (other.steps, other.null, other.type is None):
        if one.type is None or other.type is None:
            if "*" not in (*one.values, *other.values):
                values = tuple(dict.fromkeys((*one.values, *other.values)))
                return replace(one, values=values, optional=optional)
            if one.values == other.values:
                return replace(one, optional=optional)
        elif is_within(other.type, one.type):
            return replace(one, optional=optional)
        elif is_within(one.type, other.type):
            return replace(other, optional=optional)
    raise Incomparable(f"the field {_named(tool, one)} differs")


def _refused(tool: Tool, side: Field, joined: Field) -> Iterator[Statement]:
    """Yield statements that refuse values outside the declaration of one side."""
    if joined.optional and not side.optional:
        yield _restricted(tool, _compared(side, "!="))
    if side.type is None:
        if set(side.values) != set(joined.values):
            yield _restricted(tool, _or_absent(side, _among(side, side.values)))
        return
    if joined.type is not None and side.type != joined.type:
        for condition in _inside(tool, side, side.type, joined.type):
            yield _restricted(tool, _or_absent(side, condition))


def _inside(tool: Tool, side: Field, kind: FieldType, wide: FieldType) -> Iterator[Node]:
    """Yield conditions that are true if a value of the wider type is a value of the narrower
    one.
    """
    field = Get(This(), side.name)
    match kind, wide:
        case NumberType(low=str() as low, high=str() as high), NumberType() if (
            kind.whole == wide.whole
        ):
            yield Between("in", field, Number(low), Number(high))
        case TextType(among=among), TextType() if among:
            yield _among(side, among)
        case TextType(pattern=str() as pattern), TextType() if (kind.least, kind.most) == (
            wide.least,
            wide.most,
        ):
            yield Compare("~", field, Text(pattern))
        case (PathType(under=str() as under), PathType()) | (
            UrlType(under=str() as under),
            UrlType(),
        ):
            yield Compare("under", field, Text(under))
        case _, NullableType(of=of) if of == kind and not side.optional:
            yield Compare("!=", field, Null())
        case _:
            raise Incomparable(f"the type of {_named(tool, side)} differs")


def _among(side: Field, values: Sequence[str]) -> Node:
    made = [_listed(one) if side.type is None else Text(one) for one in values]
    right = made[0] if len(made) == 1 else Union(tuple(made))
    return Compare("=", Get(This(), side.name), right)


def _listed(value: str) -> Node:
    """Return the node of a listed value."""
    match json_of(value):
        case None:
            return Null()
        case bool() as flag:
            return Flag(flag)
        case str() as text:
            return Word(text) if value == text else Text(text)
    return Number(value)


def _compared(side: Field, operator: str) -> Node:
    """Return a comparison of a field with null; an absent field counts as null."""
    if side.null or isinstance(side.type, NullableType):
        raise Incomparable(f"`{name_text(side.name)}` may be null")
    return Compare(operator, Get(This(), side.name), Null())


def _or_absent(side: Field, condition: Node) -> Node:
    return Or((_compared(side, "="), condition)) if side.optional else condition


def _restricted(tool: Tool, condition: Node) -> Statement:
    return Require(on=Word(tool.name), then=condition)


def _named(tool: Tool, field: Field) -> str:
    return f"`{name_text(tool.name)}.{name_text(field.name)}`"


__all__ = ["Incomparable", "Joined", "joined"]
