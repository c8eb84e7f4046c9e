"""The guards of a compilation: how many states, how much memory, how much time.

Every pass reports here what it made and how far it is; past a limit the guard refuses and names
the pass, the statement and the figure.  Cost: one comparison a report.
"""

from __future__ import annotations

from tcc_compiler.options import Options
from tcc_compiler.refusal import Refused

_TICKS = 4096
# What an automaton of `max_states` states may hold besides: edges, and members of state sets.
_ROOM_PER_STATE = 16


class Guard:
    """One compilation's limits and its place: which pass works on which statement."""

    def __init__(self, options: Options) -> None:
        self.max_states = options.max_states
        self.max_room = _ROOM_PER_STATE * options.max_states + 65536
        self._clock = options.clock
        self._timeout = options.timeout
        self._started = options.clock() if options.timeout is not None else 0.0
        self._ticks = 0
        self._what = "reading the core"
        self._place: str | None = None

    def enter(self, what: str, place: str | None = None) -> None:
        """From here on refusals name `what`, and `place` (see Refused); looks at the clock."""
        self._what = what
        self._place = place
        self._look()

    def tick(self, steps: int = 1) -> None:
        """Count `steps` small steps; the clock is asked every few thousand."""
        self._ticks += steps
        if self._ticks >= _TICKS:
            self._ticks = 0
            self._look()

    def states(self, count: int) -> None:
        """An automaton has `count` states by now.

        Raises:
            Refused: TCC403 past the limit.
        """
        if count > self.max_states:
            raise Refused(
                "TCC403",
                f"{self._what} takes more than {self.max_states} states",
                hint="add `limit depth <= N`, make the grammar smaller, or raise --max-states",
                place=self._place,
            )

    def room(self, count: int) -> None:
        """`count` edges or members of state sets are held by now.

        Raises:
            Refused: TCC403 past what `max_states` states may hold.
        """
        if count > self.max_room:
            raise Refused(
                "TCC403",
                f"{self._what} takes more than {self.max_room} edges or positions, "
                f"the most for {self.max_states} states",
                hint="add `limit depth <= N`, make the grammar smaller, or raise --max-states",
                place=self._place,
            )

    def _look(self) -> None:
        if self._timeout is None:
            return
        spent = self._clock() - self._started
        if spent > self._timeout:
            raise Refused(
                "TCC404",
                f"the time limit of {self._timeout:g} s ran out at {self._what}",
                hint="raise --timeout, add a limit, or make the grammar smaller",
                place=self._place,
            )
