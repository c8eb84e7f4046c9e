"""One loop: whatever waits, pings are answered, a signal ends it, what is cancelled is not made."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import tcc
from tcc_runtime.gate.gate import Gate
from tcc_runtime.gate.permit import Ticket
from tcc_runtime.mcp.client import Cancelled, Client, ClientCall
from tcc_runtime.mcp.deciding import Decisions
from tcc_runtime.mcp.links import Stop
from tcc_runtime.mcp.links.stdio import PipeLink, Program
from tcc_runtime.mcp.relay import Relay
from tcc_runtime.mcp.server import Server
from tests.mcp.speaking import GRAMMAR, Relayed, locked

PING_MS = 50
STOP_SECONDS = 1.0
TRIES = 3  # of what is timed: other programs have the machine, too
WAITS = ["lock", "list", "call", "refusals", "nothing", "start: lock", "start: list"]


def opened(relay: Relayed) -> None:
    relay.greet()
    assert "isError" not in relay.call("open_case", id="c-1")


def executed(relay: Relayed, count: int) -> None:
    until = time.monotonic() + 20
    while len(relay.executed) < count:
        assert time.monotonic() < until, "not executed in time"
        time.sleep(0.005)


@contextmanager
def kept_waiting(folder: Path, artifact: Path, what: str, **env: str) -> Iterator[Relayed]:
    """A relay of which a call, c-2 under the id "w", waits for something that takes long."""
    if what.startswith("start"):
        with starting(folder, artifact, what, **env) as relay:
            yield relay
        return
    with Relayed(folder, artifact, env=env) as relay:
        opened(relay)
        match what:
            case "lock":
                with locked(relay.ledger):
                    relay.want("w", "open_case", id="c-2")
                    yield relay
                return
            case "list":
                relay.call("act", kind="safe", how="slow_list:30", id="c-1")
                relay.want("w", "open_case", id="c-2")
            case "call":
                relay.want("u", "act", kind="safe", how="hang", id="c-1")
                executed(relay, 2)
                relay.want("w", "open_case", id="c-2")
            case "refusals":
                for number in range(250):
                    relay.want(f"r{number}", "never")
                relay.want("w", "open_case", id="c-2")
        yield relay


@contextmanager
def starting(folder: Path, artifact: Path, what: str, **env: str) -> Iterator[Relayed]:
    ledger = folder / "s.ledger"
    if what == "start: lock":
        with Gate(str(artifact), ledger=ledger):
            pass
        with locked(ledger), Relayed(folder, artifact, env=env) as relay:
            early(relay)
            yield relay
        return
    with Relayed(folder, artifact, env={"LIST_SECONDS": "30", **env}) as relay:
        early(relay)
        yield relay


def early(relay: Relayed) -> None:
    """What a client says before the relay's start is over; it runs when it answers pings."""
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}
    relay.post({"id": "h", "method": "initialize", "params": hello})
    relay.want("w", "open_case", id="c-2")
    assert relay.ask("ping")["result"] == {}


def best(folder: Path, measure: Callable[[Path], float], bound: float) -> float:
    """The least of some measurements; no more are made when one is within the bound."""
    found = []
    for number in range(TRIES):
        (folder / str(number)).mkdir()
        found.append(measure(folder / str(number)))
        if found[-1] < bound:
            break
    return min(found)


@pytest.mark.parametrize("what", WAITS)
@pytest.mark.sampled(3)
def test_a_ping_is_answered_whatever_waits(tmp_path: Path, artifact: Path, what: str) -> None:
    def measure(folder: Path) -> float:
        with kept_waiting(folder, artifact, what) as relay:
            took = relay.ping_ms()
            relay.process.terminate()
        return took

    assert best(tmp_path, measure, PING_MS) < PING_MS


