"""A decision costs the same after a hundred calls and after a hundred thousand.

Costs are counted: calls of functions, in Python and in C.  Where an index is dropped, the answers
stay the same, and the cost grows with the history.
"""

from __future__ import annotations

import gc
import operator
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tcc_certs.policy.history import DONE, Call, ListHistory
from tcc_certs.policy.meaning import Policy
from tcc_certs.values.places import State
from tcc_runtime.gate.decide import (
    FastHistory,
    FastPolicy,
    conditions,
    feeds,
    history,
    owes,
    relations,
    totals,
)
from tests.gate.decide.desk import TOOLS, plan_calls
from tests.gate.decide.sessions import Differential
from tests.oracle_meaning.written import core_of

SIZES = (100, 1_000, 10_000, 100_000)
STATEMENTS = """
before refund require find(same order)
before refund require no find(same order, status = closed) or count(find(same order)) > 1
before refund require unused approve(same (order, n), answer = yes)
before refund require last(find(same order)).total >= n and last(approve).answer = yes
before refund require find and count(find) > 1 - 1 and count(approve(answer = yes)) < 10000000
before refund require sum(find.total) < 1000000000 and sum(approve(answer = yes), n * 2) >= 0
before refund require max(find.total) < 100 and min(find.total) >= 0
before refund require count(distinct(find.owner)) < 10
before refund require order in find.order and order not in refund.order
before refund require every find(n < 100)
before refund require find(total >= this.n) and no find(owner = this.order)
before refund require count(find within 1 h) < 4000 and sum(find.n within 10 s) < 100
before refund require no approve(answer = no) since find(same order)
before refund require count(find since refund) < 100
limit count(refund) <= 1000000
limit sum(refund.n) per order <= 9 in session
limit sum(refund.n within 1 h) per n <= 1000000 in session
limit count(refund within 1 m) <= 100 in session
limit depth <= 1000000
limit price <= 10000000
after refund owe approve(same order) within 365 d
after refund(n = 0) owe login
after find owe refund(same order) within 1 h
finally require count(find) = count(refund)
"""


# Statements that compare an element with the decided call, with the buckets of their indexes.
RELATED = {
    "before refund require find(total >= this.n)": relations.Ordered,
    "before refund require no find(total < this.n, n < 100)": relations.Ordered,
    "before refund require count(find(n in this.n .. 9)) < 100000000": relations.Ordered,
    "before refund require last(find(n <= this.n)).total >= 8": relations.Ordered,
    "before refund require find(n >= this.n) since approve(answer = no)": relations.Ordered,
    "before refund require count(find(n >= this.n) within 20 m) < 100000": relations.Ordered,
    "before refund require no find.items(price > this.n)": relations.Ordered,
    "before refund require no find(owner = this.order)": relations.Listed,
    "before refund require count(find(status = this.order)) < 1": relations.Listed,
    "before refund require last(find(owner = this.order)).n = n or n >= 0": relations.Listed,
    "before refund require no find(this.order in items.sku) or n >= 0": relations.Listed,
    "before refund require no refund(this.order in tags) or n >= 0": relations.Listed,
    "before refund require no find(items(sku = this.order)) or n >= 0": relations.Listed,
    'before refund require no find(items(sku = "a")) or n >= 0': relations.Listed,
}


def policy_of(kind: type[Policy] = FastPolicy, statements: str = STATEMENTS) -> Any:
    """The policy of all statements."""
    core = core_of(TOOLS + statements)
    calls = [call for at, tool in enumerate(core.tools) for call in plan_calls(at, tool)]
    return kind(replace(core, calls=tuple(calls)))


class Cycles:
    """A session that looks an order up, gets its approval and refunds it, again and again.

    Attributes:
        refusals: of all calls that were decided.
    """

    def __init__(self, policy: Any) -> None:
        self.policy = policy
        self.history = FastHistory(policy.core, {"customer": ("s", "c")})
        self.refusals: list[Any] = []
        self._now = 1_790_000_000_000

    def grow(self, size: int) -> None:
        """Make calls without decisions until there are so many."""
        while len(self.history.calls) < size:
            for tool, arguments, answers in self._cycle():
                self._make(tool, arguments, answers)

    def decide(self) -> None:
        """Decide and make the calls of a cycle, and ask whether the session may end."""
        for tool, arguments, answers in self._cycle():
            call = Call(tool, len(self.history.calls), self._now, arguments)
            self.refusals += self.policy.refusals(self.history, call, self._now)
            self._make(tool, arguments, answers)
            self.policy.unmet(self.history, self._now)

    def _make(self, tool: str, arguments: dict[str, State], answers: dict[str, State]) -> None:
        call = Call(tool, len(self.history.calls), self._now, arguments)
        self.history.add(call, self.policy.draws(self.history, call, self._now))
        self.history.record(call, DONE, answers)
        self._now += 1000

    def _cycle(self) -> Iterator[tuple[str, dict[str, State], dict[str, State]]]:
        at = len(self.history.calls) // 3
        order, n, none = ("s", f"ord-{at}"), ("n", at % 7), ("none", None)
        found = {
            "owner": ("s", f"c-{at % 5}"), "total": ("n", 8), "score": ("n", 1),
            "status": ("s", "open"), "at": none, "items": none,
        }  # fmt: skip
        yield "find", {"order": order, "n": n, "kind": none, "note": none}, found
        approved = {"answer": ("s", "yes"), "who": none}
        yield "approve", {"order": order, "n": n, "note": none}, approved
        refund = {"order": order, "n": n, "kind": none, "note": none, "tags": none}
        yield "refund", refund, {}


