"""The calls of a session, as the definition of statements asks for them.

A history has the calls in the order of their decisions.  Arguments are known from the decision on;
the outcome and the answers become known later.  :class:`ListHistory` scans its calls, and
:class:`DictHistory` looks them up by their keys: both answer every question alike.
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

# Outcomes.  A call that is under way is OPEN, and counts like one whose outcome is UNKNOWN.
OPEN, DONE, FAILED, ANSWERED, LOST = "open", "done", "failed", "answered", "unknown"


@dataclass(slots=True, eq=False)
class Call:
    """A call that was decided.

    Attributes:
        at: its place among the calls that the history has, from 0.
        at_ms: when it was decided, UTC milliseconds; 0 where no statement needs times.
        arguments: the states of all declared arguments.
        outcome: OPEN, DONE, FAILED, ANSWERED (failed with an error that the agent has read), LOST.
        answers: of a call that is done, the states of all declared answers.
        number: its place among all calls of its session, from 0.
    """

    tool: str
    at: int
    at_ms: int
    arguments: Mapping[str, State]
    outcome: str = OPEN
    answers: Mapping[str, State] = field(default_factory=dict)
    number: int = -1

    def state(self, name: str) -> State:
        """The state of a field; an answer of a call that is not done is UNKNOWN."""
        found = self.arguments.get(name)
        if found is not None:
            return found
        return self.answers.get(name, UNKNOWN) if self.outcome == DONE else UNKNOWN


class Draw(NamedTuple):
    """What a decided call counts under a limit.

    Attributes:
        key: the states of the `per` terms; None: one of them is unknown.
        amount: 1, or the value of the field that is added up.
    """

    call: Call
    key: tuple[State, ...] | None
    amount: Any


Wanted: TypeAlias = "tuple[str, State, bool]"  # an argument, its state, whether absent is equal


class History(Protocol):
    """What the definition asks of a session."""

    @property
    def calls(self) -> Sequence[Call]:
        """All decided calls, in order."""

    def candidates(
        self, tools: Tools, keys: Sequence[Wanted], since_ms: int | None
    ) -> Sequence[Call]:
        """The calls of these tools whose arguments do not surely differ from the keys.

        Args:
            since_ms: only calls that were decided then or later.
        """

    def draws(
        self, limit: int, key: tuple[State, ...] | None, since_ms: int | None, across: bool
    ) -> Sequence[Draw]:
        """The draws under a limit whose key is `key` or unknown; all draws where `key` is None.

        Args:
            limit: the number of the statement.
            across: whether the draws of other sessions are among them.
        """

    def attribute(self, name: str) -> State:
        """The state of an attribute of the session."""


def differs(found: State, wanted: State, same: bool) -> bool:
    """Whether an argument surely differs from the state of a key."""
    if found == UNKNOWN or wanted == UNKNOWN:
        return False
    if NONE in (found, wanted):
        return same and found != wanted
    return found != wanted


class ListHistory:
    """A history that scans its calls.

    Args:
        given: the states of the attributes that the session starts with.
        account: the draws of all sessions, by the number of the limit; sessions share it.
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
        """Add a call that was decided, with what it draws under each limit."""
        self.calls.append(call)
        for limit, draw in draws.items():
            self._draws.setdefault(limit, []).append(draw)
            if self._account is not self._draws:
                self._account.setdefault(limit, []).append(draw)

    def record(self, call: Call, outcome: str, answers: Mapping[str, State]) -> None:
        """Record an outcome; attributes are learned in the order of these records."""
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
    """The calls of a set of tools by some of their arguments, each list in order.

    Attributes:
        is_plain: whether each argument of each call has a value.
    """

    def __init__(self, tools: Tools, names: tuple[str, ...]) -> None:
        self.tools = tools
        self.calls: dict[tuple[State, ...], list[Call]] = {}
        self.is_plain = True
        self._names = names

    def add(self, call: Call) -> None:
        """Add the latest call."""
        arguments = call.arguments
        key = tuple([arguments[name] for name in self._names])
        calls = self.calls.get(key)
        if calls is None:
            self.calls[key] = [call]
            if NONE in key or UNKNOWN in key:
                self.is_plain = False
        else:
            calls.append(call)


class DictHistory(ListHistory):
    """A history that looks calls up by their keys; each kind of question has an index."""

    def __init__(
        self,
        core: Core,
        given: Mapping[str, State],
        account: dict[int, list[Draw]] | None = None,
    ) -> None:
        super().__init__(core, given, account)
        self._indices: dict[tuple[Tools, tuple[str, ...]], Index] = {}
        self._of_tool: dict[str, list[Index]] = {}  # the indices that have the calls of a tool
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
        # An absent side is unsure of every value: the other keys decide.
        usable = sorted([key for key in usable if key[1] != NONE or key[2]], key=itemgetter(0))
        index = self.index(tools, tuple([name for name, _, _ in usable]))
        # An argument that is absent is unsure under `=`, and one that is unknown under both.
        choices = [
            (state, UNKNOWN) if same else (state, NONE, UNKNOWN) for _, state, same in usable
        ]
        calls = index.calls
        found = [calls[key] for key in product(*choices) if key in calls]
        return since(_in_order(found, attrgetter("at")), since_ms, attrgetter("at_ms"))

    def index(self, tools: Tools, names: tuple[str, ...]) -> Index:
        """The calls of these tools by the arguments of these names."""
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
    """The last elements, from a time on; times never fall."""
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