@pytest.mark.parametrize(
    ("what", "stubborn"), [*((what, "") for what in WAITS), ("call", "1"), ("start: list", "1")]
)
@pytest.mark.sampled(4)
def test_a_signal_ends_it_within_a_second_whatever_waits(
    tmp_path: Path, artifact: Path, what: str, stubborn: str
) -> None:
    relays = []

    def measure(folder: Path) -> float:
        with kept_waiting(folder, artifact, what, STUBBORN=stubborn) as relay:
            relays.append(relay)
            return relay.stop_seconds()

    assert best(tmp_path, measure, STOP_SECONDS) < STOP_SECONDS
    relay = relays[-1]
    assert relay.process.returncode == 0
    if what not in ("refusals", "nothing"):
        assert "c-2" not in [arguments.get("id") for _, arguments in relay.executed]
    if what == "call":
        assert relay.outcomes() == ["done", "unknown"]
    if what == "start: list":
        assert not relay.ledger.exists()  # nothing was relayed: the start is taken back


@pytest.mark.parametrize("what", ["lock", "list", "call", "start: lock", "start: list"])
@pytest.mark.sampled(2)
def test_what_is_cancelled_while_it_waits_is_not_made(
    tmp_path: Path, artifact: Path, what: str
) -> None:
    env = {"LIST_SECONDS": "1"} if what == "start: list" else {}
    with kept_waiting(tmp_path, artifact, what, **env) as relay:
        relay.cancel("w")
        assert relay.ask("ping")["result"] == {}
        if what in ("lock", "start: lock"):
            # What comes next is made when the lock is free, and the cancelled one is not.
            relay.want("n", "open_case", id="c-3")
        if what == "start: list":
            assert "isError" not in relay.call("open_case", id="c-3")
        if what in ("list", "call"):
            relay.process.terminate()
    assert "c-2" not in [arguments.get("id") for _, arguments in relay.executed]


def test_a_call_that_another_relay_kept_waiting_is_not_made_when_it_was_cancelled(
    tmp_path: Path, artifact: Path
) -> None:
    with Relayed(tmp_path, artifact) as one, Relayed(tmp_path, artifact) as other:
        opened(one)
        other.greet()
        one.want("a", "act", kind="safe", how="late:1", id="c-1")
        executed(one, 2)
        other.want("b", "act", kind="safe", how="", id="c-2")
        other.want("c", "act", kind="safe", how="", id="c-3")
        assert other.ping_ms() < 10 * PING_MS
        other.cancel("b")
        assert "isError" not in one.answer_to("a")["result"]
        assert "isError" not in other.answer_to("c")["result"]
        assert not [told for told in other.aside if told.get("id") == "b"]
    assert [arguments["id"] for _, arguments in one.executed] == ["c-1", "c-1", "c-3"]
    assert one.outcomes() == ["done", "done", "done"]


@pytest.mark.parametrize("what", ["lock", "list", "start: lock"])
@pytest.mark.sampled(2)
def test_who_is_gone_has_no_call_made(tmp_path: Path, artifact: Path, what: str) -> None:
    with kept_waiting(tmp_path, artifact, what) as relay:
        assert relay.process.stdin is not None
        relay.process.stdin.close()
        relay.process.wait(20)  # though nobody gives the lock back, and no list comes
    assert "c-2" not in [arguments.get("id") for _, arguments in relay.executed]


@pytest.mark.parametrize("before", [0, 200])
def test_a_cancellation_that_stands_in_the_pipe_is_honoured(
    tmp_path: Path, artifact: Path, before: int
) -> None:
    def line(**message: Any) -> bytes:
        return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"

    def call(identity: object, tool: str, **arguments: str) -> bytes:
        params = {"name": tool, "arguments": arguments}
        return line(id=identity, method="tools/call", params=params)

    noise = line(method="notifications/noise", params={"x": "x" * 200})
    with Relayed(tmp_path, artifact) as relay:
        relay.greet()
        refused = b"".join(call(f"r{at}", "never") for at in range(before))
        cancelled = line(method="notifications/cancelled", params={"requestId": "w"})
        relay.send(refused + call("w", "open_case", id="c-2") + 200 * noise + cancelled)
        assert "isError" not in relay.call("open_case", id="c-3")
    assert relay.executed == [("open_case", {"id": "c-3"})]


