"""The limits of one attempt to compile: states, memory, time.

Every pass reports to the guard how many states and edges it has made; past a limit the guard
refuses, naming the pass, the statement and the figure.  It records the number of states before and
after each statement, so that the costliest one is known (:mod:`tcc_compiler.relax.attempts`).
Cost: one comparison for each report.
"""

from __future__ import annotations

from tcc_compiler.frozen import frozen
from tcc_compiler.options import Options
from tcc_compiler.resources.place import Statement, place_of
from tcc_compiler.resources.refusal import Refused

_TICKS = 4096
_PROGRESS_SECONDS = 0.2
# Edges, or members of state sets, that an automaton may hold for each state of the limit.
_ROOM_PER_STATE = 16
# State sets multiply when there are at least so many, and so many for each position.
_MANY_SETS = 1 << 15
_MANY_SETS_PER_POSITION = 256
_HINT = "make the grammar smaller, add `limit depth <= N`, or raise --max-states"


@frozen
class Size:
    """States before and after a statement was applied."""

    statement: Statement
    before: int
    after: int


class Guard:
    """The limits of one attempt, and which pass works on which statement.

    Attributes:
        pass_name: the current pass, as messages name it.
        place: the statement that it applies, as in :class:`Refused`.
        in_plan: True while the automaton of the plan expression is made.
        sizes: the number of states before and after each statement that was applied.
        reached: the most states that the current pass has reported.
    """

    def __init__(
        self, options: Options, allowed: float | None = None, exhaustive: bool = True
    ) -> None:
        """Set up an attempt.

        Args:
            allowed: seconds for it, None for no limit.
            exhaustive: whether state sets may multiply up to the limit on states.
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
        """Begin a pass: refusals name `what` and `place` from here on; reads the clock."""
        self.pass_name = what
        self.place = place
        self.in_plan = place == "plan"
        self.reached = 0
        self._statement = None
        self._check_time()

    def apply(self, statement: Statement, text: str, states: int) -> None:
        """Begin the pass that applies `statement` to an automaton of `states` states."""
        self.enter(text, place_of(statement))
        self._statement = statement
        self._before = states

    def applied(self, states: int) -> None:
        """The statement that was begun last has made an automaton of `states` states."""
        self._measure(states)

    def stopped(self) -> None:
        """The statement that was begun last, if any, was not finished: record what it reached."""
        self._measure(max(self.reached, self._before + 1))

    def _measure(self, after: int) -> None:
        if self._statement is not None:
            self.sizes.append(Size(statement=self._statement, before=self._before, after=after))
        self._statement = None

    def tick(self, steps: int = 1) -> None:
        """Count `steps` small steps; the clock is read every few thousand."""
        self._ticks += steps
        if self._ticks >= _TICKS:
            self._ticks = 0
            self._check_time()

    def note(self, count: int) -> None:
        """The pass has made `count` states so far, for messages; no limit is checked."""
        self.reached = max(self.reached, count)

    def states(self, count: int) -> None:
        """The pass has made `count` states so far: check the limit.

        Raises:
            Refused: TCC403 past the limit.
        """
        self.reached = max(self.reached, count)
        if count > self.max_states:
            raise Refused(
                "TCC403",
                f"{self.pass_name} takes more than {self.max_states} states",
                hint=_HINT,
                place=self.place,
            )

    def room(self, count: int) -> None:
        """The pass holds `count` edges or members of state sets: check the limit.

        Raises:
            Refused: TCC403 past what `max_states` states may hold.
        """
        if count > self.max_room:
            raise Refused(
                "TCC403",
                f"{self.pass_name} takes more than {self.max_room} edges or positions, "
                f"the most for {self.max_states} states",
                hint=_HINT,
                place=self.place,
            )

    def growth(self, sets: int, positions: int) -> None:
        """Determinising has made `sets` state sets over `positions` positions, and is not finished.

        Where bounds were asked for, determinising up to the limit would only lose time.

        Raises:
            Refused: TCC403 where the sets multiply.
        """
        self.note(sets)
        if self._exhaustive or sets < _MANY_SETS or sets < _MANY_SETS_PER_POSITION * positions:
            return
        raise Refused(
            "TCC403",
            f"{self.pass_name} multiplies: {sets} state sets over {positions} positions so far",
            hint=_HINT,
            place=self.place,
        )

    def _check_time(self) -> None:
        if self._allowed is None and self._progress is None:
            return
        now = self._clock()
        if self._progress is not None and now - self._last_progress >= _PROGRESS_SECONDS:
            self._last_progress = now
            self._progress(self.pass_name, self.reached)
        if self._allowed is not None and now - self._started > self._allowed:
            raise out_of_time(self._timeout, self.pass_name, self.place)


def out_of_time(timeout: float | None, pass_name: str, place: str | None = None) -> Refused:
    """The refusal of a pass that has used up its time.

    Args:
        timeout: the limit of the whole compilation, of which an attempt has a share.
    """
    limit = "" if timeout is None else f" of {timeout:.3g} s"
    return Refused(
        "TCC404",
        f"the time limit{limit} ran out at {pass_name}",
        hint="raise --timeout, add a limit, or make the grammar smaller",
        place=place,
    )
