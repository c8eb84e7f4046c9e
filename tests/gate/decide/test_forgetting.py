"""Histories that forget calls decide every later call as the definition over all calls."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from tcc_certs.policy import forgetting
from tcc_certs.policy.history import ANSWERED, DONE, FAILED, Call
from tcc_certs.policy.kept import KeptPolicy
from tcc_certs.policy.kinds import Fault
from tcc_runtime.gate.decide import FastHistory, FastPolicy
from tests.campaigns.blocks import blocks
from tests.certs.policy.test_kept import Twin, session
from tests.oracle_meaning.written import core_of


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Histories are looked through after each call."""
    monkeypatch.setattr(forgetting, "next_look", lambda kept: 0)


class Forgetful(Twin):
    """One session: the definition over a list, and two policies that forget."""

    def __init__(self, seed: int, counts: Counter[str]) -> None:
        super().__init__(seed)
        self.counts = counts
        self.fast = FastPolicy(self.core)
        self.fast_history = FastHistory(self.core, dict(self.list._given))
        self.others: dict[int, Call] = {}  # of the fast policy, by number

    def call(self, tool: str, now: int, arguments: Any) -> tuple[Call, Call]:
        at = len(self.calls)
        one, other = (Call(tool, at, now, arguments, number=at) for _ in range(2))
        return one, other

    def _fast(self, call: Call) -> Call:
        return replace(call)

    def add(self, pair: tuple[Call, Call]) -> None:
        super().add(pair)
        now = pair[0].at_ms
        other = self.others[pair[0].number] = self._fast(pair[0])
        self.fast_history.add(other, self.fast.draws(self.fast_history, other, now))
        self.kept.forget(self.history, now)
        self.fast.forget(self.fast_history, now)
        self.counts["calls"] += 1
        for name, history in (("kept", self.history), ("fast", self.fast_history)):
            self.counts[f"forgotten, {name}"] += len(self.calls) - len(history.calls)
            assert [call.at for call in history.calls] == list(range(len(history.calls)))

    def record(self, pair: tuple[Call, Call], outcome: str, answers: Any) -> None:
        super().record(pair, outcome, answers)
        self.fast_history.record(self.others[pair[0].number], outcome, answers)

    def agree(self, pair: tuple[Call, Call]) -> None:
        super().agree(pair)
        now = pair[0].at_ms
        expected = self.plain.refusals(self.list, pair[0], now)
        assert self.fast.refusals(self.fast_history, self._fast(pair[0]), now) == expected
        self.counts.update(one.code for one in expected)
        self.counts["decisions"] += 1
        draws = [
            {number: (draw.key, draw.amount) for number, draw in found.items()}
            for found in (
                self.plain.draws(self.list, pair[0], now),
                self.fast.draws(self.fast_history, self._fast(pair[0]), now),
            )
        ]
        assert draws[0] == draws[1]

    def ends(self, now: int) -> None:
        unmet = self.plain.unmet(self.list, now)
        assert unmet == self.kept.unmet(self.history, now)
        assert unmet == self.fast.unmet(self.fast_history, now)
        sides = [
            (self.plain, self.list), (self.kept, self.history), (self.fast, self.fast_history)
        ]  # fmt: skip
        debts = [
            [(debt.statement, debt.call.number, debt.due_ms) for debt in policy.debts(calls, now)]
            for policy, calls in sides  # type: ignore[var-annotated]
        ]
        assert debts[0] == debts[1] == debts[2]


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("part", blocks(2, 4))
def test_decisions_agree_with_the_definition_over_all_calls(part: int) -> None:
    counts = Counter[str]()
    for seed in range(part * 1000, part * 1000 + 60):
        try:
            twin = Forgetful(seed, counts)
        except Fault:
            continue
        session(twin, twin.rng.randint(4, 24))
    assert counts["decisions"] > 1500, counts
    assert min(counts["forgotten, kept"], counts["forgotten, fast"]) > counts["calls"], counts
    assert counts["R202"] > 100 and counts["R207"] == 0, counts


# What is forgotten, and what is not.


def left(text: str, calls: list[tuple[str, dict[str, Any], int, str]], now: int = 0) -> list[int]:
    """The numbers of the calls that both histories have in the end."""
    core = core_of(text)
    kept, fast = KeptPolicy(core), FastPolicy(core)
    found = []
    for policy, history in ((kept, kept.history(core, {})), (fast, FastHistory(core, {}))):
        for number, (tool, arguments, at_ms, outcome) in enumerate(calls):
            call = Call(tool, number, at_ms, arguments, number=number)
            history.add(call, policy.draws(history, call, at_ms))
            if outcome:
                history.record(call, outcome, {})
        history.next_look = 0
        policy.forget(history, now or calls[-1][2])
        found.append([call.number for call in history.calls])
    assert found[0] == found[1]
    return found[0]


def of(*orders: str, tool: str = "a", outcome: str = DONE) -> list[tuple[str, Any, int, str]]:
    return [(tool, {"o": ("s", order)}, at, outcome) for at, order in enumerate(orders)]


TOOLS = "tool a(o: text)\ntool b(o: text)\n"


def test_calls_that_no_source_reads_are_forgotten() -> None:
    assert left(TOOLS + "before b require no b(same o)", of("x", "y", "x")) == []
    assert left(TOOLS + "limit count(a) per o <= 9 in session", of("x", "y", "x")) == []


@pytest.mark.parametrize(
    "condition",
    ["a(same o)", "no a(same o)", "unused a(same o)", "every a(same o)(o ~ \"x.*\")",
     "last(a(same o)).o = o", "o in a.o", "a(same o) since b(same o)"],
)  # fmt: skip
def test_of_equal_calls_the_last_one_is_left(condition: str) -> None:
    assert left(TOOLS + f"before b require {condition}", of("x", "y", "x", "z", "y")) == [2, 3, 4]


def test_a_counted_source_needs_every_call() -> None:
    assert left(TOOLS + "before b require count(a(same o)) < 9", of("x", "x", "x")) == [0, 1, 2]


def test_calls_out_of_every_window_are_forgotten() -> None:
    text = TOOLS + "before b require count(a(same o) within 10 s) < 9"
    calls = [("a", {"o": ("s", "x")}, at * 4000, DONE) for at in range(6)]
    assert left(text, calls) == [3, 4, 5]
    assert left(text, calls, 25_000) == [4, 5]
    assert left(text, calls, 99_000) == []


def test_calls_without_an_outcome_are_left() -> None:
    text = TOOLS + "before b require a(same o)"
    assert left(text, of("x", "x", outcome="")) == [0, 1]
    assert left(text, of("x", "x", outcome="unknown")) == [0, 1]
    assert left(text, of("x", "x", outcome=FAILED)) == []
    assert left(text, of("x", "x", outcome=ANSWERED)) == [1]


def test_a_first_call_is_left_while_its_debt_is_open() -> None:
    text = TOOLS + "after a owe b(same o)"
    assert left(text, of("x", "y")) == [0, 1]
    assert left(text, [*of("x", "y"), *of("y", tool="b")]) == [0, 2]
    assert left(text, [*of("x", "y"), *of("y", "x", tool="b")]) == []
