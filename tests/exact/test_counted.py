"""The search passes a bound on a count or a sum with few calls, all of which a gate allows."""

from __future__ import annotations

import pytest

import tcc

HEAD = """grammar g version "1"
tool find(k: text)
tool pay(k: text, x: integer 0 .. 10) gives (fee: number 0 .. 50)
tool send(k: text)
before pay require find(same k)
"""
PAIRS = "limit count(pay) per k <= 2 in session\n"


@pytest.mark.parametrize(
    ("policy", "question", "paid"),
    [
        ("", "before send require sum(pay.x) <= 20", 3),
        ("", "before send require sum(pay(same k).x) <= 40", 5),
        ("", "before send require sum(pay(same k, x <= 4).x) <= 40", 11),
        ("", "before send require sum(pay.fee) <= 120", 3),
        ("", "before send require count(pay) <= 12", 13),
        ("", "before send require count(distinct(pay.k)) <= 12", 13),
        ("", "finally require sum(pay.x) <= 30", 4),
        ("", "limit sum(pay.x) <= 100", 11),
        (PAIRS, "before send require sum(pay.x) <= 40", 5),
        (PAIRS, "limit sum(pay.x) <= 50", 6),
        (PAIRS, "limit sum(pay.x) per k <= 19 in session", 2),
    ],
)
def test_a_bound_is_exceeded_by_few_calls(policy: str, question: str, paid: int) -> None:
    found = tcc.prove(tcc.compile_text(HEAD + policy), question)
    assert found.verdict == "refuted" and found.session is not None
    assert sum(one["tool"] == "pay" for one in found.session) == paid


@pytest.mark.parametrize(
    "question",
    [
        "before send require sum(pay(same k).x) <= 20",
        "limit sum(pay.x) per k <= 20 in session",
    ],
)
def test_a_bound_that_the_policy_keeps_is_proved(question: str) -> None:
    assert tcc.prove(tcc.compile_text(HEAD + PAIRS), question).verdict == "proved"
