"""No verdict about plans is contradicted by random sessions on the plans of an artifact."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

import tcc
from tcc_certs.policy.course import Course, answer_states, argument_states
from tcc_certs.policy.meaning import Policy
from tcc_certs.proof.check import check_proof
from tcc_certs.proof.ends import open_reason
from tcc_certs.proof.questions import Question
from tcc_certs.session.machine import NOWHERE, SessionMachine
from tcc_compiler.names.questions import read_question
from tcc_runtime.exact.planned import plan_of
from tcc_runtime.exact.prove import answer

HEAD = """# lint: allow TCC709 a test needs no costs
grammar drawn version "1"
tool a(m: 1 | 2) gives (v: yes | no) { errors mean failed }
tool b(m: 1 | 2, z?: x | y)
tool c gives (v: yes | no, w: low | high | *)
tool d
"""
ATOMS = ("a", "b", "c", "d", "a(m=1)", "a(v=yes)", "b(m=2)", "c(v=no)", "any")
CALLS: dict[str, tuple[dict[str, Any], ...]] = {
    "a": ({"m": 1}, {"m": 2}),
    "b": tuple([
        {"m": m, **({} if z is None else {"z": z})} for m, z in product((1, 2), (None, "x", "y"))
    ]),
    "c": ({},),
    "d": ({},),
}  # fmt: skip
ANSWERS: dict[str, tuple[Any, ...]] = {
    "a": ({"v": "yes"}, {"v": "no"}, {"v": "odd"}),
    "c": tuple([{"v": v, "w": w} for v, w in product(("yes", "no", "odd"), ("low", "high", "e"))]),
}
SETS = ("a", "b", "c", "d", "a(v = yes)", "b(m = 1)", "c(v = no)", "c(w = low)", "a(m = 2)",
        "c(v != yes)", "b(z != null)", "c(v = no, w = low)", "a | d")  # fmt: skip


def drawn_plan(rng: random.Random, depth: int = 3) -> str:
    """A random expression of plans."""
    if depth == 0 or rng.random() < 0.25:
        return rng.choice(ATOMS)
    parts = [drawn_plan(rng, depth - 1) for _ in range(rng.randint(2, 3))]
    kind = rng.random()
    if kind < 0.5:
        return f"({' '.join(parts)})"
    if kind < 0.75:
        return f"({' | '.join(parts)})"
    return f"({parts[0]}){rng.choice(('?', '*', '{1,3}', '{0,2}'))}"


def drawn_statement(rng: random.Random) -> str:
    """A random statement about listed fields."""
    on, other, mark = [rng.choice(SETS) for _ in range(3)]
    while "v" in on or "w" in on:
        on = rng.choice(SETS)
    kind = rng.random()
    condition = rng.choice((
        f"{{0}}{other}", f"no {other}", f"{other} or {mark}", f"{other} since {rng.choice('abcd')}",
        f"no {other} since {rng.choice('abcd')}", f"count({other}) <= {rng.randint(0, 3)}",
        f"count({other}) >= {rng.randint(1, 2)}", "last(c).v = yes", "last(a).v != no",
    ))  # fmt: skip
    condition = condition.format("")
    if "|" in other:
        condition = condition.replace(other, f"({other})")
    if kind < 0.6:
        return f"before {on} require {condition}"
    if kind < 0.75:
        return f"finally require {condition}"
    if kind < 0.85:
        return f"limit count({on}) <= {rng.randint(1, 3)}"
    return f"after {on} owe {other}" if "|" not in other else f"forbid {on}"


def breaking(
    policy: Policy, machine: SessionMachine, rng: random.Random, length: int
) -> list[Any] | None:
    """A random session that the plans allow and that breaks the last statement of a policy."""
    asked = len(policy.rules) - 1
    course = Course(policy, {})
    held = machine.start
    steps: list[Any] = []
    for _ in range(length):
        allowed = []
        for tool, some in CALLS.items():
            at = machine.tools[tool]
            for arguments in some:
                states = argument_states(machine.core.tools[at], arguments)
                offer = machine.offer_for(at, states)
                if offer is None or machine.look(held, offer).code is not None:
                    continue
                refusals = {one.statement for one in course.check(tool, arguments)}
                if refusals == {asked}:
                    return [*steps, (tool, arguments)]
                if not refusals:
                    allowed.append((tool, arguments, offer))
        if course.unmet() == [asked] and all(map(machine.accepts, held)):
            return [*steps, "end"]
        if not allowed:
            return None
        tool, arguments, offer = rng.choice(allowed)
        outcome = rng.choice(("done", "done", "done", "unknown", "failed", "answered"))
        if outcome == "answered" and tool != "a":
            outcome = "done"
        reply = rng.choice(ANSWERS[tool]) if tool in ANSWERS else None
        course.record(course.call(tool, arguments), outcome, reply)
        steps.append((tool, arguments, outcome, reply))
        if outcome == "done":
            states = answer_states(machine.core.tool_of[tool], reply)
            held = machine.done(held, offer, machine.listed(offer.tool).answer(states))
        elif outcome == "unknown":
            held = machine.unknown(held, offer)
    return None


def decide(seed: int, sessions: int, timeout: float) -> str:
    """The verdict on a drawn question about plans, after random sessions were compared with it."""
    rng = random.Random(f"planned {seed}")
    statements = [drawn_statement(rng) for _ in range(rng.randint(0, 2))]
    lines = [f"plan = {drawn_plan(rng)}", "limit depth <= 6", *statements]
    text = HEAD + "\n".join(lines) + "\n"
    try:
        artifact = tcc.compile_text(text)
    except tcc.CompileError:
        return "skipped"
    core = artifact.core
    asked = drawn_statement(rng)
    if asked.startswith("limit"):
        asked += " in session"
    found = read_question(asked, core)
    if found.diagnostics:
        return "skipped"
    question = Question(kind="statement", statements=found.statements)

    def plan() -> Any:
        return plan_of(artifact)

    given = answer(core, question, lambda session: None, plan=plan, timeout=timeout)
    if given.verdict == "refuted":
        return "refuted"  # the definition and the automaton have replayed the session
    machine = SessionMachine(core, artifact.automaton, plan().core_calls)
    policy = Policy(replace(core, statements=(*core.statements, *found.statements)))
    shown = None
    for _ in range(sessions):
        shown = shown or breaking(policy, machine, rng, rng.randint(1, 6))
    if given.verdict == "proved":
        assert shown is None, f"seed {seed}: {text}\nquestion: {asked}\nbroken by {shown}"
        assert given.proof is not None
        checked = check_proof(given.proof, core, plan)
        return "proved by plans" if checked.of_plans else "proved"
    return "open, broken" if shown else "open"


def test_proved_questions_about_plans_are_not_broken_by_random_sessions() -> None:
    found = Counter(decide(seed, 40, 0.5) for seed in range(40))
    assert found["proved by plans"] >= 5 and found["refuted"] >= 5


@pytest.mark.campaign
def test_many_questions_about_plans() -> None:
    found = Counter(decide(seed, 150, 1.0) for seed in range(1000, 7000))
    print(found)
    assert found["proved by plans"] > 500


def test_no_session_has_an_error_that_was_read_of_a_tool_whose_errors_may_have_an_effect() -> None:
    """The gate lets a second `look` through only after a failed one, which `no look` leaves out."""
    text = """grammar g version "1"
