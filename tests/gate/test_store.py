"""A store of sessions: who may begin one, what is left when a process dies, and what is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3

import tcc
from tcc_certs.errors import Rejected
from tcc_certs.session import validate
from tcc_runtime.errors import LedgerError, ResumeError, SettingsError
from tcc_runtime.gate import store
from tcc_runtime.gate.journal import ledger_file, private_files
from tests.forking import launcher
from tests.gate.grammars import LONG, ORDERED, SHOP, artifact, bytes_of, do

WHO = ("https://issuer.example", "alice")
WORKER = """
import os, signal, sys
import tcc
from tcc_runtime.gate import store
from tcc_runtime.gate.journal import private_files
mode, artifact, folder, place = sys.argv[1:]
if mode == "begin":
    sys.stdin.readline()
    with tcc.Sessions(artifact, folder).open(principal="alice") as gate:
        print(gate.session_id, flush=True)
else:
    left = [int(place)]
    def counted(real):
        def made(*arguments, **more):
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1
            return real(*arguments, **more)
        return made
    for name in ("open", "write", "fsync", "replace"):
        setattr(os, name, counted(getattr(os, name)))
    for module in (store, private_files):
        module.sync_folder = counted(module.sync_folder)
    with tcc.Sessions(artifact, folder).open(principal="alice") as gate:
        with gate.call("b") as permit:
            permit.done()
    print(left[0])
