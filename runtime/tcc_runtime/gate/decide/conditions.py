"""Compiles conditions and terms to closures that mean the same as the definition.

A closure takes a :class:`tcc_runtime.gate.decide.feeds.Frame`.  For a source with a stream,
closures use the index that its feed keeps.  For other sources, and if an index does not know the
answer, they call :meth:`tcc_certs.policy.meaning.Evaluation.members`, whose filters are closures,
too.
"""

from __future__ import annotations

import operator as operators
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from tcc_certs.policy import forms, meaning
from tcc_certs.policy.core import Core, Learned
from tcc_certs.policy.forms import Condition, Source, Term
from tcc_certs.policy.history import Call
from tcc_certs.policy.kinds import walk
from tcc_certs.policy.meaning import (
    MISSING,
    NO_VALUE,
    Element,
    Pick,
    Row,
    Truth,
    among as among_members,
    arithmetic,
    between,
    call_of,
    clock,
    compare,
    count,
    disjunction,
    extreme,
    host,
    is_null,
    last_ones,
    matches,
    negation,
    same,
    shown,
    some,
    under,
    value_of,
)
from tcc_certs.values.places import NONE, UNKNOWN, State
from tcc_runtime.gate.decide.feeds import (
    EXACT,
    PLAIN,
    Bucket,
    Closure,
    Closures,
    Extremes,
    Frame,
    Positions,
    Read,
    Stream,
    Sums,
    Values,
    is_own,
    is_usable,
    layers_of,
    own_conditions,
    window_of,
    without_range,
)
from tcc_runtime.gate.decide.history import NO_EFFECT
from tcc_runtime.gate.decide.relations import (
    Listed,
    Related,
    Relation,
    View,
    fitting,
    is_decided,
    is_other,
    odd_states,
    relation_of,
)

Find: TypeAlias = "Callable[[Frame], Any]"  # returns the bucket that decides, or None
Range: TypeAlias = "Callable[[Frame], tuple[int, int]]"
LastOnes: TypeAlias = "Callable[[Frame], list[Element | None]]"

_NULL: State = ("z", None)
# an index without a relation has this one state for each element
_ALL: tuple[State, ...] = (("s", ""),)
_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operators.lt, "<=": operators.le, ">": operators.gt, ">=": operators.ge,
}  # fmt: skip
_KIND = operators.itemgetter(0)
_DIGESTED = {"d"}
_SUMS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operators.add, "-": operators.sub, "*": operators.mul,
}  # fmt: skip


