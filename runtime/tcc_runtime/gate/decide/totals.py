"""Running totals of prices, costs, latencies and epsilons of the calls of a session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tcc_certs.policy.history import Call
from tcc_certs.policy.meaning import AmountTable
from tcc_certs.values.places import UNKNOWN, State
from tcc_runtime.gate.decide.feeds import Frame
from tcc_runtime.gate.decide.history import NO_EFFECT, UNSETTLED, FastHistory


class Totals:
    """The totals of one kind of amount.

    Args:
        what: ``depth``, ``price``, ``latency``, ``cost`` or ``epsilon``.
        amounts: the amounts of the calls of each tool.
    """

    def __init__(self, what: str, amounts: Mapping[str, AmountTable]) -> None:
        self.what = what
        self._amounts = amounts
        # By tool and by which listed fields are known: the least and greatest amount by known
        # values.
        self._ends: dict[tuple[str, tuple[bool, ...]], dict[tuple[State, ...], _Ends]] = {}

    def least(self, frame: Frame) -> Any:
        """Return the least possible total that includes the call being decided."""
        if self.what == "depth":
            return frame.history.alive + 1
        history = frame.history
        total = history.feeds.get(self)
        if total is None or total.added != len(history.calls) or total.logged != len(history.log):
            total = self.caught_up(history)
        return total.amount + self._ends_of(frame.call)[0]

    def taken(self, history: FastHistory) -> Any:
        """Return the greatest possible total of all calls so far."""
        return history.alive if self.what == "depth" else self.caught_up(history).amount

    def caught_up(self, history: FastHistory) -> Total:
        """Return the total of the history after adding new calls and outcomes."""
        total = history.feeds.pop(self, None) or Total()
        for call in history.log[total.logged :]:
            if call.at in total.unsettled:
                total.amount -= total.unsettled.pop(call.at)
                self._put(history, total, call)
        total.logged = len(history.log)
        for call in history.calls[total.added :]:
            self._put(history, total, call)
        total.added = len(history.calls)
        history.feeds[self] = total  # now that it is complete
        return total

    def _put(self, history: FastHistory, total: Total, call: Call) -> None:
        amount = 0 if call.outcome in NO_EFFECT else self._ends_of(call)[1]
        total.amount += amount
        if call.outcome in UNSETTLED:
            total.unsettled[call.at] = amount
            history.watched.add(call.at)

    def _ends_of(self, call: Call) -> _Ends:
        """Return the least and the greatest amount of the core calls that a call may be."""
        table = self._amounts[call.tool]
        states = [call.state(name) for name in table.names]
        known = tuple([state != UNKNOWN for state in states])
        ends = self._ends.get((call.tool, known))
        if ends is None:
            ends = self._ends[call.tool, known] = self._ends_by(table, known)
        return ends.get(tuple([state for state in states if state != UNKNOWN]), _NOTHING)

    def _ends_by(
        self, table: AmountTable, known: tuple[bool, ...]
    ) -> dict[tuple[State, ...], _Ends]:
        found: dict[tuple[State, ...], _Ends] = {}
        for values, amounts in table.rows:
            key = tuple([value for value, is_known in zip(values, known, strict=True) if is_known])
            amount = amounts[self.what]
            least, most = found.get(key, (amount, amount))
            found[key] = min(least, amount), max(most, amount)
        return found


_Ends = tuple[Any, Any]
_NOTHING: _Ends = 0, 0  # no call of the core fits


class Total:
    """The total of the calls of a history so far."""

    __slots__ = ("added", "amount", "logged", "unsettled")

    def __init__(self) -> None:
        self.added = 0
        self.logged = 0
        self.amount: Any = 0
        self.unsettled: dict[int, Any] = {}  # amounts of calls with unknown outcomes, by position

    def move(self, places: Mapping[int, int]) -> None:
        """Renumber the calls after others were forgotten."""
        self.added, self.logged = len(places), 0
        self.unsettled = {places[at]: amount for at, amount in self.unsettled.items()}
