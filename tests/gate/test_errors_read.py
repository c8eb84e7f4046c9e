"""Errors that were read: they count for forbids alone, at gate, validator and in every order."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import tcc
from tcc_certs.policy.course import Course
from tcc_certs.policy.meaning import policy_of
from tcc_runtime.errors import SettingsError
from tests.gate.conftest import validated
from tests.gate.grammars import artifact, do, gate

TOOLS = """grammar g version "1"

tool read(id: text) { errors mean failed }
tool look { errors mean failed }
tool send(to: in | out, id: text)
tool test gives (result: pass | fail) { errors mean failed }
tool other

limit depth <= 12
"""


def failed(session: tcc.Gate, tool: str, arguments: Any = None, *, answered: bool = True) -> None:
    with session.call(tool, arguments or {}) as permit:
        permit.failed(answered=answered)


SEND = {"to": "out", "id": "x"}


def test_an_unknown_call_turns_out_to_have_failed_with_an_error_that_was_read(
    tmp_path: Path,
) -> None:
    compiled = artifact(TOOLS + "before send require no read(same id)")
    ledger = tmp_path / "s"
    with tcc.Gate(compiled, ledger=ledger) as session:
        for answered in (True, False):
            with session.call("read", {"id": "x" if answered else "y"}) as permit:
                permit.unknown()
            session.resolve(permit.seq, "failed", answered=answered)
        with session.call("other") as permit:
            permit.unknown()
        with pytest.raises(ValueError, match="errors mean failed"):
            session.resolve(permit.seq, "failed", answered=True)
        with pytest.raises(ValueError, match="of a failed call"):
            session.resolve(permit.seq, "done", answered=True)
    with tcc.Gate(compiled, ledger=ledger) as session:
        refused = session.check("send", {"to": "out", "id": "x"})
        assert (refused.code, refused.statement) == ("R202", 1)
        assert session.check("send", {"to": "out", "id": "y"}).allowed
        session.finish(abandon=True)
    found = validated(ledger)
    assert found.claim_upheld
    assert "1 calls that were answered with an error changed nothing" in found.asserted


@pytest.mark.parametrize(
    ("statement", "tool", "arguments"),
    [
        ("before send(to = out) require no look", "look", {}),
        (
            "before send(to = out) require no look\nbefore look require no send(to = out)",
            "look",
            {},
        ),
        ("before send(to = out) require no look since any - look", "look", {}),
        ("before send require no read(same id)", "read", {"id": "x"}),
        (
            "before send require no read(same id)\nbefore read require no send(same id)",
            "read",
            {"id": "x"},
        ),
        ("before send require no test(result = fail)", "test", {}),
    ],
)
def test_a_forbid_holds_over_an_error_that_was_read(
    statement: str, tool: str, arguments: dict[str, str], tmp_path: Path
) -> None:
    text = TOOLS + statement + "\n"
    session = gate(text, ledger=tmp_path / "no.ledger")
    failed(session, tool, arguments, answered=False)
    assert session.check("send", SEND).allowed, "nothing happened"
    session = gate(text, ledger=tmp_path / "s.ledger")
    failed(session, tool, arguments)
    refused = session.check("send", SEND)
    assert (refused.allowed, refused.code) == (False, "R202")
    assert refused.because[0]["text"] == statement.splitlines()[0]
    with pytest.raises(tcc.Refused):
        do(session, "send", SEND)
    do(session, "other")
    neighbours = "since any" in statement
    assert session.check("send", SEND).allowed is neighbours
    session.close()
    with gate(text, ledger=tmp_path / "s.ledger") as again:
        assert again.check("send", SEND).allowed is neighbours
    found = validated(tmp_path / "s.ledger")
    assert found.word == "INCOMPLETE"
    assert "1 calls that were answered with an error changed nothing" in found.asserted
    lines = (tmp_path / "s.ledger").read_bytes().splitlines()
    record = next(r for r in map(json.loads, lines) if r["kind"] == "outcome")
    assert (record["outcome"], record["answered"]) == ("failed", True)


def test_it_counts_for_nothing_else(tmp_path: Path) -> None:
    text = TOOLS + (
        "before send require look\nbefore other require read\nlimit count(look) <= 1\n"
        "limit count(read) per id <= 1 in session\n"
    )
    session = gate(text, ledger=tmp_path / "s.ledger")
    before = session.remaining
    for _ in range(2):
        failed(session, "look")
        failed(session, "read", {"id": "x"})
    assert session.remaining == before
    assert session.check("send", SEND).code == session.check("other").code == "R202"
    do(session, "look")
    do(session, "read", {"id": "x"})
    do(session, "send", SEND)


def test_it_is_said_of_tools_whose_errors_mean_failure_alone(tmp_path: Path) -> None:
    session = gate(TOOLS, ledger=tmp_path / "s.ledger")
    with session.call("other") as permit, pytest.raises(SettingsError, match="answered"):
        permit.failed(answered=True)
    assert session.history[0].outcome == "unknown"


def test_a_ledger_that_says_it_of_another_call_is_refused(tmp_path: Path) -> None:
    from tcc_certs.formats.ledger import LedgerReader
    from tcc_certs.session import validate
    from tests.gate.grammars import bytes_of
    from tests.oracle_session.writer import sealed

    key = bytes(range(32))
    for tool, outcome in (("other", "failed"), ("look", "done"), ("look", "unknown")):
        path = tmp_path / f"{tool}{outcome}"
        with tcc.Gate(artifact(TOOLS), ledger=path, key=key) as gated, gated.call(tool) as permit:
            getattr(permit, outcome)()
        records = [dict(record) for record in LedgerReader([path.read_bytes()])]
        records[-1]["answered"] = True
        for record in records:
            del record["mac"]
        found = validate(sealed(records), bytes_of(artifact(TOOLS)), key=key)
        assert [(f.code.value, f.field) for f in found.findings][:1] == [("S209", "answered")]


LETTERS = """grammar g version "1"

tool a { errors mean failed }
tool b
tool c { errors mean failed }
"""
STATEMENTS = (
    "before b require no a",
    "before b require no a\nbefore a require no b",
    "before b require no a since any - a",
    "before a require count(a since any - a) < 2",
    "before c require count(any) >= 2 or no a",
    "before b require a",
    "limit count(a | c) <= 2",
    "after a owe c",
)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_random_sessions_are_held_to_the_definition(statement: str) -> None:
    draw = random.Random(statement)
    text = f"{LETTERS}plan = any*\nlimit depth <= 8\n{statement}\n"
    for _ in range(8):
        session = gate(text)
        course = Course(policy_of(session.artifact.core))
        for _ in range(6):
            for tool in "abc":
                found = session.check(tool)
                refused = course.check(tool, {})
                assert found.statement == (refused[0].statement if refused else None)
            tool = draw.choice("abc")
            if not session.check(tool).allowed:
                continue
            how = draw.choice(["done", "unknown", "failed", "answered"][: 3 + (tool != "b")])
            with session.call(tool) as permit:
                if how == "answered":
                    permit.failed(answered=True)
                else:
                    getattr(permit, how)()
            course.record(course.call(tool, {}), how)
            assert [one["call"] for one in session.owed] == [
                debt.call.at + 1 for debt in course.policy.debts(course.history, 0)
            ]
