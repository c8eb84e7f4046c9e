"""The kernel's interpreter of statements beside the definition, statement by statement."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tcc_certs.session.monitors.keyed import Event, Undo
from tcc_certs.session.monitors.policies import Memory, Policies
from tests.campaigns.blocks import blocks
from tests.oracle_policies import language as l
from tests.oracle_policies.cases import CASES, Case
from tests.oracle_policies.core import policies_of, state_of, states_of
from tests.oracle_policies.drawn import FORMS, START, Draw, Play
from tests.oracle_policies.meaning import Made, Session, is_owed, refuses


class Fast:
    """The kernel's memory beside a session of the definition; late outcomes go through again."""

    def __init__(self, grammar: l.Grammar, slow: Session) -> None:
        self.slow = slow
        self.fields, self.statements = policies_of(grammar)
        self.numbers = {tool.name: at for at, tool in enumerate(grammar.tools)}
        policies = [policy for _, policy in self.statements]
        self.memories = [Memory(Policies([policy], self.fields)) for policy in policies]
        self.whole = Memory(Policies(policies, self.fields))
        self.undo: list[list[Undo]] = []
        self.known: list[tuple[Any, ...]] = []
        self.told: dict[int, int] = {}

    def event(self, at: int, call: Made) -> Event:
        done = call.outcome == "done"
        states = states_of(call.states)
        if call.answered:
            states |= {f.name: ("unknown", None) for f in call.tool.fields if f.answer}
        session = {n: state_of(s) for n, s in call.attributes.items() if not n.startswith("look")}
        return Event(
            at=at, tool=self.numbers[call.tool.name], states=states, stamp=call.stamp,
            session=session, done=done, answered=call.answered, told=self.told.get(at),
        )  # fmt: skip

    def follow(self) -> None:
        """What the definition has made, from the first call on that is known otherwise now."""
        made = self.slow.made
        for at, call in enumerate(made, 1):
            if call.outcome != "under way":
                self.told.setdefault(at, len(made))
        now = [(c.outcome, c.answered, self.told.get(i), i) for i, c in enumerate(made, 1)]
        now = [one for one in now if one[0] != "failed" or one[1]]
        common = 0
        while common < min(len(now), len(self.known)) and now[common] == self.known[common]:
            common += 1
        memories = (*self.memories, self.whole)
        while len(self.undo) > common:
            for memory, undo in zip(memories, self.undo.pop(), strict=True):
                memory.undo(undo)
        for one in now[common:]:
            event = self.event(one[3], made[one[3] - 1])
            self.undo.append([memory.add(event) for memory in memories])
        self.known = now

    def differences(self, call: Made) -> list[str]:
        self.follow()
        own = self.event(len(self.slow.made) + 1, call)
        found, first = [], None
        for number, (statement, _) in enumerate(self.statements):
            due = refuses(statement, call, self.slow.made)
            fast = self.memories[number].refuses(own)
            if (fast is not None) is not due:
                found.append(f"{statement}: {fast}, the definition {due}")
            if due and first is None:
                first = number
            if isinstance(statement, l.Owed):
                owed = is_owed(statement, self.slow.made)
                if bool(self.memories[number].owed) is not owed:
                    found.append(f"{statement}: owes {not owed}")
        whole = self.whole.refuses(own)
        if (None if whole is None else whole[0]) != first:
            found.append(f"all: {whole}, the definition {first}")
        return found


def play(seed: int, forms: frozenset[str], steps: int, tally: Counter[str]) -> None:
    grammar = Draw(seed, forms).grammar()
    draw = Play(f"{seed} p", grammar)
    slow = Session(grammar=grammar, given=draw.given())
    fast = Fast(grammar, slow)
    now = START
    for _ in range(steps):
        step = draw.step()
        now += step.later * 1000
        call = slow.asked(step.tool, step.arguments, max(slow.now, now))
        if isinstance(call, str):
            tally[call] += 1
            continue
        found = fast.differences(call)
        assert not found, (seed, found, slow.made, call)
        refused = any(refuses(s, call, slow.made) for s, _ in fast.statements)
        tally["refused" if refused else "allowed"] += 1
        if refused and draw.rng.random() < 0.7:
            continue  # else it is made all the same: the history does not matter
        seq = slow.call(step.tool, step.arguments, now)
        if step.resolve < 0.2:
            other = draw.step()
            during = slow.asked(other.tool, other.arguments, now)
            if not isinstance(during, str):
                found = fast.differences(during)
                assert not found, (seed, "under way", found)
        outcome = "failed" if step.outcome == "answered" else step.outcome
        told = {"answer": step.answer} if outcome == "done" else {}
        slow.outcome(seq, outcome, answered=step.outcome == "answered", **told)
        unknown = [i for i, m in enumerate(slow.made, 1) if m.outcome == "unknown"]
        if unknown and step.resolve < 0.4:
            late = draw.rng.choice(unknown)
            slow.resolve(late, draw.rng.choice(("done", "failed")), step.answer)
            tally["resolved"] += 1


@pytest.mark.parametrize("case", CASES, ids=[case.says for case in CASES])
def test_every_sentence_of_the_definition(case: Case) -> None:
    slow, now = Session(grammar=case.grammar, given=case.given), START
    fast = Fast(case.grammar, slow)
    for step in case.steps:
        match step.what:
            case "clock":
                now = START + step.ms
            case "resolve":
                slow.resolve(step.seq, step.outcome, step.answer)
            case "finish":
                fast.follow()
            case _:
                call = slow.asked(step.tool, step.arguments, max(slow.now, now))
                if not isinstance(call, str):
                    assert not fast.differences(call), step
                if step.what == "call":
                    seq = slow.call(step.tool, step.arguments, now)
                    answered = step.outcome == "answered"
                    outcome = "failed" if answered else step.outcome
                    slow.outcome(seq, outcome, step.answer, answered=answered)


@pytest.mark.parametrize("part", blocks(4, 6))
def test_random_policies(part: int) -> None:
    tally: Counter[str] = Counter()
    for seed in range(part * 60, part * 60 + 60):
        play(seed, FORMS, 10, tally)
    assert tally["refused"] > 50 and tally["allowed"] > 50 and tally["resolved"] > 5


@pytest.mark.campaign
def test_many_random_policies() -> None:
    tally: Counter[str] = Counter()
    for seed in range(1000, 21_000):
        play(seed, FORMS, 12, tally)
    assert tally["refused"] + tally["allowed"] > 100_000
