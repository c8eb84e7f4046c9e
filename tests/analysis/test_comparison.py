"""What changed between two artifacts, against the two lists of plans."""

from __future__ import annotations

import time
from collections import Counter
from itertools import islice, pairwise
from typing import Any

import pytest

import tcc
from tcc_certs.errors import Code, Rejected
from tcc_runtime.analysis import comparison
from tcc_runtime.analysis.comparison import compare
from tcc_runtime.analysis.difference import only_in
from tcc_runtime.analysis.gate_changes import joined
from tcc_runtime.analysis.graph import Unfolded, graph_of
from tcc_runtime.artifact import load
from tcc_runtime.artifact.load import Artifact
from tests.analysis.drawn import Plan, artifacts, cost_of, relaxed

HEAD = 'grammar g version "1"\n'


def test_pairs_against_their_lists() -> None:
    drawn = list(islice(artifacts(5), 200))
    seen = Counter()
    for number, (old, before) in enumerate(drawn):
        for new, after in (drawn[number - 1], drawn[number - 3]):
            found = compare(old, new)
            only_new, only_old = after - before, before - after
            assert (found.added.plans, found.removed.plans) == (len(only_new), len(only_old))
            assert found.common == len(before & after) and found.counts == "exact"
            witnesses(new, only_new, found.added)
            witnesses(old, only_old, found.removed)
            due = ["equal", "narrower", "wider", "incomparable"][
                2 * bool(only_new) + bool(only_old)
            ]
            assert found.plans == due
            calls = [{call for plan in plans for call in plan} for plans in (before, after)]
            assert found.calls is not None
            assert found.calls.added == tuple(sorted(calls[1] - calls[0]))
            assert found.calls.removed == tuple(sorted(calls[0] - calls[1]))
            amounts(old, new, calls[0] & calls[1], found.calls.amounts)
            seen[due] += 1
    assert sum(seen.values()) == 400 and min(seen.values()) > 4, seen


def witnesses(artifact: Artifact, plans: set[Plan], side) -> None:
    if not plans:
        assert side.shortest is None and side.cheapest is None
        return
    assert side.shortest == min(plans, key=lambda plan: (len(plan), plan))
    least = min(cost_of(artifact, plan) for plan in plans)
    assert side.cheapest == min(plan for plan in plans if cost_of(artifact, plan) == least)


def amounts(old: Artifact, new: Artifact, both: set[str], found) -> None:
    rows = [
        {c.text: (c.cost_low, c.cost_high, c.price, c.latency, c.epsilon) for c in a.core.calls}
        for a in (old, new)
    ]
    assert [a.call for a in found] == sorted(c for c in both if rows[0][c] != rows[1][c])


def test_the_graph_of_bounds_is_that_of_the_true_plans() -> None:
    kinds = Counter()
    for artifact, plans in islice(artifacts(6), 90):
        graph = graph_of(artifact)
        kinds[type(graph).__name__] += 1
        assert graph.root is None if not plans else graph.plans(graph.root) == len(plans)
        if graph.root is not None:
            assert graph.fewest(graph.root) == min(map(len, plans))
            assert graph.rank(graph.root) == max(map(len, plans))
            costs = {cost_of(artifact, plan) for plan in plans}
            assert graph.cost_to_go(graph.root) == min(costs)
    assert min(kinds["Stored"], kinds["Unfolded"]) >= 30


def test_what_is_too_large_is_declined_or_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    import random

    rng = random.Random(3)
    artifact, plans = next(found for found in iter(lambda: relaxed(rng), None) if len(found[1]) > 3)
    with pytest.raises(Rejected) as refused:
        Unfolded(artifact, 2)
    assert refused.value.code is Code.LIMIT
    graph = graph_of(artifact)
    with pytest.raises(Rejected) as refused:
        only_in(graph, graph, 2)
    assert refused.value.code is Code.LIMIT

    monkeypatch.setattr(comparison, "only_in", lambda one, other: only_in(one, other, 2))
    found = compare(artifact, artifact)
    assert (found.verdict, found.counts, found.calls) == (None, "upper", None)
    assert found.added.plans >= len(plans) and found.removed.plans >= len(plans)
    assert not found.breaks()


def test_pairs_in_arrays_add_up_to_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large artifacts are compared a rank at a time: the same numbers, and the same plans."""
    wide, taken = Counter[bool](), 0
    found = list(islice(artifacts(77), 60))
    for (old, _), (new, _) in pairwise(found):
        one, other = graph_of(old), graph_of(new)
        due = only_in(one, other)
        with monkeypatch.context() as many:
            many.setattr(load, "MANY_STATES", 1)
            many.setattr(load, "WIDE", 0)
            old.kept.pop("fewest_calls", None)
            assert only_in(one, other) == due
            both = old.is_wide and new.is_wide
        wide[both] += 1
        taken += both and due.plans > 0
    assert min(wide.values()) > 5
    assert taken > 5


@pytest.mark.parametrize("purpose", ["run", "gate"])
def test_more_than_64_bits_of_plans_add_up_in_arrays(
    purpose: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """grammar many version "1"

