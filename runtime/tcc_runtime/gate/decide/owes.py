"""Open obligations of a session: calls that owe another call which was not made yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from tcc_certs.policy.forms import Rule
from tcc_certs.policy.history import DONE, Call
from tcc_certs.policy.meaning import Debt
from tcc_certs.values.places import NONE, UNKNOWN
from tcc_runtime.gate.decide.conditions import Compiler
from tcc_runtime.gate.decide.feeds import Frame, is_usable
from tcc_runtime.gate.decide.history import NO_EFFECT, UNSETTLED


class Owe:
    """An `owe` statement: a *first call* has to be followed by a call that *pays* it.

    Args:
        compiler: compiles conditions in which level 0 is the first call.
    """

    def __init__(self, number: int, rule: Rule, compiler: Compiler) -> None:
        self._number = number
        self._tools = rule.tools or frozenset()
        self._pays = rule.pays
        self._within = rule.within
        self._where = compiler.all_of(rule.where, False)
        self._paying = compiler.all_of(rule.paying, False)
        self._names = tuple([key.name for key in rule.keys])
        self._keys = [(compiler.term(key.term), key.same) for key in rule.keys]
        self._depends = compiler.depends((*rule.where, *rule.paying))

    def decide(self, frame: Frame) -> str:
        """Return R208 if the decided call is restricted and the oldest obligation is overdue; else
        ''.
        """
        if self._where(frame) is False:
            return ""
        if self._within is None:
            return ""
        first = self.caught_up(frame).first()
        return "R208" if first is not None and first.at_ms + self._within < frame.now else ""

    def debts(self, frame: Frame) -> list[Debt]:
        """Return the obligations that may be open, in the order of their first calls."""
        within = self._within
        return [
            Debt(self._number, call, None if within is None else call.at_ms + within)
            for call in self.caught_up(frame).open.values()
        ]

    def oldest(self, frame: Frame) -> Debt | None:
        """Return the first obligation that may be open, or None."""
        call = self.caught_up(frame).first()
        if call is None:
            return None
        within = self._within
        return Debt(self._number, call, None if within is None else call.at_ms + within)

    def is_open(self, frame: Frame) -> bool:
        """Return whether an obligation may be open."""
        return bool(self.caught_up(frame).open)

    def caught_up(self, frame: Frame) -> Debts:
        """Return the debts of the frame's history after adding new calls and outcomes."""
        history = frame.history
        debts: Debts | None = history.feeds.get(self)
        if debts is None:
            debts = Debts()
            if self._depends:
                history.dependent.append(self)
        elif debts.added == len(history.calls) and debts.logged == len(history.log):
            return debts
        # A separate frame: the given frame has the decided call as element 0.
        inner = Frame(frame.closures, history, None, frame.now)
        history.feeds.pop(self, None)
        for call in history.log[debts.logged :]:
            if call.at < debts.added:
                self._changed(inner, debts, call)
        debts.logged = len(history.log)
        for call in history.calls[debts.added :]:
            self._entered(inner, debts, call)
        debts.added = len(history.calls)
        history.feeds[self] = debts  # now that it is complete
        return debts

    def _entered(self, frame: Frame, debts: Debts, call: Call) -> None:
        """Add a new call."""
        if call.tool in self._pays:
            self._pay(frame, debts, call)
        elif call.tool not in self._tools:
            return
        if call.tool in self._tools and self._may_owe(frame, call):
            debts.add(call, self._key_of(frame, call))
        if call.outcome in UNSETTLED:
            frame.history.watched.add(call.at)

    def _changed(self, frame: Frame, debts: Debts, call: Call) -> None:
        """Update the debts after the outcome of a call became known."""
        if call.at in debts.open:
            if self._may_owe(frame, call) and not self._is_paid(frame, call, debts.added):
                debts.index(call, self._key_of(frame, call))
            else:
                debts.remove(call.at)
        if call.tool in self._pays:
            self._pay(frame, debts, call)

    def _may_owe(self, frame: Frame, call: Call) -> bool:
        frame.elements[0] = call
        return call.outcome not in NO_EFFECT and self._where(frame) is not False

    def _pay(self, frame: Frame, debts: Debts, later: Call) -> None:
        """Close the debts that a call pays."""
        if later.outcome != DONE:
            return
        key: Any = tuple([later.arguments[name] for name in self._names])
        if NONE in key or UNKNOWN in key:
            key = None
        frame.elements[1] = later
        for first in debts.of_key(key):
            frame.elements[0] = first
            if first.at < later.at and self._paying(frame) is True:
                debts.remove(first.at)

    def _is_paid(self, frame: Frame, first: Call, added: int) -> bool:
        """Return whether a call after `first` pays its debt.

        Args:
            added: only calls at positions below this are looked at.
        """
        frame.elements[0] = first
        states = [(term(frame), same) for term, same in self._keys]
        wanted = [
            (name, state, same)
            for name, (state, same) in zip(self._names, states, strict=True)
            if is_usable(state, same)
        ]
        for later in frame.history.candidates(self._pays, wanted, None):
            if first.at < later.at < added and later.outcome == DONE:
                frame.elements[1] = later
                if self._paying(frame) is True:
                    return True
        return False

    def _key_of(self, frame: Frame, first: Call) -> Any:
        """Return the key values that a call needs to pay the debt of `first`; None: they are not
        known.
        """
        frame.elements[0] = first
        states = [(term(frame), same) for term, same in self._keys]
        usable = all(is_usable(state, same) and state != NONE for state, same in states)
        return tuple([state for state, _ in states]) if usable else None


