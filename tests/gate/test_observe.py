"""What watchers are told of a session: log records and spans, and nothing of what was said."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import tcc
from tests.gate.grammars import LONG, SHOP, do, gate


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    return exporter


def test_calls_are_spans_and_a_session_is_one(spans: InMemorySpanExporter) -> None:
    session = gate(SHOP)
    with session.call("approve", {"order": "ord-4711"}, ref="secret-id") as permit:
        inner = trace.get_tracer("tool").start_span("inner")
        inner.end()
        permit.done({"secret": 1})
    with session.call("find", {"by": "mail", "who": "secret"}) as permit:
        permit.failed("no connection")
    with pytest.raises(tcc.Refused):
        do(session, "merge")
    session.finish()
    found = {span.name: span for span in spans.get_finished_spans()}
    assert list(found) == ["inner", "execute_tool approve", "execute_tool find", "tcc.session"]
    call = found["execute_tool approve"]
    marks: Any = call.attributes
    assert marks["gen_ai.operation.name"] == "execute_tool"
    assert (marks["gen_ai.tool.name"], marks["tcc.call.outcome"]) == ("approve", "done")
    assert found["inner"].parent == call.context
    assert call.links[0].context == found["tcc.session"].context
    assert found["execute_tool find"].status.status_code is trace.StatusCode.ERROR
    assert [event.name for event in found["tcc.session"].events] == ["tcc.refused"]
    told = "".join(span.to_json() for span in found.values())
    assert "secret" not in told and "ord-4711" not in told


def test_spans_of_tasks_do_not_mix(spans: InMemorySpanExporter) -> None:
    import asyncio

    session = gate(LONG)

    async def work() -> None:
        async with session.call("b") as permit:
            inside = trace.get_current_span().get_span_context()
            await asyncio.sleep(0.001)
            assert trace.get_current_span().get_span_context() == inside
            permit.done()
        assert not trace.get_current_span().get_span_context().is_valid

    async def main() -> None:
        await asyncio.gather(*(work() for _ in range(4)))

    asyncio.run(main())
    assert len(spans.get_finished_spans()) == 4


def test_log_records_under_tcc(caplog: pytest.LogCaptureFixture) -> None:
    session = gate(SHOP)
    with caplog.at_level(logging.DEBUG, "tcc"):
        do(session, "approve", {"order": "ord-4711"})
        with pytest.raises(KeyError), session.call("find", {"by": "mail", "who": "secret"}):
            raise KeyError("secret")
        with pytest.raises(tcc.Refused):
            do(session, "no\x1b[31m such tool")
        session.resolve(2, "failed")
        session.finish(abandon=True)
    told = [(record.levelname, record.getMessage().partition(": ")[2]) for record in caplog.records]
    assert told == [
        ("DEBUG", "call 1, approve"),
        ("DEBUG", "call 1 is done"),
        ("DEBUG", "call 2, find"),
        ("WARNING", "call 2 is unknown (KeyError)"),
        ("INFO", "no\\x1b[31m such tool refused, R101"),
        ("DEBUG", "call 2 was failed"),
        ("DEBUG", "abandoned"),
    ]


@pytest.mark.parametrize("errors", ["unknown", "failed"])
@pytest.mark.parametrize("raises", ["ValueError", "TimeoutError", "SystemExit", "Failed"])
def test_what_a_tool_says_when_it_fails_is_in_no_log(
    caplog: pytest.LogCaptureFixture, spans: InMemorySpanExporter, errors: str, raises: str
) -> None:
    means = " { errors mean failed }" if errors == "failed" else ""
    text = f'grammar g version "1"\ntool pay(k: a){means}\nplan = pay'
    kinds = {"Failed": tcc.Failed, "SystemExit": SystemExit, "TimeoutError": TimeoutError}
    kind = kinds.get(raises, ValueError)

    def pay(k: str) -> None:
        raise kind(f"no account 4711 for {k}")

    artifact = tcc.compile_text(text)
    with caplog.at_level(logging.DEBUG, "tcc"), tcc.Gate(artifact) as session:
        done = tcc.execute(tcc.search(artifact), {"pay": pay}, gate=session)
    known = raises == "Failed" or (errors == "failed" and raises == "ValueError")
    assert known or "4711" in done.reason  # who asked for the call is told
    assert "account 4711" not in caplog.text
    assert "account 4711" not in "".join(span.to_json() for span in spans.get_finished_spans())
    levels = {one.levelname for one in caplog.records if one.name == "tcc.gate"}
    assert levels == ({"DEBUG"} if known else {"DEBUG", "WARNING"})


def test_a_call_that_failed_is_logged_as_any_outcome(caplog: pytest.LogCaptureFixture) -> None:
    session = gate(SHOP)
    find = session.call("find", {"by": "mail", "who": "secret"})
    with caplog.at_level(logging.DEBUG, "tcc"), find as permit:
        permit.failed("no connection")
    last = caplog.records[-1]
    assert (last.levelname, last.getMessage().partition(": ")[2]) == (
        "DEBUG", "call 1 is failed (no connection)",
    )  # fmt: skip


def test_nothing_is_imported_for_nobody() -> None:
    code = (
        "import sys, tcc; a = tcc.compile_text('grammar g version \"1\"\\ntool a\\nplan = a')\n"
        "g = tcc.Gate(a)\nwith g.call('a') as p: p.done()\n"
        "print([m for m in sys.modules if m.startswith('opentelemetry')])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
