"""A fork knows that it is another process than its parent, whoever forked."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable

import pytest

from tcc_runtime import process
from tcc_runtime.process import process_number

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")


def _silent_fork() -> int:
    """A fork that Python is not told of: none of its hooks is called."""
    return int(ctypes.CDLL(None).fork())


def _told_by_a_fork(fork: Callable[[], int]) -> tuple[bool, bool]:
    """Whether a fork, and a fork of that, has its own number."""
    assert process_number() == process_number() == os.getpid()
    read, write = os.pipe()
    child = fork()
    if child == 0:
        mine = process_number() == process_number() == os.getpid()
        if fork() == 0:
            os.write(write, b"\1" if process_number() == os.getpid() else b"\0")
            os._exit(0)
        os.wait()
        os.write(write, b"\1" if mine else b"\0")
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        below, mine = map(bool, pipe.read())
    assert process_number() == os.getpid()
    return mine, below


def test_a_fork_has_its_own_number() -> None:
    assert _told_by_a_fork(os.fork) == (True, True)


@pytest.mark.skipif(sys.platform != "linux", reason="the C library is looked up as Linux has it")
def test_a_fork_that_python_is_not_told_of_has_its_own_number() -> None:
    assert _told_by_a_fork(_silent_fork) == (True, True)


def test_where_the_system_empties_no_page_the_number_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process, "_known", memoryview(bytearray(1)))
    monkeypatch.setattr(process, "_told", 0)
    asked: list[int] = []
    getpid = os.getpid
    monkeypatch.setattr(os, "getpid", lambda: asked.append(1) or getpid())
    assert process_number() == process_number() == getpid()
    assert len(asked) == 2
    assert _told_by_a_fork(os.fork) == (True, True)


@pytest.mark.skipif(sys.platform != "linux", reason="there alone is it asked for")
def test_this_linux_empties_the_page() -> None:
    assert process._told == 1
