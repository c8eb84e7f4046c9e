"""One call at a time, in the order of asking: threads, tasks and processes on one session."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
import time
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import tcc
from tests.forking import launcher
from tests.gate.conftest import validated
from tests.gate.grammars import LONG, ORDERED, artifact, do, gate
from tests.gate.test_ledger import command


class Alone:
    """Counts how many are inside at the same time."""

    def __init__(self) -> None:
        self.now = self.most = 0

    def __enter__(self) -> None:
        self.now += 1
        self.most = max(self.most, self.now)

    def __exit__(self, *_: object) -> None:
        self.now -= 1


def test_threads_take_turns(tmp_path: Path) -> None:
    path = tmp_path / "s.ledger"
    session, alone = gate(LONG, ledger=path, durable=False), Alone()
    start = threading.Barrier(8)

    def work() -> None:
        start.wait()
        for _ in range(20):
            with session.call("b") as permit, alone:
                time.sleep(0.0002)
                permit.done()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert alone.most == 1
    assert [one.outcome for one in session.history] == ["done"] * 160
    session.finish()
    assert validated(path).claim_type == "Conformant"


def test_a_limit_holds_however_many_ask_at_once() -> None:
    """Three refunds at once are no three refunds."""
    session = gate("""grammar g version "1"

tool refund
tool x

plan = (refund | x){0,9}