tool a { cost -0.25 }
tool b { cost 3 }
tool c

plan = any{0,70}
"""
    less = text.replace("70", "69")
    one, other = (graph_of(tcc.compile_text(each, purpose=purpose)) for each in (text, less))
    due = [only_in(one, other), only_in(other, one)]
    assert due[0].plans > 1 << 100
    monkeypatch.setattr(load, "MANY_STATES", 1)
    monkeypatch.setattr(load, "WIDE", 0)
    assert [only_in(one, other), only_in(other, one)] == due
    with pytest.raises(Rejected) as refused:
        only_in(one, other, 20)
    assert refused.value.code is Code.LIMIT


def test_more_plans_than_can_be_listed_take_as_long_as_compiling() -> None:
    text = HEAD + "tool a(k: 1..9)\ntool b\ntool c\nplan = (a | b | c)*\nlimit depth <= {}"
    start = time.process_time()
    old = tcc.compile_text(
        text.format(40) + "\nlimit count(b) <= 20\nbefore c require no b since any - b"
    )
    new = tcc.compile_text(
        text.format(40) + "\nlimit count(b) <= 21\nbefore c require no b since any - b"
    )
    compiled = time.process_time() - start
    found = compare(old, new)
    assert time.process_time() - start < 3 * compiled + 1
    total_old, total_new = (a.plans(a.root) for a in (old, new))
    assert found.added.plans == total_new - total_old > 10**20 and found.removed.plans == 0
    assert found.added.shortest is not None and found.added.shortest.count("b") == 21


TOOLS = "tool a(k: 1 | 2, m: {})\ntool b(m: text max 10)\nplan = a b?"
TYPES = [
    ("text max 10", "text max 9", "narrower"),
    ("text max 10", "text max 10", None),
    ("text max 10", 'text max 10 ~ "x+"', "narrower"),
    ('text max 10 ~ "x+"', 'text max 10 ~ "x*"', "incomparable"),
    ("text min 2 max 10", "text max 9", "incomparable"),
    ("integer 1 .. 5", "integer 0 .. 5", "wider"),
    ("number 0 .. 5", "integer 0.0 .. 5", "narrower"),
    ("number 0.5 .. 5", "integer 0 .. 5", "incomparable"),
    ("integer", "integer 0 .. 5", "narrower"),
    ("integer 0 .. 5", "number", "wider"),
    ("flag", "text max 10", "incomparable"),
    ("json max 9", "json max 10", "wider"),
    *[
        (one, one, None)
        for one in ("list of text max 9", "list max 3 of (id: text)", "time", "date")
    ],
    ("list max 3 of text max 9", "list max 2 of text max 9", "narrower"),
    ("list of flag", "list min 1 distinct of flag", "narrower"),
    ("list of text max 9", "list of text max 10", "wider"),
    ("list distinct of flag", "list max 2 of flag", "incomparable"),
    ("list of (id: text)", "list of (id: text max 9)", "incomparable"),
    ("list of flag", "flag", "incomparable"),
    ("time", "time utc", "wider"),
    ("time utc", 'time "+01:00"', "incomparable"),
    ("time", "date", "incomparable"),
    ('text "a" | "b"', 'text "a"', "narrower"),
    ('text "a"', "text max 9", "incomparable"),
    ("flag or null", "flag", "narrower"),
    ("list of flag", "list of (flag or null)", "wider"),
    ("object (a: flag)", "object (a: flag, b?: flag)", "incomparable"),
]


@pytest.mark.parametrize(("old", "new", "sense"), TYPES)
def test_types_of_open_parameters(old: str, new: str, sense: str | None) -> None:
    before, after = (tcc.compile_text(HEAD + TOOLS.format(t)) for t in (old, new))
    found = tcc.diff(before, after)
    assert found.plans == "equal"
    assert [change.sense for change in found.fields] == ([] if sense is None else [sense])
    assert found.breaks() is (sense in ("wider", "incomparable"))
    assert found.breaks("narrower") is (sense in ("narrower", "incomparable"))


ADDED = [
    ("", ", m: flag", "incomparable"),
    ("", ", m?: flag", "wider"),
    (", m?: flag", "", "narrower"),
    (", m: flag", ", m?: flag", "wider"),
    (", m?: flag or null", ", m?: flag", "narrower"),
    (", m?: flag or null", ", m: flag", "narrower"),
    (', j: json, m: flag at "/j/m"', ', j: json, m: flag at "/j/n"', "incomparable"),
]


@pytest.mark.parametrize(("old", "new", "sense"), ADDED)
def test_open_arguments_come_and_go(old: str, new: str, sense: str) -> None:
    text = HEAD + "tool a(k: 1 | 2{})\nplan = a"
    found = tcc.diff(*(tcc.compile_text(text.format(more)) for more in (old, new)))
    assert (found.plans, [c.sense for c in found.fields]) == ("equal", [sense])


def test_an_argument_that_becomes_an_answer_breaks_both_ways() -> None:
    texts = ("tool a(k: 1 | 2)\nplan = a", "tool a gives (k: 1 | 2)\nplan = a")
    found = tcc.diff(*(tcc.compile_text(HEAD + text) for text in texts))
    assert (found.plans, found.breaks(), found.breaks("narrower")) == ("equal", True, True)
    assert [(c.of, c.name, c.old, c.new) for c in found.fields] == [
        ("field", "a.k", "argument", "answer")
    ]


ANSWERS = [
    ("gives (s: text)", "gives (s: text max 9)", [("answers", "incomparable")]),
    ("gives (s: text)", "", [("answers", "incomparable")]),
    ("gives (s: x | y)", "gives (s: x | y | *)", [("values", "other")]),
    ("gives (s: x | y)", 'gives (s: x | y at "/t")', [("at", "incomparable")]),
    ("gives (s: text, t: text)", "gives (t: text, s: text)", [("answers", "other")]),
]


@pytest.mark.parametrize(("old", "new", "changes"), ANSWERS)
def test_answers(old: str, new: str, changes: list[tuple[str, str]]) -> None:
    text = HEAD + "tool a(k: 1 | 2) {}\nplan = a"
    found = tcc.diff(*(tcc.compile_text(text.format(more)) for more in (old, new)))
    assert [(change.of, change.sense) for change in found.fields] == changes


STATEMENTS = [
    ("", "limit sum(a.m) <= 5", "narrower"),
    ("limit sum(a.m) <= 5", "", "wider"),
    ("limit sum(a.m) <= 5", "limit sum(a.m) <= 6", "wider"),
    ("limit sum(a.m) <= 5", "limit sum(a.m) <= 4.5", "narrower"),
    ("limit sum(a.m) <= 5", "limit sum(a.m) <= 5\nlimit sum(a.m) <= 6", "narrower"),
    ("limit count(a) per m <= 2 in session", "limit count(a) per m <= 1 in session", "narrower"),
    ("limit count(a) per m <= 2 in session", "limit count(a) per m <= m in session",
     "incomparable"),
    ("before b require no a(same m)", "", "wider"),
    ("before b require no a(same m)", "before b require no a(m > this.m)", "incomparable"),
    ("let s = a(m > 3)\nbefore b require no s", "let s = a(m > 4)\nbefore b require no s",
     "incomparable"),
    ("let s = a(m > 3)", "", "other"),
    ("before b require no a(same m)", 'before b require no a(same m) because "Once."', "other"),
    ("limit sum(a.m) <= 5\nlimit sum(b.m) <= 5", "limit sum(b.m) <= 5\nlimit sum(a.m) <= 5",
     "other"),
]  # fmt: skip


# Changes whose effect on sessions the texts of the statements do not show.
ON_SESSIONS = {
    "limit sum(a.m) <= 5\nlimit sum(a.m) <= 6": "equal",
    "let s = a(m > 4)\nbefore b require no s": "wider",
    # No plan has more than two calls of a.
    "limit count(a) per m <= m in session": "narrower",
}


@pytest.mark.parametrize(("old", "new", "sense"), STATEMENTS)
def test_statements_that_a_gate_decides(old: str, new: str, sense: str) -> None:
    text = HEAD + "tool a(m: integer 0 .. 9)\ntool b(m: integer 0 .. 9)\nplan = a a? b?\n{}"
    found = tcc.diff(*(tcc.compile_text(text.format(more)) for more in (old, new)))
    assert found.plans == "equal"
    assert joined(change.sense for change in found.statements) == sense
    sense = ON_SESSIONS.get(new, sense)
    assert found.breaks() is (sense in ("wider", "incomparable"))
    assert found.breaks("narrower") is (sense in ("narrower", "incomparable"))


def test_plans_show_what_a_statement_of_the_automaton_changes() -> None:
    text = HEAD + "tool a(k: 1 | 2)\ntool b\nplan = a a? b?\nbefore b require a(k = {})"
    found = tcc.diff(*(tcc.compile_text(text.format(value)) for value in (1, 2)))
    assert (found.plans, found.verdict) == ("incomparable", "incomparable")
    assert [(change.old, change.new, change.sense) for change in found.statements] == [
        ("before b require a(k = 1)", None, "other"),
        (None, "before b require a(k = 2)", "other"),
    ]
    assert [one.text for one in found.because_added] == ["before b require a(k = 1)"]
    assert [one.text for one in found.because_removed] == ["before b require a(k = 2)"]


GIVEN = [
    ("given who: text", "given who: text max 9", "narrower"),
    ("given who: text", "given who?: text", "wider"),
    ("", "given who: text", "incomparable"),
    ("given who from a.w", "given who from b.w", "incomparable"),
    ("given one?: flag, two?: flag", "given two?: flag, one?: flag", "other"),
]


@pytest.mark.parametrize(("old", "new", "sense"), GIVEN)
def test_attributes_of_sessions(old: str, new: str, sense: str) -> None:
    text = HEAD + "tool a gives (w: text)\ntool b gives (w: text)\nplan = a b?\n{}"
    found = tcc.diff(*(tcc.compile_text(text.format(more)) for more in (old, new)))
    assert [(change.of, change.sense) for change in found.fields] == [("given", sense)]
