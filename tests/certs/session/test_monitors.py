"""What monitors remember, against the sentence that defines each, over all resolutions."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tcc_certs.core.model import Core
from tcc_certs.core.reader import read_core
from tcc_certs.formats.codec import encode
from tcc_certs.session.monitors.keyed import Event, Memory, Monitors, Seen
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
