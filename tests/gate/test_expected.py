"""Ledgers that are reopened quickly, and by the validator alone: the same sessions and refusals."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import tcc
from tcc_certs.errors import Rejected
from tcc_certs.formats.ledger import FIRST_HEAD, LedgerReader, seal
from tcc_certs.session.replay import ReplayedSession
from tcc_certs.values.canonical import record_key, record_mac
from tcc_runtime.errors import LedgerError, ResumeError
from tcc_runtime.gate.journal.ledger_file import InFile
from tcc_runtime.gate.policy import policy_of
from tcc_runtime.gate.session.recovery import Follower
from tests.gate.grammars import artifact

KEY = bytes(range(32))
PLAIN = r"""grammar plain version "1"

tool read(kind: call | mail)
tool write(part: half | full)
tool odd(name: "a\"b" | "\u00e4" | "")

limit depth <= 40
limit count(write) <= 6
before write require read(kind = mail)
"""
MIXED = """grammar mixed version "1"

tool read(kind: call | mail) { parallel }
tool look(kind: call | mail, p: text) gives (r: yes | no) { parallel }
tool ask(p: text)
tool end

plan = (read | look | ask)* end?

limit depth <= 40
before ask require no read(kind = mail)
before read(kind = call) require no look(same kind)
limit count(read) per kind <= 9 in session
"""
ERRORS = """grammar errors version "1"

tool read(kind: call | mail) { errors mean failed }
tool pay

limit depth <= 40
before pay require read(kind = call)
before read(kind = mail) require no pay
"""
OPENED = """grammar opened version "1"

tool read(kind: call | mail, order: text, why?: text)
tool ask(p?: text) gives (total: number 0 .. 9)
tool add(n: number 0 .. 100)

limit depth <= 40
limit sum(add.n) <= 500
before read(kind = mail) require read(same order, kind = call)
limit count(read) per order <= 9 in session
"""
SHOWN = OPENED.replace("opened", "shown")
LATER = """grammar later version "1"

tool look(order: text max 20)
tool refund(order: text max 20, amount: number 0 .. 1000)

plan = any{0,90}