"""


def sessions(folder: Path, text: str = LONG, **more: Any) -> tcc.Sessions:
    more = {"durable": False, **more}
    return tcc.Sessions(artifact(text), folder / "store", **more)


def judged(found: tcc.Sessions, session_id: str) -> tuple[str, str]:
    data = (found.folder / f"{session_id}.ledger").read_bytes()
    said = validate(data, bytes_of(found.artifact), key=found.key_of(session_id))
    return said.word, said.claim_type


def test_a_store_is_its_owners_alone(tmp_path: Path) -> None:
    found = sessions(tmp_path, durable=True)
    with found.open() as one, found.open(principal=WHO) as two:
        names = {path.name: path for path in found.folder.iterdir()}
        assert set(names) == {
            *("store.json", "store.key", "lock", "principals", "artifact.tcca"),
            *(f"{gate.session_id}.ledger" for gate in (one, two)),
        }
        modes = {name: path.stat().st_mode & 0o777 for name, path in names.items()}
        assert found.folder.stat().st_mode & 0o777 == modes.pop("principals") == 0o700
        assert set(modes.values()) == {0o600}
        told = json.loads(names["store.json"].read_text())
        assert (told["format"], told["format_version"]) == ("tcc.store", "1.0")
        assert told["artifact"] == found.artifact.digest.hex()
        assert len(names["store.key"].read_bytes()) == 32
        (named,) = names["principals"].iterdir()
        parts = [part.encode() for part in WHO]
        of = len(parts[0]).to_bytes(4, "little") + parts[0] + parts[1]
        assert named.name == two.principal == blake3(of, key=found.key).hexdigest()
        assert named.read_text().strip() == two.session_id == found.session_of(WHO)
        assert one.principal is None


def test_a_key_is_the_stores_and_the_sessions(tmp_path: Path) -> None:
    found = sessions(tmp_path)
    with found.open() as gate:
        header = json.loads((found.folder / f"{gate.session_id}.ledger").read_bytes())
        material = found.key + bytes.fromhex(header["nonce"])
        key = blake3(material, derive_key_context="tcc.store/1.0 session key").digest()
        assert found.key_of(gate.session_id) == key
        assert judged(found, gate.session_id) == ("INCOMPLETE", "ConformantPrefix")


def test_each_open_begins_a_session_and_an_id_goes_on_with_one(tmp_path: Path) -> None:
    found = sessions(tmp_path)
    one, two = found.open(), found.open()
    assert one.session_id != two.session_id
    do(one, "b")
    one.close()
    with found.get(one.session_id) as again:
        assert len(again.history) == 1
        again.finish()
    with pytest.raises(ResumeError, match="its end"):
        found.get(one.session_id)
    assert sorted(s.state for s in found.list()) == ["ended", "live"]
    two.finish(abandon=True)
    assert sorted((s.calls, s.state) for s in found.list()) == [(0, "abandoned"), (1, "ended")]
    two.close()


@pytest.mark.parametrize("given", ["x", "../store", "", "0" * 36, 7, None])
def test_an_id_is_one_before_it_is_a_path(given: Any, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="session"):
        sessions(tmp_path).get(given)


def test_a_principal_has_one_session_until_its_end(tmp_path: Path) -> None:
    found, other = sessions(tmp_path), sessions(tmp_path)
    one, again = found.open(principal=WHO), other.open(principal=WHO)
    assert one.session_id == again.session_id
    assert found.open(principal="alice").session_id != one.session_id
    do(one, "b")
    do(again, "b")
    assert len(one.history) == 2
    again.finish()
    with pytest.raises(tcc.Refused, match="R303") as refused:
        do(one, "b")
    assert refused.value.spent is not None and refused.value.spent.session == one.session_id
    later = found.open(principal=WHO)
    assert later.session_id != one.session_id and not later.history
    assert judged(found, one.session_id) == ("VALID", "Conformant")


def test_issuer_and_subject_do_not_run_together(tmp_path: Path) -> None:
    found = sessions(tmp_path)
    names = {found.name_of(pair) for pair in [("a", "bc"), ("ab", "c"), ("", "abc"), "abc"]}
    assert len(names) == 3
    for wrong in [("a", "\ud800"), ("a", 5), 7]:
        with pytest.raises((SettingsError, TypeError)):
            found.name_of(wrong)  # type: ignore[arg-type]


def test_a_renewal_comes_after_its_time_and_with_nothing_under_way(tmp_path: Path) -> None:
    now = [1_000_000]
    found = sessions(tmp_path, clock=lambda: now[0], renew_ms=1000, wait=True)
    first = found.open(principal=WHO)
    do(first, "b")
    now[0] += 999
    assert found.open(principal=WHO).session_id == first.session_id
    now[0] += 1
    with first.call("b") as permit:
        ran = begun(found, tmp_path)
        assert "somebody else has its lock" in ran
        permit.done()
    second = found.open(principal=WHO)
    assert second.session_id != first.session_id and not second.history
    assert sorted(s.state for s in found.list()) == ["ended", "live"]
    now[0] -= 10**6 - 5
    assert found.open(principal=WHO).session_id == second.session_id, "the clock went back"


def begun(found: tcc.Sessions, folder: Path) -> str:
    """What another process says that does not wait for the lock."""
    program = (
        "import sys, tcc\n"
        "tcc.Sessions(sys.argv[1], sys.argv[2], False, renew_ms=1, wait=False)"
        f".open(principal={WHO!r})"
    )
    tcc.save(found.artifact, folder / "a.tcca")
    command = [sys.executable, "-c", program, str(folder / "a.tcca"), str(found.folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60).stderr


def test_connections_that_begin_at_once_are_in_one_session(tmp_path: Path) -> None:
    tcc.save(artifact(LONG), tmp_path / "a.tcca")
    command = launcher("tcc", "-c", WORKER, "begin", str(tmp_path / "a.tcca"))
    ran = [
        subprocess.Popen(
            [*command, str(tmp_path / "store"), "0"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(8)
    ]  # fmt: skip
    for one in ran:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    said = {one.communicate(timeout=60)[0].strip() for one in ran}
    assert len(said) == 1 and [one.returncode for one in ran] == [0] * 8
    assert [s.id for s in sessions(tmp_path).list()] == [*said]


def killed(folder: Path, place: int) -> subprocess.CompletedProcess[str]:
    command = launcher("tcc", "-c", WORKER, "kill", str(folder / "a.tcca"))
    return subprocess.run(
        [*command, str(folder / "store"), str(place)], capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("place", range(0, 60, 4))
@pytest.mark.sampled(6)
def test_a_process_is_killed_at_any_write(place: int, tmp_path: Path) -> None:
    tcc.save(artifact(LONG), tmp_path / "a.tcca")
    check_killed(tmp_path, place)


def check_killed(folder: Path, place: int) -> bool:
    """Whether the process was killed; the store is one, and nothing that was made is lost."""
    ran = killed(folder, place)
    found = sessions(folder)
    before = {s.id: s.calls for s in found.list()}
    with found.open(principal="alice") as gate:
        # One that was begun and is no principal's yet was never called in.
        others = [calls for session_id, calls in before.items() if session_id != gate.session_id]
        assert not any(others) and len(gate.history) == before.get(gate.session_id, 0)
        do(gate, "b")
    for one in found.list():
        assert judged(found, one.id)[0] == "INCOMPLETE"
    assert found.open(principal="alice").session_id == gate.session_id
    return ran.returncode == -9


@pytest.mark.campaign
def test_a_process_is_killed_at_every_write(tmp_path: Path) -> None:
    place = 0
    while True:
        folder = tmp_path / str(place)
        folder.mkdir()
        tcc.save(artifact(LONG), folder / "a.tcca")
        if not check_killed(folder, place):
            break
        place += 1
    assert place > 30


def test_a_store_of_another_artifact_is_refused(tmp_path: Path) -> None:
    with sessions(tmp_path).open() as gate:
        pass
    with pytest.raises(ResumeError, match="a store of the artifact"):
        sessions(tmp_path, ORDERED)
    alien = tcc.Sessions(artifact(ORDERED), tmp_path / "other", False)
    with alien.open() as theirs:
        ledger = alien.folder / f"{theirs.session_id}.ledger"
    found = sessions(tmp_path)
    (found.folder / ledger.name).write_bytes(ledger.read_bytes())
    (found.folder / ledger.name).chmod(0o600)
    with pytest.raises(ResumeError, match="artifact"):
        found.get(theirs.session_id)
    with pytest.raises(ResumeError):
        found.list()
    found.look(gate.session_id)


def test_a_ledger_under_another_id_or_of_another_store_is_refused(tmp_path: Path) -> None:
    found, other = sessions(tmp_path / "1"), sessions(tmp_path / "2")
    with found.open() as one, other.open() as theirs:
        pass
    ledger, name = other.folder / f"{theirs.session_id}.ledger", f"{theirs.session_id}.ledger"
    os.link(ledger, found.folder / name)
    with pytest.raises(ResumeError, match="key_commitment"):
        found.get(theirs.session_id)
    wrong = one.session_id[:-1] + ("0" if one.session_id[-1] != "0" else "1")
    os.link(found.folder / f"{one.session_id}.ledger", found.folder / f"{wrong}.ledger")
    with pytest.raises(ResumeError, match="session_id"):
        found.get(wrong)


def test_what_the_start_is_changed_to_is_refused(tmp_path: Path) -> None:
    found = sessions(tmp_path)
    with found.open(principal=WHO) as gate:
        pass
    path = found.folder / f"{gate.session_id}.ledger"
    for a, b in [(b'"principal":"', b'"principal":"0'), (b'"nonce":"', b'"nonce":"0'), (b"{", b"")]:
        data = path.read_bytes()
        path.write_bytes(data.replace(a, b, 1))
        with pytest.raises((ResumeError, Rejected)):
            found.open(principal=WHO)
        path.write_bytes(data)
    with found.open(principal="bob") as other:
        pass
    named = found.folder / "principals" / found.name_of(WHO)
    named.write_text(other.session_id)
    with pytest.raises(ResumeError, match="expected"):
        found.open(principal=WHO)
    for wrong in ("", "../x", "x" * 500):
        named.write_text(wrong)
        with pytest.raises(ResumeError, match="the id of a session"):
            found.open(principal=WHO)


def test_a_principal_whose_ledger_is_gone_begins_no_other(tmp_path: Path) -> None:
    found = sessions(tmp_path)
    with found.open(principal=WHO) as gate:
        do(gate, "b")
    path = found.folder / f"{gate.session_id}.ledger"
    path.rename(tmp_path / "kept")
    with pytest.raises(ResumeError, match="found none"):
        found.open(principal=WHO)
    (tmp_path / "kept").rename(path)
    assert found.open(principal=WHO).session_id == gate.session_id


HOSTILE = ("folder link", "folder mode", "folder file", "key link", "key mode", "key short",
           "json link", "json other", "lock link", "lock fifo", "ledger link", "ledger mode",
           "principals link", "principals mode", "principal link", "foreign")  # fmt: skip


@pytest.mark.parametrize("how", HOSTILE)
def test_a_hostile_store_is_refused(how: str, tmp_path: Path) -> None:
    found = sessions(tmp_path)
    with found.open(principal=WHO) as gate:
        pass
    folder, aside = found.folder, tmp_path / "aside"
    what, way = how.split() if " " in how else ("", how)
    path = {
        "folder": folder, "key": folder / "store.key", "json": folder / "store.json",
        "lock": folder / "lock", "ledger": folder / f"{gate.session_id}.ledger",
        "principals": folder / "principals",
        "principal": folder / "principals" / str(gate.principal),
    }.get(what, folder)  # fmt: skip
    if way == "link":
        path.rename(aside)
        path.symlink_to(aside)
    elif way == "mode":
        path.chmod(path.stat().st_mode | 0o040)
    elif way == "fifo":
        path.unlink()
        os.mkfifo(path, 0o600)
    elif way == "file":
        path.rename(aside)
        path.write_text("")
    elif way == "short":
        path.write_bytes(b"x" * 31)
    elif way == "other":
        path.write_text('{"format":"tcc.other"}')
    else:
        path.rename(aside)
        path.mkdir(mode=0o700)
        (path / "notes").write_text("mine")
    with pytest.raises((ResumeError, LedgerError)):
        sessions(tmp_path).open(principal=WHO)
    if way == "foreign":
        assert [one.name for one in path.iterdir() if one.name != "lock"] == ["notes"]


def test_a_start_that_came_to_nothing_leaves_no_file(tmp_path: Path) -> None:
    found = sessions(tmp_path)
    gate = found.open()
    assert gate.untouched and gate.withdraw() and found.list() == ()
    gate = found.open()
    with pytest.raises(tcc.Refused):
        do(gate, "nothing")
    assert not gate.untouched and not gate.withdraw()
    gate = found.open(principal=WHO)
    assert not gate.untouched and not gate.withdraw(), "it may be another connection's"
    with found.get(gate.session_id) as again:
        assert not again.withdraw()


def test_nothing_is_synced_where_that_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        pytest.fail("no fsync of anything, the key included")

    monkeypatch.setattr(os, "fsync", never)
    monkeypatch.setattr(ledger_file, "_sync", never)
    for module in (store, private_files):
        monkeypatch.setattr(module, "sync_folder", never)
    with sessions(tmp_path).open(principal=WHO) as gate:
        do(gate, "b")
        time.sleep(0.12)


def test_two_gates_on_one_session_see_each_other(tmp_path: Path) -> None:
    found = sessions(tmp_path, SHOP)
    one = found.open()
    with found.get(one.session_id) as two:
        do(one, "approve", {"order": "ord-1"})
        arguments = {"part": "half", "order": "ord-1", "amount": 2}
        do(two, "refund", arguments)
        assert len(one.history) == len(two.history) == 2
    (listed,) = found.list()
    assert (listed.calls, listed.unknown, listed.state) == (2, 0, "live")
    with one.call("find", {"by": "mail", "who": "x"}):
        (listed,) = found.list()
        assert (listed.calls, listed.unknown) == (3, 1)


def test_what_is_given_is_the_grammars_to_ask_for(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="given"):
        sessions(tmp_path).open({"user": "alice"})


def test_a_spent_session_says_so(tmp_path: Path) -> None:
    text = """grammar once version "1"

