"""What the gate remembers of a session is what the definition of monitors remembers."""

from __future__ import annotations

import random
import sys
from contextlib import nullcontext
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

import tcc
from tcc_certs.kernel import check
from tcc_certs.session import validate
from tcc_certs.session.monitors import Made, Memory
from tests.gate.grammars import bytes_of, do, gate

HEAD = """grammar g version "1"
tool a(k: 1 | 2; p: text, q: text)
tool b(k: 1 | 2; p: text, n: number 0 .. 10)
tool t(; p: text) gives (r: yes | no)
plan = any{0,14}
"""
MONITORS = [
    "require a before b same p",
    "require a before b same q = p",
    "require a(k=1) before b same p",
    "require a before b same k, p",
    "require a before each b same p",
    "require a before each a same p = q",
    "require a before each a(k=2) same p",
    "require a(k=1) before each a(k=2) same p = q",
    "require t(r=yes) before b same p",
    "require t(r=yes) before each b same p",
    "forbid t(r=yes) before b same p",
    "forbid t(r=no) before a same p = q",
    "forbid t(r=yes) before t same p",
    "forbid a before b same p",
    "forbid a before a same p = q",
    "forbid a before a same p",
    "forbid a with b same p, k",
    "forbid a with a same p = q",
    "limit sum(b.n) <= 12.5",
    "limit uses(b) per p <= 2",
    "limit uses(a(k=2)) per q <= 1",
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


def play(rng: random.Random, statements: list[str]) -> None:
    session = compiled(statements)
    core = session.artifact.core
    assert core.monitors
    told: list[tuple[Made, bool] | None] = []
    for _ in range(14):
        settle_one(rng, session, told)
        tool, arguments = drawn_call(rng)
        made = as_made(core, tool, arguments)
        memory = Memory(core)
        for before, certain in filter(None, told):
            memory.add(before, certain=certain)
        found = session.check(tool, arguments)
        if found.code in ("R201", "R301"):
            continue
        number = memory.forbids(made)
        assert found.allowed == (number is None), (statements, told, tool, arguments)
        if number is not None:
            text = core.monitors[number].text
            assert (found.code, found.because) == ("R202", [{"kind": "monitor", "text": text}])
            continue
        outcome = rng.choice(("done", "done", "done", "failed", "unknown"))
        answer = rng.choice((0, 1)) if tool == "t" else None
        memory.add(made, certain=False)
        with session.call(tool, arguments) as permit:
            under_way(rng, session, memory)
            if outcome == "done":
                permit.done(observed=None if answer is None else {"r": ("yes", "no")[answer]})
            elif outcome == "failed":
                permit.failed()
        certain = outcome == "done"
        values = (answer,) if tool == "t" and certain else made.values
        told.append(None if outcome == "failed" else (replace(made, values=values), certain))


def under_way(rng: random.Random, session: tcc.Gate, memory: Memory) -> None:
    """While a call is under way, its outcome is taken as unknown."""
    core = session.artifact.core
    for _ in range(4):
        tool, arguments = drawn_call(rng)
        found = session.check(tool, arguments)
        if found.code not in ("R201", "R301"):
            number = memory.forbids(as_made(core, tool, arguments))
            text = "" if number is None else core.monitors[number].text
            assert (found.allowed, found.place) == (number is None, text)


def settle_one(rng: random.Random, session: tcc.Gate, told: list[Any]) -> None:
    """Now and then an unknown outcome becomes known."""
    unknown = [at for at, one in enumerate(told) if one is not None and not one[1]]
    if not unknown or rng.random() < 0.6:
        return
    at = rng.choice(unknown)
    made = told[at][0]
    if rng.random() < 0.5:
        session.resolve(at + 1, "failed")
        told[at] = None
    elif session.artifact.core.tools[made.tool].name == "t":
        answer = rng.choice((0, 1))
        session.resolve(at + 1, "done", {"r": ("yes", "no")[answer]})
        told[at] = replace(made, values=(answer,)), True
    else:
        session.resolve(at + 1, "done")
        told[at] = made, True


def as_made(core: Any, tool: str, arguments: dict[str, Any]) -> Made:
    number = next(at for at, one in enumerate(core.tools) if one.name == tool)
    parameters = core.tools[number].parameters
    values = tuple(
        None if p.observed else p.values.index(str(arguments[p.name])) for p in parameters
    )
    opened = {name: arguments[name] for name in ("p", "q", "n") if name in arguments}
    numbers = {"n": str(arguments["n"])} if "n" in arguments else {}
    return Made(tool=number, values=values, opened=opened, numbers=numbers)


def test_a_late_answer_counts_from_where_its_call_was(tmp_path: Any) -> None:
    text = HEAD + "require t(r=yes) before b same p\n"
    session = gate(text, ledger=tmp_path / "s.ledger")
    with session.call("t", {"p": "x"}):
        pass
    assert session.check("b", {"k": 1, "p": "x", "n": 1}).code == "R201"
    session.resolve(1, "done", {"r": "yes"})
    do(session, "b", {"k": 1, "p": "x", "n": 1})
    assert session.check("b", {"k": 1, "p": "y", "n": 1}).code == "R202"


def test_a_session_that_is_taken_up_remembers_the_same(tmp_path: Any) -> None:
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
    text = HEAD + "limit sum(b.n) <= 12.5\nlimit uses(b(k=2)) <= 3\nlimit depth <= 9\n"
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
    limits = "limit price <= 90\nlimit uses(t) <= 9\nlimit cost <= 50\nlimit sum(a.k) <= 20\n"
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
    text += "forbid a with b same q = p\n"

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
