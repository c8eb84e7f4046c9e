"""Why a sequence is no plan, against every word there is; texts and places of statements."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice, product

import pytest

import tcc
from tcc.library import plan_questions
from tcc_certs.policy.core import Core
from tcc_certs.policy.plans import OneCall, Repeat
from tcc_certs.policy.type_texts import field_text, name_text
from tcc_compiler.names.compile import compile_source
from tcc_runtime.analysis import blame as blaming
from tcc_runtime.analysis.graph import graph_of, nearest_plan
from tcc_runtime.analysis.statements import Part, PlanTexts, WrittenStatement, statements_of
from tcc_runtime.artifact.load import load
from tests.analysis.drawn import artifacts
from tests.oracle.build import build
from tests.oracle.cores import random_core, random_later_core
from tests.oracle.network import without
from tests.oracle.plans import Word, plans as list_plans

MOST_WORDS = 1100
MORE = 3  # calls behind what was asked about that a completion may take


def words_of_each(core: Core, longest: int) -> dict[Part, set[Word]]:
    """For each restriction of a core the words that it allows alone."""
    every = ((0, len(core.calls)),)
    numbers = range(len(core.statements))
    free = without(
        replace(core, plan=Repeat(OneCall(0), 0, None), rules={}, patterns=(every,)), numbers
    )
    free = replace(free, start=None, goals=())
    single: dict[Part, Core] = {
        ("plan", 0): replace(free, plan=core.plan, rules=core.rules, patterns=core.patterns)
    }
    if core.start is not None:
        single["start", 0] = replace(free, start=core.start, goals=core.goals)
    for number in numbers:
        single["statements", number] = replace(free, statements=(core.statements[number],))
    return {part: set(list_plans(one, longest)) for part, one in single.items()}


def smallest_sets(
    met: dict[Part, set[Word]],
    statements: Sequence[WrittenStatement],
    size: int,
    word: Word,
    ends: bool,
    longest: int,
) -> list[tuple[int, ...]]:
    """All smallest sets of statements, in order, by looking at every completion."""
    more = [()] if ends else [
        rest for n in range(longest - len(word) + 1) for rest in product(range(size), repeat=n)
    ]  # fmt: skip
    broken = {
        frozenset(i for i, s in enumerate(statements) if word + rest not in met[s.part])
        for rest in more
    }
    least = min(map(len, broken))
    return sorted(tuple(sorted(one)) for one in broken if len(one) == least)


def test_blame_is_the_smallest_sets_in_the_order_of_the_core() -> None:
    rng = random.Random(7)
    seen: Counter[tuple[int, bool, bool]] = Counter()
    while sum(seen.values()) < 50:
        draw = rng.choice((random_core, random_later_core))
        data, core = draw(rng, 3) if draw is random_core else random_later_core(rng, 3, strict=0)
        size = len(core.calls)
        longest = max(n for n in range(12) if size**n <= MOST_WORDS or n < 2)
        words = list_plans(core, 3)
        if longest < 2 + MORE or not words:
            continue
        artifact = load(build(data, words))
        met = words_of_each(core, longest)
        statements = statements_of(core, {})
        for _ in range(5):
            length = rng.randint(0, longest - MORE)
            word = tuple(rng.randrange(size) for _ in range(length))
            found = tcc.why(artifact, [core.calls[c].text for c in word], every=True)
            if found.allowed:
                assert found.because == () and not found.others
                continue
            assert found.smallest
            ends = found.position == len(word)
            expected = smallest_sets(
                met, statements, size, word[: found.position + 1], ends, longest
            )
            given = [
                tuple(statements.index(replace(s, relation="", remedy="")) for s in chosen)
                for chosen in (found.because, *found.others)
            ]
            assert given == expected, (data, word)
            one = tcc.why(artifact, [core.calls[c].text for c in word])
            assert one.because == found.because and not one.others
            seen[len(found.because), ends, len(expected) > 1] += 1
    assert {size for size, _, _ in seen} >= {1, 2} and any(several for *_, several in seen), seen


def test_position_next_calls_and_nearest_against_the_list() -> None:
    rng = random.Random(2)
    seen: Counter[bool] = Counter()
    for artifact, plans in islice(artifacts(9), 90):
        names = [call.text for call in artifact.core.calls] + ["nothing"]
        begun = {plan[:n] for plan in plans for n in range(len(plan) + 1)}
        for _ in range(6):
            calls = tuple(rng.choice(names) for _ in range(rng.randint(0, 4)))
            if plans and rng.random() < 0.6:
                calls = rng.choice(sorted(plans))[: rng.randint(0, 4)]
            found = tcc.why(artifact, calls)
            seen[found.allowed] += 1
            assert found.allowed == (calls in plans)
            due = next((n for n in range(len(calls)) if calls[: n + 1] not in begun), len(calls))
            assert found.position == due
            head = calls[:due]
            assert found.may_stop == (head in plans)
            assert list(found.allowed_next) == sorted(
                {plan[due] for plan in plans if len(plan) > due and plan[:due] == head}
            )
            least = min((edits(calls, plan) for plan in plans), default=None)
            assert (found.nearest is None) == (least is None)
            if found.nearest is not None:
                assert found.nearest in plans and edits(calls, found.nearest) == least
            started = tcc.why(artifact, calls, prefix=True)
            assert started.allowed == (calls in begun) and started.position == due
            if begun:
                assert started.nearest in begun
                assert edits(calls, started.nearest) == min(edits(calls, b) for b in begun)
    assert min(seen.values()) > 60


def edits(one, other) -> int:
    row = list(range(len(other) + 1))
    for i, a in enumerate(one):
        after = [i + 1]
        for j, b in enumerate(other):
            after.append(min(row[j] + (a != b), row[j + 1] + 1, after[j] + 1))
        row = after
    return row[-1]


def test_the_nearest_is_given_up_past_a_bound() -> None:
    artifact = tcc.compile_text("""grammar g version "1"

