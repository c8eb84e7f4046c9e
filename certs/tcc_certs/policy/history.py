"""The calls of a session, as the evaluation of statements queries them.

A history has the calls in the order of their decisions.  The arguments of a call are known from its
decision on.  Its outcome and answers become known later.  :class:`ListHistory` scans its calls, and
:class:`DictHistory` looks them up by their keys.  Both give the same answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import merge
from itertools import product
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple, Protocol, TypeAlias

from tcc_certs.policy.core import Core, Learned
from tcc_certs.policy.forms import Tools
from tcc_certs.values.places import NONE, UNKNOWN, State

# Outcomes of calls. OPEN: the call is under way. LOST: its outcome is unknown; both count alike.
OPEN, DONE, FAILED, ANSWERED, LOST = "open", "done", "failed", "answered", "unknown"


@dataclass(slots=True, eq=False)
class Call:
    """A call that was decided.

    Attributes:
        at: its index among the calls that the history keeps.
        at_ms: the time of its decision, UTC milliseconds; 0 if no statement needs times.
        arguments: the states of all declared arguments.
        outcome: OPEN, DONE, FAILED, ANSWERED (failed, and the agent read the error) or LOST.
        answers: the states of all declared answers if the call is done, else empty.
        number: its index among all calls of its session.
    """

    tool: str
    at: int
    at_ms: int
    arguments: Mapping[str, State]
    outcome: str = OPEN
    answers: Mapping[str, State] = field(default_factory=dict)
    number: int = -1

    def state(self, name: str) -> State:
        """Return the state of a field; an answer of a call that is not done is UNKNOWN."""
        found = self.arguments.get(name)
        if found is not None:
            return found
        return self.answers.get(name, UNKNOWN) if self.outcome == DONE else UNKNOWN


class Draw(NamedTuple):
    """The amount that a decided call counts under a limit.

    Attributes:
        key: the states of the `per` terms; None if any of them is unknown.
        amount: 1, or the value of the limit's field.
    """

    call: Call
    key: tuple[State, ...] | None
    amount: Any


# an argument's name, a state, and whether absent equals absent
Wanted: TypeAlias = "tuple[str, State, bool]"


class History(Protocol):
    """The queries about a session that the evaluation of statements makes."""

    @property
    def calls(self) -> Sequence[Call]:
        """All decided calls, in order."""

    def candidates(
        self, tools: Tools, keys: Sequence[Wanted], since_ms: int | None
    ) -> Sequence[Call]:
        """Return the calls of these tools that do not surely differ from the keys, in order.

        Args:
            since_ms: leave out calls that were decided earlier; None: leave out none.
        """

    def draws(
        self, limit: int, key: tuple[State, ...] | None, since_ms: int | None, across: bool
    ) -> Sequence[Draw]:
        """Return the draws on a limit with this key or an unknown key, in order.

        If `key` is None, return all draws.

        Args:
            limit: the number of the statement.
            since_ms: leave out draws of calls that were decided earlier; None: leave out none.
            across: whether to include the draws of other sessions.
        """

    def attribute(self, name: str) -> State:
        """Return the state of an attribute of the session."""


def differs(found: State, wanted: State, same: bool) -> bool:
    """Return whether an argument surely differs from the state of a key.

    An absent side differs from a value only if `same` is True.
    """
    if found == UNKNOWN or wanted == UNKNOWN:
        return False
    if NONE in (found, wanted):
        return same and found != wanted
    return found != wanted


class ListHistory:
    """A history that scans its calls.

    Args:
        given: the states of the attributes that the session starts with.
        account: the draws of all sessions, by the number of the limit.  Sessions share this object;
            None: the session counts only its own draws.
    """

    def __init__(
        self,
        core: Core,
        given: Mapping[str, State],
        account: dict[int, list[Draw]] | None = None,
    ) -> None:
        self.calls: list[Call] = []
        self._draws: dict[int, list[Draw]] = {}
        self._account = self._draws if account is None else account
        self._given = dict(given)
        self._learned = {one.name: one for one in core.given if isinstance(one, Learned)}

    def candidates(
        self, tools: Tools, keys: Sequence[Wanted], since_ms: int | None
    ) -> Sequence[Call]:
        """See :class:`History`."""
        return [
            call
            for call in self.calls
            if call.tool in tools
            and (since_ms is None or call.at_ms >= since_ms)
            and not any(differs(call.arguments[name], state, same) for name, state, same in keys)
        ]

    def draws(
        self, limit: int, key: tuple[State, ...] | None, since_ms: int | None, across: bool
    ) -> Sequence[Draw]:
        """See :class:`History`."""
        draws = self._account if across else self._draws
        return [
            draw
            for draw in draws.get(limit, [])
            if (since_ms is None or draw.call.at_ms >= since_ms)
            and (key is None or draw.key is None or draw.key == key)
        ]

    def attribute(self, name: str) -> State:
        """See :class:`History`."""
        return self._given.get(name, UNKNOWN if name in self._learned else NONE)

    def add(self, call: Call, draws: Mapping[int, Draw]) -> None:
        """Add a decided call with its draw on each limit."""
        self.calls.append(call)
        for limit, draw in draws.items():
            self._draws.setdefault(limit, []).append(draw)
            if self._account is not self._draws:
                self._account.setdefault(limit, []).append(draw)

    def record(self, call: Call, outcome: str, answers: Mapping[str, State]) -> None:
        """Set the outcome of a call.  A done call may set attributes that the session learns."""
        call.outcome, call.answers = outcome, answers
        if outcome != DONE:
            return
        for name, learned in self._learned.items():
            if name in self._given:
                continue
            for tool, of in learned.sources:
                state = call.state(of) if call.tool == tool else NONE
                if state not in (NONE, UNKNOWN) and state[0] != "*":
                    self._given[name] = state
                    break


class Index:
    """The calls of a set of tools, grouped by some of their arguments; each group is in order."""

    def __init__(self, tools: Tools, names: tuple[str, ...]) -> None:
        self.tools = tools
        self.calls: dict[tuple[State, ...], list[Call]] = {}
        self._names = names

    def add(self, call: Call) -> None:
        """Add a call that is later than all calls of the index."""
        key = tuple([call.arguments[name] for name in self._names])
        self.calls.setdefault(key, []).append(call)


class DictHistory(ListHistory):
    """A history that looks calls up by keys.  Each combination of arguments has one index."""

    def __init__(
        self,
        core: Core,
        given: Mapping[str, State],
        account: dict[int, list[Draw]] | None = None,
    ) -> None:
        super().__init__(core, given, account)
        self._indices: dict[tuple[Tools, tuple[str, ...]], Index] = {}
        self._of_tool: dict[str, list[Index]] = {}  # by tool, the indices that contain its calls
        self._buckets: dict[int, dict[tuple[State, ...] | None, list[Draw]]] = {}

    def add(self, call: Call, draws: Mapping[int, Draw]) -> None:
        """See :class:`ListHistory`."""
        super().add(call, draws)
        self._add_to_indices(call)
        for limit, draw in draws.items():
            self._buckets.setdefault(limit, {}).setdefault(draw.key, []).append(draw)

    def _add_to_indices(self, call: Call) -> None:
        indices = self._of_tool.get(call.tool)
        if indices is None:
            indices = [one for one in self._indices.values() if call.tool in one.tools]
            self._of_tool[call.tool] = indices
        for index in indices:
            index.add(call)

    def candidates(
        self, tools: Tools, keys: Sequence[Wanted], since_ms: int | None
    ) -> Sequence[Call]:
        """See :class:`History`."""
        usable = [key for key in keys if key[1] != UNKNOWN]
        # A key without `same` and with an absent term is unsure for every call, so it excludes
        # none.
        usable = sorted([key for key in usable if key[1] != NONE or key[2]], key=itemgetter(0))
        index = self.index(tools, tuple([name for name, _, _ in usable]))
        # The argument of a candidate equals the key's state or is unknown. Without `same` it may be
        # absent.
        choices = [
            (state, UNKNOWN) if same else (state, NONE, UNKNOWN) for _, state, same in usable
        ]
        calls = index.calls
        found = [calls[key] for key in product(*choices) if key in calls]
        return since(_in_order(found, attrgetter("at")), since_ms, attrgetter("at_ms"))

    def index(self, tools: Tools, names: tuple[str, ...]) -> Index:
        """Return the index of calls of these tools by the named arguments.

        The first use builds it.
        """
        index = self._indices.get((tools, names))
        if index is None:
            index = self._indices[tools, names] = Index(tools, names)
            for call in self.calls:
                if call.tool in tools:
                    index.add(call)
            for tool, indices in self._of_tool.items():
                if tool in tools:
                    indices.append(index)
        return index

    def draws(
        self, limit: int, key: tuple[State, ...] | None, since_ms: int | None, across: bool
    ) -> Sequence[Draw]:
        """See :class:`History`."""
        if across and self._account is not self._draws:
            return super().draws(limit, key, since_ms, across)
        buckets = self._buckets.get(limit, {})
        keys = buckets if key is None else [one for one in (key, None) if one in buckets]
        found = _in_order([buckets[one] for one in keys], lambda draw: draw.call.at)
        return since(found, since_ms, lambda draw: draw.call.at_ms)


def _in_order(runs: Sequence[list[Any]], key: Any) -> list[Any]:
    return runs[0] if len(runs) == 1 else list(merge(*runs, key=key))


def since(found: list[Any], since_ms: int | None, time: Any) -> list[Any]:
    """Return the elements at or after a time; times of the elements never decrease."""
    if since_ms is None:
        return found
    low, high = 0, len(found)
    while low < high:
        middle = (low + high) // 2
        if time(found[middle]) < since_ms:
            low = middle + 1
        else:
            high = middle
    return found[low:]