def test_many_calls_of_one_relay_leave_the_ledger_to_another(
    tmp_path: Path, artifact: Path
) -> None:
    with Relayed(tmp_path, artifact) as one, Relayed(tmp_path, artifact) as other:
        one.greet()
        other.greet()
        for number in range(25):
            one.want(number, "open_case", id=f"c-{number}")
        one.answer_to(0)
        assert "isError" not in other.call("open_case", id="c-99")
        one.answer_to(24)
    order = [arguments["id"] for _, arguments in one.executed]
    assert order.index("c-99") < len(order) - 1


def test_a_session_that_ends_with_its_connection_waits_for_no_lock_when_it_is_stopped(
    tmp_path: Path, artifact: Path
) -> None:
    with Relayed(tmp_path, artifact, "--finish") as relay:
        opened(relay)
        with locked(relay.ledger):
            assert relay.process.stdin is not None
            relay.process.stdin.close()
            time.sleep(0.3)
            assert relay.process.poll() is None  # it waits for the lock to write its end
            assert relay.stop_seconds() < TRIES * STOP_SECONDS
    assert relay.process.returncode == 0
    assert relay.records[-1]["kind"] == "outcome"


def test_an_answer_that_comes_after_its_owner_resolved_the_call_changes_nothing(
    tmp_path: Path, artifact: Path
) -> None:
    with Relayed(tmp_path, artifact, "--deadline", "0.3") as relay:
        opened(relay)
        act = {"kind": "safe", "how": "late:1", "id": "c-1"}
        assert relay.call("act", **act)["structuredContent"]["outcome"] == "unknown"
        with Gate(str(artifact), ledger=relay.ledger) as owner:
            owner.resolve(2, "failed")
        time.sleep(1)
        relay.call("open_case", id="c-2")
        assert "isError" not in relay.call("open_case", id="c-3")
    assert relay.outcomes()[1] == "failed"


def test_answers_that_nobody_reads_fill_no_memory(tmp_path: Path, artifact: Path) -> None:
    names = ("open_case", "act", "delete_case", "run_tests")
    tools = [{"name": name, "description": "x" * 25_000, "inputSchema": {}} for name in names]
    with Relayed(tmp_path, artifact, env={"TOOLS": json.dumps(tools)}) as relay:
        relay.greet()
        relay.ask("tools/list")
        assert relay.process.stdin is not None
        os.set_blocking(relay.process.stdin.fileno(), False)
        ask = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'
        until = time.monotonic() + 1
        while time.monotonic() < until:
            try:
                relay.send(ask)
            except BlockingIOError:
                time.sleep(0.05)
        status = Path(f"/proc/{relay.process.pid}/status").read_text("ascii")
        peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        assert int(peak.split()[1]) < 150_000
        relay.process.kill()


def test_a_token_that_is_no_id_is_none(tmp_path: Path, artifact: Path) -> None:
    with Relayed(tmp_path, artifact) as relay:
        opened(relay)
        tokens: list[Any] = ["x" * 1025, 1 << 63, True, 1.5, {}]
        for token in tokens:
            arguments = {"kind": "safe", "how": "noise", "id": "c-1"}
            call = {"name": "act", "arguments": arguments, "_meta": {"progressToken": token}}
            assert "isError" not in relay.ask("tools/call", call)["result"]
    assert relay.aside == []


def test_an_id_that_is_none_names_no_call(tmp_path: Path, artifact: Path) -> None:
    with Relayed(tmp_path, artifact) as relay:
        relay.greet()
        identities: list[Any] = [1 << 63, -(1 << 63), "x" * 1025, 1.5, [], True]
        for identity in identities:
            relay.want(identity, "open_case", id="c-2")
            answer = relay.hear()
            assert answer is not None
            assert (answer["id"], answer["error"]["code"]) == (None, -32600)
            relay.cancel(identity)
            assert relay.ask("ping")["result"] == {}
    assert relay.executed == []


