"""The core's reader: the schema, the orders, what is derived, and hostile cores."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from tcc_certs.core import reader
from tcc_certs.core.reader import read_core
from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import decode, encode
from tests.oracle.cores import call, depth, letters, make_core, random_core, uses
from tests.oracle.examples import example_core

A = ["call", {0}]


def changed(**members: Any) -> bytes:
    """The example with these members replaced."""
    return encode({**decode(example_core(), "core"), **members})


def code_of(data: bytes) -> str:
    try:
        read_core(data)
    except Rejected as refusal:
        return refusal.code.value
    return "valid"


def test_reads_the_example() -> None:
    core = read_core(example_core())
    assert [c.text for c in core.calls] == ["a", "b(k=1)", "b(k=2)", "c"]
    assert core.limit_texts == ("depth<=3", "price<=5")
    assert core.patterns == (((0, 1),), ((1, 3),), ((3, 4),))
    assert (core.name, core.version, core.start, core.goals) == ("vec", "1.0", None, ())


def test_writes_limits_canonically_and_finds_their_calls() -> None:
    tools = [
        {
            "name": "b",
            "params": [
                {"name": "k", "values": ["1", "2"]},
                {"name": "m", "values": ["x", '"y z"']},
            ],
        }
    ]
    calls = [call(0, [k, m]) for k in range(2) for m in (1, 0)]
    limits = [
        {"kind": "cost", "op": "<=", "value": -500_000_000},
        {"kind": "epsilon", "op": "<=", "value": 1},
        {"kind": "latency", "op": "<=", "value": 80},
        {"kind": "uses", "of": {"tool": 0, "where": [[0, [0]], [1, [0]]]}, "op": ">=", "value": 1},
        {"kind": "uses", "of": {"tool": 0, "where": []}, "op": "<=", "value": 2},
    ]
    core = read_core(make_core(tools=tools, calls=calls, plan=A, limits=limits))
    assert [c.text for c in core.calls] == [
        'b(k=1,m="y z")', "b(k=1,m=x)", 'b(k=2,m="y z")', "b(k=2,m=x)",
    ]  # fmt: skip
    assert core.limit_texts == (
        "cost<=-0.5", "epsilon<=0.000000001", "latency<=80", "uses(b(k=1,m=x))>=1", "uses(b)<=2",
    )  # fmt: skip
    assert [limit.calls for limit in core.limits[3:]] == [((1, 2),), ((0, 4),)]
    assert [limit.least for limit in core.limits[3:]] == [True, False]


BAD: dict[str, dict[str, Any]] = {
    "another format": {"format": "tcc.kern"},
    "a member too many": {"zzz": 1},
    "a grammar without a name": {"grammar": {"version": "1"}},
    "a name that is none": {"grammar": {"name": "a b", "version": "1"}},
    "a version with a control character": {"grammar": {"name": "a", "version": "1\nVALID"}},
    "a version that turns the writing": {"grammar": {"name": "a", "version": "1\u202e"}},
    "a version that is too long": {"grammar": {"name": "a", "version": "1" * 1025}},
    "tools out of order": {"tools": [{"name": "b", "params": []}, {"name": "a", "params": []}]},
    "a tool twice": {"tools": [{"name": "a", "params": []}] * 2},
    "a tool with in alone": {"tools": [{"name": "a", "params": [], "in": "x"}]},
    "a parameter without values": {
        "tools": [{"name": "a", "params": [{"name": "k", "values": []}]}]
    },
    "a value twice": {"tools": [{"name": "a", "params": [{"name": "k", "values": ["1", "1"]}]}]},
    "a number not in shortest form": {
        "tools": [{"name": "a", "params": [{"name": "k", "values": ["1.0"]}]}]
    },
    "minus zero": {"tools": [{"name": "a", "params": [{"name": "k", "values": ["-0"]}]}]},
    "a string with an escape it does not need": {
        "tools": [{"name": "a", "params": [{"name": "k", "values": ['"\\u0041"']}]}]
    },
    "a binding of no kind": {"tools": [{"name": "a", "params": [], "bind": {"kind": "x"}}]},
    "models that are none": {"tools": [{"name": "a", "params": [], "models": []}]},
    "other quotes": {"tools": [{"name": "a", "params": [], "quotes": "other"}]},
    "calls out of order": {"calls": [[2, [], 0, 0, 0, 0, 0], [0, [], 0, 0, 0, 0, 0]]},
    "a call of no tool": {"calls": [[3, [], 0, 0, 0, 0, 0]]},
    "a call short of a value": {"calls": [[1, [], 0, 0, 0, 0, 0]]},
    "a call with a value too many": {"calls": [[0, [0], 0, 0, 0, 0, 0]]},
    "a call upside down": {"calls": [[0, [], 1, 0, 0, 0, 0]]},
    "a negative price": {"calls": [[0, [], 0, 0, -1, 0, 0]]},
    "a cost beyond 64 bits": {"calls": [[0, [], str(2**63), str(2**63), 0, 0, 0]]},
    "a small number as text": {"calls": [[0, [], "5", "5", 0, 0, 0]]},
    "a truth as a number": {"calls": [[0, [], False, 0, 0, 0, 0]]},
    "patterns out of order": {"patterns": [[[1, 3]], [[0, 1]], [[3, 4]]]},
    "a pattern twice": {"patterns": [[[0, 1]], [[0, 1]], [[3, 4]]]},
    "an empty range": {"patterns": [[[0, 0]], [[1, 3]], [[3, 4]]]},
    "ranges that touch": {"patterns": [[[0, 1], [1, 2]], [[1, 3]], [[3, 4]]]},
    "a range past the calls": {"patterns": [[[0, 1]], [[1, 3]], [[3, 5]]]},
    "a pattern that nothing uses": {"patterns": [[[0, 1]], [[0, 2]], [[1, 3]], [[3, 4]]]},
    "a rule that nothing reaches": {"rules": [["r", ["empty"]]]},
    "rules out of order": {"rules": [["s", ["empty"]], ["r", ["empty"]]]},
    "a start without goals": {"start": "x"},
    "goals without a start": {"goals": ["x"]},
    "goals out of order": {"start": "x", "goals": ["y", "x"]},
    "no goal": {"start": "x", "goals": []},
    "limits out of order": {
        "limits": [
            {"kind": "price", "op": "<=", "value": 5},
            {"kind": "depth", "op": "<=", "value": 3},
        ]
    },
    "a limit twice": {"limits": [{"kind": "depth", "op": "<=", "value": 3}] * 2},
    "a limit from below on price": {"limits": [{"kind": "price", "op": ">=", "value": 5}]},
    "a limit below zero": {"limits": [{"kind": "depth", "op": "<=", "value": -1}]},
    "a limit of no kind": {"limits": [{"kind": "width", "op": "<=", "value": 1}]},
    "uses of no tool": {
        "limits": [{"kind": "uses", "of": {"tool": 3, "where": []}, "op": "<=", "value": 1}]
    },
    "uses with values out of order": {
        "limits": [
            {"kind": "uses", "of": {"tool": 1, "where": [[0, [1, 0]]]}, "op": "<=", "value": 1}
        ]
    },
    "uses with no value": {
        "limits": [{"kind": "uses", "of": {"tool": 1, "where": [[0, []]]}, "op": "<=", "value": 1}]
    },
    "a require of no order": {"requires": [["beside", 0, 1]]},
    "requires out of order": {"requires": [["before", 0, 1], ["after", 0, 1]]},
    "a require of no pattern": {"requires": [["before", 0, 3]]},
    "a forbid of nothing": {"forbids": [["next", []]]},
    "a forbid upside down": {"forbids": [["with", 1, 0]]},
    "forbids out of order": {"forbids": [["with", 0, 1], ["next", [0]]]},
}


@pytest.mark.parametrize("name", sorted(BAD))
def test_refuses(name: str) -> None:
    assert code_of(changed(**BAD[name])) == "C801"


ALL = ["alt", [["call", 0], ["call", 1], ["call", 2]]]
BAD_PLANS: dict[str, Any] = {
    "no expression": [],
    "an unknown form": ["maybe", ALL],
    "a pattern that is not there": ["call", 3],
    "a rule that is not there": ["rule", "r"],
    "a seq of one": ["seq", [ALL]],
    "a seq in a seq": ["seq", [["seq", [ALL, ALL]], ALL]],
    "an alt in an alt": ["alt", [ALL, ["empty"]]],
    "an and in an and": ["and", [["and", [ALL, ALL]], ALL]],
    "a diff of a diff": ["diff", ["diff", ALL, [ALL]], [ALL]],
    "a diff of nothing": ["diff", ALL, []],
    "a repeat upside down": ["repeat", ALL, 2, 1],
    "a repeat below zero": ["repeat", ALL, -1],
    "a repeat with a member too many": ["repeat", ALL, 0, 1, 2],
    "a repeat of a truth": ["repeat", ALL, True],
    "a text": "empty",
    "an object": {"empty": []},
}


@pytest.mark.parametrize("name", sorted(BAD_PLANS))
def test_refuses_as_a_plan(name: str) -> None:
    assert code_of(changed(plan=BAD_PLANS[name])) == "C801"


LEFT_RECURSIVE: dict[str, Any] = {
    "itself": ["rule", "r"],
    "at the head of a seq": ["alt", [A, ["seq", [["rule", "r"], A]]]],
    "past what may be empty": ["alt", [A, ["seq", [["repeat", A, 0], ["rule", "r"], A]]]],
    "on a side of an and": ["alt", [A, ["and", [A, ["seq", [["rule", "r"], A]]]]]],
    "on the far side of a diff": ["diff", A, [["rule", "r"]]],
    "in a repeat": ["alt", [A, ["repeat", ["rule", "r"], 0]]],
    "past a difference that may be empty": [
        "seq", [["diff", ["repeat", A, 0], [A]], ["rule", "r"]],
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(LEFT_RECURSIVE))
def test_refuses_left_recursion(name: str) -> None:
    data = make_core(**letters(1), plan=["rule", "r"], rules={"r": LEFT_RECURSIVE[name]})
    with pytest.raises(Rejected, match="left recursion"):
        read_core(data)


@pytest.mark.parametrize(
    "body",
    [
        ["alt", [["empty"], ["seq", [A, ["rule", "r"], A]]]],
        ["alt", [A, ["seq", [A, ["rule", "r"]]]]],
        # The head is never empty, whatever a difference takes off it.
        ["alt", [A, ["seq", [["diff", ["repeat", A, 0], [["repeat", A, 0, 1]]], ["rule", "r"]]]]],
    ],
)
def test_takes_recursion_that_consumes_a_call(body: Any) -> None:
    assert code_of(make_core(**letters(1), plan=["rule", "r"], rules={"r": body})) == "valid"


@pytest.mark.parametrize(
    ("version", "code"),
    [
        ([1, 1], "C801"),
        ([1, 2], "C801"),  # nothing of it is of 1.2
        ([1, 3], "D102"),
        ([2, 0], "D102"),
        ([0, 9], "D102"),
        ([1, -1], "C801"),
        ([1], "C801"),
    ],
)
def test_declines_other_versions(version: list[int], code: str) -> None:
    assert code_of(changed(version=version)) == code


def test_reads_trees_as_deep_as_json_may_be() -> None:
    data = make_core(**letters(1), plan=A)
    deep = b'["repeat",' * 880 + b'["call",0]' + b",0,2]" * 880
    assert code_of(data.replace(b'["call",0]', deep)) == "valid"


@pytest.mark.parametrize("size", [2000, 200_000])
def test_declines_deeper_trees(size: int) -> None:
    data = example_core().replace(b'"plan":', b'"plan":' + b'["repeat",' * size)
    assert code_of(data) == "D201"


def test_reads_long_chains_of_rules_and_finds_their_cycles() -> None:
    size = 20_000
    rules: dict[str, Any] = {f"r{i:06}": ["rule", f"r{i + 1:06}"] for i in range(size)}
    rules[f"r{size:06}"] = A
    assert code_of(make_core(**letters(1), plan=["rule", "r000000"], rules=rules)) == "valid"
    rules[f"r{size:06}"] = ["seq", [["repeat", A, 0], ["rule", "r000000"]]]
    assert code_of(make_core(**letters(1), plan=["rule", "r000000"], rules=rules)) == "C801"


def test_declines_uses_limits_that_would_take_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_LOOKED_AT", 4000)
    size = 100
    tools = [{"name": "t", "params": [{"name": "k", "values": [str(i) for i in range(size)]}]}]
    calls = sorted((call(0, [i]) for i in range(size)), key=lambda c: f"t(k={c[1][0]})")
    limits = [
        {"kind": "uses", "of": {"tool": 0, "where": []}, "op": "<=", "value": n}
        for n in sorted(range(size), key=str)
    ]
    assert code_of(make_core(tools=tools, calls=calls, plan=A, limits=limits)) == "D201"
    for most, code in ((100, "valid"), (99, "D201")):
        monkeypatch.setattr(reader, "MAX_LOOKED_AT", most)
        one = make_core(tools=tools, calls=calls, plan=A, limits=limits[:1])
        assert code_of(one) == code


def test_declines_a_core_past_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(example_core())
    for most, code in ((size, "valid"), (size - 1, "D201")):
        monkeypatch.setattr("tcc_certs.core.reader.MAX_CORE_BYTES", most)
        assert code_of(example_core()) == code


@pytest.mark.parametrize("data", [b"[]", b'"core"', b"7", b"{}"])
def test_refuses_what_is_no_core_at_all(data: bytes) -> None:
    assert code_of(data) == "C801"


def test_every_change_of_a_byte_is_read_or_refused_with_a_code() -> None:
    rng = random.Random(4)
    data = bytearray(example_core())
    for _ in range(3000):
        at = rng.randrange(len(data))
        old = data[at]
        data[at] = rng.choice(b'"[]{}0129,:aet\\\xff ')
        code_of(bytes(data))
        data[at] = old


def full_core() -> dict[str, Any]:
    """A core with something in every member."""
    tools = [
        {
            "name": "a", "params": [], "in": "x", "out": "y", "doc": "d", "quotes": "same",
            "bind": {"kind": "mcp", "server": "s", "tool": "t"},
            "models": [{"name": "m", "price": 1, "latency_ms": 1, "epsilon": 1, "adapter": "q"}],
        },
        {"name": "b", "params": [{"name": "k", "values": ["1", "x", '"s t"']}],
         "bind": {"kind": "python", "target": "m:f"}},
    ]  # fmt: skip
    some = ["call", {0, 1}]
    data = make_core(
        tools=tools,
        calls=[call(0), call(1, [2]), call(1, [0]), call(1, [1])],
        plan=[
            "alt",
            [["seq", [["and", [some, A]], ["rule", "r"]]], ["diff", A, [some, ["empty"]]]],
        ],
        rules={"r": ["repeat", some, 0, 2]},
        limits=[
            depth(3),
            {"kind": "uses", "of": {"tool": 1, "where": [[0, [0, 2]]]}, "op": ">=", "value": 0},
        ],
        requires=[["after", {0}, {1}], ["before", {1}, {0}]],
        forbids=[["next", [{0}, {1}]], ["with", {0}, {1}]],
        start="x",
        goals=["x", "y"],
    )
    found = decode(data, "core")
    assert isinstance(found, dict)
    return found


def test_every_value_of_another_type_is_refused_with_a_code() -> None:
    core = full_core()
    assert code_of(encode(core)) == "valid"
    strange: tuple[Any, ...] = ([], {}, "", "a", 0, -1, True, 2**53 - 1, "9" * 30, [[]], [0], ["a"])
    done = 0
    todo: list[tuple[Any, Any]] = [(core, key) for key in core]
    while todo:
        parent, key = todo.pop()
        old = parent[key]
        for value in strange:
            parent[key] = value
            done += code_of(encode(core)) != "valid"
        parent[key] = old
        if isinstance(old, dict | list):
            todo += [(old, inner) for inner in (old if isinstance(old, dict) else range(len(old)))]
    assert done > 1000


def test_random_cores_are_their_own_canonical_text() -> None:
    rng = random.Random(1)
    for _ in range(50):
        data, core = random_core(rng)
        assert encode(json.loads(data)) == data
        assert list(core.limit_texts) == sorted(core.limit_texts)


def test_uses_depth_in_the_oracle_are_what_the_reader_derives() -> None:
    core = read_core(make_core(**letters(2), plan=A, limits=[depth(2), uses(1, ">=", 1)]))
    assert core.limit_texts == ("depth<=2", "uses(b)>=1")
    assert core.limits[1].calls == ((1, 2),) and core.limits[1].least
