"""Limits of a compilation on states, memory and time, and the error of a pass that exceeds one.

A pass reports its numbers of states and edges to the `Guard` of its attempt. If a limit is
exceeded, the guard raises `CompileRefused` with the pass, the statement and the figure. The `Timer`
divides the time limit among the attempts of one compilation.
Cost: one comparison for each report.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from tcc_compiler.frozen import frozen
from tcc_compiler.options import Options


class CompileRefused(Exception):
    """Raised by a pass that rejects its input or exceeds a limit; becomes a diagnostic.

    Args:
        code: of the catalogue, ``TCC4xx``.
        message: one sentence that says what is wrong.
        hint: how to correct it, if there is a way.
        place: what caused it; None if no single statement did.
        notes: further messages, such as limits that would fit, each with its place or None.
        final: True if other attempts would take as long, so that none is made for a hint.
    """

    def __init__(
        self,
        code: str,
        message: str,
        hint: str | None = None,
        place: Place | None = None,
        notes: Sequence[tuple[str, Place | None]] = (),
        final: bool = False,
    ) -> None:
        super().__init__(message)
        self.final = final
        self.code = code
        self.message = message
        self.hint = hint
        self.place = place
        self.notes = tuple(notes)


# The cause of a refusal: the number of a statement of the core, or ``plan``, ``start``, ``goal``,
# ``rule NAME`` or ``tool NAME``.
Place: TypeAlias = "int | str"


# The guard records the number of states before and after each statement, so that `relax` can name
# the statement that costs most.

_TICKS = 4096
_PROGRESS_SECONDS = 0.2
# The most edges, or members of state sets, for each state that `max_states` allows.
_ROOM_PER_STATE = 16
_WORK_PER_STATE = 8  # members of joined sets, at most a microsecond each
# State sets are said to multiply from this many on, if there are also this many per position.
_MANY_SETS = 1 << 15
_MANY_SETS_PER_POSITION = 256
_HINT = "make the grammar smaller, add `limit depth <= N`, or raise --max-states"


@frozen
class StatementSize:
    """The number of states before and after the statement `number` was applied."""

    number: int
    before: int
    after: int


class Guard:
    """The limits of one attempt, and the pass and statement at work.

    Attributes:
        pass_name: the current pass, as messages name it.
        place: the place of the statement being applied, as in :class:`CompileRefused`.
        in_plan: True while the automaton of the plan expression is made.
        sizes: the number of states before and after each statement that was applied.
        reached: the most states that the current pass has reported.
    """

    def __init__(
        self, options: Options, allowed: float | None = None, exhaustive: bool = True
    ) -> None:
        """Set up an attempt.

        Args:
            allowed: seconds for the attempt; None for no limit.
            exhaustive: True lets state sets multiply up to the limit on states.
        """
        self.max_states = options.max_states
        self.max_room = _ROOM_PER_STATE * options.max_states + 65536
        self.max_work = _WORK_PER_STATE * options.max_states + (1 << 20)
        self._exhaustive = exhaustive
        self.pass_name = "reading the core"
        self.place: Place | None = None
        self.in_plan = False
        self.sizes: list[StatementSize] = []
        self.reached = 0
        self._number: int | None = None
        self._before = 0
        self._clock = options.clock
        self._allowed = allowed
        self._timeout = options.timeout if options.timeout is not None else allowed
        self._progress = options.progress
        watched = allowed is not None or self._progress is not None
        self._started = self._last_progress = options.clock() if watched else 0.0
        self._ticks = 0
        self._work = 0

    def enter(self, what: str, place: Place | None = None) -> None:
        """Begin a pass: refusals name `what` and `place` from now on. Reads the clock."""
        self.pass_name = what
        self.place = place
        self.in_plan = place == "plan"
        self.reached = 0
        self._number = None
        self._check_time()

    def apply(self, number: int, text: str, states: int) -> None:
        """Begin the pass that applies a statement to an automaton of `states` states."""
        self.enter(text, number)
        self._number = number
        self._before = states

    def applied(self, states: int) -> None:
        """Record the number of states after the statement that was begun last."""
        self._measure(states)

    def stopped(self) -> None:
        """Record the states that an unfinished statement has reached, if there is one."""
        self._measure(max(self.reached, self._before + 1))

    def _measure(self, after: int) -> None:
        if self._number is not None:
            size = StatementSize(number=self._number, before=self._before, after=after)
            self.sizes.append(size)
        self._number = None

    def tick(self, steps: int = 1) -> None:
        """Count small steps; every few thousand, read the clock."""
        self._ticks += steps
        if self._ticks >= _TICKS:
            self._ticks = 0
            self._check_time()

    def work(self, steps: int) -> None:
        """Count steps that create no states or edges, such as looking at members of joined sets.

        Raises:
            CompileRefused: TCC403, more steps than `max_states` states may take.
        """
        self._work += steps
        self.tick(1 + (steps >> 3))
        if self._work > self.max_work:
            raise CompileRefused(
                "TCC403",
                f"{self.pass_name} takes more than {self.max_work} steps, "
                f"the most for {self.max_states} states",
                hint=_HINT,
                place=self.place,
                final=True,
            )

    def note(self, count: int) -> None:
        """Record the number of states so far, for messages; check no limit."""
        self.reached = max(self.reached, count)

    def states(self, count: int) -> None:
        """Check the pass's number of states so far against the limit.

        Raises:
            CompileRefused: TCC403, past the limit.
        """
        self.reached = max(self.reached, count)
        if count > self.max_states:
            raise CompileRefused(
                "TCC403",
                f"{self.pass_name} takes more than {self.max_states} states",
                hint=_HINT,
                place=self.place,
            )

    def room(self, count: int) -> None:
        """Check the number of edges, or of members of state sets, that the pass holds in memory.

        Raises:
            CompileRefused: TCC403, more than `max_states` states may have.
        """
        if count > self.max_room:
            raise CompileRefused(
                "TCC403",
                f"{self.pass_name} takes more than {self.max_room} edges or positions, "
                f"the most for {self.max_states} states",
                hint=_HINT,
                place=self.place,
            )

    def growth(self, sets: int, positions: int) -> None:
        """Check how fast determinising multiplies: `sets` state sets over `positions` so far.

        An exhaustive attempt ignores this. Other attempts may fall back to bounds instead of
        counts, so going on up to the limit on states would only lose time.

        Raises:
            CompileRefused: TCC403, the sets multiply.
        """
        self.note(sets)
        if self._exhaustive or sets < _MANY_SETS or sets < _MANY_SETS_PER_POSITION * positions:
            return
        raise CompileRefused(
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


def out_of_time(
    timeout: float | None, pass_name: str, place: Place | None = None
) -> CompileRefused:
    """Return the refusal of a pass whose time is over.

    Args:
        timeout: the limit of the whole compilation; the attempt had a share of it.
    """
    limit = "" if timeout is None else f" of {timeout:.3g} s"
    return CompileRefused(
        "TCC404",
        f"the time limit{limit} ran out at {pass_name}",
        hint="raise --timeout, add a limit, or make the grammar smaller",
        place=place,
    )


# Each attempt may use half of the time that remains. So the exact attempt, which comes first, has
# the most, and there is always time for another attempt.

_SHARE = 0.5
# If less than this part of the time limit is left, no further attempt is made.
_LEAST = 1 / 64


class Timer:
    """The remaining time of a compilation."""

    def __init__(self, options: Options) -> None:
        self._clock = options.clock
        self._timeout = options.timeout
        self._share = _SHARE if options.auto_relax else 1.0
        self._started = options.clock() if options.timeout is not None else 0.0

    def share(self) -> float | None:
        """Return the seconds for the next attempt; None for no limit."""
        return None if self._timeout is None else self._share * self._remaining(self._timeout)

    def half(self) -> float | None:
        """Return the seconds for trying an alternative; None for no limit."""
        return None if self._timeout is None else _SHARE * self._remaining(self._timeout)

    def check(self, pass_name: str) -> None:
        """End the compilation if its time is over; for passes without a guard.

        Raises:
            CompileRefused: TCC404.
        """
        if self._timeout is not None and self._remaining(self._timeout) <= 0:
            raise out_of_time(self._timeout, pass_name)

    def check_reading(self) -> None:
        """Call :meth:`check` while the front end reads.

        Raises:
            CompileRefused: TCC404.
        """
        self.check("reading the grammar")

    def check_examples(self) -> None:
        """Call :meth:`check` while examples are compared.

        Raises:
            CompileRefused: TCC404.
        """
        self.check("the examples")

    def is_over(self) -> bool:
        """Return whether too little time is left for another attempt."""
        timeout = self._timeout
        return timeout is not None and self._remaining(timeout) < _LEAST * timeout

    def _remaining(self, timeout: float) -> float:
        return max(0.0, timeout - (self._clock() - self._started))
