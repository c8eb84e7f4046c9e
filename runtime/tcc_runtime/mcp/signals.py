"""SIGTERM and SIGINT as something to be read, so that they cut no step in two.

The handlers only note that one came; a descriptor becomes readable, so a wait ends at once.  A
second one ends the process as it would have without them.
"""

from __future__ import annotations

import os
import signal
from types import FrameType, TracebackType

_NUMBERS = (signal.SIGTERM, signal.SIGINT)


class Stopping:
    """Tells whether the process was asked to stop; a context manager, for the main thread.

    Attributes:
        asked: whether it was.
        wakes: a descriptor that can be read from then on.
    """

    def __init__(self) -> None:
        self.asked = False
        self.wakes, self._writes = os.pipe()
        os.set_blocking(self._writes, False)

    def __enter__(self) -> Stopping:
        self._before = [signal.signal(number, self._note) for number in _NUMBERS]
        self._wakeup = signal.set_wakeup_fd(self._writes, warn_on_full_buffer=False)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        signal.set_wakeup_fd(self._wakeup)
        for number, handler in zip(_NUMBERS, self._before, strict=True):
            signal.signal(number, handler)
        os.close(self.wakes)
        os.close(self._writes)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if self.asked:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self.asked = True
