"""What the kernel reads in a question's statement, member by member.

Normative: docs/spec/proof.md, section 2.  Sets of calls are held to the calls that they mean, one
by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

import pytest

import tcc
from tcc_certs.core import model
from tcc_certs.core.model import Core
from tcc_certs.errors import Rejected
from tcc_certs.proof.question import statement_core

TEXT = """grammar g version "1"

tool a(k: p | q | r, n: 0 | 1 | 2.5, x: text max 9, y: text max 9, m: number 0 .. 9, j: json)
  gives (s: ok | bad)
tool b(k: p | "a b", o?: u | v, w: null | 1, e?: 1 | 2, x: text max 9, y: text max 9,
       z: integer 0 .. 9, j: json)
tool `any`(c: true | -3)

limit depth <= 3
"""


@cache
def _core() -> Core:
    return tcc.compile_text(TEXT).core


def _tool(name: str) -> int:
    return [tool.name for tool in _core().tools].index(name)


Meant = Callable[[str, Mapping[str, str]], bool]


def _calls(meant: Meant) -> tuple[tuple[int, int], ...]:
    """The calls that are meant, as ranges."""
    found = []
    for number, call in enumerate(_core().calls):
        tool = _core().tools[call.tool]
        named = zip(tool.parameters, call.values, strict=True)
        if meant(tool.name, {one.name: one.values[at] for one, at in named}):
            found.append(number)
    starts = [at for at in found if at - 1 not in found]
    ends = [at + 1 for at in found if at + 1 not in found]
    return tuple(zip(starts, ends, strict=True))


def _is(*names: str, **values: str) -> Meant:
    def meant(tool: str, found: Mapping[str, str]) -> bool:
        there = all(found.get(name) in value.split("|") for name, value in values.items())
        return (not names or tool in names) and there

    return meant


SETS: list[tuple[str, Meant]] = [
    ("a", _is("a")),
    ('"a"', _is("a")),
    ("((b))", _is("b")),
    ("any", _is()),
    ('"any"', _is("any")),
    ("a(k = p)", _is("a", k="p")),
    ("a(k = q | p)", _is("a", k="p|q")),
    ("a(k = p | p | r)", _is("a", k="p|r")),
    ("a(n = 2.5, k = q)", _is("a", k="q", n="2.5")),
    ("a(n = + 1.0)", _is("a", n="1")),
    ('b(k = "a b")', _is("b", k='"a b"')),
    ('b("k" = "p")', _is("b", k="p")),
    ("b(o = v)", _is("b", o="v")),
    ("a(s = bad)", _is("a", s="bad")),
    ('"any"(c = true)', _is("any", c="true")),
    ('"any"(c = -3)', _is("any", c="-3")),
    ("a | b(k = p)", lambda tool, found: tool == "a" or (tool == "b" and found["k"] == "p")),
    ("any - a", _is("any", "b")),
    ("any - (a | b)", _is("any")),
    ("a - a(k = p) - a(n = 1)", _is("a", k="q|r", n="0|2.5")),
    ("a - a", lambda tool, found: False),
]


@pytest.mark.parametrize(("text", "meant"), SETS, ids=[text for text, _ in SETS])
def test_a_set_is_of_the_calls_that_it_means(text: str, meant: Meant) -> None:
    found = statement_core(_core(), "statement", f"forbid {text}")
    assert (found.patterns, found.forbids) == ((_calls(meant),), (model.ForbidNext((0,)),))
    assert statement_core(_core(), "reachable", text) == found
    limit = statement_core(_core(), "statement", f"limit uses({text}) <= 2").limits[0]
    assert limit.calls == _calls(meant)


def _selection(tool: str, *where: tuple[str, Iterable[int]]) -> model.Selection:
    at = _tool(tool)
    names = [one.name for one in _core().tools[at].parameters]
    pairs = sorted([(names.index(name), tuple(some)) for name, some in where])
    return model.Selection(tool=at, where=tuple(pairs))


def _order(kind: Any, order: Any, *of: model.Selection, same: Any) -> dict[str, Any]:
    one = model.OrderMonitor(kind=kind, order=order, first=of[0], second=of[1], same=same, text="")
    return {"monitors": (one,)}


def _limit(kind: Any, value: int, **more: Any) -> dict[str, Any]:
    return {"limits": (model.Limit(kind=kind, value=value, text="", **more),)}


A, B, BOTH = _is("a"), _is("b"), (("x", "x"),)
STATEMENTS: list[tuple[str, dict[str, Any], list[Meant]]] = [
    ("never a", {"forbids": (model.ForbidNext((0,)),)}, [A]),
    ("forbid a b a", {"forbids": (model.ForbidNext((0, 1, 2)),)}, [A, B, A]),
    ("forbid a with b", {"forbids": (model.ForbidWith(0, 1),)}, [A, B]),
    ("never a with b", {"forbids": (model.ForbidWith(0, 1),)}, [A, B]),
    ("forbid a before b", {"forbids": (model.ForbidBefore(0, 1),)}, [A, B]),
    ("never a before b", {"forbids": (model.ForbidBefore(0, 1),)}, [A, B]),
    ("never a after b", {"forbids": (model.ForbidBefore(0, 1),)}, [B, A]),
    ("require a before b", {"requires": (model.Require("before", 0, 1),)}, [A, B]),
    ("require a before each b", {"requires": (model.Require("each", 0, 1),)}, [A, B]),
    ("require a after b", {"requires": (model.Require("after", 0, 1),)}, [A, B]),
    ("forbid a with b same x",
     _order("forbid", "with", _selection("a"), _selection("b"), same=BOTH), []),
    ("never a before b same x",
     _order("forbid", "before", _selection("a"), _selection("b"), same=BOTH), []),
    ("never b(k = p) after a same z = m, y = x",
     _order("forbid", "before", _selection("a"), _selection("b", ("k", [0])),
            same=(("m", "z"), ("x", "y"))), []),
    ("forbid a(s = ok) before b same x",
     _order("forbid", "before", _selection("a", ("s", [0])), _selection("b"), same=BOTH), []),
    ("require a before b same y = x, x",
     _order("require", "before", _selection("a"), _selection("b"), same=(("x", "x"), ("y", "x"))),
     []),
    ("require a before each a(n = 2.5, k = r | p) same x, x, k",
     _order("require", "each", _selection("a"), _selection("a", ("n", [2]), ("k", [0, 2])),
            same=(("k", "k"), ("x", "x"))), []),
    ("limit uses(a(k = q)) per x <= 3",
     {"monitors": (
         model.UsesMonitor(calls=_selection("a", ("k", [1])), per="x", value=3, text=""),)}, []),
    ("limit uses(a) >= 1", _limit("uses", 1, least=True, calls=_calls(A)), []),
    ("limit uses(a) <= 1", _limit("uses", 1, least=False, calls=_calls(A)), []),
    ("limit sum(a.m) <= 3.50",
     {"monitors": (model.SumMonitor(tool=_tool("a"), parameter="m", value="3.5", text=""),)}, []),
    ("limit sum(a.n) <= 3.5", _limit("sum", 3_500_000_000, parameter=(_tool("a"), 1)), []),
    ("limit sum(b.e) <= 1", _limit("sum", 1_000_000_000, parameter=(_tool("b"), 3)), []),
    ("limit depth <= 4", _limit("depth", 4), []),
    ("limit price <= 4", _limit("price", 4), []),
    ("limit latency <= 4 ms", _limit("latency", 4), []),
    ("limit latency <= 0.5 s", _limit("latency", 500), []),
    ("limit cost <= 0.5", _limit("cost", 500_000_000), []),
    ("limit epsilon <= 2", _limit("epsilon", 2_000_000_000), []),
]  # fmt: skip


@pytest.mark.parametrize(("text", "due", "sets"), STATEMENTS, ids=[row[0] for row in STATEMENTS])
def test_a_statement_is_what_it_says_and_no_more(
    text: str, due: dict[str, Any], sets: list[Meant]
) -> None:
    found = statement_core(_core(), "statement", text)
    members = ("limits", "requires", "forbids", "monitors")
    assert {name: some for name in members if (some := getattr(found, name))} == due
    assert found.patterns == tuple(map(_calls, sets))
    assert (found.tools, found.calls) == (_core().tools, _core().calls)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("never a after b same x, k = o", "parameters that can be compared"),
        ("forbid a after b", "with or before"),
        ("require a after each b", "a tool"),
        ("require a before b same j", "parameters that can be compared"),
        ("require a with b", "before or after"),
        ("limit uses a <= 1", "("),
        ("limit uses(a <= 1", ")"),
        ("limit uses(a) = 1", "<= or >="),
        ("limit uses(a per x <= 1", ")"),
        ("limit sum(a) <= 1", "."),
        ("limit sum(a.m <= 1", ")"),
        ("limit sum(a.m) >= 1", "<="),
        ("limit depth >= 1", "<="),
        ("limit uses((a) <= 1", ")"),
        ("forbid (a", ")"),
        ("forbid a(k p)", "="),
        ("forbid b(o = w)", "a value of o"),
        ("forbid any with b same c = x", "a tool"),
        ("limit sum(any.c) <= 1", "a tool"),
        ("limit sum(b.w) <= 1", "numbers of at least 0"),
    ],
)  # fmt: skip
def test_each_mark_has_to_be_there(text: str, expected: str) -> None:
    with pytest.raises(Rejected) as refusal:
        statement_core(_core(), "statement", text)
    assert (refusal.value.code.value, refusal.value.expected) == ("T102", expected)
