"""Cores with listed answers and strict tools as automata, against the list of all plans."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tcc_certs.policy.core import Core
from tcc_certs.policy.nodes import Limit, Number, Statement, Total, Word as Name
from tcc_certs.policy.places import parts_of
from tcc_certs.policy.plans import OneCall, Repeat, Seq, members
from tcc_certs.policy.reader import read_core
from tcc_compiler.automata.answers import Unanswered, keep_strict, unanswered
from tcc_compiler.automata.constraint.apply import constrain
from tcc_compiler.automata.constraint.statements import Control
from tcc_compiler.automata.letters import Letters, partition
from tcc_compiler.automata.regular.explore import explore
from tcc_compiler.automata.table import Machine, Table
from tcc_compiler.automata.witness import cuts
from tcc_compiler.options import Options
from tcc_compiler.resources import CompileRefused, Guard
from tests.campaigns.blocks import blocks
from tests.oracle.cores import (
    call as call_json,
    make_core,
    random_later_core,
    shaped_calls,
    shaped_tool,
)
from tests.oracle.plans import Word, meets_all, plans, strict_part
from tests.oracle.strict import sisters, without_strict

MOST = 3


def automaton(core: Core) -> tuple[Machine | Table, Letters]:
    """The automaton before strict tools are looked at; the part of the pipeline up to there."""
    guard, letters = Guard(Options()), partition(core, parts_of(core))
    return constrain(core, letters, explore(core, letters, guard), guard), letters


def listed(table: Machine | Table, letters: Letters, most: int = MOST) -> frozenset[Word]:
    """The words over calls, up to a length."""
    found = set()
    start = table.start
    todo: list[tuple[int, Word]] = [(start, ())]
    while todo:
        q, word = todo.pop()
        if table.accept[q]:
            found.add(word)
        if len(word) == most:
            continue
        row = table.row(q) if isinstance(table, Table) else table.edges[q]
        todo += [(p, (*word, call)) for letter, p in row for call in letters.calls[letter]]
    return frozenset(found)


def residuals(words: frozenset[Word]) -> int:
    """How many states the smallest automaton has."""
    prefixes = {word[:at] for word in words for at in range(len(word) + 1)}
    return len({frozenset(w[len(p) :] for w in words if w[: len(p)] == p) for p in prefixes})


@pytest.mark.parametrize("block", blocks(1, 40))
def test_the_automaton_of_a_random_core_is_the_list_of_its_plans(block: int) -> None:
    full = empty = cut = 0
    for seed in range(50 * block, 50 * block + 50):
        _, core = random_later_core(random.Random(seed), MOST)
        due = frozenset(plans(without_strict(core), MOST))
        try:
            table, letters = automaton(core)
        except CompileRefused as refusal:
            assert refusal.code in ("TCC402", "TCC401")
            assert refusal.code == "TCC401" or not due
            empty += 1
            continue
        if isinstance(table, Machine) or len(table.levels) > 10:
            continue
        assert listed(table, letters, 9) == due
        assert table.states == residuals(due)
        everything = listed(table, letters, 9)
        left = strict_part(core, everything)
        try:
            kept = keep_strict(core, letters, table, Guard(Options()))
        except CompileRefused as refusal:
            assert (refusal.code, left) == ("TCC414", frozenset())
            empty += 1
            continue
        assert isinstance(kept, Table)
        assert listed(kept, letters, 9) == left, seed
        assert kept.states == residuals(left)
        full += 1
        cut += left != everything
    assert full > 10
    assert cut > 1
    assert empty > 1


def test_each_statement_alone_is_what_listing_says() -> None:
    narrower = 0
    for seed in range(50):
        rng = random.Random(seed)
        _, core = random_later_core(rng, MOST, strict=0.0, statements=0.7)
        deep = [one for one in core.statements if isinstance(one, Total) and one.what == "depth"]
        others = [one for one in core.statements if one not in deep]
        bare = replace(core, statements=tuple(deep))
        for one in others[:2]:
            some = replace(core, statements=(*deep, one))
            due = frozenset(plans(some, MOST))
            narrower += len(due) < len(plans(bare, MOST))
            try:
                table, letters = automaton(some)
            except CompileRefused as refusal:
                assert (refusal.code, due) == ("TCC402", frozenset())
                continue
            assert listed(table, letters) == due
    assert narrower > 6


def free(names: set[str], strict: set[str] = frozenset(), *statements: Statement) -> Core:
    """All sequences over the calls of some tools, under some statements."""
    tools = [shaped_tool(name, strict=name in strict) for name in sorted(names)]
    calls = shaped_calls(tools)
    every = ["repeat", ["call", set(range(len(calls)))], 0]
    data = make_core(tools=tools, calls=[call_json(*one) for one in calls], plan=every)
    return replace(read_core(data), statements=statements)


def at_most(tool: str, field: str, bound: str) -> Limit:
    return Limit(of=Name(tool), field=field, most=Number(bound))


def test_a_sum_over_cycles_is_what_listing_says() -> None:
    for seed in range(20):
        rng = random.Random(seed)
        core = free({"b-b", "opt"}, set(), at_most("b-b", "n", str(rng.randrange(0, 5))))
        table, letters = automaton(core)
        found = listed(table, letters, 4)
        assert isinstance(table, Machine)  # b-b(n=0) adds nothing
        assert found == {word for word in words(core, 4) if meets_all(core, word)}


def words(core: Core, most: int) -> set[Word]:
    found: set[Word] = {()}
    for _ in range(most):
        found |= {(*word, call) for word in found for call in range(len(core.calls))}
    return found


def test_calls_that_add_the_same_have_one_letter() -> None:
    core = free({"a", "b-b", "see"})
    assert len(partition(core, ()).calls) == 1
    limited = replace(core, statements=(at_most("b-b", "n", "1"),))
    letters = partition(limited, parts_of(limited))
    texts = [{core.calls[call].text for call in group} for group in letters.calls]
    same = {'"b-b"(n=0)', "a", "see(w=1)", "see(w=3)"}
    assert texts == [same, {'"b-b"(n=1)'}, {'"b-b"(n=2.5)'}]


def test_letters_of_strict_tools_have_equal_answers() -> None:
    both = free({"a", "run"}, {"run"})
    assert [len(group) for group in partition(both, ()).calls] == [1, 4]
    named = replace(both, plan=Seq((OneCall(0), OneCall(1))), patterns=(((0, 5),), ((1, 2),)))
    # run(k=u,r=f) is in a pattern of its own: its sister run(k=u,r=p) is no longer like k=v.
    letters = partition(named, ())
    texts = [[named.calls[call].text for call in group] for group in letters.calls]
    assert texts == [
        ["a"], ["run(k=u,r=f)"], ["run(k=u,r=p)"], ["run(k=v,r=f)", "run(k=v,r=p)"]
    ]  # fmt: skip
    assert len(partition(without_strict(named), ()).calls) == 2


def test_sisters_in_one_letter_and_in_several() -> None:
    # r=f alone may be followed by a; plans end there.
    core = free({"a", "run"}, {"run"})
    fails = ((1, 2), (3, 4))
    assert [core.calls[c].text for c in members(fails)] == ["run(k=u,r=f)", "run(k=v,r=f)"]
    patterns = (((0, 1),), ((1, 5),), fails)
    for pattern, left in ((1, 5), (2, 1)):
        plan = Seq((Repeat(OneCall(pattern), 0, 1), OneCall(0)))
        some = replace(core, patterns=patterns, plan=plan)
        table, letters = automaton(some)
        assert isinstance(table, Table)
        kept = keep_strict(some, letters, table, Guard(Options()))
        assert len(listed(kept, letters)) == left


def test_an_answer_that_the_core_has_no_call_for_cuts() -> None:
    core = free({"a", "see"}, {"see"})
    plan = Seq((Repeat(OneCall(0), 0, 1),))
    whole = replace(core, plan=plan)
    table, letters = automaton(whole)
    assert len(listed(keep_strict(whole, letters, table, Guard(Options())), letters)) == 4
    fewer = replace(whole, calls=core.calls[:2], patterns=(((0, 2),),))
    table, letters = automaton(fewer)
    assert len(listed(keep_strict(fewer, letters, table, Guard(Options())), letters)) == 2


def test_a_question_with_all_answers_stays_beside_one_without() -> None:
    # All calls are alike, but run(k=v,r=p) is missing from the core: k=u stays, k=v goes.
    core = free({"run"}, {"run"})
    fewer = replace(core, calls=core.calls[:3], patterns=(((0, 3),),), plan=OneCall(0))
    assert [call.text for call in fewer.calls][2:] == ["run(k=v,r=f)"]
    table, letters = automaton(fewer)
    assert isinstance(table, Table)
    kept = keep_strict(fewer, letters, table, Guard(Options()))
    assert isinstance(kept, Table)
    assert listed(kept, letters) == {(0,), (1,)}


def test_nothing_left_names_the_nearest_answer_that_leads_nowhere() -> None:
    core = free({"a", "run"}, {"run"})
    patterns = (((0, 1),), ((1, 2),))
    plan = Seq((OneCall(0), OneCall(1)))
    some = replace(core, patterns=patterns, plan=plan)
    table, letters = automaton(some)
    assert isinstance(table, Table)
    with pytest.raises(CompileRefused) as caught:
        keep_strict(some, letters, table, Guard(Options()))
    refusal = caught.value
    assert (refusal.code, refusal.place) == ("TCC414", "tool run")
    assert refusal.message == (
        "there is no plan that goes on after every answer of a strict tool: after `a`, "
        "`run(k=u,r=f)` leads on and `run(k=u,r=p)` does not"
    )
    at_once = replace(some, plan=OneCall(1))
    table, letters = automaton(at_once)
    with pytest.raises(CompileRefused, match="at the start, `run"):
        keep_strict(at_once, letters, table, Guard(Options()))


@pytest.mark.parametrize("strict", [False, True])
def test_questions_left_open_are_those_that_listing_finds(strict: bool) -> None:
    seen = 0
    for seed in range(200, 320):
        _, core = random_later_core(random.Random(seed), MOST)
        try:
            table, letters = automaton(core)
        except CompileRefused:
            continue
        if isinstance(table, Machine):
            continue
        everything = listed(table, letters, 9)
        prefixes = {word[:at] for word in everything for at in range(len(word) + 1)}
        open_at: dict[frozenset[Word], dict[frozenset[int], Word]] = {}
        for prefix in sorted(prefixes, key=len):
            rest = frozenset(w[len(prefix) :] for w in everything if w[: len(prefix)] == prefix)
            for call in {word[0] for word in rest if word}:
                tool = core.tools[core.calls[call].tool]
                group = frozenset(sisters(core, call))
                missing = {c for c in group if (*prefix, c) not in prefixes}
                if missing and (tool.strict or not strict):
                    open_at.setdefault(rest, {}).setdefault(group, prefix)
        found = list(unanswered(core, letters, table, strict=strict))
        due = sum(len(groups) for groups in open_at.values())
        assert len(found) == due
        lengths = [len(item.way) for item in found]
        assert lengths == sorted(lengths)
        for item in found:
            check_open(core, item, prefixes)
            rest = frozenset(
                w[len(item.way) :] for w in everything if w[: len(item.way)] == item.way
            )
            group = frozenset(sisters(core, item.answered[0]))
            assert len(open_at[rest][group]) == len(item.way)
        seen += due
    assert seen > 20


def check_open(core: Core, item: Unanswered, prefixes: set[Word]) -> None:
    assert item.answered
    assert item.missing or item.others
    assert item.others == (-1 in sisters(core, item.answered[0]))
    assert all((*item.way, call) in prefixes for call in item.answered)
    assert not any((*item.way, call) in prefixes for call in item.missing)


def test_after_the_cut_no_strict_question_is_open() -> None:
    for seed in range(60):
        _, core = random_later_core(random.Random(seed), MOST, strict=1.0)
        try:
            table, letters = automaton(core)
            if isinstance(table, Machine):
                continue
            kept = keep_strict(core, letters, table, Guard(Options()))
        except CompileRefused:
            continue
        assert isinstance(kept, Table)
        assert list(unanswered(core, letters, kept)) == []


def test_one_automaton_of_all_statements_says_the_same() -> None:
    """The product that recursion and examples use."""
    for seed in range(60):
        _, core = random_later_core(random.Random(seed), MOST, statements=0.7)
        letters = partition(core, parts_of(core))
        control = Control(core, letters, limits=True)
        for word in words(core, 2):
            state: int | None = 0
            for call in word:
                state = None if state is None else control.step(state, letters.letter[call])
            met = state is not None and control.accepts(state)
            assert met == meets_all(core, word)


def test_infinitely_many_plans_name_the_sum_that_would_cut_them() -> None:
    core = free({"a", "b-b", "opt"})
    number = {call.text: at for at, call in enumerate(core.calls)}
    apart = replace(partition(core, ()), calls=tuple([(n,) for n in range(len(core.calls))]))
    one, none = number['"b-b"(n=1)'], number['"b-b"(n=0)']
    assert cuts(core, apart, [one, number["opt"]])[-1] == "`limit sum(`b-b`.n) <= X`"
    assert "sum" not in "".join(cuts(core, apart, [none, number["opt"], number["a"]]))