class Compiler(Closures):
    """Compiles the conditions of a core.

    Args:
        decided: whether level 0 is the call being decided, which has no answers yet.  False: level
            0 is the first call of an `owe`.
    """

    def __init__(self, core: Core, *, decided: bool) -> None:
        self._decided = decided
        self._learned = {one.name for one in core.given if isinstance(one, Learned)}
        self._filters: dict[tuple[int, bool], tuple[Sequence[Condition], Closure]] = {}
        self._lasts: dict[int, tuple[Source, LastOnes]] = {}
        self._streams: dict[object, Stream | None] = {}

    # Conditions.

    def filter(self, conditions: Sequence[Condition], negative: bool) -> Closure:
        """Return the closure of all conditions together; cached by the id of the sequence."""
        key = id(conditions), negative
        found = self._filters.get(key)
        if found is None:
            # Keeping the conditions keeps their id valid as a key.
            found = self._filters[key] = conditions, self.all_of(conditions, negative)
        return found[1]

    def all_of(self, conditions: Sequence[Condition], negative: bool) -> Closure:
        """Return the closure of all conditions together: Kleene's and."""
        parts = tuple([self.truth(condition, negative) for condition in conditions])
        if len(parts) == 1:
            return parts[0]

        def all_of(frame: Frame) -> Truth:
            found: Truth = True
            for part in parts:
                truth = part(frame)
                if truth is False:
                    return False
                if truth is None:
                    found = None
            return found

        return all_of

    def truth(self, condition: Condition, negative: bool) -> Closure:
        """Return the closure of a condition; `negative` as in :meth:`Evaluation.truth` of the
        definition.
        """
        match condition:
            case forms.Not(of):
                return _negation(self.truth(of, not negative))
            case forms.All(parts):
                return self.all_of(parts, negative)
            case forms.AnyOf(parts):
                return _any_of([self.truth(part, negative) for part in parts])
            case forms.IsOf(level, tools):
                return _is_of(level, tools)
            case forms.Every(of, conditions):
                return self._every(of, conditions, negative)
        return self._atom(condition, self._asked(condition, negative))

    def _every(self, of: Source, conditions: tuple[Condition, ...], negative: bool) -> Closure:
        """Return the closure of: the conditions are true for each element of a source."""
        if of.marks and any(isinstance(part, Source) for part in walk(conditions)):
            # Use the definition: evaluating the conditions for elements before the marks could set
            # `cut`.
            return lambda frame: frame.every(of, conditions, negative)
        # Otherwise the condition is equal to: the source has no element for which the conditions
        # fail.
        failing = forms.Not(forms.All(conditions))
        outside = replace(of, conditions=(*of.conditions, failing))
        general = _negation(self.truth(forms.Some(outside), not negative))
        element = forms.Element(of.level)
        match of, conditions:
            case (
                Source(base=forms.Items() as items, conditions=()),
                (forms.Among(one, Source(base=forms.Items(other, _), conditions=())),),
            ) if one == element and element not in walk(other):
                every_in = self._every_in(items, meaning.BOUNDS[of.height], other, general)
                return self._atom(items.of, every_in)
        return general

    def _atom(self, form: object, ask: Closure) -> Closure:
        """Return a closure that evaluates a comparison for each combination of last elements."""
        if not any(isinstance(part, forms.Last) for part in walk(form)):
            return ask

        def atom(frame: Frame) -> Truth:
            kept = frame.picks
            if kept:
                frame.picks = {}
            try:
                return ask(frame)
            except Pick:
                return frame.atom(lambda: ask(frame))
            finally:
                frame.picks = kept

        return atom

    def _asked(self, condition: Condition, negative: bool) -> Closure:
        match condition:
            case forms.Some(of):
                return self._some(of, negative)
            case forms.Compare(operator, left, options):
                return self._compare(operator, left, options)
            case forms.Same(left, right):
                return _same(self.term(left), self.term(right))
            case forms.Between(of, low, high):
                return self._between(of, low, high)
            case forms.Among(of, source):
                return self._among(of, source, negative)
            case forms.Matches(of, pattern):
                text = self.term(of)
                return lambda frame: matches(text(frame), pattern)
            case forms.Under(of, scope):
                located, directory = self.term(of), self.term(scope)
                return lambda frame: under(located(frame), directory(frame))
        raise TypeError(condition)

    def holds(self, most: Term) -> Closure:
        """Return the closure of: `frame.total` is at most a term."""
        if isinstance(most, forms.Constant) and most.state[0] == "n":
            number = most.state[1]
            return lambda frame: bool(frame.total[1] <= number)
        bound = self.term(most)
        return self._atom(most, lambda frame: compare("<=", frame.total, bound(frame)))

    # Comparisons.

    def _compare(self, operator: str, left: Term, options: Sequence[Term]) -> Closure:
        one = self.term(left)
        if operator != "=":
            return _order(operator, one, self.term(options[0]))
        if all(isinstance(option, forms.Constant) for option in options):
            return _is_one_of(one, [option.state for option in options])  # type: ignore[union-attr]
        if len(options) == 1:
            return _equal(one, self.term(options[0]))
        parts = [
            _is_one_of(one, [option.state])
            if isinstance(option, forms.Constant)
            else _equal(one, self.term(option))
            for option in options
        ]
        return _any_of(parts)

    def _between(self, of: Term, low: Term, high: Term) -> Closure:
        value, least, most = self.term(of), self.term(low), self.term(high)

        def is_between(frame: Frame) -> Truth:
            one = value(frame)
            above = compare(">=", one, least(frame))
            below = compare("<=", one, most(frame))
            return False if above is False or below is False else above and below

        return is_between

    # Terms.

    def term(self, term: Term) -> Read:
        """Return the closure of a term."""
        match term:
            case forms.Constant(state):
                return lambda frame: state
            case forms.Element(level):
                return lambda frame: value_of(frame.elements[level])
            case forms.Get(of, name):
                return self._get(of, name)
            case forms.Attribute(name):
                return lambda frame: frame.history.attribute(name)
            case forms.Now():
                return lambda frame: ("t", frame.now)
            case forms.Arithmetic(operator, left, right):
                return _arithmetic(operator, self.term(left), self.term(right))
            case forms.Last(of):
                element = self._element(of)
                return lambda frame: _state_of(element(frame))
            case forms.Count(of, distinct):
                return self._distinct(of) if distinct else self._count(of)
            case forms.Sum(of, inner):
                return self._sum(of, inner)
            case forms.Extreme(of, greatest):
                return self._extreme(of, greatest)
            case forms.Clock(function, of, zone):
                time = self.term(of)
                return lambda frame: clock(function, time(frame), zone)
            case forms.Host(of):
                url = self.term(of)
                return lambda frame: host(url(frame))
            case forms.Choose():
                return self._choose(term)
        raise TypeError(term)

    def _get(self, of: Term, name: str) -> Read:
        if self._argument(forms.Get(of, name)) is not None:
            return lambda frame: frame.arguments[name]
        if isinstance(of, forms.Last):
            return self._get_of_last(of.of, name)
        holder = self._holder(of)

        def get(frame: Frame) -> State:
            held = holder(frame)
            return held.state(name) if type(held) is Call else _member(held, name)

        return get

    def _get_of_last(self, source: Source, name: str) -> Read:
        newest, element = self._newest(source), self._element(source)

        def get(frame: Frame) -> State:
            held: Any = None if frame.picks else newest(frame)
            if held is None:
                held = _or_missing(element(frame))
            return held.state(name) if type(held) is Call else _member(held, name)

        return get

    def _holder(self, of: Term) -> Callable[[Frame], Any]:
        """Return the closure of the call, row or state that a field is read from."""
        match of:
            case forms.Element(level):
                return lambda frame: frame.elements[level]
            case forms.CallOf(inner):
                row = self._holder(inner)
                return lambda frame: _call_of(row(frame))
            case forms.Last(source):
                element = self._element(source)
                return lambda frame: _or_missing(element(frame))
        return self.term(of)

    def _choose(self, term: forms.Choose) -> Read:
        value = self.term(term.of)
        arms = [([self.term(test) for test in tests], self.term(then)) for tests, then in term.arms]
        otherwise = None if term.otherwise is None else self.term(term.otherwise)

        def choose(frame: Frame) -> State:
            found = value(frame)
            if found[0] in NO_VALUE:
                return found
            for tests, then in arms:
                equal = disjunction(compare("=", found, test(frame)) for test in tests)
                if equal is not False:
                    return UNKNOWN if equal is None else then(frame)
            return UNKNOWN if otherwise is None else otherwise(frame)

        return choose

    # Sources.

    def _stream(
        self, source: Source, bucket: type[Bucket], term: Term | None = None
    ) -> Stream | None:
        """Return the stream of a source, cached; None: the source has no index."""
        key = source, bucket, term
        if key not in self._streams:
            self._streams[key] = self._new_stream(source, bucket, term)
        return self._streams[key]

    def _new_stream(self, source: Source, bucket: type[Bucket], term: Term | None) -> Stream | None:
        if issubclass(bucket, Related):
            return self._related_stream(source)
        layers = layers_of(source)
        if layers is None or (term is not None and not is_own(term, source.level)):
            return None
        own = tuple(own_conditions(layers[0]))
        amount = forms.Element(source.level) if term is None else term
        closure = self.all_of(own, False) if own else None
        depends = self.depends((*own, amount, *layers[1:]))
        return Stream(layers, closure, bucket, self.term(amount), depends)

    def _related_stream(self, source: Source) -> Stream | None:
        relation = relation_of(source)
        if relation is None:
            return None
        layers = relation.layers
        own = tuple(own_conditions(layers[0]))
        closure = self.all_of(own, False) if own else None
        inner = () if relation.inner is None else (relation.inner.base,)
        depends = self.depends((*own, relation.own, *inner, *layers[1:]))
        return Stream(
            layers, closure, relation.bucket, self._compared_states(relation), depends,
            on_call=relation.on_call, counts=len(layers) == 1 and source.height > 0,
        )  # fmt: skip

    def _compared_states(self, relation: Relation) -> Callable[[Frame], Sequence[State]]:
        """Return the closure of the states of an element that a relation compares."""
        if relation.own is None:
            return lambda frame: _ALL
        own = self.term(relation.own)
        if relation.inner is None:
            return lambda frame: (own(frame),)
        items, level = relation.inner, relation.inner.level
        while isinstance(items.base, forms.Rows):
            items = items.base.of
        if not isinstance(items.base, forms.Items):
            raise TypeError(items.base)
        values = self.term(items.base.of)
        is_element = relation.own == forms.Element(level)
        keeps_absent = relation.operator != "in"

        def states(frame: Frame) -> Sequence[State]:
            value = values(frame)
            if value[0] != "l":
                return (UNKNOWN,) if value[0] in ("unknown", "missing") else ()
            if is_element:
                return value[1]  # type: ignore[no-any-return]
            found = []
            for one in value[1]:
                frame.elements[level] = Row(one)
                state = own(frame)
                if keeps_absent or state != NONE:
                    found.append(state)
            return found

        return states

    def _view(self, source: Source) -> Callable[[Frame], View | None] | None:
        """Return the closure of an index's view of the members of a source; None: it has no index.

        The closure returns None if the index cannot decide.
        """
        plain = without_range(source)
        relation = relation_of(plain)
        stream = None if relation is None else self._stream(plain, relation.bucket)
        if stream is None or relation is None:
            return None
        find, asked = self._find(stream, source), self._asked_of(relation)
        bound, within = meaning.BOUNDS[source.height], window_of(source)
        widest, counts = relation.widest, stream.counts

        def view(frame: Frame) -> View | None:
            bucket = find(frame)
            most = frame.bound or bound
            if bucket is None or bucket.mixed or widest > most:
                return None
            question = asked(frame, bucket)
            if question is None:
                return None
            begin = 0
            if counts and bucket.size > most:
                places, start = bucket.places, 0
                if within is not None:
                    first = bisect_left(frame.history.times, frame.now - within)
                    start = bisect_left(places, first)
                if len(places) - start > most:
                    frame.cut = True
                    begin = places[-most]
            ask, odd = question
            return View(bucket, ask, odd, begin)

        return view

    def _asked_of(self, relation: Relation) -> Callable[[Frame, Any], Any]:
        """Return the closure of the question to the index of a relation; it returns None if the
        index cannot answer.
        """
        if relation.own is None:
            return lambda frame, bucket: (_ALL[0], ())
        others = [self.term(other) for other in relation.others]
        if relation.bucket is Listed:
            other, test = others[0], relation.test()

            def equal(frame: Frame, bucket: Any) -> Any:
                state = other(frame)
                if state[0] not in EXACT or not is_decided(bucket, state):
                    return None
                odd = odd_states(bucket, test, state)
                return None if odd is None else (state, odd)

            return equal
        operator = relation.operator

        def ordered(frame: Frame, bucket: Any) -> Any:
            values = []
            for other in others:
                kind, value = shown(other(frame))
                if kind not in ("n", "t") or (bucket.kind and kind != bucket.kind):
                    return None
                values.append(value)
            return fitting(operator, values), (UNKNOWN,)

        return ordered

    def depends(self, parts: Sequence[object]) -> bool:
        """Return whether some of these conditions, terms or sources use an attribute that the
        session learns.
        """
        return any(
            isinstance(form, forms.Attribute) and form.name in self._learned
            for part in parts
            for form in walk(part)
        )

    def _find(self, stream: Stream, source: Source) -> Find:
        """Return the closure that finds the bucket of the current keys; it returns None if the
        bucket cannot decide.
        """
        bound = meaning.BOUNDS[source.height]
        empty = stream.bucket()  # stays empty
        counts = stream.counts  # then the bucket knows which candidates are within the bound
        key_of = self._key(stream)

        def find(frame: Frame) -> Any:
            history = frame.history
            feed = history.feeds.get(stream)
            if feed is None or feed.added != len(feed.calls) or feed.logged != len(history.log):
                feed = stream.caught_up(frame)
            key = key_of(frame)
            if key is None or feed.odd:
                return None
            bucket = feed.buckets.get(key, empty)
            if type(bucket) is int or counts or bucket.size <= (frame.bound or bound):
                return bucket
            return None

        return find

    def _key(self, stream: Stream) -> Callable[[Frame], Any]:
        """Return the closure of the key of a bucket; it returns None if a part of the key is
        unknown.
        """
        arguments = [self._argument(key.term) for key in stream.keys]
        if None not in arguments and arguments:
            return _key_of_arguments([str(name) for name in arguments], stream.keys)
        terms = [(self.term(key.term), key.same) for key in stream.keys]
        is_only = len(terms) == 1

        def key(frame: Frame) -> Any:
            states = []
            for term, is_same in terms:
                state = term(frame)
                if state[0] not in EXACT and not is_usable(state, is_same):
                    return None
                states.append(state)
            return states[0] if is_only else tuple(states)

        return key

    def _argument(self, term: Term) -> str | None:
        """Return the name of the decided call's argument that a term reads; None: another term."""
        match term:
            case forms.Get(forms.Element(0), name) if self._decided:
                return name
        return None

    def _range(self, source: Source, negative: bool) -> Range | None:
        """Return the closure of two positions `(first, sure)`; None: the source has no window and
        no marks.

        Calls before `first` are outside the window or before a mark.  Calls from `sure` on are
        surely inside.  Calls between the two may be inside.
        """
        within = window_of(source)
        if not source.marks and within is None:
            return None
        marks = [self._mark(mark, negative) for mark in source.marks]

        def range_of(frame: Frame) -> tuple[int, int]:
            first = sure = 0
            if within is not None:
                first = sure = bisect_left(frame.history.times, frame.now - within)
            for mark in marks:
                must, may = mark(frame)
                first, sure = max(first, must + 1), max(sure, may + 1)
            return first, sure

        return range_of

    def _mark(self, mark: Source, negative: bool) -> Range:
        """Return the closure of the last positions that are surely, and that may be, in a mark; -1:
        none.
        """

        def looked(frame: Frame) -> tuple[int, int]:
            members = frame.members(mark, False, negative).items
            places = [(call_of(one.element).at, one.sure) for one in members]
            must = max([at for at, sure in places if sure], default=-1)
            return must, max([at for at, _ in places], default=-1)

        stream = self._stream(mark, Positions)
        if stream is None:
            return looked
        find = self._find(stream, mark)

        def last(frame: Frame) -> tuple[int, int]:
            bucket = find(frame)
            if bucket is None:
                return looked(frame)
            if type(bucket) is int:
                return bucket, bucket
            must = bucket.sure[-1] if bucket.sure else -1
            return must, max(must, bucket.maybe[-1]) if bucket.maybe else must

        return last

    def _some(self, source: Source, negative: bool) -> Closure:
        """Return the closure of: a source has an element."""
        looked: Closure = lambda frame: some(frame.members(source, negative, negative))  # noqa: E731
        if isinstance(source.base, forms.Items):
            return self._some_item(source, source.base, negative, looked)
        stream = self._stream(without_range(source), Positions)
        if stream is None or source.height:
            view = self._view(source)
            return looked if view is None else self._some_seen(source, negative, view, looked)
        find = self._find(stream, source)
        range_of = self._range(source, negative)

        def has(frame: Frame) -> Truth:
            bucket = find(frame)
            if bucket is None:
                return looked(frame)
            if type(bucket) is int or bucket.sure:
                return True
            return None if bucket.maybe or (negative and bucket.read) else False

        def has_in_range(frame: Frame) -> Truth:
            bucket = find(frame)
            if bucket is None:
                return looked(frame)
            first, sure = range_of(frame)  # type: ignore[misc]
            if type(bucket) is int:
                return True if bucket >= sure else None if bucket >= first else False
            last = bucket.sure[-1] if bucket.sure else -1
            if last >= sure:
                return True
            last = max(last, bucket.maybe[-1]) if bucket.maybe else last
            last = max(last, bucket.read[-1]) if negative and bucket.read else last
            return None if last >= first else False

        return has if range_of is None else has_in_range

    def _some_seen(
        self, source: Source, negative: bool, view_of: Callable[[Frame], View | None],
        looked: Closure,
    ) -> Closure:  # fmt: skip
        """Return the closure of: a source has an element.  It uses the index of a relation."""
        range_of = self._range(source, negative)

        def has(frame: Frame) -> Truth:
            view = view_of(frame)
            if view is None:
                return looked(frame)
            first, surely = (0, 0) if range_of is None else range_of(frame)
            if view.sure(surely):
                return True
            may = (first != surely and view.sure(first)) or view.maybe(first)
            return None if may or (negative and view.read(first)) else False

        return has

    def _some_item(
        self, source: Source, base: forms.Items, negative: bool, looked: Closure
    ) -> Closure:
        """Return the closure of: a list has an element for which the conditions are true."""
        bound, is_deep = meaning.BOUNDS[source.height], source.height > 0
        items = self.term(base.of)
        test = self.all_of(source.conditions, negative) if source.conditions else None
        other, level = self._equal_to(source), source.level

        def has(frame: Frame) -> Truth:
            found: Truth
            value = items(frame)
            if value[0] != "l":
                return looked(frame)
            many, kept = value[1], frame.bound
            limit, found = kept or bound, False
            if len(many) > limit:
                # Elements before the last `limit` are not evaluated: they may be in the source.
                frame.cut, many, found = True, many[-limit:], None
            if test is None:
                return len(many) > 0
            if other is not None and many:
                state = other(frame)
                if _are_like(many, (state,)):
                    return state in many or found
            frame.bound = limit
            try:
                for one in many:
                    frame.elements[level] = Row(one)
                    truth = test(frame)
                    if truth is True:
                        found = True
                        if not is_deep:  # with inner sources, each element may set `cut`
                            break
                    elif truth is None and found is False:
                        found = None
            finally:
                frame.bound = kept
            return found

        return has

    def _equal_to(self, source: Source) -> Read | None:
        """Return the closure of the term that each element has to equal, if the filter is this
        equality; else None.
        """
        element = forms.Element(source.level)
        match source.conditions:
            case (forms.Compare("=", left, (right,)),):
                for own, other in ((left, right), (right, left)):
                    is_null = isinstance(other, forms.Constant) and other.state == _NULL
                    if own == element and is_other(other, source.level) and not is_null:
                        return self.term(other)
        return None

    def _every_in(self, of: forms.Items, most: int, other: Term, general: Closure) -> Closure:
        """Return the closure of: each element of a list is in another list.

        Args:
            most: the longest lists that are decided here.
            general: decides all other cases.
        """
        items, others = self.term(of.of), self.term(other)

        def every(frame: Frame) -> Truth:
            if frame.picks:
                return general(frame)
            one, kept = items(frame), frame.bound
            limit = kept or most
            if one[0] != "l" or not one[1] or len(one[1]) > limit:
                return general(frame)
            frame.bound = limit
            try:
                two = others(frame)
            except Pick:
                return general(frame)
            finally:
                frame.bound = kept
            if two[0] != "l" or len(two[1]) > limit or not _are_like(two[1], one[1]):
                return general(frame)
            return set(one[1]).issubset(two[1])

        return every

    def _among(self, of: Term, source: Source, negative: bool) -> Closure:
        """Return the closure of: a term equals an element of a source."""
        value = self.term(of)
        looked: Closure = lambda frame: among_members(  # noqa: E731
            value(frame), frame.members(source, negative, negative)
        )
        if isinstance(source.base, forms.Items) and not source.conditions:
            return self._among_items(value, source, source.base, looked)
        stream = self._stream(source, Values)
        if stream is None:
            return looked
        find = self._find(stream, source)

        def among(frame: Frame) -> Truth:
            state, bucket = value(frame), find(frame)
            if bucket is None or state[0] not in EXACT:
                return looked(frame)
            tables = (bucket.known, bucket.read) if negative else (bucket.known,)
            if not all(table.decides(state) for table in tables):
                return looked(frame)
            if state in bucket.sure:
                return True
            return None if any(table.may_have(state) for table in tables) else False

        return among

    def _among_items(
        self, value: Read, source: Source, base: forms.Items, looked: Closure
    ) -> Closure:
        """Return the closure of: a term equals an element of a list."""
        bound, items = meaning.BOUNDS[source.height], self.term(base.of)

        def among(frame: Frame) -> Truth:
            state, (kind, many) = value(frame), items(frame)
            if kind != "l" or not _are_like(many, (state,)):
                return looked(frame)
            limit = frame.bound or bound
            if len(many) > limit:
                frame.cut = True  # elements before the last `limit` may be in the source
                return state in many[-limit:] or (None if state in many else False)
            return state in many

        return among

    def _element(self, source: Source) -> Callable[[Frame], Element | None]:
        """Return the closure of the last element of a source, or None if the source is empty.

        The closure raises Pick if several elements may be the last.
        """
        found = self.last(source)

        def element(frame: Frame) -> Element | None:
            if frame.picks and source in frame.picks:
                return frame.picks[source]
            ones = found(frame)
            if len(ones) == 1:
                return ones[0]  # only one combination, so no choice is needed
            raise Pick(source, ones)

        return element

    def _newest(self, source: Source) -> Callable[[Frame], Element | None]:
        """Return the closure of the last call of a source if it is surely the last, else None."""
        stream = self._stream(source, Positions) if isinstance(source.base, forms.Calls) else None
        if stream is None:
            return lambda frame: None
        find = self._find(stream, source)

        def newest(frame: Frame) -> Element | None:
            at = find(frame)
            if type(at) is not int:
                bucket = at
                if bucket is None or not bucket.sure:
                    return None
                at = bucket.sure[-1]
                if bucket.maybe and bucket.maybe[-1] > at:
                    return None
            call: Call = frame.history.calls[at]
            return call

        return newest

    def last(self, source: Source) -> LastOnes:
        """Return the closure of the elements that may be the last of a source; cached by its id."""
        found = self._lasts.get(id(source))
        if found is None:
            found = self._lasts[id(source)] = source, self._last(source)
        return found[1]

    def _last(self, source: Source) -> LastOnes:
        looked: LastOnes = lambda frame: last_ones(frame.members(source, False, False))  # noqa: E731
        plain = without_range(source)
        if not isinstance(source.base, forms.Calls):
            return looked
        stream = self._stream(plain, Positions)
        if stream is None or source.height:
            view = self._view(source)
            return looked if view is None else self._last_seen(source, view, looked)
        find = self._find(stream, source)
        range_of = self._range(source, False)

        def last(frame: Frame) -> list[Element | None]:
            bucket = find(frame)
            if bucket is None:
                return looked(frame)
            first, surely = (0, 0) if range_of is None else range_of(frame)
            if type(bucket) is int:
                bucket = Positions.of_one(bucket)
            sure, maybe, calls = bucket.sure, bucket.maybe, frame.history.calls
            left, right = len(sure) - 1, len(maybe) - 1
            found: list[Element | None] = []
            # The definition combines at most this many candidates.
            while len(found) <= meaning.MAX_COMBINATIONS:
                at = sure[left] if left >= 0 else -1
                is_sure = right < 0 or maybe[right] < at
                if not is_sure:
                    at = maybe[right]
                if at < first:
                    found.append(None)
                    break
                found.append(calls[at])
                if is_sure and at >= surely:
                    break
                left, right = (left - 1, right) if is_sure else (left, right - 1)
            return found

        return last

    def _last_seen(
        self, source: Source, view_of: Callable[[Frame], View | None], looked: LastOnes
    ) -> LastOnes:
        """Return the closure of the elements that may be the last of a source.  It uses the index
        of a relation.
        """
        range_of = self._range(source, False)

        def last(frame: Frame) -> list[Element | None]:
            view = view_of(frame)
            if view is None:
                return looked(frame)
            first, surely = (0, 0) if range_of is None else range_of(frame)
            calls, begin = frame.history.calls, view.begin
            found: list[Element | None] = []
            for at, is_sure in view.latest():
                if at < first or len(found) > meaning.MAX_COMBINATIONS:
                    break
                if at < begin and calls[at].outcome in NO_EFFECT:
                    continue
                found.append(calls[at])
                if is_sure and at >= surely:
                    return found
            found.append(None)
            return found

        return last

    # Aggregates.

    def _count(self, source: Source) -> Read:
        looked: Read = lambda frame: count(frame.members(source, False, False), False)  # noqa: E731
        stream = self._stream(without_range(source), Positions)
        if stream is None or source.height:
            view = self._view(source)
            return looked if view is None else self._count_seen(source, view, looked)
        find = self._find(stream, source)
        range_of = self._range(source, False)

        def counted(frame: Frame) -> State:
            bucket = find(frame)
            if bucket is None:
                return looked(frame)
            if type(bucket) is int:
                bucket = Positions.of_one(bucket)
            sure, maybe, many = bucket.sure, bucket.maybe, bucket.many
            if range_of is None:
                low, high = len(sure), len(sure) + len(maybe)
            else:
                first, surely = range_of(frame)
                low = len(sure) - bisect_left(sure, surely)
                high = len(sure) - bisect_left(sure, first) + len(maybe) - bisect_left(maybe, first)
                many = many and many[-1] >= first
            return between("n", low, None if many else high)

        return counted

    def _count_seen(
        self, source: Source, view_of: Callable[[Frame], View | None], looked: Read
    ) -> Read:
        """Return the closure of the number of elements of a source.  It uses the index of a
        relation.
        """
        range_of = self._range(source, False)

        def counted(frame: Frame) -> State:
            view = view_of(frame)
            if view is None:
                return looked(frame)
            first, surely = (0, 0) if range_of is None else range_of(frame)
            low = view.sure(surely)
            high = (low if first == surely else view.sure(first)) + view.maybe(first)
            return between("n", low, None if view.many(first) else high)

        return counted

    def _distinct(self, source: Source) -> Read:
        looked: Read = lambda frame: count(frame.members(source, False, False), True)  # noqa: E731
        stream = self._stream(source, Values)
        if stream is None:
            return looked
        find = self._find(stream, source)

        def distinct(frame: Frame) -> State:
            bucket = find(frame)
            if bucket is None:
                return looked(frame)
            known = bucket.known
            high = len(known.plain) + len(known.digested) + sum(known.odd.values())
            return between("n", len(bucket.sure), None if bucket.many else high)

        return distinct

    def _sum(self, source: Source, term: Term) -> Read:
        looked: Read = lambda frame: frame.summed(source, term)  # noqa: E731
        stream = self._stream(source, Sums, term)
        if stream is None:
            return looked
        find = self._find(stream, source)

        def total(frame: Frame) -> State:
            bucket = find(frame)
            if bucket is None:
                return looked(frame)
            return UNKNOWN if bucket.unknown else between("n", bucket.low, bucket.high)

        return total

    def _extreme(self, source: Source, greatest: bool) -> Read:
        looked: Read = lambda frame: extreme(  # noqa: E731
            frame.members(source, False, False), greatest
        )
        stream = self._stream(source, Extremes)
        if stream is None:
            return looked
        find = self._find(stream, source)
        end = -1 if greatest else 0

        def ends(frame: Frame) -> State:
            bucket = find(frame)
            if bucket is None:
                return looked(frame)
            if not bucket.sure and not bucket.unknown_sure:
                return MISSING
            if len(bucket.kinds) != 1:
                return UNKNOWN
            near = bucket.sure[end] if bucket.sure else None
            far = None if bucket.unknown else bucket.known[end]
            low, high = (near, far) if greatest else (far, near)
            return between(next(iter(bucket.kinds)), low, high)

        return ends


