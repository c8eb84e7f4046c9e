"""``tcc session pending``, ``approve`` and ``deny``: questions on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tcc as library
from tests.cli.conftest import Tcc

DESK = """grammar desk version "1"

tool refund(order: text, amount: number 0 .. 500, way: cash | card)

before refund(amount > 100) ask "finance" within 2 h because "Large refunds need finance."
limit depth <= 30
"""
FINANCE = 'before refund(amount > 100) ask "finance" within 2 h'
BIG = {"order": "a", "amount": 200, "way": "card"}


@pytest.fixture
def gate(tmp_path: Path) -> library.Gate:
    return library.Gate(library.compile_text(DESK), ledger=tmp_path / "s.ledger", durable=False)


def asked(gate: library.Gate, **changes: object) -> library.Pending:
    with pytest.raises(library.Pending) as raised, gate.call("refund", {**BIG, **changes}):
        pass
    return raised.value


def test_pending_lists_what_waits_with_the_values_that_the_ledger_has(
    gate: library.Gate, tmp_path: Path, tcc: Tcc
) -> None:
    question = asked(gate)
    (found,) = tcc("session", "pending", tmp_path / "s.ledger", "--json").json["pending"]
    assert found == {
        "id": question.id, "who": "finance", "text": FINANCE, "tool": "refund",
        "expires_ms": question.expires_ms, "asked_ms": question.asked_ms,
        "call": "refund(way=card)", "arguments": {"amount": "200"}, "hidden": ["order"],
        "session": gate.session_id, "ledger": str(tmp_path / "s.ledger"),
    }  # fmt: skip
    said = tcc("session", "pending", tmp_path).out
    assert f"{question.id}  finance: refund(way=card) [amount=200, order hidden]" in said
    assert FINANCE in said


def test_a_person_approves_one_call_and_denies_another(
    gate: library.Gate, tmp_path: Path, tcc: Tcc
) -> None:
    first, second = asked(gate), asked(gate, amount=300)
    gate.close()
    ledger = tmp_path / "s.ledger"
    ended = tcc("session", "approve", ledger, first.id, "--who", "Ann")
    assert (ended.code, ended.out) == (0, f"question {first.id} of {ledger} is approved\n")
    ended = tcc("session", "deny", tmp_path, second.id, "--who", "Ann", "--reason", "June")
    assert (ended.code, ended.out) == (0, f"question {second.id} of {ledger} is denied\n")
    again = library.Gate(library.compile_text(DESK), ledger=ledger, durable=False)
    with again.call("refund", BIG) as permit:
        permit.done()
    assert str(again.check("refund", {**BIG, "amount": 300}).code) == "R209"


def test_a_verdict_that_cannot_be_recorded_is_refused_with_a_code(
    gate: library.Gate, tmp_path: Path, tcc: Tcc
) -> None:
    ledger, question = tmp_path / "s.ledger", asked(gate)
    gate.approve(question.id, who="Ann")
    for question_id, said in ((question.id, "a verdict stands"), ("0" * 32, "no open question")):
        ended = tcc("session", "approve", ledger, question_id, "--who", "Ann")
        assert (ended.code, "S215" in ended.err, said in ended.err) == (1, True, True)
    for place, said in (
        (tmp_path / "none", "a ledger or a folder of ledgers"),
        ("postgres://db/sessions", "stores at a URL come with a later release"),
    ):
        ended = tcc("session", "deny", place, question.id, "--who", "Ann", "--reason", "x")
        assert (ended.code, said in ended.err) == (2, True)
    ended = tcc("session", "approve", ledger, question.id, "--who", "a\nb")
    assert (ended.code, "255 characters" in ended.err) == (2, True)
    assert tcc("session", "approve", ledger, question.id).code == 2


def test_a_place_without_a_readable_ledger_is_told(tmp_path: Path, tcc: Tcc) -> None:
    (tmp_path / "s.ledger").write_bytes(b'{"arguments":{"show":[]},"x":1}\n')
    for place in (tmp_path, tmp_path / "s.ledger"):
        ended = tcc("session", "pending", place)
        assert (ended.code, "L101" in ended.err, ended.out) == (1, True, "")


def test_show_has_the_call_of_a_question_and_the_person_who_decided(
    gate: library.Gate, tmp_path: Path, tcc: Tcc
) -> None:
    gate.approve(asked(gate).id, who="Ann")
    library.save(library.compile_text(DESK), tmp_path / "desk.tcca")
    shown = tcc("session", "show", tmp_path / "s.ledger", "--artifact", tmp_path / "desk.tcca").out
    assert "finance is asked about refund(way=card) [amount: 200; order: #" in shown
    assert "Large refunds need finance. " + FINANCE in shown
    assert "refund(way=card) is approved by Ann at " in shown


def test_a_replay_takes_a_held_call_as_approved(tmp_path: Path, tcc: Tcc) -> None:
    ledger, recorded = tmp_path / "s.ledger", tmp_path / "recorded.json"
    artifact = library.compile_text(DESK)
    with library.Gate(artifact, ledger=ledger, show=["refund.order"], durable=False) as gate:
        gate.approve(asked(gate).id, who="Ann")
        with gate.call("refund", BIG) as permit:
            permit.done()
    recorded.write_text(json.dumps({"calls": [{"tool": "refund", "arguments": BIG}]}))
    grammar = tmp_path / "desk.tcg"
    grammar.write_text(DESK)
    for session in (recorded, ledger):
        ended = tcc("replay", grammar, session)
        assert ended.code == 0, ended


def test_a_question_about_all_sessions_counts_a_held_call_as_possible(
    tmp_path: Path, tcc: Tcc
) -> None:
    grammar = tmp_path / "desk.tcg"
    grammar.write_text(DESK)
    found = tcc("prove", grammar, "--reachable", "refund(amount > 100)", "--json").json
    assert found["verdict"] == "reachable"
    assert [one["tool"] for one in found["session"]] == ["refund"]


def test_explain_says_that_a_held_call_waits(tcc: Tcc) -> None:
    assert "The call waits; " in tcc("explain", "R211").out
    assert "The call is refused; " in tcc("explain", "R209").out


def test_the_list_of_a_store_counts_open_questions(tmp_path: Path, tcc: Tcc) -> None:
    store = library.Sessions(library.compile_text(DESK), tmp_path / "store", durable=False)
    with store.open() as gate:
        first, _ = asked(gate), asked(gate, amount=300)
        gate.approve(first.id, who="Ann")
    (found,) = tcc("session", "list", tmp_path / "store", "--json").json["sessions"]
    assert found["pending"] == 1
    assert "0 calls, 1 pending" in tcc("session", "list", tmp_path / "store").out
