"""Sides of a question by themselves, and the calls that they refuse: each for its own reason.

Proofs are written from sessions that both sides were asked about; here a side is asked about calls
that no such session has.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

import tcc
from tcc.library import artifact_of
from tcc_certs.core.model import Core, PolicyMonitor
from tcc_certs.errors import Rejected
from tcc_certs.proof import states as reading
from tcc_certs.proof.atoms import Atom
from tcc_certs.proof.compared import Fact, Part, State
from tcc_certs.proof.moves import System
from tcc_certs.proof.replay import Replay, SessionCall
from tcc_certs.proof.sides import (
    Side,
    chosen_values,
    compared_cores,
    ensure_one_session,
    forgetting,
    min_decimal,
)
from tcc_runtime.exact.certificate import ProvedQuestion

ANYWAY = "plan = any*\nlimit depth <= 3\n"


@cache
def made(text: str, ends: str = ANYWAY, relax: str = "") -> tcc.Artifact:
    relaxed = (relax,) if relax else ()
    return artifact_of(tcc.compile_text(f'grammar g version "1"\n{text}\n{ends}', relax=relaxed))


def sides(mine: str, theirs: str, ends: str = ANYWAY) -> tuple[Side, Side]:
    both = made(mine, ends), made(theirs, ends)
    return ProvedQuestion(kind="implies", text=None, artifacts=both).sides()


def finishable(text: str, ends: str = ANYWAY) -> System:
    artifacts = (made(text, ends),)
    return ProvedQuestion(kind="finishable", text=None, artifacts=artifacts).system()


def call(told: str, **opened: str) -> SessionCall:
    """A call as `tool name=listed ...`, and its open values."""
    tool, *listed = told.split()
    pairs = [tuple(one.split("=")) for one in listed]
    return SessionCall(tool=tool, listed=tuple(pairs), opened=tuple(sorted(opened.items())))  # type: ignore[arg-type]


# What a session has, and a side has not.

SUMMED = "tool a(; p: number 0 .. 9)\n"
OTHER_TYPE = "{} is of another type"
REFUSED = [
    ("tool a\ntool b", "tool a", call("b"), "", "no such tool"),
    ("tool a(p: x | y)", "tool a(p: x | z)", call("a p=y"), "", "no such call"),
    ("tool a(p: x | y)", "tool a(p: x | z)", call("a p=x"), "", ""),
    ("tool a(p: 1 | 2)", "tool a(p: 1 | 3)", call("a p=1"), "", ""),
    ("tool a(; p: text max 4)", "tool a(p: x | y)", call("a", p="x"), "", ""),
    ("tool a(; p: text max 4)", "tool a(p: x | y)", call("a", p="z"), "", "no such call"),
    ("tool a(; p: list of text)", "tool a(p: x | y)", call("a", p='["x"]'), "", "no such call"),
    ("tool a(; p: text max 9)", "tool a", call("a", p="x"), "", OTHER_TYPE.format("p")),
    (
        "tool a(; p: text max 9)", "tool a(; p: text max 4)", call("a", p="x" * 5),
        "", OTHER_TYPE.format("p"),
    ),
    (
        "tool a gives (; p: text max 9)", "tool a gives (; p: text max 4)", call("a", p="x" * 5),
        "", OTHER_TYPE.format("p"),
    ),
    ("tool a(; p: text)", "tool a(; p?: text)", call("a"), "a parameter is left out", ""),
    ("tool a(; p?: text)", "tool a(; p: text)", call("a"), "", "a parameter is left out"),
    ("tool a gives (; p: text)", "tool a", call("a"), "a parameter is left out", ""),
    (
        'tool a(; j: json, x: flag at "/j/x")', 'tool a(; j: json, x?: flag at "/j/y")',
        call("a", j='{"x":true}', x="true"), "", "a parameter is not what stands at its place",
    ),
    (
        'tool a(; j: json, x: flag at "/j/x")', "tool a(; j: json, x: flag)",
        call("a", j='{"x":true}', x="false"), "a parameter is not what stands at its place", "",
    ),
    ("tool a(; p: number)", "tool a(; p: integer)", call("a", p="1"), "", ""),
    ("tool a(; p: number)", "tool a(; p: integer)", call("a", p="1.5"), "", OTHER_TYPE.format("p")),
    (f"{SUMMED}limit sum(a.p) <= 2", f"{SUMMED}limit sum(a.p) <= 1",
     call("a", p="1.5"), "", "a monitor forbids it: limit sum(a.p) <= 1"),
    ("tool a(; p: text)", "tool a(; p: text)\nlimit uses(a) per p <= 0", call("a", p="x"),
     "", "a monitor forbids it: limit uses(a) per p <= 0"),
]  # fmt: skip


@pytest.mark.parametrize(("mine", "theirs", "given", "left", "right"), REFUSED)
def test_a_side_refuses_a_call_for_its_reason(
    mine: str, theirs: str, given: SessionCall, left: str, right: str
) -> None:
    both = sides(mine, theirs)
    assert [Replay(of, both[0]).refuses(given) for of in both] == [left, right]


@pytest.mark.parametrize(
    ("text", "given", "path"),
    [
        ("tool a", {"u": "x"}, "given"),
        ('given u: text max 4\ntool a\nrequire a where session.u = "x"', {}, "given"),
        ("given u: integer\ntool a\nrequire a where session.u = 1", {"u": "1e1"}, "value"),
        ("given u: flag\ntool a\nrequire a where session.u = true", {"u": "yes"}, "value"),
        ('given u: text max 1\ntool a\nrequire a where session.u = "x"', {"u": "xx"}, "value"),
    ],
)
def test_what_a_session_is_given_is_what_its_grammar_asks_for(
    text: str, given: dict[str, str], path: str
) -> None:
    side, _ = sides(text, text)
    with pytest.raises(Rejected) as refusal:
        Replay(side, side, given)
    assert (refusal.value.code.value, refusal.value.path) == ("T301", path)


@pytest.mark.parametrize(
    ("given", "path"),
    [
        (call("c"), "calls"),
        (call("a p=z", q="x"), "p"),
        (call("a r=x", q="x"), "r"),
        (call("a p=", q="x"), "p"),
        (call("a p=x", q="x", r="x"), "r"),
        (call("a p=x", q="12345"), "value"),
        (call("b", n="1e1", f="true"), "value"),
        (call("b", n="1", f="yes"), "value"),
    ],
)
def test_a_call_that_is_none_of_the_left_is_none(given: SessionCall, path: str) -> None:
    text = "tool a(p?: x | y; q: text max 4)\ntool b(; n: number, f: flag)"
    side, _ = sides(text, text)
    with pytest.raises(Rejected) as refusal:
        Replay(side, side).refuses(given)
    assert (refusal.value.code.value, refusal.value.path) == ("T301", path)


def test_where_a_session_is_it_remembers_what_its_statements_do() -> None:
    """What came before is known there, by whatever statement; what was paid is no more."""
    for text, calls, facts in [
        ("require a before b same x", ["a", "a"], 2),
        ("require a before each b same x", ["a", "b"], 0),
        ("require a before each b same x", ["a"], 2),
        ("require a where seen.x = x before b", ["a"], 2),
        ("require a where seen.x = x before b", ["b"], 0),
        ("limit uses(a) per x <= 3\nrequire a before b same x", ["a"], 4),
    ]:
        system = finishable(f"tool a(; x: text max 4)\ntool b(; x: text max 4)\n{text}")
        replay = Replay(system.left, system.left)
        for tool in calls:
            assert (replay.refuses(call(tool, x="v")) == "") == (calls != ["b"])
        _, _, found, _ = replay.state(system)
        assert len(found) == facts, (text, calls)
        tokens = {part for _, _, key, _ in found for part in key}
        assert len(tokens) == min(1, facts)


def test_what_is_added_up_is_no_fact() -> None:
    system = finishable("tool a(; n: integer 0 .. 9)\nlimit sum(a.n) <= 9\nlimit uses(a) <= 2")
    replay = Replay(system.left, system.left)
    assert [replay.refuses(call("a", n=n)) for n in "45"] == ["", ""]
    _, _, found, sums = replay.state(system)
    assert (found, sums) == ((), ((9, 9),))


def test_what_a_session_is_given_is_there_where_it_is_given() -> None:
    system = finishable(
        "given u?: text max 4\ntool a(; x: text max 4)\nrequire a where session.u? = x"
    )
    facts = []
    for given in {}, {"u": "x"}:
        replay = Replay(system.left, system.left, given)
        facts.append(replay.state(system)[2])
    values = [{part for _, _, key, _ in found for part in key} for found in facts]
    assert [len(tokens) for tokens in values] == [0, 1]


def test_spans_of_time_have_no_state() -> None:
    system = finishable("tool a(; x: text)\nlimit uses(a) per x <= 1 within 1 h")
    with pytest.raises(Rejected) as refusal:
        Replay(system.left, system.left).state(system)
    assert (refusal.value.code.value, refusal.value.path) == ("D101", "core")


# Sides as they are.


def test_a_statement_is_a_side_without_plans() -> None:
    artifact = made("tool a\ntool b")
    asked = ProvedQuestion(kind="statement", text="require a before b", artifacts=(artifact,))
    left, right = asked.sides()
    names = [right.core.tools[one.tool].name for one in right.core.calls]
    first, then = names.index("a"), names.index("b")
    assert right.start == ((), ()) and right.accepts(right.start)
    assert right.steps(right.start) == {}  # no plan goes on
    assert right.step(right.start, then) is None
    after = right.step(right.start, first)
    assert after is not None and right.step(after, then) is not None
    assert left.start != right.start
    assert sorted(left.steps(left.start)) == sorted([first, then])
    assert left.step(left.start, len(names)) is None  # no call of its artifact


def test_plans_at_several_states_go_on_with_the_calls_of_each() -> None:
    left, _ = sides("tool a\ntool b", "tool a\ntool b", "plan = a b | b a\n")
    begin = left.steps(left.start)
    both = tuple(sorted({q for place in begin.values() for q in place[0]}))
    assert len(both) == 2
    assert sorted(left.steps((both, ()))) == sorted(begin)
    for place in begin.values():
        ((made_next, after),) = left.steps(place).items()
        assert left.step(place, made_next) == after
        assert left.accepts(after) and not left.accepts(place)
        assert left.steps(place)[made_next] is left.steps(place)[made_next]  # each place once


def test_what_is_left_to_the_run_is_counted_beside_the_plans() -> None:
    artifact = made("tool a\ntool b", "plan = any{2}\nrequire a before b\n", "require")
    side, _ = ProvedQuestion(kind="finishable", text=None, artifacts=(artifact,)).sides()
    assert len(side.statements.items) == 1 and len(side.start[0]) == 1
    ((first, after),) = side.steps(side.start).items()
    assert side.core.tools[side.core.calls[first].tool].name == "a"
    assert after == side.step(side.start, first) and after[1] != ()
    assert sorted(side.steps(after)) == sorted(range(len(side.core.calls)))


def test_what_is_not_covered_has_no_side() -> None:
    with pytest.raises(Rejected) as refusal:
        sides(*["tool a { parallel\n}"] * 2)
    assert (refusal.value.code.value, refusal.value.path) == ("D101", "core")
    assert refusal.value.expected == "fields that are covered"


def test_what_a_caller_chooses_is_without_answers() -> None:
    left, _ = sides(*["tool a(p: x | y) gives (s: ok | bad)"] * 2)
    tool = left.core.tools[0]
    made = chosen_values(tool, (0, 0))
    assert [v is None for v in made] == [one.observed for one in tool.parameters]
    assert sorted(one.observed for one in tool.parameters) == [False, True]


def test_of_several_caps_the_least_is_kept() -> None:
    for one, other in ("10", "9"), ("9", "10"):
        text = f"tool a(; n: number 0 .. 9)\nlimit sum(a.n) <= {one}\nlimit sum(a.n) <= {other}"
        assert dict(sides(text, text)[0].caps) == {("a", "n"): "9"}
        assert min_decimal(one, other) == "9"


# Statements of version 1.2 that a side is looked at without.

SPOKEN = "given u: text max 4\ntool a(; x: text max 4)\n"
ONE, TWO = 'require a where session.u = "x"', 'require a where x = "y"'


def policies(core: Core) -> list[str]:
    return sorted([one.text for one in core.monitors if isinstance(one, PolicyMonitor)])


def core_of(*statements: str, more: str = "limit uses(a) per x <= 1") -> Core:
    return made("\n".join([SPOKEN, *statements, more])).core


def test_a_left_side_may_be_without_its_statements() -> None:
    core = core_of(ONE, TWO)
    bare = forgetting(core)
    assert policies(core) == sorted([ONE, TWO]) and policies(bare) == []
    assert len(bare.monitors) == 1 and (bare.given, bare.lets, bare.looks) == ((), (), ())
    assert compared_cores([core], listed=True, bare=True) == [bare]
    assert compared_cores([core], listed=True, bare=False) == [core]
    assert compared_cores([core], listed=False, bare=True) == [core]


def test_a_right_side_is_without_those_of_the_left_alone() -> None:
    left, right = core_of(ONE), core_of(ONE, TWO)
    same = replace(right, tools=left.tools, calls=left.calls, given=left.given, lets=left.lets,
                   looks=left.looks)  # fmt: skip
    kept = forgetting(same, left)
    assert policies(kept) == [TWO] and len(kept.monitors) == 2
    assert kept.given == left.given  # of those that are left
    assert policies(forgetting(left, left)) == []
    assert forgetting(left, left).given == ()
    assert compared_cores([left, same], listed=True, bare=True) == [forgetting(left), kept]
    assert compared_cores([left, same], listed=False, bare=False) == [left, same]


def test_of_other_tools_a_right_side_is_without_none() -> None:
    """The same text may mean something else there."""
    left = core_of(ONE)
    for other in (
        replace(left, tools=(replace(left.tools[0], name="b"),)),
        replace(left, given=(replace(left.given[0], optional=True),)),
    ):
        assert forgetting(other, left) is other


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ("tool a gives (; s: text max 8)", "tool a gives (; s: text max 9)"),
        ("tool b\ntool a gives (s: ok | bad)", "tool a(s: ok | bad)"),
        (f"given u: text max 4\ntool a\n{ONE}", f"given u: text max 5\ntool a\n{ONE}"),
        ("tool a", f"given u: text max 5\ntool a\n{ONE}"),
    ],
)
def test_sides_that_are_not_alike_have_no_session(mine: str, theirs: str) -> None:
    with pytest.raises(Rejected) as refusal:
        ensure_one_session(*sides(mine, theirs))
    assert (refusal.value.code.value, refusal.value.path) == ("D101", "core")


def test_a_tool_that_the_other_side_has_not_may_be_whatever_it_is() -> None:
    ensure_one_session(*sides("tool a\ntool b gives (; s: text)", "tool a"))
    ensure_one_session(*sides("tool a", "tool a\ntool b gives (; s: text)"))


# States, as lines have them.

OPEN = """tool a(k: p | q; x: text max 4) gives (s: ok | bad)
tool b(k: p | q; x: text max 4, n: integer 0 .. 9)
require a before b same k, x
limit sum(b.n) <= 9
"""
LATER = f'{OPEN}require a where seen.x = x, seen.s = "ok" before b\n'


def read(system: System, value: Any) -> State:
    part = Part(tracked=None, rule=None, uses=frozenset(range(len(system.left.core.monitors))))
    return reading.StateReader().state(value, "line 2", system, part)


def line_of(system: System, *calls: SessionCall) -> Any:
    """Where a session is, as a line."""
    replay = Replay(system.left, system.left)
    assert [replay.refuses(one) for one in calls] == [""] * len(calls)
    return json.loads(json.dumps(replay.state(system)))


def tuples(value: Any) -> Any:
    return tuple(map(tuples, value)) if isinstance(value, list) else value


CALLS = (call("a k=p s=ok", x="v"), call("b k=p", x="v", n="4"))


@pytest.mark.parametrize("text", [OPEN, LATER])
def test_a_state_is_read_as_it_is_written(text: str) -> None:
    system = finishable(text)
    for made in (), CALLS[:1], CALLS:
        line = line_of(system, *made)
        assert read(system, line) == tuples(line)
        assert bool(line[2]) is bool(made) and line[3] == [[4, 4] if made == CALLS else [0, 0]]


def test_a_state_has_the_tally_of_a_question() -> None:
    asked = ProvedQuestion(kind="statement", text="limit uses(a) <= 3", artifacts=(made("tool a"),))
    system = asked.system()
    line = [[[0], []], [[], [[0, 1]]], [], []]
    assert read(system, line) == tuples(line)
    for wrong in True, "1", None:
        with pytest.raises(Rejected) as refusal:
            read(system, [[[0], []], [[], [[0, wrong]]], [], []])
        assert (refusal.value.code.value, refusal.value.path) == ("T101", "line 2")


def at(*place: int, to: Any) -> Callable[[Any], None]:
    def change(line: Any) -> None:
        for one in place[:-1]:
            line = line[one]
        line[place[-1]] = to

    return change


def twice(line: Any) -> None:
    """The same fact with another number."""
    line[2].insert(1, [*line[2][0][:3], 2])


FORGED: list[tuple[str, Callable[[Any], None]]] = [
    ("no sums", at(3, to=[])),
    ("a place that is none", at(0, 0, 0, to=99)),
    ("a tally of nothing", at(0, 1, to=[[0, 1]])),
    ("a fact twice", twice),
    ("facts that fall", lambda line: line[2].reverse()),
    ("a listed part that is a token", at(2, 0, 2, 0, to=0)),
    ("an open part that is a text", at(2, 0, 2, 1, to="v")),
    ("an open part below 0", at(2, 0, 2, 1, to=-1)),
    ("an open part that is true", at(2, 0, 2, 1, to=True)),
    ("a part that is nothing", at(2, 0, 2, 1, to=None)),
    ("a part less", lambda line: line[2][0][2].pop()),
    ("a number below 0", at(2, 0, 3, to=-1)),
    ("a number that is true", at(2, 0, 3, to=True)),
    ("a number that is a text", at(2, 0, 3, to="1")),
    ("no such monitor", at(2, 0, 1, to=99)),
    ("no such side", at(2, 0, 0, to=99)),
]
FORGED_LATER: list[tuple[str, Callable[[Any], None]]] = [
    ("a call that is not remembered", at(2, -1, 1, to=99)),
    ("a part less of a call", lambda line: line[2][-1][2].pop()),
    ("a part of a call below 0", at(2, -1, 2, 0, to=-1)),
    ("a part of a call that is nothing", at(2, -1, 2, 0, to=None)),
    ("a listed part of a call that is a token", at(2, -1, 2, 0, to=0)),
    ("an open part of a call that is a text", at(2, -1, 2, 1, to="v")),
    ("an open part of a call that is true", at(2, -1, 2, 1, to=True)),
    ("a listed part of a call that is a list", at(2, -1, 2, 0, to=[])),
    ("a part of a call that is no value", at(2, -1, 2, 0, to="nobody")),
]


@pytest.mark.parametrize(("what", "change"), [*FORGED, *FORGED_LATER])
def test_a_line_that_is_no_state_is_refused(what: str, change: Callable[[Any], None]) -> None:
    for text in OPEN, LATER:
        if text == OPEN and (what, change) in FORGED_LATER:
            continue
        system = finishable(text)
        line = line_of(system, CALLS[0])
        change(line)
        with pytest.raises(Rejected) as refusal:
            read(system, line)
        assert refusal.value.code.value == "T101"
        assert refusal.value.path in ("line 2", "line 2 sums", "line 2 parts")


@pytest.mark.parametrize("value", [True, False, -1, "1", 1.0, None, [1]])
def test_what_is_no_whole_number_is_none(value: Any) -> None:
    with pytest.raises(Rejected) as refusal:
        reading.whole(value, "here")
    assert (refusal.value.code.value, refusal.value.path) == ("T101", "here")
    assert [reading.whole(one, "here") for one in (0, 1)] == [0, 1]


def atom(only: str | None = None) -> Atom:
    return Atom(sort="text", types=frozenset(), only=only, least=1, most=None)


FACTS: tuple[Fact, ...] = ((0, 0, (0, "p"), 1), (0, 0, (2, "p"), 3))
WITH_ONE: tuple[Fact, ...] = ((0, 0, (1,), 1),)


@pytest.mark.parametrize(
    ("facts", "row", "held", "code"),
    [
        (FACTS, [0], False, "T204"),
        (FACTS, [0, 2, 4], False, "T204"),
        (FACTS, [2, 2], False, "T204"),
        (FACTS, [1, 2], False, "T205"),
        (FACTS, [4, 3], False, "T205"),
        (FACTS, [2, 0], True, "T204"),
        (WITH_ONE, [3], False, "T204"),
        (WITH_ONE, [3], True, "T204"),
    ],
)
def test_tokens_have_no_other_names_than_they_may(
    facts: tuple[Fact, ...], row: list[int], held: bool, code: str
) -> None:
    """Each of its atom, each another, those of constants and of keys that are held their own."""
    renamed = reading.Renamed([atom(), atom("x")])
    with pytest.raises(Rejected) as refusal:
        renamed.put(facts, row, (), "line 3", held=held)
    assert (refusal.value.code.value, refusal.value.path) == (code, "line 3")
    assert not renamed


def test_facts_are_renamed_and_kept_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    renamed = reading.Renamed([atom(), atom("x")])
    due = ((0, 0, (0, "p"), 3), (0, 0, (2, "p"), 1))
    assert renamed.put(FACTS, [2, 0], due, "line 3", held=False) is due
    assert renamed.put(FACTS, [0, 2], (), "line 3", held=True) == FACTS
    assert renamed.put(WITH_ONE, [1], (), "line 3", held=False) == WITH_ONE
    assert len(renamed) == 3 and renamed[FACTS, (2, 0)] is due
    monkeypatch.setattr(reading, "MAX_RENAMED", 6)
    few = reading.Renamed([atom()])
    for number in range(20):
        few.put(((0, 0, (number,), 1),), [0], (), "line 3", held=False)
        assert len(few) == number % 3 + 1  # each is two
        assert (((0, 0, (number,), 1),), (0,)) in few
