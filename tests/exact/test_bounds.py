"""Limits and totals bound counts and sums, for a gate whose automaton holds none of them."""

from __future__ import annotations

from functools import cache

import pytest

import tcc
from tcc_certs.proof.check import check_proof
from tcc_runtime.exact import longer
from tcc_runtime.exact.concrete import SessionCall
from tcc_runtime.exact.planned import plan_of

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
