"""Drawn policies with `ask` through a gate: the definition allows each call and each question."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import tcc
from tests.gate import grammars
from tests.gate.conftest import validated
from tests.oracle_session.writer import KEY

START = 1_700_000_000_000
MINUTE = 60_000
TOOLS = """grammar drawn version "1"

given who from look.owner

tool look(id: text) gives (owner: text, n: number, ok: yes | no) { parallel errors mean failed }
tool act(id: text, n: number 0 .. 9, kind: a | b) { errors mean failed }
tool note(id: text) { parallel }

"""
FILTERS = [
    "", "(n > 3)", "(kind = a)", "(no look(same id))", "(n > last(look(same id)).n)",
    "(last(look(same id)).ok = no)", "(no look(same id, ok = yes) since note)",
    "(id = session.who)", "(count(act(same id)) >= 1)", '(id ~ "x.*", kind = b)',
    "(sum(act(same id).n within 5 m) > 5)",
]  # fmt: skip
OTHERS = [
    "before act require count(act(same id)) < 3",
    "before note require no act(same id) within 2 m",
    "forbid act(n = 5, kind = b)",
    "limit sum(act.n) per id <= 20 in session",
    "after act(kind = b) owe note(id = this.id) within 9 m",
    "finally require count(note) >= 1",
]
TERMS = ["", " within 2 m", " within 10 m", " within 1 s"]
IDS = ["x1", "y"]


def policy(rng: random.Random) -> str:
    """A policy with up to three `ask` statements."""
    asks = [
        f"before {rng.choice(['act', 'act', 'act', 'act | note', 'any'])}"
        f'{rng.choice(FILTERS)} ask "r{number}"{rng.choice(TERMS)}'
        for number in range(rng.randint(1, 3))
    ]
    asks = [one if "act |" not in one and "any" not in one else _plain(one) for one in asks]
    return TOOLS + "\n".join([*asks, *rng.sample(OTHERS, rng.randint(0, 3)), "limit depth <= 60"])


def _plain(statement: str) -> str:
    """The statement without a filter: the tools of its set have different fields."""
    head, _, rest = statement.partition(" ask ")
    return f"{head.partition('(')[0]} ask {rest}"


class Drawn:
    """A session whose events are drawn."""

    def __init__(self, seed: int, folder: Path | None) -> None:
        self.rng = random.Random(seed)
        self.text = policy(self.rng)
        self.artifact = grammars.artifact(self.text)
        self.ledger = None if folder is None else folder / f"{seed}.ledger"
        self.ms = START
        self.gate = self.opened()
        self.counts: Counter[str] = Counter()

    def opened(self) -> tcc.Gate:
        return tcc.Gate(
            self.artifact, ledger=self.ledger, key=KEY, durable=False, clock=lambda: self.ms
        )

    def run(self, events: int) -> Counter[str]:
        for _ in range(events):
            what = self.rng.random()
            if what < 0.6:
                self.call()
            elif what < 0.85:
                self.decide()
            elif what < 0.93:
                self.ms += self.rng.choice([1, 1000, 1001, MINUTE, 2 * MINUTE, 11 * MINUTE])
            elif what < 0.97:
                self.resolve()
            elif self.ledger is not None:
                self.gate.close()
                self.gate = self.opened()
        self.gate.close()
        return self.counts

    def call(self) -> None:
        rng = self.rng
        tool = rng.choice(["look", "act", "act", "act", "note"])
        arguments: dict[str, Any] = {"id": rng.choice(IDS)}
        if tool == "act":
            arguments |= {"n": rng.choice([2, 5]), "kind": rng.choice("ab")}
        found = self.gate.check(tool, arguments)
        code = "made" if found.code is None else str(found.code)
        try:
            with self.gate.call(tool, arguments) as permit:
                self.settle(tool, permit)
        except tcc.Pending:
            assert code == "R211"
        except tcc.Refused as refused:
            assert code == refused.code
        else:
            assert code == "made"
        self.counts[code] += 1

    def settle(self, tool: str, permit: Any) -> None:
        rng = self.rng
        outcome = rng.choice(["done", "done", "done", "failed", "unknown", "answered"])
        if outcome == "done" and tool == "look":
            answer = {
                "owner": rng.choice(IDS),
                "n": rng.randint(0, 9),
                "ok": rng.choice(["yes", "no"]),
            }
            answer.pop(rng.choice(["owner", "n", "ok", "none"]), None)
            permit.done(answer)
        elif outcome == "answered" and tool != "note":
            permit.failed(answered=True)
        elif outcome == "failed":
            permit.failed()
        elif outcome == "unknown":
            permit.unknown()
        else:
            permit.done()

    def decide(self) -> None:
        if self.gate.pending:
            question = self.rng.choice(self.gate.pending)
            yes = self.rng.random() < 0.8
            decide = self.gate.approve if yes else self.gate.deny
            decide(question.id, who="Ann")
            self.counts["approved" if yes else "denied"] += 1

    def resolve(self) -> None:
        unknown = [one.seq for one in self.gate.history if one.outcome == "unknown"]
        if unknown:
            seq = self.rng.choice(unknown)
            self.gate.resolve(seq, "failed")
            self.counts["resolved"] += 1


def run(first: int, sessions: int, folder: Path) -> Counter[str]:
    """Run sessions; the definition judges each ledger, and a gate in memory decides alike."""
    counts: Counter[str] = Counter()
    for seed in range(first, first + sessions):
        drawn = Drawn(seed, folder)
        mine = drawn.run(40)
        assert drawn.ledger is not None
        found = validated(drawn.ledger)
        assert found.word == "INCOMPLETE" and len(found.findings) == 1, (drawn.text, found.findings)
        assert found.findings[0].code == "D301", (drawn.text, found.findings)
        counts += mine
    return counts


def test_the_definition_agrees_with_gates_of_drawn_policies(tmp_path: Path) -> None:
    counts = run(0, 16, tmp_path)
    print(dict(counts))
    assert min(counts[one] for one in ("made", "R211", "R209", "approved", "denied")) > 10


def test_a_gate_in_memory_decides_as_one_with_a_ledger(tmp_path: Path) -> None:
    for seed in range(100, 110):
        drawn, other = Drawn(seed, None), Drawn(seed, None)
        assert drawn.run(40) == other.run(40)


@pytest.mark.campaign
def test_the_definition_agrees_with_gates_of_many_drawn_policies(tmp_path: Path) -> None:
    print(dict(run(1000, int(os.environ.get("TCC_SESSIONS", "2000")), tmp_path)))
