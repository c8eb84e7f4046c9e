"""Cores of version 1.1: what each part of the language becomes."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tcc_compiler.frontend import read_grammar_text
from tests.compiler.grammars import HEAD, TOOLS, codes, core

OPEN = HEAD + (
    "tool ask(part: half | full; order: text, n: integer 0 .. 9)\n"
    "tool pay(part: full | half | none; order: text, amount: number 0 .. 500)\n"
    "tool test(suite: unit | all) gives (result: pass | fail)\n"
)


def texts(found: Any) -> list[str]:
    """The calls of each pattern, as places in the list of calls."""
    return [" ".join(str(n) for low, high in p for n in range(low, high)) for p in found]


def test_a_grammar_of_version_1_0_has_a_core_of_version_1_0() -> None:
    assert core(TOOLS)["version"] == [1, 0]
    assert core(HEAD + 'tool a("k": "x" | "y z")')["version"] == [1, 0]


@pytest.mark.parametrize(
    "text",
    [
        "tool x(; t: text)",
        "tool x(k?: 1)",
        "tool x gives (r: 1 | 2)",
        "tool x { errors mean failed }",
        'tool "x y"',
        'tool x("a-b": 1)',
        'tool x("goal": 1)',
        "require a before each b",
        "forbid a before b",
        "limit sum(c.k) <= 1",
    ],
)
def test_each_new_part_makes_version_1_1(text: str) -> None:
    assert core(TOOLS + text)["version"] == [1, 1]


def test_open_parameters_are_written_out_with_their_defaults() -> None:
    found = core(
        HEAD
        + 'tool a(; t: text, u?: text min 1 max 9 ~ "[a-z]+", i: integer, n: number -0.50 .. 5.0,'
        " f?: flag, j: json, k: json max 7)"
    )
    assert found["tools"][0]["params"] == []
    assert found["tools"][0]["open"] == [
        {"name": "t", "type": "text", "min": 0, "max": 65536},
        {"name": "u", "type": "text", "min": 1, "max": 9, "pattern": "[a-z]+", "optional": True},
        {"name": "i", "type": "integer"},
        {"name": "n", "type": "number", "low": "-0.5", "high": "5"},
        {"name": "f", "type": "flag", "optional": True},
        {"name": "j", "type": "json", "max": 65536},
        {"name": "k", "type": "json", "max": 7},
    ]
    assert len(found["calls"]) == 1


def test_absent_is_the_first_value_and_stands_in_no_pattern() -> None:
    found = core(
        HEAD + "tool f(a?: x | y, b?: 1 | 2) { price 3 when a = x price 5 when b = 2 price 1 }\n"
        "plan = f(a=x|y) (f - f(a=x)) f limit depth <= 3 limit uses(f(b=1|2)) <= 1"
    )
    assert [p["values"] for p in found["tools"][0]["params"]] == [["", "x", "y"], ["", "1", "2"]]
    # f, f(a=x), f(a=x,b=1), f(a=x,b=2), f(a=y) .. f(b=1), f(b=2)
    assert [call[1] for call in found["calls"]] == [
        *([0, 0], [1, 0], [1, 1], [1, 2], [2, 0], [2, 1], [2, 2], [0, 1], [0, 2]),
    ]
    assert [call[4] for call in found["calls"]] == [1, 3, 3, 3, 1, 1, 5, 1, 5]
    assert texts(found["patterns"]) == ["0 1 2 3 4 5 6 7 8", "1 2 3", "1 2 3 4 5 6"]
    assert found["limits"][1]["of"] == {"tool": 0, "where": [[1, [1, 2]]]}


def test_observed_parameters_come_last_and_patterns_name_them() -> None:
    found = core(OPEN + "require test(result=pass) before pay")
    assert found["tools"][2]["params"] == [
        {"name": "suite", "values": ["unit", "all"]},
        {"name": "result", "values": ["pass", "fail"], "observed": True},
    ]
    assert found["requires"] == [["before", 2, 1]]
    assert texts(found["patterns"])[2] == "6 8"  # test(suite=all,result=pass) and unit, pass


def test_strict_and_errors_are_members_of_the_tool() -> None:
    found = core(HEAD + 'tool t gives (r: 1 | 2) { strict doc "x" errors mean failed price 1 }')
    tool = found["tools"][0]
    assert (tool["strict"], tool["errors"], tool["doc"]) == (True, "failed", "x")


def test_same_over_listed_parameters_is_a_statement_for_each_value() -> None:
    found = core(OPEN + "require ask before pay same part")
    # ask(full) is call 0, ask(half) 1; pay full, half, none are 2, 3, 4.
    patterns = texts(found["patterns"])
    named = {(patterns[a], patterns[b]) for _, a, b in found["requires"]}
    assert named == {("0", "2"), ("1", "3"), ("", "4")}
    assert "monitors" not in found
    found = core(OPEN + "forbid ask before pay same part")
    patterns = texts(found["patterns"])
    assert {(k, patterns[a], patterns[b]) for k, a, b in found["forbids"]} == {
        ("before", "0", "2"), ("before", "1", "3"),
    }  # fmt: skip


def test_per_over_a_listed_parameter_is_a_limit_for_each_value() -> None:
    found = core(OPEN + "limit uses(pay(part=full|none)) per part <= 2")
    assert [limit["of"]["where"] for limit in found["limits"]] == [[[0, [0]]], [[0, [2]]]]


def test_same_over_open_parameters_is_a_monitor_and_a_require_leaves_its_order() -> None:
    found = core(OPEN + "require ask(part=full) before each pay same order, n = amount, part")
    ask = {"tool": 0, "where": [[0, [1]]]}
    pay = {"tool": 1, "where": []}
    assert found["monitors"] == [
        {
            "kind": "require",
            "order": "each",
            "first": ask,
            "second": pay,
            "same": [["n", "amount"], ["order", "order"], ["part", "part"]],
        }
    ]
    patterns = texts(found["patterns"])
    named = [(order, patterns[a], patterns[b]) for order, a, b in found["requires"]]
    assert named == [("before", "0", "2 3 4")]
    found = core(OPEN + "forbid ask with pay same order forbid ask before pay same order")
    assert [monitor["order"] for monitor in found["monitors"]] == ["before", "with"]
    assert found["forbids"] == found["requires"] == []


def test_limits_of_open_parameters_are_monitors() -> None:
    found = core(OPEN + "limit sum(pay.amount) <= 1000.50 limit uses(pay) per order <= 2")
    assert found["limits"] == []
    assert found["monitors"] == [
        {"kind": "sum", "param": "amount", "tool": 1, "value": "1000.5"},
        {"kind": "uses", "of": {"tool": 1, "where": []}, "per": "order", "value": 2},
    ]


def test_statements_that_are_said_twice_stand_once() -> None:
    once = "limit uses(pay) per order <= 2 require ask before pay same order, part "
    again = "limit uses(pay) per order <= 2.0 require ask before pay same part, order = order "
    assert core(OPEN + once) == core(OPEN + once + again)


def test_a_sum_of_listed_values_is_a_limit() -> None:
    found = core(HEAD + 'tool "a b"(k?: 0.5 | 2, s: x) limit sum("a b".k) <= 12.50')
    limit = {"kind": "sum", "of": {"tool": 0, "param": 0}, "op": "<=", "value": 12_500_000_000}
    assert found["limits"] == [limit]


def test_the_currency_is_a_label_and_no_part_of_the_core() -> None:
    assert core(HEAD + 'currency "EUR/1000" tool currency plan = currency') == core(
        HEAD + "tool currency plan = currency"
    )
    assert codes(HEAD + 'tool a currency "a" currency "b"') == [("TCC212", 2, 21)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("k: abc | 5", 'k: "abc" | 5.0'),
        ("k: a1 | b", '"k": "a1" | "b"'),
        ("k: each | text", 'k: "each" | "text"'),
    ],
)
def test_one_json_value_is_one_value(one: str, other: str) -> None:
    assert core(f"{HEAD}tool a({one})") == core(f'{HEAD}tool "a"({other})')


def test_constants_of_json_and_strings_of_their_spelling_are_two_values() -> None:
    found = core(HEAD + 'tool a(k: true | "true" | null | "null" | 5 | "5" | "goal" | "")')
    assert found["tools"][0]["params"][0]["values"] == [
        *("true", '"true"', "null", '"null"', "5", '"5"', '"goal"', '""'),
    ]


def test_places_name_the_new_statements() -> None:
    text = OPEN + "limit uses(pay) per order <= 2\nlimit uses(pay) per part <= 1\n"
    places = read_grammar_text(text).places
    assert places["monitor limit uses(pay) per order <= 2"].line == 5
    assert places["limit uses(pay(part=half))<=1"].line == 6


def test_a_used_file_lends_open_parameters_and_no_currency() -> None:
    assert codes('currency "EUR"\n' + HEAD + "tool a")[0][0] == "TCC213"


@pytest.mark.parametrize(
    ("said", "fine"),
    [
        ('~ "[ab]*a[ab]{900}" max 1162', True),
        ('~ "[ab]*a[ab]{900}" max 1163', False),
        ('~ "[ab]*a[ab]{14}"', True),
        ('~ "[ab]*a[ab]{15}"', False),
        ('~ "[ab]{1000}"', True),
    ],
)
def test_a_pattern_that_takes_too_long_to_check_is_refused(said: str, fine: bool) -> None:
    text = f"{HEAD}tool pay(; order: text {said})\nplan = pay"
    found = read_grammar_text(text, "g").diagnostics
    assert [item.code for item in found] == ([] if fine else ["TCC323"])
    for item in found:
        assert item.span is not None and item.hint is not None
        at = text.splitlines()[item.span.line - 1][item.span.column - 1 :]
        assert at.startswith("max 1163" if "max" in said else "~ ")
        most = 1162 if "max" in said else 61680
        assert item.hint == f"write `max {most}` or less, or a shorter pattern"


TOLD = HEAD + (
    "tool ask(k: 1 | 2; id: text) gives (ok: yes | no)\n"
    "tool act(k: 1 | 2; id: text) gives (ok: yes | no)\n"
)


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("require ask(ok=yes) before act same id", []),
        ("require ask(ok=yes) before each act same id", []),
        ("require ask before act(ok=yes) same id", ["ok"]),
        ("require ask(ok=no) before each act(ok=yes) same id", ["ok"]),
        ("require ask(ok=yes) before act(k=1) same id, k", []),
        ("forbid ask(ok=no) before act same id", []),
        ("forbid ask(ok=no) before ask same id", []),
        ("forbid ask(k=1, ok=no) before act(k=2) same id", []),
        ("forbid ask before act(ok=no) same id", ["ok"]),
        ("forbid ask(ok=no) before act(ok=no) same id", ["ok"]),
        ("forbid ask(ok=no) with act same id", ["ok"]),
        ("forbid ask with act(ok=no) same id", ["ok"]),
        ("forbid ask(ok=no) with act(ok=no) same id", ["ok", "ok"]),
        ("limit uses(ask(ok=yes)) per id <= 1", ["ok"]),
        ("limit uses(ask(k=1)) per id <= 1", []),
        ("require ask before act same id, ok", ["ok"]),
        ("forbid ask before act same id, ok = k", ["ok"]),
        ("forbid ask with act same id, k = ok", ["ok"]),
        ("require ask(ok=yes) before act(ok=no) same k", []),
        ("forbid ask(ok=no) with act(ok=no) same ok", []),
    ],
)
def test_a_monitor_names_answers_of_calls_that_are_over(statement: str, names: list[str]) -> None:
    text = TOLD + statement
    places = [m.start() + 1 for m in re.finditer(r"\bok\b", statement)]
    found = codes(text)
    assert [code for code, *_ in found] == ["TCC220"] * len(names)
    assert all(line == text.count("\n") + 1 and at in places for _, line, at in found)
    if not names:
        core(text)
