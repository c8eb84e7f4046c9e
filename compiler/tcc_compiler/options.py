"""What a caller may set for one compilation."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from tcc_certs.kernel import check

MAX_TILT = 64
AUTO = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of the back end.

    Attributes:
        beta: inverse temperature, an exact decimal in canonical text, at least 0.
        tilt: B, the bits of the weights, 0 .. 64; 0 is the untilted race.
        max_states: most states of any automaton on the way.
        timeout: most seconds, None for no limit.
        count_bits: most bits of the number of plans, None for no limit.
        relax: statements to leave to the run: kinds (``price``, ``require``, ..) or canonical
            texts of limits; and ``auto``, past one of the limits above to compile to bounds in
            place of counts.  Without it a limit is an error: nothing is relaxed unasked.
        round_counts: bits of the race counts, 1 .. 63; None keeps them exact.
        clock: monotonic seconds; asked every few thousand steps.
        check: refuses an artifact that is not what it says, by raising Rejected; asked last.
        progress: told the pass and its states so far, a few times a second at most.
    """

    beta: str = "1"
    tilt: int = 8
    max_states: int = 2_000_000
    timeout: float | None = None
    count_bits: int | None = None
    relax: tuple[str, ...] = ()
    round_counts: int | None = None
    clock: Callable[[], float] = time.monotonic
    check: Callable[[bytes], object] = check
    progress: Callable[[str, int], None] | None = None

    @property
    def auto_relax(self) -> bool:
        """Whether bounds in place of counts are asked for where a limit is reached."""
        return AUTO in self.relax

    @property
    def relax_names(self) -> tuple[str, ...]:
        """The names of what is relaxed whatever the limits."""
        return tuple(name for name in self.relax if name != AUTO)
