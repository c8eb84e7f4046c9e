"""Which process this is; and what a run changes of it: Ctrl-C deferred, the cycle collector paused.

Which: who has locks asks at each of them, as a fork has its parent's memory and none of its locks.
The system is asked where it may be another one than before: a page of memory that Linux empties in
a fork, whoever forks, says so in a tenth of the time.

Ctrl-C: an interrupted run ends in a valid result, so the signal must not cut a step in two.  Only
Python's own handler is replaced, only in the main thread; a second Ctrl-C raises at once.

Cycle collector: a run and a validation make up to millions of tuples that refer to one another and
are never in a cycle, so each collection goes through all of them and frees nothing; it took half
of the time of a long run, and a sixth of its validation.  Reference counting goes on, and tests
hold that no run or validation leaves a cycle.  Where code of the caller runs in between, which may
make cycles, nothing is paused.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from types import FrameType
from typing import Final

# Which process this is.

_WIPED: Final = 18  # MADV_WIPEONFORK of madvise(2), Linux 4.14
_known = memoryview(bytearray(1))  # 0: the system is to be asked
_told = 0  # what it is once that has told; 0 where a fork could not be told from its parent

if sys.platform == "linux":
    import mmap

    with suppress(OSError):  # an older Linux, or what is like one
        _page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        _page.madvise(_WIPED)
        _known, _told = memoryview(_page), 1

_number = 0


def process_number() -> int:
    """The number of this process, of a fork its own."""
    return _number if _known[0] else _asked()


def _asked() -> int:
    global _number
    _number = os.getpid()
    _known[0] = _told
    return _number


def _forked() -> None:
    _known[0] = 0  # whatever the system did


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)

# What a run changes.


class Interrupts:
    """Tells whether Ctrl-C was pressed, from when it is held back.

    A context manager; on leaving, Python's handler is back.

    Attributes:
        pressed: whether Ctrl-C was pressed since it is held back.
    """

    __slots__ = ("_asked", "_held", "pressed")

    def __init__(self) -> None:
        self.pressed = self._asked = self._held = False

    def __enter__(self) -> Interrupts:
        return self

    def __exit__(self, *_: object) -> None:
        if self._held:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def hold(self) -> None:
        """Holds Ctrl-C back from here on."""
        if not self._asked:
            self._asked = True
            self._held = _is_ours()
            if self._held:
                signal.signal(signal.SIGINT, self._note)

    @property
    def unheld(self) -> bool:
        """True if Ctrl-C, if pressed, was pressed before it was held back."""
        return not self._asked and _is_ours()

    def _note(self, _signal: int, _frame: FrameType | None) -> None:
        if self.pressed:
            raise KeyboardInterrupt
        self.pressed = True


def _is_ours() -> bool:
    in_main = threading.current_thread() is threading.main_thread()
    return in_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler


_lock = Lock()
_runs = 0  # that are under way; the collector is one for the whole process
_enabled = False  # whether it was on before the first of them


@contextmanager
def collection_put_off(put_off: bool) -> Iterator[None]:
    """No looks for cycles inside, where `put_off`; afterwards the collector is as it was."""
    global _runs, _enabled
    if not put_off:
        yield
        return
    with _lock:
        if _runs == 0:
            _enabled = gc.isenabled()
            gc.disable()
        _runs += 1
    try:
        yield
    finally:
        with _lock:
            _runs -= 1
            if _runs == 0 and _enabled:
                gc.enable()
