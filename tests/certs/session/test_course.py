"""The session machine against its definition, over every short trace of a small grammar.

The definition enumerates the resolutions of unknown outcomes (tests/oracle_session/brute.py).
Random longer sessions are in tests/gate, tests/differential and tests/certs/session/test_sessions;
artifacts with states that share a call, and with statements left to the run, in tests/gate.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import pytest

import tcc
from tcc_certs.formats.container import write_container
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.session.machine import Course, Offer, SessionMachine, Step
from tcc_certs.session.monitors.keyed import Seen
from tcc_certs.session.validation import machine_of
from tests.oracle_session.brute import Brute, Did

TEXT = """grammar traces version "1"

tool a(k: 1 | 2, p: text)
tool t(p: text) gives (r: yes | no | late)

plan = t (a | t(r=no)){0,2} | a(k=1) t? a(k=2)?
"""
# a(k=1), a(k=2), t, with a value that is theirs alone or not; and how each may come out.
CALLS = [(0, (0,), "x"), (0, (1,), "x"), (0, (1,), "y"), (1, (None,), "x"), (1, (None,), "y")]
Move = tuple[int, str, tuple[int, ...] | None]
STATEMENTS = (
    "",
    "before a(k = 2) require t(r = yes, same p)\n",
    "before a require no t(r = no, same p)\nlimit count(a) per p <= 1 in session\n",
    "before t require no a(same p)\nbefore a require no t(same p)\nbefore a(k = 2) require unused a(same p)\n",
)


@cache
def artifact(statements: str) -> CheckedArtifact:
    return check(write_container(tcc.compile_text(TEXT + statements).file.columns))


def moves(call: int) -> Iterator[Move]:
    """How a call may come out: answers, one that is not foreseen, failed, unknown."""
    answers = [(0,), (1,), (2,)] if CALLS[call][0] == 1 else [()]
    yield from [(call, "done", answer) for answer in answers]
    if CALLS[call][0] == 1:
        yield call, "done", None
    yield call, "failed", None
    yield call, "unknown", None


class Both:
    """A session of the machine, and one of brute force."""

    def __init__(self, machine: SessionMachine, checked: CheckedArtifact) -> None:
        self.brute = Brute(checked)
        self.course = Course(machine)

    def offer(self, call: int) -> tuple[Offer, Sequence[Seen], Did]:
        tool, values, text = CALLS[call]
        machine = self.course.machine
        offer = machine.offers(tool)[values]
        seen = machine.monitors.see(tool, values, {"p": text}, {})
        return offer, seen, Did(tool=tool, values=values, opened={"p": text})

    def due(self, did: Did) -> tuple[str, str] | None:
        """Why a call may not be made, from the definition."""
        brute = self.brute
        if brute.places() == {-1} or not brute.planned(did):
            return "R201", ""
        number = brute.forbidding(did)
        return None if number is None else ("R202", brute.core.monitors[number].text)

    def agree(self) -> None:
        """What is held, what is allowed and whether it may end are as they are defined."""
        course, brute = self.course, self.brute
        assert set(course.machine.shown(course.held)) == brute.places()
        assert course.lost == (brute.places() == {-1})
        assert course.may_finish() == brute.may_finish()
        for call in range(len(CALLS)):
            offer, seen, did = self.offer(call)
            assert course.refuses(offer, seen) == self.due(did), (brute.session, call)

    def make(self, move: Move) -> bool:
        """Whether the call was allowed; then it is made, and comes out so."""
        call, outcome, answer = move
        offer, seen, did = self.offer(call)
        if self.due(did) is not None:
            return False
        self.brute.session.append(did)
        self.course.begin(len(self.brute.session), offer, seen)
        if len(self.brute.session) == 1:
            self.agree()  # under way it counts as unknown
        told: Any = outcome
        self.course.settle(told, _told(outcome, answer))
        did.outcome = outcome
        did.answer = answer
        return True


def _told(outcome: str, answer: tuple[int, ...] | None) -> tuple[int | None, ...] | None:
    """An answer as the machine takes it: one that is not foreseen is known in no part."""
    return (None,) if outcome == "done" and answer is None else answer


def played(statements: str, trace: Sequence[Move]) -> Both | None:
    checked = artifact(statements)
    both = Both(machine(statements), checked)
    return both if all(both.make(move) for move in trace) else None


@cache
def machine(statements: str) -> SessionMachine:
    return machine_of(artifact(statements))


def traces(statements: str, length: int) -> Iterator[tuple[Move, ...]]:
    """Every trace of so many calls that are allowed."""
    if not length:
        yield ()
        return
    for before in traces(statements, length - 1):
        for call in range(len(CALLS)):
            for move in moves(call):
                if played(statements, (*before, move)) is not None:
                    yield (*before, move)


@pytest.mark.parametrize("statements", STATEMENTS, ids=["none", "require", "forbid", "each"])
def test_every_short_trace_is_allowed_what_its_definition_allows(statements: str) -> None:
    count = late = 0
    for length in range(3):
        for trace in traces(statements, length):
            both = played(statements, trace)
            assert both is not None
            both.agree()
            count += 1
            for at, (call, outcome, _) in enumerate(trace):
                for resolved in moves(call) if outcome == "unknown" else ():
                    late += _resolved(statements, trace, at, resolved)
    assert count > 60 and late > 60


def _resolved(statements: str, trace: Sequence[Move], at: int, resolved: Move) -> bool:
    """The outcome of a call of a trace becomes known at its end."""
    _, outcome, answer = resolved
    both = played(statements, trace)
    if both is None or outcome == "unknown" or (outcome == "done" and answer is None):
        return False
    both.course.held  # noqa: B018  # gone through, so that there is something to take back
    told: Any = outcome
    both.course.resolve(at + 1, told, _told(outcome, answer))
    did = both.brute.session[at]
    did.outcome, did.answer = outcome, answer
    both.agree()
    return True


LONG = """grammar long version "1"

