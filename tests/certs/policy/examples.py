"""Cores in Python: the example of the language, and a large core."""

from __future__ import annotations

from tcc_certs.core.model import Call, OneCall, Repeat
from tcc_certs.policy import nodes as n
from tcc_certs.policy.core import Core, Tool
from tcc_certs.values.declared import NumberType, TextType
from tcc_certs.values.fields import Field


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
