"""What is broken off, told twice or told late changes no other call, and no ledger."""

from __future__ import annotations

import asyncio
import copy
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from types import FrameType
from typing import Any

import pytest

import tcc
from tcc_certs.formats.ledger import LedgerReader, seal
from tcc_certs.session.machine import Course
from tcc_runtime.gate.admission import admit
from tcc_runtime.gate.journal import ledger_file
from tcc_runtime.gate.journal.ledger_file import InFile
from tcc_runtime.gate.session_access import Access
from tests.gate.conftest import validated
from tests.gate.grammars import LONG, artifact, do, gate


def _outcomes(session: tcc.Gate) -> list[str]:
    return [happened.outcome for happened in session.history]


def _interrupted(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """An interrupt is seen when the disk was waited for so many times more."""
    wait, left = ledger_file._sync, [after]

    def sync(handle: int) -> None:
        wait(handle)
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt

    monkeypatch.setattr(ledger_file, "_sync", sync)


def test_a_permit_whose_entry_was_cancelled_tells_nothing_of_another_call(tmp_path: Path) -> None:
    async def run() -> list[str]:
        session = gate(LONG, ledger=tmp_path / "s.ledger")
        given_up = session.call("b")
        entry = asyncio.create_task(given_up.__aenter__())
        while not session.history:
            await asyncio.sleep(0)
        entry.cancel()
        with pytest.raises(asyncio.CancelledError):
            await entry
        async with session.call("a", {"x": 1}) as permit:
            with pytest.raises(RuntimeError):
                given_up.done()
            permit.failed()
        return _outcomes(session)

    assert asyncio.run(run()) == ["unknown", "failed"]


def test_an_outcome_is_told_once_whoever_tells_it(tmp_path: Path) -> None:
    session = gate(LONG, ledger=tmp_path / "s.ledger")
    with session.call("b") as permit:
        # What another thread sees that looked at the permit just before it was told.
        other = copy.copy(permit)
        permit.done()
        with pytest.raises(RuntimeError):
            other.failed()
    assert _outcomes(session) == ["done"]


def test_a_call_that_is_over_tells_nothing_of_the_next_one(tmp_path: Path) -> None:
    session = gate(LONG, ledger=tmp_path / "s.ledger")
    with session.call("b") as permit:
        other = copy.copy(permit)
    with session.call("b") as permit:
        with pytest.raises(RuntimeError):
            other.failed()
        permit.done()
    assert _outcomes(session) == ["unknown", "done"]


def test_an_interrupt_while_an_outcome_is_written_leaves_a_ledger_that_conforms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.ledger"
    session = gate(LONG, ledger=path)
    permit = session.call("b")
    write = os.write

    def interrupted(handle: int, data: bytes) -> int:
        write(handle, data)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), permit, monkeypatch.context() as patch:
        patch.setattr(ledger_file.os, "write", interrupted)
        permit.done()
    with pytest.raises(tcc.Refused) as refused:
        do(session, "b")
    assert refused.value.code == "R306"
    session.close()
    assert validated(path).word == "INCOMPLETE"
    with gate(LONG, ledger=path) as again:
        assert _outcomes(again) == ["done"]
        do(again, "b")


def test_an_interrupt_while_a_call_is_written_leaves_one_that_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.ledger"
    session = gate(LONG, ledger=path)
    _interrupted(monkeypatch, 1)
    with pytest.raises(KeyboardInterrupt):
        do(session, "b")
    with pytest.raises(tcc.Refused) as refused:
        do(session, "b")
    assert refused.value.code == "R306"
    session.close()
    with gate(LONG, ledger=path) as again:
        assert _outcomes(again) == ["unknown"]


@pytest.mark.parametrize("looks", [True, False])
def test_a_record_that_is_none_is_not_gone_on_behind(tmp_path: Path, looks: bool) -> None:
    path = tmp_path / "s.broken"
    session = gate(LONG, ledger=path)
    reader = LedgerReader((path.read_bytes(),))
    list(reader)
    line, _ = seal({"kind": "call", "more": 1}, reader.head)
    with path.open("ab") as file:
        file.write(line)
    if looks:
        assert not session.check("b")
    for _ in range(2):
        with pytest.raises(tcc.Refused) as refused:
            do(session, "b")
        assert refused.value.code == "R306"


FEW = """grammar few version "1"

tool a(p: text max 4000)

limit count(a) <= 2
limit depth <= 40
"""
MANY = FEW.replace("<= 2", "<= 5").replace("few", "many")


