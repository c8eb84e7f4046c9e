"""What a session is given when it begins: held at the opening, in the ledger, reopened the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tcc
from tcc_certs.values.canonical import digest
from tcc_runtime.errors import GivenOtherwise, GivenRefused, ResumeError, SettingsError
from tests.gate import grammars
from tests.oracle_session.writer import KEY, named, sealed

DESK = """grammar desk version "1"

given user: text min 1 max 20, role: agent | supervisor, most: number 0 .. 1000, note?: text

tool refund(amount: number 0 .. 100000, who: text max 20)

plan = any{0,20}

limit depth <= 20
before refund require who = session.user
before refund require amount <= session.most or session.role = supervisor
"""
ANN = {"user": "ann", "role": "agent", "most": 50}


@pytest.fixture(scope="module")
def artifact() -> Any:
    return grammars.artifact(DESK)


def code(gate: tcc.Gate, amount: float, who: str = "ann") -> str | None:
    found = gate.check("refund", {"amount": amount, "who": who}).code
    return None if found is None else str(found)


def test_statements_compare_with_what_is_given(artifact: Any) -> None:
    with tcc.Gate(artifact, given=ANN) as gate:
        assert [code(gate, 50), code(gate, 50.5), code(gate, 1, "bob")] == [None, "R202", "R202"]
    with tcc.Gate(artifact, given={**ANN, "role": "supervisor"}) as gate:
        assert [code(gate, 50.5), code(gate, 1, "bob")] == [None, "R202"]


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        (None, ("R103", "user")),
        ({}, ("R103", "user")),
        ({**ANN, "most": None}, ("R105", "most")),
        ({**ANN, "most": 1000.5}, ("R105", "most")),
        ({**ANN, "most": float("nan")}, ("R106", "most")),
        ({**ANN, "user": ""}, ("R105", "user")),
        ({**ANN, "user": "\ud800"}, ("R106", "user")),
        ({**ANN, "role": "chief"}, ("R104", "role")),
        ({**ANN, "note": 5}, ("R105", "note")),
        ({**ANN, "nobody": "x"}, ("R102", "nobody")),
        ([("user", "ann")], ("R106", "given")),
    ],
)
def test_what_is_not_declared_opens_nothing(
    given: Any, refusal: tuple[str, str], artifact: Any, tmp_path: Path
) -> None:
    ledger = tmp_path / "s.ledger"
    with pytest.raises(GivenRefused) as raised:
        tcc.Gate(artifact, ledger=ledger, given=given)
    assert (raised.value.code, raised.value.name) == refusal
    assert isinstance(raised.value, SettingsError) and refusal[0] in str(raised.value)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(GivenRefused):
        tcc.Sessions(artifact, tmp_path / "store").open(given)
    assert tcc.Sessions(artifact, tmp_path / "store").list() == ()


def test_a_grammar_that_asks_for_nothing_is_given_nothing() -> None:
    artifact = tcc.compile_text("""grammar g version "1"

tool a

plan = a?
""")
    with pytest.raises(GivenRefused, match="R102"):
        tcc.Gate(artifact, given={"user": "ann"})
    assert tcc.Gate(artifact, given={}).may_finish


def test_a_session_is_reopened_with_what_it_was_given(artifact: Any, tmp_path: Path) -> None:
    ledger = tmp_path / "s.ledger"
    options: dict[str, Any] = {"ledger": ledger, "key": KEY, "durable": False}
    tcc.Gate(artifact, given={**ANN, "note": "x"}, **options).close()
    for again in (None, {**ANN, "note": "x"}):
        with tcc.Gate(artifact, given=again, **options) as gate:
            assert [code(gate, 50), code(gate, 51)] == [None, "R202"]
    others: list[dict[str, Any]] = [ANN, {**ANN, "note": "y"}, {**ANN, "most": 51, "note": "x"}]
    for other in others:
        with pytest.raises(GivenOtherwise, match=r"line 1: given: (note|most)"):
            tcc.Gate(artifact, given=other, **options)
    header = json.loads(ledger.read_bytes().splitlines()[0])["given"]
    # The header has the value of a listed attribute, and of a number that a statement orders.
    assert {name: value.get("value") for name, value in header.items()} == {
        "user": None, "role": "agent", "most": "50", "note": None,
    }  # fmt: skip
    with pytest.raises(SettingsError, match="show"):
        tcc.Gate(artifact, given=ANN, show=["session.note"])


def test_the_session_of_a_principal_is_given_one_thing(artifact: Any, tmp_path: Path) -> None:
    sessions = tcc.Sessions(artifact, tmp_path / "store")
    with sessions.open(ANN, "ann") as gate:
        name = gate.session_id
    with sessions.open(None, "ann") as gate:
        assert (gate.session_id, code(gate, 50), code(gate, 51)) == (name, None, "R202")
    with pytest.raises(ResumeError, match="given: most"):
        sessions.open({**ANN, "most": 51}, "ann")
    with pytest.raises(ResumeError, match="given: most"):
        sessions.get(name, {**ANN, "most": 51})
    with sessions.open({**ANN, "most": 51}, "bob") as gate:
        assert code(gate, 51) is None


def test_times_and_lists_are_given(tmp_path: Path) -> None:
    artifact = grammars.artifact("""grammar desk version "1"

