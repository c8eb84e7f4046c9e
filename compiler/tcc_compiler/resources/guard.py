"""The guards of a compilation: how many states, how much memory, how much time.

Every pass reports here what it made and how far it is; past a limit the guard refuses and names
the pass, the statement and the figure.  What each statement made of the states is written down,
so that the costliest can be told (:mod:`tcc_compiler.relax.attempts`).
Cost: one comparison a report.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcc_compiler.options import Options
from tcc_compiler.resources.place import Statement, place_of
from tcc_compiler.resources.refusal import Refused

_TICKS = 4096
_TELL_EVERY = 0.2
# What an automaton of `max_states` states may hold besides: edges, and members of state sets.
_ROOM_PER_STATE = 16
# A plan expression blows up when it has so many state sets, and so many for each position.
_BLOWN_SETS = 1 << 15
_BLOWN_RATIO = 256
_MEND = "make the grammar smaller, add `limit depth <= N`, or raise --max-states"


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """States before and after a statement was applied."""

    statement: Statement
    before: int
    after: int


class Guard:
    """One attempt's limits and its place: which pass works on which statement.

    Attributes:
        pass_name: the pass that is at work, for people.
        place: the statement behind it, as Refused has it.
        in_plan: True while the machine of the plan expression is made.
        sizes: what each statement that was applied made of the states.
        reached: the most states that this pass has reported.
    """

    def __init__(
        self, options: Options, allowed: float | None = None, exhaustive: bool = True
    ) -> None:
        """Set up an attempt.

        Args:
            allowed: seconds for it, None for no limit.
            exhaustive: let state sets multiply up to the limit on states.
        """
        self.max_states = options.max_states
        self.max_room = _ROOM_PER_STATE * options.max_states + 65536
        self._exhaustive = exhaustive
        self.pass_name = "reading the core"
        self.place: str | None = None
        self.in_plan = False
        self.sizes: list[Size] = []
        self.reached = 0
        self._statement: Statement | None = None
        self._before = 0
        self._clock = options.clock
        self._allowed = allowed
        self._timeout = options.timeout if options.timeout is not None else allowed
        self._progress = options.progress
        watched = allowed is not None or self._progress is not None
        self._started = self._last_progress = options.clock() if watched else 0.0
        self._ticks = 0

    def enter(self, what: str, place: str | None = None) -> None:
        """From here on refusals name `what`, and `place` (see Refused); looks at the clock."""
        self.pass_name = what
        self.place = place
        self.in_plan = place == "plan"
        self.reached = 0
        self._statement = None
        self._check_time()

    def apply(self, statement: Statement, text: str, states: int) -> None:
        """Enter the pass that applies `statement` to a machine of so many states."""
        self.enter(text, place_of(statement))
        self._statement = statement
        self._before = states

    def applied(self, states: int) -> None:
        """The statement last entered has given a machine of so many states."""
        self._measure(states)

    def stopped(self) -> None:
        """The statement last entered, if any, was not finished: it made what was reached."""
        self._measure(max(self.reached, self._before + 1))

    def _measure(self, after: int) -> None:
        if self._statement is not None:
            self.sizes.append(Size(statement=self._statement, before=self._before, after=after))
        self._statement = None

    def tick(self, steps: int = 1) -> None:
        """Count `steps` small steps; the clock is asked every few thousand."""
        self._ticks += steps
        if self._ticks >= _TICKS:
            self._ticks = 0
            self._check_time()

    def note(self, count: int) -> None:
        """`count` states are there by now; for progress, and for messages."""
        self.reached = max(self.reached, count)

    def states(self, count: int) -> None:
        """An automaton has `count` states by now.

        Raises:
            Refused: TCC403 past the limit.
        """
        self.reached = max(self.reached, count)
        if count > self.max_states:
            raise Refused(
                "TCC403",
                f"{self.pass_name} takes more than {self.max_states} states",
                hint=_MEND,
                place=self.place,
            )

    def room(self, count: int) -> None:
        """`count` edges or members of state sets are held by now.

        Raises:
            Refused: TCC403 past what `max_states` states may hold.
        """
        if count > self.max_room:
            raise Refused(
                "TCC403",
                f"{self.pass_name} takes more than {self.max_room} edges or positions, "
                f"the most for {self.max_states} states",
                hint=_MEND,
                place=self.place,
            )

    def growth(self, sets: int, positions: int) -> None:
        """Determinising has `sets` state sets over `positions` positions and is not done.

        Where bounds will do there is no point in going on to the last state.

        Raises:
            Refused: TCC403 where the sets multiply.
        """
        self.note(sets)
        if self._exhaustive or sets < _BLOWN_SETS or sets < _BLOWN_RATIO * positions:
            return
        raise Refused(
            "TCC403",
            f"{self.pass_name} multiplies: {sets} state sets over {positions} positions so far",
            hint=_MEND,
            place=self.place,
        )

    def _check_time(self) -> None:
        if self._allowed is None and self._progress is None:
            return
        now = self._clock()
        if self._progress is not None and now - self._last_progress >= _TELL_EVERY:
            self._last_progress = now
            self._progress(self.pass_name, self.reached)
        if self._allowed is not None and now - self._started > self._allowed:
            raise out_of_time(self._timeout, self.pass_name, self.place)


def out_of_time(timeout: float | None, pass_name: str, place: str | None = None) -> Refused:
    """The refusal of a pass that is not done in its share of `timeout`, the whole limit."""
    limit = "" if timeout is None else f" of {timeout:.3g} s"
    return Refused(
        "TCC404",
        f"the time limit{limit} ran out at {pass_name}",
        hint="raise --timeout, add a limit, or make the grammar smaller",
        place=place,
    )
