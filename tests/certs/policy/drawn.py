"""Cores that hypothesis draws, and changes of their JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tcc_certs.formats.codec import written
from tcc_certs.policy import nodes as n
from tcc_certs.policy.core import Core, Given, Learned, Tool
from tcc_certs.policy.plans import Call, OneCall, Repeat
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
)

_NAMES = ("a", "order", "amount", "x y", "caf\u00e9", "no", "match", "f-1", "sum", "status", "who")
_VALUES = ("open", "closed", "yes", '"in use"', "1", "-2.5", "true", "null")
_TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
_NUMBERS = st.sampled_from(("0", "1", "-1", "0.25", "-7.5", "123456789012345678901", "9" * 400))
_AMOUNTS = st.sampled_from(("1", "30", "0.5", "24"))
_UNITS = st.sampled_from(("s", "m", "h", "d"))


def _plain_types() -> st.SearchStrategy[FieldType]:
    sizes = st.tuples(st.integers(0, 9), st.integers(9, 99))
    return st.one_of(
        sizes.map(lambda ends: TextType(least=ends[0], most=ends[1])),
        st.just(TextType(pattern="[a-z]{1,9}", most=40)),
        st.just(TextType(among=("EUR", "", "a b"), most=3)),
        st.booleans().map(lambda whole: NumberType(whole=whole)),
        st.booleans().map(lambda whole: NumberType(whole=whole, low="0", high="500")),
        st.just(FlagType()),
        st.integers(0, 1000).map(lambda most: JsonType(most=most)),
        st.just(UnionType(of=(FlagType(), TextType(most=9), NumberType(whole=True)))),
        st.sampled_from((None, "/", "/srv/o ut")).map(lambda under: PathType(under=under)),
        st.sampled_from((None, "https://*.h/%20")).map(lambda under: UrlType(under=under)),
        st.sampled_from((None, 0, 90, -330)).map(lambda zone: TimeType(zone=zone)),
        st.sampled_from((0, 90, -330)).map(lambda zone: DateType(zone=zone)),
    )


def _types(role: str) -> st.SearchStrategy[FieldType]:
    def around(inner: st.SearchStrategy[FieldType]) -> st.SearchStrategy[FieldType]:
        plain = inner.filter(lambda kind: not isinstance(kind, NullableType))
        lists = st.tuples(inner, st.integers(0, 3), st.integers(3, 1000), st.booleans())
        return st.one_of(
            lists.map(
                lambda made: ListType(of=made[0], least=made[1], most=made[2], distinct=made[3])
            ),
            plain.map(lambda of: NullableType(of=of)),
            _fields(role, inner, 1).map(lambda fields: RecordType(fields=tuple(fields))),
        )

    return st.recursive(_plain_types(), around, max_leaves=5)


@st.composite
def _fields(
    draw: st.DrawFn, role: str, types: st.SearchStrategy[FieldType], least: int
) -> list[Field]:
    names = draw(st.lists(st.sampled_from(_NAMES), min_size=least, max_size=5, unique=True))
    fields = []
    for name in names:
        optional = draw(st.booleans())
        steps = draw(st.sampled_from(((name,), (name,), ("in", name, "a/b~"), ())))
        steps = (name,) if role == "fields" else steps
        if draw(st.booleans()):
            values = draw(st.lists(st.sampled_from(_VALUES), min_size=1, max_size=4, unique=True))
            values += ["*"] if role == "gives" and draw(st.booleans()) else []
            nullable = "null" in values
            made: dict[str, Any] = {"values": tuple(values)}
        else:
            kind = draw(types)
            nullable = isinstance(kind, NullableType)
            made = {"type": kind}
        null = role == "gives" and optional and not nullable
        fields.append(Field(name=name, steps=steps, optional=optional, null=null, **made))
    return fields


@st.composite
def cores(draw: st.DrawFn) -> Core:
    """Cores that the reader takes."""
    names = draw(st.lists(st.sampled_from(("t", "u", "a tool", "v-1")), min_size=1, unique=True))
    tools = []
    for name in names:
        arguments = draw(_fields("fields", _types("fields"), 0))
        answers = draw(_fields("gives", _types("gives"), 0))
        taken = {field.name for field in arguments}
        answers = [field for field in answers if field.name not in taken]
        tools.append(Tool(name=name, arguments=tuple(arguments), answers=tuple(answers)))
    given: list[Given] = [
        Field(name=f"g{at}", steps=(f"g{at}",), type=kind)
        for at, kind in enumerate(draw(st.lists(_types("given"), max_size=2)))
    ]
    for tool in tools:
        for field in (*tool.arguments, *tool.answers)[:1]:
            given.append(Learned(name=f"of {tool.name}", sources=((tool.name, field.name),)))
    statements = draw(st.lists(_statements(tools), max_size=5))
    calls = draw(_calls(tools))
    return Core(
        name="drawn", version=draw(st.sampled_from(("1", "\u00e9"))), tools=tuple(tools),
        calls=calls, patterns=(((0, len(calls)),) if calls else (),), rules={},
        plan=Repeat(OneCall(0), 0, None), given=tuple(given), statements=tuple(statements),
    )  # fmt: skip


@st.composite
def _calls(draw: st.DrawFn, tools: list[Tool]) -> tuple[Call, ...]:
    found = {}
    for at, tool in enumerate(tools):
        for _ in range(draw(st.integers(0, 2))):
            values = []
            parts = []
            for field in tool.listed:
                texts = ("",) * field.optional + field.values
                index = draw(st.integers(0, len(texts) - 1))
                values.append(index)
                parts += [f"{written(field.name)}={texts[index]}"] if texts[index] else []
            text = written(tool.name) + (f"({','.join(parts)})" if parts else "")
            low = draw(st.integers(-(1 << 63), 0))
            price = draw(st.integers(0, (1 << 64) - 1))
            found[text] = Call(
                text=text, tool=at, values=tuple(values), cost_low=low, cost_high=0, price=price,
                latency=1, epsilon=0,
            )  # fmt: skip
    return tuple([found[text] for text in sorted(found)])


# Statements with a meaning: conditions on the arguments of one tool, and on earlier calls.


def _scalar(field: Field) -> str:
    match field.type:
        case TextType():
            return "text"
        case NumberType():
            return "number"
        case FlagType():
            return "flag"
    return ""


@st.composite
def _condition(draw: st.DrawFn, fields: list[Field], of: n.Node | None) -> n.Node:
    """A condition on a field of a call: of `of`, or of the call of the place."""
    known = [field for field in fields if _scalar(field)]
    if not known:
        return n.Compare("<", n.Now(), n.Add(n.Now(), n.Duration("1", "h")))
    field = draw(st.sampled_from(known))
    term = n.Get(of or n.This(), field.name)
    match _scalar(field):
        case "text":
            text = n.Text(draw(_TEXTS))
            return draw(
                st.sampled_from(
                    (
                        n.Compare("=", term, text),
                        n.Compare("!=", term, n.Union((text, n.Text("other")))),
                        n.Compare("~", term, n.Text("(?i).*[a-z\\n]{2}")),
                        n.Compare("=", term, n.Null()),
                    )
                )
            )
        case "number":
            number = n.Number(draw(_NUMBERS))
            return draw(
                st.sampled_from(
                    (
                        n.Compare("<=", term, number),
                        n.Between("not in", term, number, n.Times(term, n.Number("2"))),
                        n.Compare("=", n.Negative(term), n.Minus(number, n.Number("1"))),
                    )
                )
            )
    return term


@st.composite
def _conditions(draw: st.DrawFn, tool: Tool, tools: list[Tool], answers: bool) -> n.Node:
    own = [*tool.arguments, *(tool.answers if answers else ())]
    plain = _condition(own, None)

    @st.composite
    def source(draw: st.DrawFn) -> n.Node:
        other = draw(st.sampled_from(tools))
        fields = [*other.arguments, *other.answers]
        found: n.Node = n.Word(other.name)
        if draw(st.booleans()):
            found = n.Where(found, (draw(_condition(fields, n.It())),))
        shape = draw(st.integers(0, 3))
        if shape == 0:
            return n.No(n.Within(found, draw(_AMOUNTS), draw(_UNITS)))
        if shape == 1:
            return n.No(n.Since(found, n.Word(tool.name)))
        if shape == 2:
            return n.Compare("<", n.Apply("count", (found,)), n.Number("3"))
        return draw(_condition(fields, n.Apply("last", (found,))))

    def around(inner: st.SearchStrategy[n.Node]) -> st.SearchStrategy[n.Node]:
        several = st.lists(inner, min_size=2, max_size=3).map(tuple)
        return st.one_of(several.map(n.And), several.map(n.Or), inner.map(_negated))

    return draw(st.recursive(st.one_of(plain, source()), around, max_leaves=4))


def _negated(of: n.Node) -> n.Node:
    return n.Not(of)


@st.composite
def _statements(draw: st.DrawFn, tools: list[Tool]) -> n.Statement:
    tool = draw(st.sampled_from(tools))
    on = n.Word(tool.name)
    where = (draw(_condition(list(tool.arguments), None)),) if draw(st.booleans()) else ()
    then = draw(_conditions(tool, tools, False))
    because = draw(st.one_of(st.none(), st.sampled_from(("", "it's 5 o'clock \u00e9"))))
    within = draw(st.one_of(st.none(), st.builds(n.Duration, _AMOUNTS, _UNITS)))
    match draw(st.integers(0, 6)):
        case 0:
            return n.Forbid(on=on, where=where, because=because)
        case 1:
            let = n.Definition(name="let", body=then)
            return n.Require(on=on, where=where, lets=(let,), then=n.Word("let"), because=because)
        case 2:
            return n.Ask(on=on, where=where, who="lead", within=within, because=because)
        case 3:
            scope = draw(st.sampled_from(("session", "across")))
            return n.Limit(
                of=on, where=where, within=within, most=n.Number("7"), scope=scope, because=because
            )
        case 4:
            return n.Owe(after=on, calls=n.Word(draw(st.sampled_from(tools)).name), within=within)
        case 5:
            what, most = draw(
                st.sampled_from((("depth", "400"), ("cost", "-1.5"), ("price", "9" * 18)))
            )
            return n.Total(what=what, most=most, because=because)
    return n.Require(on=on, where=where, then=then, because=because)


# Changes.

_ODD = st.sampled_from(
    (0, -1, True, "", "*", "null", "\u202e", "x" * 200, [], {}, ["any"], ["this"], ["it"],
     ["name", "a"], ["n", "0"], ["s", "open"], ["span", "1", "h"], ["null"], ["get", ["this"], "a"],
     ["call", "last", ["any"]], ["where", ["any"], ["same", "a"]], ["unused", ["any"]],
     ["match", ["name", "a"], ["else", ["n", "1"]]], ["-", ["any"], ["name", "t"]])
)  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn) -> Callable[[Any], Any]:
    """A function that changes a few parts of a document."""
    changes = draw(
        st.lists(
            st.tuples(st.integers(0, 1 << 30), st.integers(0, 5), _ODD, st.integers(0, 1 << 30)),
            min_size=1,
            max_size=4,
        )
    )

    def change(document: Any) -> Any:
        for at, way, odd, other in changes:
            spots = list(_spots(document))
            holder, key = spots[at % len(spots)]
            part = holder[key]
            if way == 0:
                holder[key] = odd
            elif way == 1:
                there, name = spots[other % len(spots)]
                holder[key] = _copied(there[name])
            elif way == 2 and isinstance(part, list):
                holder[key] = [_TAGS[other % len(_TAGS)], part, *([odd] * (other % 3))]
            elif way == 3 and isinstance(part, list) and part:
                part[0] = _TAGS[other % len(_TAGS)]
            elif way == 4 and isinstance(holder, list):
                holder.insert(key, _copied(part))
            else:
                del holder[key]
        return document

    return change


_TAGS = tuple(n.NODES)


def _copied(part: Any) -> Any:
    if isinstance(part, dict):
        return {name: _copied(value) for name, value in part.items()}
    return [_copied(value) for value in part] if isinstance(part, list) else part


def _spots(document: Any) -> Any:
    """Every list or object with each of its keys."""
    keys = range(len(document)) if isinstance(document, list) else list(document)
    for key in keys:
        yield document, key
        if isinstance(document[key], list | dict):
            yield from _spots(document[key])
