"""Windows of time: the clock of each call stands in the ledger, and never goes back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tcc
from tests.gate import grammars
from tests.oracle_session.writer import KEY, named, sealed

START = 1_700_000_000_000
MINUTE = 60_000
HOUR = 60 * MINUTE
TOOLS = """grammar desk version "1"

tool look(order: text max 20)
tool refund(order: text max 20, amount: number 0 .. 1000)

plan = any{0,40}

limit depth <= 40
"""
RECENT = "before refund require look(same order) within 5 m"
SUM = "limit sum(refund.amount within 1 h) per order <= 100 in session"
USES = "limit count(refund within 1 h) <= 2 in session"
LATELY = "before look require no refund(same order) within 5 m"


class Desk:
    def __init__(self, folder: Path, *statements: str, name: str = "s.ledger") -> None:
        self.artifact = grammars.artifact(TOOLS + "\n".join(statements))
        self.ledger = folder / name
        self.ms = START
        self.gate = self.opened()

    def opened(self, **options: Any) -> tcc.Gate:
        return tcc.Gate(
            self.artifact, ledger=self.ledger, key=KEY, durable=False, clock=lambda: self.ms,
            **options,
        )  # fmt: skip

    def reopen(self) -> None:
        self.gate.close()
        self.gate = self.opened()

    def code(self, tool: str, **arguments: Any) -> str | None:
        code = self.gate.check(tool, arguments).code
        return None if code is None else str(code)

    def call(self, tool: str, told: str = "done", /, **given: Any) -> None:
        with self.gate.call(tool, given) as permit:
            if told == "done":
                permit.done({})
            else:
                permit.unknown("gone")

    def records(self) -> list[dict[str, Any]]:
        sealing = ("mac", "~")
        lines = [json.loads(line) for line in self.ledger.read_bytes().splitlines()]
        return [{n: v for n, v in line.items() if n not in sealing} for line in lines]


def test_both_ends_of_a_window_count(tmp_path: Path) -> None:
    desk = Desk(tmp_path, RECENT)
    desk.call("look", order="a")
    desk.ms = START + 5 * MINUTE
    assert desk.code("refund", order="a", amount=1) is None
    desk.ms += 1
    assert desk.code("refund", order="a", amount=1) == "R202"
    assert desk.gate.check("refund", {"order": "a", "amount": 1}).because == [
        {
            "kind": "require", "text": RECENT, "because": None,
            "relation": "look(same order) within 5 m",
            "arguments": 'order = "a"',
            "remedy": 'look(order = "a") within 5 m',
        }
    ]  # fmt: skip


def test_what_a_forbid_counts_passes(tmp_path: Path) -> None:
    desk = Desk(tmp_path, LATELY)
    desk.call("refund", "unknown", order="a", amount=1)
    assert desk.code("look", order="a") == "R202"
    assert desk.code("look", order="b") is None
    desk.ms += 5 * MINUTE
    assert desk.code("look", order="a") == "R202"
    desk.ms += 1
    assert desk.code("look", order="a") is None


def test_limits_of_a_window(tmp_path: Path) -> None:
    desk = Desk(tmp_path, SUM, USES)
    desk.call("refund", "unknown", order="a", amount=60)
    desk.ms += HOUR
    assert desk.code("refund", order="a", amount=40.5) == "R202"
    desk.call("refund", order="a", amount=40)
    assert desk.code("refund", order="b", amount=1) == "R202"  # the third of an hour
    desk.ms += 1
    assert desk.code("refund", order="a", amount=60.5) == "R202"
    assert desk.code("refund", order="a", amount=60) is None
    desk.gate.resolve(1, "failed")
    desk.gate.finish()
    found = tcc.validate(desk.ledger, desk.artifact, key=KEY)
    assert (found.claim_type, found.findings) == ("Conformant", ())
    assert "times" in found.asserted


def test_a_clock_that_goes_back_a_little_is_not_followed(tmp_path: Path) -> None:
    desk = Desk(tmp_path, RECENT)
    desk.ms = START - MINUTE
    desk.call("look", order="a")  # the start of the session is its first time
    desk.ms = START + 4 * MINUTE
    desk.call("look", order="b")
    desk.ms = START + 3 * MINUTE
    assert desk.code("refund", order="a", amount=1) is None
    desk.call("refund", order="a", amount=1)
    desk.reopen()
    desk.call("refund", order="a", amount=1)
    desk.ms = START + 9 * MINUTE + 1
    assert desk.code("refund", order="b", amount=1) == "R202"
    stamps = [one["at_ms"] - START for one in desk.records() if one["kind"] == "call"]
    assert stamps == [0, 4 * MINUTE, 4 * MINUTE, 4 * MINUTE]


def test_a_clock_that_is_more_than_a_minute_behind_refuses_calls(tmp_path: Path) -> None:
    desk = Desk(tmp_path, RECENT)
    desk.ms = START + 4 * MINUTE
    desk.call("look", order="a")
    desk.ms = START + 3 * MINUTE - 1
    assert desk.code("refund", order="a", amount=1) == "R210"
    assert desk.code("nobody") == "R210"
    with pytest.raises(tcc.Refused, match="R210"):
        desk.call("refund", order="a", amount=1)
    assert desk.records()[-1] == {"kind": "refusal", "code": "R210", "tool": "refund"}
    desk.reopen()
    assert desk.code("refund", order="a", amount=1) == "R210"
    desk.ms += 1
    assert desk.code("refund", order="a", amount=1) is None


def test_every_record_of_what_happened_has_its_time(tmp_path: Path) -> None:
    desk = Desk(tmp_path, RECENT)
    with desk.gate.call("look", {"order": "a"}) as permit:
        desk.ms += 5
        permit.unknown()
    desk.ms += 5
    desk.gate.resolve(1, "done")
    desk.ms -= 3
    desk.gate.finish()
    times = [(one["kind"], one["at_ms"] - START) for one in desk.records()[1:]]
    assert times == [("call", 0), ("outcome", 5), ("resolve", 10), ("end", 10)]


@pytest.mark.parametrize("ms", [1 << 48, 1 << 70])
def test_a_clock_that_no_record_holds_allows_nothing(ms: int, tmp_path: Path) -> None:
    desk = Desk(tmp_path, RECENT)
    desk.call("look", order="a")
    desk.ms = ms
    assert desk.code("refund", order="a", amount=1) == "R306"
    with pytest.raises(tcc.Refused):
        desk.call("look", order="a")
    desk.ms = START
    desk.call("refund", order="a", amount=1)


def test_without_a_window_there_are_no_times(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "before refund require look")
    assert desk.code("refund", order="a", amount=1) == "R202"
    desk.call("look", order="a")
    assert all("at_ms" not in one for one in desk.records())


# Forged ledgers.


def _earlier(records: list[dict[str, Any]]) -> None:
    records[3]["at_ms"] = records[1]["at_ms"] - 1


def _before_the_start(records: list[dict[str, Any]]) -> None:
    records[1]["at_ms"] = START - 1


def _later(records: list[dict[str, Any]]) -> None:
    records[3]["at_ms"] += 1


def _helping_later(records: list[dict[str, Any]]) -> None:
    records[1]["at_ms"] = START + 5 * MINUTE + 1
    records[3]["at_ms"] = START + 5 * MINUTE


def _gone(records: list[dict[str, Any]]) -> None:
    del records[3]["at_ms"]


def _a_text(records: list[dict[str, Any]]) -> None:
    records[3]["at_ms"] = str(records[3]["at_ms"])


def _too_late(records: list[dict[str, Any]]) -> None:
    records[3]["at_ms"] = 1 << 48


def _said_by_somebody(records: list[dict[str, Any]]) -> None:
    records[3]["who"] = "somebody"


@pytest.mark.parametrize(
    ("change", "code", "field"),
    [
        (_earlier, "S201", "at_ms"),
        (_before_the_start, "S201", "at_ms"),
        (_later, "S302", "call"),
        (_helping_later, "S201", "at_ms"),
        (_gone, "S201", "at_ms"),
        (_a_text, "L103", "at_ms"),
        (_too_late, "L103", "at_ms"),
        (_said_by_somebody, "L103", "who"),
    ],
)
def test_a_forged_time_is_refused(
    change: Callable[[list[dict[str, Any]]], None], code: str, field: str, tmp_path: Path
) -> None:
    desk = Desk(tmp_path, RECENT, name="s.records")
    desk.call("look", order="a")
    desk.ms = START + 5 * MINUTE
    desk.call("refund", order="a", amount=1)
    desk.gate.finish()
    desk.gate.close()
    records = desk.records()
    change(records)
    desk.ledger.write_bytes(sealed([named(records[0]), *records[1:]]))
    found = tcc.validate(desk.ledger, desk.artifact, key=KEY)
    assert (code, field) in [(str(one.code), one.field) for one in found.findings]
    assert (found.verdict, found.claim_type) == (1, "NoClaim")


def test_a_time_where_nothing_looks_is_refused(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "before refund require no look(same order)", name="s.records")
    desk.call("look", order="a")
    desk.gate.finish()
    desk.gate.close()
    records = desk.records()
    records[1]["at_ms"] = START
    desk.ledger.write_bytes(sealed([named(records[0]), *records[1:]]))
    found = tcc.validate(desk.ledger, desk.artifact, key=KEY)
    assert ("S201", "at_ms") in [(str(one.code), one.field) for one in found.findings]
