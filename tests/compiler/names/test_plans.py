"""Expressions of plans: how operators bind, and the sets that patterns stand for."""

from __future__ import annotations

import pytest

from tcc_certs.formats.codec import encode
from tcc_certs.policy.reader import read_core
from tests.compiler.grammars import HEAD, TOOLS, codes, core, plan


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b", ["seq", ["a", "b"]]),
        ("a b | c", ["alt", [["seq", ["a", "b"]], "c1 c2 c3"]]),
        ("a | b - c", ["diff", ["alt", ["a", "b"]], ["c1 c2 c3"]]),
        ("a - b & c", ["and", [["diff", "a", ["b"]], "c1 c2 c3"]]),
        ("a - b - c", ["diff", "a", ["b", "c1 c2 c3"]]),
        ("(a - b) - c", ["diff", "a", ["b", "c1 c2 c3"]]),
        ("a - (b - c)", ["diff", "a", [["diff", "b", ["c1 c2 c3"]]]]),
        ("a (b (a b))", ["seq", ["a", "b", "a", "b"]]),
        ("(a | b) | (a | b)", ["alt", ["a", "b", "a", "b"]]),
        ("(a & b) & a", ["and", ["a", "b", "a"]]),
        ("((((a))))", "a"),
        ("a b?", ["seq", ["a", ["repeat", "b", 0, 1]]]),
        ("a*+", ["repeat", ["repeat", "a", 0], 1]),
        ("a{2} b{0,3}", ["seq", [["repeat", "a", 2, 2], ["repeat", "b", 0, 3]]]),
        ("a{1,}", ["repeat", "a", 1]),
        ("()", ["empty"]),
        ("a ()", ["seq", ["a", ["empty"]]]),
        ("a (b | c)", ["seq", ["a", ["alt", ["b", "c1 c2 c3"]]]]),
        ("c (a)", ["seq", ["c1 c2 c3", "a"]]),
        ("c(k=1|3)", "c1 c3"),
        ("c # note\n ( # note\n k = 2.0)", "c2"),
        ("any", "a b c1 c2 c3"),
    ],
)  # fmt: skip
def test_an_expression_is_read_as(text: str, expected: object) -> None:
    assert plan(text) == expected


def test_without_a_plan_every_sequence_is_one() -> None:
    found = core(TOOLS)
    assert found["plan"] == ["repeat", ["call", 0], 0]
    assert found["patterns"] == [[[0, 5]]]


@pytest.mark.parametrize(
    ("let", "expected"),
    [
        ("a | b", ["alt", ["a", "b"]]),
        ("any - c", ["diff", "a b c1 c2 c3", ["c1 c2 c3"]]),
        ("any - a - b", ["diff", "a b c1 c2 c3", ["a", "b"]]),
    ],
)
def test_a_let_of_calls_is_its_set(let: str, expected: object) -> None:
    found = core(f"{TOOLS}let x = {let}\nlet y = x\nplan = y\n")
    names = ["a", "b", "c1", "c2", "c3"]

    def named(node: object) -> object:
        if isinstance(node, list) and node[0] == "call":
            ranges = found["patterns"][node[1]]
            return " ".join(name for low, high in ranges for name in names[low:high])
        return [named(part) for part in node] if isinstance(node, list) else node

    assert named(found["plan"]) == expected


def test_patterns_are_those_of_the_plan_and_the_rules_that_it_reaches() -> None:
    found = core(TOOLS + "rule r = s? a\nrule s = b r?\nrule t = c\nplan = r\naccept t\n")
    assert [name for name, _ in found["rules"]] == ["r", "s"]
    assert found["patterns"] == [[[0, 1]], [[1, 2]]]
    read_core(encode(found))


def test_start_and_goals() -> None:
    found = core(HEAD + "tool a : x -> y\ntool b\nstart x\ngoal y | x\n")
    assert [found[key] for key in ("start", "goals")] == ["x", ["x", "y"]]
    assert "in" not in found["tools"][1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plan = a{2,1}", [("TCC311", 5, 10)]),
        ("plan = a{1.5}", [("TCC311", 5, 10)]),
        ("plan = a{10001}", [("TCC311", 5, 10)]),
        ("plan = c(k=4)", [("TCC205", 5, 12)]),
        ("plan = c(k=1|1)", [("TCC211", 5, 14)]),
        ("plan = c(k=1,k=2)", [("TCC211", 5, 14)]),
        ("plan = c(j=1)", [("TCC204", 5, 10)]),
        ("plan = c(k=*)", [("TCC205", 5, 12)]),
        ("plan = d", [("TCC202", 5, 8)]),
        ("plan = d(k=1)", [("TCC203", 5, 8)]),
        ("rule r = a\nplan = r(k=1)", [("TCC203", 6, 8)]),
        ("rule r = r a", [("TCC207", 5, 6)]),
        ("rule r = a? s\nrule s = () r | b\nplan = r", [("TCC207", 5, 6)]),
        ("rule r = (s & a) - b\nrule s = a (a - r)", []),
        ("rule r = (s & a) - b\nrule s = (a - r)? - r", [("TCC207", 5, 6)]),
    ],
)
def test_a_mistake_in_a_plan_is_at(text: str, expected: object) -> None:
    assert codes(f"{TOOLS}{text}\n") == expected
