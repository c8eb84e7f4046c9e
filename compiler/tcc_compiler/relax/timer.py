"""How the time limit is shared among attempts: each may use half of what is left.

So there is always time for another attempt, while an exact one has the most.  Cost: none.
"""

from __future__ import annotations

from tcc_compiler.guard import out_of_time
from tcc_compiler.options import Options

_SHARE = 0.5
# Below this part of the time limit no further attempt is begun.
_LEAST = 1 / 64


class Timer:
    """The time that is left of a compilation's limit."""

    def __init__(self, options: Options) -> None:
        self._clock = options.clock
        self._timeout = options.timeout
        self._share = _SHARE if options.auto_relax else 1.0
        self._started = options.clock() if options.timeout is not None else 0.0

    def share(self) -> float | None:
        """Seconds for the next attempt, None for no limit."""
        return None if self._timeout is None else self._share * self._left(self._timeout)

    def half(self) -> float | None:
        """Seconds for a look at another way, None for no limit."""
        return None if self._timeout is None else _SHARE * self._left(self._timeout)

    def look(self, pass_name: str) -> None:
        """A pass that is bounded in itself, and looks at no clock, is done.

        Raises:
            Refused: TCC404 where that took all the time there is.
        """
        if self._timeout is not None and self._left(self._timeout) <= 0:
            raise out_of_time(self._timeout, pass_name)

    def look_at_reading(self) -> None:
        """The front end is on its way, or done.

        Raises:
            Refused: TCC404 where the time is over.
        """
        self.look("reading the grammar")

    def look_at_examples(self) -> None:
        """The examples are being walked over the machine.

        Raises:
            Refused: TCC404 where the time is over.
        """
        self.look("the examples")

    def is_over(self) -> bool:
        """Whether too little is left for another attempt."""
        timeout = self._timeout
        return timeout is not None and self._left(timeout) < _LEAST * timeout

    def _left(self, timeout: float) -> float:
        return max(0.0, timeout - (self._clock() - self._started))