# Closures of keys and comparisons.


def _key_of_arguments(names: Sequence[str], keys: Sequence[forms.Key]) -> Callable[[Frame], Any]:
    """Return the closure of a key that consists of arguments of the decided call."""
    if len(names) == 1:
        only, is_same = names[0], keys[0].same

        def key(frame: Frame) -> Any:
            state = frame.arguments[only]
            return state if state[0] in EXACT or is_usable(state, is_same) else None

        return key
    states_of = operators.itemgetter(*names)

    def several(frame: Frame) -> Any:
        states = states_of(frame.arguments)
        for state in states:
            if state[0] not in EXACT:
                break
        else:
            return states
        pairs = zip(states, keys, strict=True)
        return states if all(is_usable(state, key.same) for state, key in pairs) else None

    return several


def _negation(of: Closure) -> Closure:
    return lambda frame: negation(of(frame))


def _any_of(parts: Sequence[Closure]) -> Closure:
    def any_of(frame: Frame) -> Truth:
        found: Truth = False
        for part in parts:
            truth = part(frame)
            if truth is True:
                return True
            if truth is None:
                found = None
        return found

    return any_of


def _is_of(level: int, tools: forms.Tools) -> Closure:
    def is_of(frame: Frame) -> Truth:
        element = frame.elements[level]
        return isinstance(element, Call) and element.tool in tools

    return is_of


