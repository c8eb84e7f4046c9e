"""What a session learns: the first known value of some fields, in the order of outcomes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tcc
from tcc_certs.errors import Code
from tcc_certs.values.canonical import digest
from tests.gate import grammars
from tests.oracle_session.writer import KEY, named, sealed

DESK = """grammar desk version "1"

given who?: text
given customer from find.owner | find.user | login.name

tool find(user?: text max 20) gives (owner?: text max 20) { errors mean failed }
tool login(name: text max 20)
tool refund(to: text max 20)

plan = any{0,20}

limit depth <= 20
"""
ODD = """grammar g version "1"

given first from look.status

tool look gives (status: open | shut | *)
tool see(at: number 0 .. 9) gives (status: open | shut | *)
tool act

limit depth <= 9
"""
OWN = "before refund require to = session.customer"
PER = "limit count(refund) per session.customer <= 1 in session"


@pytest.fixture(scope="module")
def artifact() -> Any:
    return grammars.artifact(DESK + OWN)


def opened(artifact: Any, ledger: Path | None = None) -> tcc.Gate:
    return tcc.Gate(artifact, ledger=ledger, key=KEY, durable=False)


def call(gate: tcc.Gate, tool: str, told: object = None, **given: Any) -> None:
    with gate.call(tool, given) as permit:
        if told == "unknown":
            permit.unknown("gone")
        elif told in ("failed", "answered"):
            permit.failed("no", answered=told == "answered")
        else:
            permit.done(told)


def allowed(gate: tcc.Gate) -> str:
    """Whom a refund may go to."""
    return "".join(one for one in "abcd" if gate.check("refund", {"to": one}).allowed)


def test_the_first_known_value_is_it_for_ever(artifact: Any) -> None:
    with opened(artifact) as gate:
        assert allowed(gate) == ""
        call(gate, "find", "failed", user="d")
        call(gate, "find", "answered", user="d")
        call(gate, "find", "unknown", user="d")
        call(gate, "find", {})  # an answer and an argument that are left out
        call(gate, "find", {"owner": 5})  # of another type: not known
        assert allowed(gate) == ""
        call(gate, "find", {"owner": "a"}, user="b")
        assert allowed(gate) == "a"
        call(gate, "login", None, name="c")
        gate.resolve(3, "done", {"owner": "d"})
        assert allowed(gate) == "a"


def test_an_argument_is_learned_where_no_answer_is_known(artifact: Any) -> None:
    with opened(artifact) as gate:
        call(gate, "find", {"owner": 5}, user="b")
        assert allowed(gate) == "b"


def test_outcomes_count_and_not_calls(artifact: Any, tmp_path: Path) -> None:
    ledger = tmp_path / "s.ledger"
    with opened(artifact, ledger) as gate:
        call(gate, "find", "unknown", user="a")
        call(gate, "find", "unknown", user="b")
        gate.resolve(2, "done", {})
        assert allowed(gate) == "b"
        gate.resolve(1, "done", {"owner": "d"})
        assert allowed(gate) == "b"
        call(gate, "refund", None, to="b")
    with opened(artifact, ledger) as gate:  # reopened
        assert allowed(gate) == "b"
        gate.finish()
    found = tcc.validate(ledger, artifact, key=KEY)
    assert (found.claim_type, found.findings) == ("Conformant", ())


def test_a_call_keeps_what_it_was_decided_with(tmp_path: Path) -> None:
    artifact = grammars.artifact(DESK + PER)
    ledger = tmp_path / "s.ledger"
    with opened(artifact, ledger) as gate:
        call(gate, "find", "unknown", user="a")
        call(gate, "refund", None, to="x")  # of nobody that is known: it may be anybody's
        gate.resolve(1, "done", {})
        assert allowed(gate) == ""
    with opened(artifact, ledger) as gate:
        assert allowed(gate) == ""
    with opened(artifact) as gate:
        call(gate, "find", {"owner": "a"})
        call(gate, "refund", "failed", to="x")
        assert allowed(gate) == "abcd"
        call(gate, "refund", None, to="x")
        assert allowed(gate) == ""


def test_a_call_waits_for_an_outcome_that_may_tell(artifact: Any) -> None:
    with opened(artifact) as gate:
        session = gate._access.session
        with gate.call("login", {"name": "a"}) as permit:
            refused = gate.check("refund", {"to": "a"})
            assert refused.code == "R202" and refused.offer is not None
            assert session.may_come(Code.STATEMENT_REFUSES, refused.statement, refused.offer)
            permit.done(None)
        with gate.call("login", {"name": "b"}) as permit:
            refused = gate.check("refund", {"to": "b"})
            assert refused.offer is not None
            assert not session.may_come(Code.STATEMENT_REFUSES, refused.statement, refused.offer)
            permit.done(None)


@pytest.mark.parametrize(
    "statement",
    [
        "before act require see(status = session.first)",
        "before act require last(see).status = session.first",
        "before act require count(see(status = session.first)) >= 1",
        "before act require see(status = session.first, at >= 1)",
        "before act require last(see(status = session.first, at >= 1)) != null",
    ],
)
def test_two_values_that_nobody_listed_are_not_surely_one(statement: str) -> None:
    artifact = grammars.artifact(ODD + statement)
    for told, due in (("odd", "R202"), ("open", None)):
        with opened(artifact) as gate:
            call(gate, "look", {"status": told})
            call(gate, "see", {"status": told}, at=2)
            assert gate.check("act").code == due


def test_what_is_owed_is_not_paid_by_a_value_that_nobody_listed() -> None:
    artifact = grammars.artifact(ODD + "after act owe see(status = session.first)")
    for told, due in (("odd", False), ("open", True)):
        with opened(artifact) as gate:
            call(gate, "look", {"status": told})
            call(gate, "act")
            call(gate, "see", {"status": told}, at=2)
            assert gate.may_finish is due


# Ledgers.


def made(folder: Path, artifact: Any) -> tuple[Path, list[dict[str, Any]]]:
    ledger = folder / "s.records"  # what a test changes is no session
    with opened(artifact, ledger) as gate:
        call(gate, "find", {"owner": "a"}, user="b")
        call(gate, "refund", None, to="a")
        gate.finish()
    found = tcc.validate(ledger, artifact, key=KEY)
    assert (found.claim_type, found.findings) == ("Conformant", ())
    sealing = ("mac", "~")
    lines = [json.loads(line) for line in ledger.read_bytes().splitlines()]
    return ledger, [{n: v for n, v in line.items() if n not in sealing} for line in lines]


def value(text: str) -> dict[str, str]:
    return {"digest": digest(KEY, b"s", text.encode()).hex()}


def answers(records: list[dict[str, Any]], owner: Any) -> None:
    records[2]["answers"]["owner"] = owner


@pytest.mark.parametrize(
    ("change", "code", "field"),
    [
        (lambda r: answers(r, value("b")), "S302", "call"),
        (
            lambda r: answers(r, {**value("a"), "type": "s", "value": "a"}),
            "S203",
            "answers: find.owner",
        ),
        (lambda r: answers(r, {**value("a"), "of": []}), "S203", "answers: find.owner"),
        (lambda r: answers(r, {"unknown": True}), "S302", "call"),
        (lambda r: r[2].pop("answers"), "S302", "call"),
        (lambda r: r[3]["open"].update(to=value("b")), "S302", "call"),
        (lambda r: r[2].update(outcome="failed"), "S210", "answers"),
        (lambda r: r[0]["arguments"].update(show=["refund.to"]), "S203", "open: refund.to"),
    ],
)
def test_a_forged_source_is_refused(
    change: Callable[[list[dict[str, Any]]], object],
    code: str,
    field: str,
    artifact: Any,
    tmp_path: Path,
) -> None:
    ledger, records = made(tmp_path, artifact)
    change(records)
    if records[0]["arguments"]["show"] == ["refund.to"]:
        records[0] = named(records[0])
    ledger.write_bytes(sealed(records))
    found = tcc.validate(ledger, artifact, key=KEY)
    assert (code, field) in [(str(one.code), one.field) for one in found.findings]
    assert (found.verdict, found.claim_type) == (1, "NoClaim")


def test_an_outcome_that_is_moved_tells_later(artifact: Any, tmp_path: Path) -> None:
    ledger, records = made(tmp_path, artifact)
    late = {**records[2], "kind": "resolve"}
    for name in ("ms", "result"):
        late.pop(name, None)
    unknown = {"kind": "outcome", "ms": records[2]["ms"], "outcome": "unknown", "seq": 1}
    states = records[3]["states"]
    moved = [*records[:2], unknown, records[3], late, *records[4:]]
    ledger.write_bytes(sealed(moved))
    found = tcc.validate(ledger, artifact, key=KEY)
    assert states and ("S302", "call") in [(str(one.code), one.field) for one in found.findings]
