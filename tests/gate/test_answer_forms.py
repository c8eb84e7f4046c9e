"""One function decides what an answer is and which texts are in it, whichever door it came by."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from mcp.types import CallToolResult
from pydantic import BaseModel

import tcc
from tcc.integrations import claude_agent, made
from tcc.traces import Trace, TraceCall
from tcc.traces.replaying import replay
from tcc_certs.policy.core import Tool
from tcc_runtime.gate.answers import ToolAnswer, answer_of, outcome_of
from tcc_runtime.gate.arguments.json_reader import UNREADABLE, answer_in
from tcc_runtime.mcp.deciding import ToolTraits, ending_of
from tcc_runtime.mcp.wire import read_line
from tests.answer_forms import ERROR, FINE, FORMS, GRAMMAR, LONG, LONGER, SHORT, TIMES, Form, texts
from tests.doubling import doubles
from tests.gate.conftest import validated
from tests.gate.grammars import artifact

RULES = ToolTraits(errors_failed=True, error_text="Error: .*")


def by_hand(gate: tcc.Gate, form: Form) -> None:
    with gate.call("say", {"how": "x"}) as permit:
        permit.done(form.result)


def by_function(gate: tcc.Gate, form: Form) -> None:
    def say(how: str) -> Any:
        return form.result

    gate.wrap(say)(how="x")


def by_object(gate: tcc.Gate, form: Form) -> None:
    def say(how: str) -> Any:
        return CallToolResult.model_validate(form.result)

    gate.wrap(say)(how="x")


def by_framework(gate: tcc.Gate, form: Form) -> None:
    async def run(_: object) -> Any:
        return form.result

    asyncio.run(made(gate, "say", {"how": "x"}, run, ref=None))


def by_hook(shape: Callable[[Form], Any]) -> Callable[[tcc.Gate, Form], None]:
    def call(gate: tcc.Gate, form: Form) -> None:
        async def whole() -> None:
            hooks = claude_agent._Hooks(gate, None, 5)
            asked = {"tool_name": "say", "tool_input": {"how": "x"}}
            assert await hooks.before(asked, "c1", None) == {}
            told = {"hook_event_name": "PostToolUse", "tool_response": shape(form)}
            await hooks.after(told, "c1", None)

        asyncio.run(whole())

    return call


def by_handler(gate: tcc.Gate, form: Form) -> None:
    """A tool of the Claude Agent SDK, which writes its marks otherwise."""

    @dataclass
    class Own:
        name: str
        handler: Any

    async def handler(arguments: Any) -> Any:
        found = form.result
        return {**{k: v for k, v in found.items() if k != "isError"}, "is_error": form.error}

    asyncio.run(claude_agent._guarded(Own("say", handler), gate).handler({"how": "x"}))


DOORS = {
    "by hand": by_hand,
    "a function": by_function,
    "an object of the SDK": by_object,
    "a framework": by_framework,
    "a hook": by_hook(lambda form: form.result),
    "a tool of Claude": by_handler,
}


def checked(ledger: Path, door: Callable[[tcc.Gate, Form], None], form: Form) -> None:
    with tcc.Gate(artifact(GRAMMAR), ledger=ledger, durable=False) as gate:
        door(gate, form)
        only = gate.history[0]
        assert (only.outcome, gate.check("pay").allowed) == (form.outcome, form.outcome == "done")
        if form.outcome == "done":
            seen = {} if form.seen is None else {"v": form.seen}
            assert (only.observed, only.unforeseen) == (seen, form.seen is None)
    lines = map(json.loads, ledger.read_bytes().splitlines())
    record = next(one for one in lines if one["kind"] == "outcome")
    assert record.get("answered", False) is (form.outcome == "failed")
    assert [str(one.code) for one in validated(ledger).findings] == ["D301"]  # it goes on


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
@pytest.mark.parametrize("door", DOORS)
def test_every_form_at_every_door(door: str, form: Form, tmp_path: Path) -> None:
    checked(tmp_path / "s.ledger", DOORS[door], form)


@pytest.mark.parametrize(
    ("response", "outcome"),
    [
        (ERROR, "failed"),
        (texts(ERROR), "failed"),
        (texts(ERROR, ERROR), "failed"),
        (texts(ERROR)[0], "failed"),
        ({"result": ERROR}, "failed"),
        ({"content": ERROR, "is_error": False}, "failed"),
        ({"structuredContent": {"result": ERROR}}, "failed"),
        ({"structuredContent": {"result": FINE, "more": ERROR}}, "unknown"),
        (texts(ERROR, FINE), "unknown"),
        ({"stdout": ERROR, "stderr": "", "interrupted": False}, "unknown"),
        ({"is_error": True}, "failed"),
        ({"result": FINE}, "done"),
        (texts(FINE), "done"),
        (None, "done"),
    ],
)
def test_the_forms_of_hooks(response: Any, outcome: str, tmp_path: Path) -> None:
    form = Form("", [], outcome=outcome, seen=None if response is None else "")
    checked(tmp_path / "s.ledger", by_hook(lambda _: response), form)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_the_relay(form: Form) -> None:
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "result": form.result}).encode()
    answer = read_line(line)
    found = ending_of(answer, RULES)  # type: ignore[arg-type]
    assert found.outcome == form.outcome and found.result is not None


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        (b'"Error: \\ud800\\u0000"', "failed"),
        (b'"\\ud800"', "done"),
        (b'"Error: ' + b"x" * (15 << 20) + b'"', "unknown"),
        (b'"' + b"x" * (15 << 20) + b'"', "done"),
        (b'"' + b"[" * (15 << 20) + b'"', "unknown"),
    ],
    ids=["error with half a pair", "half a pair", "long error", "long", "deep"],
)
def test_odd_texts_through_the_relay(text: bytes, outcome: str) -> None:
    block = b'{"type":"text","text":' + text + b"}"
    line = b'{"jsonrpc":"2.0","id":1,"result":{"content":[' + block + b"]}}"
    found = ending_of(read_line(line), RULES)  # type: ignore[arg-type]
    assert found.outcome == outcome


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_a_recorded_session(form: Form) -> None:
    calls = [
        TraceCall(tool="say", arguments={"how": "x"}, outcome="done", answer=form.result),
        TraceCall(tool="pay", arguments={}, outcome="done"),
    ]
    refused = replay(artifact(GRAMMAR), [Trace(name="t", calls=tuple(calls))]).refused
    assert refused == (form.outcome != "done")


# Values of Python.


class Said(BaseModel):
    error: str


@dataclass
class Odd:
    text: str

    def __str__(self) -> str:
        return self.text


class Raising:
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        (Said(error=ERROR), "failed"),
        ([Said(error=ERROR), ERROR], "failed"),
        ((ERROR,), "failed"),
        ({"a": None, "b": {"c": [ERROR]}}, "failed"),
        (json.dumps(ERROR), "failed"),
        (json.dumps({"a": None, "b": {"c": [ERROR]}}), "failed"),
        ({"result": json.dumps({"error": ERROR})}, "failed"),
        (ValueError(ERROR), "failed"),  # a framework shows it as this text
        (Odd(ERROR), "failed"),
        (Raising(), "unknown"),
        ({"sent": True, "note": ERROR}, "unknown"),
        ({"sent": Odd("x"), "note": ERROR}, "unknown"),
        ('{"note":"fine","note":"' + ERROR + '"}', "unknown"),
        ("[" * 100_000 + "]" * 100_000, "unknown"),
        ({ERROR: FINE}, "done"),  # the name of a member is no text
        ([], "done"),
        (5, "done"),
    ],
)
def test_values_of_python(value: Any, outcome: str) -> None:
    assert outcome_of(RULES, answer_of(value))[0] == outcome


def test_a_pattern_of_json_takes_structured_content_beside_its_text() -> None:
    rules = ToolTraits(errors_failed=True, error_text='\\{"error".*')
    error = {"error": "gone", "code": 4}
    both = {"content": texts(json.dumps(error)), "structuredContent": error}
    assert outcome_of(rules, answer_of(both))[0] == "failed"
    other = {**both, "structuredContent": {**error, "code": 5}}
    assert outcome_of(rules, answer_of(other))[0] == "unknown"


@pytest.mark.parametrize(
    "value",
    [
        {"content": "a"},
        {"content": [], "meta": {}},
        {"content": "a", "meta": {}},
        {"content": [{"type": "note"}]},
        {"content": [{"type": "text"}], "isError": False},
        {"structured_content": 5},
        [{"type": "note", "text": "a"}],
        [{"type": "text", "text": "a"}, "a"],
    ],
)
def test_values_that_only_look_like_results_are_themselves(value: Any) -> None:
    assert answer_of(value).value is value


def test_a_value_that_holds_itself_is_read_once() -> None:
    held: list[Any] = [ERROR]
    held += [held, held]
    assert outcome_of(RULES, answer_of(held))[0] == "failed"


def test_an_error_counts_by_what_the_grammar_says() -> None:
    marked = answer_of({"content": texts(FINE), "isError": True})
    assert outcome_of(ToolTraits(), marked)[0] == "unknown"
    assert outcome_of(ToolTraits(errors_failed=True), marked)[0] == "failed"
    assert outcome_of(ToolTraits(errors_failed=True), answer_of(ERROR))[0] == "done"
    assert outcome_of(RULES, ToolAnswer({}, (), None))[0] == "unknown"


# Texts that are JSON.


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        (" [1] ", [1]),
        ('{"a": 0.10}', {"a": Decimal("0.1")}),
        ('"x"', "x"),
        ('"\\ud800"', "\ud800"),
        ("null", None),
        ("nothing", "nothing"),
        ("", ""),
        ("\x00", "\x00"),
        ("\ufeff{}", "\ufeff{}"),
        ("{} {}", "{} {}"),
        ("{'a': 1}", "{'a': 1}"),
        ('{"a": {"b": 1, "b": 1}}', UNREADABLE),
        ("[" * 501 + "]" * 501, UNREADABLE),
        ("[" * 100_000, UNREADABLE),
        ("9" * 4000, int("9" * 4000)),
        ("-" + "9" * 4000, -int("9" * 4000)),
        ("9" * 4001, UNREADABLE),
        ("1e4000", UNREADABLE),
        ("1e3999", Decimal("1e3999")),
        ("1e-4000", Decimal("1e-4000")),
        ("1e-4001", UNREADABLE),
        ("Infinity", UNREADABLE),
    ],
    ids=lambda value: str(value)[:20] if isinstance(value, str) else None,
)
def test_texts_that_are_json(text: str, value: Any) -> None:
    assert answer_in(text) == value


def test_a_listed_number_is_compared_in_all_its_digits() -> None:
    listed = "0.1234567"
    text = f'grammar g version "1"\ntool say gives (v: {listed} | 1)\nplan = any{{0,9}}\n'
    with tcc.Gate(artifact(text), durable=False) as gate:
        for found in (listed, f"{listed}00000000000000000001", f"{listed}0"):
            with gate.call("say") as permit:
                permit.done(f'{{"v": {found}}}')
        assert [one.unforeseen for one in gate.history] == [False, True, False]


def test_the_rest_is_no_number_that_nobody_can_read() -> None:
    text = """grammar g version "1"