@contextmanager
def _interrupted_at(place: int, *functions: Any) -> Iterator[None]:
    """An interrupt is seen at that of the lines that these functions go through."""
    codes, left = [one.__code__ for one in functions], [place]

    def traced(frame: FrameType, event: str, _: object) -> Any:
        if event == "line" and frame.f_code in codes:
            left[0] -= 1
            if left[0] == -1:
                raise KeyboardInterrupt
        return traced

    sys.settrace(traced)
    try:
        yield
    finally:
        sys.settrace(None)


@pytest.mark.parametrize("place", range(62))
def test_an_interrupt_while_records_of_others_are_read_loses_none(
    place: int, tmp_path: Path
) -> None:
    path, key = tmp_path / "s.ledger", bytes(32)
    (tmp_path / "s.ledger.key").write_text(key.hex() + "\n")
    gates = [tcc.Gate(artifact(FEW), ledger=path, key=key, durable=False) for _ in range(2)]
    for session in gates:
        do(session, "a", {"p": "x"})
    with (
        pytest.raises((tcc.Refused, KeyboardInterrupt)),
        _interrupted_at(place, InFile._read, Access._follow),
    ):
        do(gates[0], "a", {"p": "x"})
    for session in gates:
        with pytest.raises(tcc.Refused) as refused:
            do(session, "a", {"p": "x"})
        assert refused.value.code in ("R202", "R306")
        session.close()


@pytest.mark.parametrize("place", range(40))
def test_an_interrupt_while_a_session_is_gone_through_leaves_a_ledger_that_conforms(
    place: int, tmp_path: Path
) -> None:
    session = tcc.Gate(artifact(MANY), ledger=tmp_path / "s.ledger", durable=False)
    with suppress(KeyboardInterrupt), _interrupted_at(place, Course._catch_up):
        do(session, "a", {"p": "x"})
        session.check("a", {"p": "x"})
    made = 0
    with suppress(tcc.Refused):
        while made < 9:
            do(session, "a", {"p": "x"})
            made += 1
    assert made < 5
    session.close()


@pytest.mark.parametrize("torn", [True, False])
def test_a_ledger_of_fewer_records_is_not_gone_on_with(torn: bool, tmp_path: Path) -> None:
    path, other = tmp_path / "s.changed", tmp_path / "other.changed"
    session, beside = (
        tcc.Gate(artifact(FEW), ledger=one, key=bytes(32), durable=False, show=["a.p"])
        for one in (path, other)
    )
    do(session, "a", {"p": "x"})
    with beside.call("a", {"p": "y" * 3000}):
        pass
    whole = other.read_bytes().splitlines(keepends=True)
    found = b"".join(whole[:2])[: -1 if torn else None]
    assert len(found) > path.stat().st_size and found.count(b"\n") < 3
    path.write_bytes(found)
    with pytest.raises(tcc.Refused) as refused:
        do(session, "a", {"p": "x"})
    assert refused.value.code == "R306" and path.read_bytes() == found


BESIDE = """grammar beside version "1"

tool a { parallel }
tool b

limit depth <= 60
"""


@contextmanager
def _one_beside(session: tcc.Gate) -> Iterator[None]:
    """A call of another thread is under way."""
    begun, over = Event(), Event()

    def call() -> None:
        with session.call("a") as permit:
            begun.set()
            over.wait(20)
            permit.done()

    thread = Thread(target=call)
    thread.start()
    begun.wait(20)
    try:
        yield
    finally:
        over.set()
        thread.join(20)


@pytest.mark.parametrize("place", range(0, 55, 2))
def test_what_waits_for_a_call_whose_entry_was_broken_off_is_decided(
    place: int, tmp_path: Path
) -> None:
    session = tcc.Gate(artifact(BESIDE), ledger=tmp_path / "s.ledger", durable=False)
    found: list[str] = []

    def call() -> None:
        try:
            do(session, "b")
            found.append("made")
        except tcc.Refused as refused:
            found.append(str(refused.code))

    waiting = Thread(target=call, daemon=True)
    with _one_beside(session):
        with suppress(KeyboardInterrupt), _interrupted_at(place, admit, Access.put):
            do(session, "a")
        waiting.start()
    waiting.join(20)
    assert found in (["made"], ["R306"])


def test_a_copy_of_a_permit_that_is_left_twice_gives_no_lock_back(tmp_path: Path) -> None:
    session = tcc.Gate(artifact(BESIDE), ledger=tmp_path / "s.ledger", durable=False)
    permit = session.call("a")
    with _one_beside(session):
        with permit:
            other = copy.copy(permit)
            permit.done()
        other.__exit__(None, None, None)
    do(session, "b")
    assert _outcomes(session) == ["done"] * 3
