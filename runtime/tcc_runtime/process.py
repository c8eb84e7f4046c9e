"""The number of this process, and two changes by a run: deferred Ctrl-C, paused cycle collector.

Process number: the holder of locks asks for it at each lock, because a fork has its parent's memory
and none of its locks.  On Linux, the system is asked only after a fork.  Linux empties one page of
memory in every fork, and reading the page takes a tenth of the time of asking.  Elsewhere, the
system is asked each time.

Ctrl-C: an interrupted run ends in a valid result, so the signal must not cut a step in two.  Only
Python's own handler is replaced, and only in the main thread.  A second Ctrl-C raises immediately.

Cycle collector: a run or a validation makes up to millions of tuples that refer to each other, but
never in a cycle.  So a collection visits all of them and frees nothing.  It took half of the time
of a long run and a sixth of its validation.  Reference counting stays on.  Tests check that no run
or validation leaves a cycle.  The collector is not paused if code of the caller, which may make
cycles, runs in between.
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

# The number of this process.

_WIPED: Final = 18  # MADV_WIPEONFORK of madvise(2), Linux 4.14
_known = memoryview(bytearray(1))  # 0: ask the system for the number
_told = 0  # value after the system has answered; 0 if a fork does not reset it

if sys.platform == "linux":
    import mmap

    with suppress(OSError):  # an older Linux, or a system like it
        _page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        _page.madvise(_WIPED)
        _known, _told = memoryview(_page), 1

_number = 0


def process_number() -> int:
    """Return the number of this process; a fork has another number than its parent."""
    return _number if _known[0] else _asked()


def _asked() -> int:
    global _number
    _number = os.getpid()
    _known[0] = _told
    return _number


def _forked() -> None:
    _known[0] = 0  # also if the system has not reset it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)

# Changes by a run.


class Interrupts:
    """A context manager that can defer Ctrl-C; on exit, Python's handler is restored.

    Attributes:
        pressed: True if Ctrl-C was pressed while it was deferred.
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
        """Defer Ctrl-C from now on."""
        if not self._asked:
            self._asked = True
            self._held = _is_ours()
            if self._held:
                signal.signal(signal.SIGINT, self._note)

    @property
    def unheld(self) -> bool:
        """True if Ctrl-C is not deferred yet, and Python's own handler handles it."""
        return not self._asked and _is_ours()

    def _note(self, _signal: int, _frame: FrameType | None) -> None:
        if self.pressed:
            raise KeyboardInterrupt
        self.pressed = True


def _is_ours() -> bool:
    in_main = threading.current_thread() is threading.main_thread()
    return in_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler


_lock = Lock()
_runs = 0  # runs in progress; the whole process has one collector
_enabled = False  # True if the collector was on before the first of them


@contextmanager
def collection_put_off(put_off: bool) -> Iterator[None]:
    """Turn the cycle collector off for the block if `put_off`; afterwards it is as before."""
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