def _same(left: Read, right: Read) -> Closure:
    def is_same(frame: Frame) -> Truth:
        one, other = left(frame), right(frame)
        return one == other if _are_alike(one, other) else same(one, other)

    return is_same


def _equal(left: Read, right: Read) -> Closure:
    def equal(frame: Frame) -> Truth:
        one, other = left(frame), right(frame)
        return one == other if _are_alike(one, other) else compare("=", one, other)

    return equal


def _are_alike(one: State, other: State) -> bool:
    """Return whether the kinds of two states allow comparing the values by comparing the states."""
    kind, other_kind = one[0], other[0]
    return (kind in PLAIN and other_kind in PLAIN) or kind == "d" == other_kind


def _are_like(ones: Sequence[State], others: Sequence[State]) -> bool:
    """Return whether elements of two lists can be compared by comparing their states."""
    kinds = {*map(_KIND, ones), *map(_KIND, others)}
    return kinds <= PLAIN or kinds == _DIGESTED


def _is_one_of(left: Read, states: Sequence[State]) -> Closure:
    """Return the closure of: a term equals one of some constants."""
    known = frozenset(states)
    plain = all(state[0] in PLAIN and state != _NULL for state in states)

    def general(one: State) -> Truth:
        return disjunction(
            is_null(one) if state == _NULL else compare("=", one, state) for state in states
        )

    def is_one_of(frame: Frame) -> Truth:
        one = left(frame)
        if plain and one[0] in PLAIN:
            return one in known
        return general(one)

    return is_one_of


