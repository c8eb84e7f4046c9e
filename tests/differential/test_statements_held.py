"""Statements of version 1.2 over arguments and listed answers: read, held by a gate, validated."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tcc
from tcc_certs.errors import Rejected
from tcc_certs.policy.plans import PolicyMonitor
from tcc_certs.policy.reader import read_core
from tcc_certs.values.canonical import digest
from tcc_compiler.frontend import read_grammar_text
from tests.oracle_session.writer import KEY, named, sealed

DESK = """grammar desk version "1"

tool ask(amount: number 0 .. 100000, order: text max 20) gives (answer: yes | no)
tool cancel(order: text max 20, reason?: text max 100)
tool get_order(order: text max 20) gives (status: pending | delivered)
tool note
tool refund(amount: number 0 .. 100000, order: text max 20) { errors mean failed }

plan = any{0,30}

limit depth <= 30
"""
CANCEL = "before cancel require last(get_order(same order)).status = pending"
EACH = "before refund require unused ask(answer = yes, same order, this.amount <= amount)"
LIFTED = (
    "before refund require no ask(answer = no, same order)"
    " since ask(answer = yes, order = this.order)"
)
STATEMENTS = [
    CANCEL,
    EACH,
    LIFTED,
    'before cancel require reason = null or reason ~ "no.*"',
    'limit count((refund | cancel)(order != "a")) per order <= 2 in session',
    "limit sum(refund.amount) per order <= 1000 in session",
    'before cancel require count(note) >= 2 or get_order(same order) and order = "a" | "b"',
    "before cancel require no refund(same order)",
    "before refund require no cancel(same order)",
    "after refund owe ask(answer = yes, same order)",
    "before refund require 2 * amount + 1 <= 7.5 or amount < 0",
]


class Desk:
    def __init__(self, folder: Path, *statements: str) -> None:
        self.artifact = tcc.compile_text(DESK + "\n".join(statements))
        self.ledger = folder / "s.ledger"
        self.gate = self.opened()

    def opened(self, **options: Any) -> tcc.Gate:
        return tcc.Gate(self.artifact, ledger=self.ledger, key=KEY, durable=False, **options)

    def code(self, tool: str, **arguments: Any) -> str | None:
        code = self.gate.check(tool, arguments).code
        return None if code is None else str(code)

    def call(self, tool: str, told: dict[str, Any] | str | None = None, /, **given: Any) -> None:
        with self.gate.call(tool, given) as permit:
            if told == "unknown":
                permit.unknown("gone")
            elif told == "answered":
                permit.failed("no", answered=True)
            else:
                permit.done(told or {})

    def validated(self) -> Any:
        self.gate.close()
        return tcc.validate(self.ledger, self.artifact, key=KEY)


@pytest.mark.parametrize("text", STATEMENTS)
def test_the_text_of_a_statement_is_the_statement(text: str) -> None:
    core = read_core(read_grammar_text(DESK + text).core or b"")
    (monitor,) = core.monitors
    assert isinstance(monitor, PolicyMonitor)
    assert monitor.text == text
    assert tcc.compile_text(DESK + monitor.text).core.monitors == core.monitors


def test_the_latest_answer_decides(tmp_path: Path) -> None:
    desk = Desk(tmp_path, CANCEL)
    desk.call("get_order", {"status": "pending"}, order="x")
    assert desk.code("cancel", order="x") is None
    assert desk.code("cancel", order="y") == "R202"
    assert desk.gate.check("cancel", {"order": "y"}).because == [
        {"kind": "monitor", "text": CANCEL, "remedy": CANCEL[8:-14]}
    ]
    desk.call("get_order", "unknown", order="x")
    assert desk.code("cancel", order="x") == "R202"
    desk.gate.resolve(2, "failed")
    assert desk.code("cancel", order="x") is None
    desk.call("get_order", {"status": "delivered"}, order="x")
    assert desk.code("cancel", order="x") == "R202"
    desk.gate.close()
    desk.gate = desk.opened()
    assert desk.code("cancel", order="x") == "R202"
    desk.gate.finish()
    found = desk.validated()
    assert (found.claim_type, found.findings) == ("Conformant", ())


def test_each_answer_serves_one_call(tmp_path: Path) -> None:
    desk = Desk(tmp_path, EACH)
    desk.call("ask", {"answer": "yes"}, order="x", amount=5)
    assert desk.code("refund", order="x", amount=5.01) == "R202"
    desk.call("refund", "unknown", order="x", amount=5)
    assert desk.code("refund", order="x", amount=1) == "R202"
    desk.gate.resolve(2, "failed")
    assert desk.code("refund", order="x", amount=1) is None


def test_an_error_that_was_read_counts_for_forbid(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "before cancel require no refund since note")
    desk.call("refund", "answered", order="x", amount=5)
    assert desk.code("cancel", order="x") == "R202"
    desk.call("note")
    assert desk.code("cancel", order="x") is None


def test_what_is_owed_has_to_come(tmp_path: Path) -> None:
    owed = "after refund owe ask(answer = yes, same order)"
    desk = Desk(tmp_path, owed)
    desk.call("refund", "unknown", order="x", amount=5)
    desk.call("ask", {"answer": "yes"}, order="y", amount=5)
    assert not desk.gate.may_finish
    with pytest.raises(tcc.Refused) as refusal:
        desk.gate.finish()
    assert (refusal.value.code, refusal.value.because) == (
        "R204",
        [{"kind": "monitor", "text": owed, "remedy": "ask(answer=yes) same order"}],
    )
    desk.call("ask", {"answer": "yes"}, order="x", amount=5)
    desk.gate.finish()
    assert desk.validated().claim_type == "Conformant"


def test_a_sum_of_each_order(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "limit sum(refund.amount) per order <= 1000 in session")
    desk.call("refund", "unknown", order="x", amount=999.5)
    assert desk.code("refund", order="x", amount=0.75) == "R202"
    assert desk.code("refund", order="x", amount=0.5) is None
    assert desk.code("refund", order="y", amount=1000) is None


# Ledgers.


def made(folder: Path) -> tuple[Desk, list[dict[str, Any]]]:
    desk = Desk(folder, CANCEL, "limit count(refund) per order <= 1 in session")
    desk.call("get_order", {"status": "pending"}, order="x")
    desk.call("cancel", order="x")
    desk.gate.finish()
    assert desk.validated().claim_type == "Conformant"
    lines = desk.ledger.read_bytes().splitlines()
    sealing = ("mac", "~")
    return desk, [
        {name: value for name, value in json.loads(line).items() if name not in sealing}
        for line in lines
    ]


def _other_order(records: list[dict[str, Any]]) -> None:
    records[3]["open"]["order"] = {"digest": digest(KEY, b"s", b"y").hex()}


def _shown_otherwise(records: list[dict[str, Any]]) -> None:
    records[3]["open"]["order"] |= {"type": "s", "value": "x"}


def _more_shown(records: list[dict[str, Any]]) -> None:
    records[0]["arguments"]["show"] = ["get_order.order"]


def _other_answer(records: list[dict[str, Any]]) -> None:
    records[2]["observed"]["status"] = "delivered"


def _not_known(records: list[dict[str, Any]]) -> None:
    records[2]["outcome"] = "unknown"
    del records[2]["observed"], records[2]["result"]


def _other_statements(records: list[dict[str, Any]]) -> None:
    records[0]["monitors"] = records[0]["monitors"][:1]


@pytest.mark.parametrize(
    ("change", "code", "field"),
    [
        (_other_order, "S302", "call"),
        (_shown_otherwise, "S203", "open: cancel.order"),
        (_more_shown, "S203", "open: get_order.order"),
        (_other_answer, "S302", "call"),
        (_not_known, "S301", "call"),
        (_other_statements, "S103", "monitors"),
    ],
)
def test_a_forged_ledger_is_refused(
    change: Callable[[list[dict[str, Any]]], None], code: str, field: str, tmp_path: Path
) -> None:
    desk, records = made(tmp_path)
    change(records)
    desk.ledger.write_bytes(sealed([named(records[0]), *records[1:]]))
    found = tcc.validate(desk.ledger, desk.artifact, key=KEY)
    assert (code, field) in [(str(one.code), one.field) for one in found.findings]
    assert (found.verdict, found.claim_type) == (1, "NoClaim")


# What is declined.


def changed(change: Callable[[dict[str, Any]], object]) -> tuple[str, str]:
    core = json.loads(read_grammar_text(DESK + CANCEL).core or b"")
    assert core["version"] == [1, 2]
    change(core)
    with pytest.raises(Rejected) as refusal:
        read_core(json.dumps(core, sort_keys=True, separators=(",", ":")).encode())
    return str(refusal.value.code), refusal.value.path


def _alternative(core: dict[str, Any]) -> dict[str, Any]:
    found = next(one for one in core["monitors"] if one["kind"] == "need")
    one: dict[str, Any] = found["any"][0]
    return one


def _where(core: dict[str, Any], *relations: Any) -> None:
    _alternative(core)["where"] = list(relations)


@pytest.mark.parametrize(
    ("change", "code", "path"),
    [
        (lambda core: core.update(given=[]), "C801", "core.given"),
        (lambda core: core.update(lets=[]), "C801", "core.lets"),
        (
            lambda core: core.update(lets=[{"keys": ["order"], "name": "x", "rows": []}]),
            "C801",
            "core.lets[0]",
        ),
        (lambda core: core["tools"][0].update(answers=[]), "C801", "core.tools[0].answers"),
        (
            lambda core: core["tools"][0]["open"][0].update(at="/x"),
            "C801",
            "core.tools[0].open",
        ),
        (
            lambda core: core["tools"][0]["open"][0].update(null=True),
            "C801",
            "core.tools[0].open[0].null",
        ),
        (
            lambda core: core["tools"][0]["open"][0].update(type="time"),
            "C801",
            "core.tools[0].open[0]",
        ),
        (
            lambda core: core["tools"][0]["params"][0].update(values=["", "yes"]),
            "C801",
            "core.calls[1]",
        ),
        (lambda core: _alternative(core).update(within=0), "C801", "core.monitors[0].any"),
        (
            lambda core: _where(core, ["=", ["seen", "order"], ["session", "x"]]),
            "C801",
            "core.monitors[0].any",
        ),
        (
            lambda core: _where(core, ["=", ["seen", "orders"], ["s", "x"]]),
            "C801",
            "core.monitors[0].any",
        ),
        (lambda core: core.update(version=[1, 1]), "C801", "core.version"),
        (lambda core: core.pop("monitors"), "C801", "core.version"),
    ],
)
def test_what_nothing_holds_is_refused_at_its_place(
    change: Callable[[dict[str, Any]], object], code: str, path: str
) -> None:
    assert changed(change) == (code, path)


@pytest.mark.parametrize(
    "total",
    [
        {"kind": "total", "param": "answer", "tool": 0, "value": "5"},
        {"kind": "total", "param": "order", "tool": 0, "value": "5"},
        {"kind": "total", "param": "amount", "tool": 0, "value": "-5"},
        {"kind": "total", "param": "none", "tool": 0, "value": "5"},
    ],
)
def test_a_sum_is_of_arguments_that_never_make_it_less(total: dict[str, Any]) -> None:
    code, path = changed(lambda core: core.update(monitors=[total]))
    assert code == "C801" and path.startswith("core.monitors[0]")


def test_a_sum_is_of_no_open_answer_as_that_comes_too_late() -> None:
    fee = {"name": "fee", "type": "number", "low": "0", "high": "9"}
    total = {"kind": "total", "param": "fee", "tool": 0, "value": "5"}

    def change(core: dict[str, Any]) -> None:
        core["tools"][0]["answers"] = [fee]
        core.update(monitors=[total])

    assert changed(change) == ("C801", "core.monitors[0]")
