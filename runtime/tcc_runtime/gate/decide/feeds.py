"""Indexes of sources: the calls of a session that belong to a source, by the source's keys.

A *stream* is a source of calls, or of fields of calls, that can have an index: its conditions
depend only on the call itself and on its keys.  One more condition may compare the call with the
decided call.  Such a stream has buckets of :mod:`tcc_runtime.gate.decide.relations`.  The index of
a stream in one session is its *feed*. A feed has a *bucket* for each combination of key values.  A
bucket has the number of calls that surely and maybe belong to the source, their positions, or the
values that an aggregate needs.

A feed answers only if the definition would look at all candidates, and if the keys decide which
calls these are.  Otherwise the definition looks at the candidates, one after the other.
Cost: each call is added to a feed once, and again when its outcome becomes known.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from operator import itemgetter
from typing import Any, ClassVar, TypeAlias

from tcc_certs.policy import forms
from tcc_certs.policy.forms import Condition, Key, Source, Term
from tcc_certs.policy.history import ANSWERED, DONE, FAILED, Call
from tcc_certs.policy.kinds import walk
from tcc_certs.policy.meaning import (
    NO_VALUE,
    Element,
    Evaluation,
    Member,
    Members,
    Pick,
    Truth,
    compare,
    ends_of,
    is_exact,
    shown,
    value_of,
)
from tcc_certs.values.places import NONE, UNKNOWN, State
from tcc_runtime.gate.decide.history import UNSETTLED, FastHistory

PLAIN = frozenset(
    {"s", "n", "b", "t", "p", "u", "j", "z"}
)  # two values of these kinds are equal if their states are
EXACT = PLAIN | {"d"}  # or two values that are known by their digests
UNBOUNDED = 1 << 62

Closure: TypeAlias = "Callable[[Frame], Truth]"
Read: TypeAlias = "Callable[[Frame], State]"


class Frame(Evaluation):
    """An evaluation whose conditions are closures.

    Args:
        closures: compiles conditions and sources of `last` to closures.

    Attributes:
        call, arguments: the call being decided, and the states of its arguments.
        total: the sum that a limit compares with its bound.
    """

    history: FastHistory

    def __init__(
        self, closures: Closures, history: FastHistory, call: Call | None, now_ms: int
    ) -> None:
        self.closures = closures
        self.history = history
        self.now = now_ms
        self.call: Any = call
        self.arguments: Any = None if call is None else call.arguments
        self.elements: dict[int, Any] = {0: call}
        self.picks: dict[Source, Element | None] = {}
        self.bound = 0
        self.cut = False
        self.total: State = UNKNOWN

    def all_of(self, conditions: Sequence[Condition], negative: bool = False) -> Truth:
        """Return whether all conditions are true; evaluated by closures."""
        return self.closures.filter(conditions, negative)(self)

    def _last(self, source: Source) -> Element | None:
        if self.picks and source in self.picks:
            return self.picks[source]
        found = self.closures.last(source)(self)
        if len(found) == 1:
            return found[0]  # only one combination, so no choice is needed
        raise Pick(source, found)

    def rows_of(self, call: Call, sure: bool, layers: Sequence[Source]) -> tuple[list[Member], int]:
        """Return the members of a row source that come from one call, and their number of
        candidates at most.

        Args:
            sure: whether the call is surely in the innermost source.
            layers: the sources of rows around it, from the inside.
        """
        items, size = [Member(call, sure)], 0
        bound, self.bound = self.bound, UNBOUNDED
        try:
            for layer in layers:
                base, _ = self._base_of(layer, items)
                size += sum([max(1, member.many) for member in base.items])
                items = base.items
                if layer.conditions:
                    items = self._filtered(layer, base, len(items), False)
        finally:
            self.bound = bound
        return items, size

    def _base_of(self, layer: Source, items: list[Member]) -> tuple[Members, int]:
        rows = layer.base
        if not isinstance(rows, forms.Rows):
            raise TypeError(rows)
        return self._rows(layer.level, Members(items), rows.get, rows.most)


class Closures:
    """The interface of :class:`tcc_runtime.gate.decide.conditions.Compiler` that a frame needs."""

    def filter(self, conditions: Sequence[Condition], negative: bool) -> Closure:
        """Return the closure of all conditions together."""
        raise NotImplementedError

    def last(self, source: Source) -> Callable[[Frame], list[Element | None]]:
        """Return the closure of the elements that may be the last of a source."""
        raise NotImplementedError


# Buckets.


class Bucket:
    """The part of a feed for one combination of key values.

    Attributes:
        size: an upper bound of the number of candidates.
    """

    # whether it also keeps calls that failed with an error that the agent read
    READS: ClassVar[bool] = False
    size = 0
    places: list[int]  # positions of all candidates, if the stream has `counts`

    def put(self, frame: Frame, stream: Stream, call: Call, members: Sequence[Member]) -> Any:
        """Add the members of a call; return an entry that :meth:`drop` needs."""
        raise NotImplementedError

    def drop(self, call: Call, entry: Any) -> None:
        """Remove the members of a call whose outcome was unknown.  `entry` is the result of
        :meth:`put`.
        """
        raise NotImplementedError

    def note(self, call: Call) -> None:
        """Note whether a candidate has failed, for streams with `counts`."""
        raise NotImplementedError


class Positions(Bucket):
    """The positions of members in the history, increasing; a position occurs once for each member.

    Attributes:
        sure, maybe: positions of members that are surely, or may be, in the source.
        read: positions of failed calls whose error was read.
        many: positions of members that may be several rows.
    """

    READS = True
    # Most buckets have one call, so lists are created when they are needed.
    sure: Sequence[int] = ()
    maybe: Sequence[int] = ()
    read: Sequence[int] = ()
    many: Sequence[int] = ()

    @classmethod
    def of_one(cls, at: int) -> Positions:
        """Return a bucket with one call that is surely a member."""
        found = cls()
        found.size, found.sure = 1, [at]
        return found

    def put(self, frame: Frame, stream: Stream, call: Call, members: Sequence[Member]) -> None:
        """Add the members of a call."""
        read = call.outcome == ANSWERED
        for _, sure, many, _ in members:
            if sure:
                self.sure = _with(self.sure, call.at)
            elif read:
                self.read = _with(self.read, call.at)
            else:
                self.maybe = _with(self.maybe, call.at)
            if many and not read:
                self.many = _with(self.many, call.at)

    def drop(self, call: Call, entry: Any) -> None:
        """Remove the members of a call."""
        for places in (self.sure, self.maybe, self.read, self.many):
            if isinstance(places, list):
                del places[bisect_left(places, call.at) : bisect_right(places, call.at)]


def _with(places: Sequence[int], at: int) -> list[int]:
    """Insert a position; return the list, which is new if `places` is no list."""
    if not isinstance(places, list):
        return [at]
    insort(places, at)
    return places


class Sums(Bucket):
    """The least and greatest possible sum; `unknown` counts members whose amount is not known."""

    def __init__(self) -> None:
        self.low: Any = 0
        self.high: Any = 0
        self.unknown = 0

    def put(self, frame: Frame, stream: Stream, call: Call, members: Sequence[Member]) -> Any:
        """Add the amounts of a call."""
        low: Any = 0
        high: Any = 0
        unknown = 0
        for element, sure, many, _ in members:
            frame.elements[stream.level] = element
            ends = ends_of(stream.term(frame))
            if many or ends is None or None in ends[1:]:
                unknown += 1
                continue
            low += ends[1] if sure else min(ends[1], 0)
            high += ends[2] if sure else max(ends[2], 0)
        self.low += low
        self.high += high
        self.unknown += unknown
        return low, high, unknown

    def drop(self, call: Call, entry: Any) -> None:
        """Subtract the amounts of a call."""
        low, high, unknown = entry
        self.low -= low
        self.high -= high
        self.unknown -= unknown


class Values(Bucket):
    """How many members have each value.

    Attributes:
        sure: values of members that are surely in the source.
        known, read: values of all members, and of failed calls whose error was read.
        many: how many members may be several rows.
    """

    READS = True

    def __init__(self) -> None:
        self.sure: dict[State, int] = {}
        self.known = Table()
        self.read = Table()
        self.many = 0

    def put(self, frame: Frame, stream: Stream, call: Call, members: Sequence[Member]) -> Any:
        """Add the values of a call."""
        entry = []
        many_rows = 0
        for element, sure, many, _ in members:
            state = value_of(element)
            if call.outcome == ANSWERED:
                entry.append((self.read.of(state), state))
                continue
            many_rows += many > 0
            counts = self.known.of(state)
            entry.append((counts, state))
            if sure and counts is not self.known.odd:
                entry.append((self.sure, state))
        for counts, state in entry:
            counts[state] = counts.get(state, 0) + 1
        self.many += many_rows
        return entry, many_rows

    def drop(self, call: Call, entry: Any) -> None:
        """Remove the values of a call."""
        states, many_rows = entry
        self.many -= many_rows
        for counts, state in states:
            counts[state] -= 1
            if not counts[state]:
                del counts[state]


class Table:
    """How often each value occurs.

    Attributes:
        plain: counts of values that are known.
        digested: counts of values that are known by their digests.
        odd: counts of other states: absent, unknown, or none of the listed values.
    """

    __slots__ = ("digested", "odd", "plain")

    def __init__(self) -> None:
        self.plain: dict[State, int] = {}
        self.digested: dict[State, int] = {}
        self.odd: dict[State, int] = {}

    def of(self, state: State) -> dict[State, int]:
        """Return the counts that have this kind of state."""
        if state[0] == "d":
            return self.digested
        return self.odd if state[0] in NO_VALUE or state[0] == "*" else self.plain

    def decides(self, state: State) -> bool:
        """Return whether a value surely differs from all values of the other kind, plain or
        digested.

        A digested value surely differs from a plain one if the ledger has the digest of the plain
        one.
        """
        if state[0] == "d":
            return all(one in state[1].constants for one in self.plain)
        return all(state in one[1].constants for one in islice(self.digested, 1))

    def may_have(self, state: State) -> bool:
        """Return whether a value may occur in the table; :meth:`decides` must be true for it."""
        return (
            state in self.plain
            or state in self.digested
            or any(compare("=", state, other) is not False for other in self.odd)
        )


class Extremes(Bucket):
    """The numbers or times of members, sorted.

    Attributes:
        sure, known: values of members that are surely in the source, and of all members.
        kinds: the number of values of each kind, `n` or `t`.
        unknown, unknown_sure: the number of members without a known value, and how many of these
            are surely in the source.
    """

    def __init__(self) -> None:
        self.sure: list[Any] = []
        self.known: list[Any] = []
        self.kinds: dict[str, int] = {}
        self.unknown = 0
        self.unknown_sure = 0

    def put(self, frame: Frame, stream: Stream, call: Call, members: Sequence[Member]) -> Any:
        """Add the values of a call."""
        entry = []
        for element, sure, many, _ in members:
            state = shown(value_of(element))
            if many or state[0] not in ("n", "t"):
                self.unknown += 1
                self.unknown_sure += sure
                entry.append(UNKNOWN)
                continue
            kind, value = state
            entry.append(state)
            self.kinds[kind] = self.kinds.get(kind, 0) + 1
            insort(self.known, value)
            if sure:
                insort(self.sure, value)
        return entry

    def drop(self, call: Call, entry: Any) -> None:
        """Remove the values of a call.  None of them is sure, because its outcome was unknown."""
        for kind, value in entry:
            if kind == "unknown":
                self.unknown -= 1
                continue
            del self.known[bisect_left(self.known, value)]
            self.kinds[kind] -= 1
            if not self.kinds[kind]:
                del self.kinds[kind]


# Streams.


class Stream:
    """A source that can have a feed.

    Args:
        layers: the source of calls first, then the sources of rows around it, the outermost last.
        own: the closure of the conditions on a call itself, without keys; None: no such conditions.
        term: the closure of the state that a bucket stores for an element: the amount of a sum, or
            the states that a relation compares.
        depends: whether a condition or term uses an attribute that the session learns.
        on_call: whether `term` reads the call even if the elements are rows of it.
        counts: whether buckets keep the positions of all candidates and of failed candidates.
    """

    def __init__(
        self,
        layers: Sequence[Source],
        own: Closure | None,
        bucket: type[Bucket],
        term: Callable[[Frame], Any],
        depends: bool,
        *,
        on_call: bool = False,
        counts: bool = False,
    ) -> None:
        calls = layers[0]
        if not isinstance(calls.base, forms.Calls):
            raise TypeError(calls.base)
        self.tools = calls.base.tools
        self.only = next(iter(self.tools)) if len(self.tools) == 1 else None
        self.keys: tuple[Key, ...] = calls.keys
        names = [key.name for key in calls.keys]
        self._key_of: Callable[[Any], Any] = itemgetter(*names) if names else _no_key
        self.level = layers[-1].level
        self.bucket = bucket
        self.term = term
        self.on_call = on_call
        self.counts = counts
        self._calls_level = calls.level
        self._rows = tuple(layers[1:])
        self._is_plain = bucket is Positions and not self._rows
        self._own = own
        self._depends = depends

    def caught_up(self, frame: Frame) -> Feed:
        """Return the feed of the frame's history after adding new calls and outcomes."""
        history = frame.history
        feed: Feed | None = history.feeds.get(self)
        if feed is None:
            calls = history.calls if self.only is None else history.calls_of(self.only)
            feed = history.feeds[self] = Feed(calls)
            if self._depends:
                history.dependent.append(self)
        try:
            if feed.logged != len(history.log):
                self._settle(frame, feed)
            calls, added = feed.calls, feed.added
            if added + 1 == len(calls):
                self._enter(frame, feed, calls[-1])
            else:
                for call in calls[added:]:
                    self._enter(frame, feed, call)
            feed.added = len(calls)
        except BaseException:
            del history.feeds[self]  # it is incomplete
            raise
        return feed

    def _settle(self, frame: Frame, feed: Feed) -> None:
        """Add calls again whose outcome became known."""
        log = frame.history.log
        for call in log[feed.logged :]:
            known = feed.unsettled.pop(call.at, None)
            if known is not None:
                bucket, entry, size = known
                bucket.drop(call, entry)
                bucket.size -= size
                self._put(frame, feed, bucket, call, self._truth(frame, call))
        feed.logged = len(log)

    def _enter(self, frame: Frame, feed: Feed, call: Call) -> None:
        """Add a new call."""
        if self.only is None and call.tool not in self.tools:
            return
        arguments = call.arguments
        key = self._key_of(arguments)
        bucket = feed.buckets.get(key)
        truth = True if self._own is None else self._truth(frame, call)
        if bucket is None:
            for one in self.keys:
                state = arguments[one.name]
                # Under `=` an absent argument is unsure of every value.
                if state[0] not in PLAIN and is_lacking(state, one.same):
                    feed.odd = True
            if self._is_plain and truth and call.outcome == DONE:
                feed.buckets[key] = call.at
                return
            bucket = feed.buckets[key] = self.bucket()
        elif type(bucket) is int:
            bucket = feed.buckets[key] = Positions.of_one(bucket)
        bucket.size += 1
        if self.counts:
            bucket.places.append(call.at)
        if truth is not False or self.counts:
            self._put(frame, feed, bucket, call, truth)

    def _truth(self, frame: Frame, call: Call) -> Truth:
        """Return whether the conditions on the call itself are true.  False stays false when
        outcomes become known.
        """
        if self._own is None:
            return True
        frame.elements[self._calls_level] = call
        bound, frame.bound = frame.bound, UNBOUNDED
        try:
            return self._own(frame)
        finally:
            frame.bound = bound

    def _put(self, frame: Frame, feed: Feed, bucket: Bucket, call: Call, truth: Truth) -> None:
        outcome = call.outcome
        is_out = truth is False or outcome == FAILED
        is_out = is_out or (outcome == ANSWERED and not self.bucket.READS)
        if is_out and not self.counts:
            return
        entry, size = None, 0
        if not is_out:
            members = [Member(call, truth is True and outcome == DONE)]
            if self._rows:
                members, size = frame.rows_of(call, members[0].sure, self._rows)
                bucket.size += size
            entry = bucket.put(frame, self, call, members)
        if self.counts:
            bucket.note(call)
        if outcome in UNSETTLED:
            feed.unsettled[call.at] = bucket, entry, size
            frame.history.watched.add(call.at)


