"""The shipped policies of service desks, held to recorded sessions: what they allow and refuse."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tcc as library
from tcc.traces import Trace, read_traces
from tcc.traces.replaying import Replayed, replay
from tcc_runtime.gate.gate import Gate
from tests.cli.conftest import GRAMMARS, Tcc

DESKS = ("airline_desk", "shop_desk")


def sessions(kind: str) -> list[Any]:
    return [
        pytest.param(name, trace, id=f"{name.partition('_')[0]}: {trace.name}")
        for name in DESKS
        for trace in read_traces(GRAMMARS / f"{name}.{kind}.jsonl")
    ]


@cache
def artifact(name: str) -> library.Artifact:
    return library.compile_file(GRAMMARS / f"{name}.tcg")


def played(name: str, trace: Trace) -> Replayed:
    return replay(artifact(name), [trace])


@pytest.mark.parametrize(("name", "trace"), sessions("allowed"))
def test_what_the_policy_allows(name: str, trace: Trace) -> None:
    assert played(name, trace).refused == 0


@pytest.mark.parametrize(("name", "trace"), sessions("refused"))
def test_what_the_policy_refuses_and_by_which_part(name: str, trace: Trace) -> None:
    """Its last call alone, by a statement with what stands behind the colon of its name."""
    found = played(name, trace)
    why = trace.name.partition(": ")[2]
    assert found.refused == 1 and why
    refusing = [one.text for one in found.statements]
    assert any(why in text for text in refusing), refusing
    places = {example.position for one in found.statements for example in one.examples}
    assert places == {len(trace.calls)}


@pytest.mark.parametrize(("name", "trace"), sessions("allowed"))
@pytest.mark.sampled(20)
def test_ledgers_of_them_are_validated(name: str, trace: Trace, tmp_path: Path) -> None:
    at, key = [0], bytes(32)
    at[0] = trace.calls[0].at_ms or 0
    ledger = tmp_path / "s.ledger"
    account = library.Account(tmp_path / "uses.account")
    options: dict[str, Any] = {"key": key, "durable": False, "clock": lambda: at[0]}
    options |= {"account": account}
    with Gate(artifact(name), ledger=ledger, given=trace.given, **options) as gate:
        for call in trace.calls:
            at[0] = call.at_ms or at[0]
            with gate.call(call.tool, call.arguments) as permit:
                permit.done(call.answer)
        gate.finish(abandon=not gate.may_finish)
    found = library.validate(ledger, artifact(name), key=key, account=account)
    assert not found.findings and found.claim_type in ("Conformant", "ConformantPrefix")


def test_the_commands_of_the_page(tcc: Tcc) -> None:
    for name, refused in (("airline_desk", 46), ("shop_desk", 46)):
        grammar = GRAMMARS / f"{name}.tcg"
        assert tcc("replay", grammar, GRAMMARS / f"{name}.allowed.jsonl").code == 0
        told = tcc("replay", grammar, GRAMMARS / f"{name}.refused.jsonl", "--json")
        assert (told.code, told.json["sessions"], told.json["refused"]) == (1, refused, refused)


def test_what_is_given_is_told_of_the_artifact(tcc: Tcc) -> None:
    told = tcc("inspect", GRAMMARS / "shop_desk.tcg", "--json").json
    learned = "customer from find_by_mail.user | find_by_name.user"
    assert told["given"] == ["desk?: first | second", learned]
    assert (
        "    session.desk?: first | second\n"
        "    session.customer: the first known value of find_by_mail.user or find_by_name.user\n"
    ) in tcc("inspect", GRAMMARS / "shop_desk.tcg").out
    assert "given" not in tcc("inspect", GRAMMARS / "support_refund.tcg", "--json").json


def test_attributes_and_lets_are_told_as_a_grammar_writes_them(tcc: Tcc, tmp_path: Path) -> None:
    text = """grammar g version "1"

given customer from find.`user id` | login.name

tool find gives (`user id`: text)
tool login(name: text)

let mine = this.name = session.customer
before login require mine
limit depth <= 3
"""
    grammar = tmp_path / "g.tcg"
    grammar.write_text(text, encoding="utf-8")
    told = tcc("inspect", grammar, "--json").json
    assert told["given"] == ["customer from find.`user id` | login.name"]
    assert told["lets"] == ["let mine = this.name = session.customer"]