limit count(refund) <= 1
""")  # fmt: skip
    made: list[int] = []
    refused: list[str] = []
    start = threading.Barrier(6)

    def work() -> None:
        start.wait()
        try:
            with session.call("refund") as permit:
                made.append(permit.seq)
                time.sleep(0.01)
                permit.done()
        except tcc.Refused as refusal:
            refused.append(refusal.code)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert made == [1] and refused == ["R202"] * 5


def test_threads_have_their_turns_in_the_order_of_asking() -> None:
    session, order = gate(LONG), list[int]()

    def work(number: int) -> None:
        with session.call("b") as permit:
            order.append(number)
            permit.done()

    threads = []
    with session.call("b") as permit:
        for number in range(6):
            thread = threading.Thread(target=work, args=(number,))
            threads.append(thread)
            thread.start()
            wait_for(lambda: len(session._access.turns._queue) == len(threads))
        permit.done()
    for thread in threads:
        thread.join(60)
    assert order == list(range(6))


def wait_for(holds: Any) -> None:
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_tasks_take_turns_in_the_order_of_asking() -> None:
    session, alone, order = gate(LONG), Alone(), list[int]()

    async def work(number: int) -> None:
        for _ in range(4):
            async with session.call("b") as permit:
                with alone:
                    order.append(number)
                    await asyncio.sleep(0.0005)
                    permit.done()

    async def main() -> None:
        async with asyncio.timeout(60):
            await asyncio.gather(*(work(number) for number in range(5)))

    asyncio.run(main())
    assert alone.most == 1 and order == list(range(5)) * 4


def test_threads_and_tasks_share_one_queue(tmp_path: Path) -> None:
    path = tmp_path / "s.ledger"
    session, alone = gate(LONG, ledger=path), Alone()

    async def task() -> None:
        for _ in range(5):
            async with session.call("b") as permit:
                with alone:
                    await asyncio.sleep(0.0005)
                    permit.done()

    def thread() -> None:
        for _ in range(5):
            with session.call("b") as permit, alone:
                permit.done()

    async def main() -> None:
        async with asyncio.timeout(60):
            await asyncio.gather(*(task() for _ in range(4)), asyncio.to_thread(thread))

    other = threading.Thread(target=thread)
    other.start()
    asyncio.run(main())
    other.join(60)
    assert alone.most == 1 and len(session.history) == 30


def test_a_call_inside_a_call_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.ledger"
    session = gate(LONG, ledger=path)
    with session.call("b") as permit:
        for attempt in (lambda: do(session, "b"), session.finish):
            with pytest.raises(tcc.Refused, match="R305"):
                attempt()
        assert session.check("b").allowed
        other = tcc.Gate(artifact(ORDERED))
        do(other, "a")  # another session's turn is another turn
        permit.done()
    do(session, "b")
    assert "R305" in path.read_text()


def test_a_second_gate_on_the_ledger_does_not_wait_for_its_own_thread(tmp_path: Path) -> None:
    path = tmp_path / "s.ledger"
    one, two = gate(LONG, ledger=path), gate(LONG, ledger=path)
    with one.call("b") as permit:
        with pytest.raises(tcc.Refused, match="R305"):
            do(two, "b")
        with pytest.raises(tcc.Refused, match="R305"):
            gate(LONG, ledger=path)
        permit.done()
    do(two, "b")
    assert len(one.history) == len(two.history) == 2
    time.sleep(0.15)  # what each has read and written is on the disk by then
    assert one.head == two.head


def test_tasks_that_would_wait_for_themselves_are_told() -> None:
    session = gate(LONG)

    async def inner() -> None:
        async with session.call("b"):
            pytest.fail("the outer call waits for this one")

    async def main() -> list[str]:
        codes = []
        async with session.call("b") as permit:
            for attempt in (inner, lambda: asyncio.create_task(inner())):
                with pytest.raises(tcc.Refused) as refused:
                    await attempt()
                codes.append(refused.value.code)
            with pytest.raises(tcc.Refused) as refused:
                await asyncio.to_thread(do, session, "b")
            codes.append(refused.value.code)
            permit.done()
        return codes

    assert asyncio.run(asyncio.wait_for(main(), 60)) == ["R305"] * 3


def test_a_thread_does_not_wait_for_the_tasks_that_it_runs() -> None:
    session = gate(LONG)
    inside, told = asyncio.Event(), list[str]()

    async def holder() -> None:
        async with session.call("b") as permit:
            inside.set()
            await asyncio.sleep(0.05)
            permit.done()

    async def other() -> None:
        await inside.wait()
        try:
            do(session, "b")  # would stop the loop, and with it the holder
        except tcc.Refused as refusal:
            told.append(refusal.code)

    async def main() -> None:
        async with asyncio.timeout(60):
            await asyncio.gather(holder(), other())

    asyncio.run(main())
    assert told == ["R305"] and [one.outcome for one in session.history] == ["done"]


def test_a_task_that_was_started_inside_may_call_afterwards() -> None:
    session = gate(LONG)

    async def later(over: asyncio.Event) -> None:
        await over.wait()
        async with session.call("b") as permit:
            permit.done()

    async def main() -> None:
        over = asyncio.Event()
        async with session.call("b") as permit:
            task = asyncio.create_task(later(over))
            permit.done()
        over.set()
        await task

    asyncio.run(asyncio.wait_for(main(), 60))
    assert len(session.history) == 2


def test_a_cancelled_wait_gives_its_place_up() -> None:
    session = gate(LONG)

    async def call(hold: float) -> None:
        async with session.call("b") as permit:
            await asyncio.sleep(hold)
            permit.done()

    async def main() -> None:
        first = asyncio.create_task(call(0.05))
        await asyncio.sleep(0.005)
        second, third = asyncio.create_task(call(0)), asyncio.create_task(call(0))
        await asyncio.sleep(0.005)
        second.cancel()
        await asyncio.gather(first, second, third, return_exceptions=True)

    asyncio.run(asyncio.wait_for(main(), 60))
    assert [one.outcome for one in session.history] == ["done", "done"]


def test_a_cancelled_call_is_unknown(tmp_path: Path) -> None:
    path = tmp_path / "s.ledger"
    session = gate(LONG, ledger=path)

    async def main() -> None:
        async def call() -> None:
            async with session.call("b"):
                await asyncio.sleep(60)

        task = asyncio.create_task(call())
        while not session.history:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(main(), 60))
    assert [one.outcome for one in session.history] == ["unknown"]
    do(session, "b")


def test_a_loop_that_ended_leaves_the_queue_to_others() -> None:
    session = gate(LONG)
    release, held = threading.Event(), threading.Event()

    def holder() -> None:
        with session.call("b") as permit:
            held.set()
            release.wait(60)
            permit.done()

    thread = threading.Thread(target=holder)
    thread.start()
    held.wait(60)

    async def main() -> None:
        async with session.call("b"):
            pytest.fail("the turn comes after the loop has ended")

    loop = asyncio.new_event_loop()
    task = loop.create_task(main())
    loop.run_until_complete(asyncio.sleep(0.01))
    loop.close()
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    release.set()
    thread.join(60)
    do(session, "b")
    assert len(session.history) == 2


def test_processes_take_turns_on_one_ledger(tmp_path: Path) -> None:
    path, file = tmp_path / "s.ledger", tmp_path / "a.tcca"
    tcc.save(artifact(LONG), file)
    session = tcc.Gate(artifact(LONG), ledger=path, durable=False)
    workers = [
        subprocess.Popen(
            launcher("tcc", "-m", "tests.gate.worker", "calls", str(file), str(path), "15"),
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for _ in range(15):
        do(session, "b")
    numbers = [
        int(line) for worker in workers for line in worker.communicate(timeout=120)[0].split()
    ]
    assert [worker.returncode for worker in workers] == [0, 0, 0]
    assert len(session.history) == 60 and len(set(numbers)) == 45
    session.finish()
    found = validated(path)
    assert found.claim_type == "Conformant" and found.checked["calls"] == 60


def test_a_call_of_a_killed_process_is_unknown(tmp_path: Path) -> None:
    path, file = tmp_path / "s.ledger", tmp_path / "a.tcca"
    tcc.save(artifact(LONG), file)
    session = tcc.Gate(artifact(LONG), ledger=path)
    worker = subprocess.Popen(command("hold", file, path), stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None and worker.stdout.readline() == "held\n"
    assert [one.outcome for one in session.history] == ["open"]
    assert session.check("b").allowed  # whatever comes of the call that is under way

    async def waits() -> None:
        async with session.call("b"):
            pytest.fail("the other process has the lock")

    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(waits(), 0.2))
    worker.kill()
    worker.communicate(timeout=60)
    do(session, "b")
    assert [one.outcome for one in session.history] == ["unknown", "done"]
    assert validated(path).claim_type == "ConformantPrefix"


FORKED = """
import os, sys
import tcc
artifact, ledger, mode = sys.argv[1:]
session = tcc.Gate(artifact, ledger=None if mode == "memory" else ledger)
with session.call("b") as permit:
    permit.done()
