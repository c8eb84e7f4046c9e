"""What the gate decides of statements is what the definition decides, whatever is unknown."""

from __future__ import annotations

import random
import sys
from contextlib import nullcontext
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import tcc
from tcc_certs.kernel import check
from tcc_certs.policy.course import Course
from tcc_certs.policy.meaning import policy_of
from tcc_certs.session import validate
from tests.gate.conftest import validated
from tests.gate.grammars import artifact, bytes_of, do, gate

HEAD = """grammar g version "1"

tool a(k: 1 | 2, p: text, q: text)
tool b(k: 1 | 2, p: text, n: number 0 .. 10)
tool t(p: text) gives (r: yes | no)

plan = any{0,14}
"""
STATEMENTS = [
    "before b require a(same p)",
    "before b require last(a | b).k = 1 or no a",
    "before b require count(a(same p)) <= 2 and every a(same p, k = 1)(q != this.p)",
    "before b(n > 3) require sum(b(same p).n) <= 9",
    "after a(k = 2) owe b(same p)",
    "before b require a(q = this.p)",
    "before b require a(k = 1, same p)",
    "before b require a(same (k, p))",
    "before b require unused a(same p)",
    "before a require unused a(p = this.q)",
    "before a(k = 2) require unused a(same p)",
    "before a(k = 2) require unused a(k = 1, p = this.q)",
    "before b require t(r = yes, same p)",
    "before b require unused t(r = yes, same p)",
    "before b require no t(r = yes, same p)",
    "before a require no t(r = no, p = this.q)",
    "before t require no t(r = yes, same p)",
    "before b require no a(same p)",
    "before a require no a(p = this.q)",
    "before a require no a(same p)",
    "before b require no a(same (p, k))\nbefore a require no b(same (p, k))",
    "before a require no a(p = this.q)\nbefore a require no a(q = this.p)",
    "limit sum(b.n) <= 12.5",
    "limit count(b) per p <= 2 in session",
    "limit count(a(k = 2)) per q <= 1 in session",
]


def drawn_call(rng: random.Random) -> tuple[str, dict[str, Any]]:
    p, q = rng.choice("xy"), rng.choice("xy")
    return rng.choice(
        [
            ("a", {"k": rng.choice((1, 2)), "p": p, "q": q}),
            ("b", {"k": rng.choice((1, 2)), "p": p, "n": rng.choice((0, 0.5, 3, 9.25))}),
            ("t", {"p": p}),
        ]
    )


@pytest.mark.parametrize("statement", STATEMENTS)
def test_each_statement_against_its_definition(statement: str, tmp_path: Path) -> None:
    for seed in range(8):
        rng = random.Random(f"{statement} {seed}")
        play(rng, [statement], tmp_path / f"{seed}.ledger" if seed % 2 else None)


def test_statements_together_against_their_definition(tmp_path: Path) -> None:
    for seed in range(30):
        rng = random.Random(seed)
        ledger = tmp_path / f"{seed}.ledger" if seed % 2 else None
        play(rng, sorted(rng.sample(STATEMENTS, 3)), ledger)


def play(rng: random.Random, statements: list[str], ledger: Path | None) -> None:
    """A session at random, in memory or with a ledger; the definition decides JSON values."""
    text = HEAD + "".join(f"{line}\n" for line in statements)
    session = gate(text, ledger=ledger, durable=False)
    core = session.artifact.core
    course = Course(policy_of(core))
    calls: list[Any] = []
    for _ in range(14):
        settle_one(rng, session, course, calls)
        tool, arguments = drawn_call(rng)
        if not agree(session, course, tool, arguments):
            continue
        outcome = rng.choice(("done", "done", "done", "failed", "unknown"))
        if sum(one.outcome == "unknown" for one in session.history) > 3:
            outcome = "done"
        answer = {"r": rng.choice(("yes", "no"))} if tool == "t" else None
        calls.append(course.call(tool, arguments))
        with session.call(tool, arguments) as permit:
            for _ in range(4):
                agree(session, course, *drawn_call(rng))
            if outcome == "done":
                permit.done(observed=answer)
            elif outcome == "failed":
                permit.failed()
        course.record(calls[-1], outcome, answer)
        if rng.random() < 0.2 and ledger is not None:
            session.close()
            session = gate(text, ledger=ledger, durable=False)
    assert {one["text"] for one in session.owed} <= set(statements)


def agree(session: tcc.Gate, course: Course, tool: str, arguments: dict[str, Any]) -> bool:
    """Whether a call is allowed, by the gate and by the definition."""
    found, refusals = session.check(tool, arguments), course.check(tool, arguments)
    if not refusals:
        assert found.allowed or found.code in ("R201", "R301")
        return found.allowed
    texts = [session._policy.texts[one.statement] for one in refusals]
    assert (found.code, found.statement) == (refusals[0].code, refusals[0].statement)
    assert found.place == texts[0] and [one["text"] for one in found.because] == texts
    return False


