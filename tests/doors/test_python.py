"""The doors of a Python program: `gate.call`, `gate.wrap`, `tcc.execute`, LangChain's tools."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import StructuredTool

import tcc
import tcc.langchain
from tcc.integrations import Refusal, claude_agent
from tests.doors.cases import CASES, GIVEN, GRAMMAR, LARGE, same
from tests.doubling import doubles

Ran = list[dict[str, Any]]
Door = Callable[[tcc.Gate, dict[str, Any], Ran], str | None]


@pytest.fixture(scope="module")
def artifact() -> Any:
    return tcc.compile_text(GRAMMAR)


@pytest.fixture
def gate(artifact: Any) -> Iterator[tcc.Gate]:
    with tcc.Gate(artifact, durable=False) as found:
        yield found


def save(ran: Ran) -> Callable[..., str]:
    """The tool: keeps what it gets."""

    def save(**arguments: Any) -> str:
        ran.append(arguments)
        return "saved"

    return save


def called(gate: tcc.Gate, given: dict[str, Any], ran: Ran) -> str | None:
    try:
        with gate.call("save", given) as permit:
            permit.done(save(ran)(**permit.arguments))
    except tcc.Refused as refusal:
        return refusal.code
    return None


def called_in_task(gate: tcc.Gate, given: dict[str, Any], ran: Ran) -> str | None:
    async def call() -> None:
        async with gate.call("save", given) as permit:
            permit.done(save(ran)(**permit.arguments))

    try:
        asyncio.run(call())
    except tcc.Refused as refusal:
        return refusal.code
    return None


def wrapped(gate: tcc.Gate, given: dict[str, Any], ran: Ran) -> str | None:
    try:
        gate.wrap(save(ran))(**given)
    except tcc.Refused as refusal:
        return refusal.code
    return None


def executed(gate: tcc.Gate, given: dict[str, Any], ran: Ran) -> str | None:
    other = tcc.Gate(gate.artifact, durable=False)
    plan = tcc.compile_text(GRAMMAR.replace("{0,99}", "{1,1}"))
    other = tcc.Gate(plan, durable=False)
    try:
        tcc.execute(tools={"save": save(ran)}, gate=other, arguments={"save": given})
    except (tcc.Refused, TypeError) as error:
        return error.code if isinstance(error, tcc.Refused) else "R102"
    finally:
        other.close()
    return None


def in_langchain(gate: tcc.Gate, given: dict[str, Any], ran: Ran) -> str | None:
    schema = {"type": "object", "properties": {name: {} for name in given}}
    tool = StructuredTool(name="save", description="s", args_schema=schema, func=save(ran))
    (guarded,) = tcc.langchain.guard([tool], gate)
    call = {"name": "save", "args": given, "id": f"c{len(ran)}-{id(given)}", "type": "tool_call"}
    answer = guarded.invoke(call)
    return None if answer.status == "success" else answer.artifact["tcc_refusal"]


def by_the_claude_sdk(gate: tcc.Gate, given: dict[str, Any], ran: Ran) -> str | None:
    async def run(arguments: Any) -> Any:
        return save(ran)(**arguments)

    found = asyncio.run(claude_agent.made(gate, "save", given, run, ref=None))
    return str(found).split("called: ")[1][:4] if isinstance(found, Refusal) else None


DOORS: list[Door] = [called, called_in_task, wrapped, executed, in_langchain, by_the_claude_sdk]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("case", CASES)
def test_what_runs_is_what_was_decided_on(gate: tcc.Gate, door: Door, case: str) -> None:
    text, code = CASES[case]
    ran: Ran = []
    assert door(gate, json.loads(text), ran) == code
    assert len(ran) == (code is None)
    assert not ran or same(ran[0], json.loads(text))


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("case", LARGE)
def test_large_arguments_are_refused_in_time(gate: tcc.Gate, door: Door, case: str) -> None:
    text, code = LARGE[case]
    given, ran = json.loads(text), list[dict[str, Any]]()
    began = time.process_time()
    assert door(gate, given, ran) == code
    assert time.process_time() - began < 5
    assert not ran


def test_a_large_list_takes_time_in_proportion(gate: tcc.Gate) -> None:
    def work(size: int) -> Callable[[], object]:
        rows = [{"name": "a", "place": {"no": at}} for at in range(size)]
        given = {**GIVEN, "rows": rows}
        assert called(gate, given, []) == "R105"
        return lambda: called(gate, given, [])

    doubles(work, 40_000)


@pytest.mark.parametrize("door", [called, wrapped, by_the_claude_sdk])
def test_parts_that_occur_many_times_are_looked_at_once(gate: tcc.Gate, door: Door) -> None:
    value: list[Any] = []
    for _ in range(60):
        value = [value, value]
    around: list[Any] = []
    around.append(around)
    began = time.process_time()
    assert door(gate, {**GIVEN, "data": value}, []) == "R105"
    assert door(gate, {**GIVEN, "data": around}, []) == "R106"
    assert door(gate, {**GIVEN, "rows": around}, []) == "R105"
    assert time.process_time() - began < 5


@pytest.mark.parametrize("door", [called, called_in_task, wrapped, in_langchain, by_the_claude_sdk])
def test_arguments_that_change_while_a_call_waits_are_not_run(gate: tcc.Gate, door: Door) -> None:
    given, ran = json.loads(json.dumps(GIVEN)), list[dict[str, Any]]()
    codes: list[str | None] = []
    with gate.call("save", GIVEN) as before:
        waiting = threading.Thread(target=lambda: codes.append(door(gate, given, ran)))
        waiting.start()
        time.sleep(0.3)  # it waits for its turn
        given["rows"][1]["secret"] = "s"
        given["data"]["a"].append(2**70)
        given["id"] = "x"
        before.done()
    waiting.join(20)
    assert codes == [None]
    assert same(ran, [GIVEN])


def test_the_command_runs_what_was_decided_on(tmp_path: Path) -> None:
    from tests.mcp.speaking import tcc as command

    plan, tools, log = tmp_path / "g.tcg", tmp_path / "tools.py", tmp_path / "log"
    plan.write_text(GRAMMAR.replace("{0,99}", "{1,1}"))
    tools.write_text(
        "import json\ndef save(**given):\n"
        f"    open({str(log)!r}, 'a').write(json.dumps(given) + '\\n')\n"
    )
    for case in ("an integer 18446744073709551615", "a member that is not declared"):
        text, code = CASES[case]
        (tmp_path / "a.json").write_text(json.dumps({"save": json.loads(text)}))
        given = str(tmp_path / "a.json")
        ended = command("exec", str(plan), "--tools", str(tools), "--arguments", given)
        assert (ended.returncode == 0) == (code is None), ended.stderr
        assert code is None or code in ended.stderr
    lines = log.read_text().splitlines()
    assert len(lines) == 1
    assert same(json.loads(lines[0]), json.loads(CASES["an integer 18446744073709551615"][0]))


def test_a_server_of_an_execution_gets_numbers_as_they_were_decided_on(tmp_path: Path) -> None:
    log = tmp_path / "log"
    server = tmp_path / "server.py"
    server.write_text(
        "import json, sys\nfrom typing import Any\nfrom mcp.server import MCPServer\n"
        "server = MCPServer('s')\n"
        "@server.tool()\ndef save(id: int, size: float | int, data: Any) -> str:\n"
        f"    open({str(log)!r}, 'a').write(json.dumps([id, size, data]) + '\\n')\n"
        "    return 'saved'\nserver.run('stdio')\n"
    )
    text = """grammar g version "1"
tool save(size: 0.12345678901234568 | 0.5, id: integer, data: json) {
    bind mcp "s" "save" errors mean failed }
plan = save(size=0.5)
"""
    from decimal import Decimal

    given = {"id": 2**64 - 1, "data": {"n": [-(2**63), Decimal("2.5"), Decimal("1E+3")]}}
    found = tcc.execute(
        gate=tcc.Gate(tcc.compile_text(text)),
        arguments={"save": given},
        servers={"s": [sys.executable, str(server)]},
        seed=bytes(32),
    )
    assert found.stop == "finished", found.reason
    assert json.loads(log.read_text()) == [2**64 - 1, 0.5, {"n": [-(2**63), 2.5, 1000]}]