tool a
tool b

plan = (a | b){9}
""")
    graph = graph_of(artifact)
    assert nearest_plan(graph, ["a"] * 3) is not None
    assert nearest_plan(graph, ["a"] * 3, most=4) is None


def grammar_of(core: Core) -> str:
    """A grammar of a core, written from its texts."""
    texts = PlanTexts(core)
    lines = [f'grammar {core.name} version "{core.version}"']
    for tool in core.tools:
        signature = "" if tool.takes is None else f" : {tool.takes} -> {tool.gives}"
        fields = [", ".join(map(field_text, side)) for side in (tool.arguments, tool.answers)]
        arguments, answers = fields
        lines.append(
            f"tool {name_text(tool.name)}{f'({arguments})' * bool(arguments)}"
            f"{f' gives ({answers})' * bool(answers)}{signature}{' { strict }' * tool.strict}"
        )
    lines += [f"rule {name} = {texts.expression(body)}" for name, body in core.rules.items()]
    kept = [one for one in statements_of(core, {}) if one.kind != "strict"]
    return "\n".join([*lines, *(one.text for one in kept)])


def test_the_texts_of_restrictions_make_the_same_plans() -> None:
    kinds: Counter[str] = Counter()
    for seed in range(100):
        draw = random_core if seed % 2 else random_later_core
        _, core = draw(random.Random(seed), 4)
        if any("absent" in PlanTexts(core).pattern(at) for at in range(len(core.patterns))):
            continue  # a plan has no pattern for a field that is left out
        states = {state for tool in core.tools for state in (tool.takes, tool.gives) if state}
        if core.start is not None and not states.issuperset((core.start, *core.goals)):
            continue  # a grammar names states of its signatures only
        text = grammar_of(core)
        again = compile_source(text).core
        assert again is not None, text
        assert statements_of(again, {})[1:] == statements_of(core, {})[1:]
        words = [
            [[one.calls[call].text for call in word] for word in list_plans(one, 3)]
            for one in (core, replace(again, calls=core.calls))
        ]
        assert words[0] == words[1], text
        kinds.update(s.kind for s in statements_of(core, {}))
    assert set(kinds) == {
        "plan", "signature", "strict", "total", "limit", "require", "forbid", "owe",
    }  # fmt: skip


def test_every_statement_of_a_grammar_has_its_text_and_place() -> None:
    text = """grammar desk version "1"
