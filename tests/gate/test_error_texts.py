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
from tcc_certs.core.reader import read_core
from tcc_certs.errors import Rejected
from tcc_compiler.frontend import read_grammar_text
from tcc_runtime.gate.answers import matched
from tcc_runtime.gate.wrapping import wrap
from tcc_runtime.mcp.calls import ToolTraits, ending_of
from tcc_runtime.mcp.wire import Member, Response
from tests.gate.conftest import validated
from tests.gate.grammars import artifact

TEXT = """grammar g version "1"

tool read(id: text) gives (state: text) { errors mean failed ~ "Error: .*" }
tool send(id: text)

limit depth <= 12
before send require last(read(same id)).state = "ok"
"""
FORBID = TEXT.replace(
    "require last(read(same id)).state = ", "require last(read(same id)).state != "
)


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


# The core.


def test_the_core_has_the_pattern_and_is_of_version_12() -> None:
    core = json.loads(read_grammar_text(TEXT).core or b"")
    tool = core["tools"][0]
    assert (tool["errors"], tool["error_text"], core["version"]) == ("failed", "Error: .*", [1, 2])
    plain = """grammar g version "1"

tool a { errors mean failed }

plan = a?
"""
    assert json.loads(read_grammar_text(plain).core or b"")["version"] == [1, 1]
    alone = plain.replace("failed }", 'failed ~ "e" }')
    assert json.loads(read_grammar_text(alone).core or b"")["version"] == [1, 2]
    for change in (
        lambda tool: tool.pop("errors"),
        lambda tool: tool.update(error_text="("),
        lambda tool: tool.update(error_text=7),
        lambda tool: tool.update(error_text=""),
    ):
        made_of = json.loads(json.dumps(core))
        change(made_of["tools"][0])
        data = json.dumps(made_of, sort_keys=True, separators=(",", ":")).encode()
        if made_of["tools"][0].get("error_text") == "":
            assert read_core(data).tools[0].error_text == ""
            continue
        with pytest.raises(Rejected) as refusal:
            read_core(data)
        assert str(refusal.value.code) == "C801"


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ('errors mean failed ~ "("', "TCC318"),
        ("errors mean failed ~", "TCC101"),
        ("errors mean failed ~ x", "TCC101"),
        ('errors mean failed ~ "a" errors mean failed', "TCC310"),
        ('strict ~ "a"', "TCC102"),
    ],
)
def test_what_is_no_pattern_is_told(said: str, code: str) -> None:
    front = read_grammar_text(f'grammar g version "1"\ntool a {{ {said} }}\nplan = a?\n')
    assert [str(one.code) for one in front.diagnostics][:1] == [code]


def test_a_change_of_it_is_told() -> None:
    other = artifact(TEXT.replace("Error: ", "Failed: "))
    found = tcc.diff(artifact(TEXT), other)
    assert "error_text" in str(found)
