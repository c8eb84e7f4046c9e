"""Seeded schedules of a whole gate between links in memory, in virtual time.

A client sends calls, cancellations and garbage at random, and leaves or goes on; a server answers
late, twice, wrongly, for others or never, and crashes; the session is another process's now and
then.  Whatever they do: nothing is executed that the gate did not record, that was cancelled
before, or beside a call that stands alone; every request has one answer or was cancelled; each
outcome is what the server said; and everything ends.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import selectors
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tcc
from tcc_runtime.errors import ServerError
from tcc_runtime.gate.gate import Gate
from tcc_runtime.gate.permit import Ticket
from tcc_runtime.mcp import guarding, wire
from tcc_runtime.mcp.guarding import Guarded, Guarding
from tcc_runtime.mcp.links import Inbox, Link, Stop

SECONDS = 5.0  # limit on a call
GRAMMAR = """grammar desk version "1"

tool open_case(id: text max 9, ref: integer 0 .. 999)
tool pay(id: text max 9, ref: integer 0 .. 999, amount: integer 0 .. 9)
tool look(id: text max 9, ref: integer 0 .. 999) { parallel }
tool drop(id: text max 9, ref: integer 0 .. 999) { errors mean failed }

limit depth <= 60
limit count(pay) <= 3
before pay require open_case(same id)
before drop require no pay(same id)
"""
TOOLS = [
    {"name": name, "inputSchema": {"type": "object"}}
    for name in ("drop", "look", "open_case", "pay")
]
ARTIFACT = tcc.compile_text(GRAMMAR)


class Virtual(asyncio.SelectorEventLoop):
    """A loop whose time passes when nothing else is to be done."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(_Never(self))

    def time(self) -> float:
        return self.now


class _Never(selectors.SelectSelector):
    def __init__(self, loop: Virtual) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        assert timeout is not None, "everything waits, and nothing comes"
        self._loop.now += max(0.0, timeout)
        return []


class Memory(Link):
    """A link in memory: what is sent to it is taken by `takes` a moment later."""

    hears = True

    def __init__(self, takes: Callable[[wire.Message], None]) -> None:
        self._takes = takes
        self.inbox = Inbox()
        self._gone = asyncio.Event()

    def send(self, message: wire.Message) -> None:
        # What is written is what the peer reads.
        self._takes(wire.read_line(wire.write(message)))

    async def receive(self) -> wire.Message:
        try:
            return await self.inbox.get()
        except EOFError:
            self.is_ended = True
            self._gone.set()
            raise

    def is_quiet(self) -> bool:
        return not len(self.inbox)

    async def gone(self) -> None:
        await self._gone.wait()

    async def close(self) -> None:
        self.inbox.end()


class Locked(Gate):
    """A session that another process has now and then."""

    chance: random.Random
    until = 0.0
    meddle: Callable[[], None]

    def try_turn(self) -> Ticket | None:
        now = asyncio.get_running_loop().time()
        if now < self.until:
            return None
        if self.chance.random() < 0.05:
            self.until = now + self.chance.choice((0.01, 0.3, 6.0))
            return None
        turn = super().try_turn()
        self.meddle()  # at the latest moment
        return turn


