"""What the gate remembers of a session is what its monitors say of every resolution of it."""

from __future__ import annotations

import random
import sys
from contextlib import nullcontext
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import tcc
from tcc_certs.core.model import Core
from tcc_certs.kernel import check
from tcc_certs.session import validate
from tests.gate.conftest import validated
from tests.gate.grammars import artifact, bytes_of, do, gate
from tests.oracle_session.brute import Brute, Did

HEAD = """grammar g version "1"

tool a(k: 1 | 2, p: text, q: text)
tool b(k: 1 | 2, p: text, n: number 0 .. 10)
tool t(p: text) gives (r: yes | no)

plan = any{0,14}
"""
MONITORS = [
    "before b require a(same p)",
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


def compiled(statements: list[str]) -> tcc.Gate:
    """A session under these statements; those that say too much of the rest are left out."""
    text = HEAD + "".join(f"{line}\n" for line in statements)
    return gate(text)


@pytest.mark.parametrize("statement", MONITORS)
def test_each_kind_of_monitor_against_its_definition(statement: str) -> None:
    for seed in range(8):
        play(random.Random(f"{statement} {seed}"), [statement])


def test_monitors_together_against_their_definition() -> None:
    for seed in range(30):
        rng = random.Random(seed)
        play(rng, sorted(rng.sample(MONITORS, 3)))


class Monitored(Brute):
    """Brute force without plans: monitors alone."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.session = []

    def unknown(self) -> list[int]:
        """The places of the calls whose outcome is unknown."""
        return [at for at, did in enumerate(self.session) if did.outcome == "unknown"]


def play(rng: random.Random, statements: list[str]) -> None:
    session = compiled(statements)
    core = session.artifact.core
    assert core.monitors
    brute = Monitored(core)
    for _ in range(14):
        settle_one(rng, session, brute)
        tool, arguments = drawn_call(rng)
        did = as_did(core, tool, arguments)
        found = session.check(tool, arguments)
        if found.code in ("R201", "R301"):
            continue
        number = brute.forbidding(did)
        assert found.allowed == (number is None), (statements, brute.session, tool, arguments)
        if number is not None:
            text = core.monitors[number].text
            told = [(one["kind"], one["text"]) for one in found.because]
            assert (found.code, told) == ("R202", [("monitor", text)])
            continue
        outcome = rng.choice(("done", "done", "done", "failed", "unknown"))
        if len(brute.unknown()) > 3:
            outcome = "done"
        answer = rng.choice((0, 1))
        brute.session.append(did)
        with session.call(tool, arguments) as permit:
            under_way(rng, session, brute)
            if outcome == "done":
                permit.done(observed={"r": ("yes", "no")[answer]} if tool == "t" else None)
                did.answer = (answer,) if tool == "t" else ()
            elif outcome == "failed":
                permit.failed()
        did.outcome = outcome


def under_way(rng: random.Random, session: tcc.Gate, brute: Monitored) -> None:
    """While a call is under way, its outcome is taken as unknown."""
    core = session.artifact.core
    for _ in range(4):
        tool, arguments = drawn_call(rng)
        found = session.check(tool, arguments)
        if found.code not in ("R201", "R301"):
            number = brute.forbidding(as_did(core, tool, arguments))
            text = "" if number is None else core.monitors[number].text
            assert (found.allowed, found.place) == (number is None, text)


def settle_one(rng: random.Random, session: tcc.Gate, brute: Monitored) -> None:
    """Now and then an unknown outcome becomes known."""
    unknown = brute.unknown()
    if not unknown or rng.random() < 0.6:
        return
    at = rng.choice(unknown)
    did = brute.session[at]
    did.outcome = "failed" if rng.random() < 0.5 else "done"
    told = None
    if did.outcome == "done":
        did.answer = (rng.choice((0, 1)),) if None in did.values else ()
        told = {"r": ("yes", "no")[did.answer[0]]} if did.answer else None
    session.resolve(at + 1, did.outcome, told)


def as_did(core: Core, tool: str, arguments: dict[str, Any]) -> Did:
    number = next(at for at, one in enumerate(core.tools) if one.name == tool)
    values = tuple(
        None if p.observed else p.values.index(str(arguments[p.name]))
        for p in core.tools[number].parameters
    )
    opened = {name: arguments[name] for name in ("p", "q", "n") if name in arguments}
    return Did(tool=number, values=values, opened=opened)


def test_a_late_answer_counts_from_where_its_call_was(tmp_path: Any) -> None:
    text = HEAD + "before b require t(r = yes, same p)\n"
    session = gate(text, ledger=tmp_path / "s.ledger")
    with session.call("t", {"p": "x"}):
        pass
    assert session.check("b", {"k": 1, "p": "x", "n": 1}).code == "R201"
    session.resolve(1, "done", {"r": "yes"})
    do(session, "b", {"k": 1, "p": "x", "n": 1})
    assert session.check("b", {"k": 1, "p": "y", "n": 1}).code == "R202"


def test_a_session_that_is_reopened_remembers_the_same(tmp_path: Any) -> None:
    for seed in range(12):
        rng = random.Random(f"taken {seed}")
        text = HEAD + "".join(f"{line}\n" for line in sorted(rng.sample(MONITORS, 2)))
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
    assert '"show":["a.q","b.n"]' in text and "secret" not in text
    assert '"type":"n","value":"3.25"' in text and '"type":"s","value":"open"' in text
    found = validate(path.read_bytes(), check(bytes_of(session.artifact)))
    assert found.claim_type == "Conformant"


def test_what_is_left_under_way_is_what_is_left_after_an_unknown_outcome() -> None:
    text = HEAD + "limit sum(b.n) <= 12.5\nlimit count(b(k = 2)) <= 3\nlimit depth <= 9\n"
    session = gate(text)
    do(session, "b", {"k": 2, "p": "x", "n": 2.5})
    with session.call("b", {"k": 2, "p": "x", "n": 3}):
        during = session.remaining
        names = ("calls", "uses(b(k=2))", "sum(b.n)")
        assert [str(during[name]) for name in names] == ["7", "1", "7"]
    assert session.remaining == during
    session.resolve(2, "failed")
    assert [str(session.remaining[name]) for name in names] == ["8", "2", "10"]


@pytest.mark.parametrize("limits", [("0", "2.5"), ("2.5", "0"), ("7", "2"), ("2", "7")])
def test_of_two_limits_on_one_sum_the_tighter_one_is_what_is_left(limits: tuple[str, str]) -> None:
    session = gate(HEAD + "".join(f"limit sum(b.n) <= {most}\n" for most in limits))
    assert session.remaining["sum(b.n)"] == min(map(Decimal, limits))
    assert not session.check("b", {"k": 1, "p": "x", "n": 2.25}).allowed


def test_what_is_left_is_the_sum_of_what_was_taken() -> None:
    limits = "limit price <= 90\nlimit count(t) <= 9\nlimit cost <= 50\nlimit sum(a.k) <= 20\n"
    text = (HEAD + limits).replace("(k: 1 | 2; p: text, q: text)",
                                   "(k: 1 | 2; p: text, q: text) { cost 0.5 price 3 }")  # fmt: skip
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
            due = {"price": 90, "uses(t)": 9, "cost": Decimal(50), "sum(a.k)": Decimal(20)}
            for one in session.history:
                counts = one.outcome != "failed"
                if one.call == "t":
                    due["uses(t)"] -= counts
                    due["price"] -= counts * (2 if one.observed.get("r") == "no" else 7)
                elif one.call.startswith("a"):
                    due["price"] -= 3 * counts
                    due["cost"] -= Decimal("0.5") * counts
                    due["sum(a.k)"] -= int(one.call[-2]) * counts
            left = session.remaining
            assert {name: left[name] for name in due} == due


@pytest.mark.parametrize("under", [False, True])
def test_a_check_and_what_is_left_cost_the_same_after_any_history(under: bool) -> None:
    text = HEAD.replace("{0,14}", "{0,700}") + "limit sum(b.n) <= 5000\nlimit price <= 9\n"
    text += "before b require no a(q = this.p)\nbefore a require no b(p = this.q)\n"

    def steps(calls: int) -> int:
        """Lines of Python that two questions run: no clock, no chance."""
        session = gate(text)
        arguments = {"k": 1, "p": "x", "n": 1}
        for _ in range(calls):
            do(session, "b", arguments)
        with session.call("b", arguments) if under else nullcontext():
            session.check("b", arguments), session.remaining  # what is made once is made
            count = 0

            def trace(_frame: Any, event: str, _given: Any) -> Any:
                nonlocal count
                count += event == "line"
                return trace

            before = sys.gettrace()
            sys.settrace(trace)
            try:
                session.check("b", arguments)
                session.remaining  # noqa: B018
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