child = os.fork()
try:
    with session.call("b") as permit:
        permit.done()
    answer = len(session.history)
except tcc.Refused as refusal:
    answer = int(refusal.code[1:])
if not child:
    os._exit(answer % 256)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), answer)
"""


@pytest.mark.parametrize("mode", ["file", "memory"])
def test_a_fork_waits_for_its_parent_or_is_refused(mode: str, tmp_path: Path) -> None:
    path, file = tmp_path / "s.ledger", tmp_path / "a.tcca"
    tcc.save(artifact(LONG), file)
    ran = subprocess.run(
        [sys.executable, "-c", FORKED, str(file), str(path), mode],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    child, parent = map(int, ran.stdout.split())
    if mode == "memory":
        assert (child, parent) == (306 % 256, 2)
    else:
        assert sorted((child, parent)) in ([2, 3], [3, 3])
        assert validated(path).checked["calls"] == 3


LEFT = """
import ctypes, os, sys
import tcc
session = tcc.Gate(sys.argv[1], ledger=sys.argv[2])
with session.call("b") as permit:
    child = os.fork() if sys.argv[3] == "told" else ctypes.CDLL(None).fork()
    if not child:
        permit.done()
    else:
        os.waitpid(child, 0)
        permit.failed()
if not child:
    assert permit.outcome == "unknown" and session.check("b").code == "R306"
    os._exit(0)
print([one.outcome for one in session.history])
"""


@pytest.mark.parametrize("python", ["told", "not told"])
def test_a_fork_inside_a_block_writes_nothing(python: str, tmp_path: Path) -> None:
    path, file = tmp_path / "s.ledger", tmp_path / "a.tcca"
    tcc.save(artifact(LONG), file)
    ran = subprocess.run(
        [sys.executable, "-c", LEFT, str(file), str(path), python],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert ran.stdout == "['failed']\n"
    assert validated(path).checked["outcomes"] == 1


def test_a_refused_call_keeps_no_gate_alive(tmp_path: Path) -> None:
    """Its lock and its turn go with the last one who has it, and not when garbage is collected."""
    session = gate(ORDERED, ledger=tmp_path / "s.ledger", durable=False)
    kept = weakref.ref(session._access)
    gc.disable()
    try:
        with suppress(tcc.Refused), session.call("c"):
            raise AssertionError
        with suppress(ValueError), session.call("a"):
            raise ValueError
        del session
        assert kept() is None
    finally:
        gc.enable()
