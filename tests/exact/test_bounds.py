"""Limits and totals bound counts and sums, for a gate whose automaton holds none of them."""

from __future__ import annotations

from functools import cache

import pytest

import tcc
from tcc_certs.proof.check import check_proof
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
        assert found.proof is not None and found.used
        assert not check_proof(found.proof, artifact_of(TEXT).core).of_plans


def test_a_sum_with_amounts_below_0_bounds_no_part_of_it() -> None:
    negative = TEXT.replace("limit price <= 10", "before pay require sum((pay | credit).amount) "
                            "+ amount <= 5")  # fmt: skip
    asked = "limit sum(pay.amount) <= 5 in session"
    assert tcc.prove(artifact_of(negative), asked, timeout=60).verdict == "refuted"
    positive = negative.replace("number -100 ..", "number 0 ..")
    assert tcc.prove(artifact_of(positive), asked, timeout=60).verdict == "proved"
