"""Random sessions that are decided by the definition and by its fast version, side by side."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tcc_certs.policy import nodes as n
from tcc_certs.policy.core import Core
from tcc_certs.policy.history import ANSWERED, DONE, FAILED, LOST, Call, DictHistory, ListHistory
from tcc_certs.policy.kinds import Fault
from tcc_certs.policy.meaning import Policy
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


@dataclass
class _Side:
    """A policy with the history of one session."""

    policy: Any
    history: Any
    calls: list[Call]


class Sides:
    """One session, decided by each version of the definition.

    Args:
        accounts: for each version, the account that sessions share; empty: there is none.
    """

    def __init__(
        self,
        policies: tuple[Policy, FastPolicy],
        given: Mapping[str, State],
        accounts: Sequence[Any] = (None, None, None),
    ) -> None:
        policy, fast = policies
        core = policy.core
        self.sides = [
            _Side(policy, ListHistory(core, given, accounts[0]), []),
            _Side(policy, DictHistory(core, given, accounts[1]), []),
            _Side(fast, FastHistory(core, given, accounts[2]), []),
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

    def add(self, tool: str, arguments: Mapping[str, State], now: int) -> Any:
        """Add a call; all versions agree on its draws."""
        draws = []
        for side in self.sides:
            call = Call(tool, len(side.calls), now, arguments)
            found = side.policy.draws(side.history, call, now)
            side.history.add(call, found)
            side.calls.append(call)
            draws.append({limit: (draw.key, draw.amount) for limit, draw in found.items()})
        assert draws[0] == draws[1] == draws[2], self.shown(f"draws {draws}")
        return draws[0]

    def record(self, at: int, outcome: str, answers: Mapping[str, State]) -> None:
        """Record the outcome of a call."""
        for side in self.sides:
            side.history.record(side.calls[at], outcome, answers)

    def end(self, now: int) -> tuple[list[Any], list[int]]:
        """The debts and the unmet statements, which all versions agree on."""

        def asked(side: _Side, _: Call) -> tuple[list[Any], list[int]]:
            debts = side.policy.debts(side.history, now)
            found = [(debt.statement, debt.call.at, debt.due_ms) for debt in debts]
            return found, side.policy.unmet(side.history, now)

        self._agreed(self._draws, "", {}, now)

        found: tuple[list[Any], list[int]] = self._agreed(asked, "", {}, now)
        return found

    def _draws(self, side: _Side, _: Call) -> Any:
        """The draws of the last hour, in an order of their own."""
        return [
            sorted([(draw.call.at_ms, draw.call.at, draw.amount) for draw in draws])
            for number, rule in enumerate(side.policy.rules)
            if rule.kind == "limit"
            for since in (None, self.calls[-1].at_ms - HOUR if self.calls else 0)
            for draws in self._draws_of(side, number, since, rule.across)
        ]

    def _draws_of(self, side: _Side, limit: int, since: int | None, across: bool) -> Iterator[Any]:
        yield side.history.draws(limit, None, since, across)
        keys = {draw.key for draw in side.history.draws(limit, None, None, across)}
        for key in sorted(keys, key=repr):
            yield side.history.draws(limit, key, since, across)

    def _agreed(self, ask: Any, tool: str, arguments: Mapping[str, State], now: int) -> Any:
        found = []
        for side in self.sides:
            found.append(ask(side, Call(tool, len(side.calls), now, arguments)))
        assert found[0] == found[1] == found[2], self.shown(f"{found}\n{tool} {arguments} at {now}")
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


class Differential:
    """Random policies in random sessions: all versions agree after each event.

    Attributes:
        counts: decisions by their codes, and other events.
    """

    def __init__(self, seed: int) -> None:
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
        accounts: list[Any] = [{}, {}, {}] if rng.random() < 0.6 else [None, None, None]
        sessions = [
            Session(Sides(policies, self._given(core), accounts), rng)
            for _ in range(1 if accounts[0] is None else rng.choice((2, 3)))
        ]
        for _ in range(rng.randint(4, 40)):
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
