"""What exact questions remember of a session, beside the definition of its statements.

All sessions of a few calls over a few values are played twice: to the histories of a question, call
by call, and to the definition, which has the whole session (:mod:`tests.oracle_policies`).  Each
call that may come next is refused by a side, and each call owed, exactly where the definition says
so; of what is remembered is kept what docs/spec/proof.md, section 1, says, and no more.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any, TypeAlias

import pytest

import tcc
from tcc.library import artifact_of
from tcc_certs.core.model import Core, PolicyMonitor
from tcc_certs.proof import histories
from tcc_certs.proof.fields import Uncovered
from tcc_certs.proof.histories import CallParts, Histories, Past
from tcc_certs.proof.lists import Elements
from tcc_certs.proof.rules import MAX_LEFT_OUT
from tcc_certs.proof.spoken import Attribute
from tcc_certs.values.places import constant
from tests.oracle_policies import cases as c, language as l
from tests.oracle_policies.core import policies_of
from tests.oracle_policies.meaning import Made, Session, is_owed, refuses
from tests.oracle_policies.writer import text_of

VALUES = ("p", "q", "r")  # by their tokens
OTHER = "none of these"
NO_LISTS = Elements(
    fields=frozenset(),
    kinds={},
    domains={},
    full=frozenset(),
    constants=frozenset(),
    atom_of=lambda token: token,
    token=lambda atom, number: number,
    has=lambda atom, many: True,
)


@dataclass(frozen=True, kw_only=True)
class Step:
    """A call with its answer."""

    tool: str
    arguments: tuple[tuple[str, str], ...] = ()
    answer: tuple[tuple[str, str], ...] = ()


def _step(tool: str, *answer: str, **arguments: str) -> Step:
    told = tuple(zip("st", answer, strict=False))
    return Step(tool=tool, arguments=tuple(arguments.items()), answer=told)


FIND = c.tool(
    "find", c.text("x"), gives=[c.listed("s", "ok", "p", rest=True), c.listed("t", "p", "q")]
)
PAY = c.tool("pay", c.text("x"), c.text("y", optional=True))
END = c.tool("end", c.listed("k", "u", "v"), c.text("y", optional=True))
GIVEN = (c.text("who"), c.text("old", optional=True, null=True))
LETS = (l.Let(name="told", sources=(("find", "t"), ("pay", "y"))),)
STEPS = (
    _step("find", "ok", "q", x="p"),
    _step("find", OTHER, "p", x="q"),
    _step("pay", x="p"),
    _step("pay", x="q", y="p"),
    _step("end", k="u", y="q"),
)
FIND_CALLS, PAY_CALLS, END_CALLS = (c.calls(name) for name in ("find", "pay", "end"))
BASE = c.policy(END, FIND, PAY, *GIVEN, *LETS)


@cache
def _core() -> Core:
    return artifact_of(tcc.compile_text(text_of(BASE))).core


def _side(statements: Sequence[l.Statement]) -> Core:
    _, found = policies_of(replace(BASE, statements=tuple(statements)))
    return replace(_core(), monitors=tuple([PolicyMonitor(policy=p, text="") for _, p in found]))


def _made(step: Step) -> CallParts:
    table = BASE.tool(step.tool)
    assert table is not None
    parts = []
    for name, value in (*step.arguments, *step.answer):
        part: Any = "*" if value == OTHER else value
        parts.append((name, part if table.field(name).listed else VALUES.index(value)))
    return CallParts(
        tool=step.tool, parts=tuple(parts), answers=frozenset(table.names(answer=True))
    )


@dataclass(kw_only=True)
class Played:
    """A session as both have it: of each call in the line the time at which it was made."""

    past: Past
    session: Session
    stamps: tuple[int, ...] = ()
    now: int = 0

    def asked(self, step: Step, now: int) -> Made:
        """A call that comes next, by the definition."""
        call = self.session.asked(step.tool, dict(step.arguments), now)
        assert isinstance(call, Made)
        return call


class Beside:
    """Two sides with their statements."""

    def __init__(self, mine: Sequence[l.Statement], theirs: Sequence[l.Statement]) -> None:
        self.sides = mine, theirs
        cores = [_side(mine), _side(theirs)]
        self.histories = Histories(cores, self._state, self._matches, NO_LISTS)
        self.uses = frozenset(range(len(mine)))

    @staticmethod
    def _state(token: Any) -> Any:
        return constant(VALUES[token])

    @staticmethod
    def _matches(pattern: str, value: Any) -> bool:
        raise AssertionError(pattern)  # of texts that are known nobody asks

    def begun(self, given: dict[str, str]) -> Played:
        """A session before its first call."""
        of = self.histories
        places = {of.attributes.index(Attribute(name=name)): VALUES.index(value)
                  for name, value in given.items()
                  if Attribute(name=name) in of.attributes}  # fmt: skip
        return Played(past=of.begun(places), session=Session(grammar=BASE, given=given))

    def waited(self, at: Played, now: int) -> Played:
        """The same session later: time went on as one of the ways says, and as it may surely."""
        of = self.histories
        ways = list(of.advances(at.past))
        old, most = of.ages(at.past), len(of.windows)
        due = [
            ages
            for ages in product(range(most + 1), repeat=len(old))
            if all(age >= before for age, before in zip(ages, old, strict=True))
            and list(ages) == sorted(ages, reverse=True)
        ]
        assert [of.ages(past) for _, past in ways] == sorted(due)
        for sure, past in ways:
            assert sure == (of.ages(past) == old or set(of.ages(past)) == {most})
            assert of.aged(at.past, of.ages(past)) == past
        ages = tuple([sum(now - stamp > span for span in of.windows) for stamp in at.stamps])
        (past,) = [past for _, past in ways if of.ages(past) == ages]
        return replace(at, past=past, now=now)

    def compare(self, at: Played, steps: Sequence[Step]) -> Iterator[Step]:
        """What is refused and owed; the calls that neither side refuses."""
        of, history = self.histories, at.session.made
        assert of.whole(of.flat(at.past)) == at.past
        for number, slot, key, value in of.flat(at.past):
            names = of.fields(number, slot, value)
            assert names is not None and len(names) == len(key)
        for side, statements in enumerate(self.sides):
            owed = [one for one in statements if isinstance(one, l.Owed) and is_owed(one, history)]
            assert of.owes(at.past, self.uses, side) == bool(owed), (history, owed)
            assert of.owes(at.past, frozenset(), side) == (side == 1 and bool(owed))
        for step in steps:
            call, made = at.asked(step, at.now), _made(step)
            found = []
            for side, statements in enumerate(self.sides):
                due = [one for one in statements if refuses(one, call, history)]
                found.append(of.refused(at.past, made, self.uses, side))
                assert found[-1] == bool(due), (step, at.now, side, history)
            assert not of.refused(at.past, made, frozenset(), 0)
            assert of.refused(at.past, made, frozenset(), 1) == found[1]
            if not any(found):
                yield step

    def after(self, at: Played, step: Step) -> Played:
        """The session with a call more."""
        made, session = _made(step), copy.copy(at.session)
        session.made = [copy.copy(one) for one in session.made]
        session._attributes = dict(session._attributes)
        number = session.call(step.tool, dict(step.arguments), at.now)
        session.outcome(number, "done", dict(step.answer))
        sources = self.histories.sources(at.past, made)
        return replace(
            at,
            past=self.histories.after(at.past, made),
            session=session,
            stamps=tuple([at.now if place < 0 else at.stamps[place] for place in sources]),
        )

    def play(
        self, depth: int, gaps: Sequence[int], steps: Sequence[Step], given: dict[str, str]
    ) -> int:
        """Every session; how many there are."""
        level, many = [self.begun(given)], 0
        for length in range(depth + 1):
            many += len(level)
            later = []
            for at in level:
                for gap in gaps if at.session.made else (0,):
                    waited = self.waited(at, at.now + gap)
                    allowed = list(self.compare(waited, steps))
                    later += [self.after(waited, one) for one in allowed if length < depth]
            level = later
        return many


X = ("x", c.own("x"))
WITHOUT: list[l.Statement] = [
    c.require(c.alt(FIND_CALLS, same=[X]), before=PAY_CALLS),
    c.require(c.alt(FIND_CALLS, c.is_(c.seen("s"), "=", "ok")), before=PAY_CALLS),
    c.require(c.alt(FIND_CALLS, c.is_(c.seen("s"), "!=", "ok")), before=PAY_CALLS),
    c.require(c.alt(FIND_CALLS, c.is_(c.seen("s"), "=", c.own("x"))), before=PAY_CALLS),
    c.forbid(c.alt(FIND_CALLS, c.is_(c.seen("s"), "=", c.own("x"))), before=PAY_CALLS),
    c.require(c.alt(FIND_CALLS, least=2), before=PAY_CALLS),
    c.require(c.alt(FIND_CALLS, same=[X], last=True), before=PAY_CALLS),
    c.require(c.alt(c.calls("find", s="ok"), last=True), before=PAY_CALLS),
    c.require(c.alt(FIND_CALLS, same=[X]), before=PAY_CALLS, each=True),
    c.require(c.alt(FIND_CALLS, same=[X]), c.alt(END_CALLS), before=PAY_CALLS),
    c.require(c.alt(None, c.is_(c.own("y"), "=", c.own("x"), maybe=True)), before=PAY_CALLS),
    c.require(c.alt(None, c.is_(c.own("y"), "!=", c.own("x"))), before=PAY_CALLS),
    c.forbid(c.alt(PAY_CALLS, same=[X]), before=PAY_CALLS),
    c.forbid(c.alt(PAY_CALLS, same=[("y", c.own("x"))]), before=PAY_CALLS),
    c.forbid(c.alt(FIND_CALLS, same=[X]), before=PAY_CALLS, unless=(c.alt(END_CALLS),)),
    c.forbid(c.alt(FIND_CALLS, same=[X], last=True), before=PAY_CALLS),
    c.forbid(c.alt(FIND_CALLS, c.is_(c.seen("s"), "=", "ok"), last=True), before=PAY_CALLS),
    c.forbid(c.alt(c.calls("end", k="u"), least=2), before=FIND_CALLS),
    c.forbid(c.alt(l.Any_(), least=3), before=END_CALLS),
    l.Apart(one=FIND_CALLS, other=PAY_CALLS, same=(("x", c.own("y")),)),
    l.Apart(one=c.calls("find", s="ok"), other=END_CALLS),
    l.Apart(one=END_CALLS, other=c.calls("pay")),
    l.Owed(calls=PAY_CALLS, after=FIND_CALLS, same=(X,)),
    l.Owed(calls=c.calls("find", s="ok"), after=PAY_CALLS, same=(("x", c.own("y")),)),
    l.Owed(calls=END_CALLS, after=l.Any_()),
    l.Uses(calls=PAY_CALLS, most=1, per=(c.own("x"),)),
    l.Uses(calls=l.Any_(), most=2),
    c.forbid(c.alt(c.calls("find", s="p")), before=PAY_CALLS),
    l.Uses(calls=c.calls("find", s=("ok", "p")), most=1),
    l.Uses(calls=PAY_CALLS, most=1, where=(c.is_(c.own("y"), "!=", "q"),)),
]
SESSION: list[l.Statement] = [
    c.require(c.alt(None, c.is_(c.own("x"), "=", c.session("who"))), before=PAY_CALLS),
    c.require(c.alt(None, c.is_(c.session("old"), "=", "p")), before=PAY_CALLS),
    c.require(c.alt(None, c.is_(c.session("old"), "=", "p", maybe=True)), before=PAY_CALLS),
    c.forbid(c.alt(FIND_CALLS, same=[("x", c.session("old"))]), before=END_CALLS),
    c.require(c.alt(None, c.is_(c.session("told"), "=", c.own("x"))), before=PAY_CALLS),
    c.require(c.alt(None, c.is_(c.session("told"), "!=", c.own("x"))), before=PAY_CALLS),
    l.Uses(calls=l.Any_(), most=2, per=(c.session("told"),)),
    l.Uses(calls=PAY_CALLS, most=1, where=(c.is_(c.session("told"), "=", c.own("x")),)),
    l.Owed(calls=PAY_CALLS, after=FIND_CALLS, same=(("x", c.session("told")),)),
    l.Apart(one=PAY_CALLS, other=FIND_CALLS, same=(("x", c.session("told")),)),
]
TIMED: list[l.Statement] = [
    c.require(c.alt(FIND_CALLS, within=5), before=PAY_CALLS),
    c.require(c.alt(FIND_CALLS, same=[X], within=3), before=PAY_CALLS),
    c.require(c.alt(FIND_CALLS, least=2, within=5), before=PAY_CALLS),
    c.require(c.alt(FIND_CALLS, within=3), c.alt(END_CALLS), before=PAY_CALLS),
    c.require(c.alt(FIND_CALLS, within=3), before=PAY_CALLS, each=True),
    l.Uses(calls=PAY_CALLS, most=1, within=5),
    c.forbid(c.alt(FIND_CALLS, last=True, within=5), before=PAY_CALLS),
    c.forbid(c.alt(FIND_CALLS, within=3), before=PAY_CALLS, unless=(c.alt(END_CALLS),)),
    l.Uses(calls=l.Any_(), most=2, within=3),
    c.require(c.alt(END_CALLS, within=5), before=PAY_CALLS),
    l.Uses(calls=l.Any_(), most=2, per=(c.session("told"),), within=5),
    c.require(c.alt(FIND_CALLS, within=3), before=END_CALLS),
]


Pair: TypeAlias = "tuple[l.Statement, l.Statement]"


def _pairs(rows: Sequence[l.Statement]) -> Any:
    pairs = list(zip(rows[::2], rows[1::2], strict=True))
    return pytest.mark.parametrize("pair", pairs, ids=map(str, range(len(pairs))))


@_pairs(WITHOUT)
def test_a_statement_decides_of_what_is_remembered_as_of_the_session(pair: Pair) -> None:
    assert Beside([pair[0]], [pair[1]]).play(3, (0,), STEPS, {"who": "p"}) > 20


@_pairs(SESSION)
def test_what_a_session_is_given_and_learns_is_what_the_definition_says(pair: Pair) -> None:
    sides = Beside([pair[0]], [pair[1]])
    for given in ({"who": "p"}, {"who": "q", "old": "p"}, {"who": "p", "old": "q"}):
        sides.play(3, (0,), STEPS, given)


@_pairs(TIMED)
def test_calls_have_ages_by_all_spans_of_both_sides(pair: Pair) -> None:
    sides = Beside([pair[0], WITHOUT[0]], [pair[1]])
    steps = [STEPS[0], STEPS[2], STEPS[4]]
    assert sides.play(3, (1, 3, 4), steps, {"who": "p"}) > 9


KEPT = [
    (c.require(c.alt(FIND_CALLS, same=[X]), before=PAY_CALLS), "ppp", "p"),
    (c.require(c.alt(FIND_CALLS, same=[X]), before=PAY_CALLS), "pqp", "pq"),
    (c.require(c.alt(FIND_CALLS, same=[X], last=True), before=PAY_CALLS), "pqp", "qp"),
    (c.require(c.alt(FIND_CALLS, same=[X], least=2), before=PAY_CALLS), "ppp", "pp"),
    (c.require(c.alt(FIND_CALLS, same=[X]), before=PAY_CALLS, each=True), "ppp", "ppp"),
    (c.forbid(c.alt(FIND_CALLS, same=[X]), before=PAY_CALLS, unless=(c.alt(END_CALLS),)),
     "pqpe", "qpe"),
    (c.forbid(c.alt(FIND_CALLS, same=[X], last=True), before=PAY_CALLS), "pqp", "qp"),
    (l.Apart(one=FIND_CALLS, other=PAY_CALLS, same=(X,)), "pp", "p"),
    (l.Uses(calls=FIND_CALLS, most=9, per=(c.own("x"),)), "pqp", "ppq"),
    (l.Uses(calls=PAY_CALLS, most=9), "pqp", ""),
]  # fmt: skip


FOUND = {"p": STEPS[0], "q": _step("find", "ok", "q", x="q"), "e": STEPS[4]}


@pytest.mark.parametrize(("one", "made", "due"), KEPT)
def test_calls_stay_as_often_as_a_statement_tells_them_apart(
    one: l.Statement, made: str, due: str
) -> None:
    """The latest ones, by their order where that matters, and of each the fields that it names."""
    of = Beside([one], []).histories
    past = of.begun({})
    for name in made:
        past = of.after(past, _made(FOUND[name]))
    (group,) = past
    assert [VALUES[key[0]] if key else "e" for *_, key in group] == list(due)
    assert all(len(key) < 2 for *_, key in group)


def test_calls_stay_in_the_line_as_long_as_the_last_span_of_what_remembers_them() -> None:
    short = l.Uses(calls=FIND_CALLS, most=9, within=3)
    long = l.Uses(calls=PAY_CALLS, most=9, within=5)
    of = Beside([short], [long]).histories
    past = of.begun({})
    for step in (STEPS[0], STEPS[2]):
        past = of.after(past, _made(step))
    assert (of.windows, of.ages(past)) == ([3, 5], (0, 0))
    for ages, due in (((0, 0), (0, 0)), ((1, 0), (0,)), ((1, 1), (1,)), ((2, 2), ())):
        assert of.ages(of.after(of.aged(past, ages), _made(STEPS[4]))) == due
    # What one statement tells apart twice, and another any number of times.
    twice = c.require(c.alt(FIND_CALLS, least=2, within=3), before=PAY_CALLS)
    for others, most in (([], 2), ([short], 4)):
        of = Beside([twice], others).histories
        past = of.begun({})
        for _ in range(4):
            past = of.after(past, _made(STEPS[0]))
        assert of.ages(past) == (0,) * most


def test_a_fact_is_a_call_of_a_tool_with_fields_of_its_own() -> None:
    told = c.require(c.alt(None, c.is_(c.session("told"), "=", c.own("x"))), before=PAY_CALLS)
    of = Beside([WITHOUT[0]], [told, l.Uses(calls=FIND_CALLS, most=9, within=3)]).histories
    bag, line, attributes = 0, of.size - 2, of.size - 1
    find, beyond = 1 << 12, len(BASE.tools) << 12
    x = [("find", "x")]
    assert of.fields(bag, find, 1) == of.fields(bag, find, histories.MAX_ALIKE) == x
    assert of.fields(bag, find, histories.MAX_ALIKE + 1) is None
    assert of.fields(bag, find + 1, 1) == []
    for slot in (0, find + 2, beyond, beyond + find):  # a tool without names, no field, no tool
        assert of.fields(bag, slot, 1) is None
    assert of.fields(line, 99, find * 2 + 1) == []
    assert of.fields(line, 0, beyond * 2) is None
    assert of.fields(attributes, 0, 1) == [("\0", "\x000")]
    assert of.fields(attributes, 1, 1) == []
    for slot in (2, find, beyond):
        assert of.fields(attributes, slot, 1) is None


def test_what_is_decided_of_many_values_is_kept_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(histories, "MAX_REMEMBERED", 2)
    sides = Beside([WITHOUT[0]], [WITHOUT[12]])
    of = sides.histories
    past = of.begun({})
    for step in STEPS[:3]:
        for token in range(3):
            made = replace(_made(step), parts=(("x", token),))
            of.refused(past, made, sides.uses, 0)
            assert len(of._states) <= 2 and len(of._known) <= 2
        past = of.after(past, _made(step))
    assert sides.play(3, (0,), STEPS[:3], {"who": "p"}) > 9


def test_a_tool_has_no_more_fields_than_there_is_room_for() -> None:
    for extra, fits in ((0, True), (1, False)):
        names = [f"f{at:02}" for at in range(MAX_LEFT_OUT + extra)]
        tool = c.tool("wide", *[c.text(name, optional=True) for name in names])
        grammar = c.policy(tool)
        asked = [c.is_(c.own(name), "=", "p") for name in names]
        statement = l.Uses(calls=c.calls("wide"), most=1, where=tuple(asked))
        core = artifact_of(tcc.compile_text(text_of(grammar))).core
        _, found = policies_of(replace(grammar, statements=(statement,)))
        held = replace(core, monitors=tuple([PolicyMonitor(policy=p, text="") for _, p in found]))
        if fits:
            assert _histories(held).size == 2
            continue
        with pytest.raises(Uncovered, match=f"more than {MAX_LEFT_OUT} fields"):
            _histories(held)


def _histories(core: Core) -> Histories:
    return Histories([core, core], Beside._state, Beside._matches, NO_LISTS)
