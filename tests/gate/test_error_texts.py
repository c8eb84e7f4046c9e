"""Errors that are told as texts: `errors mean failed ~ "PATTERN"`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import tcc
from tcc.integrations import made
from tcc.traces import Trace, TraceCall
from tcc.traces.replaying import replay
from tcc_runtime.gate.answers import matched
from tcc_runtime.gate.wrapping import wrap
from tcc_runtime.mcp.deciding import ToolTraits, ending_of
from tcc_runtime.mcp.wire import Member, Response
from tests.gate.conftest import validated
from tests.gate.grammars import artifact

TEXT = """grammar g version "1"

tool read(id: text) gives (state: text) { errors mean failed ~ "Error: .*" }
tool send(id: text)

limit depth <= 12
before send require last(read(same id)).state = "ok"
"""
FORBID = TEXT.replace('last(read(same id)).state = "ok"', 'no read(same id, state = "ok")')


class Told(str):
    """A text of the caller's own type."""


def ran(gate: tcc.Gate, answers: list[Any]) -> list[Any]:
    told = iter(answers)

    def read(id: str) -> Any:
        return next(told)

    guarded = wrap(gate, read)
    return [guarded(id="a") for _ in answers]


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ("Error: no such order", "failed"),
        (Told("Error: no such order"), "failed"),
        ("Error:", "done"),
        ("no Error: x", "done"),
        ('{"state": "ok"}', "done"),
        ({"state": "ok"}, "done"),
        ({"error": "Error: x"}, "failed"),
        ({"error": "Error: x", "code": 5}, "unknown"),
        (["Error: x"], "failed"),
        (["Error: x", "fine"], "unknown"),
        ("Error: \n", "failed"),  # a dot is every character
        ("x" * (1 << 21), "done"),
        ("Error: " + "x" * (1 << 21), "unknown"),
    ],
)
def test_a_function_that_answers_a_text(answer: Any, outcome: str, tmp_path: Path) -> None:
    ledger = tmp_path / "s.ledger"
    with tcc.Gate(artifact(TEXT), ledger=ledger, durable=False) as gate:
        assert ran(gate, [answer]) == [answer]
        assert [one.outcome for one in gate.history] == [outcome]
    record = next(
        one for one in map(json.loads, ledger.read_bytes().splitlines()) if one["kind"] == "outcome"
    )
    assert record.get("answered", False) is (outcome == "failed")
    assert [str(one.code) for one in validated(ledger).findings] == ["D301"]  # it goes on


def test_an_error_that_was_read_takes_nothing_away_and_helps_nothing() -> None:
    with tcc.Gate(artifact(TEXT)) as gate:
        ran(gate, [{"state": "ok"}, "Error: gone"])
        assert gate.check("send", {"id": "a"}).allowed
    with tcc.Gate(artifact(TEXT)) as gate:
        ran(gate, ["Error: gone"])
        assert not gate.check("send", {"id": "a"}).allowed
    with tcc.Gate(artifact(FORBID)) as gate:
        ran(gate, [{"state": "no"}])
        assert gate.check("send", {"id": "a"}).allowed
        ran(gate, ["Error: it is ok"])
        assert gate.check("send", {"id": "a"}).code == "R202"


@pytest.mark.parametrize(
    ("answer", "observed", "outcome"),
    [
        ("Error: gone", None, "failed"),
        ("Error: " + "x" * (1 << 21), None, "unknown"),
        (Told("Error: gone"), None, "failed"),
        ("fine", None, "done"),
        ({"state": "Error: ok"}, None, "failed"),
        ("Error: gone", {"state": "ok"}, "done"),  # whoever says what was observed has read it
    ],
)
def test_a_call_told_by_hand_is_read_too(
    answer: Any, observed: Any, outcome: str, tmp_path: Path
) -> None:
    ledger = tmp_path / "s.ledger"
    with tcc.Gate(artifact(TEXT), ledger=ledger, durable=False) as gate:
        with gate.call("read", {"id": "a"}) as permit:
            permit.done(answer, observed=observed)
        assert (permit.outcome, [one.outcome for one in gate.history]) == (outcome, [outcome])
        assert gate.check("send", {"id": "a"}).allowed is (observed is not None)
    assert [str(one.code) for one in validated(ledger).findings] == ["D301"]
    with tcc.Gate(artifact(TEXT.replace(' ~ "Error: .*"', "")), durable=False) as gate:
        with gate.call("read", {"id": "a"}) as permit:
            permit.done(answer, observed=observed)
        assert permit.outcome == "done"


def test_the_relay_reads_a_lone_text() -> None:
    traits = ToolTraits(errors_failed=True, error_text="Error: .*")

    def ending(text: str, **members: Any) -> Any:
        whole = {"content": [{"type": "text", "text": text}], **members}
        result = {name: Member(value=value, text="") for name, value in whole.items()}
        return ending_of(Response(identity=1, result=result, error=None), traits)

    assert ending("Error: x").outcome == "failed"
    assert ending("Error: " + "x" * (1 << 21)).outcome == "unknown"
    assert (ending("fine").outcome, ending("fine").answer.value) == ("done", "fine")
    assert (ending("[1]").outcome, ending("[1]").answer.value) == ("done", [1])
    assert ending("Error: x", structuredContent={"state": "ok"}).outcome == "unknown"
    assert ending("fine", isError=True).outcome == "failed"
    assert ending("Error: x", isError=False).outcome == "failed"


def test_a_framework_and_a_recorded_session_read_it_too() -> None:
    with tcc.Gate(artifact(TEXT)) as gate:

        async def run(_: object) -> str:
            return "Error: x"

        assert asyncio.run(made(gate, "read", {"id": "a"}, run, ref=None)) == "Error: x"
        assert [one.outcome for one in gate.history] == ["failed"]
    calls = [
        TraceCall(tool="read", arguments={"id": "a"}, outcome="done", answer="Error: x"),
        TraceCall(tool="send", arguments={"id": "a"}, outcome="done", answer=None),
    ]
    assert replay(artifact(TEXT), [Trace(name="t", calls=tuple(calls))]).refused == 1


def test_long_texts_take_bounded_work() -> None:
    most = 1 << 20
    assert matched("Error.*", "Error" * 10) is True
    assert matched("Error.*", "Hello" * most) is False
    assert matched("Error.*", "Error" * most) is None
    assert matched("", "") is True and matched("", "x" * 2 * most) is False
