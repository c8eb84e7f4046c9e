"""Sessions over an automaton with cycles, beside the automaton whose depth is unrolled."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.policy.history import DONE, FAILED, LOST, ListHistory
from tcc_certs.session.machine import Course, SessionMachine
from tcc_certs.session.validation import machine_of
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_core, compile_text
from tests.oracle.cores import random_core

TURNS = """grammar turns version "1"
tool ask
tool answer
tool close
plan = (ask answer)* close?
"""


def pair(seed: int) -> tuple[CheckedArtifact, CheckedArtifact] | None:
    """The same random core for a gate and for a run, if the first has cycles."""
    data, _ = random_core(random.Random(seed), 6)
    options = Options(max_states=300)
    made = [compile_core(data, replace(options, purpose=p)).artifact for p in ("gate", "run")]
    if made[0] is None or made[1] is None:
        assert made == [None, None]
        return None
    gate, run = check(made[0]), check(made[1])
    return (gate, run) if gate.automaton.cyclic else None


def course_of(artifact: CheckedArtifact) -> Course:
    return Course(machine_of(artifact), artifact.policy, ListHistory(artifact.core, {}))


def test_a_session_decides_as_over_the_unrolled_automaton() -> None:
    sessions = refused = 0
    for seed in range(100):
        found = pair(seed)
        if found is None:
            continue
        rng = random.Random(seed)
        for _ in range(4):
            courses = [course_of(one) for one in found]
            sessions += 1
            for _ in range(7):
                allowed = []
                for tool in found[0].core.tools:
                    decided = []
                    for course in courses:
                        offer = course.machine.offer(tool.name)
                        call = course.call(tool.name, {}, 0)
                        decided.append((course.decide(call, offer), offer, call))
                    assert decided[0][0] == decided[1][0], (seed, tool.name)
                    refused += decided[0][0].refused is not None
                    if decided[0][0].refused is None:
                        allowed.append(decided)
                if not allowed:
                    break
                outcome = rng.choice((DONE, DONE, DONE, FAILED, LOST))
                for course, (_, offer, call) in zip(courses, rng.choice(allowed), strict=True):
                    assert offer is not None
                    course.begin(call, offer)
                    course.settle(len(course.history.calls), outcome)
                assert courses[0].may_finish(0) == courses[1].may_finish(0), seed
                assert courses[0].lost == courses[1].lost
    assert sessions >= 16 and refused > 40


def endless(text: str) -> SessionMachine:
    made = compile_text(text, Options(purpose="gate")).artifact
    assert made is not None
    return machine_of(check(made))


def test_a_call_that_leaves_too_few_calls_for_an_end_is_refused() -> None:
    machine = endless(f"{TURNS}limit depth <= 3\n")
    held = machine.start
    for name, code in (("ask", None), ("answer", None), ("ask", "R201"), ("close", None)):
        offer = machine.offer(name)
        assert offer is not None
        look = machine.look(held, offer)
        assert look.code == code
        if code is None:
            held = machine.done(held, offer, ())
    assert held == ((2 + 3 * 3,),)  # the state after `close`, and three calls


@pytest.mark.parametrize("limit", ["", "limit depth <= 100000\n"])
def test_the_machine_keeps_nothing_for_each_call(limit: str) -> None:
    machine = endless(f"{TURNS}{limit}")
    course = Course(machine, NoPolicy(), NoHistory())
    for at in range(10_000):
        name = ("ask", "answer")[at % 2]
        offer = machine.offer(name)
        assert offer is not None
        assert machine.look(course.held, offer).code is None
        call = course.call(name, {}, 0)
        course.begin(call, offer, {})
        course.history.last = call
        course.settle(at + 1, DONE)
    assert course.held and not course._steps
    assert len(machine._looks) <= 1 << 12


class NoHistory:
    """A history that forgets: the test is about the machine."""

    def __init__(self) -> None:
        self.made = 0
        self.last = None

    @property
    def calls(self) -> range:
        return range(self.made)

    def add(self, call, draws) -> None:
        self.made += 1

    def record(self, call, outcome, answers) -> None:
        call.outcome = outcome


class NoPolicy:
    """A decider that keeps nothing."""

    def forget(self, *_) -> None:
        pass
