"""What the gate remembers of a session is what the definition of monitors remembers."""

from __future__ import annotations

import random
from dataclasses import replace
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
        with session.call(tool, arguments) as permit:
            if outcome == "done":
                permit.done(observed=None if answer is None else {"r": ("yes", "no")[answer]})
            elif outcome == "failed":
                permit.failed()
        certain = outcome == "done"
        values = (answer,) if tool == "t" and certain else made.values
        told.append(None if outcome == "failed" else (replace(made, values=values), certain))


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