def test_a_client_of_a_version_to_come_may_go_back_to_the_handshake(
    tmp_path: Path, artifact: Path
) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2027-01-01",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    with Relayed(tmp_path, artifact) as relay:
        assert relay.ask("server/discover", {"_meta": meta})["error"]["code"] == -32022
        opened(relay)
    assert relay.outcomes() == ["done"]


@pytest.mark.parametrize("how", ["quote", "quote_list", "is_error", "hang"])
@pytest.mark.sampled(2)
def test_what_a_server_says_in_an_error_is_its_clients_alone(
    tmp_path: Path, artifact: Path, how: str
) -> None:
    with Relayed(tmp_path, artifact, "--deadline", "1") as relay:
        opened(relay)
        answer = relay.call("act", kind="safe", how=how, id="c-4711")
        if how == "quote":
            assert "c-4711" in answer["error"]["message"]
            assert "c-4711" in answer["error"]["data"]["because"]
        assert "4711" not in json.dumps(relay.call("open_case", id="c-2"))
        relay.end()
    assert "4711" not in relay.said
    assert relay.process.returncode == 0


def test_a_call_that_failed_is_no_warning(tmp_path: Path, artifact: Path) -> None:
    with Relayed(tmp_path, artifact) as relay:
        opened(relay)
        assert relay.call("delete_case", id="c-1", how="is_error")["isError"] is True
        relay.end()
    assert (relay.said, relay.outcomes()) == ("", ["done", "failed"])


@pytest.mark.parametrize("ends", [False, True])
def test_the_client_is_read_with_the_turn_in_hand(ends: bool) -> None:
    """The cancellation, or the end, comes at the latest moment: while the turn is taken."""
    reads, says = os.pipe()
    hears, writes = os.pipe()
    artifact = tcc.compile_text(GRAMMAR)

    class Late(Gate):
        turns = 0

        def try_turn(self) -> Ticket | None:
            turn = super().try_turn()
            self.turns += 1
            if ends:
                os.close(says)
            else:
                told = {"method": "notifications/cancelled", "params": {"requestId": 2}}
                os.write(says, json.dumps({"jsonrpc": "2.0", **told}).encode() + b"\n")
            return turn

    gate = Late(artifact)

    async def whole() -> None:
        link = PipeLink(reads, writes, 1000)
        client = Client(link, info={})
        relay = Relay(seconds=1, note=lambda text: None)
        behind = await Program(command=["sleep", "60"]).open(Stop(), lambda _: None)

        async def start() -> tuple[Decisions, Any]:
            return Decisions(gate, lambda text: None), None

        async def listen() -> None:
            with suppress(EOFError):
                while True:
                    taken = client.take(await link.receive())
                    if isinstance(taken, Cancelled):
                        relay.cancel(taken.identity)
                    elif isinstance(taken, ClientCall):
                        relay.take(taken)
            relay.leave()

        server = Server(behind, seconds=1, version="0")
        running = asyncio.ensure_future(relay.run(server, start))
        listening = asyncio.ensure_future(listen())
        try:
            while relay.is_busy or not gate.turns:
                await asyncio.sleep(0.01)
        finally:
            for task in (running, listening):
                task.cancel()
            await asyncio.wait((running, listening))
            await behind.close()
            await link.close()

    for identity, method, params in (
        (1, "initialize", {"protocolVersion": "2025-11-25"}),
        (2, "tools/call", {"name": "open_case", "arguments": {"id": "c-1"}}),
    ):
        message = {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}
        os.write(says, json.dumps(message).encode() + b"\n")
    asyncio.run(asyncio.wait_for(whole(), 20))
    assert gate.turns == 1 and gate.history == ()
    os.close(hears)
