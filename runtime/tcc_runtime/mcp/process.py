"""The process of a server: started with pipes of its own, and ended for certain.

It stands in a session of its own, so that whatever it has started ends with it.  What it says on
its standard error goes where ours goes.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress

from tcc_runtime.errors import ServerError
from tcc_runtime.mcp.lines import MAX_SERVER_LINE
from tcc_runtime.mcp.pipes import Pipe

_GRACE = 2.0


class Process:
    """A server that runs.

    Args:
        command: the program and its arguments.
        most: bytes that a line of it may have.

    Raises:
        ServerError: it cannot be started.
    """

    def __init__(self, command: Sequence[str], most: int = MAX_SERVER_LINE) -> None:
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            raise ServerError(f"cannot start {command[0]}: {reason or error}") from None
        if self._process.stdin is None or self._process.stdout is None:
            raise ServerError(f"cannot start {command[0]}: no pipes")
        self._ends = (self._process.stdin, self._process.stdout)
        self.pipe = Pipe(self._ends[1].fileno(), self._ends[0].fileno(), most)

    def close(self) -> None:
        """End it: by the end of its input, then by a signal, then by one that it cannot refuse."""
        for end in self._ends:
            with suppress(OSError):
                end.close()
        self.pipe.ended = self.pipe.broken = True
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            if number is not None:
                self._signal(number)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_GRACE)
                break
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        # Its group outlives the process itself where it has started others.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)