tool find(k: 1 | 2) gives (r: ok | bad) : a -> b { strict }
tool pay(k: 1 | 2, m: integer 0 .. 9) : b -> b
plan = find pay{0,3}
start a
goal b
limit depth <= 4
before pay {
  let f = last(find(same k))
  require f.r = ok | bad  because "Found first."
  require no pay(same k)
}
limit sum(pay.m) <= 9
after find owe pay(same k)
forbid pay(k = 2)
"""
    artifact = tcc.compile_text(text)
    found = statements_of(artifact.core, plan_questions.written_of(artifact))
    assert [(s.kind, s.text, s.place and (s.place.line, s.place.column)) for s in found] == [
        ("strict", "strict find", (2, 1)),
        ("plan", "plan = find pay{0,3}", (4, 1)),
        ("signature", "start a\ngoal b", (5, 1)),
        ("total", "limit depth <= 4", (7, 1)),
        ("require", "before pay { let f = last(find(same k))  require f.r = ok | bad }", (10, 3)),
        ("require", "before pay require no pay(same k)", (11, 3)),
        ("limit", "limit sum(pay.m) <= 9", (13, 1)),
        ("owe", "after find owe pay(same k)", (14, 1)),
        ("forbid", "forbid pay(k = 2)", (15, 1)),
    ]
    assert [s.because for s in found if s.because] == ["Found first."]


HEAD = 'grammar g version "1"\n'


def because(text: str, plan: str, **more: bool) -> list[tuple[str, str]]:
    found = tcc.why(tcc.compile_text(HEAD + text), plan, **more)
    assert not found.allowed and found.smallest
    return [(s.kind, s.text) for s in found.because]


def test_a_statement_about_listed_values_is_named() -> None:
    text = """tool a(k: 1 | 2 | 3)
tool b(k: 1 | 2 | 3)
plan = (a | b){1,4}
before b require a(same k)"""
    assert because(text, "a(k=1) b(k=2)") == [("require", "before b require a(same k)")]


def test_a_statement_that_a_gate_decides_is_named_for_what_plans_show_of_it() -> None:
    text = "tool a(m: flag)\ntool b(m: flag)\nplan = (a | b){1,4}\nbefore b require a(same m)"
    assert because(text, "b") == [("require", "before b require a(same m)")]


def test_strict_tools() -> None:
    text = """tool t gives (r: ok | bad) { strict }
tool u
plan = t u | u
before u require no t(r = bad)"""
    found = tcc.why(tcc.compile_text(HEAD + text), "t(r=ok)", prefix=True, every=True)
    texts = [[s.text for s in chosen] for chosen in (found.because, *found.others)]
    assert texts == [["strict t"], ["plan = t u | u"], ["before u require no t(r = bad)"]]
    text = "tool t gives (r: ok | bad) { strict }\ntool u\nplan = t(r = ok) u | u"
    found = tcc.why(tcc.compile_text(HEAD + text), "t(r=ok)", every=True)
    kinds = [[s.kind for s in chosen] for chosen in (found.because, *found.others)]
    assert sorted(kinds) == [["plan"], ["strict"]]


def test_past_the_bound_what_is_said_is_enough_and_not_said_to_be_smallest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    artifact = tcc.compile_text(
        HEAD + "tool a\ntool b\nplan = a b\nlimit depth <= 2\nbefore a require no b since any - b"
    )
    monkeypatch.setattr(blaming, "_STEPS", -(1 << 40))
    found = tcc.why(artifact, "b")
    assert not found.allowed and not found.smallest
    assert [s.kind for s in found.because] == ["plan", "total", "require"]


def test_the_empty_set_of_plans_and_the_empty_plan() -> None:
    rng = random.Random(1)
    while True:
        from tests.analysis.drawn import relaxed

        artifact, plans = relaxed(rng)
        if not plans:
            break
    found = tcc.why(artifact, "")
    assert (found.allowed, found.position, found.may_stop) == (False, 0, False)
    assert (found.allowed_next, found.nearest) == ((), None)


def test_a_statement_ends_with_its_parentheses() -> None:
    text = 'tool a(k: ")" | 1) # )\nplan = ((a(k=")") # (\n)) # )\nlimit depth <= 2'
    assert because(text, "a(k=1)") == [("plan", 'plan = ((a(k=")") # (\n))')]


def test_hundreds_of_statements_are_no_more_than_the_bound() -> None:
    limits = "\n".join(f"limit count(a(k = {n})) <= {n % 3 + 5}" for n in range(400))
    text = f"tool a(k: 0..399)\ntool b\nplan = a{{1,3}} b\nlimit depth <= 4\n{limits}"
    core = compile_source(HEAD + text).core
    assert core is not None
    start = time.process_time()
    number = {call.text: index for index, call in enumerate(core.calls)}
    found = blaming.blame(core, statements_of(core, {}), [number["b"]], ends=False, every=False)
    assert "plan" in [s.kind for s in found.sets[0]]
    assert time.process_time() - start < 60
