"""The cost of reading a core as its statements and tools double: time, and peak memory.

A core has 40 statements of every kind for each group of 4 tools; some of them are about all tools.
Times are the least processor time of several rounds.  The garbage collector, which finds nothing to
collect here, is off except in one column.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from time import process_time

from benchmarks.measure import head, row
from tcc_certs.formats.codec import decode, encode
from tcc_certs.policy import nodes as n
from tcc_certs.policy.core import Core, Tool
from tcc_certs.policy.nodes import Statement
from tcc_certs.policy.plans import OneCall, Repeat
from tcc_certs.policy.reader import core_json, read_core
from tcc_certs.values.declared import NumberType, TextType
from tcc_certs.values.fields import Field

GROUPS = 250
ROUNDS = 3


def table() -> Iterator[str]:
    """Yield the rows of the table, in Markdown."""
    yield from head(
        "tools",
        "statements",
        "MB",
        "read, s",
        "us a statement",
        "JSON alone, s",
        "read with the collector, s",
        "MB at the peak",
    )
    for factor in (1, 2, 4):
        data = large(GROUPS * factor)
        seconds = min([_seconds(read_core, data) for _ in range(ROUNDS)])
        alone = min([_seconds(decode, data, "") for _ in range(ROUNDS)])
        collected = min([_seconds(read_core, data, collect=True) for _ in range(ROUNDS)])
        statements = 40 * GROUPS * factor
        yield row(
            f"{4 * GROUPS * factor:,}", f"{statements:,}", f"{len(data) / 1e6:.1f}",
            f"{seconds:.2f}", f"{seconds / statements * 1e6:.0f}", f"{alone:.2f}",
            f"{collected:.2f}", f"{_held(data) / 1e6:.0f}",
        )  # fmt: skip


def _seconds(work: Callable[..., object], *arguments: object, collect: bool = False) -> float:
    gc.collect()
    if not collect:
        gc.disable()
    begin = process_time()
    work(*arguments)
    seconds = process_time() - begin
    gc.enable()
    return seconds


def _held(data: bytes) -> int:
    """Return the peak of the bytes that reading allocates."""
    gc.collect()
    tracemalloc.start()
    try:
        read_core(data)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def large(groups: int) -> bytes:
    """Return a core with `groups` groups of four tools, and 40 statements for each group."""
    tools = [tool for at in range(groups) for tool in _tools(at)]
    statements = [statement for at in range(groups) for statement in _statements(at)]
    core = Core(
        name="large", version="1", tools=tuple(tools), patterns=((),), rules={},
        plan=Repeat(OneCall(0), 0, None), given=(_text("customer"),),
        statements=tuple(statements),
    )  # fmt: skip
    return encode(core_json(core))


def _text(name: str) -> Field:
    return Field(name=name, steps=(name,), type=TextType(most=200))


def _number(name: str) -> Field:
    return Field(name=name, steps=(name,), type=NumberType(whole=False, low="0", high="1000"))


def _listed(name: str, *values: str) -> Field:
    return Field(name=name, steps=(name,), values=values)


def _tools(at: int) -> list[Tool]:
    order = _text("order")
    return [
        Tool(
            name=f"find_{at}", arguments=(order,),
            answers=(_text("owner"), _number("total"), _listed("status", "open", "closed")),
        ),
        Tool(
            name=f"approve_{at}", arguments=(order, _number("amount")),
            answers=(_listed("answer", "yes", "no"),),
        ),
        Tool(name=f"refund_{at}", arguments=(order, _number("amount"), _text(f"note_{at}"))),
        Tool(name=f"reply_{at}", arguments=(order, _text("message"))),
    ]  # fmt: skip


def _statements(at: int) -> list[Statement]:
    find, approve, refund, reply = (
        n.Word(f"{name}_{at}") for name in ("find", "approve", "refund", "reply")
    )
    found: list[Statement] = []
    for number in range(5):
        found += _some(find, approve, refund, reply, f"note_{at}", str(number + 1))
    return found


def _some(
    find: n.Node, approve: n.Node, refund: n.Node, reply: n.Node, note: str, size: str
) -> list[Statement]:
    same = n.Same(("order",))
    order = n.Apply("last", (n.Where(find, (same,)),))
    owner = n.Compare("=", n.Get(n.Word("o"), "owner"), n.Session("customer"))
    yes = n.Compare("=", n.Word("answer"), n.Word("yes"))
    approved = n.Where(approve, (n.Same(("order", "amount")), yes))
    small = n.Compare("<=", n.Word("amount"), n.Number(size))
    plain = n.Compare("~", n.Word("message"), n.Text(f"(?i).*(password|secret){{{size}}}.*"))
    closed = n.Compare("=", n.Get(order, "status"), n.Word("closed"))
    rest = n.Minus(n.AnyTool(), n.Union((find, reply)))
    return [
        n.Require(
            on=refund, lets=(n.Definition(name="o", body=order),), then=owner,
            because="Only the customer's own orders are refunded.",
        ),
        n.Require(on=refund, then=n.Or((small, n.Unused(approved)))),
        n.Limit(
            of=refund, field="amount", per=(n.Word("order"),), most=n.Get(order, "total"),
            scope="across",
        ),
        n.Limit(
            of=refund, where=(n.Compare("!=", n.Word(note), n.Text("")),),
            within=n.Duration("30", "d"), per=(n.Session("customer"),), most=n.Number(size),
            scope="across",
        ),
        n.Forbid(
            on=n.Union((reply, refund)), where=(n.Compare("=", n.Word("order"), n.Text(size)),)
        ),
        n.Forbid(on=reply, where=(plain,)),
        n.Owe(after=refund, calls=reply, pays=(same,), within=n.Duration("2", "h")),
        n.Require(on=reply, then=n.Or((n.No(n.Since(refund, find)), closed)))
        if size != "5"
        else n.Require(on=n.AnyTool(), then=n.No(n.Since(refund, rest))),
    ]  # fmt: skip