tool look gives (v: yes | no)
tool act
plan = look(v = yes) act
"""
    question = "before look require no look"
    assert tcc.prove(tcc.compile_text(text), question).verdict == "proved"
    failing = text.replace("yes | no)", "yes | no) { errors mean failed }")
    found = tcc.prove(tcc.compile_text(failing), question)
    assert found.verdict == "refuted" and found.session is not None
    assert [one.get("outcome") for one in found.session[:-1]] == ["answered"]


def finished(seed: int) -> str:
    """The verdict on the ends of a drawn artifact, after all its sessions were tried."""
    rng = random.Random(f"ends {seed}")
    lines = [f"plan = {drawn_plan(rng)}", *[drawn_statement(rng) for _ in range(rng.randint(0, 2))]]
    try:
        artifact = tcc.compile_text(HEAD + "\n".join([*lines, "limit depth <= 5"]) + "\n")
    except tcc.CompileError:
        return "skipped"
    plan = plan_of(artifact)
    reason = open_reason(plan)
    if reason:
        return "open"
    machine = SessionMachine(artifact.core, artifact.automaton, plan.core_calls)
    for _ in range(60):
        stuck = walked(artifact.core, machine, rng)
        assert stuck is None, f"seed {seed}: {lines}\n{stuck}"
    return "proved"


def walked(core: Any, machine: SessionMachine, rng: random.Random) -> list[Any] | None:
    """A random session that no calls finish, if its outcomes are known; None: none was met."""
    course = Course(Policy(core), {})
    held = machine.start
    steps: list[Any] = []
    for _ in range(rng.randint(0, 5)):
        allowed = allowed_calls(course, machine, held)
        if not allowed:
            break
        tool, arguments, offer = rng.choice(allowed)
        outcome = rng.choice(
            ("done", "done", "done", "failed", "answered" if tool == "a" else "done")
        )
        known = [one for one in ANSWERS.get(tool, ()) if "odd" not in one.values()]
        reply = rng.choice(known) if known else None
        course.record(course.call(tool, arguments), outcome, reply)
        steps.append((tool, arguments, outcome, reply))
        if outcome == "done":
            held = after(machine, held, offer, tool, reply)
    return None if can_finish(course, machine, held, steps, 8) else steps


def allowed_calls(course: Course, machine: SessionMachine, held: Any) -> list[Any]:
    found = []
    for tool, some in CALLS.items():
        at = machine.tools[tool]
        for arguments in some:
            offer = machine.offer_for(at, argument_states(machine.core.tools[at], arguments))
            is_planned = offer is not None and machine.look(held, offer).code is None
            if is_planned and not course.check(tool, arguments):
                found.append((tool, arguments, offer))
    return found


def after(machine: SessionMachine, held: Any, offer: Any, tool: str, reply: Any) -> Any:
    states = answer_states(machine.core.tool_of[tool], reply)
    return machine.done(held, offer, machine.listed(offer.tool).answer(states))


def can_finish(
    course: Course, machine: SessionMachine, held: Any, steps: list[Any], left: int
) -> bool:
    """Return whether some calls, all done, lead to an end."""
    if held == (NOWHERE,):
        return False
    if all(map(machine.accepts, held)) and not course.unmet():
        return True
    if left == 0:
        return False
    for tool, arguments, offer in allowed_calls(course, machine, held):
        known = [one for one in ANSWERS.get(tool, (None,)) if not one or "odd" not in one.values()]
        for reply in known:
            more = Course(course.policy, {})
            for earlier in steps:
                more.record(more.call(earlier[0], earlier[1]), earlier[2], earlier[3])
            more.record(more.call(tool, arguments), "done", reply)
            longer = [*steps, (tool, arguments, "done", reply)]
            to = after(machine, held, offer, tool, reply)
            if can_finish(more, machine, to, longer, left - 1):
                return True
    return False


def test_sessions_of_a_proof_about_ends_can_be_finished() -> None:
    found = Counter(finished(seed) for seed in range(40))
    assert found["proved"] >= 8
