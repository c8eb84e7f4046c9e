"""Ledgers that are reopened: the same session, by the validator's steps, or a refusal."""

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
from tcc_certs.kernel import check
from tcc_certs.session import validate
from tcc_certs.values.canonical import record_key, record_mac
from tcc_runtime.errors import LedgerError, ResumeError
from tests.gate.grammars import artifact, bytes_of

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
TEXTS = {
    "plain": PLAIN, "mixed": MIXED, "errors": ERRORS, "opened": OPENED, "shown": SHOWN,
    "later": LATER,
}  # fmt: skip


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


def later(tool: str, rng: random.Random) -> dict[str, object]:
    """Arguments of a call of the grammar with spans of time."""
    found: dict[str, object] = {"order": rng.choice(["x", "y"])}
    return found if tool == "look" else {**found, "amount": rng.choice([10, 60, 90])}


def given_of(text: str, tool: str, rng: random.Random) -> dict[str, object]:
    if text in (OPENED, SHOWN):
        return opened(tool, rng)
    return (later if text is LATER else arguments)(tool, rng)


def answers(gate: tcc.Gate, text: str) -> list[Any]:
    """What a gate says of its session."""
    rng = random.Random(5)
    found: list[Any] = [gate.history, gate.may_finish, gate.head]
    for tool in [tool.name for tool in gate.artifact.core.tools] * 6:
        decision = gate.check(tool, given_of(text, tool, rng))
        found.append((decision.code, decision.place, decision.because))
    return found


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("seed", range(8))
def test_a_session_that_is_reopened_is_the_same(name: str, seed: int, tmp_path: Path) -> None:
    text, path = TEXTS[name], tmp_path / "l.ledger"
    drawn(text, random.Random(seed), path, ends=False)
    with tcc.Gate(artifact(text), ledger=path, durable=False) as one:
        due = answers(one, text)
        with tcc.Gate(artifact(text), ledger=path, durable=False) as other:
            assert answers(other, text) == due


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
            (rb'"at_ms":\d+', b'"at_ms":1'),
            (rb'"at_ms":\d+,', b""),
            (rb'"statement":\d+', b'"statement":7'),
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
@pytest.mark.sampled(3)
def test_a_gate_reopens_what_the_validator_finds_nothing_in(name: str, tmp_path: Path) -> None:
    text, path, other = TEXTS[name], tmp_path / "l.ledger", tmp_path / "mutant"
    rng = random.Random(7)
    drawn(text, rng, path, calls=16, ends=False)
    bodies = lines_of(path)
    assert sealed(bodies) == path.read_bytes()
    checked = check(bytes_of(artifact(text)))
    refused = 0
    for mutant in mutants(bodies, rng):
        data = sealed(mutant)
        other.write_bytes(data)
        found = validate(data, checked, key=KEY)
        codes = {str(finding.code) for finding in found.findings}
        error = ""
        try:
            tcc.Gate(artifact(text), ledger=other, key=KEY, durable=False).close()
        except (Rejected, ResumeError, LedgerError, tcc.Refused) as refusal:
            error = str(refusal)
        assert (error == "") == (codes == {"D301"}), (codes, error, mutant)
        refused += bool(error)
    assert refused > 100


def test_another_mac_is_refused_at_each_record(tmp_path: Path) -> None:
    path, other = tmp_path / "l.ledger", tmp_path / "mutant"
    drawn(PLAIN, random.Random(3), path, ends=False)
    reader = LedgerReader((path.read_bytes(),))
    bodies = [line.body for line in reader.lines()]
    for at in range(1, len(bodies)):
        head, lines = FIRST_HEAD, []
        for number, body in enumerate(bodies):
            if number == at:
                place = body.index(b'"mac":"') + 7 + at % 32
                digit = b"1" if body[place : place + 1] == b"0" else b"0"
                body = body[:place] + digit + body[place + 1 :]
            line, head = seal(body, head)
            lines.append(line)
        other.write_bytes(b"".join(lines))
        with pytest.raises(ResumeError, match=f"line {at + 1}: mac: S205"):
            tcc.Gate(artifact(PLAIN), ledger=other, key=KEY, durable=False)


# Two gates in turn: each continues by its own records at once, and by the other's as they come.


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.sampled(10)
def test_gates_in_turn_have_one_session(name: str, seed: int, tmp_path: Path) -> None:
    text, rng, path = TEXTS[name], random.Random(seed), tmp_path / "l.ledger"
    drawn(text, rng, path, calls=6, ends=False)
    names = [tool.name for tool in artifact(text).core.tools if tool.name != "end"]
    gates = [tcc.Gate(artifact(text), ledger=path, durable=False) for _ in range(2)]
    made = 0
    for _ in range(40):
        gate, tool = rng.choice(gates), rng.choice(names)
        with suppress(tcc.Refused, ValueError):
            with gate.call(tool, given_of(text, tool, rng)) as permit:
                settled(permit, rng)
            made += 1
        if rng.random() < 0.2:
            with suppress(tcc.Refused, ValueError):
                unknown = [one.seq for one in gate.history if one.outcome == "unknown"]
                gate.resolve(rng.choice(unknown or [0]), rng.choice(["failed", "done"]))
        assert answers(gates[0], text) == answers(gates[1], text)
    with tcc.Gate(artifact(text), ledger=path, durable=False) as fresh:
        assert answers(fresh, text) == answers(gates[0], text)
    assert made > 5
    for gate in gates:
        gate.close()
