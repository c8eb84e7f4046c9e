"""Random sessions that are decided by the definition and by its fast version, side by side."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tcc_certs.policy import nodes as n
from tcc_certs.policy.core import Core
from tcc_certs.policy.history import (
    ANSWERED,
    DONE,
    FAILED,
    LOST,
    Call,
    DictHistory,
    Draw,
    ListHistory,
)
from tcc_certs.policy.kinds import Fault
from tcc_certs.policy.meaning import Policy
from tcc_certs.policy.uses import Uses
from tcc_certs.session.entries import Entries, EntryReader, EntryWriter
from tcc_certs.values.fields import Field
from tcc_certs.values.places import State
from tcc_runtime.gate.decide import FastHistory, FastPolicy
from tests.gate.decide.desk import Desk, answers_of, plan_calls, state_of
from tests.oracle_meaning.drawn import HOUR, START, Drawer, Elem, Place

_TOTALS = ("depth", "price", "cost", "latency", "epsilon")
_OUTCOMES = (DONE, FAILED, ANSWERED, LOST)


class SessionDrawer(Drawer):
    """Draws policies with many keys, and with every kind of statement."""

    def statement(self) -> n.Statement:
        """A statement of any kind."""
        what = self.rng.random()
        if what < 0.05:
            on, tools = self.on()
            where = self._plain_where(tools, decided=True, levels=1)
            return n.Ask(on=on, where=where, who="lead")
        if what < 0.1:
            most = str(self.rng.randint(2, 20))
            return n.Total(what=self.rng.choice(_TOTALS), most=most)
        if what < 0.2:
            limit = self._limit()
            return replace(limit, scope="across")
        if what < 0.4:
            return self.require(2)
        return super().statement()

    def _filter(self, place: Place, elem: Elem, depth: int) -> tuple[n.Node, ...]:
        if elem.letters != "call" or place.this is None or self.rng.random() < 0.4:
            return super()._filter(place, elem, depth)
        both = set(self.fields(elem.tools, False))
        both &= set(self.fields(place.this.tools, place.this.decided))
        if not both:
            return super()._filter(place, elem, depth)
        names = self.rng.sample(sorted(both), min(len(both), self.rng.choice((1, 1, 2))))
        key: n.Node = n.Same(tuple(names))
        if self.rng.random() < 0.3:
            key = n.Compare("=", n.Get(n.It(), names[0]), n.Get(n.This(), names[0]))
        if self.rng.random() < 0.5:
            return (key,)
        return (key, *super()._filter(place, elem, 0))

    def core(self, statements: Sequence[n.Statement]) -> Core:
        """A core whose plans have calls with amounts."""
        core = super().core(statements)
        calls = [call for at, tool in enumerate(self.tools) for call in plan_calls(at, tool)]
        return replace(core, calls=tuple(calls))


class Digests:
    """The states that a validator has of values: digests of all that no decision needs to know."""

    def __init__(self, policy: Policy) -> None:
        core = policy.core
        entries = Entries(core, Uses(core, policy.rules))
        self._core = core
        self._writer = EntryWriter(entries, bytes(32))
        self._reader = EntryReader(entries, self._writer.constants(), bytes(32))

    def given(self, states: Mapping[str, State]) -> dict[str, State]:
        """The attributes that a session starts with."""
        return self._reader.given(self._writer.given(states))

    def arguments(self, tool: str, states: Mapping[str, State]) -> dict[str, State]:
        """The arguments of a call."""
        return {**states, **self._reader.arguments(tool, self._writer.arguments(tool, states))}

    def answers(self, tool: str, states: Mapping[str, State]) -> dict[str, State]:
        """The answers of a call that is done."""
        entries, seen = self._writer.answers(tool, states)
        return {**seen, **self._reader.answers(tool, entries)}


@dataclass
class _Side:
    """A policy with the history of one session.

    Attributes:
        digests: makes the states; None: they are the values.
    """

    policy: Any
    history: Any
    digests: Digests | None
    calls: list[Call]


class Sides:
    """One session, decided by each version of the definition, as a gate and a validator have it.

    Args:
        accounts: for each version, the account that sessions share; empty: there is none.
    """

    def __init__(
        self,
        policies: tuple[Policy, FastPolicy],
        digests: Digests,
        given: Mapping[str, State],
        accounts: Sequence[Any] = (None,) * 5,
    ) -> None:
        policy, fast = policies
        core = policy.core
        versions: tuple[tuple[Any, Any, Digests | None], ...] = (
            (policy, ListHistory, None), (policy, DictHistory, None), (fast, FastHistory, None),
            (policy, DictHistory, digests), (fast, FastHistory, digests),
        )  # fmt: skip
        self.sides = [
            _Side(one, kind(core, given if made is None else made.given(given), account), made, [])
            for (one, kind, made), account in zip(versions, accounts, strict=True)
        ]
        self.core = core

    @property
    def calls(self) -> list[Call]:
        """The calls, as the first version has them."""
        return self.sides[0].calls

    def decide(self, tool: str, arguments: Mapping[str, State], now: int) -> list[Any]:
        """The refusals of a call, which all versions agree on."""

        def asked(side: _Side, call: Call) -> list[tuple[int, str]]:
            return [tuple(one) for one in side.policy.refusals(side.history, call, now)]

        return self._agreed(asked, tool, arguments, now)

    def add(self, tool: str, arguments: Mapping[str, State], now: int) -> None:
        """Add a call; all versions agree on its draws."""
        draws = []
        for side in self.sides:
            call = self._call(side, tool, arguments, now)
            found = side.policy.draws(side.history, call, now)
            side.history.add(call, found)
            side.calls.append(call)
            draws.append({limit: (draw.key, draw.amount) for limit, draw in found.items()})
        alike = draws[0] == draws[1] == draws[2] and draws[3] == draws[4]
        counts = [{limit: amount for limit, (_, amount) in found.items()} for found in draws]
        assert alike and counts[0] == counts[4], self.shown(f"draws {draws}")

    def record(self, at: int, outcome: str, answers: Mapping[str, State]) -> None:
        """Record the outcome of a call."""
        for side in self.sides:
            call, states = side.calls[at], answers
            if side.digests is not None and outcome == DONE:
                states = side.digests.answers(call.tool, answers)
            side.history.record(call, outcome, states)

    def _call(self, side: _Side, tool: str, arguments: Mapping[str, State], now: int) -> Call:
        if side.digests is not None and tool:
            arguments = side.digests.arguments(tool, arguments)
        return Call(tool, len(side.calls), now, arguments)

    def end(self, now: int) -> tuple[list[Any], list[int]]:
        """The debts and the unmet statements, which all versions agree on."""

        def asked(side: _Side, _: Call) -> tuple[list[Any], list[int]]:
            debts = side.policy.debts(side.history, now)
            found = [(debt.statement, debt.call.at, debt.due_ms) for debt in debts]
            return found, side.policy.unmet(side.history, now)

        self._agreed(self._draws, "", {}, now)
        for one in self.core.given:
            states = [side.history.attribute(one.name) for side in self.sides[:3]]
            assert states[0] == states[1] == states[2], self.shown(f"{one.name} {states}")

        found: tuple[list[Any], list[int]] = self._agreed(asked, "", {}, now)
        return found

    def _draws(self, side: _Side, _: Call) -> Any:
        """The draws of all times and of the last hour: of each limit, and of each of its keys."""
        since = self.calls[-1].at_ms - HOUR if self.calls else 0
        return [
            sorted(
                [[(one.call.at_ms, one.call.at, one.amount) for one in found] for found in draws]
            )
            for number, rule in enumerate(side.policy.rules)
            if rule.kind == "limit"
            for begin in (None, since)
            for draws in self._draws_of(side, number, begin, rule.across)
        ]

    def _draws_of(self, side: _Side, limit: int, since: int | None, across: bool) -> Iterator[Any]:
        draws_of = side.history.draws
        yield [sorted(draws_of(limit, None, since, across), key=_in_time)]
        keys = {draw.key for draw in draws_of(limit, None, None, across)}
        yield [sorted(draws_of(limit, key, since, across), key=_in_time) for key in keys]

    def _agreed(self, ask: Any, tool: str, arguments: Mapping[str, State], now: int) -> Any:
        found = []
        for side in self.sides:
            found.append(ask(side, self._call(side, tool, arguments, now)))
        if any(one != found[0] for one in found):
            raise AssertionError(self.shown(f"{found}\n{tool} {arguments} at {now}"))
        return found[0]

    def shown(self, what: str) -> str:
        """A difference with the session, to be read."""
        lines = [n.statement_text(one) for one in self.core.statements]
        lines += [n.definition_text(let) for let in self.core.lets]
        lines += [
            f"{one.at}: {one.tool} {dict(one.arguments)} at {one.at_ms} {one.outcome} {one.answers}"
            for one in self.calls
        ]
        return "\n".join([*lines, what])


def _in_time(draw: Draw) -> tuple[int, int, Any]:
    return draw.call.at_ms, draw.call.at, draw.amount


class Differential:
    """Random policies in random sessions: all versions agree after each event.

    Attributes:
        counts: decisions by their codes, and other events.
        steps: the least and the most events of a policy.
    """

    def __init__(self, seed: int, steps: tuple[int, int] = (4, 40)) -> None:
        self.steps = steps
        self.rng = random.Random(seed)
        self.counts: Counter[str] = Counter()

    def run(self, decisions: int) -> Counter[str]:
        """Decide at least so many calls.

        Raises:
            AssertionError: the versions differ.
        """
        while self.counts["decisions"] < decisions:
            self._policy()
        return self.counts

    def _policy(self) -> None:
        rng = self.rng
        core = self._core()
        try:
            policies = Policy(core), FastPolicy(core)
        except Fault:
            self.counts["faults"] += 1
            return
        self.counts["policies"] += 1
        digests = Digests(policies[0])
        shared = rng.random() < 0.6
        accounts: list[Any] = [{} if shared else None for _ in range(5)]
        sessions = [
            Session(Sides(policies, digests, self._given(core), accounts), rng)
            for _ in range(rng.choice((2, 3)) if shared else 1)
        ]
        for _ in range(rng.randint(*self.steps)):
            self.counts.update(rng.choice(sessions).step())

    def _core(self) -> Core:
        rng = self.rng
        if rng.random() < 0.7:
            return Desk(rng).core(rng.randint(4, 10))
        drawer = SessionDrawer(rng)
        drawn_ones = [drawer.sound(drawer.statement) for _ in range(rng.randint(1, 6))]
        return drawer.core([statement for statement, fault in drawn_ones if fault is None])

    def _given(self, core: Core) -> dict[str, State]:
        return {one.name: state_of(one, self.rng) for one in core.given if isinstance(one, Field)}


class Session:
    """A random session."""

    def __init__(self, sides: Sides, rng: random.Random) -> None:
        self.sides, self.rng = sides, rng
        self.now = START + rng.choice((0, HOUR, 3 * HOUR))
        self.under_way: list[int] = []
        self.lost: list[int] = []

    def step(self) -> Iterator[str]:
        """One event; what happened."""
        rng = self.rng
        if rng.random() < 0.7:
            self.now += rng.choice((0, 0, 1, 20 * 60_000, 30 * 60_000, HOUR, 25 * HOUR))
        what = rng.random()
        if what < 0.65 or not self.sides.calls:
            yield from self._call()
        elif what < 0.85 and self.under_way:
            yield from self._settle(self.under_way.pop(rng.randrange(len(self.under_way))))
        elif what < 0.95 and self.lost:
            at = self.lost.pop(rng.randrange(len(self.lost)))
            self._record(at, rng.choice((DONE, DONE, FAILED, ANSWERED)))
            yield "resolves"
        elif what > 0.98:
            at = rng.randrange(len(self.sides.calls))
            self._record(at, rng.choice(_OUTCOMES))
            self.under_way = [other for other in self.under_way if other != at]
            yield "records of a settled call"
        debts, unmet = self.sides.end(self.now)
        yield from [f"debts {len(debts) > 0}", f"unmet {len(unmet) > 0}"]

    def _call(self) -> Iterator[str]:
        rng = self.rng
        for _ in range(rng.choice((0, 1, 2))):
            yield from self._decide(*self._drawn(), self.now)
        tool, arguments = self._drawn()
        times = [self.now]
        if rng.random() < 0.1:
            times.insert(0, self.now - rng.choice((1, HOUR)))  # a question at an earlier time
        if rng.random() < 0.2:
            times.insert(0, self.now + rng.choice((HOUR, 30 * HOUR)))
        for now in times if rng.random() < 0.95 else ():
            yield from self._decide(tool, arguments, now)
        self.sides.add(tool, arguments, self.now)
        at = len(self.sides.calls) - 1
        if rng.random() < 0.7:
            yield from self._settle(at)
        else:
            self.under_way.append(at)
            yield "calls under way"

    def _drawn(self) -> tuple[str, dict[str, State]]:
        tool = self.rng.choice(self.sides.core.tools)
        return tool.name, {one.name: state_of(one, self.rng) for one in tool.arguments}

    def _decide(self, tool: str, arguments: Mapping[str, State], now: int) -> Iterator[str]:
        refusals = self.sides.decide(tool, arguments, now)
        yield "decisions"
        yield from {code for _, code in refusals} or {"allowed"}

    def _settle(self, at: int) -> Iterator[str]:
        outcome = self.rng.choices(_OUTCOMES, (12, 2, 2, 2))[0]
        self._record(at, outcome)
        if outcome == LOST:
            self.lost.append(at)
        yield f"outcome {outcome}"

    def _record(self, at: int, outcome: str) -> None:
        tool = self.sides.core.tool_of[self.sides.calls[at].tool]
        answers = {}
        if outcome == DONE:
            answers = answers_of(tool, self.rng, known=self.rng.random() < 0.5)
        self.sides.record(at, outcome, answers)
