"""Statements that an automaton with cycles leaves to the gate: the same decisions as with them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.policy.core import Tool
from tcc_certs.policy.history import DONE, FAILED, LOST, ListHistory
from tcc_certs.policy.listing import listed_statements
from tcc_certs.policy.places import left_out
from tcc_certs.report import check_artifact
from tcc_certs.session.machine import Course
from tcc_certs.session.validation import machine_of
from tcc_certs.values.places import UNKNOWN, State, listed_states
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_core, compile_text
from tests.certs.rules.refusals import refusal
from tests.forgery.artifacts import Forge
from tests.oracle.cores import (
    SHAPES,
    call,
    count_at_least,
    make_core,
    random_about_values,
    random_statements,
    shaped_calls,
    shaped_tool,
)

GATE = Options(purpose="gate", max_states=400)


def drawn(seed: int) -> tuple[bytes, bytes]:
    """A random core without a plan, and the same one with a plan that allows all calls.

    A plan needs every statement in the automaton.
    """
    rng = random.Random(seed)
    names = sorted(rng.sample(sorted(SHAPES), rng.randint(1, 4)))
    tools = [
        shaped_tool(name, strict=bool(SHAPES[name][1]) and rng.random() < 0.3) for name in names
    ]
    listed = shaped_calls(tools)
    own = [{at for at, (tool, _) in enumerate(listed) if tool == one} for one in range(len(tools))]
    statements: list[Any] = []
    while len(statements) < 3 and rng.random() < 0.9:
        more = random_statements(rng, own, rng.randint(2, 5))
        statements += [one for one in more if rng.random() < 0.7]
        statements += [random_about_values(rng, names)] * (rng.random() < 0.5)
    if rng.random() < 0.6:  # something that an end needs
        one, other = rng.choice(own), rng.choice(own)
        statements.append(rng.choice((count_at_least(one, 1), ["after", one, other])))
    costs = (0, 250_000_000, 10**9)
    calls = [call(t, v, rng.choice(costs), price=rng.randint(0, 2)) for t, v in listed]
    every = ["repeat", ["call", set(range(len(listed)))], 0]
    with_plan, without = (
        make_core(tools=tools, calls=calls, statements=statements, plan=plan)
        for plan in (["alt", [every, ["empty"]]], every)
    )
    return without, with_plan


def compiled(core: bytes) -> CheckedArtifact | None:
    """The artifact for a gate, whose automaton is that of its core; None: there is no plan."""
    artifact = compile_core(core, GATE).artifact
    if artifact is None:
        return None
    assert check_artifact(artifact, core=True).verdict == 0
    return check(artifact)


def compared(seeds: range) -> Counter[str]:
    """Compare sessions of random cores; return how often each code was decided."""
    found = Counter[str]()
    for seed in seeds:
        without, whole = map(compiled, drawn(seed))
        assert (without is None) == (whole is None), seed
        if without is None or whole is None or not without.automaton.cyclic:
            continue
        found["left out"] += len(left_out(without.core)) - len(without.core.depth_totals)
        found["strict"] += any(tool.strict for tool in without.core.tools)
        for at in range(4):
            found.update(decided(random.Random(f"{seed} {at}"), without, whole))
    return found


def decided(rng: random.Random, *artifacts: CheckedArtifact) -> Iterator[str]:
    """Yield the codes of all calls of a random session; they are the same for both artifacts."""
    core = artifacts[0].core
    courses = [Course(machine_of(one), one.policy, ListHistory(one.core, {})) for one in artifacts]
    lost: list[int] = []
    for seq in range(1, 9):
        allowed = []
        for at, tool in enumerate(core.tools):
            offers = [course.machine.offers(at) for course in courses]
            for values in sorted({*offers[0], *offers[1]}):
                calls, codes = [], []
                for course, known in zip(courses, offers, strict=True):
                    states = course.machine.listed(at).states(values)
                    calls.append(course.call(tool.name, states, 0))
                    refused = course.decide(calls[-1], known.get(values)).refused
                    codes.append("" if refused is None else str(refused.code.value))
                # The whole automaton may have too many positions earlier.
                assert codes[0] == codes[1] or codes[1] == "R301", (seq, tool.name, values, codes)
                yield codes[0]
                if codes == ["", ""]:
                    allowed.append((at, values, calls))
        assert courses[0].may_finish(0) == courses[1].may_finish(0)
        assert courses[0].lost == courses[1].lost
        yield "may finish" if courses[0].may_finish(0) else "may not finish"
        if not allowed:
            break
        at, values, calls = rng.choice(allowed)
        outcome = rng.choice((DONE, DONE, DONE, FAILED, LOST))
        answers = answer(rng, core.tools[at]) if outcome == DONE else {}
        for course, made in zip(courses, calls, strict=True):
            course.begin(made, course.machine.offers(at)[values])
            course.settle(seq, outcome, answers)
        if outcome == LOST:
            lost.append(seq)
        elif lost and rng.random() < 0.4:
            late = lost.pop(rng.randrange(len(lost)))
            outcome = rng.choice((DONE, FAILED))
            tool = core.tool_of[courses[0].history.calls[late - 1].tool]
            answers = answer(rng, tool, unknown=0) if outcome == DONE else {}
            for course in courses:
                course.resolve(late, outcome, answers)


def answer(rng: random.Random, tool: Tool, unknown: float = 0.15) -> dict[str, State]:
    """Random states of the answers of a call; some are not known."""
    return {
        one.name: UNKNOWN if rng.random() < unknown else rng.choice(listed_states(one))
        for one in tool.answers
    }


def test_a_gate_decides_as_with_the_statements_in_the_automaton() -> None:
    found = compared(range(40))
    assert found["left out"] > 10 and found["strict"] > 3
    assert min(found[code] for code in ("R201", "R202", "R203", "may not finish")) > 10


@pytest.mark.campaign
def test_many_gates_decide_as_with_the_statements_in_the_automaton() -> None:
    found = compared(range(1000, 4000))
    assert found["left out"] > 1000 and found["R201"] > 1000


TOOLS = """grammar g version "1"
tool find gives (found: yes | no)
tool approve
tool refund { cost 1 .. 2 }
tool feedback
tool close
"""


def places(statements: str) -> list[str]:
    """The places of the statements in an artifact with cycles."""
    artifact = compile_text(f"{TOOLS}{statements}", GATE).artifact
    assert artifact is not None
    found = check(artifact)
    assert found.automaton.cyclic
    return [one.place for one in listed_statements(found.core, cyclic=True)]


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        # Nothing forbids an end.
        ("before refund require approve\nlimit count(refund) <= 3 in session\n", "gate gate"),
        # Takes no state, and its tool cannot be called.
        ("forbid refund\nbefore close require approve\n", "automaton gate"),
        # What an end needs, and what that needs.
        ("finally require close\nbefore close require approve\n", "automaton automaton"),
        ("finally require close\nbefore refund require approve\n", "automaton gate"),
        (
            "finally require close\nbefore close require find\nbefore refund require find\n",
            "automaton automaton gate",
        ),
        # A debt needs the call that pays, not the one that opens it.
        ("after refund owe feedback\nbefore refund require approve\n", "automaton gate"),
        ("after refund owe feedback\nbefore feedback require approve\n", "automaton automaton"),
        ("finally require close\nlimit cost <= 9\n", "automaton gate"),
        # A plan needs all calls.
        ("plan = (find | approve refund | close)*\nbefore refund require find\n", "automaton"),
    ],
)
def test_what_an_end_does_not_need_is_left_to_the_gate(statements: str, expected: str) -> None:
    assert places(statements) == expected.split()


def test_a_statement_of_the_gate_is_not_relaxed() -> None:
    artifact = compile_text(f"{TOOLS}before refund require approve\n", GATE).artifact
    assert artifact is not None
    forge = Forge(artifact)
    forge.member("critical", value=["cyclic", "gate", "relaxed"]).member("relaxed", value=[0])
    assert refusal(forge)[0] == "C803"


def test_an_automaton_that_holds_more_is_not_that_of_its_core() -> None:
    """The automaton of another core, for which the statement is held."""
    text = f"{TOOLS}before refund require approve\n"
    artifacts = [
        compile_text(f"{text}{plan}", GATE).artifact for plan in ("", "plan = any* | ()\n")
    ]
    assert artifacts[0] is not None and artifacts[1] is not None
    forge, whole = Forge(artifacts[0]), Forge(artifacts[1])
    assert whole.manifest["states"] == 2
    whole.columns["core"] = forge.columns["core"]
    found = check_artifact(whole.seal(), core=True)
    assert [one.code for one in found.findings] == ["G102"]
