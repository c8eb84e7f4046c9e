"""Processes that the official SDK's client talks to."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mcp import StdioServerParameters

from tests.forking import Forked, environment, launcher
from tests.mcp.speaking import SERVERS


def parameters(*arguments: str, **env: str) -> StdioServerParameters:
    """What starts `tcc` with these arguments and variables."""
    command, *rest = launcher("tcc", *arguments)
    return StdioServerParameters(command=command, args=rest, env=environment(**env))


@contextmanager
def listening(folder: Path, server: str) -> Iterator[tuple[Forked, str]]:
    """A server of the SDK over HTTP: its process, and its URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = environment(EXECUTED=str(folder / "executed"), PORT=str(port))
    process = Forked([str(SERVERS / server)], kind="sdk", env=env)
    try:
        until = time.monotonic() + 30
        while time.monotonic() < until:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.01)
        yield process, f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.communicate()