class Debts:
    """The open debts of a statement in one session.

    Attributes:
        open: the first calls of open debts by their positions, in order.
        added, logged: how many calls, and records of `log`, are taken into account.
    """

    def __init__(self) -> None:
        self.added = 0
        self.logged = 0
        self.open: dict[int, Call] = {}
        self._order: deque[Call] = deque()
        self._keys: dict[int, Any] = {}
        self._of_key: dict[Any, dict[int, Call]] = {}

    def first(self) -> Call | None:
        """Return the first call of the oldest open debt, or None."""
        while self._order and self._order[0].at not in self.open:
            self._order.popleft()
        return self._order[0] if self._order else None

    def of_key(self, key: Any) -> list[Call]:
        """Return the first calls whose debts a call with this key may pay; all of them if `key` is
        None.
        """
        if key is None:
            return list(self.open.values())
        found = [*self._of_key.get(key, {}).values()]
        return [*found, *self._of_key.get(None, {}).values()]

    def add(self, call: Call, key: Any) -> None:
        """Open a debt."""
        self.open[call.at] = call
        self._order.append(call)
        self._put(call, key)

    def index(self, call: Call, key: Any) -> None:
        """Replace the key of an open debt."""
        self._take(call.at)
        self._put(call, key)

    def move(self, places: Mapping[int, int]) -> None:
        """Renumber the calls after others were forgotten.

        Args:
            places: the new position of each call by its old one.
        """
        self.added, self.logged = len(places), 0
        keys = {at: self._keys[at] for at in self.open}
        calls = list(self.open.values())
        self.open, self._keys, self._of_key = {}, {}, {}
        self._order = deque(calls)
        for call, key in zip(calls, keys.values(), strict=True):
            self.open[call.at] = call
            self._put(call, key)

    def remove(self, at: int) -> None:
        """Close a debt."""
        del self.open[at]
        self._take(at)

    def _put(self, call: Call, key: Any) -> None:
        self._keys[call.at] = key
        self._of_key.setdefault(key, {})[call.at] = call

    def _take(self, at: int) -> None:
        key = self._keys.pop(at)
        del self._of_key[key][at]
        if not self._of_key[key]:
            del self._of_key[key]
