"""What a refusal says beside its statement: what is not true, which arguments, what would do."""

from __future__ import annotations

from typing import Any

import pytest

import tcc
from tests.gate.grammars import artifact, do

GRAMMAR = """grammar desk version "1"

given user: text
given desk?: first | second

tool find(order: text) gives (owner: text, total: number 0 .. 1000, items: list of text)
tool offers(day: date) gives (free: integer 0 .. 100)
tool approve(order: text, amount: number 0 .. 500) gives (answer: yes | no)
tool refund(order: text, amount: number 0 .. 500)
tool ship(order: text, speed: slow | fast, day?: date, items: list of text)
tool close { price 4 }

let seen = last(find(same order))
let offer(d) = last(offers(day = d))

limit depth <= 30
"""
FIND = ("find", {"order": "a"}, {"owner": "ann", "total": 100, "items": ["x"]})
REFUND = {"order": "a", "amount": 60}
SHIP = {"order": "a", "speed": "fast", "day": "2030-01-02", "items": ["y"]}
LONG = "x" * 200

# Statement, calls made, the refused call, and its relation, arguments and remedy.
ROWS: list[tuple[str, list[Any], tuple[str, Any], tuple[str, str, str]]] = [
    ("before close require find", [], ("close", {}), ("find", "", "find")),
    (
        "before refund require find(same order)", [], ("refund", REFUND),
        ("find(same order)", 'order = "a"', 'find(order = "a")'),
    ),
    (
        "before refund(amount > 50) require unused approve(same (order, amount), answer = yes)",
        [], ("refund", REFUND),
        (
            "unused approve(same (order, amount), answer = yes)", 'order = "a", amount = 60',
            'amount <= 50 or unused approve(order = "a", amount = 60, answer = yes)',
        ),
    ),
    (
        "before refund require seen.owner = session.user and amount <= seen.total",
        [FIND], ("refund", {"order": "a", "amount": 160}),
        ("amount <= seen.total", 'order = "a", amount = 160',
         'amount <= last(find(order = "a")).total'),
    ),
    (
        "before refund { let o = last(find(same order))  require o.total > 500 or amount < 9 }",
        [FIND], ("refund", REFUND),
        ("o.total > 500 or amount < 9", 'order = "a", amount = 60',
         'last(find(order = "a")).total > 500 or amount < 9'),
    ),
    (
        "before ship require offer(day).free >= 1", [], ("ship", SHIP),
        ("offer(day).free >= 1", 'day = "2030-01-02"',
         'last(offers(day = "2030-01-02")).free >= 1'),
    ),
    (
        "before ship require every items(it in seen.items)", [FIND], ("ship", SHIP),
        ("every items(it in seen.items)", 'order = "a"',
         'every items(it in last(find(order = "a")).items)'),
    ),
    (
        "before ship(speed = fast, day != null) require find within 1 h", [], ("ship", SHIP),
        ("find within 1 h", 'speed = fast, day = "2030-01-02"',
         "speed != fast or day = null or find within 1 h"),
    ),
    (
        "before refund require no find(same order)", [("find", {"order": LONG}, FIND[2])],
        ("refund", {"order": LONG, "amount": 1}),
        ("no find(same order)", "", "no find(same order)"),
    ),
    (
        "forbid refund(amount > 50)", [], ("refund", REFUND),
        ("amount > 50", "amount = 60", "amount <= 50"),
    ),
    ("forbid close", [], ("close", {}), ("", "", "")),
    (
        'forbid ship(not order = "b", speed = fast)', [], ("ship", SHIP),
        ('not order = "b", speed = fast', 'order = "a", speed = fast',
         'order = "b" or speed != fast'),
    ),
    (
        "limit sum(refund.amount) per order <= 100 in session", [("refund", REFUND, None)],
        ("refund", REFUND), ("60 + 60 <= 100", 'order = "a", amount = 60', "amount <= 40"),
    ),
    (
        "limit count(refund) <= 1", [("refund", REFUND, None)], ("refund", REFUND),
        ("1 + 1 <= 1", "", ""),
    ),
    (
        "limit count(refund within 1 h) per order <= 1 in session", [("refund", REFUND, None)],
        ("refund", REFUND),
        ("1 + 1 <= 1", 'order = "a"', 'now >= "1970-01-01T01:00:00.001+00:00"'),
    ),
    (
        "limit sum(refund.amount) per order <= seen.total in session", [], ("refund", REFUND),
        ("seen.total", 'order = "a", amount = 60', ""),
    ),
    ("limit price <= 7", [("close", {}, None)], ("close", {}), ("price: 8 <= 7", "", "")),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "made", "refused", "expected"), ROWS)
def test_a_refusal_says_what_is_not_true_which_arguments_matter_and_what_would_do(
    statement: str, made: list[Any], refused: tuple[str, Any], expected: tuple[str, str, str]
) -> None:
    found = artifact(GRAMMAR + statement + "\n")
    with tcc.Gate(found, given={"user": "ann"}, clock=lambda: 0) as session:
        for tool, arguments, result in made:
            do(session, tool, arguments, result=result)
        (reason,) = session.check(*refused).because
    names = ("relation", "arguments", "remedy")
    assert reason["text"] == statement
    assert tuple([reason.get(name, "") for name in names]) == expected


def test_what_would_do_is_allowed() -> None:
    statement = "before refund(amount > 50) require approve(same (order, amount), answer = yes)"
    with tcc.Gate(artifact(GRAMMAR + statement), given={"user": "ann"}) as session:
        (reason,) = session.check("refund", REFUND).because
        assert reason["remedy"] == (
            'amount <= 50 or approve(order = "a", amount = 60, answer = yes)'
        )
        assert session.check("refund", {"order": "a", "amount": 50}).allowed
        do(session, "approve", REFUND, result={"answer": "yes"})
        assert session.check("refund", REFUND).allowed


def test_an_overdue_debt_names_its_call_and_the_call_that_pays() -> None:
    now = [0]
    text = GRAMMAR + "after refund owe find(order = this.order) within 1 m\n"
    with tcc.Gate(artifact(text), given={"user": "ann"}, clock=lambda: now[0]) as session:
        do(session, "close")
        do(session, "refund", REFUND)
        expected = {
            "kind": "owe", "text": "after refund owe find(order = this.order) within 1 m",
            "because": None, "relation": "call 2, refund",
            "arguments": 'order = "a"', "remedy": 'find(order = "a")',
        }  # fmt: skip
        with pytest.raises(tcc.Refused) as refusal:
            session.finish()
        assert (refusal.value.code, refusal.value.because) == ("R204", [expected])
        now[0] = 60_001
        decision = session.check("refund", REFUND)
        assert (decision.code, decision.because) == ("R208", [expected])


def test_an_unmet_finally_says_the_part_that_is_not_true() -> None:
    statement = "finally require close and count(refund) <= 3"
    with tcc.Gate(artifact(GRAMMAR + statement), given={"user": "ann"}) as session:
        with pytest.raises(tcc.Refused) as refusal:
            session.finish()
        (reason,) = refusal.value.because
        assert (reason["text"], reason["relation"]) == (statement, "close")
