"""Limits across sessions: what the records of calls have of their draws (S213)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tcc_certs.policy.meaning import policy_of
from tcc_certs.session import validate
from tcc_certs.session.across import limits_across
from tests.certs.session.test_entries import core_of
from tests.certs.session.test_sessions import first
from tests.oracle_session.writer import START_MS, SessionWriter, artifact_of, sealed

DESK = """grammar desk version "1"
given who?: text
tool rate(most: number)
tool pay(to: text, amount: number 0 .. 500)
limit depth <= 9
limit sum(pay.amount) per to <= last(rate).most across sessions
limit count(pay within 1 d) per session.who <= 3 across sessions
"""
ACCOUNT, ANN, BOB, ME = "ac" * 32, "aa" * 32, "bb" * 32, "cc" * 32


def draw(limit: int, amount: int, bound: int, left: int, key: str | None = ANN) -> dict[str, Any]:
    found = {"limit": limit, "amount": str(amount), "bound": str(bound), "left": str(left)}
    return found if key is None else {**found, "key": key}


def across(*draws: dict[str, Any], at_ms: int = START_MS, attempt: int = 0) -> dict[str, Any]:
    return {"account": ACCOUNT, "at_ms": at_ms, "attempt": attempt, "draws": list(draws)}


def session() -> SessionWriter:
    writer = SessionWriter(artifact_of(DESK), given={"who": "me"})
    writer.made("rate", most=100)
    for to, key, left in (("ann", ANN, 90), ("bob", BOB, 100 - 10), ("ann", ANN, 20)):
        draws = across(draw(1, 10, 100, left, key), draw(2, 1, 3, 0, ME))
        writer.call("pay", across=draws, to=to, amount=10)
        writer.done()
    return writer


def test_a_call_has_the_draws_that_it_makes() -> None:
    found = validate(session().ledger(), artifact_of(DESK))
    assert found.word == "INCOMPLETE", found.findings
    text = f"3 calls had room under limits across sessions: account {ACCOUNT} shows it (--account)"
    assert text in found.asserted


CHANGES: list[tuple[int, dict[str, Any] | None, str]] = [
    (3, None, "across"),
    (1, across(draw(1, 10, 100, 90)), "across"),
    (3, across(draw(1, 10, 100, 90)), "across.draws"),
    (3, across(draw(2, 1, 3, 0, ME), draw(1, 10, 100, 90)), "across.draws"),
    (3, across(draw(1, 11, 100, 80), draw(2, 1, 3, 0, ME)), "across.draws"),
    (3, across(draw(1, 10, 99, 80), draw(2, 1, 3, 0, ME)), "across.draws"),
    (3, across(draw(1, 10, 100, 91), draw(2, 1, 3, 0, ME)), "across.draws.left"),
    (3, across(draw(1, 10, 100, -1), draw(2, 1, 3, 0, ME)), "across.draws.left"),
    (3, across(draw(1, 10, 100, 90, None), draw(2, 1, 3, 0, ME)), "across.draws.key"),
    (5, across(draw(1, 10, 100, 90, ANN), draw(2, 1, 3, 0, ME)), "across.draws.key"),
    (7, across(draw(1, 10, 100, 90, BOB), draw(2, 1, 3, 0, ME)), "across.draws.key"),
    (5, {**across(draw(1, 10, 100, 90, BOB), draw(2, 1, 3, 0, ME)), "account": "0" * 64},
     "across.account"),
    (5, across(draw(1, 10, 100, 90, BOB), draw(2, 1, 3, 0, ME), at_ms=START_MS - 1),
     "across.at_ms"),
]  # fmt: skip


@pytest.mark.parametrize("at", range(len(CHANGES)))
def test_other_draws_are_refused(at: int) -> None:
    line, member, name = CHANGES[at]
    records = json.loads(json.dumps(session().records))
    records[line] = {**records[line], "across": member}
    if member is None:
        del records[line]["across"]
    found = validate(sealed(records), artifact_of(DESK))
    assert first(found) == ("S213", line + 1, name)


def test_the_bound_is_the_least_that_it_may_be() -> None:
    for bound, code in ((50, "D301"), (100, "S213")):
        writer = SessionWriter(artifact_of(DESK), given={"who": "me"})
        writer.made("rate", most=100)
        writer.call("rate", most=50)
        writer.unknown()
        draws = across(draw(1, 10, bound, 5), draw(2, 1, 3, 0, ME))
        writer.call("pay", across=draws, to="ann", amount=10)
        assert first(validate(writer.ledger(), artifact_of(DESK)))[0] == code


def test_a_draw_with_an_unknown_key_has_no_key() -> None:
    artifact = artifact_of(
        'grammar g version "1"\ntool a(n?: number)\nlimit depth <= 9\n'
        "limit count(a) per n + 1 <= 3 across sessions"
    )
    for key, arguments, code in ((None, {}, "D301"), (ANN, {}, "S213"), (ANN, {"n": 1}, "D301")):
        writer = SessionWriter(artifact)
        writer.call("a", across=across(draw(1, 1, 3, 0, key)), **arguments)
        assert first(validate(writer.ledger(), artifact))[0] == code


# The names of counts.

BASE = "tool a(k: text, n: number 0 .. 9)\ntool b(k: text, n: number 0 .. 9)\n"


def name(statement: str, before: str = "") -> str:
    core = core_of(f"{before}{BASE}{statement} across sessions")
    (limit,) = limits_across(core, policy_of(core).rules).values()
    return limit.name


def test_the_name_of_a_count_is_without_bound_and_window() -> None:
    one = name("limit count(a) per k <= 3")
    assert one == name("limit count(a within 1 d) per k <= 9")
    others = ["count(b) per k", "count(a | b) per k", "count(a) per n", "sum(a.n) per k",
              "count(a(n = 1)) per k", "count(a(n = 2)) per k", "count(a)"]  # fmt: skip
    names = [name(f"limit {other} <= 3") for other in others]
    assert len({one, *names}) == 8


def test_definitions_are_replaced_by_their_bodies() -> None:
    plain = name('limit count(a(this.k = "x" and this.n > 2)) per k <= 3')
    lets = 'let big(m) = this.n > m\nlet mine = this.k = "x"\n'
    assert plain == name("limit count(a(mine and big(2))) per k <= 3", lets)
    other = 'let big(m) = this.n > m\nlet mine = this.k = "y"\n'
    assert plain != name("limit count(a(mine and big(2))) per k <= 3", other)
