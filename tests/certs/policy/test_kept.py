"""The kept policy decides as the definition over a plain list."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from tcc_certs.policy import kept_sources, meaning
from tcc_certs.policy.history import DONE, LOST, OPEN, Call, ListHistory
from tcc_certs.policy.kept import KeptPolicy
from tcc_certs.policy.kinds import Fault
from tcc_certs.policy.meaning import Policy
from tests.oracle_meaning.drawn import START, Drawer, Step, answers_of, deciding, given_of, history
from tests.oracle_meaning.written import core_of


class Twin:
    """One session, decided by the definition and by the kept policy."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.drawer = drawer = Drawer(rng)
        drawn = [drawer.sound(drawer.statement) for _ in range(rng.randint(1, 5))]
        self.core = drawer.core([one for one, fault in drawn if fault is None])
        self.plain = Policy(self.core)
        self.kept = KeptPolicy(self.core)
        given = given_of(drawer, rng)
        self.list = ListHistory(self.core, given)
        self.history = self.kept.history(self.core, given)
        self.calls: list[tuple[Call, Call]] = []

    def call(
        self, tool: str, now: int, arguments: dict[str, tuple[str, object]]
    ) -> tuple[Call, Call]:
        at = len(self.calls)
        return Call(tool, at, now, arguments), Call(tool, at, now, arguments)

    def add(self, pair: tuple[Call, Call]) -> None:
        now = pair[0].at_ms
        self.list.add(pair[0], self.plain.draws(self.list, pair[0], now))
        self.history.add(pair[1], self.kept.draws(self.history, pair[1], now))
        self.calls.append(pair)

    def record(self, pair: tuple[Call, Call], outcome: str, answers: object) -> None:
        self.list.record(pair[0], outcome, answers)  # type: ignore[arg-type]
        self.history.record(pair[1], outcome, answers)  # type: ignore[arg-type]

    def agree(self, pair: tuple[Call, Call]) -> None:
        one, other = pair
        now = one.at_ms
        assert self.plain.refusals(self.list, one, now) == self.kept.refusals(
            self.history, other, now
        )
        draws = [
            {number: (draw.key, draw.amount) for number, draw in found.items()}
            for found in (
                self.plain.draws(self.list, one, now),
                self.kept.draws(self.history, other, now),
            )
        ]
        assert draws[0] == draws[1]

    def ends(self, now: int) -> None:
        assert self.plain.unmet(self.list, now) == self.kept.unmet(self.history, now)
        debts = [
            [(debt.statement, debt.call.at, debt.due_ms) for debt in found]
            for found in (self.plain.debts(self.list, now), self.kept.debts(self.history, now))
        ]
        assert debts[0] == debts[1]


def session(twin: Twin, size: int) -> int:
    """Random calls, outcomes in any order, and resolutions; how many decisions were compared."""
    rng, drawer = twin.rng, twin.drawer
    names = [tool.name for tool in twin.core.tools]
    waiting: list[tuple[tuple[Call, Call], Step]] = []
    decisions = 0
    now = START
    for step in history(drawer, rng, size):
        now = step.at_ms
        pair = twin.call(step.tool, now, step.arguments)
        for _ in range(2):
            one = deciding(drawer, rng, names, len(twin.calls), now)
            twin.agree(twin.call(one.tool, now, dict(one.arguments)))
        twin.agree(pair)
        decisions += 3
        twin.add(pair)
        if step.outcome != OPEN:
            waiting.append((pair, step))
        for item in rng.sample(waiting, rng.randint(0, len(waiting))):
            waiting.remove(item)
            twin.record(item[0], item[1].outcome, item[1].answers)
        resolve(twin)
        twin.ends(now)
    return decisions


def resolve(twin: Twin) -> None:
    """Some unknown outcomes become known."""
    rng = twin.rng
    for pair in twin.calls:
        if pair[0].outcome == LOST and rng.random() < 0.3:
            tool = twin.core.tool_of[pair[0].tool]
            done = rng.random() < 0.6
            answers = answers_of(tool, rng, known=False) if done else {}
            twin.record(pair, DONE if done else "failed", answers)


def drawn(seeds: Sequence[int]) -> list[Twin]:
    found = []
    for seed in seeds:
        try:
            found.append(Twin(seed))
        except Fault:
            continue
    return found


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.sampled(4)
def test_the_kept_policy_decides_as_the_definition(seed: int) -> None:
    decisions = 0
    for twin in drawn(range(seed * 1000, seed * 1000 + 60)):
        decisions += session(twin, twin.rng.randint(1, 12))
    assert decisions > 700


@pytest.mark.parametrize("seed", range(4))
def test_cut_evaluations_are_cut_alike(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (meaning, kept_sources):
        monkeypatch.setattr(module, "BOUNDS", (4, 3, 2))
    for twin in drawn(range(seed * 1000, seed * 1000 + 60)):
        session(twin, 10)


def twice(text: str) -> list[tuple[Policy, ListHistory]]:
    """The definition and the kept policy, each with a history."""
    core = core_of(text)
    made = KeptPolicy(core)
    return [(Policy(core), ListHistory(core, {})), (made, made.history(core, {}))]


def test_an_absent_value_adds_nothing_to_a_sum_of_rows() -> None:
    text = "tool a(n?: number)\nbefore a require sum(a.n) < 5"
    for policy, history_ in twice(text):
        for at, state in enumerate((("n", 3), ("none", None), ("n", 1))):
            call = Call("a", at, 0, {"n": state})
            assert policy.refusals(history_, call, 0) == []
            history_.add(call, {})
            history_.record(call, DONE, {})
        call = Call("a", 3, 0, {"n": ("n", 1)})
        history_.add(call, {})
        history_.record(call, DONE, {})
        assert [one.code for one in policy.refusals(history_, call, 0)] == ["R202"]


def test_a_condition_on_an_attribute_that_is_learned_later_is_not_kept() -> None:
    text = (
        "given user from login.user\ntool login() gives (user: text)\ntool a(k: text)\n"
        'before login require no a(session.user = "x" and k ~ "y.*")'
    )
    for policy, history_ in twice(text):
        first = Call("a", 0, 0, {"k": ("s", "yy")})
        history_.add(first, {})
        history_.record(first, DONE, {})
        login = Call("login", 1, 0, {})
        assert [one.code for one in policy.refusals(history_, login, 0)] == ["R202"]
        history_.add(login, {})
        history_.record(login, DONE, {"user": ("s", "z")})
        assert policy.refusals(history_, Call("login", 2, 0, {}), 0) == []
