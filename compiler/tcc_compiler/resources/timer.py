"""The time limit of a compilation, shared among its attempts: each may use half of what is left.

So there is always time for another attempt, and the exact one, which is first, has the most.
"""

from __future__ import annotations

from tcc_compiler.options import Options
from tcc_compiler.resources.guard import out_of_time

_SHARE = 0.5
# With less than this part of the time limit left, no further attempt is begun.
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
        """Seconds for trying an alternative, None for no limit."""
        return None if self._timeout is None else _SHARE * self._left(self._timeout)

    def check(self, pass_name: str) -> None:
        """End the compilation if the time is over; for passes that have no guard.

        Raises:
            Refused: TCC404.
        """
        if self._timeout is not None and self._left(self._timeout) <= 0:
            raise out_of_time(self._timeout, pass_name)

    def check_reading(self) -> None:
        """:meth:`check`, called by the front end.

        Raises:
            Refused: TCC404.
        """
        self.check("reading the grammar")

    def check_examples(self) -> None:
        """:meth:`check`, called while examples are compared.

        Raises:
            Refused: TCC404.
        """
        self.check("the examples")

    def is_over(self) -> bool:
        """Whether too little is left for another attempt."""
        timeout = self._timeout
        return timeout is not None and self._left(timeout) < _LEAST * timeout

    def _left(self, timeout: float) -> float:
        return max(0.0, timeout - (self._clock() - self._started))