before refund require look(same order) within 5 m
limit sum(refund.amount within 1 h) per order <= 300 in session
limit count(refund within 1 h) <= 20 in session
"""
TEXTS = {"plain": PLAIN, "mixed": MIXED, "errors": ERRORS, "opened": OPENED, "shown": SHOWN}


class Taken:
    """A ledger, reopened."""

    def __init__(self, text: str, path: Path, monkeypatch: pytest.MonkeyPatch, *, quick: bool):
        self.passed = 0
        self.error = ""
        with monkeypatch.context() as patch:
            if not quick:
                patch.setattr(Follower, "_share", lambda _: None)
            self.follower = Follower(policy_of(artifact(text)), KEY)
            self.journal = InFile(path, durable=False)
            try:
                self.read()
            except (Rejected, ResumeError, LedgerError) as error:
                self.error = f"{type(error).__name__}: {error}"

    def read(self) -> None:
        """Everything that others have written."""
        for news in self.journal.news(locked=False, passes=self._passes):
            self.follower.apply(news)

    def _passes(self, body: bytes, previous: bytes, line: int) -> bool:
        found = self.follower.passes(body, previous, line)
        self.passed += found
        return found

    def all(self) -> dict[str, Any]:
        """What is known of the session."""
        follower = self.follower
        session, replay = follower.session, follower._replay
        found = {name: getattr(session, name) for name in ("made", "under_way", "ended")}
        found |= {name: getattr(session, name) for name in ("resolved", "stamp", "held", "taken")}
        found |= {name: getattr(follower, name) for name in ("refs", "shadow", "returns")}
        return {
            **found,
            "counts": session.course.memory._counts,
            "finish": session.may_finish(),
            "line": None if replay is None else replay.line,
            "error": self.error,
            **({} if replay is None or replay.session is None else replayed(replay.session)),
        }


def replayed(session: ReplayedSession) -> dict[str, Any]:
    """What the validator knows of a session."""
    tally = {name: getattr(session.tally, name) for name in session.tally.__slots__}
    return {
        "tally": tally,
        "open": session.open,
        "keys": session.keys,
        "unknown": session._unknown,
        "replayed": (session.ended, session.abandoned, session.course.held),
        "remembered": session.course.memory._counts,
    }


def drawn(text: str, rng: random.Random, path: Path, calls: int = 25, *, ends: bool = True) -> None:
    """A session with outcomes of all kinds, several calls at once, refusals, resolutions.

    Args:
        ends: whether it may end.
    """
    Path(f"{path}.key").write_text(KEY.hex() + "\n")
    Path(f"{path}.key").chmod(0o600)
    names = [tool.name for tool in artifact(text).core.tools if ends or tool.name != "end"]
    show = ["ask.total", "read.order"] if text is SHOWN else []
    with tcc.Gate(artifact(text), ledger=path, durable=False, show=show) as gate:
        under_way: list[tcc.Permit] = []
        for _ in range(calls):
            with suppress(tcc.Refused, ValueError):
                if under_way and rng.random() < 0.7:
                    settled(under_way.pop(rng.randrange(len(under_way))), rng)
                elif rng.random() < 0.1:
                    unknown = [one.seq for one in gate.history if one.outcome == "unknown"]
                    gate.resolve(rng.choice(unknown or [0]), rng.choice(["failed", "done"]))
                else:
                    tool = rng.choice(names if not under_way else ["read", "look", "read"])
                    ref = {"ref": str(rng.random())} if rng.random() < 0.1 else {}
                    given = (later if text is LATER else arguments)(tool, rng)
                    if text in (OPENED, SHOWN):
                        given = opened(tool, rng)
                    permit = gate.call(tool, given, **ref)
                    permit.__enter__()
                    under_way.append(permit)
        for permit in under_way[rng.randrange(2) :]:
            permit.__exit__(None, None, None)
        if ends and not under_way and rng.random() < 0.3:
            with suppress(tcc.Refused):
                gate.finish()


def arguments(tool: str, rng: random.Random) -> dict[str, object]:
    """Those of a call, which may be refused."""
    found: dict[str, object] = {}
    if tool in ("read", "look"):
        found["kind"] = rng.choice(["call", "mail"])
    if tool == "write":
        found["part"] = rng.choice(["half", "full", "none"])
    if tool == "odd":
        found["name"] = rng.choice(['a"b', "\u00e4", ""])
    if tool in ("look", "ask"):
        found["p"] = rng.choice(["x", "y"])
    return found


def opened(tool: str, rng: random.Random) -> dict[str, object]:
    """Open arguments, some of them left out."""
    if tool == "add":
        return {"n": rng.randrange(60)}
    if tool == "ask":
        return {"p": rng.choice(["x", "y"])} if rng.random() < 0.5 else {}
    more = {"why": rng.choice(["x", "y"])} if rng.random() < 0.5 else {}
    return {"kind": rng.choice(["call", "mail"]), "order": rng.choice(["x", "y"]), **more}


def settled(permit: tcc.Permit, rng: random.Random) -> None:
    """The outcome of a call."""
    match rng.randrange(7):
        case 0:
            permit.failed("no")
        case 1:
            permit.unknown()
        case 2:
            permit.done({"r": "no", "total": 3})
        case _:
            permit.done({"r": "yes", "total": 5} if rng.random() < 0.7 else None)
    permit.__exit__(None, None, None)


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("seed", range(8))
def test_both_ways_come_to_one_session(
    name: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "l.ledger"
    drawn(TEXTS[name], random.Random(seed), path)
    quick, slow = (Taken(TEXTS[name], path, monkeypatch, quick=quick) for quick in (True, False))
    assert quick.all() == slow.all()
    assert not quick.error and not slow.passed
    assert quick.passed >= {"plain": 6, "errors": 3}.get(name, 0)
    assert quick.follower.session.course is quick.follower._replay.session.course  # type: ignore[union-attr]


# Whoever has the key can give any bytes a MAC.


def lines_of(path: Path) -> list[bytes]:
    """The canonical bytes of each record, without its MAC."""
    reader = LedgerReader((path.read_bytes(),))
    found = [line.body for line in reader.lines()]
    return [re.sub(rb',?"mac":"[0-9a-f]{32}"', b"", body, count=1) for body in found]


def sealed(bodies: list[bytes]) -> bytes:
    """The ledger of these records, each with its MAC and its link, whatever they say."""
    head, found, derived = FIRST_HEAD, [], record_key(KEY)
    for body in bodies:
        mac = b',"mac":"%b"' % record_mac(derived, head, body).hex().encode()
        match = re.search(rb'"kind":"[a-z]+"', body)
        at = len(body) - 1 if match is None else match.end()
        line, head = seal(body[:at] + mac + body[at:], head)
        found.append(line)
    return b"".join(found)


def mutants(bodies: list[bytes], rng: random.Random) -> Iterator[list[bytes]]:
    """Ledgers of which one record says something else, is there twice or not, or is turned."""
    for at in range(1, len(bodies)):
        body = bodies[at]
        swaps = [
            (rb'"seq":\d+', b'"seq":%d' % rng.randrange(30)),
            (rb'"seq":', b'"seq":0'),
            (rb'"seq":', b'"seq": '),
            (rb'"states":\[\d+\]', b'"states":[%d]' % rng.randrange(50)),
            (rb'"states":\[', b'"states":[0,'),
            (rb'"states":\[\d+\]', b'"states":[]'),
            (rb'"key":"[0-9a-f]', b'"key":"%x' % rng.randrange(16)),
            (rb"kind=mail", b"kind=call"),
            (rb"kind=call", b"kind=mail"),
            (rb"read", rb"\u0072ead"),
            (rb"read", b"write"),
            (rb'"open":\{\}', b'"open":{"p":{"digest":"%b"}}' % (b"0" * 64)),
            (rb'"open":\{"', b'"open":{"a":{"digest":"%b"},"' % (b"0" * 64)),
            (rb'"digest":"', b'"digest":"0'),
            (rb'"digest":"[0-9a-f]', b'"digest":"A'),
            (rb'"digest":"[0-9a-f]', b'"digest":"%x' % rng.randrange(16)),
            (rb'\{"digest"', b'{"like":"1","digest"'),
            (rb'"order":\{[^}]*\}', b'"order":{}'),
            (rb'"order":\{[^}]*\},?', b""),
            (rb'"order":\{[^}]*\}', b'"why":{"digest":"%b"}' % (b"0" * 64)),
            (rb',"type":"[a-z]","value":"[^"]*"', b""),
            (rb'"answers":\{.*?\}\},', b""),
            (rb'"observed":\{[^}]*\},', b""),
            (rb',"unforeseen":true', b""),
            (rb'"outcome":"done"', b'"outcome":"failed"'),
            (rb'"outcome":"done"', b'"outcome":"unknown"'),
            (rb'"outcome":"done"', b'"observed":{"r":"yes"},"outcome":"done"'),
            (rb'"outcome":"done"', b'"outcome":"done","result":"%b"' % (b"a" * 64)),
            (rb'"ms":\d+', b'"ms":007'),
            (rb'"ms":\d+', b'"ms":1e3'),
            (rb'"ms":\d+', b'"ms":123456789012345678'),
            (rb"^\{", b'{"answered":true,'),
            (rb"\}$", b',"unforeseen":true}'),
            (rb"\}$", b',"took":{}}'),
        ]
        for old, new in swaps:
            turned = re.sub(old, lambda _, new=new: new, body, count=1)  # type: ignore[misc]
            if turned != body:
                yield [*bodies[:at], turned, *bodies[at + 1 :]]
        twice = re.sub(rb'("order":\{[^}]*\}),("why":\{[^}]*\})', rb"\2,\1", body)
        if twice != body:
            yield [*bodies[:at], twice, *bodies[at + 1 :]]
        yield [*bodies[:at], *bodies[at + 1 :]]
        yield [*bodies[:at], body, *bodies[at:]]
        yield [*bodies[:at], bodies[-1], *bodies[at:]]
        if at + 1 < len(bodies):
            yield [*bodies[:at], bodies[at + 1], body, *bodies[at + 2 :]]
        for _ in range(4):
            place, byte = rng.randrange(len(body)), bytes([rng.choice(b'0a" {},:[]')])
            cut = place + rng.randrange(2)
            yield [*bodies[:at], body[:place] + byte + body[cut:], *bodies[at + 1 :]]


@pytest.mark.parametrize("name", TEXTS)
def test_both_ways_refuse_the_same_with_the_same_words(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other = tmp_path / "l.ledger", tmp_path / "mutant"
    seed, needs = {"mixed": (17, b'"observed"'), "shown": (8, b'"answers"')}.get(name, (7, b""))
    rng = random.Random(seed)
    drawn(TEXTS[name], rng, path, calls=16)
    assert needs in path.read_bytes()
    assert sealed(lines_of(path)) == path.read_bytes()
    refused = 0
    for bodies in mutants(lines_of(path), rng):
        other.write_bytes(sealed(bodies))
        quick, slow = (
            Taken(TEXTS[name], other, monkeypatch, quick=quick) for quick in (True, False)
        )
        assert quick.error == slow.error, bodies
        refused += bool(quick.error)
        if not quick.error:
            assert quick.all() == slow.all(), bodies
    assert refused > 100


def test_another_mac_is_refused_at_each_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other = tmp_path / "l.ledger", tmp_path / "mutant"
    drawn(PLAIN, random.Random(3), path)
    reader = LedgerReader((path.read_bytes(),))
    bodies = [line.body for line in reader.lines()]
    for at in range(1, len(bodies)):
        head, lines = FIRST_HEAD, []
        for number, body in enumerate(bodies):
            if number == at:
                place = body.index(b'"mac":"') + 7 + at % 32
                body = (
                    body[:place]
                    + (b"1" if body[place : place + 1] == b"0" else b"0")
                    + body[place + 1 :]
                )
            line, head = seal(body, head)
            lines.append(line)
        other.write_bytes(b"".join(lines))
        for quick in (True, False):
            error = Taken(PLAIN, other, monkeypatch, quick=quick).error
            assert f"line {at + 1}: mac: S205" in error


# Two gates in turn: each goes on by its own records at once, and by the other's as they come.


@pytest.mark.parametrize("name", [*TEXTS, "later"])
@pytest.mark.parametrize("seed", range(4))
def test_gates_in_turn_stay_with_what_the_validator_finds(
    name: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, rng, path = {**TEXTS, "later": LATER}[name], random.Random(seed), tmp_path / "l.ledger"
    drawn(text, rng, path, calls=6, ends=False)
    names = [tool.name for tool in artifact(text).core.tools if tool.name != "end"]
    made = same = 0
    with suppress(tcc.Refused):
        gates = [tcc.Gate(artifact(text), ledger=path, durable=False) for _ in range(2)]
        for _ in range(40):
            gate = rng.choice(gates)
            tool = rng.choice(names)
            given = (later if text is LATER else arguments)(tool, rng)
            if text in (OPENED, SHOWN):
                given = opened(tool, rng)
            with suppress(tcc.Refused, ValueError):
                permit = gate.call(tool, given)
                with permit:
                    settled(permit, rng)
                made += 1
            if rng.random() < 0.2:
                with suppress(tcc.Refused, ValueError):
                    unknown = [one.seq for one in gate.history if one.outcome == "unknown"]
                    gate.resolve(rng.choice(unknown or [0]), rng.choice(["failed", "done"]))
        for gate in gates:
            assert gate.remaining
            follower = gate._access.follower
            fresh = Taken(text, path, monkeypatch, quick=False)
            assert fresh.error == ""
            mine, due = follower._replay.session, fresh.follower._replay.session
            assert mine is not None and due is not None
            assert follower.session.made == fresh.follower.session.made
            assert follower.session.held == fresh.follower.session.held
            if follower._replay.line == fresh.follower._replay.line:  # the other's are the last
                assert replayed(mine) == replayed(due)
                same += 1
        for gate in gates:
            gate.close()
    assert made > 5 and same


def later(tool: str, rng: random.Random) -> dict[str, object]:
    """Arguments of a call of the grammar with spans of time."""
    found: dict[str, object] = {"order": rng.choice(["x", "y"])}
    return found if tool == "look" else {**found, "amount": rng.choice([10, 60, 90])}


def test_what_a_session_reopens_is_gone_through_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "l.ledger"
    drawn(PLAIN, random.Random(1), path, calls=60)
    steps = 0
    machine = policy_of(artifact(PLAIN)).machine
    step = machine.step

    def counted(*args: Any) -> Any:
        nonlocal steps
        steps += 1
        return step(*args)

    taken = Taken(PLAIN, path, monkeypatch, quick=True)
    calls = len(taken.follower.session.made)
    monkeypatch.setattr(machine, "step", counted)
    machine._looked.clear()
    again = Taken(PLAIN, path, monkeypatch, quick=True)
    assert again.follower.session.held == taken.follower.session.held
    assert calls > 20 and steps <= 2 * calls
