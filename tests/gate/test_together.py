"""Calls of a gate that are under way together: threads, tasks, processes, waiting, crashes."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tcc
from tcc_certs.session.machine import Offer, Positions, SessionMachine
from tcc_runtime.gate.permit import MAX_WAITING, NotYet, Ticket
from tests.campaigns.blocks import blocks
from tests.gate import grammars
from tests.gate.conftest import validated

TEXT = """grammar desk version "1"

tool read(p: text) { parallel }
tool seek(p: text) gives (r: yes | no) { errors mean failed parallel }
tool approve(p: text)
tool refund(p: text)

plan = (read | seek | approve | refund){0,12}

before refund require approve(same p)
before approve require no seek(r = "no")
"""


@pytest.fixture(scope="module")
def artifact() -> tcc.Artifact:
    return grammars.artifact(TEXT)


def verdict(ledger: Path, _: tcc.Artifact) -> tuple[str, str]:
    found = validated(ledger)
    assert not [one for one in found.findings if one.code.value != "D301"], found.findings
    return found.word, found.claim_type


def kinds(ledger: Path) -> list[tuple[str, int]]:
    records = [json.loads(line) for line in ledger.read_bytes().splitlines()]
    return [(one["kind"], one.get("seq", 0)) for one in records]


def in_threads(makes: list[Callable[[], None]]) -> None:
    failed: list[BaseException] = []

    def run(make: Callable[[], None]) -> None:
        try:
            make()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(make,)) for make in makes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    if failed:
        raise failed[0]


def test_reads_of_threads_overlap(tmp_path: Path, artifact: tcc.Artifact) -> None:
    """Each waits in its block until all are there: one at a time they would never be."""
    all_there = threading.Barrier(8, timeout=10)
    with tcc.Gate(artifact, ledger=tmp_path / "s.ledger") as gate:

        def read(number: int) -> None:
            with gate.call("read", {"p": str(number)}) as permit:
                all_there.wait()
                permit.done()

        in_threads([lambda number=number: read(number) for number in range(8)])  # type: ignore[misc]
        gate.finish()
    assert verdict(tmp_path / "s.ledger", artifact) == ("VALID", "Conformant")
    assert [kind for kind, _ in kinds(tmp_path / "s.ledger")][1:9] == ["call"] * 8


def test_reads_of_tasks_overlap(tmp_path: Path, artifact: tcc.Artifact) -> None:
    async def main() -> None:
        there, every = 0, asyncio.Event()

        async def read(number: int) -> None:
            nonlocal there
            async with gate.call("read", {"p": str(number)}) as permit:
                there += 1
                if there == 8:
                    every.set()
                await asyncio.wait_for(every.wait(), 10)
                permit.done()

        await asyncio.gather(*[read(number) for number in range(8)])

    with tcc.Gate(artifact, ledger=tmp_path / "s.ledger") as gate:
        asyncio.run(main())
        gate.finish()
    assert verdict(tmp_path / "s.ledger", artifact) == ("VALID", "Conformant")


def test_what_others_under_way_may_decide_waits_for_them(
    tmp_path: Path, artifact: tcc.Artifact
) -> None:
    """approve is refused if the search says no; it is decided when that is known."""
    for answer, due in (("yes", None), ("no", "R202")):
        path = tmp_path / f"{answer}.ledger"
        with tcc.Gate(artifact, ledger=path) as gate:
            began = threading.Event()

            def seek() -> None:
                with gate.call("seek", {"p": "x"}) as permit:
                    began.set()  # noqa: B023
                    time.sleep(0.05)
                    assert gate.check("approve", {"p": "x"}).code == "R202"
                    permit.done({"r": answer})  # noqa: B023

            def approve() -> None:
                assert began.wait(10)  # noqa: B023
                with gate.call("approve", {"p": "x"}) as permit:
                    permit.done()

            if due is None:
                in_threads([seek, approve])
            else:
                with pytest.raises(tcc.Refused) as refused:
                    in_threads([seek, approve])
                assert refused.value.decision.code == due
                assert [one["text"] for one in refused.value.decision.because] == [
                    "before approve require no seek(r = no)"
                ]
            gate.finish()
        assert verdict(path, artifact)[1] == "Conformant"


def test_what_no_outcome_can_allow_is_refused_at_once(artifact: tcc.Artifact) -> None:
    with tcc.Gate(artifact) as gate, gate.call("read", {"p": "x"}, turn=gate.try_turn()):
        with pytest.raises(tcc.Refused) as refused:
            gate.call("refund", {"p": 5}, turn=gate.try_turn()).__enter__()
        assert refused.value.decision.code == "R105"


def test_what_a_monitor_refuses_waits_for_calls_that_it_names_alone() -> None:
    text = TEXT + "limit count(read) per p <= 1 in session\n"
    with tcc.Gate(grammars.artifact(text)) as gate:
        with gate.call("read", {"p": "x"}, turn=gate.try_turn()) as read:
            with pytest.raises(NotYet):  # it is allowed if that one fails
                gate.call("read", {"p": "x"}, turn=gate.try_turn()).__enter__()
            read.done()
        with gate.call("seek", {"p": "x"}, turn=gate.try_turn()) as seek:
            with pytest.raises(tcc.Refused) as refused:
                gate.call("read", {"p": "x"}, turn=gate.try_turn()).__enter__()
            assert refused.value.decision.code == "R202"
            seek.done({"r": "yes"})
        with gate.call("approve", {"p": "x"}) as permit:
            permit.done()
        with gate.call("refund", {"p": "x"}) as permit:
            permit.done()


def test_a_turn_in_hand_is_told_to_come_again(artifact: tcc.Artifact) -> None:
    with tcc.Gate(artifact) as gate:
        with gate.call("read", {"p": "x"}, turn=gate.try_turn()) as permit:
            with pytest.raises(NotYet):
                gate.call("approve", {"p": "x"}, turn=gate.try_turn()).__enter__()
            with pytest.raises(NotYet):
                gate.finish(turn=gate.try_turn())
            with gate.call("read", {"p": "y"}, turn=gate.try_turn()) as other:
                other.done()
            permit.done()
            with gate.call("approve", {"p": "x"}, turn=gate.try_turn()) as alone:
                assert gate.try_turn() is None  # it is alone under way
                alone.done()
        assert [one.outcome for one in gate.history] == ["done"] * 3


def test_an_outcome_that_cannot_be_said_gives_its_turn_back(artifact: tcc.Artifact) -> None:
    with tcc.Gate(artifact) as gate:
        with gate.call("seek", {"p": "x"}, turn=gate.try_turn()) as lost:
            lost.unknown()
        with gate.call("read", {"p": "x"}, turn=gate.try_turn()) as permit:
            with pytest.raises(ValueError, match="observed"):
                gate.resolve(1, "done", {"r": "maybe"}, turn=gate.try_turn())
            gate.resolve(1, "done", {"r": "no"}, turn=gate.try_turn())
            permit.done()
        assert gate.try_turn() is not None


def test_a_call_inside_a_parallel_call_is_refused(artifact: tcc.Artifact) -> None:
    async def main() -> None:
        async with gate.call("read", {"p": "x"}) as permit:
            with pytest.raises(tcc.Refused) as refused:
                async with gate.call("read", {"p": "y"}):
                    pass
            assert refused.value.decision.code == "R305"
            permit.done()

    with tcc.Gate(artifact) as gate:
        with gate.call("read", {"p": "x"}) as permit:
            with pytest.raises(tcc.Refused) as refused:
                gate.call("read", {"p": "y"}).__enter__()
            assert refused.value.decision.code == "R305"
            permit.done()
        asyncio.run(main())


def test_so_many_calls_wait_and_no_more(artifact: tcc.Artifact) -> None:
    with tcc.Gate(artifact) as gate:
        turns = gate._access.turns

        async def main() -> None:
            async with gate.call("approve", {"p": "x"}) as permit:
                for _ in range(MAX_WAITING):
                    turns._queue.append(Ticket(asyncio.get_running_loop()))
                with pytest.raises(tcc.Refused) as refused:
                    await asyncio.create_task(enter())
                assert refused.value.decision.code == "R308"
                turns._queue.clear()
                permit.done()

        async def enter() -> None:
            from tcc_runtime.gate.permit import _inside

            _inside.set(())
            async with gate.call("approve", {"p": "y"}):
                pass

        asyncio.run(main())


def test_calls_of_a_crashed_process_are_unknown_in_their_order(
    tmp_path: Path, artifact: tcc.Artifact
) -> None:
    path = tmp_path / "s.ledger"
    with tcc.Gate(artifact, ledger=path):
        pass
    child = os.fork()
    if child == 0:
        gate = tcc.Gate(artifact, ledger=path)
        for number in range(3):
            gate.call("read", {"p": str(number)}, turn=gate.try_turn()).__enter__()
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    with tcc.Gate(artifact, ledger=path) as gate:
        assert kinds(path)[4:] == [("outcome", 1), ("outcome", 2), ("outcome", 3)]
        assert [one.outcome for one in gate.history] == ["unknown"] * 3
        gate.resolve(2, "failed")
        gate.finish()
    assert verdict(path, artifact) == ("VALID", "Conformant")


def test_two_gates_of_a_process_share_the_queue(tmp_path: Path, artifact: tcc.Artifact) -> None:
    path = tmp_path / "s.ledger"
    with tcc.Gate(artifact, ledger=path) as one, tcc.Gate(artifact, ledger=path) as other:

        def make(gate: tcc.Gate, number: int) -> None:
            with gate.call("read", {"p": str(number)}) as permit:
                time.sleep(0.002)
                permit.done()

        in_threads(
            [lambda gate=gate, n=n: make(gate, n) for n in range(6) for gate in (one, other)]  # type: ignore[misc]
        )
        assert len(one.history) == len(other.history) == 12
        one.finish()
    assert verdict(path, artifact) == ("VALID", "Conformant")


def test_cancelled_waits_leave_nothing_behind(artifact: tcc.Artifact) -> None:
    async def main() -> None:
        async def read(seconds: float) -> None:
            async with gate.call("read", {"p": "x"}) as permit:
                await asyncio.sleep(seconds)
                permit.done()

        async def approve() -> None:
            async with gate.call("approve", {"p": "x"}) as permit:
                permit.done()

        reading = asyncio.create_task(read(0.05))
        await asyncio.sleep(0.01)
        waiting = [asyncio.create_task(approve()) for _ in range(3)]
        await asyncio.sleep(0.01)
        waiting[0].cancel()  # it has the turn, and waits for an outcome
        waiting[1].cancel()  # it waits for the turn
        await reading
        await waiting[2]
        await asyncio.wait_for(approve(), 5)

    with tcc.Gate(artifact) as gate:
        asyncio.run(main())
        assert [one.call for one in gate.history] == ["read", "approve", "approve"]


def test_reasons_are_those_of_the_decision(artifact: tcc.Artifact) -> None:
    """A reason that is read after outcomes came is of the session as it was."""
    with tcc.Gate(artifact) as gate:
        with gate.call("seek", {"p": "x"}, turn=gate.try_turn()) as permit:
            with gate.call("seek", {"p": "y"}, turn=gate.try_turn()) as other:
                then = gate.check("approve", {"p": "x"})
                other.done({"r": "yes"})
            permit.done({"r": "yes"})
        assert gate.check("approve", {"p": "x"}).allowed
        assert [one["text"] for one in then.because] == ["before approve require no seek(r = no)"]


def _schedule(rng: random.Random, gate: tcc.Gate) -> None:
    """Calls begin and come to outcomes in a drawn order; what has to wait is not made."""
    opened: list[Any] = []
    for _ in range(rng.randrange(4, 14)):
        if opened and rng.random() < 0.45:
            permit = opened.pop(rng.randrange(len(opened)))
            how = rng.choice(["done", "failed", "unknown", "answered"])
            if permit.tool != "seek" and how == "answered":
                how = "failed"
            if how == "done":
                permit.done({"r": rng.choice(["yes", "no"])} if permit.tool == "seek" else None)
            elif how == "answered":
                permit.failed(answered=True)
            else:
                getattr(permit, how)()
            permit.__exit__(None, None, None)
            continue
        turn = gate.try_turn()
        if turn is None:
            continue
        tool = rng.choice(["read", "read", "seek", "seek", "approve", "refund"])
        permit = gate.call(tool, {"p": rng.choice("xy")}, turn=turn)
        try:
            permit.__enter__()
        except (NotYet, tcc.Refused):
            continue
        opened.append(permit)
        lost = [one.seq for one in gate.history if one.outcome == "unknown"]
        if lost and rng.random() < 0.3:
            gate.resolve(rng.choice(lost), "failed")
    for permit in opened:
        permit.__exit__(None, None, None)


@pytest.mark.parametrize("seed", blocks(12, 25))
def test_drawn_schedules_leave_ledgers_that_are_valid(
    seed: int, tmp_path: Path, artifact: tcc.Artifact
) -> None:
    rng = random.Random(seed)
    path = tmp_path / "s.ledger"
    with tcc.Gate(artifact, ledger=path, durable=False) as gate:
        _schedule(rng, gate)
        before = gate.check("approve", {"p": "x"}).code, gate.remaining, gate.history
    with tcc.Gate(artifact, ledger=path, durable=False) as gate:  # reopened: the same session
        assert (gate.check("approve", {"p": "x"}).code, gate.remaining, gate.history) == before
    assert verdict(path, artifact)[1] in ("ConformantPrefix", "NoClaim")


HOG = """
import sys, threading, time, tcc
gate = tcc.Gate(sys.argv[1], ledger=sys.argv[2], durable=False)
going, counts = True, [0]


