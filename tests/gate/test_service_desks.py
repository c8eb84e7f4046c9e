"""Two policies of service desks with their recorded sessions, look-ups and learned attributes among
them: each call is decided as it says there, and the ledgers are validated.  The shop's is the one
in grammars/; the airline's learns its customer, which the one there is given.

A session's clock starts in May 2024; `at_minutes` of a call is behind its start.  `refused` of a
call is the code of its refusal, `by` a part of what refuses it.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tcc

DESKS = Path(__file__).parents[1] / "data" / "policies"
SHIPPED = Path(__file__).parents[2] / "grammars"
NAMES = ("airline_desk", "shop_desk")
START = 1_715_767_200_000  # 2024-05-15T10:00:00Z
KEY = bytes(32)


def sessions() -> list[Any]:
    return [
        pytest.param(name, told, id=f"{name}: {told['id']}")
        for name in NAMES
        for told in map(json.loads, (DESKS / f"{name}.jsonl").read_text().splitlines())
    ]


@cache
def artifact(name: str) -> Any:
    here = DESKS / f"{name}.tcg"
    return tcc.compile_file(here if here.exists() else SHIPPED / here.name)


@pytest.mark.parametrize(("name", "told"), sessions())
def test_a_session_goes_as_it_was_recorded(name: str, told: dict[str, Any], tmp_path: Path) -> None:
    ledger, now = tmp_path / "s.records", [START]
    options: dict[str, Any] = {"ledger": ledger, "key": KEY, "durable": False}
    account = tcc.Account(tmp_path / "s.account") if name == "shop_desk" else None
    options |= {"clock": lambda: now[0], "account": account}
    with tcc.Gate(artifact(name), given=told.get("given"), **options) as gate:
        for call in told["calls"]:
            now[0] = START + 60_000 * call.get("at_minutes", 0)
            found = gate.check(call["tool"], call["arguments"])
            code = None if found.code is None else str(found.code)
            assert code == call.get("refused"), (call, found)
            if not found.allowed:
                said = json.dumps([one["text"] for one in found.because]) + str(found)
                assert call["by"] in said.replace('\\"', '"').replace('\\\\"', '"'), said
                continue
            with gate.call(call["tool"], call["arguments"]) as permit:
                if call.get("outcome") == "error":
                    permit.failed("an error", answered=True)
                else:
                    permit.done(call["answer"], observed=call["answer"])
        if gate.may_finish:
            gate.finish()
    found = tcc.validate(ledger, artifact(name), key=KEY, account=account)
    assert [str(one.code) for one in found.findings if str(one.code) != "D301"] == []
    assert (found.claim_type == "Conformant") is (found.verdict == 0)
