"""Ledgers of several files: a gate continues them, reopens them, and refuses damaged ones."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import tcc
from tcc_certs.errors import Rejected
from tcc_certs.session import SessionValidation
from tcc_certs.session.files import files_of
from tcc_runtime.errors import LedgerError, ResumeError, SettingsError
from tests.gate.grammars import artifact, bytes_of

KEY = bytes(range(32))
TEXT = """grammar files version "1"

tool read(order: text max 20) { parallel }
tool pay(order: text max 20)

limit depth <= 400
before pay require unused read(same order)
limit count(pay within 10 m) per order <= 2 in session
"""


def opened(path: Path, roll_bytes: int | None = 1500, **more: Any) -> tcc.Gate:
    return tcc.Gate(
        artifact(TEXT), ledger=path, key=KEY, durable=False, roll_bytes=roll_bytes, **more
    )


def paid(gate: tcc.Gate, *orders: str) -> None:
    for order in orders:
        for tool in ("read", "pay"):
            with gate.call(tool, {"order": order}) as permit:
                permit.done()


def found_in(path: Path) -> SessionValidation:
    validation = tcc.validate(path, bytes_of(artifact(TEXT)), key=KEY)
    assert isinstance(validation, SessionValidation)
    return validation


def test_a_ledger_continues_in_numbered_files(tmp_path: Path) -> None:
    path = tmp_path / "l.ledger"
    with opened(path) as gate:
        paid(gate, *"abcde")
        head = gate.head
    with opened(path, None) as gate:
        assert len(gate.history) == 10
        assert gate.is_ancestor(head)
        assert not gate.check("pay", {"order": "a"}).allowed
        gate.finish()
    files = files_of(path)
    assert [file.name for file in files] == ["l.ledger", *[f"l.ledger.{n}" for n in range(1, 6)]]
    assert all(file.stat().st_size < 3000 for file in files)
    found = found_in(path)
    assert (found.word, found.claim_type, found.checked["calls"]) == ("VALID", "Conformant", 10)
    assert len(found.lines) == len(files)


def test_a_ledger_in_one_file_has_no_roll(tmp_path: Path) -> None:
    path = tmp_path / "l.ledger"
    with opened(path, 1 << 30) as gate:
        paid(gate, *"abc")
    assert files_of(path) == [path]
    assert b'"kind":"roll"' not in path.read_bytes()


@pytest.mark.parametrize("size", [0, -1, True, 1.5, "4096"])
def test_a_size_is_a_positive_integer(size: Any, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="roll: expected bytes, at least 1"):
        opened(tmp_path / "l.ledger", size)
    assert not (tmp_path / "l.ledger").exists()
    with pytest.raises(SettingsError, match="roll: expected bytes, at least 1"):
        tcc.Sessions(artifact(TEXT), tmp_path / "store", roll_bytes=size)


@pytest.mark.parametrize("seed", range(3))
def test_gates_in_turn_follow_each_other_into_the_next_file(seed: int, tmp_path: Path) -> None:
    path, rng = tmp_path / "l.ledger", random.Random(seed)
    gates = [opened(path, size) for size in (1, 1800, None)]
    for number in range(30):
        paid(rng.choice(gates), str(number % 7) if number < 14 else str(number))
        gate = rng.choice(gates)
        assert len(gate.history) == 2 * number + 2
    for gate in gates:
        assert [one.outcome for one in gate.history] == ["done"] * 60
    gates[0].finish()
    assert gates[1].ended and gates[2].ended
    assert found_in(path).word == "VALID"
    for gate in gates:
        gate.close()


def test_calls_that_are_under_way_are_in_several_files(tmp_path: Path) -> None:
    path = tmp_path / "l.ledger"
    gate = opened(path, 1)
    permits = []
    for number in range(12):
        permits.append(gate.call("read", {"order": str(number)}, turn=gate.try_turn()))
        permits[-1].__enter__()
    for permit in reversed(permits):
        permit.done()
        permit.__exit__(None, None, None)
    gate.finish()
    found = found_in(path)
    assert (found.word, found.checked["outcomes"], len(found.lines)) == ("VALID", 12, 25)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_continues_in_the_last_file(tmp_path: Path) -> None:
    path = tmp_path / "l.ledger"
    with opened(path, 1) as gate:
        paid(gate, "a")
        child = os.fork()
        if not child:
            try:
                paid(gate, "b")
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        paid(gate, "c")
        assert len(gate.history) == 6
        gate.finish()
    assert found_in(path).word == "VALID"


# A crash in the middle of a roll.


def test_a_roll_that_is_cut_at_any_byte_is_finished(tmp_path: Path) -> None:
    path = tmp_path / "l.ledger"
    with opened(path, 2000) as gate:
        paid(gate, "a", "b")
    whole, following = path.read_bytes(), (tmp_path / "l.ledger.1").read_bytes()
    roll = whole[whole.rindex(b'{"kind":"roll"') :]
    header = following[: following.index(b"\n") + 1]
    states: list[tuple[bytes, bytes | None]] = [
        (whole[: len(whole) - left], None) for left in (*range(len(roll) - 1, 2, -5), 2, 1, 0)
    ]
    states += [(whole, header[:size]) for size in range(0, len(header) + 1, 50)]
    states.append((whole, header))
    for number, (first, second) in enumerate(states):
        folder = tmp_path / str(number)
        folder.mkdir()
        again = folder / "l.ledger"
        again.write_bytes(first)
        if second is not None:
            (folder / "l.ledger.1").write_bytes(second)
            (folder / "l.ledger.1.new").write_bytes(second[:50])
        with opened(again, 1 << 20) as gate:
            calls = len(gate.history)
            paid(gate, "y")
            assert len(gate.history) == calls + 2
            gate.finish()
        found = found_in(again)
        assert (found.word, found.checked["calls"]) == ("VALID", calls + 2), (number, found)
        assert len(files_of(again)) == 1 + first.endswith(roll)


@pytest.mark.parametrize("call", ["link", "unlink"])
def test_an_ended_ledger_is_set_aside_with_all_its_files(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash at any step leaves the old session as it was, or a new one."""
    real: Callable[..., Any] = getattr(os, call)
    for crash in range(9):
        folder = tmp_path / str(crash)
        folder.mkdir()
        path = folder / "l.ledger"
        with opened(path, 1) as gate:
            paid(gate, "a")
            gate.finish()
            name = gate.session_id
        count = len(files_of(path))
        left = [crash]

        def crashing(*args: Any, left: list[int] = left, **more: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            return real(*args, **more)

        with monkeypatch.context() as patch:
            patch.setattr(os, call, crashing)
            with suppress(KeyboardInterrupt):
                opened(path, 1, rolls=True).close()
        with opened(path, 1, rolls=True) as gate:
            assert gate.history == ()
            paid(gate, "b")
        kept = folder / f"l.ledger.{name}"
        assert len(files_of(kept)) == count
        assert found_in(kept).word == "VALID"
        assert found_in(path).word == "INCOMPLETE"
        assert len(found_in(path).lines) == len(files_of(path))


# Files that are not as they were written.


def damaged(tmp_path: Path) -> list[Path]:
    path = tmp_path / "l.ledger"
    with opened(path, 1) as gate:
        paid(gate, "a", "b")
    return files_of(path)


@pytest.mark.parametrize(
    ("does", "code", "error"),
    [
        (lambda files: files[3].unlink(), "S217", ResumeError),
        (lambda files: files[0].write_bytes(cut(files[0])), "S217", ResumeError),
        (lambda files: files[2].write_bytes(cut(files[2])), "S217", ResumeError),
        (lambda files: swap(files[2], files[3]), "S217", ResumeError),
        (lambda files: files[3].write_bytes(files[2].read_bytes()), "S217", ResumeError),
        (lambda files: files[2].write_bytes(b"{}\n"), "L101", Rejected),
        (lambda files: files[2].write_bytes(b"text\n"), "L101", Rejected),
        (lambda files: files[2].write_bytes(files[0].read_bytes()), "S217", ResumeError),
        (lambda files: append(files[2], b"x"), "L104", Rejected),
        (lambda files: append(files[2], b"x\n"), "L101", Rejected),
    ],
)
def test_a_damaged_file_is_found(
    does: Callable[[list[Path]], object], code: str, error: type[Exception], tmp_path: Path
) -> None:
    files = damaged(tmp_path)
    does(files)
    assert found_in(files[0]).findings[0].code == code
    kept = {file: file.read_bytes() for file in files_of(files[0])}
    with pytest.raises(error):
        opened(files[0])
    assert {file: file.read_bytes() for file in files_of(files[0])} == kept


def test_a_file_of_another_session_is_found(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    files, other = damaged(tmp_path), damaged(tmp_path / "other")
    files[2].write_bytes(other[2].read_bytes())
    finding = found_in(files[0]).findings[0]
    assert (finding.code, finding.field) == ("S217", "nonce")
    with pytest.raises(ResumeError, match="S217"):
        opened(files[0])


def test_a_last_file_that_is_gone_is_a_cut(tmp_path: Path) -> None:
    files = damaged(tmp_path)
    files[-1].unlink()
    found = found_in(files[0])
    assert (found.word, found.claim_type) == ("INCOMPLETE", "ConformantPrefix")
    with opened(files[0]) as gate:
        assert gate.history[-1].outcome == "unknown"


def test_a_file_in_the_place_of_the_next_one_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "l.ledger"
    with opened(path, 1) as gate:
        files = [tmp_path / f"l.ledger.{number}" for number in range(1, 9)]
        files[2].write_bytes(b"mine\n")
        with pytest.raises((tcc.Refused, LedgerError)):
            paid(gate, *"abcd")
    assert files[2].read_bytes() == b"mine\n"
    with pytest.raises(ResumeError, match="does not end with roll"):
        opened(path)


def cut(file: Path) -> bytes:
    data = file.read_bytes()
    return data[: data.rindex(b'{"kind":"roll"')]


def append(file: Path, data: bytes) -> None:
    with file.open("ab") as handle:
        handle.write(data)


def swap(one: Path, other: Path) -> None:
    kept = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(kept)


def test_sessions_of_a_store_have_several_files(tmp_path: Path) -> None:
    sessions = tcc.Sessions(artifact(TEXT), tmp_path / "store", roll_bytes=1, durable=False)
    with sessions.open() as gate:
        paid(gate, "a", "b")
        name = gate.session_id
    assert [one.calls for one in sessions.list()] == [4]
    with sessions.get(name) as gate:
        gate.finish()
    (found,) = sessions.list()
    assert (found.id, found.state, found.calls) == (name, "ended", 4)
    files = files_of(tmp_path / "store" / f"{name}.ledger")
    assert len(files) == 9
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
