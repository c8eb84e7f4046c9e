"""Verdicts from other processes: files for the gate that has the session, else the ledger."""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tcc
from tcc_certs.formats.codec import encode
from tcc_certs.session.files import files_of
from tcc_runtime.errors import LedgerError, ResumeError, SettingsError
from tcc_runtime.gate.asking import verdict_files, verdicts
from tcc_runtime.gate.asking.places import Place, decide, places_of, questions_in
from tcc_runtime.gate.asking.verdict_files import Handed
from tests.gate.test_ask import BIG, HOUR, START, Desk
from tests.oracle_session.writer import KEY


def place(desk: Desk) -> Place:
    assert desk.ledger is not None
    (found,) = places_of(str(desk.ledger), KEY)
    return found


def decided(desk: Desk, question: tcc.Pending, verdict: Any = "approved", **more: Any) -> None:
    decide([place(desk)], question.id, verdict, "Ann", clock=lambda: desk.ms, **more)


def left(desk: Desk) -> list[str]:
    """The names of the files that wait for a gate."""
    assert desk.ledger is not None
    folder = verdict_files.folder_of(desk.ledger)
    return sorted(one.name for one in folder.iterdir()) if folder.exists() else []


def eventually(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_verdict_on_a_closed_session_is_in_its_ledger(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    first, second = desk.pending(**BIG), desk.pending(**{**BIG, "amount": 300})
    desk.gate.close()
    decided(desk, first)
    decided(desk, second, "denied", reason="no")
    assert left(desk) == []
    desk.gate = desk.opened()
    desk.make("refund", **BIG)
    assert desk.code(**{**BIG, "amount": 300}) == "R209"


def test_a_verdict_on_an_idle_session_counts_for_its_next_call(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    decided(desk, desk.pending(**BIG))
    desk.make("refund", **BIG)


def test_a_gate_with_a_call_under_way_takes_a_verdict_within_a_second(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    question = desk.pending(**BIG)
    with desk.gate.call("note", {"text": "x"}) as permit:
        began = time.monotonic()
        path = verdict_files.hand_in(place(desk).ledger, KEY, handed(desk, question))
        eventually(lambda: not path.exists())
        assert time.monotonic() - began < 1
        assert [one["verdict"] for one in desk.records("approval")] == ["approved"]
        permit.done()
    assert left(desk) == []
    desk.make("refund", **BIG)


def handed(desk: Desk, question: tcc.Pending, **more: Any) -> Handed:
    told = Handed(question.id, desk.gate.session_id, "approved", "Ann")
    return told._replace(**more)


def test_an_idle_gate_takes_a_denial_and_tells_its_agent_the_reason(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    decided(desk, desk.pending(**BIG), "denied", reason="Not in June.")
    with pytest.raises(tcc.Refused, match=r"a person denied the call: Not in June\."):
        desk.make("refund", **BIG)
    assert desk.ledger is not None and "June" not in desk.ledger.read_text()


def test_the_next_call_takes_a_verdict_that_waits(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    question = desk.pending(**BIG)
    desk.gate.close()
    verdict_files.hand_in(place(desk).ledger, KEY, handed(desk, question))
    desk.gate = desk.opened()
    desk.make("refund", **BIG)
    assert left(desk) == []


FORGED: list[tuple[str, Callable[[dict[str, Any]], Any]]] = [
    ("another key", lambda told: told | {"mac": "0" * 64}),
    ("another person", lambda told: told | {"who": "Eve"}),
    ("another verdict", lambda told: told | {"verdict": "denied"}),
    ("a member more", lambda told: told | {"more": 1}),
    ("no object", lambda told: [told]),
    ("no text", lambda told: told | {"mac": None}),
]


@pytest.mark.parametrize(("name", "change"), FORGED)
def test_a_verdict_that_is_not_made_with_the_key_is_ignored(
    tmp_path: Path, name: str, change: Callable[[dict[str, Any]], Any]
) -> None:
    desk = Desk(tmp_path)
    question = desk.pending(**BIG)
    desk.gate.close()
    path = verdict_files.hand_in(place(desk).ledger, KEY, handed(desk, question))
    path.write_bytes(encode(change(json.loads(path.read_bytes()))))
    desk.gate = desk.opened()
    assert desk.code(**BIG) == "R211"
    assert not desk.pending(**BIG).is_new
    assert left(desk) == []


def test_a_verdict_for_another_session_or_question_is_ignored(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    question, other = desk.pending(**BIG), desk.pending(**{**BIG, "amount": 300})
    ledger, foreign = place(desk).ledger, "01a22b1f-6fb8-7dbb-82ee-1cf7e39d47bb"
    for told in (handed(desk, question, session_id=foreign), handed(desk, other)):
        desk.gate.close()
        path = verdict_files.hand_in(ledger, KEY, told)
        path.rename(path.with_name(question.id))
        desk.gate = desk.opened()
        desk.pending(**BIG)
        assert left(desk) == []


@pytest.mark.parametrize("made", ["empty", "large", "link", "folder", "pipe", "other name"])
def test_what_is_no_verdict_changes_nothing(tmp_path: Path, made: str) -> None:
    desk = Desk(tmp_path)
    question = desk.pending(**BIG)
    folder = verdict_files.folder_of(place(desk).ledger)
    folder.mkdir()
    path = folder / (question.id if made != "other name" else f"x{question.id}")
    if made == "large":
        path.write_bytes(b"{" * 20_000)
    elif made == "link":
        path.symlink_to("/dev/zero")
    elif made == "folder":
        path.mkdir()
    elif made == "pipe":
        os.mkfifo(path)
    else:
        path.write_bytes(b"")
    assert desk.pending(**BIG).id == question.id
    desk.gate.approve(question.id, who="Ann")
    desk.make("refund", **BIG)


def test_the_first_of_two_verdicts_in_files_stands(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    question = desk.pending(**BIG)
    desk.gate.close()
    verdict_files.hand_in(place(desk).ledger, KEY, handed(desk, question))
    with pytest.raises(FileExistsError):
        verdict_files.hand_in(place(desk).ledger, KEY, handed(desk, question, verdict="denied"))
    assert left(desk) == [question.id]


def test_a_verdict_that_a_killed_process_left_is_delivered_by_the_next_one(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    question = desk.pending(**BIG)
    desk.gate.close()
    verdict_files.hand_in(place(desk).ledger, KEY, handed(desk, question, who="Ben"))
    with pytest.raises(tcc.VerdictError) as raised:
        decided(desk, question, "denied")
    assert raised.value.why == "decided"
    assert [one["who"] for one in desk.records("approval")] == ["Ben"]
    assert left(desk) == []


def test_a_file_whose_verdict_is_recorded_is_removed(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    question, waiting = desk.pending(**BIG), desk.pending(**{**BIG, "amount": 300})
    desk.gate.approve(question.id, who="Ann")
    desk.gate.close()
    verdict_files.hand_in(place(desk).ledger, KEY, handed(desk, question, verdict="denied"))
    desk.gate = desk.opened()
    assert desk.pending(**{**BIG, "amount": 300}).id == waiting.id
    assert left(desk) == []
    desk.make("refund", **BIG)


def test_errors_of_a_verdict_name_the_question(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    question = desk.pending(**BIG)
    desk.gate.close()
    for bad in ("0" * 32, "x", ""):
        with pytest.raises(tcc.VerdictError) as raised:
            decide([place(desk)], bad, "approved", "Ann")
        assert raised.value.why == "unknown"
    desk.ms += 2 * HOUR + 1
    with pytest.raises(tcc.VerdictError) as raised:
        decided(desk, question)
    assert raised.value.why == "expired"
    desk.ms = START
    decided(desk, question)
    with pytest.raises(tcc.VerdictError) as raised:
        decided(desk, question)
    assert raised.value.why == "decided"
    with pytest.raises(ValueError, match="who"):
        decide([place(desk)], question.id, "approved", "")


def test_another_key_decides_nothing(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    question = desk.pending(**BIG)
    desk.gate.close()
    (other,) = places_of(str(desk.ledger), bytes(32))
    with pytest.raises(ResumeError, match="a record made with this key"):
        decide([other], question.id, "approved", "Ann", clock=lambda: desk.ms)
    (without,) = places_of(str(desk.ledger))
    with pytest.raises(ResumeError, match="64 hexadecimal digits"):
        decide([without], question.id, "approved", "Ann", clock=lambda: desk.ms)
    assert left(desk) == [] and desk.records("approval") == []


def test_a_torn_last_line_is_cut_before_a_verdict(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    question = desk.pending(**BIG)
    desk.gate.close()
    with place(desk).ledger.open("ab") as file:
        file.write(b'{"kind":"call"')
    decided(desk, question)
    desk.gate = desk.opened()
    desk.make("refund", **BIG)


@pytest.mark.parametrize("cut", [False, True])
def test_a_verdict_continues_a_ledger_of_several_files(tmp_path: Path, cut: bool) -> None:
    desk = Desk(tmp_path, roll_bytes=1000)
    question = desk.pending(**BIG)
    before = len(files_of(place(desk).ledger))
    while len(files_of(place(desk).ledger)) == before:
        desk.make("note", text="x")
    desk.gate.close()
    if cut:  # as after a crash between a `roll` record and the next file
        files_of(place(desk).ledger)[-1].unlink()
    decided(desk, question)
    assert len(files_of(place(desk).ledger)) >= before + 1
    assert questions_in(place(desk)).verdicts == {question.id: "approved"}
    desk.gate = desk.opened()
    desk.make("refund", **BIG)
    assert [one.ledger.name for one in places_of(str(tmp_path))] == ["s.ledger"]


def test_a_lock_that_no_gate_gives_back_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(tmp_path)
    question = desk.pending(**BIG)
    desk.gate.close()
    monkeypatch.setattr("tcc_runtime.gate.asking.places._LONGEST", 0.2)
    with place(desk).ledger.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(LedgerError) as raised:
            decided(desk, question)
    assert isinstance(raised.value.cause, BlockingIOError)
    assert left(desk) == []


def test_two_processes_that_decide_at_once_record_one_verdict(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    question = desk.pending(**BIG)
    errors: list[Exception] = []

    def run(verdict: str) -> None:
        try:
            decided(desk, question, verdict)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=[one]) for one in ("approved", "denied") * 3]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(desk.records("approval")) == 1
    assert len(errors) == 5
    assert all(isinstance(one, tcc.VerdictError) for one in errors)


def test_a_folder_has_the_questions_of_all_its_ledgers(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    one, two = Desk(tmp_path / "a"), Desk(tmp_path / "b")
    first, second = one.pending(**BIG), two.pending(**BIG)
    folder = tmp_path / "all"
    folder.mkdir()
    for name, desk in (("1.ledger", one), ("2.ledger", two)):
        desk.gate.close()
        assert desk.ledger is not None
        desk.ledger.rename(folder / name)
        (folder / f"{name}.key").write_text(f"{KEY.hex()}\n")
    (folder / "notes.txt").write_text("no ledger")
    places = places_of(str(folder))
    found = [entry.pending.id for one in places for entry in questions_in(one).open(START)]
    assert found == [first.id, second.id]
    decide(places, second.id, "approved", "Ann", clock=lambda: START)
    assert questions_in(places[1]).open(START) == []
    with pytest.raises(SettingsError, match="stores at a URL come with a later release"):
        places_of("postgres://db/sessions")


def test_a_store_has_the_keys_of_its_sessions(tmp_path: Path) -> None:
    desk = Desk(None)
    store = tcc.Sessions(desk.artifact, tmp_path / "store", clock=lambda: START)
    desk.gate = store.open()
    desk.make("find", order="a")
    question = desk.pending(**BIG)
    decide(places_of(str(tmp_path / "store")), question.id, "approved", "Ann", clock=lambda: START)
    desk.make("refund", **BIG)


def test_a_closed_gate_is_watched_no_longer(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.pending(**BIG)
    access = desk.gate._access
    assert access in verdicts._watch._watched
    desk.gate.close()
    eventually(lambda: access not in verdicts._watch._watched)