given since: time utc, teams: list of text, born?: date

tool act(team: text, at: time)

limit depth <= 5
before act require team in session.teams and at >= session.since
before act require now >= session.since
""")
    given = {"since": "2024-01-01T00:00:00", "teams": ["a", "b"]}
    ledger, clock = tmp_path / "s.ledger", lambda: 1_704_067_200_000
    with tcc.Gate(artifact, ledger=ledger, given=given, clock=clock) as gate:
        late, early = "2024-01-01T01:00:00+01:00", "2024-01-01T00:59:59+01:00"
        for team, at, due in (("a", late, None), ("c", late, "R202"), ("a", early, "R202")):
            found = gate.check("act", {"team": team, "at": at}).code
            assert found == due
    with tcc.Gate(artifact, given=given, clock=lambda: clock() - 1) as gate:
        assert gate.check("act", {"team": "a", "at": late}).code == "R202"
    for name, value in (("since", "today"), ("teams", "a"), ("teams", [1]), ("born", "2024-02-30")):
        with pytest.raises(GivenRefused, match="R105"):
            tcc.Gate(artifact, given={**given, name: value})


PLACED = """grammar desk version "1"

given claims: json, role: agent | chief at "/claims/role", teams: list of text at "/claims/teams/*",
  note?: text or null, other?: text at "/claims/other"

tool pay(team: text)

