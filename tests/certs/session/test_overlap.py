"""Calls under way together: which pairs of tools commute, and what a ledger may have of them."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tcc_certs.kernel import CheckedArtifact
from tcc_certs.session import overlap, records, validate
from tcc_certs.session.validation import machine_of
from tests.certs.session.test_sessions import first
from tests.oracle_session.writer import KEY, SessionWriter, artifact_of, sealed

TOOLS = """grammar g version "1"
given user from a.who | b.who
tool a(p: text) gives (l: list of text, who: text) { parallel }
tool b(p: text) gives (m: number, who: text) { parallel }
tool c(p: text, n?: number, k: number 0 .. 9) { parallel }
tool d(p: text)
"""


def pairs(statements: str, plan: str = "limit depth <= 3", given: bool = False) -> set[str]:
    """The pairs of tools that commute."""
    text = TOOLS if given else TOOLS.replace("given user from a.who | b.who\n", "")
    artifact = artifact_of(f"{text}{plan}\n{statements}")
    names = [tool.name for tool in artifact.core.tools]
    return {names[one] + names[other] for one, other in machine_of(artifact).commuting}


ALL = {"aa", "ab", "ac", "bb", "bc", "cc"}
# What each statement keeps apart.
ORDERS: list[tuple[str, set[str]]] = [
    ("", set()),
    # The condition of a statement over A reads B.
    ("before a require b(same p)", {"ab"}),
    ("before a require no a(same p)", {"aa"}),
    ("before a(no b(same p)) require p = \"x\"", {"ab"}),
    ("forbid a(b(same p))", {"ab"}),
    ("before a require no b(p = this.p and no c(p = this.p))", {"ab", "ac"}),
    ("before a require count(b.m | c.n) < 3", {"ab", "ac"}),
    ("before any require no b(same p)", {"ab", "bb", "bc"}),
    ("before d require a(same p)", set()),
    # Bounds of limits.
    ("limit count(a | b) per p <= 2 in session", set()),
    ("limit sum(c.k) <= 9", set()),
    ("limit count(a | b) <= 3", set()),
    ("limit count(a) <= count(b(p = \"x\"))", {"ab"}),
    ("limit count(a | b) <= count(c(p = \"x\"))", {"ac", "bc"}),
    ("limit count(a(p ~ \"x.*\")) <= match p { \"x\": 1, else: 2 }", {"aa"}),
    # `last` and `since`.
    ("before d require last(a).who = p", {"aa"}),
    ("before d require last(a.who | b.who) = p", {"aa", "ab", "bb"}),
    ("before d require count(a | b) < 3", set()),
    ("before d require a(same p) since b", {"ab"}),
    ("before d require a(same p) since b(no c(same p))", {"ab", "ac"}),
    ("before d require unused a(same p)", set()),
    ("before a require unused b(same p)", {"aa", "ab"}),
    ("before d require no last(a(no b)).l(it = \"x\")", {"aa"}),
    ("finally require last(a).who = \"x\"", {"aa"}),
    # Obligations.
    ("after a owe b(same p)", {"ab"}),
    ("after a owe d", set()),
    # Totals.
    ("limit price <= 100", set()),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "apart"), ORDERS)
def test_a_statement_orders_the_tools_of_the_table(statement: str, apart: set[str]) -> None:
    assert pairs(statement) == ALL - apart


def test_an_attribute_orders_the_tools_that_it_is_learned_from() -> None:
    assert pairs("", given=True) == ALL - {"aa", "ab", "bb"}
    assert pairs("before c require session.user = p", given=True) == ALL - {
        "aa", "ab", "bb", "ac", "bc",
    }  # fmt: skip


def test_plans_tell_orders_apart() -> None:
    assert pairs("", "plan = (a b | b a) c{0,2}") == {"ab", "cc"}
    assert pairs("", "plan = a b c{0,2} | b c") == {"cc"}
    assert pairs("", "plan = a | b | c") == set()


def test_too_many_paths_and_pairs_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlap, "MAX_PATHS", 8)
    assert pairs("") == set()
    monkeypatch.setattr(overlap, "MAX_PATHS", 10_000)
    assert pairs("") == ALL
    monkeypatch.setattr(overlap, "MAX_COMPARED", 5)
    assert pairs("before a require b(same p)") == set()


# What a ledger may have.

DESK = """grammar desk version "1"
tool read(k: 1 | 2, p: text) { parallel }
tool seek(p: text) gives (r: yes | no) { parallel }
tool send(p: text)
plan = (read | seek | send){0,80}
limit count(read) per p <= 2 in session
"""


def desk() -> CheckedArtifact:
    return artifact_of(DESK)


def test_outcomes_may_come_in_any_order() -> None:
    rng = random.Random(7)
    writer = SessionWriter(desk())
    for round_ in range(5):
        seqs = [writer.call("seek", p=f"{round_} {at}") for at in range(4)]
        seqs.append(writer.call("read", k=1, p=f"{round_}"))
        for seq in rng.sample(seqs, 5):
            what = rng.choice((writer.failed, writer.unknown, None))
            if what is None:
                writer.done({"r": "yes"} if seq != seqs[-1] else None, seq)
            else:
                what(seq)
    writer.end()
    assert validate(writer.ledger(), desk(), key=KEY).claim_type == "Conformant"


def test_a_decision_takes_calls_under_way_as_unknown() -> None:
    writer = SessionWriter(desk())
    writer.call("read", k=1, p="x")
    writer.call("read", k=1, p="x")
    writer.call("read", k=1, p="x", force=True)
    assert first(validate(writer.ledger(), desk())) == ("S302", 4, "call")
    again = SessionWriter(desk())
    again.call("read", k=1, p="x")
    again.call("read", k=1, p="x")
    again.failed(1)
    again.call("read", k=1, p="x")
    assert validate(again.ledger(), desk()).word == "INCOMPLETE"


def test_the_order_of_outcomes_makes_no_difference() -> None:
    """Decisions and positions after any order of the outcomes are the same."""
    ends = set()
    for order in ((1, 2, 3), (2, 1, 3), (3, 1, 2), (3, 2, 1)):
        writer = SessionWriter(desk())
        for at in range(3):
            writer.call("seek", p=f"{at % 2}")
        for seq in order:
            if seq == 2:
                writer.failed(seq)
            else:
                writer.done({"r": "no"}, seq)
        ends.add((tuple(writer.course.states()), writer.check("read", k=1, p="0")))
    assert len(ends) == 1


def test_a_call_that_does_not_commute_waits() -> None:
    for one, other in (("seek", "send"), ("send", "seek"), ("send", "send")):
        writer = SessionWriter(desk())
        writer.call(one, p="x")
        writer.call(other, p="y")
        assert first(validate(writer.ledger(), desk())) == ("L104", 3, "kind")


def test_64_calls_are_under_way_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MAX_UNDER_WAY", 3)
    writer = SessionWriter(desk())
    for at in range(3):
        writer.call("seek", p=f"{at}")
    assert validate(writer.ledger(), desk()).word == "INCOMPLETE"
    writer.call("seek", p="more")
    assert first(validate(writer.ledger(), desk())) == ("L104", 5, "kind")


def test_no_call_begins_with_256_records_after_the_oldest_under_way() -> None:
    for refusals, code in ((255, "D301"), (256, "L104")):
        writer = SessionWriter(desk())
        writer.call("seek", p="x")
        for _ in range(refusals):
            writer.refusal("send", "R201")
        writer.call("seek", p="y")
        assert first(validate(writer.ledger(), desk()))[0] == code


def test_outcomes_of_calls_that_others_follow_do_not_count_as_computed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tcc_certs.session.machine.MAX_REFOLDED", 0)
    writer = SessionWriter(desk())
    for at in range(5):
        writer.call("seek", p=f"{at}")
    for seq in (5, 3, 1, 2, 4):
        writer.done({"r": "yes"}, seq)
    assert validate(writer.ledger(), desk()).word == "INCOMPLETE"


def forged(at: int, **members: Any) -> list[dict[str, Any]]:
    writer = SessionWriter(desk())
    writer.call("seek", p="x")
    writer.call("seek", p="y")
    writer.done({"r": "yes"}, 1)
    writer.done({"r": "yes"}, 2)
    records_ = list(writer.records)
    records_[at] = {**records_[at], **members}
    return records_


def test_an_outcome_is_that_of_a_call_under_way() -> None:
    assert first(validate(sealed(forged(4, seq=1)), desk())) == ("S201", 5, "seq")
    assert first(validate(sealed(forged(3, seq=3)), desk())) == ("S201", 4, "seq")
