"""The calls of a session, for the fast decider.

A history only appends.  Its indexes (:class:`tcc_runtime.gate.decide.feeds.Feed` and others) catch
up when they are used: they read new calls from `calls`, and calls whose outcome became known from
`log`.  If a known outcome changes, all indexes are rebuilt.
Cost: adding a call and recording its outcome take constant time, plus the time for its draws.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from heapq import merge
from itertools import product
from operator import attrgetter
from typing import Any, TypeAlias

from tcc_certs.policy import forgetting
from tcc_certs.policy.core import Core
from tcc_certs.policy.forms import Tools
from tcc_certs.policy.history import (
    ANSWERED,
    DONE,
    FAILED,
    LOST,
    OPEN,
    Call,
    Draw,
    ListHistory,
    Wanted,
)
from tcc_certs.values.places import NONE, UNKNOWN, State

Key: TypeAlias = "tuple[State, ...]"

# calls with these outcomes count for no limit and no total
NO_EFFECT = frozenset({FAILED, ANSWERED})
UNSETTLED = frozenset({OPEN, LOST})


class FastHistory(ListHistory):
    """A history that answers questions in constant time if keys or windows decide.

    Only :meth:`record` may change the outcome and the answers of its calls.

    Args:
        given: the states of the attributes that the session starts with.
        account: the tallies of limits across sessions, by the number of the limit.  Sessions share
            it.  None: such limits count this session only.

    Attributes:
        times: the times of the calls, in order.
        alive: how many calls are neither failed nor answered.
        feeds: indexes of the calls, by stream, `owe` statement or total.  Each is complete up to
            its position in `calls` and in `log`.
        dependent: keys of `feeds` whose index depends on attributes that are not learned yet.
        watched: the positions of calls with unknown outcomes that are in some index.
        log: watched calls whose outcome became known, in the order of the records.
        next_look: the number of calls at which unneeded calls are forgotten next.
    """

    def __init__(
        self,
        core: Core,
        given: Mapping[str, State],
        account: dict[int, Tally] | None = None,
    ) -> None:
        super().__init__(core, given)
        self.times: list[int] = []
        self.alive = 0
        self.feeds: dict[object, Any] = {}
        self.dependent: list[object] = []
        self.watched: set[int] = set()
        self.log: list[Call] = []
        self.of_tool: dict[str, list[Call]] = {}
        self._tallies: dict[int, Tally] = {}
        self._shared = self._tallies if account is None else account
        self._drawn: dict[int, Mapping[int, Draw]] = {}
        self._runs: dict[tuple[Tools, tuple[str, ...]], _Runs] = {}
        self._still = dict(self._learned)  # attributes that are still to be learned
        self.next_look = forgetting.next_look(0)

    def add(self, call: Call, draws: Mapping[int, Draw]) -> None:
        """Add a decided call, with its draw under each limit that counts it."""
        call.at = len(self.calls)
        self.calls.append(call)
        self.times.append(call.at_ms)
        of_tool = self.of_tool.get(call.tool)
        if of_tool is None:
            of_tool = self.calls_of(call.tool)
        of_tool.append(call)
        if call.outcome not in NO_EFFECT:
            self.alive += 1
        if draws:
            self._drawn[call.at] = draws
            for limit, draw in draws.items():
                self.tally(limit).add(draw)
                if self._shared is not self._tallies:
                    self.tally(limit, across=True).add(draw)

    def calls_of(self, tool: str) -> list[Call]:
        """Return the calls of a tool, in order; the list grows with the history."""
        found = self.of_tool.get(tool)
        if found is None:
            found = self.of_tool[tool] = []
        return found

    def tally(self, limit: int, *, across: bool = False) -> Tally:
        """Return the running amounts under a limit.

        Args:
            across: whether to return the amounts of all sessions.
        """
        tallies = self._shared if across else self._tallies
        found = tallies.get(limit)
        if found is None:
            found = tallies[limit] = Tally()
        return found

    def record(self, call: Call, outcome: str, answers: Mapping[str, State]) -> None:
        """Record the outcome of a call.  Attributes are learned in the order of these records."""
        before = call.outcome
        call.outcome, call.answers = outcome, answers
        if before not in UNSETTLED:
            self._forget()
        elif call.at in self.watched:
            self.log.append(call)
            if outcome not in UNSETTLED:
                self.watched.discard(call.at)
        counts = outcome not in NO_EFFECT
        if counts != (before not in NO_EFFECT):
            self._count(call, counts)
        if outcome == DONE and self._still:
            self._learn(call)

    def _forget(self) -> None:
        """Delete all indexes, so that they are rebuilt."""
        self.feeds.clear()
        self.dependent.clear()
        self.watched.clear()
        self.log.clear()

    def forget(self, needed: Sequence[Call], complete: Sequence[object]) -> None:
        """Forget all calls except `needed`, and renumber these.

        Args:
            complete: the keys of `feeds` that are up to date and are kept; other indexes are
                rebuilt.
        """
        places = {call.at: at for at, call in enumerate(needed)}
        feeds = {one: self.feeds[one] for one in complete if one in self.feeds}
        dependent = [one for one in self.dependent if one in feeds]
        watched = {places[at] for at in self.watched}
        drawn = {places[at]: draws for at, draws in self._drawn.items()
                 if at in places and self.calls[at].outcome in UNSETTLED}  # fmt: skip
        self._forget()
        for call in needed:
            call.at = places[call.at]
        self.calls = list(needed)
        self.times = [call.at_ms for call in needed]
        self.of_tool = {}
        for call in needed:
            self.calls_of(call.tool).append(call)
        self._runs.clear()
        self._drawn, self.watched = drawn, watched
        for one, feed in feeds.items():
            feed.move(places)
            self.feeds[one] = feed
        self.dependent += dependent

    def _count(self, call: Call, counts: bool) -> None:
        """Add a call to its limits and to `alive`, or subtract it."""
        self.alive += 1 if counts else -1
        for limit, draw in self._drawn.get(call.at, {}).items():
            self.tally(limit).change(draw, counts)
            if self._shared is not self._tallies:
                self.tally(limit, across=True).change(draw, counts)

    def _learn(self, call: Call) -> None:
        for name, learned in list(self._still.items()):
            for tool, of in learned.sources:
                state = call.state(of) if call.tool == tool else NONE
                if state not in (NONE, UNKNOWN) and state[0] != "*":
                    self._given[name] = state
                    del self._still[name]
                    for feed in self.dependent:
                        self.feeds.pop(feed, None)
                    self.dependent.clear()
                    break

    # Questions of the definition.

    def candidates(
        self, tools: Tools, keys: Sequence[Wanted], since_ms: int | None
    ) -> Sequence[Call]:
        """See :class:`tcc_certs.policy.history.History`."""
        # An absent value may equal every value, so only the other keys select.
        usable = sorted([key for key in keys if key[1] != UNKNOWN and (key[1] != NONE or key[2])])
        names = tuple([name for name, _, _ in usable])
        runs = self._runs.get((tools, names))
        if runs is None:
            runs = self._runs[tools, names] = _Runs(tools, names)
        runs.catch_up(self.calls)
        choices = [
            (state, UNKNOWN) if same else (state, NONE, UNKNOWN) for _, state, same in usable
        ]
        found = [runs.of[key] for key in product(*choices) if key in runs.of]
        calls = found[0] if len(found) == 1 else list(merge(*found, key=attrgetter("at")))
        if since_ms is None:
            return calls
        return calls[bisect_left(calls, since_ms, key=attrgetter("at_ms")) :]

    def draws(
        self, limit: int, key: Key | None, since_ms: int | None, across: bool
    ) -> Sequence[Draw]:
        """See :class:`tcc_certs.policy.history.History`."""
        return self.tally(limit, across=across).draws(key, since_ms)


class _Runs:
    """The calls of some tools, by the states of some arguments."""

    def __init__(self, tools: Tools, names: tuple[str, ...]) -> None:
        self._tools, self._names = tools, names
        self._added = 0
        self.of: dict[Key, list[Call]] = {}

    def catch_up(self, calls: Sequence[Call]) -> None:
        """Add the calls that were added to the history since the last time."""
        if self._added == len(calls):
            return
        for call in calls[self._added :]:
            if call.tool in self._tools:
                arguments = call.arguments
                key = tuple([arguments[name] for name in self._names])
                self.of.setdefault(key, []).append(call)
        self._added = len(calls)


# Limits.


class Tally:
    """The running amounts under a limit, by key."""

    def __init__(self) -> None:
        self._lines: dict[Key | None, _Line] = {}

    def add(self, draw: Draw) -> None:
        """Add a draw of a call that counts."""
        line = self._lines.get(draw.key)
        if line is None:
            line = self._lines[draw.key] = _Line()
        line.add(draw)

    def change(self, draw: Draw, counts: bool) -> None:
        """Add a draw again, or subtract it.  The outcome of its call has changed already."""
        line = self._lines.get(draw.key)
        if line is not None:  # otherwise no window has the draw
            line.change(draw, counts)

    def forget(self, since_ms: int | None) -> None:
        """Forget draws that no later question counts, and keys without draws.

        Args:
            since_ms: the start of the window.  None: the limit has no window; settled draws of a
                key are merged into one.
        """
        for key, line in list(self._lines.items()):
            line.forget(since_ms)
            if since_ms is not None and not line.draws:
                del self._lines[key]

    def amount(self, key: Key | None, since_ms: int | None) -> Any:
        """Return the amount that counts for a key in a window.

        Draws with an unknown key count for every key.  If `key` is None (unknown), the result is
        the most that any key has.
        """
        lines = self._lines
        unknown = lines.get(None)
        total = 0 if unknown is None else unknown.amount(since_ms)
        if key is not None:
            line = lines.get(key)
            return total if line is None else total + line.amount(since_ms)
        known = [line.amount(since_ms) for line in lines.values() if line is not unknown]
        return total + max(known, default=0)

    def draws(self, key: Key | None, since_ms: int | None) -> list[Draw]:
        """Return the draws with this key or an unknown key, sorted by time; all draws if `key` is
        None.
        """
        keys = self._lines if key is None else [one for one in (key, None) if one in self._lines]
        found = [draw for one in keys for draw in self._lines[one].since(since_ms)]
        return sorted(found, key=lambda draw: (draw.call.at_ms, draw.call.at))


class _Line:
    """The draws with one key, sorted by time once a window is used.

    Attributes:
        total: the sum of the amounts that count.
        begin: the index of the first draw at `since_ms` or later.
        windowed: the sum of the amounts that count from `begin` on.
        times: the times of the draws; None: no window was used yet.
    """

    __slots__ = ("begin", "draws", "since_ms", "times", "total", "windowed")

    def __init__(self) -> None:
        self.draws: list[Draw] = []
        self.times: list[int] | None = None
        self.total: Any = 0
        self.windowed: Any = 0
        self.begin = 0
        self.since_ms = 0

    def add(self, draw: Draw) -> None:
        """Add a draw.  With an account, other sessions may have drawn at later times already."""
        amount = draw.amount if _counts(draw) else 0
        self.total += amount
        if self.times is None:
            self.draws.append(draw)
            return
        at_ms = draw.call.at_ms
        place = bisect_right(self.times, at_ms)
        self.draws.insert(place, draw)
        self.times.insert(place, at_ms)
        if at_ms < self.since_ms:
            self.begin += 1
        else:
            self.windowed += amount

    def forget(self, since_ms: int | None) -> None:
        """Forget draws before the window; without a window, merge the settled draws."""
        if since_ms is not None:
            self.draws = [draw for draw in self.draws if draw.call.at_ms >= since_ms]
            self.times = None
            return
        settled = [draw for draw in self.draws if draw.call.outcome not in UNSETTLED]
        if len(settled) > 1:
            last = settled[-1]
            amount = sum([draw.amount for draw in settled if _counts(draw)])
            done = Call(last.call.tool, last.call.at, last.call.at_ms, {}, DONE)
            rest = [draw for draw in self.draws if draw.call.outcome in UNSETTLED]
            self.draws = [Draw(done, last.key, amount), *rest]
            self.times = None

    def change(self, draw: Draw, counts: bool) -> None:
        """Add the amount of a draw again, or subtract it."""
        amount = draw.amount if counts else -draw.amount
        self.total += amount
        if self.times is not None and draw.call.at_ms >= self.since_ms:
            self.windowed += amount

    def amount(self, since_ms: int | None) -> Any:
        """Return the sum of the amounts that count at `since_ms` or later.

        Cost: linear in the draws between this time and the time of the last question.
        """
        if since_ms is None:
            return self.total
        if self.times is None:
            self._sort(since_ms)
        if since_ms != self.since_ms:
            self._move(since_ms)
        return self.windowed

    def _sort(self, since_ms: int) -> list[int]:
        """Sort the draws and store their times; return the times."""
        self.draws.sort(key=lambda draw: draw.call.at_ms)
        times = self.times = [draw.call.at_ms for draw in self.draws]
        self.since_ms = since_ms
        self.begin = bisect_left(times, since_ms)
        self.windowed = sum([draw.amount for draw in self.draws[self.begin :] if _counts(draw)])
        return times

    def _move(self, since_ms: int) -> None:
        """Move the start of the window to another time."""
        draws, times = self.draws, self.times or ()
        begin, windowed = self.begin, self.windowed
        while begin < len(draws) and times[begin] < since_ms:
            if _counts(draws[begin]):
                windowed -= draws[begin].amount
            begin += 1
        while begin and times[begin - 1] >= since_ms:
            begin -= 1
            if _counts(draws[begin]):
                windowed += draws[begin].amount
        self.begin, self.windowed, self.since_ms = begin, windowed, since_ms

    def since(self, since_ms: int | None) -> list[Draw]:
        """Return the draws at `since_ms` or later."""
        if since_ms is None:
            return self.draws
        return self.draws[bisect_left(self.times or self._sort(since_ms), since_ms) :]


def _counts(draw: Draw) -> bool:
    return draw.call.outcome not in NO_EFFECT
