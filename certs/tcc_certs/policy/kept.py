"""A policy that keeps intermediate results: sums, debts and the latest members of sources.

:class:`KeptPolicy` decides like :class:`tcc_certs.policy.meaning.Policy`.  It evaluates the same
conditions by the same rules, but a session of n calls takes time linear in n:

- Each call and outcome updates the sums of limits and totals.
- A debt is checked only when its call, a paying call or an attribute becomes known.
- The calls of a source, and their number, are kept (:mod:`tcc_certs.policy.kept_sources`).

Tests compare it with the definition over a plain list.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from tcc_certs.policy import forgetting, forms
from tcc_certs.policy.core import Core, Learned
from tcc_certs.policy.forgetting import Forgetting
from tcc_certs.policy.forms import Rule, Source, Tools
from tcc_certs.policy.history import ANSWERED, DONE, FAILED, Call, DictHistory, Draw, History
from tcc_certs.policy.kept_sources import Feed, KeptEvaluation, Plain
from tcc_certs.policy.meaning import (
    Debt,
    Evaluation,
    Policy,
    Refusal,
    amount_of,
    is_exact,
    policy_of,
)
from tcc_certs.values.places import State

Ends: TypeAlias = "Mapping[str, tuple[Any, Any]]"  # by amount, the least and the greatest

_NO_EFFECT = (FAILED, ANSWERED)


class KeptPolicy(Policy):
    """The statements of a core.  Its histories come from :meth:`history`."""

    def __init__(self, core: Core) -> None:
        vars(self).update(vars(policy_of(core)))  # reuses the resolved words of the core
        self.limits = {at: rule for at, rule in enumerate(self.rules) if rule.kind == "limit"}
        self.totals = self._totals
        self._ends: dict[tuple[Any, ...], Ends] = {}
        self._deciders: dict[str, list[tuple[int, _PlainLimit | None]]] = {}
        self.learned = frozenset(one.name for one in core.given if isinstance(one, Learned))
        self.plain: dict[int, Plain] = {}  # by the id of the source
        self.owes = {at: rule for at, rule in enumerate(self.rules) if rule.kind == "owe"}
        self.forgetting = forgetting_of(core, self.rules)

    def ends(self, call: Call) -> Ends:
        """Return the least and greatest amounts of a call.

        Equal listed fields give the same object.
        """
        key = call.tool, *[call.state(name) for name in self.amounts[call.tool].names]
        found = self._ends.get(key)
        if found is None:
            found = self._ends[key] = {
                what: (
                    amount_of(call, what, self.amounts, min),
                    amount_of(call, what, self.amounts, max),
                )
                for what in {self.rules[number].what for number in self.totals}
            }
        return found

    def history(self, core: Core, given: Mapping[str, State]) -> KeptHistory:
        """Return a new history for a session of this core."""
        return KeptHistory(self, core, given)

    def evaluation(self, history: History, call: Call | None, now_ms: int) -> Evaluation:
        """See :class:`Policy`."""
        return KeptEvaluation(history, call, now_ms)

    def refusals(self, history: Any, call: Call, now_ms: int) -> list[Refusal]:
        """See :class:`Policy`."""
        found = []
        for number, limit in self._deciding(call.tool):
            if limit is None:
                code = self._refused(number, history, call, now_ms)
            else:
                draw = self.draw(number, history, call, now_ms)
                if draw is None:
                    raise TypeError(number)
                total = draw.amount + history.sums[number].of(draw.key, now_ms)
                code = "" if total <= limit.most else "R202"
            if code:
                found.append(Refusal(number, code))
        return found

    def _deciding(self, tool: str) -> Sequence[tuple[int, _PlainLimit | None]]:
        """Return the statements that decide calls of a tool, in order, with their plain limits."""
        found = self._deciders.get(tool)
        if found is None:
            numbers = sorted([*self._statements_of(tool), *self._totals])
            found = self._deciders[tool] = [(at, _plain_limit(self.rules[at])) for at in numbers]
        return found

    def draws(self, history: Any, call: Call, now_ms: int) -> Mapping[int, Draw]:
        """See :class:`Policy`.  Draws that the decision computed are reused."""
        found = {}
        for number, _ in self._deciding(call.tool):
            if number in self.limits:
                draw = self.draw(number, history, call, now_ms)
                if draw is not None:
                    found[number] = draw
        return found

    def draw(self, number: int, history: Any, call: Call, now_ms: int) -> Draw | None:
        """See :class:`Policy`."""
        drawn = history.drawn(call)
        if number not in drawn:
            drawn[number] = super().draw(number, history, call, now_ms)
        found: Draw | None = drawn[number]
        return found

    def counted(self, number: int, history: Any, draw: Draw, now_ms: int) -> Any:
        """See :class:`Policy`."""
        return history.sums[number].of(draw.key, now_ms)

    def total(self, number: int, history: Any, call: Call) -> Any:
        """See :class:`Policy`."""
        what = self.rules[number].what
        return history.totals.of(what) + self.ends(call)[what][0]

    def forget(self, history: Any, now_ms: int) -> None:
        """See :class:`Policy`.  A history is searched only when its number of calls has doubled."""
        if len(history.calls) >= history.next_look:
            history.forget(now_ms)

    def debts_of(self, number: int, history: Any, now_ms: int) -> list[Debt]:
        """See :class:`Policy`."""
        within = self.rules[number].within
        return [
            Debt(number, call, None if within is None else call.at_ms + within)
            for call in history.owed[number].open.values()
        ]

    def is_overdue(self, number: int, history: Any, now_ms: int) -> bool:
        """See :class:`Policy`."""
        within = self.rules[number].within
        first = next(iter(history.owed[number].open.values()), None)
        return first is not None and within is not None and first.at_ms + within < now_ms


class _PlainLimit(NamedTuple):
    """A limit without a filter and with a constant bound."""

    most: Any


def _plain_limit(rule: Rule) -> _PlainLimit | None:
    """Return the plain limit of a statement.

    None: it is no limit, or has a filter or varying bound.
    """
    if rule.kind != "limit" or rule.where or not isinstance(rule.most, forms.Constant):
        return None
    kind, most = rule.most.state
    return _PlainLimit(most) if kind == "n" else None


class KeptHistory(DictHistory):
    """A history that keeps sums, totals and open debts up to date."""

    def __init__(self, policy: KeptPolicy, core: Core, given: Mapping[str, State]) -> None:
        super().__init__(core, given)
        self.sums = {number: _Sum(rule.within) for number, rule in policy.limits.items()}
        self.totals = _Totals(policy)
        self.owed = {number: _Debts(policy, rule) for number, rule in policy.owes.items()}
        self._counts = policy.totals
        self._policy = policy
        self._feeds: dict[int, tuple[Plain, Feed]] = {}
        self._feeds_of: dict[str, list[Feed]] = {}  # by the tool of their calls
        self._drawing: tuple[Call | None, dict[int, Draw | None]] = (None, {})
        self.next_look = forgetting.next_look(0)

    def forget(self, now_ms: int) -> None:
        """Remove the calls that no later decision needs, and renumber the other calls."""
        debts = {number: found.open.values() for number, found in self.owed.items()}
        needed = self._policy.forgetting.needed(self.calls, now_ms, debts)
        self.next_look = forgetting.next_look(len(needed))
        for found in self.sums.values():
            found.forget(now_ms)
        if len(needed) == len(self.calls):
            return
        places = {call.at: at for at, call in enumerate(needed)}
        for call in needed:
            call.at = places[call.at]
        self.totals.move(places)
        for total in self.sums.values():
            total.move(places)
        for debts_of in self.owed.values():
            debts_of.move(places)
        self.calls = needed
        for kept in (self._indices, self._of_tool, self._feeds, self._feeds_of):
            kept.clear()

    def drawn(self, call: Call) -> dict[int, Draw | None]:
        """Return the cache of draws for the call being decided."""
        if self._drawing[0] is not call:
            self._drawing = (call, {})
        return self._drawing[1]

    def plain(self, source: Source, tools: Tools) -> Plain:
        """Return the prepared form of a plain source, made once for each source."""
        found = self._policy.plain.get(id(source))
        if found is None:
            found = self._policy.plain[id(source)] = Plain(source, tools, self._policy.learned)
        return found

    def feed(self, plain: Plain) -> Feed:
        """Return the feed of a plain source, made at its first use."""
        found = self._feeds.get(id(plain))
        if found is None:
            found = self._feeds[id(plain)] = plain, Feed(plain, self)
            for tool, feeds in self._feeds_of.items():
                if tool in plain.tools:
                    feeds.append(found[1])
        return found[1]

    def _feeds_with(self, tool: str) -> Sequence[Feed]:
        found = self._feeds_of.get(tool)
        if found is None:
            found = [feed for plain, feed in self._feeds.values() if tool in plain.tools]
            self._feeds_of[tool] = found
        return found

    def add(self, call: Call, draws: Mapping[int, Draw]) -> None:
        """See :class:`DictHistory`."""
        call.at = len(self.calls)
        self.calls.append(call)
        self._add_to_indices(call)
        for feed in self._feeds_with(call.tool):
            feed.add(call)
        self._drawing = (None, {})
        for number, draw in draws.items():
            self.sums[number].add(draw)
        if self._counts:
            self.totals.add(call)
        for debts in self.owed.values():
            debts.add(self, call)

    def record(self, call: Call, outcome: str, answers: Mapping[str, State]) -> None:
        """See :class:`DictHistory`."""
        known = len(self._given)
        feeds = self._feeds_with(call.tool)
        for feed in feeds:
            feed.record(call)
        super().record(call, outcome, answers)
        for feed in feeds:
            feed.recorded(call)
        self._drawing = (None, {})
        for number in self._limits_of(call):
            self.sums[number].record(call)
        if self._counts:
            self.totals.record(call)
        for debts in self.owed.values():
            debts.record(self, call, learned=len(self._given) > known)

    def _limits_of(self, call: Call) -> Sequence[int]:
        return [number for number, total in self.sums.items() if call.at in total.drawn]


class _Sum:
    """The sums of the draws of a limit, by key.

    Attributes:
        drawn: the draws of calls that may still fail, by the index of the call.
    """

    def __init__(self, within: int | None) -> None:
        self._within = within
        self._sums: dict[tuple[State, ...] | None, Any] = {}
        # the draws in the window
        self._draws: dict[tuple[State, ...] | None, deque[list[Any]]] = {}
        self.drawn: dict[int, tuple[tuple[State, ...] | None, list[Any]]] = {}

    def add(self, draw: Draw) -> None:
        """Add the draw of a decided call."""
        item = [draw.call.at_ms, draw.amount]
        self._sums[draw.key] = self._sums.get(draw.key, 0) + draw.amount
        if self._within is not None:
            self._draws.setdefault(draw.key, deque()).append(item)
        self.drawn[draw.call.at] = draw.key, item

    def record(self, call: Call) -> None:
        """Update the sums after an outcome became known."""
        if call.outcome == DONE:
            del self.drawn[call.at]
        elif call.outcome in _NO_EFFECT:
            key, item = self.drawn.pop(call.at)
            if item[0] is not None:
                self._sums[key] -= item[1]
                item[1] = 0

    def forget(self, now_ms: int) -> None:
        """Remove the keys without draws in the window."""
        for key in list(self._draws):
            self._sum(key, now_ms)
            if not self._draws[key]:
                del self._draws[key], self._sums[key]

    def move(self, places: Mapping[int, int]) -> None:
        """Apply the new indices of the remaining calls."""
        self.drawn = {places[at]: draw for at, draw in self.drawn.items()}

    def of(self, key: tuple[State, ...] | None, now_ms: int) -> Any:
        """Return the sum of the draws with this key or an unknown key.

        If `key` is None, the result uses the key with the greatest sum.
        """
        unknown = self._sum(None, now_ms)
        if key is not None:
            return unknown + self._sum(key, now_ms)
        others = [self._sum(other, now_ms) for other in self._sums if other is not None]
        return unknown + max(others, default=0)

    def _sum(self, key: tuple[State, ...] | None, now_ms: int) -> Any:
        if self._within is not None:
            draws = self._draws.get(key, ())
            while draws and draws[0][0] < now_ms - self._within:
                item = draws.popleft()
                self._sums[key] -= item[1]
                item[0] = None
        return self._sums.get(key, 0)


class _Totals:
    """The totals of a session: sums of the greatest amounts of its calls."""

    def __init__(self, policy: KeptPolicy) -> None:
        self._ends = policy.ends
        self._sums: dict[str, Any] = {policy.rules[number].what: 0 for number in policy.totals}
        self._open: dict[int, Ends] = {}  # calls whose outcome may still change

    def of(self, what: str) -> Any:
        """Return the total of the earlier calls."""
        return self._sums[what]

    def add(self, call: Call) -> None:
        """Add a decided call."""
        ends = self._open[call.at] = self._ends(call)
        self._change(ends, 1)

    def record(self, call: Call) -> None:
        """Update the totals after an outcome became known."""
        if call.outcome not in (DONE, *_NO_EFFECT):
            return
        before = self._open.pop(call.at)
        after = self._ends(call) if call.outcome == DONE else None
        if after is not before:
            self._change(before, -1)
            self._change(after or {}, 1)

    def move(self, places: Mapping[int, int]) -> None:
        """Apply the new indices of the remaining calls."""
        self._open = {places[at]: ends for at, ends in self._open.items()}

    def _change(self, ends: Ends, sign: int) -> None:
        for what, (_, most) in ends.items():
            self._sums[what] += sign * most


class _Debts:
    """The open debts of an `owe`.

    Attributes:
        open: the first call of each open debt, by its index, in order.
    """

    def __init__(self, policy: KeptPolicy, rule: Rule) -> None:
        self._policy, self._rule = policy, rule
        self._names = tuple([key.name for key in rule.keys])
        self.open: dict[int, Call] = {}
        # Open debts with known keys, by the arguments that a paying call must have.
        self._keyed: dict[tuple[State, ...], dict[int, Call]] = {}
        self._loose: dict[int, Call] = {}
        self._key: dict[int, tuple[State, ...] | None] = {}

    def add(self, history: KeptHistory, call: Call) -> None:
        """Open a debt for a decided call, if it is a call of the first set."""
        if self._rule.tools is not None and call.tool in self._rule.tools:
            self.open[call.at] = call
            self._look(history, call)

    def record(self, history: KeptHistory, call: Call, *, learned: bool) -> None:
        """Update the debts after an outcome, and maybe an attribute (`learned`), became known."""
        if learned:
            for other in list(self.open.values()):
                self._look_again(history, other)
        if call.at in self.open:
            self._look_again(history, call)
        if call.outcome == DONE and call.tool in self._rule.pays:
            self._pay(history, call)

    def move(self, places: Mapping[int, int]) -> None:
        """Apply the new indices of the remaining calls."""
        for calls in (self.open, self._loose, *self._keyed.values()):
            moved = {places[at]: call for at, call in calls.items()}
            calls.clear()
            calls.update(moved)
        self._key = {places[at]: key for at, key in self._key.items()}

    def _look(self, history: KeptHistory, call: Call) -> None:
        """Store the debt of a first call by its keys, or drop it if the filter is false."""
        evaluation = self._policy.evaluation(history, call, call.at_ms)
        if evaluation.all_of(self._rule.where) is False:
            del self.open[call.at]
            return
        states = [evaluation.term(key.term) for key in self._rule.keys]
        # null is not exact here: an absent argument equals it
        exact = [is_exact(state) and state[0] != "z" for state in states]
        key = tuple(states) if states and all(exact) else None
        self._key[call.at] = key
        self._of_key(key)[call.at] = call

    def _look_again(self, history: KeptHistory, call: Call) -> None:
        """Check a debt again after its first call or an attribute became known."""
        self._forget_key(call)
        if call.outcome in _NO_EFFECT:
            del self.open[call.at]
            return
        self._look(history, call)
        if call.at in self.open and any(
            self._is_paid(history, call, payer) for payer in history.calls[call.at + 1 :]
        ):
            self._close(call)

    def _close(self, call: Call) -> None:
        self._forget_key(call)
        del self.open[call.at]

    def _of_key(self, key: tuple[State, ...] | None) -> dict[int, Call]:
        return self._loose if key is None else self._keyed.setdefault(key, {})

    def _forget_key(self, call: Call) -> None:
        key = self._key.pop(call.at)
        calls = self._of_key(key)
        del calls[call.at]
        if key is not None and not calls:
            del self._keyed[key]

    def _pay(self, history: KeptHistory, payer: Call) -> None:
        found = list(self._loose.values())
        if self._names:
            arguments = tuple([payer.arguments[name] for name in self._names])
            found += self._keyed.get(arguments, {}).values()
        for call in found:
            if self._is_paid(history, call, payer):
                self._close(call)

    def _is_paid(self, history: KeptHistory, call: Call, payer: Call) -> bool:
        if payer.at <= call.at or payer.outcome != DONE or payer.tool not in self._rule.pays:
            return False
        evaluation = self._policy.evaluation(history, call, call.at_ms)
        evaluation.bind(1, payer)
        return evaluation.all_of(self._rule.paying) is True


def forgetting_of(core: Core, rules: Sequence[Rule]) -> Forgetting:
    """Return the object that finds the calls which the statements of a core still need."""
    fields = {
        tool.name: frozenset([one.name for one in (*tool.arguments, *tool.answers)])
        for tool in core.tools
    }
    return Forgetting(rules, fields)


def kept_policy_of(core: Core) -> KeptPolicy:
    """Return the kept policy of a core.  It is computed once for each core.

    Raises:
        Fault: a statement or a `let` is wrong.
    """
    found: KeptPolicy | None = core.__dict__.get("_kept_policy")
    if found is None:
        found = core.__dict__["_kept_policy"] = KeptPolicy(core)
    return found
