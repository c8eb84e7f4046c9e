"""Sources whose members are kept up to date during a session.

A *plain* source has calls, and its filters and marks use no sources.  Its conditions are keys,
*closed* conditions (which depend only on the element), or *open* conditions.  A :class:`Feed`
groups calls by their keys.  It keeps the calls whose closed conditions are not false, their number,
and sums over them.

:class:`KeptEvaluation` reads feeds.  It evaluates like the definition if a source may have more
candidates than the bound, or if an argument of a key is absent.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tcc_certs.policy import forms
from tcc_certs.policy.forms import Condition, Source, Term
from tcc_certs.policy.history import ANSWERED, DONE, FAILED, Call
from tcc_certs.policy.kinds import conjuncts, keys_in, walk
from tcc_certs.policy.meaning import (
    BOUNDS,
    Element,
    Evaluation,
    Pick,
    Truth,
    between,
    ends_of,
    is_exact,
)
from tcc_certs.values.places import NONE, UNKNOWN, State

if TYPE_CHECKING:
    from tcc_certs.policy.kept import KeptHistory

_NULLS = ("none", "z")


class Plain:
    """A plain source, prepared.

    Attributes:
        keys: the keys, sorted by name.  Each has the name of an argument of the call being decided
            if its term is this argument, else ''.
        closed, rest: the closed and the open conditions, without the keys.
        is_counted: whether the keys and closed conditions alone determine its members.
    """

    def __init__(self, source: Source, tools: forms.Tools, learned: frozenset[str]) -> None:
        self.tools, self.level, self.within = tools, source.level, source.within
        self.conditions = source.conditions
        self.marks = tuple(
            [
                Plain(mark, mark.base.tools, learned)
                for mark in source.marks
                if isinstance(mark.base, forms.Calls)
            ]
        )
        keys = sorted(source.keys, key=lambda key: key.name)
        self.names = tuple([key.name for key in keys])
        self.keys = [(key, _argument(key.term)) for key in keys]
        others = [
            one
            for one in conjuncts(source.conditions)
            if not set(keys_in(one, source.level)) & set(source.keys)
        ]
        self.closed = tuple([one for one in others if is_closed(one, source.level, learned)])
        self.rest = tuple([one for one in others if one not in self.closed])
        self.is_counted = not (self.rest or self.marks) and self.within is None
        self.learned = learned


def is_closed(form: Any, level: int, learned: frozenset[str]) -> bool:
    """Return whether a condition or a term depends only on the element of a level."""
    for part in walk(form):
        if isinstance(part, Source | forms.Now):
            return False
        if isinstance(part, forms.Attribute) and part.name in learned:
            return False
        if isinstance(part, forms.Element | forms.IsOf) and part.level != level:
            return False
    return True


def _argument(term: Term) -> str:
    """Return the argument of the call being decided that a term is, or ''."""
    is_own = isinstance(term, forms.Get) and term.of == forms.Element(0)
    return term.name if is_own and isinstance(term, forms.Get) else ""


class _Kept:
    """A call that may be a member, and the truth of its closed conditions.

    False: it is no member.
    """

    __slots__ = ("call", "truth")

    def __init__(self, call: Call, truth: Truth) -> None:
        self.call, self.truth = call, truth


class _Sum:
    """The sum of a term over the members of a bucket.

    Attributes:
        low, high: the ends of the sum over the members with a known value.
        unknown: the number of members without a known value.
    """

    __slots__ = ("high", "low", "unknown")

    def __init__(self) -> None:
        self.low: Any = 0
        self.high: Any = 0
        self.unknown = 0


class _Bucket:
    """The candidates of a source with one key.

    Attributes:
        candidates: the number of calls with this key.
        kept: the calls that may be members, in order.
        dead: the number of calls in `kept` that are no members any more.
        sure, maybe: the number of sure and of possible members, without calls whose error was read.
        sums: sums over the members, by the id of the term.
    """

    __slots__ = ("candidates", "dead", "kept", "maybe", "sums", "sure")

    def __init__(self) -> None:
        self.candidates = self.dead = self.sure = self.maybe = 0
        self.kept: list[_Kept] = []
        self.sums: dict[int, _Sum] = {}


class Feed:
    """The candidates of a plain source in one history.

    Attributes:
        is_plain: whether no argument of a key is absent or unknown.
        buckets: the candidates, by the states of the key's arguments.
    """

    def __init__(self, plain: Plain, history: KeptHistory) -> None:
        self._plain, self._history = plain, history
        self.is_plain = True
        self.buckets: dict[tuple[State, ...], _Bucket] = {}
        # the summed terms; True: the term is summed over rows
        self._terms: dict[int, tuple[Term, bool]] = {}
        self._open: dict[int, tuple[_Bucket, _Kept]] = {}  # calls whose outcome may still change
        for call in history.calls:
            if call.tool in plain.tools:
                self.add(call)
                if call.outcome in (DONE, FAILED, ANSWERED):
                    del self._open[call.at]

    def add(self, call: Call) -> None:
        """Add a decided call."""
        arguments = call.arguments
        key = tuple([arguments[name] for name in self._plain.names])
        bucket = self.buckets.get(key)
        if bucket is None:
            bucket = self.buckets[key] = _Bucket()
            if NONE in key or UNKNOWN in key:
                self.is_plain = False
        bucket.candidates += 1
        kept = _Kept(call, self._truth(call))
        self._open[call.at] = bucket, kept
        if kept.truth is not False:
            bucket.kept.append(kept)
            self._count(bucket, kept, 1)

    def record(self, call: Call) -> None:
        """Remove a call from the numbers; the caller then changes its outcome."""
        bucket, kept = self._open[call.at]
        if kept.truth is not False:
            self._count(bucket, kept, -1)

    def recorded(self, call: Call) -> None:
        """Count a call again, after its outcome changed."""
        bucket, kept = self._open[call.at]
        if call.outcome in (DONE, FAILED, ANSWERED):
            del self._open[call.at]
        if kept.truth is False:
            return
        kept.truth = self._truth(call)
        if kept.truth is not False:
            self._count(bucket, kept, 1)
        elif bucket.kept[-1] is kept:
            bucket.kept.pop()
        else:
            bucket.dead += 1
            if 2 * bucket.dead > len(bucket.kept):
                bucket.kept = [one for one in bucket.kept if one.truth is not False]
                bucket.dead = 0

    def sum_of(self, bucket: _Bucket, term: Term, *, rows: bool) -> _Sum:
        """Return the sum of a closed term over the members of a bucket.

        Args:
            rows: whether an absent value adds nothing (otherwise it makes the sum unknown).
        """
        if id(term) not in self._terms:
            self._terms[id(term)] = term, rows
            for each in self.buckets.values():
                for kept in each.kept:
                    if kept.truth is not False:
                        self._add(each, kept, id(term), 1)
        return bucket.sums.get(id(term)) or _Sum()

    def _truth(self, call: Call) -> Truth:
        if call.outcome == FAILED:
            return False
        closed = self._plain.closed
        return self._evaluation(call).all_of(closed) if closed else True

    def _evaluation(self, call: Call) -> Evaluation:
        evaluation = Evaluation(self._history, None, 0)
        evaluation.bind(self._plain.level, call)
        return evaluation

    def _count(self, bucket: _Bucket, kept: _Kept, sign: int) -> None:
        call = kept.call
        if call.outcome == ANSWERED:
            return
        if call.outcome == DONE and kept.truth is True:
            bucket.sure += sign
        else:
            bucket.maybe += sign
        for number in self._terms:
            self._add(bucket, kept, number, sign)

    def _add(self, bucket: _Bucket, kept: _Kept, number: int, sign: int) -> None:
        if kept.call.outcome == ANSWERED:
            return
        term, rows = self._terms[number]
        total = bucket.sums.setdefault(number, _Sum())
        state = self._evaluation(kept.call).term(term)
        if rows and state == NONE:
            return
        ends = ends_of(state)
        if ends is None or None in ends[1:]:
            total.unknown += sign
        elif kept.call.outcome == DONE and kept.truth is True:
            total.low += sign * ends[1]
            total.high += sign * ends[2]
        else:
            total.low += sign * min(ends[1], 0)
            total.high += sign * max(ends[2], 0)


class KeptEvaluation(Evaluation):
    """An evaluation that reads feeds, and tests the latest members of a source first."""

    history: KeptHistory

    def plain(self, source: Source) -> Plain | None:
        """Return the prepared form of a source; None: it is not plain."""
        if source.height or not isinstance(source.base, forms.Calls):
            return None
        return self.history.plain(source, source.base.tools)

    def truth(self, condition: Condition, negative: bool = False) -> Truth:
        """See :class:`Evaluation`.  A plain source needs no combinations of last elements."""
        if type(condition) is forms.Some:
            plain = self.plain(condition.of)
            if plain is not None:
                found: Truth = False
                for _, sure in self._latest_first(plain, negative, negative):
                    if sure:
                        return True
                    found = None
                return found
        return super().truth(condition, negative)

    def term(self, term: Term) -> State:
        """See :class:`Evaluation`."""
        if type(term) is forms.Count and not term.distinct:
            bucket = self._counted(term.of)
            if bucket is not None:
                return between("n", bucket[1].sure, bucket[1].sure + bucket[1].maybe)
        elif type(term) is forms.Sum:
            total = self._summed(term)
            if total is not None:
                return UNKNOWN if total.unknown else between("n", total.low, total.high)
        return super().term(term)

    def _last(self, source: Source) -> Element | None:
        plain = None if source in self.picks else self.plain(source)
        if plain is None:
            return super()._last(source)
        candidates: list[Element | None] = []
        for call, sure in self._latest_first(plain, False, False):
            candidates.append(call)
            if sure:
                break
        else:
            candidates.append(None)
        raise Pick(source, candidates)

    def _counted(self, source: Source) -> tuple[Feed, _Bucket] | None:
        """Return the feed and bucket that count the members of a source.

        None: evaluate it instead.
        """
        plain = self.plain(source)
        if plain is None or not plain.is_counted:
            return None
        feed = self.history.feed(plain)
        bucket = self._bucket(feed, self._states(plain))
        if bucket is None or bucket.candidates > (self.bound or BOUNDS[0]):
            return None
        return feed, bucket

    def _summed(self, total: forms.Sum) -> _Sum | None:
        """Return the sum of a closed term over a source or its rows; None: evaluate it instead."""
        source, term, rows = total.of, total.term, False
        base = source.base
        if isinstance(base, forms.Rows) and base.most is None:
            whole = not (source.conditions or source.marks) and term == forms.Element(source.level)
            if not whole:
                return None
            source, term, rows = base.of, base.get, True
        found = self._counted(source)
        plain = self.plain(source)
        if found is None or plain is None or not is_closed(term, plain.level, plain.learned):
            return None
        return found[0].sum_of(found[1], term, rows=rows)

    def _states(self, plain: Plain) -> list[State]:
        """Return the states of the keys of a source."""
        states = []
        this = self.elements.get(0)
        for key, name in plain.keys:
            state = this.arguments.get(name) if name and isinstance(this, Call) else None
            states.append(self.term(key.term) if state is None else state)
        return states

    def _bucket(self, feed: Feed, states: Sequence[State]) -> _Bucket | None:
        """Return the bucket of these keys; None: other buckets may have candidates, too."""
        if not feed.is_plain:
            return None
        for state in states:
            if state[0] in _NULLS or not is_exact(state):
                return None
        return feed.buckets.get(tuple(states)) or _NOTHING

    def _latest_first(
        self, plain: Plain, answered: bool, negative: bool
    ) -> Iterator[tuple[Call, bool]]:
        """Yield the members of a source, the last first, and whether each is surely in it."""
        must, may = -1, -1
        for mark in plain.marks:
            for call, sure in self._latest_first(mark, False, negative):
                may = max(may, call.at)
                if sure:
                    must = max(must, call.at)
                    break
        after = None if plain.within is None else self.now - plain.within
        states = self._states(plain)
        bucket = self._bucket(self.history.feed(plain), states)
        bound = self.bound or BOUNDS[0]
        if bucket is None or bucket.candidates > bound:
            found = self._candidates(plain, states, after)
            conditions = plain.conditions
        else:
            found, conditions = bucket.kept, plain.rest
            if after is not None:
                found = found[bisect_left(found, after, key=lambda kept: kept.call.at_ms) :]
        for looked, kept in enumerate(reversed(found), 1):
            call, truth = kept.call, kept.truth
            if call.at <= must:
                return
            if truth is False or (call.outcome == ANSWERED and not answered):
                continue
            sure = call.outcome == DONE and call.at > may and truth is True
            if looked > bound:
                sure = False
            elif conditions:
                self.elements[plain.level] = call
                holds = self.all_of(conditions, negative)
                if holds is False:
                    continue
                sure = sure and holds is True
            yield call, sure

    def _candidates(self, plain: Plain, states: Sequence[State], after: int | None) -> list[_Kept]:
        """Return the candidates of a source by the lookup of the definition."""
        pairs = zip(plain.keys, states, strict=True)
        keys = [(key.name, state, key.same) for (key, _), state in pairs if is_exact(state)]
        found = self.history.candidates(plain.tools, keys, after)
        self.cut = self.cut or len(found) > (self.bound or BOUNDS[0])
        return [_Kept(call, call.outcome != FAILED) for call in found]


_NOTHING = _Bucket()
