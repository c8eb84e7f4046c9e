"""The definition decides the same on values and on states made of entries."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pytest

from tcc_certs.policy.history import DONE, OPEN, Call, DictHistory, Draw, ListHistory
from tcc_certs.policy.kinds import Fault
from tcc_certs.policy.meaning import Policy
from tcc_certs.policy.uses import Uses
from tcc_certs.session.entries import Entries, EntryReader, EntryWriter
from tcc_certs.values.fields import Field
from tcc_certs.values.places import State
from tests.oracle_meaning.drawn import START, Drawer, Step, deciding, given_of, history

KEY = bytes(range(32))
Pair = tuple[Call, Call]


class Twin:
    """One session twice: over values, and over what a ledger has of them."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.drawer = drawer = Drawer(rng)
        drawn = [drawer.sound(drawer.statement) for _ in range(rng.randint(1, 4))]
        self.core = drawer.core([one for one, fault in drawn if fault is None])
        self.policy = Policy(self.core)
        fields = [
            (tool.name, field.name)
            for tool in self.core.tools
            for field in (*tool.arguments, *tool.answers)
            if field.type is not None
        ]
        shown = rng.sample(fields, rng.choice((0, 0, len(fields) // 3)))
        uses = Uses(self.core, self.policy.rules)
        entries = Entries(self.core, uses, frozenset(shown))
        self.writer = EntryWriter(entries, KEY)
        key = KEY if rng.random() < 0.3 else None
        self.reader = EntryReader(entries, self.writer.constants(), key)
        given = given_of(drawer, rng)
        self.values = ListHistory(self.core, given)
        self.digests = DictHistory(self.core, self.reader.given(self.writer.given(given)))

    def pair(self, call: Call) -> Pair:
        """A call over values, and the same over entries."""
        entries = self.writer.arguments(call.tool, call.arguments)
        states = self.reader.arguments(call.tool, entries)
        declared = self.core.tool_of[call.tool].arguments
        arguments = {**states, **listed(declared, call.arguments)}
        return call, Call(call.tool, call.at, call.at_ms, arguments)

    def add(self, pair: Pair) -> None:
        """A call is made."""
        for history_, call in zip((self.values, self.digests), pair, strict=True):
            history_.add(call, self.policy.draws(history_, call, call.at_ms))

    def record(self, pair: Pair, step: Step) -> None:
        """The outcome of a call."""
        call, twin = pair
        self.values.record(call, step.outcome, step.answers)
        answers: dict[str, State] = {}
        if step.outcome == DONE:
            entries, seen = self.writer.answers(call.tool, step.answers)
            assert seen == step.answers
            answers = self.reader.answers(call.tool, entries)
            answers |= listed(self.core.tool_of[call.tool].answers, step.answers)
        self.digests.record(twin, step.outcome, answers)

    def agree(self, pair: Pair) -> None:
        """Both decide the same."""
        policy, now = self.policy, pair[0].at_ms
        histories = self.values, self.digests
        refusals = [policy.refusals(h, c, now) for h, c in zip(histories, pair, strict=True)]
        assert refusals[0] == refusals[1]
        draws = [
            {number: counted(draw) for number, draw in policy.draws(h, c, now).items()}
            for h, c in zip(histories, pair, strict=True)
        ]
        assert draws[0] == draws[1]
        assert policy.unmet(histories[0], now) == policy.unmet(histories[1], now)
        debts = [
            [(debt.statement, debt.call.at, debt.due_ms) for debt in policy.debts(h, now)]
            for h in histories
        ]
        assert debts[0] == debts[1]


def counted(draw: Draw) -> tuple[object, bool]:
    return draw.amount, draw.key is None


def listed(declared: Sequence[Field], states: Mapping[str, State]) -> dict[str, State]:
    return {one.name: states[one.name] for one in declared if one.type is None}


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.sampled(5)
def test_entries_are_decided_like_values(seed: int) -> None:
    decisions = 0
    for part in range(50):
        try:
            twin = Twin(seed * 1000 + part)
        except Fault:
            continue
        rng, drawer = twin.rng, twin.drawer
        names = [tool.name for tool in twin.core.tools]
        late: list[tuple[Pair, Step]] = []
        now = START
        for step in history(drawer, rng, rng.randint(1, 9)):
            now = step.at_ms
            made = twin.pair(Call(step.tool, len(twin.values.calls), now, step.arguments))
            for _ in range(2):
                twin.agree(twin.pair(deciding(drawer, rng, names, made[0].at, now)))
            twin.agree(made)
            decisions += 3
            twin.add(made)
            if step.outcome != OPEN:
                late.append((made, step)) if step.late else twin.record(made, step)
        for pair, step in late:
            twin.record(pair, step)
        for _ in range(3):
            at = len(twin.values.calls)
            twin.agree(twin.pair(deciding(drawer, rng, names, at, now)))
            decisions += 1
    assert decisions > 700
