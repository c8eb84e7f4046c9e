"""Positions against their definition: every way in which unknown outcomes may have turned out."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import pytest

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.artifact import Automaton
from tcc_certs.policy.core import Core, Tool
from tcc_certs.policy.course import answer_states, argument_states
from tcc_certs.policy.history import ANSWERED, DONE, FAILED, LOST, DictHistory
from tcc_certs.policy.meaning import Policy
from tcc_certs.policy.plans import Call, Empty
from tcc_certs.session.machine import NOWHERE, Course, SessionMachine, call_text
from tcc_certs.values.declared import TextType
from tcc_certs.values.fields import Field
from tcc_certs.values.places import UNKNOWN, State

TOOLS = (
    Tool(
        name="a",
        arguments=(
            Field(name="k", steps=("k",), values=("x", "y"), optional=True),
            Field(name="free", steps=("free",), type=TextType(), optional=True),
        ),
    ),
    Tool(
        name="b c",
        answers=(
            Field(name="r", steps=("r",), values=("yes", "no", "*")),
            Field(name="s", steps=("s",), values=("1", "2"), optional=True, null=True),
        ),
    ),
)
# Calls by (tool, listed values); indices of optional fields count absent first.
CALLS = [(0, (0,)), (0, (1,)), (0, (2,)), *[(1, pair) for pair in product(range(3), range(3))]]
CORE = Core(
    name="t",
    version="1",
    tools=TOOLS,
    calls=tuple(
        [
            Call(text=str(at), tool=tool, values=values, cost_low=0, cost_high=0, price=0,
                 latency=0, epsilon=0)
            for at, (tool, values) in enumerate(CALLS)
        ]
    ),
    rules={},
    plan=Empty(),
)  # fmt: skip
ANSWERS: dict[int, list[tuple[int, ...]]] = {0: [()], 1: list(product(range(3), range(3)))}
EDGES = dict[int, dict[int, tuple[int, ...]]]


def automaton(edges: EDGES, accept: Sequence[int]) -> Automaton:
    start, calls, targets = [0], [], []
    for state in range(len(accept)):
        for call, to in sorted(edges.get(state, {}).items()):
            calls += [call] * len(to)
            targets += to
        start.append(len(calls))
    return Automaton(
        edge_start=start,
        edge_call=calls,
        edge_target=targets,
        accept=accept,
        rank=[0] * len(accept),
    )


@dataclass
class Did:
    """A call of a session: its tool and listed arguments, its outcome, its answer."""

    tool: int
    values: tuple[int, ...]
    outcome: str = LOST
    answer: tuple[int | None, ...] = ()


@dataclass
class Brute:
    """A session by the words of section 5."""

    edges: EDGES
    root: int
    session: list[Did] = field(default_factory=list)

    def positions(self, session: Sequence[Did] | None = None) -> set[tuple[int, ...]]:
        choices = [
            list(self._choices(did)) for did in (self.session if session is None else session)
        ]
        return {self._walk(chosen) for chosen in product(*choices)}

    def _choices(self, did: Did) -> Iterator[int | None]:
        """The calls of the core that it may have been; None: nothing."""
        if did.outcome in (FAILED, ANSWERED):
            yield None
            return
        if did.outcome == LOST:
            yield None
        for answer in ANSWERS[did.tool]:
            known = did.answer or (None,) * len(answer)
            if did.outcome == LOST or all(
                at is None or at == one for one, at in zip(answer, known, strict=True)
            ):
                yield CALLS.index((did.tool, did.values + answer))

    def _walk(self, chosen: Sequence[int | None]) -> tuple[int, ...]:
        held = {self.root}
        for call in chosen:
            if call is not None:
                held = {to for state in held for to in self.edges.get(state, {}).get(call, ())}
        return tuple(sorted(held))

    def planned(self, did: Did) -> bool:
        """Whether from each position some answer leads to another position than nowhere."""
        calls = [CALLS.index((did.tool, did.values + answer)) for answer in ANSWERS[did.tool]]
        return all(
            any(self.edges.get(state, {}).get(call) for state in position for call in calls)
            for position in self.positions()
        )


def course_of(edges: EDGES, accept: Sequence[int]) -> Course:
    made = SessionMachine(CORE, automaton(edges, accept), range(len(CALLS)))
    return Course(made, Policy(CORE), DictHistory(CORE, {}))


def arguments_of(did: Did) -> dict[str, State]:
    return argument_states(TOOLS[0], [{}, {"k": "x"}, {"k": "y"}][did.values[0]]) if (
        did.tool == 0
    ) else {}  # fmt: skip


def answers_of(did: Did) -> Mapping[str, State]:
    """The states of an answer; a value that is not known is of another type."""
    if did.tool == 0:
        return {}
    first, second = did.answer
    answer: dict[str, Any] = {"r": ["yes", "no", "maybe"][first] if first is not None else []}
    if second is None:
        answer["s"] = "other"
    elif second:
        answer["s"] = second
    if first is None:
        del answer["r"]  # nothing is there, and it is required
    return answer_states(TOOLS[1], answer)


def random_edges(rng: random.Random, states: int) -> EDGES:
    """A random graph; a call may lead to several states."""
    edges: EDGES = {}
    for state in range(states):
        row = {}
        for call in range(len(CALLS)):
            if rng.random() < 0.75:
                many = rng.choice((1, 1, 1, 2))
                row[call] = tuple(sorted(rng.sample(range(states), many)))
        edges[state] = row
    return edges


@pytest.mark.parametrize("seed", range(60))
def test_a_session_holds_the_positions_of_every_resolution(seed: int) -> None:
    rng = random.Random(seed)
    states = rng.randint(2, 5)
    edges = random_edges(rng, states)
    accept = [rng.randint(0, 1) for _ in range(states)]
    course, brute = course_of(edges, accept), Brute(edges, states - 1)
    under_way: list[int] = []
    for _ in range(7):
        tool = rng.randint(0, 1)
        did = Did(tool, (rng.randint(0, 2),) if tool == 0 else ())
        states_of = {"k": UNKNOWN, "free": UNKNOWN} | arguments_of(did)
        call = course.call(TOOLS[tool].name, states_of, 0)
        offer = course.machine.offer_for(tool, states_of)
        assert offer is not None
        assert offer.text == call_text(TOOLS[tool], did.values)
        assert course.machine.offer(offer.text) is offer
        code = course.decide(call, offer).refused
        planned = brute.planned(did)
        many = len(brute.positions([*brute.session, did])) > 64
        expected = (
            None if planned and not many else Code.MANY_STATES if planned else Code.NOT_PLANNED
        )
        assert (None if code is None else code.code) == expected
        if expected is None:
            course.begin(call, offer)
            brute.session.append(did)
            under_way.append(len(brute.session))
        for seq in rng.sample(under_way, rng.randint(0, len(under_way))):
            settle(rng, course, brute.session[seq - 1], seq, first=True)
            under_way.remove(seq)
        unknown = [
            seq
            for seq, one in enumerate(brute.session, 1)
            if one.outcome == LOST and seq not in under_way
        ]
        if unknown and rng.random() < 0.5:
            seq = rng.choice(unknown)
            settle(rng, course, brute.session[seq - 1], seq, first=False)
        check(course, brute, accept)


def settle(rng: random.Random, course: Course, did: Did, seq: int, *, first: bool) -> None:
    outcomes = [DONE, DONE, FAILED, ANSWERED, LOST] if first else [DONE, FAILED]
    did.outcome = rng.choice(outcomes)
    if did.outcome == DONE and did.tool == 1:
        choices = (0, 1, 2, None) if first else (0, 1, 2)
        did.answer = tuple([rng.choice(choices) for _ in range(2)])
    answers = answers_of(did) if did.outcome == DONE else {}
    (course.settle if first else course.resolve)(seq, did.outcome, answers)


def check(course: Course, brute: Brute, accept: Sequence[int]) -> None:
    positions = brute.positions()
    assert set(course.held) == positions and list(course.held) == sorted(positions)
    shown = sorted({state for position in positions for state in position or (-1,)})
    assert course.states() == shown
    assert course.lost == (positions == {NOWHERE})
    ends = all(any(accept[state] for state in position) for position in positions)
    assert course.may_finish(0) == ends


CHAIN: EDGES = {state: {0: (state + 1,)} for state in range(80)}


def unknown_chain(course: Course, count: int) -> None:
    """Calls of unknown outcome; each may have led one state on."""
    for _ in range(count):
        states = argument_states(TOOLS[0], {})
        call = course.call("a", states, 0)
        offer = course.machine.offer_for(0, states)
        assert offer is not None and course.decide(call, offer).refused is None
        course.begin(call, offer)
        course.settle(call.at + 1, LOST)


def test_at_most_64_positions_are_held() -> None:
    course = Course(
        SessionMachine(CORE, automaton({79 - q: {0: (78 - q,)} for q in range(79)}, [1] * 80),
                       range(len(CALLS))),
        Policy(CORE), DictHistory(CORE, {}),
    )  # fmt: skip
    unknown_chain(course, 63)
    assert len(course.held) == 64
    states = argument_states(TOOLS[0], {})
    call, offer = course.call("a", states, 0), course.machine.offer_for(0, states)
    refused = course.decide(call, offer).refused
    assert refused is not None and refused.code == Code.MANY_STATES
    course.resolve(5, FAILED)
    assert course.decide(call, offer).refused is None


def test_late_outcomes_compute_a_bounded_number_of_calls_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    course = course_of({0: {0: (0,)}}, [1])
    unknown_chain(course, 4)
    assert course.held == ((0,),)
    assert [course.repeated(seq) for seq in (1, 2, 3, 4)] == [3, 2, 1, 0]
    monkeypatch.setattr("tcc_certs.session.machine.MAX_REFOLDED", 4)
    course.resolve(1, DONE)  # 3 calls are computed again
    course.resolve(2, FAILED)  # they still are to be computed, so these are no more
    assert course.held == ((0,),)
    unknown_chain(course, 1)
    assert course.repeated(4) == 4
    with pytest.raises(Rejected, match="D201"):
        course.resolve(3, FAILED)
    course.resolve(4, FAILED)


def test_a_call_that_the_artifact_lacks_is_not_planned() -> None:
    made = SessionMachine(CORE, automaton({0: {0: (0,)}}, [1]), [0])
    course = Course(made, Policy(CORE), DictHistory(CORE, {}))
    states = argument_states(TOOLS[0], {"k": "x"})
    assert made.offer_for(0, states) is None and made.offer("a(k=x)") is None
    refused = course.decide(course.call("a", states, 0), None).refused
    assert refused is not None and (refused.code, refused.statement) == (Code.NOT_PLANNED, None)