def settle_one(rng: random.Random, session: tcc.Gate, course: Course, calls: list[Any]) -> None:
    """Now and then an unknown outcome becomes known."""
    unknown = [one.seq for one in session.history if one.outcome == "unknown"]
    if not unknown or rng.random() < 0.6:
        return
    seq = rng.choice(unknown)
    outcome, answer = rng.choice(("failed", "done")), None
    if outcome == "done" and calls[seq - 1].tool == "t":
        answer = {"r": rng.choice(("yes", "no"))}
    session.resolve(seq, outcome, answer)  # type: ignore[arg-type]
    course.record(calls[seq - 1], outcome, answer)


def test_a_late_answer_counts_from_where_its_call_was(tmp_path: Any) -> None:
    text = HEAD + "before b require t(r = yes, same p)\n"
    session = gate(text, ledger=tmp_path / "s.ledger")
    with session.call("t", {"p": "x"}):
        pass
    assert session.check("b", {"k": 1, "p": "x", "n": 1}).code == "R202"
    session.resolve(1, "done", {"r": "yes"})
    do(session, "b", {"k": 1, "p": "x", "n": 1})
    assert session.check("b", {"k": 1, "p": "y", "n": 1}).code == "R202"


def test_a_session_that_is_reopened_remembers_the_same(tmp_path: Any) -> None:
    for seed in range(12):
        rng = random.Random(f"taken {seed}")
        text = HEAD + "".join(f"{line}\n" for line in sorted(rng.sample(STATEMENTS, 2)))
        path = tmp_path / f"{seed}.ledger"
        session = gate(text, ledger=path, durable=False)
        for _ in range(10):
            tool, arguments = drawn_call(rng)
            if not session.check(tool, arguments).allowed:
                continue
            with session.call(tool, arguments) as permit:
                if rng.random() < 0.7:
                    permit.done(observed={"r": rng.choice(("yes", "no"))})
        again = gate(text, ledger=path, durable=False)
        assert again.history == session.history and again.head == session.head
        for _ in range(20):
            tool, arguments = drawn_call(rng)
            one, two = session.check(tool, arguments), again.check(tool, arguments)
            assert (one.code, one.place) == (two.code, two.place)


def test_what_is_added_up_is_shown_and_nothing_else(tmp_path: Any) -> None:
    path = tmp_path / "s.ledger"
    session = gate(HEAD + "limit sum(b.n) <= 12.5\n", ledger=path, show=["a.q"])
    do(session, "a", {"k": 1, "p": "secret", "q": "open"})
    do(session, "b", {"k": 1, "p": "secret", "n": 3.25})
    session.finish()
    text = path.read_text()
    assert '"show":["a.q"]' in text and "secret" not in text
    assert '"type":"n","value":"3.25"' in text and '"type":"s","value":"open"' in text
    found = validate(path.read_bytes(), check(bytes_of(session.artifact)))
    assert found.claim_type == "Conformant"


def test_what_is_left_under_way_is_what_is_left_after_an_unknown_outcome() -> None:
    limits = ("limit depth <= 9", "limit count(b(k = 2)) <= 3", "limit sum(b.n) <= 12.5")
    session = gate(HEAD + "\n".join(limits))
    do(session, "b", {"k": 2, "p": "x", "n": 2.5})
    with session.call("b", {"k": 2, "p": "x", "n": 3}):
        during = session.remaining
        assert [str(during[text]) for text in limits] == ["7", "1", "7"]
    assert session.remaining == during
    session.resolve(2, "failed")
    assert [str(session.remaining[text]) for text in limits] == ["8", "2", "10"]


def test_what_is_left_of_a_limit_by_key_is_said_by_the_values_of_its_key(tmp_path: Path) -> None:
    limit = "limit count(b) per p, k <= 2 in session"
    for ledger in (None, tmp_path / "s.ledger"):
        session = gate(HEAD + limit, ledger=ledger)
        assert session.remaining == {limit: {}}
        do(session, "b", {"k": 2, "p": "x", "n": 0})
        do(session, "b", {"k": 1, "p": "y", "n": 0})
        do(session, "b", {"k": 1, "p": "y", "n": 1})
        left = session.remaining[limit]
        assert isinstance(left, dict) and list(left.values()) == [1, 0]
        if ledger is None:
            assert left == {"x, 2": 1, "y, 1": 0}
        else:  # the ledger has a digest of the text
            digests = [key.removesuffix(f", {k}") for key, k in zip(left, (2, 1), strict=True)]
            assert [len(bytes.fromhex(digest)) for digest in digests] == [32, 32]


def test_what_is_left_is_not_said_of_a_bound_that_depends_on_the_call() -> None:
    limits = ("limit sum(b.n) <= 2 * n", "limit count(b) <= 2 + count(a)")
    session = gate(HEAD + "\n".join(limits))
    do(session, "a", {"k": 1, "p": "x", "q": "y"})
    assert session.remaining == dict(zip(limits, (None, 3), strict=True))


