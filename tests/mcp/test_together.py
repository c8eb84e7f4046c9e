"""Calls under way together through the relay, between the official SDK's client and server."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import stdio_client

import tcc
from tests.mcp.sdk import parameters
from tests.mcp.speaking import serving

SECONDS = 0.3
GRAMMAR = """grammar files version "1"

tool read(path: text max 40) { parallel bind mcp "slow" "read" }
tool write(path: text max 40) { bind mcp "slow" "write" }

plan = (read | write){0,40}

before write require read(same path)
"""


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files") / "files.tcca"
    tcc.save(tcc.compile_text(GRAMMAR), path)
    return path


def made(folder: Path, artifact: Path, names: list[tuple[str, str]]) -> tuple[float, list[Any]]:
    """So many calls sent at once: how long they took together, and their results."""

    async def whole() -> tuple[float, list[Any]]:
        started = parameters(
            *("gate", str(artifact), "--ledger", str(folder / "s.ledger")),
            *("--", *serving("slow.py")),
            SECONDS=str(SECONDS),
        )
        async with Client(stdio_client(started)) as client:
            await client.call_tool("read", {"path": "warm"})
            began = time.monotonic()
            calls = [client.call_tool(tool, {"path": path}) for tool, path in names]
            results = await asyncio.gather(*calls)
            return time.monotonic() - began, results

    return asyncio.run(asyncio.wait_for(whole(), 60))


def spans(results: list[Any]) -> list[tuple[float, float]]:
    """When the server began and ended each call."""
    texts = [result.content[0].text.split() for result in results]
    return [(float(began), float(ended)) for _, began, ended in texts]


def test_eight_reads_take_the_time_of_one(tmp_path: Path, artifact: Path) -> None:
    took, results = made(tmp_path, artifact, [("read", str(number)) for number in range(8)])
    print(f"eight reads of {SECONDS} s at once: {took:.3f} s")
    found = spans(results)
    # All are in the server together; one after the other they would take 2.4 s.
    assert max(began for began, _ in found) < min(ended for _, ended in found)
    assert took < 4 * SECONDS
    verdict = tcc.validate(tmp_path / "s.ledger", artifact)
    assert verdict.findings == () or verdict.findings[0].code == "D301"
    assert verdict.checked["calls"] == verdict.checked["outcomes"] == 9


def test_a_call_that_waits_is_made_when_it_may_be(tmp_path: Path, artifact: Path) -> None:
    """Reads and the writes that they allow, in one message: each is decided when it can be."""
    names = [("read", "a"), ("read", "b"), ("write", "a"), ("read", "c"), ("write", "z")]
    _, results = made(tmp_path, artifact, names)
    assert [result.is_error or False for result in results] == [False] * 4 + [True]
    assert results[4].structured_content["code"] == "R202"
    read_a, read_b, write_a, read_c = spans(results[:4])
    assert read_a[0] < read_b[1] and read_b[0] < read_a[1]
    assert max(read_a[1], read_b[1]) <= write_a[0] and write_a[1] <= read_c[0]
    assert tcc.validate(tmp_path / "s.ledger", artifact).claim_type == "ConformantPrefix"
