"""What monitors remember, against the sentence that defines each, over all resolutions."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tcc_certs.core.model import Core, Monitor, OrderMonitor, Selection, SumMonitor, UsesMonitor
from tcc_certs.core.opened import fields_of
from tcc_certs.core.policies import (
    Alternative,
    Apart,
    Ban,
    Count,
    Fields,
    Need,
    Policy,
    Total,
    Tree,
)
from tcc_certs.core.reader import read_core
from tcc_certs.formats.codec import encode
from tcc_certs.session.monitors import policies
from tcc_certs.session.monitors.keyed import Event, Memory, Monitors, Seen
from tcc_certs.values.places import UNKNOWN, State, constant, exact_number
from tests.oracle.cores import call, make_core
from tests.oracle_session.brute import Brute, Did, observed_of, value

PARAMS: list[dict[str, Any]] = [
    {"name": "p", "values": ["x", "y"]},
    {"name": "r", "values": ["no", "yes"], "observed": True},
]
OPEN: list[dict[str, Any]] = [
    {"name": "f", "type": "flag"},
    {"name": "n", "type": "number", "low": "0", "high": "9"},
    {"name": "t", "type": "text", "min": 0, "max": 9},
]
VALUES: dict[str, list[Any]] = {"f": [False, True], "n": [0, 0.5, 2], "t": ["", "a"]}


def random_core(rng: random.Random) -> Core:
    """Two or three tools and up to three monitors over them."""
    size = rng.randint(1, 3)
    tools = [{"name": name, "params": PARAMS, "open": OPEN} for name in "abc"[:size]]
    calls = [call(t, [p, r]) for t in range(size) for p in range(2) for r in range(2)]
    monitors = {encode(found): found for found in (_monitor(rng, size) for _ in range(3))}
    shadows = [
        ["before", _calls(m["first"]), _calls(m["second"])]
        for m in monitors.values()
        if m["kind"] == "require"
    ]
    return read_core(
        make_core(
            tools=tools,
            calls=calls,
            plan=["call", set(range(len(calls)))],
            requires=shadows,
            monitors=[monitors[key] for key in sorted(monitors)],
        )
    )


def _monitor(rng: random.Random, size: int) -> dict[str, Any]:
    match rng.choice(["before", "each", "each", "forbid", "with", "sum", "uses"]):
        case "sum":
            value = rng.choice(["0", "2", "2.5", "4"])
            return {"kind": "sum", "tool": rng.randrange(size), "param": "n", "value": value}
        case "uses":
            of = _select(rng, size)
            return {"kind": "uses", "of": of, "per": rng.choice("fnt"), "value": rng.randint(0, 2)}
        case order:
            kind = "forbid" if order in ("forbid", "with") else "require"
            names = rng.sample("fnt", rng.randint(1, 2))
            same = [[name, name] for name in names]
            if rng.random() < 0.3:
                same.append(["p", "p"])
            return {
                "kind": kind,
                "order": {"forbid": "before"}.get(order, order),
                "first": _select(rng, size, observed=order != "with"),
                "second": _select(rng, size),
                "same": sorted(same),
            }


def _select(rng: random.Random, size: int, observed: bool = False) -> dict[str, Any]:
    where = [[0, [rng.randrange(2)]]] if rng.random() < 0.3 else []
    if observed and rng.random() < 0.4:
        where.append([1, [rng.randrange(2)]])
    return {"tool": rng.randrange(size), "where": where}


def _calls(selection: dict[str, Any]) -> set[int]:
    """Call indices: tool, p, r in order."""
    bound = dict(selection["where"])
    return {
        selection["tool"] * 4 + p * 2 + r
        for p in range(2)
        for r in range(2)
        if p in bound.get(0, [0, 1]) and r in bound.get(1, [0, 1])
    }


class Session(Brute):
    """Brute force without an artifact: monitors alone."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.session = []


def seen_of(core: Core, did: Did) -> tuple[Seen, ...]:
    event = (did.tool, did.values, did.opened)
    opened = {name: repr(value(core, event, name)) for name in did.opened}
    return Monitors(core).see(did.tool, did.values, opened, {"n": str(did.opened["n"])})


def answered(core: Core, did: Did) -> tuple[int | None, ...]:
    values = list(did.values)
    if did.answer is not None:
        for at, index in zip(observed_of(core, did.tool), did.answer, strict=True):
            values[at] = index
    return tuple(values)