def test_what_is_owed_has_its_text_its_call_and_its_deadline() -> None:
    texts = ("after a owe b(same p)", "after t owe b(same p) within 2 h")
    because = ' because "b pays"'
    clock = [5]
    session = gate(HEAD + f"{texts[0]}{because}\n{texts[1]}", clock=lambda: clock[0])
    do(session, "a", {"k": 1, "p": "x", "q": "y"})
    clock[0] = 10
    do(session, "t", {"p": "y"})
    assert session.owed == [
        {"text": texts[0], "because": "b pays", "call": 1},
        {"text": texts[1], "because": None, "call": 2, "due_ms": 10 + 7_200_000},
    ]
    assert not session.may_finish
    do(session, "b", {"k": 1, "p": "x", "n": 0})
    clock[0] = 7_200_011
    assert session.check("t", {"p": "x"}).code == "R208"
    do(session, "b", {"k": 1, "p": "y", "n": 0})  # a late call pays, too
    assert session.owed == [] and session.may_finish


def test_what_is_left_is_the_sum_of_what_was_taken() -> None:
    limits = (
        "limit price <= 90",
        "limit count(t) <= 9",
        "limit cost <= 50",
        "limit sum(a.k) <= 20",
    )
    text = (HEAD + "\n".join(limits)).replace(
        "(k: 1 | 2, p: text, q: text)", "(k: 1 | 2, p: text, q: text) { cost 0.5 price 3 }"
    )
    text = text.replace("(r: yes | no)", "(r: yes | no) { price 7 when r = yes price 2 }")
    for seed in range(20):
        rng, session = random.Random(f"left {seed}"), gate(text)
        for _ in range(12):
            tool, arguments = drawn_call(rng)
            if session.check(tool, arguments).allowed:
                with session.call(tool, arguments) as permit:
                    outcome = rng.random()
                    if outcome < 0.6:
                        permit.done(observed={"r": rng.choice(("yes", "no"))})
                    elif outcome < 0.8:
                        permit.failed()
            unknown = [one for one in session.history if one.outcome == "unknown"]
            if unknown and rng.random() < 0.5:
                one = rng.choice(unknown)
                told = {"r": "yes"} if one.call == "t" else None
                session.resolve(one.seq, *rng.choice([("failed", None), ("done", told)]))
            price, count, cost, total = 90, 9, Decimal(50), 20
            for one in session.history:
                counts = one.outcome != "failed"
                if one.call == "t":
                    count -= counts
                    price -= counts * (2 if one.observed.get("r") == "no" else 7)
                elif one.call.startswith("a"):
                    price -= 3 * counts
                    cost -= Decimal("0.5") * counts
                    total -= int(one.call[-2]) * counts
            assert session.remaining == dict(zip(limits, (price, count, cost, total), strict=True))


@pytest.mark.parametrize("under", [False, True])
def test_a_check_costs_the_same_after_any_history(under: bool) -> None:
    text = HEAD.replace("{0,14}", "{0,700}") + "limit sum(b.n) <= 5000\nlimit price <= 9\n"
    text += "before b require no a(q = this.p)\nbefore a require no b(p = this.q)\n"

    def steps(calls: int) -> int:
        """Lines of Python that a check runs: no clock, no chance."""
        session = gate(text)
        arguments = {"k": 1, "p": "x", "n": 1}
        for _ in range(calls):
            do(session, "b", arguments)
        with session.call("b", arguments) if under else nullcontext():
            session.check("b", arguments)  # what is made once is made
            count = 0

            def trace(_frame: Any, event: str, _given: Any) -> Any:
                nonlocal count
                count += event == "line"
                return trace

            before = sys.gettrace()
            sys.settrace(trace)
            try:
                session.check("b", arguments)
            finally:
                sys.settrace(before)
        return count

    assert steps(600) <= steps(5) + 20


BODIES = """grammar g version "1"

tool draft(body: json)
tool send(body: json)

plan = any{0,9}
"""


@pytest.mark.parametrize(
    ("statement", "allowed"),
    [
        ("limit count(send) per body <= 1 in session", "001"),
        ("limit count(send within 1 h) per body <= 1 in session", "001"),
        ("before send require draft(same body)", "110"),
        ("before send require unused draft(same body)", "100"),
        ("before send require no draft(same body)", "001"),
        ("before send require no draft(same body)\nbefore draft require no send(same body)", "001"),
    ],
)
def test_json_is_compared_as_its_canonical_text(
    statement: str, allowed: str, tmp_path: Path
) -> None:
    found = artifact(f"{BODIES}{statement}\n")
    ledger = tmp_path / "s.ledger"
    one, written_otherwise, another = {"a": 1, "b": [2]}, {"b": [2.0], "a": 1.0}, {"a": "1"}
    with tcc.Gate(found, ledger=ledger, durable=False) as gate:
        for tool in ("draft", "send") if statement.startswith("limit") else ("draft",):
            with gate.call(tool, {"body": one}) as permit:
                permit.done()
        made = ""
        for body in (one, written_otherwise, another):
            made += str(int(gate.check("send", {"body": body}).allowed))
            if made[-1] == "1":
                with gate.call("send", {"body": body}) as permit:
                    permit.done()
    assert made == allowed
    assert [str(one.code) for one in validated(ledger).findings] == ["D301"]
