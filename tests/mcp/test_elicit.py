"""`tcc gate --elicit`: the person at the client decides, with the official SDK."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import stdio_client
from mcp.types import ElicitResult

import tcc as library
from tests.mcp.sdk import parameters
from tests.mcp.speaking import judged, serving, tcc
from tests.mcp.test_http import web

GRAMMAR = """grammar cases version "1"

tool open_case(id: text ~ "c-[0-9]{1,4}")
tool act(kind: safe | risky, how: text max 40, id: text ~ "c-[0-9]{1,4}")
tool delete_case(id: text, how?: text) { errors mean failed }
tool run_tests(suite: unit | all, how?: text) gives (result: pass | fail)

limit depth <= 30
before act(kind = risky) ask "lead" because "A lead decides about risky acts."
before delete_case ask "owner"
"""
RISKY = {"kind": "risky", "how": "", "id": "c-1"}
MODES = ["legacy", "2026-07-28"]
Said = tuple[bool, dict[str, Any]]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("elicit") / "cases.tcca"
    library.save(library.compile_text(GRAMMAR), path)
    return path


def approves(flag: object) -> dict[str, Any]:
    return {"action": "accept", "content": {"approve": flag}}


class Person:
    """The person at a client, who answers forms in their order."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        self.answers = list(answers)
        self.forms: list[Any] = []

    async def __call__(self, _: Any, params: Any) -> ElicitResult:
        self.forms.append(params)
        return ElicitResult(**self.answers.pop(0))


def over_stdio(
    folder: Path, artifact: Path, mode: str, person: Person | None, *options: str
) -> Callable[[Callable[[Any], Awaitable[None]]], None]:
    """Let the SDK's client talk to a gate over stdio."""

    def talk(say: Callable[[Any], Awaitable[None]]) -> None:
        async def whole() -> None:
            started = parameters(
                *("gate", str(artifact), "--ledger", str(folder / "s.ledger"), *options),
                *("--", *serving("official.py")),
                EXECUTED=str(folder / "executed"),
            )
            link = stdio_client(started)
            async with Client(link, mode=mode, elicitation_callback=person) as client:
                await say(client)

        asyncio.run(asyncio.wait_for(whole(), 60))

    return talk


def executed(folder: Path) -> list[str]:
    path = folder / "executed"
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return [json.loads(line)["name"] for line in lines]


async def called(client: Any, tool: str, arguments: dict[str, Any]) -> Said:
    result = await client.call_tool(tool, arguments)
    return bool(result.is_error), result.structured_content or {}


@pytest.mark.parametrize("mode", MODES)
def test_a_person_approves_denies_or_cancels(tmp_path: Path, compiled: Path, mode: str) -> None:
    person = Person({"action": "cancel"}, approves(True), approves(False), {"action": "decline"})
    said: list[Said] = []

    async def say(client: Any) -> None:
        for number in (1, 1, 2, 3):
            said.append(await called(client, "act", {**RISKY, "id": f"c-{number}"}))

    over_stdio(tmp_path, compiled, mode, person, "--elicit", "lead")(say)
    assert executed(tmp_path) == ["act"]
    cancelled, approved, unset, declined = said
    assert cancelled[1]["code"] == "R211" and set(cancelled[1]["pending"]) == {
        "id", "who", "text", "expires_ms",
    }  # fmt: skip
    assert approved[0] is False
    assert [unset[1]["code"], declined[1]["code"]] == ["R209", "R209"]
    assert "A lead decides about risky acts." in person.forms[0].message
    assert person.forms[0].requested_schema["required"] == ["approve"]
    ledger = (tmp_path / "s.ledger").read_text()
    assert ledger.count('"kind":"approval"') == 3 and '"who":"lead at the client"' in ledger
    assert judged(tmp_path / "s.ledger", compiled).claim_type == "ConformantPrefix"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("options", [(), ("--elicit", "lead")], ids=["nobody", "lead"])
@pytest.mark.sampled(2)
def test_a_question_for_another_role_is_told_to_the_model(
    tmp_path: Path, compiled: Path, mode: str, options: tuple[str, ...]
) -> None:
    person = Person()
    said: list[Said] = []

    async def say(client: Any) -> None:
        said.append(await called(client, "delete_case", {"id": "c-1"}))

    over_stdio(tmp_path, compiled, mode, person, *options)(say)
    ((error, told),) = said
    assert error and (told["code"], told["pending"]["who"]) == ("R211", "owner")
    assert executed(tmp_path) == [] and person.forms == []


@pytest.mark.parametrize("mode", MODES)
def test_a_client_without_forms_is_told(tmp_path: Path, compiled: Path, mode: str) -> None:
    said: list[Said] = []

    async def say(client: Any) -> None:
        said.append(await called(client, "act", RISKY))

    over_stdio(tmp_path, compiled, mode, None, "--elicit", "lead")(say)
    assert said[0][1]["code"] == "R211" and executed(tmp_path) == []


@pytest.mark.parametrize("mode", MODES)
def test_a_person_approves_over_http(tmp_path: Path, compiled: Path, mode: str) -> None:
    person = Person(approves(True))

    async def whole(url: str) -> None:
        async with Client(url, mode=mode, elicitation_callback=person) as client:
            assert (await called(client, "act", RISKY))[0] is False

    with web(tmp_path, compiled, "--elicit", "lead", server="official.py") as found:
        asyncio.run(asyncio.wait_for(whole(found.url), 60))
    assert executed(tmp_path) == ["act"] and len(person.forms) == 1


def test_at_most_64_forms_are_open(tmp_path: Path, compiled: Path) -> None:
    told: list[str] = []

    async def never(_: Any, __: Any) -> ElicitResult:
        await asyncio.sleep(60)
        raise AssertionError

    async def say(client: Any) -> None:
        async def ask(number: int) -> None:
            found = await called(client, "act", {**RISKY, "id": f"c-{number}"})
            told.append(found[1]["code"])

        asked = [asyncio.ensure_future(ask(number)) for number in range(67)]
        await asyncio.wait(asked, timeout=8)
        for one in asked:
            one.cancel()
        await asyncio.gather(*asked, return_exceptions=True)

    over_stdio(tmp_path, compiled, "legacy", never, "--elicit", "lead")(say)  # type: ignore[arg-type]
    assert told == ["R211"] * 3


def test_a_role_that_no_statement_names_is_a_usage_error(tmp_path: Path, compiled: Path) -> None:
    ended = tcc(
        "gate", str(compiled), "--ledger", str(tmp_path / "l"), "--elicit", "boss", "--", "true"
    )
    assert ended.returncode == 2 and "roles: 'lead', 'owner'" in ended.stderr


FORGED = ["tcc:ask:" + "0" * 32 + ":" + "0" * 32, "tcc:ask:", "tcc:ask:" + "0" * 32]


@pytest.mark.parametrize("state", FORGED)
@pytest.mark.sampled(2)
def test_a_state_that_the_gate_never_gave_decides_nothing(
    tmp_path: Path, compiled: Path, state: str
) -> None:
    with web(tmp_path, compiled, "--elicit", "lead", server="official.py") as found:
        params = {"name": "act", "arguments": RISKY, "requestState": state}
        params["inputResponses"] = {"approval": approves(True)}
        cookie = f"tcc-session={found.greet()}"
        status, told = found.modern("tools/call", None, params, Cookie=cookie)
    assert (status, told["error"]["code"]) == (400, -32602)
    assert executed(tmp_path) == []