tool say gives (v: 5 | *)

plan = any{0,9}
"""
    with tcc.Gate(artifact(text), durable=False) as gate:
        zeros = "0" * 4001
        for said in ('{"v":6}', f'{{"v":5.{zeros}}}', {"v": Decimal(f"5.{zeros}")}, '{"v":5.00}'):
            with gate.call("say") as permit:
                permit.done(said)
        seen = [one.observed.get("v") for one in gate.history]
        assert seen == ["*", None, "5", "5"]


def test_open_answers_in_a_text_are_exact() -> None:
    text = """grammar g version "1"

tool say gives (v?: number, all?: json)
tool pay

plan = any{0,9}

before pay require say(v = 0.1)
"""
    for said, allowed in (
        ('{"v":0.1}', True),
        (f'{{"v":0.1{"0" * 30}1}}', False),
        ('{"v":0.1,"all":{"a":1,"a":1}}', False),
        ('{"v":0.1,"all":1e99999}', True),  # unknown by itself alone
    ):
        with tcc.Gate(artifact(text), durable=False) as gate:
            with gate.call("say") as permit:
                permit.done(said)
            assert gate.check("pay").allowed is allowed, said


# Times.


def hooked(gate: tcc.Gate, tool: str, at: str, answer: Any) -> None:
    async def whole() -> None:
        hooks = claude_agent._Hooks(gate, None, 5)
        assert await hooks.before({"tool_name": tool, "tool_input": {"at": at}}, tool, None) == {}
        told = {"hook_event_name": "PostToolUse", "tool_response": answer}
        await hooks.after(told, tool, None)

    asyncio.run(whole())


def wrapped(gate: tcc.Gate, tool: str, at: str, answer: Any) -> None:
    def function(at: str) -> Any:
        return answer

    gate.wrap(function, name=tool)(at)


def framed(gate: tcc.Gate, tool: str, at: str, answer: Any) -> None:
    async def run(_: object) -> Any:
        return answer

    asyncio.run(made(gate, tool, {"at": at}, run, ref=None))


@pytest.mark.parametrize("door", [hooked, wrapped, framed])
@pytest.mark.parametrize("written", [LONG, LONGER, SHORT])
def test_times_of_many_digits_are_cut(door: Any, written: str, tmp_path: Path) -> None:
    ledger = tmp_path / "s.ledger"
    with tcc.Gate(artifact(TIMES), ledger=ledger, durable=False) as gate:
        door(gate, "look", written, json.dumps({"was": LONGER}))
        assert gate.check("pay", {"at": LONG.replace("123", "124", 1)}).code == "R202"
        door(gate, "pay", LONG, "paid")
        assert [one.outcome for one in gate.history] == ["done", "done"]
        gate.finish()
    assert validated(ledger).word == "VALID"


# Bad input.


def nested(depth: int, inside: Any) -> Any:
    for _ in range(depth):
        inside = {"a": [inside]}
    return inside


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        (nested(32, ERROR), "failed"),
        (json.dumps(nested(32, ERROR)), "failed"),
        (nested(5000, ERROR), "failed"),
        ("Error: \x00", "failed"),
        ("Error: \ud800", "failed"),
        ("\ud800", "done"),
        ({"\ud800": "\x00"}, "done"),
        ("x" * (16 << 20), "done"),
        ("Error: " + "x" * (16 << 20), "unknown"),
        ({"result": "Error: " + "x" * (16 << 20)}, "unknown"),
    ],
    ids=range(10),
)
def test_odd_answers_are_decided(value: Any, outcome: str, tmp_path: Path) -> None:
    def say(how: str) -> Any:
        return value

    with tcc.Gate(artifact(GRAMMAR), ledger=tmp_path / "s.ledger", durable=False) as gate:
        gate.wrap(say)(how="x")
        assert [one.outcome for one in gate.history] == [outcome]


@pytest.mark.parametrize(
    "answer",
    [
        lambda size: "x" * size,
        lambda size: ERROR * (size // len(ERROR)),
        lambda size: {"result": "[" * size},
        lambda size: json.dumps({"v": [0.25] * (size // 6)}),
        lambda size: json.dumps([{"a": FINE}] * (size // 24)),
        lambda size: {"content": texts(FINE) * (size // 32), "isError": False},
        lambda size: '{"a":"' + "\\u0000" * (size // 6) + '"}',
        lambda size: [1e300] * (size // 8),
        lambda size: "[" + "1e3999," * (size // 8) + "1]",
    ],
    ids=["text", "errors", "brackets", "numbers", "objects", "blocks", "nuls", "floats", "powers"],
)
@pytest.mark.sampled(4)
def test_answers_are_read_in_linear_time(answer: Callable[[int], Any]) -> None:
    def work(size: int) -> Callable[[], object]:
        value = answer(size)
        return lambda: outcome_of(RULES, answer_of(value))

    doubles(work, 1 << 20)


def test_the_tool_of_a_core_says_what_its_errors_mean() -> None:
    tool: Tool = next(one for one in artifact(GRAMMAR).core.tools if one.name == "say")
    assert outcome_of(tool, answer_of(ERROR)) == outcome_of(RULES, answer_of(ERROR))
