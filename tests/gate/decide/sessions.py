"""Random sessions that are decided by the definition and by its fast version, side by side."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from tcc_certs.policy import nodes as n
from tcc_certs.policy.core import Core, Tool
from tcc_certs.policy.history import (
    ANSWERED,
    DONE,
    FAILED,
    LOST,
    OPEN,
    Call,
    DictHistory,
    ListHistory,
)
from tcc_certs.policy.kinds import Fault
from tcc_certs.policy.meaning import Policy
from tcc_certs.policy.plans import Call as PlanCall
from tcc_certs.values.places import State
from tcc_runtime.gate.decide import FastHistory, FastPolicy
from tests.oracle_meaning import drawn
from tests.oracle_meaning.drawn import HOUR, Drawer, Elem, Place

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
        calls = [call for at, tool in enumerate(self.tools) for call in self._calls(at, tool)]
        return replace(core, calls=tuple(calls))

    def _calls(self, at: int, tool: Tool) -> Iterator[PlanCall]:
        rng = random.Random(at)  # the same in each core of this drawer
        sizes = [len(one.values) + one.optional for one in tool.listed]
        for values in product(*map(range, sizes)):
            if rng.random() < 0.8:
                yield PlanCall(
                    text=f"{tool.name}{values}", tool=at, values=values,
                    cost_low=0, cost_high=rng.randint(0, 5) * 10**9, price=rng.randint(0, 5),
                    latency=rng.randint(0, 5), epsilon=rng.randint(0, 5) * 10**9,
                )  # fmt: skip


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
        return self._agreed(
            lambda side, call: [tuple(one) for one in side.policy.refusals(side.history, call, now)],
            tool, arguments, now,
        )  # fmt: skip

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

        found: tuple[list[Any], list[int]] = self._agreed(asked, "", {}, now)
        return found

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
        drawer = SessionDrawer(rng)
        statements = []
        for _ in range(rng.randint(1, 6)):
            statement, fault = drawer.sound(drawer.statement)
            if fault is None:
                statements.append(statement)
        core = drawer.core(statements)
        try:
            policies = Policy(core), FastPolicy(core)
        except Fault:
            self.counts["faults"] += 1
            return
        self.counts["policies"] += 1
        accounts: list[Any] = [{}, {}, {}] if rng.random() < 0.6 else [None, None, None]
        sessions = [
            Session(drawer, Sides(policies, drawn.given_of(drawer, rng), accounts), rng)
            for _ in range(1 if accounts[0] is None else rng.choice((2, 3)))
        ]
        for _ in range(rng.randint(4, 24)):
            self.counts.update(rng.choice(sessions).step())


class Session:
    """A random session."""

    def __init__(self, drawer: Drawer, sides: Sides, rng: random.Random) -> None:
        self.drawer, self.sides, self.rng = drawer, sides, rng
        self.now = drawn.START + rng.choice((0, HOUR, 3 * HOUR))
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
        tool = rng.choice(self.drawer.tools)
        arguments = {one.name: drawn.state_of(one, rng) for one in tool.arguments}
        times = [self.now]
        if rng.random() < 0.1:
            times.insert(0, self.now - rng.choice((1, HOUR)))  # a question at an earlier time
        if rng.random() < 0.2:
            times.insert(0, self.now + rng.choice((HOUR, 30 * HOUR)))
        for now in times:
            refusals = self.sides.decide(tool.name, arguments, now)
            yield "decisions"
            yield from {code for _, code in refusals} or {"allowed"}
        self.sides.add(tool.name, arguments, self.now)
        at = len(self.sides.calls) - 1
        if rng.random() < 0.7:
            yield from self._settle(at)
        else:
            self.under_way.append(at)
            yield "calls under way"

    def _settle(self, at: int) -> Iterator[str]:
        outcome = self.rng.choices(_OUTCOMES, (12, 2, 2, 2))[0]
        self._record(at, outcome)
        if outcome == LOST:
            self.lost.append(at)
        yield f"outcome {outcome}"

    def _record(self, at: int, outcome: str) -> None:
        tool = self.drawer.tool_of[self.sides.calls[at].tool]
        answers = {}
        if outcome == DONE:
            answers = drawn.answers_of(tool, self.rng, known=self.rng.random() < 0.5)
        self.sides.record(at, outcome, answers)