tool a(p: text)
tool b(p: text)

limit depth <= 100
before b require no a(same p)
"""


def _kept(course: Course) -> int:
    """How many calls a session keeps, once it was gone through."""
    course.held  # noqa: B018
    gc.collect()
    return sum(isinstance(one, Step) for one in gc.get_objects())


def test_calls_are_kept_from_the_first_on_that_is_not_known_for_good() -> None:
    before = _kept(Course(machine("")))
    made = machine_of(check(write_container(tcc.compile_text(LONG).file.columns)))
    course, offer, other = Course(made), made.offers(0)[()], made.offers(1)[()]

    def allowed(at: int) -> bool:
        return course.refuses(other, made.monitors.see(1, (), {"p": str(at)}, {})) is None

    for at in range(1, 91):
        course.begin(at, offer, made.monitors.see(0, (), {"p": str(at)}, {}))
        if at != 70:
            course.settle("unknown" if at == 50 else "failed" if at % 9 == 0 else "done", ())
    # 50 is unknown, 70 under way; 54, 63, 72, 81, 90 failed.
    assert _kept(course) - before == 41 - 5
    assert not allowed(49) and not allowed(50) and allowed(63) and not allowed(70)
    course.settle("failed", None, seq=70)
    assert _kept(course) - before == 35
    assert not allowed(50) and allowed(70) and not allowed(71)
    course.resolve(50, "failed", None)
    assert _kept(course) == before
    assert [allowed(at) for at in (45, 49, 50, 63, 70, 89, 91)] == [
        True, False, True, True, True, False, True,
    ]  # fmt: skip


@pytest.mark.parametrize("looks", ["never", "each", "last"])
def test_what_is_gone_through_again_does_not_depend_on_when_calls_are_let_go(looks: str) -> None:
    """The validator looks at each record, a gate that reopens by bytes does not."""
    made = machine_of(check(write_container(tcc.compile_text(LONG).file.columns)))
    course, offer = Course(made), made.offers(0)[()]
    for at in range(1, 9):
        course.begin(at, offer, made.monitors.see(0, (), {"p": str(at)}, {}))
        course.settle("unknown" if at == 6 else "done", ())
        if looks == "each" or (looks == "last" and at == 8):
            course.held  # noqa: B018
    assert course.repeated(6) == 2
    course.resolve(6, "done", ())
    assert course.repeated(6) == 2
