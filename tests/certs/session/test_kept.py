"""How many earlier calls are looked at, and what becomes of a call that older ones may forbid."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tcc
from tcc_certs.core.policies import Alternative, Ban, Fields, Need, Policy
from tcc_certs.session.monitors.alternatives import MOST_KEPT, Alt
from tcc_certs.session.monitors.kept import Kept
from tcc_certs.session.monitors.keyed import Event
from tcc_certs.session.monitors.policies import Memory, Policies
from tcc_certs.values.canonical import digest
from tcc_certs.values.fields import Field
from tcc_certs.values.places import NONE, UNKNOWN
from tests.gate import grammars
from tests.oracle_session.writer import KEY, sealed

DESK = """grammar desk version "1"

tool read(at: text max 9, by: text max 9, size: number 0 .. 9)
tool ask(at: text max 9)
tool send(at: text max 9, by: text max 9, size: number 0 .. 9)

limit depth <= 400
"""
FORBID = "before send require no read(same at, by != this.by, size > this.size)"


def session(folder: Path | None, *statements: str, clock: Any = None) -> tcc.Gate:
    artifact = grammars.artifact(DESK + "\n".join(statements))
    ledger = None if folder is None else folder / "s.ledger"
    return tcc.Gate(artifact, ledger=ledger, key=KEY, durable=False, clock=clock or (lambda: 0))


def call(gate: tcc.Gate, tool: str, **given: Any) -> None:
    with gate.call(tool, given) as permit:
        permit.done(None)


def read(gate: tcc.Gate, count: int, at: str = "x", by: str = "a", size: int = 5) -> None:
    for _ in range(count):
        call(gate, "read", at=at, by=by, size=size)


def code(gate: tcc.Gate, **given: Any) -> str | None:
    found = gate.check("send", {"at": "x", "by": "a", "size": 0, **given}).code
    return None if found is None else str(found)


def test_an_older_call_that_may_stand_against_it_refuses() -> None:
    with session(None, FORBID) as gate:
        read(gate, 1, by="b")
        read(gate, MOST_KEPT - 1)
        assert (code(gate), code(gate, by="b")) == ("R202", "R202")
        read(gate, 1)
        assert (code(gate), code(gate, at="y")) == ("R207", None)
        assert gate.check("send", {"at": "x", "by": "b", "size": 0}).code == "R202"
        because = gate.check("send", {"at": "x", "by": "a", "size": 0}).because
        assert [(one["kind"], one["text"]) for one in because] == [("monitor", FORBID)]
        with pytest.raises(tcc.Refused, match=r"R207: send: .*more earlier calls"):
            call(gate, "send", at="x", by="a", size=0)


def test_no_refusal_where_as_many_are_looked_at_as_there_are() -> None:
    with session(None, FORBID) as gate:
        read(gate, MOST_KEPT)
        read(gate, 100, at="y")
        assert code(gate) is None


def test_a_statement_that_surely_refuses_is_named_before_one_that_may() -> None:
    with session(None, FORBID, "before send require size <= 5") as gate:
        read(gate, MOST_KEPT + 1)
        assert (code(gate), code(gate, size=6)) == ("R207", "R202")


def test_an_order_alone_is_decided_by_all_calls() -> None:
    with session(None, "before send require no read(same at, size > this.size)") as gate:
        read(gate, 3 * MOST_KEPT)
        assert (code(gate, size=4), code(gate, size=5)) == ("R202", None)


def test_calls_before_the_window_are_none() -> None:
    now = [0]
    within = FORBID + " within 1 m"
    with session(None, within, clock=lambda: now[0]) as gate:
        read(gate, 1, by="b")
        now[0] = 60_001
        read(gate, MOST_KEPT)
        assert code(gate) is None
        read(gate, 1)
        assert code(gate) == "R207"


def test_no_older_call_helps_a_require() -> None:
    statement = "before send require read(same at, by != this.by, size > this.size)"
    with session(None, statement) as gate:
        read(gate, 1, by="b")
        read(gate, MOST_KEPT - 1)
        assert code(gate) is None
        read(gate, 1)
        assert code(gate) == "R202"


@pytest.mark.parametrize("count", [2, 40, 90])
def test_so_many_calls_are_counted(count: int) -> None:
    """A count over 64 was met by nothing."""
    with session(None, f"before send require count(read(same at)) >= {count}") as gate:
        read(gate, count - 1)
        assert code(gate) == "R202"
        read(gate, 1)
        assert code(gate) is None


def test_an_unless_lifts_what_came_before_it() -> None:
    with session(None, FORBID + " since ask(at = this.at)") as gate:
        read(gate, 30, by="b")
        call(gate, "ask", at="x")
        read(gate, 30)
        assert code(gate) is None
        read(gate, 40)
        assert code(gate) == "R207"  # whether an older one was lifted is not looked at


def test_the_shadow_makes_the_call_and_a_validator_refuses_it(tmp_path: Path) -> None:
    artifact = grammars.artifact(DESK + FORBID)
    ledger = tmp_path / "shadow.ledger"
    with tcc.Gate(artifact, ledger=ledger, key=KEY, durable=False, shadow=True) as gate:
        read(gate, MOST_KEPT + 1)
        with gate.call("send", {"at": "x", "by": "a", "size": 0}) as permit:
            assert permit.shadowed == "R207"
            permit.done(None)
        gate.finish()
    found = tcc.validate(ledger, artifact, key=KEY)
    assert (found.claim_type, found.findings) == ("NoClaim", ())


def test_a_ledger_with_such_a_call_is_invalid(tmp_path: Path) -> None:
    artifact = grammars.artifact(DESK + FORBID)
    ledger = tmp_path / "s.records"  # what a test changes is no session
    with tcc.Gate(artifact, ledger=ledger, key=KEY, durable=False) as gate:
        read(gate, MOST_KEPT + 1)
        call(gate, "send", at="y", by="a", size=0)
        gate.finish()
    lines = [json.loads(line) for line in ledger.read_bytes().splitlines()]
    records = [{n: v for n, v in line.items() if n not in ("mac", "~")} for line in lines]
    sent = next(one for one in records if one.get("call") == "send")
    sent["open"]["at"] = {"digest": digest(KEY, b"s", b"x").hex()}
    ledger.write_bytes(sealed(records))
    found = tcc.validate(ledger, artifact, key=KEY)
    assert [(str(one.code), one.field) for one in found.findings] == [("S302", "call")]
    assert found.claim_type == "NoClaim"


# Columns, and the look at each call.

_CALLS = ("calls", 0, ())
OTHER = ("*", frozenset([("s", "a"), ("n", 1)]))  # what is not listed
_VALUES: list[Any] = [
    ("n", 1), ("n", 2), ("n", 2.5), ("s", "a"), ("s", "b"), ("t", 5), NONE, UNKNOWN, OTHER,
]  # fmt: skip


def _drawn_policy(draw: random.Random) -> Policy:
    ops = ("=", "!=", "<", "<=", ">", ">=")
    where = []
    for _ in range(draw.randint(1, 3)):
        sides = [("seen", draw.choice("fg")), draw.choice([("own", "f"), ("n", "2"), ("now",)])]
        draw.shuffle(sides)
        where.append((draw.choice(ops), *sides))
    one = Alternative(
        calls=("calls", 0, (("k", ("a",)),)) if draw.random() < 0.3 else _CALLS,
        same=(("k", ("own", "k")),) if draw.random() < 0.5 else (),
        where=tuple(where),
        within=draw.choice([None, None, 5, 200]),
    )
    if draw.random() < 0.5:
        return Need(order="before", alternatives=(one,), of=("calls", 1, ()))
    return Ban(alternatives=(one,), of=("calls", 1, ()))


def _drawn_event(draw: random.Random, at: int, tool: int, odd: bool) -> Event:
    few = _VALUES if odd else _VALUES[: draw.choice([2, 3, 5, 9])]
    return Event(
        at=at,
        tool=tool,
        states={"k": draw.choice([("s", "a")] * 9 + [NONE]), "f": draw.choice(few),
                "g": draw.choice(few)},
        stamp=at,
        done=draw.random() < 0.9,
        answered=draw.random() < 0.1,
        told=at,
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(300))
def test_columns_say_what_a_look_at_each_call_says(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(f"columns {seed}")
    made: dict[str, Field] = {name: Field(name=name, steps=(name,)) for name in "kfg"}
    memory = Memory(Policies([_drawn_policy(draw)], Fields(tools=(made, made))))
    undo, odd = [], draw.random() < 0.3
    for at in range(1, draw.choice([20, 90, 150])):
        undo.append(memory.add(_drawn_event(draw, at, 0, odd)))
        if draw.random() < 0.1:
            memory.undo(undo.pop())
        own = _drawn_event(draw, at + 1, 1, odd)
        found = memory.refuses(own)
        with monkeypatch.context() as patch:
            patch.setattr(Alt, "at_once", lambda *_, **__: None)
            assert memory.refuses(own) == found
    for one in reversed(undo):
        memory.undo(one)
    assert not any(kept or any(map(any, kept.columns)) for kept in _kept(memory))


def _kept(memory: Memory) -> list[Kept]:
    return [kept for pool in memory.pools for kept in pool.by_key.values()]


def test_columns_decide_where_nothing_is_lacking(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at each call, which is what they spare, is never taken."""
    where = ((">=", ("seen", "f"), ("n", "1")), ("!=", ("seen", "g"), ("own", "g")))
    one = Alternative(calls=_CALLS, same=(("k", ("own", "k")),), where=where)
    made = {name: Field(name=name, steps=(name,)) for name in "kfg"}
    need = Need(order="before", alternatives=(one,), of=("calls", 1, ()))
    memory = Memory(Policies([need], Fields(tools=(made, made))))
    states: dict[str, Any] = {"k": ("s", "a"), "f": ("n", 3), "g": ("s", "b")}
    for at in range(1, 200):
        memory.add(Event(at=at, tool=0, states=states, done=True, told=at))
    monkeypatch.setattr(Alt, "surely", None)
    own = Event(at=200, tool=1, states={**states, "g": ("s", "c")})
    assert memory.refuses(own) is None
    assert memory.refuses(Event(at=200, tool=1, states=states)) == (0, True)


def test_two_values_that_are_not_listed_are_not_surely_one() -> None:
    one = Alternative(calls=_CALLS, where=(("=", ("seen", "f"), ("own", "f")),))
    where = (*one.where, ("=", ("seen", "g"), ("own", "g")))
    made = {name: Field(name=name, steps=(name,)) for name in "kfg"}
    need = Need(order="before", alternatives=(replace(one, where=where),), of=("calls", 1, ()))
    other = ("!=", ("seen", "f"), ("own", "f"))
    apart = replace(need, alternatives=(replace(one, where=(other, *where[1:])),))
    states: dict[str, Any] = {"k": ("s", "a"), "f": OTHER, "g": ("n", 1)}
    for policy in (need, apart):
        memory = Memory(Policies([policy], Fields(tools=(made, made))))
        memory.add(Event(at=1, tool=0, states=states, done=True, told=1))
        assert memory.refuses(Event(at=2, tool=1, states=states)) == (0, True)