def _order(operator: str, left: Read, right: Read) -> Closure:
    holds = _ORDERS[operator]

    def order(frame: Frame) -> Truth:
        one, other = left(frame), right(frame)
        if one[0] == "d" or other[0] == "d":
            one, other = shown(one), shown(other)
        if one[0] == other[0] and one[0] in ("n", "t"):
            return holds(one[1], other[1])
        return compare(operator, one, other)

    return order


def _arithmetic(operator: str, left: Read, right: Read) -> Read:
    result = _SUMS.get(operator)

    def value(frame: Frame) -> State:
        one, other = left(frame), right(frame)
        if result is not None and one[0] == "n" == other[0]:
            return "n", result(one[1], other[1])
        return arithmetic(operator, one, other)

    return value


# Elements and their fields.


def _state_of(element: Element | None) -> State:
    return MISSING if element is None else value_of(element)


def _or_missing(element: Element | None) -> Element | State:
    return MISSING if element is None else element


def _call_of(holder: Any) -> Any:
    return call_of(holder) if isinstance(holder, Row) else holder


def _member(held: Row | State, name: str) -> State:
    """Return the member of a record; NONE if the record lacks it."""
    state = held.value if isinstance(held, Row) else held
    if state[0] == "r":
        for member, value in state[1]:
            if member == name:
                return value  # type: ignore[no-any-return]
        return NONE
    return state if state[0] in NO_VALUE else UNKNOWN
