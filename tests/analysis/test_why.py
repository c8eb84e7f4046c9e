"""Why a sequence is no plan, against every word there is; texts and places of statements."""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import replace
from itertools import islice, product

import pytest

import tcc
from tcc.library import plan_questions
from tcc_certs.core.model import Core, OneCall, Repeat
from tcc_compiler.frontend import read_grammar_text
from tcc_runtime.analysis import blame as blaming
from tcc_runtime.analysis.graph import graph_of, nearest_plan
from tcc_runtime.analysis.statements import statements_of
from tests.analysis.drawn import artifacts
from tests.oracle.plans import plans as list_plans
from tests.property.grammars import random_grammar

MOST_WORDS = 1100
MORE = 3  # calls behind what was asked about that a completion may take


def statements_met(core: Core, longest: int) -> dict[tuple[str, int], set[tuple[int, ...]]]:
    """For each part of a core the words that it by itself allows."""
    size = len(core.patterns)
    free = replace(
        core, plan=Repeat(OneCall(size), 0, None), rules={}, limits=(), requires=(), forbids=(),
        start=None, goals=(), patterns=(*core.patterns, ((0, len(core.calls)),)),
    )  # fmt: skip
    single = {("plan", 0): replace(free, plan=core.plan, rules=core.rules)}
    if core.start is not None:
        single["start", 0] = replace(free, start=core.start, goals=core.goals)
    for name in ("limits", "requires", "forbids"):
        for i, statement in enumerate(getattr(core, name)):
            single[name, i] = replace(free, **{name: (statement,)})
    return {part: set(list_plans(one, longest)) for part, one in single.items()}


def smallest_sets(met, statements, size: int, word, ends: bool, longest: int):
    """All smallest sets of statements, in order, by looking at every completion."""
    more = [()] if ends else [
        rest for n in range(longest - len(word) + 1) for rest in product(range(size), repeat=n)
    ]  # fmt: skip
    broken = {
        frozenset(
            i for i, s in enumerate(statements) if any(word + rest not in met[p] for p in s.parts)
        )
        for rest in more
    }
    least = min(map(len, broken))
    return sorted(tuple(sorted(one)) for one in broken if len(one) == least)


def test_blame_is_the_smallest_sets_in_the_order_of_the_text() -> None:
    rng = random.Random(7)
    seen: Counter[object] = Counter()
    seed = 0
    while sum(seen.values()) < 60:
        seed += 1
        text = random_grammar(seed, tools=2, parameters=1, values=2, limit=3, recursion=0.1)
        front = read_grammar_text(text)
        if front.core is None:
            continue
        try:
            artifact = tcc.compile_text(text)
        except tcc.CompileError:
            continue
        core = artifact.core
        size = len(core.calls)
        longest = max(n for n in range(12) if size**n <= MOST_WORDS or n < 2)
        if longest < 2 + MORE:
            continue
        met = statements_met(core, longest)
        statements = statements_of(core, plan_questions.written_of(artifact))
        places = [(s.place.line, s.place.column) for s in statements if s.place]
        assert places == sorted(places)
        for _ in range(5):
            length = rng.randint(0, longest - MORE)
            word = tuple(rng.randrange(size) for _ in range(length))
            found = tcc.why(artifact, [core.calls[c].text for c in word], every=True)
            if found.allowed:
                assert found.because == () and not found.others
                continue
            assert found.smallest
            ends = found.position == len(word)
            due = smallest_sets(
                met, statements, size, word[: found.position + 1], ends, longest
            )  # fmt: skip
            given = [
                tuple(statements.index(s) for s in chosen)
                for chosen in (found.because, *found.others)
            ]
            assert given == due, (text, word)
            one = tcc.why(artifact, [core.calls[c].text for c in word])
            assert one.because == found.because and not one.others
            seen[len(found.because), ends, len(due) > 1] += 1
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


def test_the_texts_of_statements_make_the_same_core() -> None:
    kinds: Counter[str] = Counter()
    for seed in range(100):
        text = random_grammar(seed)
        front = read_grammar_text(text)
        if front.core is None:
            continue
        lines = text.splitlines()
        kept = [line for line in lines if line.split()[0] in ("grammar", "tool", "rule")]
        from tcc_certs.core.reader import read_core

        statements = statements_of(read_core(front.core), {})
        again = read_grammar_text("\n".join([*kept, *(s.text for s in statements)]))
        assert again.core == front.core, (text, [s.text for s in statements])
        kinds.update(s.kind for s in statements)
    assert set(kinds) == {"plan", "signature", "limit", "require", "forbid"}, kinds


def test_every_statement_of_a_grammar_has_its_text_and_place() -> None:
    compiled = 0
    for seed in range(60):
        text = random_grammar(seed)
        try:
            artifact = tcc.compile_text(text)
        except tcc.CompileError:
            continue
        lines = text.splitlines()
        for statement in statements_of(artifact.core, plan_questions.written_of(artifact)):
            if statement.place is None:
                assert statement.kind == "plan" and "plan =" not in text
                continue
            first = statement.text.partition("\n")[0]
            assert lines[statement.place.line - 1][statement.place.column - 1 :] == first
            compiled += 1
    assert compiled > 100


HEAD = 'grammar g version "1"\n'


def because(text: str, plan: str, **more: bool) -> list[tuple[str, str]]:
    found = tcc.why(tcc.compile_text(HEAD + text), plan, **more)
    assert not found.allowed and found.smallest
    return [(s.kind, s.text) for s in found.because]


def test_a_statement_that_the_core_has_in_parts_is_one() -> None:
    text = "tool a(k: 1 | 2 | 3)\ntool b(k: 1 | 2 | 3)\nplan = (a | b){1,4}\nbefore b require a(same k)"
    assert because(text, "a(k=1) b(k=2)") == [("require", "before b require a(same k)")]


def test_what_a_monitor_leaves_behind_is_named_as_the_monitor() -> None:
    text = "tool a(m: flag)\ntool b(m: flag)\nplan = (a | b){1,4}\nbefore b require a(same m)"
    assert because(text, "b") == [("monitor", "before b require a(same m)")]


def test_strict_tools() -> None:
    text = "tool t gives (r: ok | bad) { strict }\ntool u\nplan = t u | u\nlimit count(t(r = bad)) <= 0"
    found = tcc.why(tcc.compile_text(HEAD + text), "t(r=ok)", every=True)
    texts = [[s.text for s in chosen] for chosen in (found.because, *found.others)]
    assert texts == [["strict t"], ["limit count(t(r = bad)) <= 0"]]
    assert because(text, "t(r=bad) u") == [("limit", "limit count(t(r = bad)) <= 0")]
    text = "tool t gives (r: ok | bad) { strict }\ntool u\nplan = t(r=ok) u | u"
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
    assert [s.kind for s in found.because] == ["plan", "limit", "forbid"]


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


def test_thousands_of_statements_are_no_more_than_the_bound() -> None:
    limits = "\n".join(f"limit uses(a(k={n})) <= {n % 3 + 5}" for n in range(1500))
    text = f"tool a(k: 0..1499)\ntool b\nplan = a{{1,3}} b\nlimit depth <= 4\n{limits}"
    front = read_grammar_text(HEAD + text)
    assert front.core is not None
    from tcc_certs.core.reader import read_core

    core = read_core(front.core)
    start = time.process_time()
    number = {call.text: index for index, call in enumerate(core.calls)}
    found = blaming.blame(core, statements_of(core, {}), [number["b"]], ends=False, every=False)
    assert "plan" in [s.kind for s in found.sets[0]]
    assert time.process_time() - start < 60