def _no_key(arguments: Mapping[str, State]) -> tuple[()]:
    return ()


class Feed:
    """The index of a stream in the history of one session.

    Attributes:
        calls: the calls of the stream's tools in the history.
        added: how many of `calls` are in the buckets.
        logged: how many records of the history's `log` are taken into account.
        buckets: by the state of the only key, or the states of all keys.  In a feed of positions, a
            bucket with one call that is surely a member is stored as its position.
        odd: whether a call lacks a key, so that candidates may be in several buckets.
        unsettled: for each call with an unknown outcome, by position: its bucket, its entry and its
            number of rows.
    """

    __slots__ = ("added", "buckets", "calls", "logged", "odd", "unsettled")

    def __init__(self, calls: list[Call]) -> None:
        self.calls = calls
        self.added = 0
        self.logged = 0
        self.buckets: dict[Any, Any] = {}
        self.odd = False
        self.unsettled: dict[int, tuple[Bucket, Any, int]] = {}


# Which sources have streams.


def layers_of(source: Source) -> tuple[Source, ...] | None:
    """Return the layers of a source that can have a stream, source of calls first; else None."""
    layers = [source]
    while isinstance(layers[-1].base, forms.Rows):
        layers.append(layers[-1].base.of)
    layers.reverse()
    calls = layers[0]
    if not isinstance(calls.base, forms.Calls):
        return None
    if any(layer.marks or layer.within is not None for layer in layers):
        return None
    own: list[tuple[Condition | Term, int]] = []
    own += [(condition, calls.level) for condition in own_conditions(calls)]
    for layer in layers[1:]:
        own += [(condition, layer.level) for condition in layer.conditions]
        own += [(layer.base.get, layer.level)] if isinstance(layer.base, forms.Rows) else []
    return tuple(layers) if all(is_own(form, level) for form, level in own) else None


