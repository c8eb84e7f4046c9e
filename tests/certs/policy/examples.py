"""Cores in Python: the example of the language, and one with every form."""

from __future__ import annotations

from dataclasses import replace

from tcc_certs.errors import Code
from tcc_certs.policy import nodes as n
from tcc_certs.policy.atoms import canonical_atom
from tcc_certs.policy.core import Core, Learned, Tool
from tcc_certs.policy.plans import (
    Alt,
    Both,
    Call,
    Diff,
    Empty,
    Model,
    OneCall,
    Repeat,
    RuleRef,
    Seq,
)
from tcc_certs.policy.tables import Letter
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
from tcc_certs.values.places import listed_states
from tcc_certs.values.zones import Zone, Zones


def text(name: str, **more: object) -> Field:
    """A field that is any text."""
    return Field(name=name, steps=(name,), type=TextType(**more))


def amount(name: str, high: str) -> Field:
    """A number from 0 to a bound."""
    kind = NumberType(whole=False, low="0", high=high)
    return Field(name=name, steps=(name,), type=kind)


def listed(name: str, *values: str) -> Field:
    """A field with these values."""
    return Field(name=name, steps=(name,), values=values)


def word(name: str) -> n.Word:
    """A bare name."""
    return n.Word(name)


def same(name: str) -> n.Same:
    """``same NAME``."""
    return n.Same((name,))


def last(of: n.Node) -> n.Apply:
    """``last(OF)``."""
    return n.Apply("last", (of,))


def equal(left: n.Node, right: n.Node) -> n.Compare:
    """``LEFT = RIGHT``."""
    return n.Compare("=", left, right)


def desk() -> Core:
    """The example of the language: refunds of a support desk."""
    tools = (
        Tool(
            name="find_order",
            arguments=(text("order", pattern="ord-[0-9]+", most=40),),
            answers=(
                text("owner"),
                amount("total", "10000"),
                listed("status", "open", "delivered", "cancelled"),
            ),
        ),
        Tool(
            name="approve",
            arguments=(text("order"), amount("amount", "10000")),
            answers=(listed("answer", "yes", "no"),),
        ),
        Tool(name="refund", arguments=(text("order"), amount("amount", "500"))),
        Tool(name="reply", arguments=(text("message", most=2000),)),
        Tool(name="hand_over"),
    )
    refund = word("refund")
    find = n.Where(word("find_order"), (same("order"),))
    order = n.Definition(name="o", body=last(find))
    owner = equal(n.Get(word("o"), "owner"), n.Session("customer"))
    approved = n.Where(
        word("approve"), (n.Same(("order", "amount")), equal(word("answer"), word("yes")))
    )
    small = n.Compare("<=", word("amount"), n.Number("100"))
    within = n.Duration("30", "d")
    statements = (
        n.Require(
            on=refund, lets=(order,), then=owner,
            because="Only the customer's own orders are refunded.",
        ),
        n.Require(
            on=refund, then=n.Or((small, n.Unused(approved))),
            because="Larger refunds need an approval of exactly this amount.",
        ),
        n.Limit(
            of=refund, field="amount", per=(word("order"),),
            most=n.Get(last(find), "total"), scope="across",
        ),
        n.Limit(
            of=refund, within=within, per=(n.Session("customer"),), most=n.Number("3"),
            scope="across",
        ),
        n.Require(on=n.AnyTool(), then=n.No(word("hand_over"))),
        n.Forbid(
            on=word("reply"),
            where=(n.Compare("~", word("message"), n.Text("(?i).*(password|secret).*")),),
        ),
        n.Total(what="depth", most="400"),
    )  # fmt: skip
    names = ("approve(answer=no)", "approve(answer=yes)", "find_order(status=cancelled)",
             "find_order(status=delivered)", "find_order(status=open)", "hand_over", "refund",
             "reply")  # fmt: skip
    tool_of = (1, 1, 0, 0, 0, 4, 2, 3)
    values: tuple[tuple[int, ...], ...] = ((1,), (0,), (2,), (1,), (0,), (), (), ())
    calls = tuple(
        [
            Call(
                text=name, tool=tool, values=value, cost_low=0, cost_high=0, price=0, latency=0,
                epsilon=0,
            )
            for name, tool, value in zip(names, tool_of, values, strict=True)
        ]
    )  # fmt: skip
    return Core(
        name="desk",
        version="1.0",
        tools=tools,
        calls=calls,
        patterns=(((0, len(calls)),),),
        rules={},
        plan=Repeat(OneCall(0), 0, None),
        given=(text("customer"),),
        statements=statements,
    )


