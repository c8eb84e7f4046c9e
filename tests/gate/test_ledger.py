"""Ledgers of sessions: reopened after whatever happened to them, or refused."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import tcc
from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import decode
from tcc_certs.formats.ledger import LedgerReader, seal
from tcc_runtime.errors import LedgerError, OutputRefused, ResumeError
from tcc_runtime.gate.journal import ledger_file
from tests.campaigns.blocks import cuts
from tests.forking import launcher
from tests.gate import worker
from tests.gate.conftest import validated
from tests.gate.grammars import LONG, ORDERED, SHOP, artifact, do, gate
from tests.oracle_session.writer import sealed

KEY = bytes(range(32))


def played(path: Path) -> tcc.Gate:
    """A session with every kind of record but the end."""
    session = gate(SHOP, ledger=path, key=KEY, durable=False, clock=lambda: 5)
    do(session, "approve", {"order": "ord-1"})
    do(session, "refund", {"part": "half", "order": "ord-1", "amount": 2.5}, result={"ok": 1})
    with pytest.raises(tcc.Refused):
        do(session, "merge")
    with session.call("find", {"by": "mail", "who": "x"}, ref="r1"):
        pass
    with session.call("take", {"n": 1, "at": 1}) as permit:
        permit.failed()
    do(session, "run_tests", {"suite": "unit"}, observed={"result": "pass"})
    session.resolve(3, "done")
    return session


def brief(path: Path) -> tcc.Gate:
    """Fewer records."""
    session = gate(SHOP, ledger=path, key=KEY, durable=False, clock=lambda: 5)
    do(session, "run_tests", {"suite": "unit"}, observed={"result": "pass"})
    with session.call("take", {"n": 1, "at": 1}):
        pass
    session.resolve(2, "done")
    return session


def test_a_session_is_reopened_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "s.ledger"
    session = played(path)
    head, history, allowed = session.head, session.history, session.allowed()
    session.close()
    before = path.read_bytes()
    again = gate(SHOP, ledger=path, key=KEY)
    assert path.read_bytes() == before
    assert (again.head, again.history, again.allowed()) == (head, history, allowed)
    do(again, "merge")
    again.finish()
    assert validated(path).claim_type == "Conformant"
    with pytest.raises(ResumeError, match="its end"):
        gate(SHOP, ledger=path, key=KEY)


def test_a_ledger_cut_at_any_byte_is_reopened(tmp_path: Path) -> None:
    whole = tmp_path / "whole.ledger"
    brief(whole).close()
    data = whole.read_bytes()
    cut = tmp_path / "cut.ledger"
    for size in cuts(data):
        cut.write_bytes(data[:size])
        session = gate(SHOP, ledger=cut, key=KEY, durable=False, clock=lambda: 5)
        kept = cut.read_bytes()
        assert session.check("listed", {"on": True}).allowed or session.history
        session.close()
        lines = data[:size].count(b"\n")
        if lines:
            assert kept.startswith(data[: data[:size].rfind(b"\n") + 1])
        assert validated(cut).word == "INCOMPLETE"
        open_calls = 0 if lines == 0 else kinds(data[:size]).count("call")
        assert kinds(kept).count("outcome") == open_calls


def kinds(data: bytes) -> list[str]:
    return [str(record["kind"]) for record in LedgerReader([data[: data.rfind(b"\n") + 1]])]


@pytest.mark.parametrize("place", worker.PLACES)
def test_a_process_is_killed_at_any_record(place: str, tmp_path: Path) -> None:
    path, file = tmp_path / "s.ledger", tmp_path / "a.tcca"
    tcc.save(artifact(LONG), file)
    ran = run("kill", file, path, place)
    assert ran.returncode == -9
    session = gate(LONG, ledger=path)
    outcomes = [one.outcome for one in session.history]
    done = place == "after outcome"
    nothing = place in ("before call", "torn call")
    assert outcomes == ["done", *([] if nothing else ["done" if done else "unknown"])]
    do(session, "b")
    session.finish()
    assert validated(path).word == "VALID"


def run(mode: str, file: Path, path: Path, *more: str) -> subprocess.CompletedProcess[str]:
    begun = launcher("tcc", "-m", "tests.gate.worker", mode, str(file), str(path), *more)
    return subprocess.run(begun, capture_output=True, text=True, timeout=120)


def command(mode: str, file: Path, path: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "tests.gate.worker", mode, str(file), str(path), *more]


def changed(data: bytes, line: int, **members: Any) -> bytes:
    """The ledger with members of one line changed (None: taken out), by who has the key."""
    records = [dict(record) for record in LedgerReader([data])]
    records[line - 1].update(members)
    for record in records:
        del record["mac"]
    return sealed([{n: v for n, v in record.items() if v is not None} for record in records])


CHANGES: list[tuple[int, dict[str, Any], str]] = [
    (1, {"artifact": "0" * 64}, "line 1: session_id"),
    (1, {"session_id": "01a2039f-9506-725e-9cc0-3c532f838a7e"}, "line 1: session_id"),
    (1, {"schema": "tcc.session/1.2"}, "line 1: schema"),
    (1, {"monitors": []}, "line 1: monitors"),
    (1, {"statements": []}, "line 1: session_id"),
    (1, {"started_ms": 6}, "line 1: session_id"),
    (1, {"started_ms": -1}, "line 1: started_ms"),
    (1, {"nonce": "00" * 16}, "line 1: session_id"),
    (1, {"nonce": 7}, "line 1: nonce"),
    (1, {"nonce": None}, "line 1: nonce"),
    (1, {"arguments": {}}, "line 1: arguments"),
    (1, {"arguments": {"show": ["a.b"]}}, "line 1"),
    (1, {"more": 1}, "line 1: more"),
    (2, {"seq": 2}, "line 2: seq"),
    (2, {"call": "approved"}, "line 2: call"),
    (2, {"call": "refund(part=half)"}, "line 2"),
    (2, {"call": 7}, "line 2: call"),
    (2, {"states": [0]}, "line 2: states"),
    (2, {"key": "0" * 32}, "line 2: key"),
    (2, {"open": {}}, "line 2: open"),
    (2, {"open": {"order": {"digest": "xx"}}}, "line 2"),
    (2, {"kind": "sum"}, "line 2: kind"),
    (2, {"kind": "session"}, "line 2"),
    (3, {"seq": 4}, "line 3: seq"),
    (3, {"outcome": "perhaps"}, "line 3: outcome"),
    (3, {"kind": "call"}, "line 3"),
    (4, {"open": {"order": {"digest": "0" * 64}, "amount": {"digest": "0" * 64}}}, "line 4"),
    (10, {"outcome": "done", "kind": "outcome"}, "line 11: states"),
    (12, {"observed": {"result": "perhaps"}}, "line 12"),
    (13, {"seq": 2}, "line 13"),
    (13, {"outcome": "unknown"}, "line 13"),
    (13, {"kind": "end", "seq": None, "outcome": None, "abandoned": 1}, "line 13"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "members", "place"), CHANGES, ids=str)
def test_a_changed_ledger_is_not_gone_on_with(
    line: int, members: dict[str, Any], place: str, tmp_path: Path
) -> None:
    path = tmp_path / "changed"
    played(path).close()
    data = changed(path.read_bytes(), line, **members)
    path.write_bytes(data)
    with pytest.raises((ResumeError, Rejected), match=place.replace(".", "\\.")):
        gate(SHOP, ledger=path, key=KEY)
    assert path.read_bytes() == data


def test_a_broken_chain_is_not_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "changed"
    played(path).close()
    data = path.read_bytes()
    for at in range(0, len(data), 97):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises((ResumeError, Rejected)):
            gate(SHOP, ledger=path, key=KEY)


def test_another_key_or_artifact_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.ledger"
    gate(ORDERED, ledger=path).close()
    key = tmp_path / "s.ledger.key"
    assert key.stat().st_mode & 0o777 == 0o600 and len(key.read_text()) == 65
    with pytest.raises(ResumeError, match="key_commitment"):
        gate(ORDERED, ledger=path, key=KEY)
    with pytest.raises(ResumeError, match="artifact"):
        gate(LONG, ledger=path)
    gate(ORDERED, ledger=path).close()
    kept = key.read_text()
    for wrong in ("", "x" * 64 + "\n", kept[:-1], kept * 2):
        key.write_text(wrong)
        with pytest.raises(ResumeError, match="hexadecimal"):
            gate(ORDERED, ledger=path)
    key.unlink()
    with pytest.raises(ResumeError, match="hexadecimal"):
        gate(ORDERED, ledger=path)
    gate(ORDERED, ledger=path, key=bytes.fromhex(kept.strip())).close()


def test_what_is_shown_is_the_ledgers(tmp_path: Path) -> None:
    path = tmp_path / "s.ledger"
    gate(SHOP, ledger=path, show=["take.n"]).close()
    gate(SHOP, ledger=path).close()
    gate(SHOP, ledger=path, show=["take.n"]).close()
    with pytest.raises(ResumeError, match="arguments"):
        gate(SHOP, ledger=path, show=["take.at"])


def test_what_is_no_ledger_is_left_alone(tmp_path: Path) -> None:
    for content in (b"notes of mine", b"{}", b'{"a":1}\n', b"\n", b"\xff" * 40, b'{"arguments":{}'):
        path = tmp_path / "notes"
        path.write_bytes(content)
        with pytest.raises((ResumeError, Rejected)):
            gate(ORDERED, ledger=path, key=KEY)
        assert path.read_bytes() == content
    with pytest.raises(OutputRefused):
        gate(ORDERED, ledger=tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OutputRefused):
        gate(ORDERED, ledger=tmp_path / "pipe")
    with pytest.raises(LedgerError):
        gate(ORDERED, ledger=tmp_path / "none" / "s.ledger")


def test_a_full_disk_permits_nothing(tmp_path: Path) -> None:
    path = tmp_path / "s.ledger"
    session = gate(LONG, ledger=path, key=KEY)
    do(session, "b")
    room = path.stat().st_size + 40
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    import signal

    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        with pytest.raises(tcc.Refused, match="R306") as refused, session.call("b"):
            pytest.fail("nothing is permitted")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        signal.signal(signal.SIGXFSZ, old)
    assert isinstance(refused.value.__cause__, LedgerError)
    assert refused.value.__cause__.cause.errno == errno.EFBIG
    assert refused.value.because[0]["kind"] == "gate" and refused.value.allowed_next == ()
    with pytest.raises(tcc.Refused, match="R306"):
        do(session, "b")
    assert session.check("b").code == "R306" and session.allowed() == ()
    again = gate(LONG, ledger=path, key=KEY)
    assert [one.outcome for one in again.history] == ["done"]


def test_an_outcome_that_cannot_be_written_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.ledger"
    session = gate(LONG, ledger=path)
    with session.call("b") as permit:
        with monkeypatch.context() as patch:
            patch.setattr(ledger_file.os, "write", lambda *_: no_room())
            permit.done()
        assert permit.outcome == "unknown"
    with pytest.raises(tcc.Refused, match="R306"):
        session.finish()
    assert [one.outcome for one in gate(LONG, ledger=path).history] == ["unknown"]


def test_a_disk_that_does_not_answer_permits_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.ledger"
    session = gate(LONG, ledger=path)
    with monkeypatch.context() as patch:
        patch.setattr(ledger_file, "_sync", lambda _: no_room())
        with pytest.raises(tcc.Refused, match="R306"), session.call("b"):
            pytest.fail("its record may not be on disk")
    again = gate(LONG, ledger=path)
    assert [one.outcome for one in again.history] == ["unknown"]


def no_room() -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_record_is_on_disk_before_the_permit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, synced = tmp_path / "s.ledger", []
    session = gate(LONG, ledger=path)
    sync = ledger_file._sync
    monkeypatch.setattr(
        ledger_file,
        "_sync",
        lambda handle: (sync(handle), synced.append(kinds(path.read_bytes())[-1])),
    )
    with session.call("b") as permit:
        assert synced == ["call"]
        permit.done()
        assert synced == ["call"]
    with session.call("b") as permit:
        assert synced == ["call", "call"]
    session.finish()
    assert synced == ["call", "call", "end"]


def test_an_outcome_is_on_disk_soon_or_with_what_comes_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, synced = tmp_path / "s.ledger", []
    session = gate(LONG, ledger=path)
    sync = ledger_file._sync
    monkeypatch.setattr(
        ledger_file,
        "_sync",
        lambda handle: (sync(handle), synced.append(kinds(path.read_bytes())[-1])),
    )
    do(session, "b")
    head = session.head
    assert synced == ["call"] and session.is_ancestor(head)
    time.sleep(0.1)  # nobody calls: a thread does it
    assert synced == ["call", "outcome"]
    assert session.head != head and session.is_ancestor(session.head)
    with session.call("b"):
        pass
    session.resolve(2, "done")
    do(session, "b")
    session.close()
    assert synced[2:] == ["call", "resolve", "call", "outcome"]
    synced.clear()
    with gate(LONG, ledger=path) as again:
        assert synced == ["outcome"], "what is reopened is on the disk before it is gone on with"
        assert again.head == again._access.journal.head.hex()


def test_nothing_is_waited_for_where_that_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        pytest.fail("no fsync of anything")

    for name in ("_sync", "sync_folder"):
        monkeypatch.setattr(ledger_file, name, never)
    monkeypatch.setattr(os, "fsync", never)
    session = gate(LONG, ledger=tmp_path / "s.ledger", durable=False)
    do(session, "b")
    assert session.head == session._access.journal.head.hex()
    time.sleep(0.1)
    session.close()


def test_a_disk_that_fails_later_permits_nothing_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.ledger"
    session = gate(LONG, ledger=path)
    do(session, "b")
    monkeypatch.setattr(ledger_file, "_sync", lambda _: no_room())
    time.sleep(0.12)
    monkeypatch.undo()
    with pytest.raises(tcc.Refused, match="R306"):
        do(session, "b")


@pytest.mark.parametrize("how", ["removed", "cut", "other lines", "another session's"])
def test_a_file_that_is_changed_meanwhile_permits_nothing(how: str, tmp_path: Path) -> None:
    path = tmp_path / "s"
    session = gate(LONG, ledger=path, key=KEY)
    do(session, "b")
    if how == "removed":
        path.unlink()
    elif how == "cut":
        os.truncate(path, 40)
    elif how == "other lines":
        with path.open("ab") as file:
            file.write(b"{}\n")
    else:
        head = decode_head(path)
        with path.open("ab") as file:
            file.write(seal({"kind": "call", "seq": 9}, head)[0])
    with pytest.raises(tcc.Refused, match="R306"):
        do(session, "b")
    assert session.allowed() == ()


def decode_head(path: Path) -> bytes:
    last = path.read_bytes().splitlines()[-1]
    found = decode(last, "line")
    assert isinstance(found, dict)
    return bytes.fromhex(str(found["~"]))


def test_the_cost_of_reopening_is_linear(tmp_path: Path) -> None:
    path = tmp_path / "s.ledger"
    session = gate(LONG, ledger=path, durable=False)
    for _ in range(200):
        do(session, "a", {"x": 1})
        with session.call("b") as permit:
            permit.failed()
    session.close()
    again = gate(LONG, ledger=path)
    assert len(again.history) == 400 and again.may_finish


def test_two_sessions_of_one_key_have_no_idempotency_key_in_common(tmp_path: Path) -> None:
    path, keys = tmp_path / "s.ledger", set()
    for started in (1, 2):
        path.unlink(missing_ok=True)  # and the key stays beside it
        session = gate(LONG, ledger=path, clock=lambda now=started: now)
        with session, session.call("b") as permit:
            keys.add(permit.key)
            assert session.key_of(permit.seq) == permit.key
            permit.done()
    assert len(keys) == 2