@pytest.mark.parametrize("seed", range(300))
def test_the_memory_allows_what_every_resolution_allows(seed: int) -> None:
    rng = random.Random(seed)
    core = random_core(rng)
    brute, memory = Session(core), Memory(Monitors(core))
    undone: list[Any] = []
    for _ in range(14):
        did = Did(
            tool=rng.randrange(len(core.tools)),
            values=(rng.randrange(2), None),
            opened={name: rng.choice(VALUES[name]) for name in VALUES},
        )
        due = brute.forbidding(did)
        text = None if due is None else core.monitors[due].text
        seen = seen_of(core, did)
        assert memory.forbids(seen) == text, (core.monitors, brute.session, did)
        if due is not None:
            continue
        unknown = sum(did.outcome == "unknown" for did in brute.session)
        did.outcome = rng.choice(["done", "done", "failed", "unknown" if unknown < 4 else "done"])
        if did.outcome == "done":
            did.answer = (rng.randrange(2),)
        brute.session.append(did)
        if did.outcome != "failed":
            made = Event(
                at=0,
                tool=did.tool,
                seen=seen,
                values=answered(core, did),
                done=did.outcome == "done",
            )
            undone.append((memory.add(made), made))
    # What is forgotten and remembered again is the same.
    before = dict(memory._counts)
    back = rng.randint(0, len(undone))
    for undo, _ in reversed(undone[back:]):
        memory.undo(undo)
    for _, made in undone[back:]:
        memory.add(made)
    assert memory._counts == before


def policy_of(core: Core, monitor: Monitor) -> Policy:
    """The statement of core 1.2 that says the same."""

    def calls(of: Selection) -> Tree:
        params = core.tools[of.tool].parameters
        bound = [(params[at], some) for at, some in of.where]
        where = [(param.name, tuple([param.values[i] for i in some])) for param, some in bound]
        return "calls", of.tool, tuple(sorted(where))

    match monitor:
        case SumMonitor():
            return Total(tool=monitor.tool, parameter=monitor.parameter, value=monitor.value)
        case UsesMonitor():
            per = (("own", monitor.per),)
            return Count(of=calls(monitor.calls), value=monitor.value, per=per)
        case OrderMonitor(order=order):
            same = tuple([(one, ("own", other)) for one, other in monitor.same])
            first, second = calls(monitor.first), calls(monitor.second)
            if order == "with":
                return Apart(one=first, other=second, same=same)
            alternatives = (Alternative(calls=first, same=same),)
            if monitor.kind == "require":
                return Need(order=order, alternatives=alternatives, of=second)
            return Ban(alternatives=alternatives, of=second)
    raise TypeError


def states_of(core: Core, did: Did) -> dict[str, State]:
    params = core.tools[did.tool].parameters
    known = zip(params, answered(core, did), strict=True)
    states = {one.name: UNKNOWN if at is None else constant(one.values[at]) for one, at in known}
    n = did.opened["n"]
    states |= {"f": ("b", did.opened["f"]), "t": ("s", did.opened["t"])}
    return states | {"n": ("n", exact_number(str(n)))}


@pytest.mark.parametrize("seed", range(150))
def test_a_statement_of_core_1_2_says_the_same(seed: int) -> None:
    """Whether keys are read by indices or by terms, one rule decides."""
    rng = random.Random(f"same {seed}")
    core = random_core(rng)
    fields = Fields(tools=tuple(map(fields_of, core.tools)))
    made = [policy_of(core, one) for one in core.monitors]
    memory, later = Memory(Monitors(core)), policies.Memory(policies.Policies(made, fields))
    undone = []
    for at in range(1, 25):
        did = Did(
            tool=rng.randrange(len(core.tools)),
            values=(rng.randrange(2), None),
            opened={name: rng.choice(VALUES[name]) for name in VALUES},
        )
        seen = seen_of(core, did)
        own = Event(at=at, tool=did.tool, states=states_of(core, did))
        text, found = memory.forbids(seen), later.refuses(own)
        assert text == (None if found is None else core.monitors[found[0]].text)
        outcome = rng.choice(["done", "done", "unknown", "answered", "undo"])
        if outcome == "undo" and undone:
            for held, back in zip((memory, later), undone.pop(), strict=True):
                held.undo(back)
            continue
        did.answer = (rng.randrange(2),) if outcome == "done" else None
        came = {"done": outcome == "done", "answered": outcome == "answered", "told": at}
        one = Event(at=at, tool=did.tool, seen=seen, values=answered(core, did), **came)
        other = Event(at=at, tool=did.tool, states=states_of(core, did), **came)
        undone.append((memory.add(one), later.add(other)))


def test_a_hidden_sum_is_asserted() -> None:
    core = read_core(
        make_core(
            tools=[{"name": "a", "params": [], "open": OPEN}],
            calls=[call(0)],
            plan=["call", {0}],
            monitors=[{"kind": "sum", "tool": 0, "param": "n", "value": "1"}],
        )
    )
    monitors = Monitors(core)
    memory = Memory(monitors)
    entries: tuple[dict[str, Any], ...] = (
        {"digest": "d"},
        {"digest": "d", "type": "n", "value": "0.75"},
    )
    hidden, known = [
        Event(at=0, tool=0, seen=monitors.read(0, (), {"n": entry}), done=True) for entry in entries
    ]
    for made in (hidden, known, hidden):
        assert memory.forbids(made.seen) is None
        memory.add(made)
    assert memory.forbids(known.seen) == core.monitors[0].text
