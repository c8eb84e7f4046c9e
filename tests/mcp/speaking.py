"""A relay in a process of its own, spoken to line by line; and what it left behind."""

from __future__ import annotations

import fcntl
import io
import json
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from tcc.main import main
from tcc_certs.session.validation import SessionValidation, validate
from tcc_runtime.gate.gate import Gate
from tcc_runtime.gate.keys import key_path, read_key
from tests import forking
from tests.cli.documents import check_printed
from tests.forking import Forked, environment, launcher

SERVERS = Path(__file__).parent / "servers"
ROOT = Path(__file__).parents[2]
GRAMMAR = """grammar cases version "1"

tool open_case(id: text ~ "c-[0-9]{1,4}")
tool act(kind: safe | risky, how: text max 40, id: text ~ "c-[0-9]{1,4}")
tool delete_case(id: text, how?: text) { errors mean failed }
tool run_tests(suite: unit | all, how?: text) gives (result: pass | fail)

limit depth <= 30
before act require open_case
before delete_case require open_case(same id)
before act(kind = risky) require run_tests(result = pass)
limit count(delete_case) <= 1
before act require no delete_case
"""


SDK = ("answering.py", "everything.py", "offering.py", "official.py", "slow.py")


def serving(server: str) -> list[str]:
    """The command of a server in ``servers``."""
    path = str(SERVERS / server)
    return launcher("sdk", path) if server in SDK else [sys.executable, path]


def tcc(*arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """A command that runs to its end; what it prints as JSON is held to its schema.

    In this process where the command serves nobody and needs no environment.
    """
    if arguments[0] in ("compile", "session", "validate") and not more:
        ended = _here(arguments)
    else:
        ended = forking.run(arguments, env=environment(**more.pop("env", {})), **more)
    check_printed(list(arguments), ended.stdout)
    return ended


def _here(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """A command of this process; it ends as one of its own would."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main(list(arguments))
    code = ended.value.code
    assert isinstance(code, int)
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def judged(ledger: Path, artifact: Path) -> SessionValidation:
    """What the ledger shows, as a stranger with the key sees it."""
    key = read_key(ledger) if key_path(ledger).exists() else None
    return validate(ledger.read_bytes(), artifact.read_bytes(), key=key)


@contextmanager
def locked(ledger: Path) -> Iterator[None]:
    """A block in which another process has the ledger's lock."""
    with ledger.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class Relayed:
    """`tcc gate` before a server, with this test as its client.

    Args:
        folder: for the ledger and the record of what was executed.
        artifact: what calls are held to.
        server: the file of the server, in ``servers``; empty where the options name servers.
    """

    def __init__(
        self,
        folder: Path,
        artifact: Path,
        *options: str,
        server: str = "hostile.py",
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.ledger = folder / "s.ledger"
        self.executed_in = folder / "executed"
        self._artifact = artifact
        command = ("--", *serving(server)) if server else ()
        self.process = Forked(
            ["gate", str(artifact), "--ledger", str(self.ledger), *options, *command],
            env=environment(EXECUTED=str(self.executed_in), **(env or {})),
            buffering=0,
        )
        self._rest = b""
        self._last = 0
        self.aside: list[dict[str, Any]] = []

    def __enter__(self) -> Relayed:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> tuple[int, str]:
        """Let go of it; its exit code, and what it said for people."""
        if self.process.stdin is not None and not self.process.stdin.closed:
            self.process.stdin.close()
        try:
            self.process.wait(15)
        finally:
            self.process.kill()
        errors = self.process.stderr.read().decode() if self.process.stderr else ""
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()
        self.process.stderr = None
        self.said = errors
        if self.ledger.exists():
            self.judged = judged(self.ledger, self._artifact)
            assert self.judged.verdict != 1, self.judged.findings
        return self.process.returncode, errors

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)

    def post(self, message: Mapping[str, Any]) -> None:
        """Send a message."""
        self.send(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def hear(self, seconds: float = 20) -> dict[str, Any] | None:
        """The next message; None at the end of the pipe."""
        assert self.process.stdout is not None
        until = time.monotonic() + seconds
        while b"\n" not in self._rest:
            left = until - time.monotonic()
            assert left > 0, "no message in time"
            if not select.select([self.process.stdout], [], [], left)[0]:
                continue
            data = self.process.stdout.read(1 << 20)
            if not data:
                return None
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        assert found["jsonrpc"] == "2.0"
        return found

    def drain(self) -> int:
        """Take what is there to be heard; how many lines it was."""
        assert self.process.stdout is not None
        while select.select([self.process.stdout], [], [], 0)[0]:
            data = self.process.stdout.read(1 << 16)
            assert data, "the relay ended"
            self._rest += data
        *lines, self._rest = self._rest.split(b"\n")
        return len(lines)

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        self._last += 1
        message = {"id": self._last, "method": method}
        self.post(message if params is None else {**message, "params": params})
        return self.answer_to(self._last)

    def answer_to(self, identity: object) -> dict[str, Any]:
        """The answer to a request; what else comes is kept aside."""
        while True:
            found = self.hear()
            assert found is not None, "the relay ended"
            if found.get("id") == identity and "method" not in found:
                return found
            self.aside.append(found)

    def ping_ms(self) -> float:
        """How long a ping takes, in milliseconds: the best of five."""
        took = []
        for _ in range(5):
            began = time.perf_counter()
            assert self.ask("ping")["result"] == {}
            took.append(1000 * (time.perf_counter() - began))
        return min(took)

    def want(self, identity: object, tool: str, **arguments: Any) -> None:
        """Ask for a call, and do not wait for its answer."""
        params = {"name": tool, "arguments": arguments}
        self.post({"id": identity, "method": "tools/call", "params": params})

    def cancel(self, identity: object) -> None:
        """Cancel a call."""
        self.post({"method": "notifications/cancelled", "params": {"requestId": identity}})

    def stop_seconds(self, number: signal.Signals = signal.SIGTERM) -> float:
        """Send it a signal; how long it takes to end."""
        began = time.perf_counter()
        self.process.send_signal(number)
        self.process.wait(20)
        return time.perf_counter() - began

    def greet(self, version: str = "2025-11-25") -> dict[str, Any]:
        """Make the handshake."""
        info = {"name": "test", "version": "1"}
        asked = {"protocolVersion": version, "capabilities": {"sampling": {}}, "clientInfo": info}
        answer = self.ask("initialize", asked)
        self.post({"method": "notifications/initialized"})
        return answer

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Make a call; the answer's result, or the whole answer where it is an error."""
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments})
        result: dict[str, Any] = answer.get("result", answer)
        return result

    @property
    def executed(self) -> list[tuple[str, dict[str, Any]]]:
        """What the server really executed."""
        if not self.executed_in.exists():
            return []
        lines = self.executed_in.read_text("utf-8").splitlines()
        found = [json.loads(line) for line in lines]
        return [(one["name"], one.get("arguments", {})) for one in found]

    @property
    def records(self) -> Sequence[dict[str, Any]]:
        """The records of the ledger."""
        return [json.loads(line) for line in self.ledger.read_text("utf-8").splitlines()]

    def outcomes(self) -> list[str]:
        """How each call ended, as the ledger tells: read again from its first line."""
        gate = Gate(str(self._artifact), ledger=self.ledger)
        try:
            return [one.outcome for one in gate.history]
        finally:
            gate.close()
