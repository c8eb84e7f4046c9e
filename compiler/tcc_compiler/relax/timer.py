"""How the time limit is shared among attempts: each may use half of what is left.

So there is always time for another attempt, while an exact one has the most.  Cost: none.
"""

from __future__ import annotations

from tcc_compiler.options import Options
from tcc_compiler.refusal import Refused

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
        """Seconds for the next attempt, None for no limit.

        Raises:
            Refused: TCC404 where hardly anything is left.
        """
        if self._timeout is None:
            return None
        left = self._timeout - (self._clock() - self._started)
        if left < _LEAST * self._timeout:
            raise Refused(
                "TCC404",
                f"the time limit of {self._timeout:g} s ran out",
                hint="raise --timeout, add a limit, or make the grammar smaller",
            )
        return self._share * left