def works():
    while going:
        with gate.call(sys.argv[3]) as permit:
            time.sleep(0.02)
            permit.done()
            counts[0] += 1


threads = [threading.Thread(target=works) for _ in range(int(sys.argv[4]))]
for one in threads:
    one.start()
print("working", flush=True)
sys.stdin.readline()
going = False
for one in threads:
    one.join()
print(counts[0])
"""
FREE = """grammar free version "1"

tool read { parallel }
tool note

plan = (read | note){0,4000}
"""


@pytest.mark.parametrize(("tool", "threads"), [("read", 8), ("note", 1)])
@pytest.mark.parametrize("way", ["thread", "task", "tries"])
@pytest.mark.sampled(3)
def test_a_holder_of_whom_others_wait_begins_no_call_more(
    way: str, tool: str, threads: int, tmp_path: Path
) -> None:
    """Without pause, together or one after the other: another process has its turn soon."""
    tcc.save(grammars.artifact(FREE), tmp_path / "a.tcca")
    ledger = tmp_path / "s.ledger"
    command = [sys.executable, "-c", HOG, str(tmp_path / "a.tcca"), str(ledger), tool]
    hog = subprocess.Popen(
        [*command, str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert hog.stdout is not None and hog.stdout.readline() == "working\n"
    passed: list[int] = []
    try:
        with tcc.Gate(tmp_path / "a.tcca", ledger=ledger, durable=False) as gate:

            async def in_task() -> int:
                async with gate.call("note") as permit:
                    permit.done()
                    return permit.seq

            def tries() -> int:
                until = time.monotonic() + 20
                while (turn := gate.try_turn()) is None:
                    assert time.monotonic() < until, "starved"
                    time.sleep(0.005)
                with gate.call("note", turn=turn) as permit:
                    permit.done()
                    return permit.seq

            def thread() -> int:
                with gate.call("note") as permit:
                    permit.done()
                    return permit.seq

            ways = {"task": lambda: asyncio.run(in_task()), "tries": tries, "thread": thread}
            for _ in range(6):
                before = len(gate.history)
                seq = ways[way]()
                passed.append(seq - before - 1)
                time.sleep(0.02)
        said, _ = hog.communicate("end\n", timeout=30)
    finally:
        hog.kill()
        hog.communicate()
    # Those that were under way when we came, and a few until that was seen; without the marks it
    # is 256 of them.
    assert sorted(passed)[2] <= 100, passed
    assert int(said) > 6, "the holder did not go on"


def test_who_gave_up_waiting_is_not_waited_for(tmp_path: Path) -> None:
    artifact = grammars.artifact(FREE)
    first = tcc.Gate(artifact, ledger=tmp_path / "s.ledger")
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover
        other = tcc.Gate(artifact, ledger=tmp_path / "s.ledger")
        with other.call("read"):
            os.write(writes, b"x")
            time.sleep(60)
        os._exit(0)
    try:
        assert os.read(reads, 1) == b"x"
        assert first.try_turn() is None
        marked: Any = first._access.journal
        assert marked._waits
        first.stop_waiting()
        assert not marked._waits
        assert first.try_turn() is None
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with first.call("read") as permit:
        permit.done()
    first.close()


@pytest.mark.parametrize("question", ["allowed", "may_finish"])
def test_a_question_of_another_thread_takes_nothing_back(
    question: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """grammar g version "1"

tool pay(p: text)

plan = pay{0,9}

limit count(pay) <= 2
"""
    gate = tcc.Gate(grammars.artifact(text), ledger=tmp_path / "s.ledger", durable=False)
    asks, goes_on = threading.Event(), threading.Event()
    unknown = SessionMachine.unknown

    def slow(self: SessionMachine, held: Positions, offer: Offer) -> Positions:
        if threading.current_thread() is asking and not asks.is_set():
            asks.set()
            goes_on.wait(0.5)
        return unknown(self, held, offer)

    def ask() -> None:
        found = getattr(gate, question)
        if callable(found):
            found()

    monkeypatch.setattr(SessionMachine, "unknown", slow)
    asking = threading.Thread(target=ask)
    with gate.call("pay", {"p": "a"}) as permit:
        asking.start()
        asks.wait(0.5)
        permit.done()
    with gate.call("pay", {"p": "b"}) as permit:
        permit.done()
    goes_on.set()
    asking.join()
    with pytest.raises(tcc.Refused), gate.call("pay", {"p": "c"}):
        pass
    gate.finish()
    gate.close()
    assert validated(tmp_path / "s.ledger").claim_type == "Conformant"