def window_of(source: Source) -> int | None:
    """Return the window of the source of calls inside a source, in milliseconds, or None."""
    while isinstance(source.base, forms.Rows):
        source = source.base.of
    return source.within


def without_range(source: Source) -> Source:
    """Return a source without its marks and without the window of its calls."""
    return replace(_without_window(source), marks=())


def _without_window(source: Source) -> Source:
    if isinstance(source.base, forms.Rows):
        return replace(source, base=replace(source.base, of=_without_window(source.base.of)))
    return replace(source, within=None)


def own_conditions(calls: Source) -> Iterable[Condition]:
    """Yield the conditions of a source of calls that are not keys."""
    todo = list(reversed(calls.conditions))
    while todo:
        condition = todo.pop()
        if isinstance(condition, forms.All):
            todo += reversed(condition.parts)
        elif not any(_is_key(condition, key, calls.level) for key in calls.keys):
            yield condition


def _is_key(condition: Condition, key: Key, level: int) -> bool:
    match condition:
        case forms.Same(left, right) | forms.Compare("=", left, (right,)):
            own = forms.Get(forms.Element(level), key.name)
            same = isinstance(condition, forms.Same)
            return key.same == same and (left, right) in ((own, key.term), (key.term, own))
    return False


def is_own(form: Condition | Term, level: int) -> bool:
    """Return whether a form depends only on the element of one level, and on attributes."""
    for part in walk(form):
        match part:
            case forms.Element(other) | forms.IsOf(other, _):
                if other != level:
                    return False
            case forms.Now() | Source():
                return False
    return True


def is_lacking(state: State, same: bool) -> bool:
    """Return whether an argument may equal every key: it is unknown, or it is absent and compared
    with `=`.
    """
    return state == UNKNOWN or (state == NONE and not same)


def is_usable(state: State, same: bool) -> bool:
    """Return whether the state of a key decides which arguments surely differ from it."""
    return is_exact(state) and (same or state != NONE)
