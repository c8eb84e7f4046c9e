"""Limits and totals bound counts and sums, for a gate whose automaton holds none of them."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

import tcc
from tcc_certs.errors import Rejected
from tcc_certs.policy import meaning
from tcc_certs.policy.core import Core
from tcc_certs.policy.course import Course
from tcc_certs.policy.meaning import Policy, amount_of, policy_of
from tcc_certs.proof.check import check_proof
from tcc_certs.proof.reasons import bounds_of
from tcc_certs.proof.scene import Scene
from tcc_runtime.exact import longer
from tcc_runtime.exact.planned import plan_of
from tcc_runtime.exact.values import SessionCall

TEXT = """grammar bounds version "1"
given who: text
tool read(k: text) { price 2 }
tool send(m: low | high, size: number 0 .. 50) { price 3 price 5 when m = high latency 1 s }
tool ask(v: text) gives (r: yes | no) { price 1 }
tool pay(amount: number 1 .. 100, to: text) { price 7 }
tool free
tool credit(amount: number -100 .. 100)
limit price <= 10
limit count(ask) <= 7
limit depth <= 200
"""
ASKED = (
    ("limit count(read) <= 5", "proved"),
    ("limit count(read) <= 4", "refuted"),
    ("limit count(send) <= 3", "proved"),
    ("limit count(send(m = high)) <= 2", "proved"),
    ("limit count(send(m = high)) per size <= 2 in session", "proved"),
    ("limit count(send(m = low)) <= 2", "refuted"),
    ("limit count(read | send) <= 5", "proved"),
    ("limit count(read | send) <= 4", "refuted"),
    ("limit count(read within 1 h) <= 5 in session", "proved"),
    ("limit count(read) per k <= 5 in session", "proved"),
    ("limit count(read(k = session.who)) <= 5", "proved"),
    ("limit count(free) <= 200", "proved"),
    ("limit sum(pay.amount) <= 100", "proved"),
    ("limit sum(pay.amount) per to <= 100 in session", "proved"),
    ("limit sum(send.size) <= 150", "proved"),
    ("limit sum(send.size) <= 149", "refuted"),
    ("limit price <= 9", "refuted"),
    ("limit price <= 12", "proved"),
    ("limit depth <= 199", "refuted"),
    ("limit latency <= 2 s", "refuted"),
    ("limit latency <= 3 s", "proved"),
    ("limit cost <= 0", "proved"),
    ("before free require count(ask) <= 7", "proved"),
    ("before read require count(read) <= 4", "proved"),
    ("before free require sum(pay.amount) <= 100", "proved"),
    ("finally require count(send(m = high)) <= 2", "proved"),
)


@cache
def artifact_of(text: str) -> tcc.Artifact:
    return tcc.compile_text(text, purpose="gate")


def test_the_automaton_holds_no_limit() -> None:
    plan = plan_of(artifact_of(TEXT))
    assert len(plan.reached()) == 1 and len(plan.omitted) == 3


@pytest.mark.parametrize(("text", "verdict"), ASKED)
def test_a_question_about_amounts_has_its_answer(text: str, verdict: str) -> None:
    found = tcc.prove(artifact_of(TEXT), text, timeout=60)
    assert found.verdict == verdict, found.missing
    if verdict == "proved":
        assert found.proof is not None
        assert not check_proof(found.proof, artifact_of(TEXT).core).of_plans


TOTALS = """# lint: allow TCC709 the tests are about bounds
grammar totals version "1"
tool read(n: integer 1 .. 9) { price 2 cost 1 }
tool send(m: low | high) gives (v: yes | no) { price 3 price 5 when v = yes cost 3 latency 2 s }
tool rest
"""


@pytest.mark.parametrize(
    ("bounds", "asked", "bound"),
    [
        ("limit depth <= 9", "price", 45),
        ("limit count(read | send) <= 4", "price", 20),
        ("limit count(send) <= 4", "latency", 8000),
        ("limit count(send) <= 4\nlimit count(read) <= 3", "price", 26),
        ("limit count(send) <= 4\nlimit sum(read.n) <= 3", "price", 26),
        ("limit count(send) <= 4\nlimit depth <= 6", "price", 30),
        ("limit price <= 20", "cost", 20),
        ("limit price <= 20", "latency", 12000),
        ("limit cost <= 2.5", "price", 4),
        ("limit cost <= 0", "price", 0),
        ("limit count(send) <= 4", "price", None),
        ("limit count(send(m = low)) <= 4", "latency", None),
        ("limit count(send within 1 h) <= 4 in session", "latency", None),
        ("limit count(send) per session.g <= 4 in session", "latency", None),
        ("limit count(send) <= count(read)", "latency", None),
        ("limit sum(rest.z) <= 4", "latency", None),
    ],
)
def test_limits_bound_a_total(bounds: str, asked: str, bound: int | None) -> None:
    text = TOTALS.replace("tool rest", "given g: text\ntool rest(z: integer 0 .. 9)")
    core = artifact_of(f"{text}{bounds}\n").core
    found = list(bounds_of(Scene(policy_of(core), None), asked))
    assert (min(found) // 1 if found else None) == bound


def test_a_limit_counts_tools_with_other_fields() -> None:
    """The search asks for calls with a small `size`, which `free` lacks."""
    bounds = "limit depth <= 0\nfinally require count(read) + sum(credit.amount) <= 3\n"
    given = TEXT.split("limit price")[0] + bounds
    found = tcc.prove(artifact_of(given), "limit count(send | free) <= 0 in session", timeout=2)
    assert found.verdict in ("proved", "undecided")


def test_a_call_that_is_none_of_the_core_has_a_depth() -> None:
    core = artifact_of(f"{TOTALS}limit count(read | send) <= 4\n").core
    without = replace(core, calls=tuple([one for one in core.calls if one.text != "rest"]))
    for what, bounds in (("depth", []), ("price", [20, 28])):
        assert list(bounds_of(Scene(Policy(without), None), what)) == bounds


def test_a_total_that_a_call_may_lower_bounds_no_other() -> None:
    lowered = TOTALS.replace("tool rest", "tool rest { cost -1 }") + "plan = any{0,3}\n"
    core = artifact_of(f"{lowered}limit cost <= 9\n").core
    assert not list(bounds_of(Scene(policy_of(core), None), "price"))
    assert list(bounds_of(Scene(policy_of(core), None), "epsilon")) == [0, 0]


def drawn_core(rng: random.Random) -> Core | None:
    """Random limits and totals of three tools with random amounts."""
    lines = ["# lint: allow TCC709 a test needs no reasons", 'grammar drawn version "1"']
    for tool in "abc":
        amounts = [f"price {rng.randint(0, 3)} price {rng.randint(0, 4)} when m = y"]
        amounts += [f"cost {rng.choice((0, 1, 2))} latency {rng.choice((1, 1000))} ms"]
        amounts += [f"price {rng.randint(0, 4)} when v = yes"] if tool == "b" else []
        gives = " gives (v: yes | no)" if tool == "b" else ""
        fields = f"m: x | y, n: integer {rng.choice((0, 1))} .. 3"
        lines.append(f"tool {tool}({fields}){gives} {{ {' '.join(amounts)} }}")
    for _ in range(rng.randint(1, 3)):
        tools = rng.choice(("a", "b", "c", "(a | b)", "(b | c)", "(a | b | c)"))
        what = rng.choice(("price", "cost", "depth", f"count({tools})", f"sum({tools}.n)"))
        lines.append(f"limit {what} <= {rng.randint(0, 5)}")
    try:
        return tcc.compile_text("\n".join(lines) + "\n", purpose="gate").core
    except tcc.CompileError:
        return None


def greatest_total(core: Core, what: str, rng: random.Random) -> Any:
    """The greatest total of random sessions."""
    policy = policy_of(core)
    amounts = meaning._amounts(core)
    found: Any = 0
    for _ in range(30):
        course = Course(policy, {})
        for _ in range(9):
            tool, arguments = rng.choice("abc"), {"m": rng.choice("xy"), "n": rng.randint(0, 3)}
            try:
                if course.check(tool, arguments):
                    continue
            except Rejected:
                continue
            earlier = [one for one in course.history.calls if one.outcome != "failed"]
            total: Any = sum([amount_of(one, what, amounts, max) for one in earlier])
            call = course.call(tool, arguments)
            found = max(found, total + amount_of(call, what, amounts, min))
            answer = {"v": rng.choice(("yes", "no"))} if tool == "b" else None
            course.record(call, rng.choice(("done", "done", "unknown", "failed")), answer)
    return found


def exact_bounds(seeds: range) -> float:
    """The part of the bounds of drawn totals that a session reaches; none exceeds one."""
    reached = []
    for seed in seeds:
        rng = random.Random(f"totals {seed}")
        core = drawn_core(rng)
        for what in ("price", "cost", "latency", "depth") if core is not None else ():
            assert core is not None
            bounds = list(bounds_of(Scene(policy_of(core), None), what))
            if bounds:
                total = greatest_total(core, what, rng)
                assert total <= min(bounds), (seed, what)
                reached.append(total == min(bounds))
    return sum(reached) / len(reached)


def test_no_session_exceeds_a_bound_of_a_total() -> None:
    assert exact_bounds(range(30)) > 0.6


@pytest.mark.campaign
def test_no_session_exceeds_one_of_many_bounds() -> None:
    assert exact_bounds(range(1000, 3000)) > 0.6


REPEATED = """grammar repeated version "1"
tool read(order: text ~ "#[0-9]{3}") gives (left: number 0 .. 100)
tool ask(order: text ~ "#[0-9]{3}", amount: number 0 .. 50) gives (v: yes | no)
tool pay(order: text ~ "#[0-9]{3}", amount: number 0 .. 50)
before pay require last(read(same order)).left >= amount
before pay require unused ask(same (order, amount), v = yes)
"""


@pytest.mark.parametrize(
    ("limit", "asked"),
    [
        ("", "limit count(pay) per order <= 9 in session"),
        ("limit sum(pay.amount) per order <= 50 in session", "limit sum(pay.amount) <= 300"),
        ("limit count(pay) per order <= 1 in session", "limit count(pay) <= 9"),
        ("limit count(pay) per order <= 2 in session", "limit sum(pay.amount) <= 420"),
        ("limit sum(pay.amount) <= 20", "limit count(pay) <= 15"),
    ],
)
def test_a_session_repeats_calls_until_it_is_beyond_a_limit(limit: str, asked: str) -> None:
    found = tcc.prove(artifact_of(f"{REPEATED}{limit}\n"), asked, timeout=60)
    assert found.verdict == "refuted" and found.session is not None
    assert {call["tool"] for call in found.session} == {"read", "ask", "pay"}


def test_a_fresh_text_is_the_next_one_that_no_call_has() -> None:
    for text, after in (("a9", "b0"), ("#W0000000", "#W0000001"), ("zz", "aa"), ("-", "-")):
        assert longer._next(text) == after
    call = SessionCall(tool="pay", arguments={"to": ["x2", {"of": "x3"}]}, answer={"v": "x4"})
    assert longer._fresh("x1", [call]) == "x5"
    assert longer._renamed(call, "x3", "y").arguments == {"to": ["x2", {"of": "y"}]}
    assert longer._renamed(call, "x4", "y").answer == {"v": "y"}


def test_a_sum_with_amounts_below_0_bounds_no_part_of_it() -> None:
    negative = TEXT.replace("limit price <= 10", "before pay require sum((pay | credit).amount) "
                            "+ amount <= 5")  # fmt: skip
    asked = "limit sum(pay.amount) <= 5 in session"
    assert tcc.prove(artifact_of(negative), asked, timeout=60).verdict == "refuted"
    positive = negative.replace("number -100 ..", "number 0 ..")
    assert tcc.prove(artifact_of(positive), asked, timeout=60).verdict == "proved"


@pytest.mark.parametrize(
    "asked",
    [
        "before free require count(debit | read) < 2 or sum(debit.amount) <= -2",
        "before free require sum(debit.amount) + count(debit | read) <= 0",
        "before free require count(debit) < 1 or sum(debit.amount) <= -1",
    ],
)
def test_a_sum_of_amounts_below_0_is_no_multiple_of_a_count(asked: str) -> None:
    """Two calls of `read` break the first two, a `debit` of unknown outcome the last one."""
    text = TEXT.replace("tool free", "tool free\ntool debit(amount: number -9 .. -1)")
    assert tcc.prove(artifact_of(text), asked, timeout=60).verdict != "proved"
