"""Indexes of sources: what a history has of a source, by its keys.

A *stream* is a source of calls, or of their fields, whose conditions depend only on the call itself
and on its keys.  One more condition may compare it with the decided call: such a stream has buckets
of :mod:`tcc_runtime.gate.decide.relations`.  The *feed* of a stream has a *bucket* for each choice
of keys.  A bucket knows how many calls surely and maybe belong to the source, their positions, or
what an aggregate needs.

A feed answers only if the definition would look at all candidates, and if the keys decide which
these are.  Otherwise the definition looks at the candidates, one by one.

Cost: each call is put into a feed once, and once more when its outcome becomes known.
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
)  # two such values are equal if their states are
EXACT = PLAIN | {"d"}  # the same of two values that are known by their digests
UNBOUNDED = 1 << 62

Closure: TypeAlias = "Callable[[Frame], Truth]"
Read: TypeAlias = "Callable[[Frame], State]"


class Frame(Evaluation):
    """An evaluation whose conditions are closures.

    Args:
        closures: makes closures of conditions and of sources of `last`.

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
        """Whether all conditions are true."""
        return self.closures.filter(conditions, negative)(self)

    def _last(self, source: Source) -> Element | None:
        if self.picks and source in self.picks:
            return self.picks[source]
        found = self.closures.last(source)(self)
        if len(found) == 1:
            return found[0]  # one combination: nothing is left to pick
        raise Pick(source, found)

    def rows_of(self, call: Call, sure: bool, layers: Sequence[Source]) -> tuple[list[Member], int]:
        """The rows of one call, and at most how many candidates they count as."""
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
    """What a frame needs of :class:`tcc_runtime.gate.decide.conditions.Compiler`."""

    def filter(self, conditions: Sequence[Condition], negative: bool) -> Closure:
        """The closure of all conditions together."""
        raise NotImplementedError

    def last(self, source: Source) -> Callable[[Frame], list[Element | None]]:
        """The closure that finds the elements that may be the last of a source."""
        raise NotImplementedError


# Buckets.


class Bucket:
    """What a feed has for one choice of keys.

    Attributes:
        size: at most how many candidates it has.
    """

    READS: ClassVar[bool] = False  # whether it has calls whose error was read
    size = 0
    places: list[int]  # of all candidates, where the stream counts them

    def put(self, frame: Frame, stream: Stream, call: Call, members: Sequence[Member]) -> Any:
        """Add the members of a call; returns what `drop` needs."""
        raise NotImplementedError

    def drop(self, call: Call, entry: Any) -> None:
        """Take the members of a call out again."""
        raise NotImplementedError

    def note(self, call: Call) -> None:
        """Keep whether a candidate has failed, where the stream counts candidates."""
        raise NotImplementedError


class Positions(Bucket):
    """The positions of members in the history, in order, once for each member.

    Attributes:
        sure, maybe: of members that are surely and maybe in the source.
        read: of members whose error was read.
        many: of members that may be several rows.
    """

    READS = True
    # Most buckets have one call: lists are made when they are needed.
    sure: Sequence[int] = ()
    maybe: Sequence[int] = ()
    read: Sequence[int] = ()
    many: Sequence[int] = ()

    @classmethod
    def of_one(cls, at: int) -> Positions:
        """A bucket of one call that is surely a member."""
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
        """Take the members of a call out again."""
        for places in (self.sure, self.maybe, self.read, self.many):
            if isinstance(places, list):
                del places[bisect_left(places, call.at) : bisect_right(places, call.at)]


def _with(places: Sequence[int], at: int) -> list[int]:
    """A list with one position more."""
    if not isinstance(places, list):
        return [at]
    insort(places, at)
    return places


class Sums(Bucket):
    """The ends of a sum; `unknown`: how many members have no number."""

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
        known: of all members; read: of members whose error was read.
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
        """Take the values of a call out again."""
        states, many_rows = entry
        self.many -= many_rows
        for counts, state in states:
            counts[state] -= 1
            if not counts[state]:
                del counts[state]


class Table:
    """How often values occur.

    Attributes:
        plain: values; digested: values that are known by their digests.
        odd: states that are no known values.
    """

    __slots__ = ("digested", "odd", "plain")

    def __init__(self) -> None:
        self.plain: dict[State, int] = {}
        self.digested: dict[State, int] = {}
        self.odd: dict[State, int] = {}

    def of(self, state: State) -> dict[State, int]:
        """The counts that a state belongs to."""
        if state[0] == "d":
            return self.digested
        return self.odd if state[0] in NO_VALUE or state[0] == "*" else self.plain

    def decides(self, state: State) -> bool:
        """Whether a value equals no value of the other kind, as it has or is a constant."""
        if state[0] == "d":
            return all(one in state[1].constants for one in self.plain)
        return all(state in one[1].constants for one in islice(self.digested, 1))

    def may_have(self, state: State) -> bool:
        """Whether a value that `decides` may occur."""
        return (
            state in self.plain
            or state in self.digested
            or any(compare("=", state, other) is not False for other in self.odd)
        )


class Extremes(Bucket):
    """The numbers or times of members, in order.

    Attributes:
        sure: of members that are surely in the source; known: of all members.
        kinds: how many are of each kind.
        unknown, unknown_sure: how many members have no number; how many of these are sure.
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
        """Take the values of a call out again; none of them is sure."""
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
    """A source that has a feed.

    Args:
        layers: the source of calls, and the fields of fields around it, from the inside.
        own: the closure of the conditions on a call itself; None: there are none.
        term: what a bucket keeps of an element: of a sum, what is added up; of a relation, the
            states that are compared.
        depends: whether an attribute is used that the session learns.
        on_call: whether `term` is a term of the call, also if the elements are its fields.
        counts: whether the buckets know all candidates, and which of them have failed.
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
        """The feed of the history, complete."""
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
        """Put calls anew whose outcome became known."""
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
        """Take a call that is new."""
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
        """Whether the conditions on a call itself are true; once false, they stay false."""
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
    """What the history of one session has of a stream.

    Attributes:
        calls: the calls that it is made of; `added` of them are in it.
        logged: how many records of `log` it knows.
        buckets: by the state of the only key, or the states of all keys.  Most buckets of
            positions have one call that is surely a member: then it is the position itself.
        odd: a call lacks a key, so the candidates are in several buckets.
        unsettled: by position, the bucket of a call whose outcome is unknown.
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
    """The layers of a source that may have a stream, from the calls on; None: it has none."""
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
    """The window of the calls that a source is of, in milliseconds."""
    while isinstance(source.base, forms.Rows):
        source = source.base.of
    return source.within


def without_range(source: Source) -> Source:
    """A source without its marks and without the window of its calls."""
    return replace(_without_window(source), marks=())


def _without_window(source: Source) -> Source:
    if isinstance(source.base, forms.Rows):
        return replace(source, base=replace(source.base, of=_without_window(source.base.of)))
    return replace(source, within=None)


def own_conditions(calls: Source) -> Iterable[Condition]:
    """The conditions of a source of calls that are no keys."""
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
    """Whether a form depends on the element of a level and on attributes alone."""
    for part in walk(form):
        match part:
            case forms.Element(other) | forms.IsOf(other, _):
                if other != level:
                    return False
            case forms.Now() | Source():
                return False
    return True


def is_lacking(state: State, same: bool) -> bool:
    """Whether an argument surely differs from no key, or only from some."""
    return state == UNKNOWN or (state == NONE and not same)


def is_usable(state: State, same: bool) -> bool:
    """Whether the state of a key decides which arguments surely differ from it."""
    return is_exact(state) and (same or state != NONE)