class Schedule:
    """One schedule, and what was seen of it."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.loop = asyncio.get_running_loop()
        self.asked: dict[Any, str] = {}  # requests of the client, by id
        self.cancelled: set[Any] = set()
        self.never: set[Any] = set()  # requests that were cancelled before the server had them
        self.answers: dict[Any, list[wire.Response]] = {}
        self.executed: list[tuple[Any, str, str, Any]] = []  # id at the server, tool, `id`, `ref`
        self.plain: set[Any] = set()  # ids at the server of calls that had a plain result
        self.notes: list[str] = []
        self.crashed = False
        self.number = 0
        self.gate = Locked(ARTIFACT)
        self.gate.chance, self.gate.meddle = self.chance, self.meddle
        self.client, self.server = Memory(self.hear), Memory(self.serve)

    def later(self, seconds: float, work: Callable[..., None], *given: Any) -> None:
        self.loop.call_later(self.chance.random() * seconds, work, *given)

    # The client.

    def hear(self, message: wire.Message) -> None:
        if isinstance(message, wire.Response) and message.identity is not None:
            self.answers.setdefault(message.identity, []).append(message)

    def ask(self, method: str, params: dict[str, Any]) -> None:
        self.number += 1
        self.asked[self.number] = method
        self.client.inbox.put(wire.Request(identity=self.number, method=method, params=params))

    def call(self) -> None:
        tool = self.chance.choice(("open_case", "pay", "pay", "look", "look", "drop", "never"))
        arguments: dict[str, Any] = {"id": self.chance.choice("ab"), "ref": self.number + 1}
        if tool == "pay":
            arguments["amount"] = self.chance.randrange(11)
        self.ask("tools/call", {"name": tool, "arguments": arguments})

    def cancel(self) -> None:
        waits = [one for one in self.asked if one not in self.answers and one not in self.cancelled]
        if waits:
            identity = self.chance.choice(waits)
            told = {"requestId": identity}
            self.client.inbox.put(
                wire.Request(identity=None, method="notifications/cancelled", params=told)
            )
            self.cancelled.add(identity)
            if identity not in [ref for _, _, _, ref in self.executed]:
                self.never.add(identity)

    def meddle(self) -> None:
        if self.chance.random() < 0.1:
            self.cancel()

    def act(self) -> None:
        match self.chance.randrange(12):
            case 0 | 1 | 2 | 3 | 4 | 5:
                self.call()
            case 6 | 7:
                self.cancel()
            case 8:
                self.ask("ping", {})
            case 9:
                self.client.inbox.put(wire.MalformedMessage(wire.PARSE_ERROR, "no JSON"))
            case 10:
                self.ask("tools/list", {})
            case _:
                for _ in range(self.chance.randrange(6)):
                    self.call()

    # The server.

    def serve(self, message: wire.Message) -> None:
        if not isinstance(message, wire.Request) or message.identity is None:
            return
        identity, params = message.identity, message.params
        if message.method == "initialize":
            told = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}
            self.reply(0.2, identity, told)
        elif message.method == "tools/list":
            self.reply(1.0, identity, {"tools": TOOLS})
        else:
            self.execute(identity, params["name"], params["arguments"])

    def reply(self, seconds: float, identity: Any, result: dict[str, Any]) -> None:
        if "content" in result and "isError" not in result:
            self.plain.add(identity)
        line = wire.write(wire.Response(identity=identity, result=result))
        self.later(seconds, self.server.inbox.put, wire.read_line(line))

    def execute(self, identity: Any, tool: str, arguments: Any) -> None:
        assert len(self.gate.history) == len(self.executed) + 1, "executed, and not recorded"
        assert arguments["ref"] not in self.never, "executed, though it was cancelled before"
        self.executed.append((identity, tool, arguments["id"], arguments["ref"]))
        under_way = [one for one in self.gate.history if self.is_open(one)]
        if len(under_way) > 1:
            assert {one.call for one in under_way} == {"look"}, "two calls that stand alone"
        how = self.chance.randrange(20)
        fine: dict[str, Any] = {"content": [{"type": "text", "text": "ok"}]}
        if how < 10:
            self.reply(0.3, identity, fine)
        elif how < 12:
            self.reply(12.0, identity, fine)  # perhaps too late
        elif how == 12:
            self.reply(0.3, identity, {**fine, "isError": True})
        elif how == 13:
            for seconds in (0.2, 2.0):
                self.reply(seconds, identity, fine)
        elif how == 14:
            self.later(0.5, self.server.inbox.put, wire.error(identity, -32050, "no luck"))
        elif how == 15:
            self.reply(0.3, self.chance.randrange(90), fine)  # perhaps another call's
            self.reply(0.6, identity, fine)
        elif how == 16:
            broken = wire.MalformedMessage(wire.PARSE_ERROR, "no JSON")
            self.later(0.3, self.server.inbox.put, broken)
        elif how == 17:
            changed = "notifications/tools/list_changed"
            self.server.inbox.put(wire.Request(identity=None, method=changed, params={}))
            self.reply(0.3, identity, fine)
        elif how == 18 and self.chance.random() < 0.3:
            self.crashed = True
            self.later(0.3, self.server.inbox.end)

    def is_open(self, call: Any) -> bool:
        return call.outcome not in ("done", "failed", "unknown")

    async def open_server(self, stop: Stop, note: Callable[[str], None]) -> Any:
        return self.server

    # All of it.

    async def run(self) -> None:
        stop, began = Stop(), self.loop.time()
        how = Guarded(
            target=_Target(self), locked=None, seconds=SECONDS, finishes=False, masks=False,
            protocol="handshake", version="0",
        )  # fmt: skip
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}})
        at = 0.0
        for _ in range(self.chance.randrange(1, 30)):
            at += self.chance.choice((0.0, 0.001, 0.1, 1.0))
            self.loop.call_later(at, self.act)
        ends = at + self.chance.choice((0.001, 0.5, 40.0))
        stopped = self.chance.random() < 0.3
        self.loop.call_later(ends, stop.ask if stopped else self.client.inbox.end)
        work = Guarding(self.client, stop, lambda: self.gate, how, self.notes.append)
        trouble = None
        try:
            trouble = await work.run()
        except ServerError:
            assert self.crashed
        took = self.loop.time() - began - ends
        assert took < (1.5 if stopped else 20 * SECONDS), took
        assert trouble in (None, guarding.STOPPED, "the server ended"), trouble
        self.judge(stopped or self.crashed)

    def judge(self, is_cut: bool) -> None:
        for identity, method in self.asked.items():
            answers = self.answers.get(identity, [])
            assert len(answers) <= 1, (identity, method, answers)
            assert answers or identity in self.cancelled or is_cut, (identity, method)
        history = self.gate.history
        assert len(self.executed) == len(history)
        assert all(not self.is_open(one) for one in history), history
        assert [one[1] for one in self.executed].count("pay") <= 3, "more calls than the limit"
        opened = set()
        for (identity, tool, case, _), record in zip(self.executed, history, strict=True):
            assert record.outcome != "done" or identity in self.plain, "done, and nobody said so"
            if tool == "pay":
                assert case in opened, "a call that the grammar forbids"
            if tool == "open_case":
                opened.add(case)


class _Target:
    def __init__(self, schedule: Schedule) -> None:
        self.open = schedule.open_server


def run(seeds: Iterator[int]) -> int:
    """Run schedules; how many calls were executed."""
    loop, executed = Virtual(), 0

    async def one(seed: int) -> int:
        schedule = Schedule(seed)
        try:
            await schedule.run()
        except BaseException as error:
            error.add_note(f"schedule {seed}")
            raise
        left = asyncio.all_tasks(loop) - {asyncio.current_task(loop)}
        assert not left, left
        return len(schedule.executed)

    try:
        for seed in seeds:
            executed += loop.run_until_complete(one(seed))
    finally:
        loop.close()
    return executed


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No threads: time is virtual."""

    async def aside(work: Callable[[], Any], drop: Callable[[Any], None]) -> Any:
        return work()

    monkeypatch.setattr(guarding, "aside", aside)
    monkeypatch.setattr(logging.getLogger("tcc.gate"), "disabled", True)


def test_schedules_in_virtual_time() -> None:
    assert run(iter(range(150))) > 300


@pytest.mark.campaign
def test_many_schedules_in_virtual_time() -> None:
    first = int(os.environ.get("TCC_SCHEDULES_FIRST", "1000"))
    count = int(os.environ.get("TCC_SCHEDULES", "100000"))
    print(f"{count} schedules, {run(iter(range(first, first + count)))} calls executed")