def counted(work: Callable[[], object]) -> int:
    """How many functions are called."""
    calls = 0

    def count(_frame: object, event: str, _value: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def least_time(work: Callable[[], object]) -> int:
    """The least processor time of several runs, in nanoseconds."""
    gc.collect()
    gc.disable()
    found = []
    for _ in range(30):
        begin = time.process_time_ns()
        work()
        found.append(time.process_time_ns() - begin)
    gc.enable()
    return min(found)


def costs(
    sizes: Sequence[int], cost: Callable[[Callable[[], object]], int], statements: str = STATEMENTS
) -> list[int]:
    """The costs of one cycle, after histories of these sizes."""
    cycles = Cycles(policy_of(statements=statements))
    found = []
    for size in sizes:
        cycles.grow(size)
        for _ in range(8):  # every index catches up, for each key
            cycles.decide()
        found.append(cost(cycles.decide))
    assert cycles.refusals == []
    return found


def test_a_decision_costs_the_same_after_any_number_of_calls() -> None:
    found = costs(SIZES, counted)
    assert max(found) <= 1.05 * min(found), found


@pytest.mark.campaign
def test_a_decision_takes_the_same_time_after_any_number_of_calls() -> None:
    found = costs((SIZES[0], SIZES[-1]), least_time)
    assert max(found) <= 2.5 * min(found), found


def test_the_fast_version_agrees_with_the_definition_on_these_statements() -> None:
    fast = Cycles(policy_of())
    slow = Cycles(policy_of(Policy))
    for cycles in (fast, slow):
        for _ in range(20):
            cycles.decide()
    assert fast.refusals == slow.refusals == []


@pytest.mark.parametrize("statement", RELATED)
@pytest.mark.sampled(4)
def test_a_comparison_with_the_decided_call_costs_little_after_any_number_of_calls(
    statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = costs(SIZES, counted, statement)
    assert max(found) <= min(found) + 400, found
    no_stream(RELATED[statement])(monkeypatch)
    small, large = costs((100, 400), counted, statement)
    assert large > small + 150, (small, large)


# Indexes that are dropped.


def no_stream(bucket: type[Any]) -> Callable[[pytest.MonkeyPatch], None]:
    """No source has a feed with these buckets."""

    def drop(patch: pytest.MonkeyPatch) -> None:
        stream_of = conditions.Compiler._stream

        def stream(self: Any, source: Any, kind: type[Any], term: Any = None) -> Any:
            return None if kind is bucket else stream_of(self, source, kind, term)

        patch.setattr(conditions.Compiler, "_stream", stream)

    return drop


def no_keys(patch: pytest.MonkeyPatch) -> None:
    """The candidates of a source are looked for among all calls."""
    no_stream(feeds.Positions)(patch)
    patch.setattr(history.FastHistory, "candidates", ListHistory.candidates)


def no_search(patch: pytest.MonkeyPatch) -> None:
    """A window looks at all times."""

    def first(places: Any, value: Any) -> int:
        return sum([operator.lt(one, value) for one in places])

    patch.setattr(conditions, "bisect_left", first)


def no_running_amount(patch: pytest.MonkeyPatch) -> None:
    """A limit adds up all draws."""

    def amount(self: Any, since_ms: int | None) -> Any:
        drawn = [draw for draw in self.draws if history._counts(draw)]
        return sum([one.amount for one in drawn if since_ms is None or one.call.at_ms >= since_ms])

    patch.setattr(history._Line, "amount", amount)


def anew(kind: type[Any]) -> Callable[[pytest.MonkeyPatch], None]:
    """Totals or debts are computed from all calls."""

    def drop(patch: pytest.MonkeyPatch) -> None:
        caught_up = kind.caught_up

        def from_all(self: Any, state: Any) -> Any:
            getattr(state, "history", state).feeds.pop(self, None)
            return caught_up(self, state)

        patch.setattr(kind, "caught_up", from_all)

    return drop


def no_keys_of_debts(patch: pytest.MonkeyPatch) -> None:
    """A call may pay any debt."""
    patch.setattr(owes.Debts, "of_key", lambda self, key: list(self.open.values()))


INDEXES = {
    "positions": no_stream(feeds.Positions), "sums": no_stream(feeds.Sums),
    "values": no_stream(feeds.Values), "ordered": no_stream(relations.Ordered),
    "listed": no_stream(relations.Listed), "extremes": no_stream(feeds.Extremes), "keys": no_keys,
    "times": no_search, "running amounts": no_running_amount, "totals": anew(totals.Totals),
    "debts": anew(owes.Owe), "keys of debts": no_keys_of_debts,
}  # fmt: skip


@pytest.mark.parametrize("name", INDEXES)
@pytest.mark.sampled(6)
def test_without_an_index_answers_are_the_same_and_the_cost_grows(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    INDEXES[name](monkeypatch)
    assert Differential(3).run(300)["allowed"] > 50
    small, large = costs((100, 400), counted)
    assert large > small + 150, (small, large)
