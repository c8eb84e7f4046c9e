"""What the answer of a server of the SDK means, to a client of the SDK over stdio and HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import stdio_client

import tcc
from tests.answer_forms import ERROR, FINE, FORMS, GRAMMAR, LONG, SHORT, TIMES, Form
from tests.mcp.sdk import parameters
from tests.mcp.speaking import serving
from tests.mcp.test_http import web

REPEAT = GRAMMAR.replace("say", "repeat")


def saved(folder: Path, text: str) -> Path:
    path = folder / "desk.tcca"
    tcc.save(tcc.compile_text(text), path)
    return path


def over_stdio(folder: Path, artifact: Path, say: Callable[[Client], Awaitable[None]]) -> Path:
    ledger = folder / "s.ledger"

    async def whole() -> None:
        started = parameters(
            *("gate", str(artifact), "--ledger", str(ledger), "--no-durable"),
            *("--", *serving("answering.py")),
        )
        async with Client(stdio_client(started)) as client:
            await say(client)

    asyncio.run(asyncio.wait_for(whole(), 60))
    return ledger


def over_http(folder: Path, artifact: Path, say: Callable[[Client], Awaitable[None]]) -> Path:
    async def whole(url: str) -> None:
        async with Client(url) as client:
            await say(client)

    with web(folder, artifact, server="answering.py") as found:
        asyncio.run(asyncio.wait_for(whole(found.url), 60))
        return found.ledgers()[0]


def outcomes(ledger: Path) -> list[dict[str, Any]]:
    records = map(json.loads, ledger.read_bytes().splitlines())
    return [one for one in records if one["kind"] == "outcome"]


def seen(record: dict[str, Any]) -> tuple[str, bool, str | None]:
    """The outcome, whether an error was read, and the observed value; None if it is not known."""
    value = None if record.get("unforeseen") else record.get("observed", {}).get("v", "")
    return record["outcome"], record.get("answered", False), value


def expected(form: Form) -> tuple[str, bool, str | None]:
    done = form.outcome == "done"
    return form.outcome, form.outcome == "failed", form.seen if done else ""


@pytest.mark.parametrize("talk", [over_stdio, over_http], ids=["stdio", "http"])
def test_every_form_through_the_relay(
    talk: Callable[[Path, Path, Any], Path], tmp_path: Path
) -> None:
    forms = sorted(FORMS, key=lambda form: form.outcome == "unknown")  # these are the last ones

    async def say(client: Client) -> None:
        assert (await client.call_tool("pay", {})).is_error
        for form in forms:
            answer = await client.call_tool("say", {"how": json.dumps(form.result)})
            assert len(answer.content) == len(form.content), answer  # it goes on as it is
            if form is forms[0]:
                assert (await client.call_tool("pay", {})).is_error

    text = GRAMMAR.replace("any{0,9}", "(say | pay){0,60}")
    ledger = talk(tmp_path, saved(tmp_path, text), say)
    assert [seen(one) for one in outcomes(ledger)] == [expected(form) for form in forms]


@pytest.mark.parametrize("talk", [over_stdio, over_http], ids=["stdio", "http"])
def test_the_text_of_a_tool_as_the_sdk_writes_it(
    talk: Callable[[Path, Path, Any], Path], tmp_path: Path
) -> None:
    async def say(client: Client) -> None:
        answer = await client.call_tool("repeat", {"how": ERROR})
        assert answer.structured_content == {"result": ERROR} and not answer.is_error
        assert (await client.call_tool("pay", {})).is_error
        assert not (await client.call_tool("repeat", {"how": FINE})).is_error
        assert not (await client.call_tool("pay", {})).is_error

    ledger = talk(tmp_path, saved(tmp_path, REPEAT), say)
    assert [one["outcome"] for one in outcomes(ledger)] == ["failed", "done", "done"]


@pytest.mark.parametrize(
    "how", ["\x00", "\u2028", "x" * 100_000, "[" * 60, json.dumps([[[[[[[[[[5]]]]]]]]]])]
)
@pytest.mark.sampled(2)
def test_odd_texts_go_on(how: str, tmp_path: Path) -> None:
    async def say(client: Client) -> None:
        answer = await client.call_tool("repeat", {"how": how})
        assert not answer.is_error and answer.structured_content == {"result": how}
        failed = await client.call_tool("repeat", {"how": "Error: " + how.replace("\u2028", "")})
        assert not failed.is_error

    text = REPEAT.replace("max 9000", "max 200000")
    ledger = over_stdio(tmp_path, saved(tmp_path, text), say)
    assert [one["outcome"] for one in outcomes(ledger)] == ["done", "failed"]


@pytest.mark.parametrize("talk", [over_stdio, over_http], ids=["stdio", "http"])
def test_times_of_many_digits(talk: Callable[[Path, Path, Any], Path], tmp_path: Path) -> None:
    async def say(client: Client) -> None:
        for tool, at in (("look", LONG), ("pay", SHORT)):
            assert not (await client.call_tool(tool, {"at": at})).is_error

    ledger = talk(tmp_path, saved(tmp_path, TIMES), say)
    assert [one["outcome"] for one in outcomes(ledger)] == ["done", "done"]
