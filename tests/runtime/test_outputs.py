"""What is written takes free names and those of regular files, and loses nothing when it fails."""

from __future__ import annotations

import os
import pickle
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tcc_runtime.errors import LedgerBusy, LedgerError, OutputBusy, OutputRefused
from tcc_runtime.ledger import outputs
from tcc_runtime.ledger.outputs import create, write_whole
from tcc_runtime.ledger.sinks import LedgerFile, LedgerTail

NOT_FILES = ["folder", "pipe", "socket", "device", "link to a device", "link to a pipe", "dangling"]


@pytest.fixture(autouse=True)
def _no_waiting() -> Iterator[None]:
    """A writer that waits for a reader of a pipe would wait for ever."""
    signal.alarm(30)
    yield
    signal.alarm(0)


def put(kind: str, path: Path) -> None:
    """Makes what is no regular file."""
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(path))
    elif kind == "device":
        path.symlink_to("/dev/null")  # a device of one's own needs rights
    elif kind == "link to a device":
        path.symlink_to("/dev/full")
    elif kind == "link to a pipe":
        os.mkfifo(path.with_name("the pipe"))
        path.symlink_to("the pipe")
    else:
        path.symlink_to("nothing")


def whole(path: Path) -> None:
    write_whole(path, b"new")


def new(path: Path) -> None:
    os.close(create(path, overwrite=False))


def over(path: Path) -> None:
    os.close(create(path, overwrite=True))


@pytest.mark.parametrize("write", [whole, new, over])
@pytest.mark.parametrize("kind", NOT_FILES)
def test_what_is_no_regular_file_is_refused_and_stays(kind, write, tmp_path: Path):
    path = tmp_path / "out"
    put(kind, path)
    before = {p.name: (p.lstat().st_mode, p.lstat().st_ino) for p in tmp_path.iterdir()}
    with pytest.raises(OutputRefused) as refused:
        write(path)
    assert refused.value.filename == str(path)
    assert refused.value.strerror.startswith("TCC801: a")
    assert refused.value.strerror.endswith("only a regular file is replaced; name another file")
    after = {p.name: (p.lstat().st_mode, p.lstat().st_ino) for p in tmp_path.iterdir()}
    assert after == before


@pytest.mark.parametrize("kind", NOT_FILES)
def test_a_ledger_is_no_exception(kind, tmp_path: Path):
    path = tmp_path / "out"
    put(kind, path)
    for sink in (LedgerFile(path, overwrite=True), LedgerFile(path)):
        with pytest.raises(LedgerError, match="TCC801"):
            sink.open()
    with pytest.raises(LedgerError, match="TCC801"):
        LedgerTail(path, 0, 0).begin()


def test_a_link_to_a_file_stays_and_its_file_is_replaced(tmp_path: Path):
    (tmp_path / "deep").mkdir()
    real = tmp_path / "deep" / "real"
    for write in (whole, over):
        real.write_bytes(b"old")
        real.chmod(0o600)
        (tmp_path / "first").unlink(missing_ok=True)
        (tmp_path / "link").unlink(missing_ok=True)
        (tmp_path / "first").symlink_to("deep/real")
        (tmp_path / "link").symlink_to("first")
        write(tmp_path / "link")
        assert (tmp_path / "link").is_symlink()
        assert real.read_bytes() == (b"new" if write is whole else b"")
        assert real.stat().st_mode & 0o777 == 0o600
        assert [p.name for p in real.parent.iterdir()] == ["real"]


def test_a_file_that_is_there_is_replaced_only_where_that_is_allowed(tmp_path: Path):
    path = tmp_path / "out"
    path.write_bytes(b"old")
    with pytest.raises(FileExistsError):
        new(path)
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_whatever_fails_the_old_bytes_stay_and_nothing_beside_them(call, tmp_path, monkeypatch):
    path = tmp_path / "out"
    path.write_bytes(b"old")

    def broken(*_):
        raise OSError(5, "input/output error")

    if call == "replace":
        monkeypatch.setattr(Path, "replace", broken)
    elif call == "fsync":
        monkeypatch.setattr(os, "fsync", broken)
    else:
        monkeypatch.setattr(outputs, "_beside", broken)
    for write in (whole, over) if call != "fsync" else (whole,):
        with pytest.raises(OSError, match="input/output error"):
            write(path)
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_name_that_becomes_a_pipe_meanwhile_is_left_alone(tmp_path, monkeypatch):
    path, fsync = tmp_path / "out", os.fsync

    def swapped(handle: int) -> None:
        fsync(handle)
        if not path.exists():
            os.mkfifo(path)

    monkeypatch.setattr(os, "fsync", swapped)
    with pytest.raises(OutputRefused):
        whole(path)
    assert path.is_fifo()
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_folder_that_takes_nothing_is_said_and_nothing_is_lost():
    for write in (whole, new, over):
        with pytest.raises(OSError, match=r"out"):
            write(Path("/proc/self/out"))
        with pytest.raises(OSError, match="out"):
            write(Path("/dev/null/out"))


def test_a_file_that_another_run_writes_is_not_replaced(tmp_path: Path):
    path = tmp_path / "out"
    handle = create(path, overwrite=False)
    with pytest.raises(OutputBusy):
        over(path)
    with pytest.raises(LedgerBusy):
        LedgerFile(path, overwrite=True).open()
    os.close(handle)
    over(path)
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_the_errors_come_back_from_a_worker_as_they_were():
    for error in (OutputRefused("a", "a folder"), OutputBusy("a")):
        back = pickle.loads(pickle.dumps(error))
        assert (type(back), str(back), back.filename) == (type(error), str(error), "a")