def everything() -> Core:
    """Every kind of declaration, type, statement and node that a core can have."""
    record = RecordType(
        fields=(
            Field(name="id", steps=("id",), type=NumberType(whole=True)),
            Field(name="state", steps=("meta", "state"), values=("new", '"in use"', "null")),
        )
    )
    types: dict[str, FieldType] = {
        "currency": TextType(among=("EUR", "USD", ""), most=3),
        "count": NumberType(whole=True, low="-9223372036854775808", high="18446744073709551615"),
        "share": NumberType(whole=False, low="0", high="0.5"),
        "urgent": FlagType(),
        "raw": JsonType(most=100),
        "file": PathType(under="/srv"),
        "link": UrlType(under="https://*.example.com/docs"),
        "place": PathType(),
        "either": UnionType(of=(NumberType(whole=True), TextType(), ListType(of=FlagType()))),
        "null too": NullableType(of=UnionType(of=(FlagType(), record))),
        "at": TimeType(),
        "due": TimeType(zone=-330),
        "day": DateType(),
        "night": DateType(zone=60),
        "tags": ListType(of=TextType(), least=1, most=5, distinct=True),
        "items": ListType(of=record),
        "maybe": NullableType(of=TextType(pattern="[a-z]+", most=9)),
        "box": record,
    }
    fields = tuple([Field(name=name, steps=(name,), type=kind) for name, kind in types.items()])
    inner = Field(name="inner", steps=("box", "a/b"), type=TextType(), optional=True)
    level = Field(name="level", steps=("level",), values=("low", "1.5", "true"), optional=True)
    state = Field(name="state", steps=("state",), values=("ok", "*"), optional=True, null=True)
    ids = Field(name="ids", steps=("rows", "*", "id"), type=ListType(of=TextType(), most=20))
    whole = Field(name="whole", steps=(), type=JsonType(), optional=True, null=True)
    asked = Model(
        name="m", price=1, latency=2, epsilon=3, adapter="lora", quality=(25, 2),
        atom=canonical_atom(
            {"mechanism": "gaussian", "sigma": "2", "sensitivity": "1"}, "", Code.CORE_SCHEMA
        ),
    )  # fmt: skip
    model = replace(asked, execute=replace(asked, price=1 << 60, latency=5, epsilon=6))
    tools = (
        Tool(name="a tool", arguments=(*fields, inner, level), answers=(state, ids, whole)),
        Tool(
            name="b", takes="s", gives="t", models=(model,), quotes_same=True, strict=True,
            errors_failed=True, error_text="error: .*", parallel=True, doc="",
            bind=("mcp", "x", "y"), arguments=(text("order"),),
            answers=(listed("done", "yes", "no"),),
        ),
        Tool(name="c", bind=("python", "x.y:z"), doc="what \u202e it does"),
    )  # fmt: skip
    calls = (
        Call(text="b(done=no)", tool=1, values=(1,), cost_low=-(1 << 60), cost_high=3,
             price=1 << 60, latency=2, epsilon=1),
        Call(text="c", tool=2, values=(), cost_low=0, cost_high=0, price=0, latency=0, epsilon=0),
    )  # fmt: skip
    rules = {"r": Seq((OneCall(0), Alt((Empty(), RuleRef("s"))))), "s": Repeat(OneCall(1), 1, 3)}
    plan = Diff(Both((RuleRef("r"), Repeat(OneCall(1), 0, None))), (OneCall(0),))
    a, b = word("a tool"), word("b")
    yes = equal(word("done"), word("yes"))
    match = n.Match(
        n.Get(last(b), "done"),
        (n.Arm(n.Number("1"), (word("yes"),)), n.Else(n.Times(n.Number("2"), word("count")))),
    )
    conditions = (
        n.Between("in", word("count"), n.Number("-5"), n.Add(n.Number("0.5"), match)),
        n.Not(n.Compare("not in", word("currency"), n.Session("roles"))),
        n.Every(n.Where(word("tags"), (n.Compare("~", n.It(), n.Text("a.*\\\\\\n")),))),
        equal(word("maybe"), n.Null()),
        n.Compare("under", word("file"), n.Text("/srv/../srv/out")),
        n.Compare("not under", word("link"), n.Text("https://*.h")),
        n.Compare("under", word("file"), word("place")),
        n.Compare("!=", n.Apply("host", (word("link"),)), n.Text("a.example.com")),
        n.Flag(True),
        n.Compare(
            "<", n.Minus(n.Now(), n.Duration("2", "h")), n.Apply("max", (word("at"), word("due")))
        ),
        n.Compare("<=", n.Apply("hour", (word("at"), n.Text("+02:00"))), n.Number("20")),
        n.Compare("<", n.Apply("weekday", (n.Now(), n.Text("Europe/Berlin"))), n.Number("6")),
        n.No(n.Within(n.Since(n.Minus(n.AnyTool(), word("c")), b), "1.5", "m")),
        n.Compare(">", n.Negative(word("share")), n.Negative(n.Number("-1"))),
        n.Compare("<", n.Apply("count", (n.Apply("distinct", (word("tags"),)),)), n.Number("3")),
        n.Where(word("holds"), (n.Text("EUR"), word("currency"))),
        n.Compare("!=", n.Get(n.This(), "currency"), n.Union((n.Text("EUR"), n.Text("USD")))),
    )
    reason = 'Because of "this"'
    statements: tuple[n.Statement, ...] = (
        n.Require(on=a, where=(word("urgent"),), then=n.And(conditions), because=reason),
        n.Require(on=None, then=n.Or((n.Where(b, (yes,)), n.No(b)))),
        n.Require(on=b, then=n.Unused(n.Where(b, (same("order"),)))),
        n.Ask(
            on=b, where=(n.Compare("!=", word("order"), n.Text("x")),), who="lead",
            within=n.Duration("2", "h"), because=reason,
        ),
        n.Ask(on=b, who="lead"),
        n.Forbid(on=n.Union((b, word("c"))), because=reason),
        n.Owe(after=b, where=(yes,), calls=b, pays=(same("order"),), within=n.Duration("1", "d")),
        n.Owe(after=b, calls=word("c")),
        n.Limit(of=b, most=n.Number("3"), scope="session", because=reason),
        n.Limit(of=n.AnyTool(), most=n.Number("30")),
        *[
            n.Total(what=what, most=most)
            for what, most in (
                ("depth", "3"), ("price", "9007199254740993"), ("cost", "-0.5"), ("latency", "0"),
                ("epsilon", "1.000000001"),
            )
        ],
    )  # fmt: skip
    holds = n.Definition(
        name="holds", parameters=("one", "other"), body=n.Compare("!=", word("one"), word("other"))
    )
    berlin = Zone("Europe/Berlin", (0, 323_830_800_000), (3_600_000, 7_200_000), 400_000_000_000)
    zones = Zones(version="2026a", until=berlin.until, of={berlin.name: berlin})
    roles = Field(name="roles", steps=("roles",), type=ListType(of=TextType()))
    return Core(
        name="everything", version="\u00e9 1", tools=tools, calls=calls,
        patterns=(((0, 1),), ((1, 2),)), rules=rules, plan=plan, start="s", goals=("t", "u"),
        passed=("input", "prompts"),
        given=(roles, listed("tier", "gold", "free"), Learned(name="o", sources=(("b", "order"),))),
        lets=(holds,), statements=statements, zones=zones,
    )  # fmt: skip


def letters_of(core: Core) -> tuple[Letter, ...]:
    """The calls of a core as letters, in its order."""
    found = []
    known = [[(one.name, listed_states(one)) for one in tool.listed] for tool in core.tools]
    for call in core.calls:
        pairs = zip(known[call.tool], call.values, strict=True)
        states = {name: values[at] for (name, values), at in pairs}
        found.append(Letter(core.tools[call.tool].name, states))
    return tuple(found)