limit depth <= 5
before pay require team in session.teams and (session.note = null or session.note ~ "ok.*")
before pay require session.role = chief or session.other = "x"
"""


def test_places_in_what_is_given(tmp_path: Path) -> None:
    artifact = grammars.artifact(PLACED)
    claims = {"role": "chief", "teams": {"b": "two", "a": "one"}}

    def told(given: dict[str, Any], team: str) -> str | None:
        with tcc.Gate(artifact, given=given) as gate:
            found = gate.check("pay", {"team": team}).code
            return None if found is None else str(found)

    assert told({"claims": claims}, "one") is None
    assert told({"claims": claims, "note": None}, "one") is None
    assert told({"claims": claims, "note": "no"}, "one") == "R202"
    assert told({"claims": claims}, "three") == "R202"
    assert told({"claims": {**claims, "role": "agent"}}, "one") == "R202"
    assert told({"claims": {**claims, "role": "agent", "other": "x"}}, "one") is None
    for given, refusal in (
        ({"claims": {"teams": []}}, ("R103", "role")),
        ({"claims": {**claims, "role": 7}}, ("R104", "role")),
        ({"claims": {**claims, "teams": "one"}}, ("R103", "teams")),
        ({"claims": {**claims, "teams": [1]}}, ("R105", "teams")),
        ({"claims": claims, "role": "chief"}, ("R102", "role")),
        ({"claims": claims, "note": 5}, ("R105", "note")),
        ({}, ("R103", "claims")),
    ):
        with pytest.raises(GivenRefused) as raised:
            tcc.Gate(artifact, given=given)
        assert (raised.value.code, raised.value.name) == refusal, given


# Ledgers.


def made(folder: Path, artifact: Any) -> tuple[Path, list[dict[str, Any]]]:
    ledger = folder / "s.records"  # what a test changes is no session
    folder.mkdir(exist_ok=True)
    gate = tcc.Gate(artifact, ledger=ledger, key=KEY, durable=False, given={**ANN, "note": "x"})
    with gate.call("refund", {"amount": 50, "who": "ann"}) as permit:
        permit.done({})
    gate.finish()
    gate.close()
    found = tcc.validate(ledger, artifact, key=KEY)
    assert (found.claim_type, found.findings) == ("Conformant", ())
    said = "the session was given session.most, session.note, session.role, session.user"
    assert said in found.asserted
    assert any("values of session.note, which are not shown" in one for one in found.asserted)
    sealing = ("mac", "~")
    lines = [json.loads(line) for line in ledger.read_bytes().splitlines()]
    return ledger, [{n: v for n, v in line.items() if n not in sealing} for line in lines]


def value(kind: str, text: str) -> dict[str, str]:
    return {"digest": digest(KEY, kind.encode(), text.encode()).hex(), "type": kind, "value": text}


def digested(text: str) -> dict[str, str]:
    return {"digest": digest(KEY, b"s", text.encode()).hex()}


@pytest.mark.parametrize(
    ("change", "code", "field"),
    [
        (lambda given: given.update(user=digested("bob")), "S302", "call"),
        (lambda given: given.update(most=value("n", "49")), "S302", "call"),
        (lambda given: given["user"].update(value("s", "bob")), "S203", "given: session.user"),
        (lambda given: given["user"].update(digest="0" * 64), "S302", "call"),
        (lambda given: given["most"].update(digest="0" * 64), "S205", "given: session.most"),
        (lambda given: given.update(most={"digest": "0" * 64}), "S203", "given: session.most"),
        (lambda given: given["user"].update(of=[]), "S203", "given: session.user"),
        (lambda given: given.update(role={"value": "chief"}), "S203", "given: session.role"),
        (lambda given: given.update(role=value("s", "agent")), "S203", "given: session.role"),
        (lambda given: given.update(most=value("n", "1001")), "S204", "given: session.most"),
        (lambda given: given.update(most=value("n", "05")), "S204", "given: session.most"),
        (lambda given: given.update(other=value("s", "x")), "S101", "given"),
        (lambda given: given.pop("user"), "S101", "given"),
        (lambda given: given.clear(), "S101", "given"),
        (lambda given: given.update(user="ann"), "L103", "given"),
    ],
)
def test_a_forged_header_is_refused(
    change: Callable[[dict[str, Any]], object],
    code: str,
    field: str,
    artifact: Any,
    tmp_path: Path,
) -> None:
    ledger, records = made(tmp_path, artifact)
    change(records[0]["given"])
    header = named(records[0])
    ledger.write_bytes(sealed([header, *_rekeyed(records[1:], header)]))
    found = tcc.validate(ledger, artifact, key=KEY)
    assert (code, field) in [(str(one.code), one.field) for one in found.findings]
    assert (found.verdict, found.claim_type) == (1, "NoClaim")


def test_a_header_without_what_was_given_is_refused(artifact: Any, tmp_path: Path) -> None:
    ledger, records = made(tmp_path, artifact)
    del records[0]["given"]
    ledger.write_bytes(sealed([named(records[0]), *records[1:]]))
    found = tcc.validate(ledger, artifact, key=KEY)
    assert ("S101", "given") in [(str(one.code), one.field) for one in found.findings]
    # Changed where it stands, it is another session's, and its MAC is nobody's.
    first = json.loads(ledger.read_bytes().splitlines()[0])
    assert first["session_id"] != made(tmp_path / "again", artifact)[1][0]["session_id"]


def _rekeyed(records: list[dict[str, Any]], header: dict[str, Any]) -> list[dict[str, Any]]:
    """The records with the keys of calls that the session of this header has."""
    from tcc_certs.values.canonical import call_key

    keys = {"call": lambda one: call_key(KEY, header["session_id"], one["seq"]).hex()}
    return [{**one, "key": keys["call"](one)} if one["kind"] == "call" else one for one in records]
