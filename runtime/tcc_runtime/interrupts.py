"""Ctrl-C during a run: noted, and answered between two expansions.

A run that is interrupted ends in a valid result, so the signal must not cut a step in two.  Only
Python's own handler is replaced, only in the main thread, only while the run lasts; a second
Ctrl-C raises at once.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType


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
        """Whether Ctrl-C, if pressed, was pressed before it was held back."""
        return not self._asked and _is_ours()

    def _note(self, _signal: int, _frame: FrameType | None) -> None:
        if self.pressed:
            raise KeyboardInterrupt
        self.pressed = True


def _is_ours() -> bool:
    in_main = threading.current_thread() is threading.main_thread()
    return in_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