tool a
tool b

plan = a b?
"""
    found = sessions(tmp_path, text)
    gate = found.open()
    with pytest.raises(tcc.Refused) as refused:
        do(gate, "b")
    assert refused.value.spent is None and "spent" not in str(refused.value)
    do(gate, "a")
    with gate.call("b") as permit:
        assert gate.check("a").spent is None, "a call is under way"
        permit.done()
    assert [s.state for s in found.list()] == ["spent"] and gate.may_finish
    with pytest.raises(tcc.Refused) as refused:
        do(gate, "a")
    assert refused.value.spent == gate.check("b").spent
    assert refused.value.spent is not None
    assert refused.value.spent.session == gate.session_id
    assert refused.value.spent.way_on == "connect again, and another session begins"
    assert "This session is spent" in str(refused.value)
    gate.finish()
    assert [s.state for s in found.list()] == ["ended"]


def test_a_finished_ledger_is_kept_beside_and_an_unfinished_one_never(tmp_path: Path) -> None:
    path = tmp_path / "s.ledger"
    with tcc.Gate(artifact(LONG), ledger=path, rolls=True) as first:
        do(first, "b")
    with tcc.Gate(artifact(LONG), ledger=path, rolls=True) as again:
        assert again.session_id == first.session_id
        again.finish()
    before = path.read_bytes()
    kept = tmp_path / f"s.ledger.{first.session_id}"
    kept.write_text("mine")
    with pytest.raises(ResumeError, match="a name that is free"):
        tcc.Gate(artifact(LONG), ledger=path, rolls=True)
    assert path.read_bytes() == before and kept.read_text() == "mine"
    kept.unlink()
    with tcc.Gate(artifact(LONG), ledger=path, rolls=True) as second:
        assert second.session_id != first.session_id and kept.read_bytes() == before
    key = bytes.fromhex((tmp_path / "s.ledger.key").read_text().strip())
    for data in (before, path.read_bytes()):
        assert "Conformant" in validate(data, bytes_of(artifact(LONG)), key=key).claim_type
    with pytest.raises(ResumeError, match="its end: use another path, or rolls=True"):
        tcc.Gate(artifact(LONG), ledger=kept, key=key)


def test_a_roll_over_that_was_cut_off_is_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "s.ledger"
    with tcc.Gate(artifact(LONG), ledger=path) as first:
        do(first, "b")
        first.finish()
    os.link(path, tmp_path / f"s.ledger.{first.session_id}")
    with tcc.Gate(artifact(LONG), ledger=path, rolls=True) as second:
        assert second.session_id != first.session_id


class Name(str):
    """A text of the caller's own type."""


def test_who_resolves_is_in_the_ledger(tmp_path: Path) -> None:
    found = sessions(tmp_path, clock=lambda: 7)
    gate = found.open()
    with gate.call("b"):
        pass
    for wrong in ("", "a\nb", "x" * 256):
        with pytest.raises(ValueError, match="who"):
            gate.resolve(1, "done", who=wrong)
    gate.resolve(1, "done", who=Name("Ada Lovelace"))
    line = json.loads((found.folder / f"{gate.session_id}.ledger").read_bytes().splitlines()[-1])
    assert (line["kind"], line["who"], line["at_ms"]) == ("resolve", "Ada Lovelace", 7)
    assert judged(found, gate.session_id)[0] == "INCOMPLETE"
    assert found.get(gate.session_id).history[0].outcome == "done"
