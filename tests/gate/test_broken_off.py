"""What is broken off, told twice or told late changes no other call, and no ledger."""

from __future__ import annotations

import asyncio
import copy
import os
from pathlib import Path

import pytest

import tcc
from tcc_certs.formats.ledger import LedgerReader, seal
from tcc_runtime.gate import journal
from tests.gate.conftest import validated
from tests.gate.grammars import LONG, do, gate


def _outcomes(session: tcc.Gate) -> list[str]:
    return [happened.outcome for happened in session.history]


def _interrupted(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """An interrupt is seen when the disk was waited for so many times more."""
    wait, left = journal._sync, [after]

    def sync(handle: int) -> None:
        wait(handle)
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt

    monkeypatch.setattr(journal, "_sync", sync)


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
        patch.setattr(journal.os, "write", interrupted)
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
