"""Indexes of sources whose filter compares an element with the call being decided.

A *relation* is the one condition of a filter that also depends on the decided call:

- an order (``amount >= this.amount``, ``amount in this.low .. this.high``): the elements are sorted
  by their values (:class:`Ranks`);
- an equality or a membership (``owner = this.user``, ``this.item in items``,
  ``items(sku = this.item)``): each value has the positions of its elements (:class:`Tokens`).

A filter without a relation that reads lists of the element also has an index of this kind.  The
definition looks at few candidates of such a source, so the index also knows which candidates are
too old.

Cost: a question takes logarithmic time, with or without a window and marks.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from typing import Any, ClassVar, TypeAlias

from tcc_certs.policy import forms
from tcc_certs.policy.forms import Condition, Source, Term
from tcc_certs.policy.history import ANSWERED, FAILED, Call
from tcc_certs.policy.kinds import conjuncts, walk
from tcc_certs.policy.meaning import Member, Truth, compare, same, shown
from tcc_certs.values.places import UNKNOWN, State
from tcc_runtime.gate.decide.feeds import EXACT, Bucket, Frame, Stream, is_own, own_conditions

# arguments: the state of the element, the other state
Test: TypeAlias = "Callable[[State, State], Truth]"
# returns how many values of a sorted sequence fit
HowMany: TypeAlias = "Callable[[Sequence[Any]], int]"

_SHIFTS = (6, 10, 14, 18)  # blocks of 64 positions, and of 16 blocks each
_FAN = 16
_FEW = 64  # up to this number of values, each is compared
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


# Relations of filters.


@dataclass(frozen=True, slots=True)
class Relation:
    """The index of this module that a source needs, and the relation that it answers.

    Attributes:
        layers: the source of calls first, then the sources of rows around it; without the relation.
        bucket: the class of the buckets.
        own: the side of the relation that reads the element; None: the source has no relation.
        inner: if `own` reads elements of a list, the source of these elements; else None.
        others: the terms that the element is compared with.
        operator: an order, ``between``, ``=``, ``same`` or ``in``; empty: the source has no
            relation.
        on_call: whether the relation is a condition on the call, not on a row of the last layer.
        widest: the most elements of a list in the filter.
    """

    layers: tuple[Source, ...]
    bucket: type[Related]
    own: Term | None = None
    inner: Source | None = None
    others: tuple[Term, ...] = ()
    operator: str = ""
    on_call: bool = True
    widest: int = 0

    def test(self) -> Test:
        """Return the comparison of two states for `=`, ``same`` and ``in``."""
        return same if self.operator == "same" else lambda one, other: compare("=", one, other)


def relation_of(source: Source) -> Relation | None:
    """Return the relation of a source without window and marks; None: this module has no index."""
    layers = [source]
    while isinstance(layers[-1].base, forms.Rows):
        layers.append(layers[-1].base.of)
    layers.reverse()
    if not isinstance(layers[0].base, forms.Calls):
        return None
    found: Relation | None = None
    plain = []
    widest = 0
    for at, layer in enumerate(layers):
        base = layer.base
        if layer.marks or layer.within is not None:
            return None
        if isinstance(base, forms.Rows) and not is_own(base.get, layer.level):
            return None
        parts = conjuncts(layer.conditions) if at else own_conditions(layer)
        own = []
        for part in parts:
            width = _width_of_own(part, layer.level)
            if width is not None:
                own.append(part)
                widest = max(widest, width)
                continue
            if found is not None or at not in (0, len(layers) - 1):
                return None
            found = _relation_in(part, layer.level)
            if found is None:
                return None
            found = replace(found, on_call=at == 0)
        plain.append(replace(layer, conditions=tuple(own)))
    if found is None:
        if not source.height:
            return None
        found = Relation((), Listed)
    return replace(found, layers=tuple(plain), widest=max(widest, found.widest))


def _width_of_own(condition: Condition, level: int) -> int | None:
    """Return the most elements of a list in a condition that depends only on the element of a
    level.

    None if the condition depends on other elements, on the time or on other calls.
    """
    if is_own(condition, level):
        return 0
    widest = 0
    for part in walk(condition):
        match part:
            case forms.Element(other) | forms.IsOf(other, _):
                if other < level:
                    return None
            case forms.Now() | forms.Last():
                return None
            case Source():
                width = _width(part)
                if width is None:
                    return None
                widest = max(widest, width)
    return widest


def _width(source: Source) -> int | None:
    """Return the most elements of a source of lists; None: it is a source of calls."""
    match source.base:
        case forms.Items(_, most):
            return most
        case forms.Rows(of, _, most):
            width = _width(of)
            return None if width is None else width * (most or 1)
    return None


def _relation_in(condition: Condition, level: int) -> Relation | None:
    """Return the relation that a condition on the element of a level expresses, or None."""
    match condition:
        case forms.Not(forms.All((only,))):
            return _relation_in(forms.Not(only), level)
        case forms.Not(forms.Compare(operator, left, options)) if operator in _NEGATED:
            return _relation_in(forms.Compare(_NEGATED[operator], left, options), level)
        case forms.Compare("=", left, (right,)):
            return _equality(left, right, level, "=")
        case forms.Same(left, right):
            return _equality(left, right, level, "same")
        case forms.Compare(operator, left, (right,)):
            if _is_of(left, level) and is_other(right, level):
                return Relation((), Ordered, left, None, (right,), operator)
            if _is_of(right, level) and is_other(left, level):
                return Relation((), Ordered, right, None, (left,), _FLIPPED[operator])
        case forms.Between(of, low, high):
            if _is_of(of, level) and is_other(low, level) and is_other(high, level):
                return Relation((), Ordered, of, None, (low, high), "between")
        case forms.Among(of, source) if is_other(of, level):
            return _membership(of, source, level)
        case forms.Some(source) if isinstance(source.base, forms.Items):
            if len(source.conditions) == 1 and _is_of(source.base.of, level):
                found = _relation_in(source.conditions[0], source.level)
                if found is None or found.bucket is not Listed or found.inner is not None:
                    return None
                is_known = all(is_other(other, level) for other in found.others)
                if is_known and _is_field(found.own, source.level):
                    return replace(found, inner=source, widest=source.base.most)
    return None


def _equality(left: Term, right: Term, level: int, operator: str) -> Relation | None:
    for own, other in ((left, right), (right, left)):
        if _is_of(own, level) and is_other(other, level):
            return Relation((), Listed, own, None, (other,), operator)
    return None


def _membership(of: Term, source: Source, level: int) -> Relation | None:
    """Return the relation of ``of in source`` if the source is a list of the element, or a field of
    its rows.
    """
    items, own = source, None
    match source.base:
        case forms.Rows(inner, get, None):
            items, own = inner, get
            if source.conditions or not _is_field(get, inner.level):
                return None
    base = items.base
    if not isinstance(base, forms.Items) or items.conditions or not _is_of(base.of, level):
        return None
    own = forms.Element(items.level) if own is None else own
    # A row that lacks the field is not in the source. So an absent value differs from every value.
    return Relation((), Listed, own, items, (of,), "in", widest=base.most)


def _is_of(term: Term, level: int) -> bool:
    """Return whether a term depends on the element of one level, and on no other element."""
    return is_own(term, level) and forms.Element(level) in walk(term)


def _is_field(term: Term | None, level: int) -> bool:
    """Return whether a term is the element of a level, or a field of it."""
    while isinstance(term, forms.Get):
        term = term.of
    return term == forms.Element(level)


def is_other(term: Term, level: int) -> bool:
    """Return whether a term is known before the element of a level is chosen, and reads no
    source.
    """
    for part in walk(term):
        match part:
            case forms.Element(other):
                if other >= level:
                    return False
            case Source():
                return False
    return True


# Positions by values.


class Ranks:
    """Numbers at positions; answers how many fit from a position on, and which position is the
    last.

    Each block of positions has its values sorted.  Blocks are built when they are first needed.
    """

    __slots__ = ("_blocks", "_ordered", "_places", "_values")

    def __init__(self) -> None:
        self._places: list[int] = []  # increasing
        self._values: list[Any] = []  # the value at each place
        self._ordered: list[Any] = []  # the same values, sorted
        self._blocks: list[dict[int, list[Any]]] = []

    def add(self, at: int, value: Any) -> None:
        """Add a value at a position."""
        index = bisect_right(self._places, at)
        self._places.insert(index, at)
        self._values.insert(index, value)
        insort(self._ordered, value)
        for shift, blocks in zip(_SHIFTS, self._blocks, strict=False):
            insort(blocks.setdefault(at >> shift, []), value)

    def remove(self, at: int, value: Any) -> None:
        """Remove a value at a position."""
        index = self._values.index(value, bisect_left(self._places, at))
        del self._places[index], self._values[index]
        del self._ordered[bisect_left(self._ordered, value)]
        for shift, blocks in zip(_SHIFTS, self._blocks, strict=False):
            block = blocks[at >> shift]
            del block[bisect_left(block, value)]

    def count(self, fit: HowMany, first: int) -> int:
        """Return how many values at positions from `first` on fit."""
        places, values = self._places, self._values
        found = fit(self._ordered)
        if not found or first <= places[0]:
            return found
        start = bisect_left(places, first)
        if len(places) - start <= _FEW:
            return sum([fit((value,)) for value in values[start:]])
        self._ensure_blocks()
        block = (first >> _SHIFTS[0]) + 1
        end = bisect_left(places, block << _SHIFTS[0])
        found = sum([fit((value,)) for value in values[start:end]])
        for shift, blocks in zip(_SHIFTS, self._blocks, strict=True):
            last = places[-1] >> shift
            while block <= last and (block % _FAN or shift == _SHIFTS[-1]):
                found += fit(blocks.get(block, ()))
                block += 1
            if block > last:
                break
            block //= _FAN
        return found

    def latest(self, fit: HowMany) -> Iterator[int]:
        """Yield the positions of values that fit, the last position first."""
        if not fit(self._ordered):
            return
        if len(self._places) <= _FEW:
            yield from self._among(fit, 0, len(self._places))
            return
        self._ensure_blocks()
        top = len(_SHIFTS) - 1
        for block in range(self._places[-1] >> _SHIFTS[top], -1, -1):
            yield from self._in_block(fit, top, block)

    def _in_block(self, fit: HowMany, depth: int, block: int) -> Iterator[int]:
        if not fit(self._blocks[depth].get(block, ())):
            return
        if depth:
            for inner in range(block * _FAN + _FAN - 1, block * _FAN - 1, -1):
                yield from self._in_block(fit, depth - 1, inner)
            return
        begin, end = block << _SHIFTS[0], (block + 1) << _SHIFTS[0]
        places = self._places
        yield from self._among(fit, bisect_left(places, begin), bisect_left(places, end))

    def _among(self, fit: HowMany, start: int, end: int) -> Iterator[int]:
        for index in range(end - 1, start - 1, -1):
            if fit((self._values[index],)):
                yield self._places[index]

    def _ensure_blocks(self) -> None:
        if not self._blocks:
            self._blocks = [{} for _ in _SHIFTS]
            for shift, blocks in zip(_SHIFTS, self._blocks, strict=True):
                for at, value in zip(self._places, self._values, strict=True):
                    blocks.setdefault(at >> shift, []).append(value)
                for block in blocks.values():
                    block.sort()


class Tokens:
    """The positions of each value.  A value with one position has the position instead of a list.

    Attributes:
        plain: the positions of known values.
        digested: the positions of values that are known by their digests.
    """

    __slots__ = ("digested", "plain")

    def __init__(self) -> None:
        self.plain: dict[State, Any] = {}
        self.digested: dict[State, Any] = {}

    def add(self, at: int, state: State) -> None:
        """Add a value at a position."""
        table = self.digested if state[0] == "d" else self.plain
        places = table.get(state)
        if places is None:
            table[state] = at
        elif type(places) is int:
            table[state] = [min(places, at), max(places, at)]
        elif at >= places[-1]:
            places.append(at)
        else:
            insort(places, at)

    def remove(self, at: int, state: State) -> None:
        """Remove a value at a position."""
        table = self.digested if state[0] == "d" else self.plain
        places = table[state]
        if type(places) is int or len(places) == 1:
            del table[state]
        else:
            del places[bisect_left(places, at)]

    def decides(self, state: State) -> bool:
        """Return whether a value surely differs from all values of the other kind, plain or
        digested.

        A digested value surely differs from a plain one if the ledger has the digest of the plain
        one.
        """
        if state[0] == "d":
            return all(one in state[1].constants for one in self.plain)
        for one in self.digested:
            return state in one[1].constants
        return True

    def count(self, state: State, first: int) -> int:
        """Return how often a value occurs at positions from `first` on."""
        places = self._places(state)
        return len(places) - bisect_left(places, first)

    def latest(self, state: State) -> Iterator[int]:
        """Return the positions of a value, the last position first."""
        return reversed(self._places(state))

    def _places(self, state: State) -> Sequence[int]:
        places = (self.digested if state[0] == "d" else self.plain).get(state, ())
        return (places,) if type(places) is int else places


# Buckets.


class Related(Bucket):
    """The members of a source, by the value that the relation compares.

    Attributes:
        sure, maybe: members that are surely, or may be, in the source if the relation is true.
        read: failed calls whose error was read.
        odd, odd_read: positions of members and failed calls whose value is not known, by state.
        many: positions of members that may be several rows.
        mixed: the number of members for which the index cannot answer.
        places: the positions of all candidates, if the stream has `counts`.
        failed, answered: positions of candidates with these outcomes, if the stream has `counts`.
    """

    READS = True
    INDEX: ClassVar[type[Ranks] | type[Tokens]] = Tokens

    def __init__(self) -> None:
        self.sure, self.maybe, self.read = self.INDEX(), self.INDEX(), self.INDEX()
        self.odd: dict[State, list[int]] = {}
        self.odd_read: dict[State, list[int]] = {}
        self.many: list[int] = []
        self.mixed = 0
        self.places: list[int] = []
        self.failed: list[int] = []
        self.answered: list[int] = []

    def value(self, state: State) -> Any:
        """Return the value that the index stores for a state; None: it stores none."""
        raise NotImplementedError

    def sorted_out(self, states: Iterable[State]) -> tuple[set[Any], set[State], bool]:
        """Split states into values that the index stores and other states.

        Returns:
            The values, the other states, and whether the index can answer for all of them.
        """
        raise NotImplementedError

    def put(self, frame: Frame, stream: Stream, call: Call, members: Sequence[Member]) -> Any:
        """Add the members of a call."""
        read = call.outcome == ANSWERED
        odd_table = self.odd_read if read else self.odd
        entry: list[tuple[Any, Any]] = []
        odd_states: list[State] = []
        mixed = many_rows = 0
        for element, sure, many, _ in members:
            frame.elements[stream.level] = call if stream.on_call else element
            states = stream.term(frame)
            index = self.sure if sure else self.read if read else self.maybe
            only = self.value(states[0]) if len(states) == 1 and not many else None
            if only is not None:
                index.add(call.at, only)
                entry.append((index, only))
                continue
            values, odd, known = self.sorted_out(states)
            mixed += not known or len(odd) > 1 or bool(values and (odd or many))
            for value in values:
                index.add(call.at, value)
                entry.append((index, value))
            for state in odd:
                insort(odd_table.setdefault(state, []), call.at)
                odd_states.append(state)
                if many and not read:
                    insort(self.many, call.at)
                    many_rows += 1
        self.mixed += mixed
        return entry, odd_states, mixed, many_rows

    def drop(self, call: Call, entry: Any) -> None:
        """Remove the members of a call with an unknown outcome: none is sure, and no error was
        read.
        """
        if entry is None:
            return
        values, odd, mixed, many_rows = entry
        for index, value in values:
            index.remove(call.at, value)
        for state in odd:
            places = self.odd[state]
            del places[bisect_left(places, call.at)]
            if not places:
                del self.odd[state]
        start = bisect_left(self.many, call.at)
        del self.many[start : start + many_rows]
        self.mixed -= mixed

    def note(self, call: Call) -> None:
        """Note whether a candidate has failed."""
        if call.outcome == FAILED:
            insort(self.failed, call.at)
        elif call.outcome == ANSWERED:
            insort(self.answered, call.at)


class Ordered(Related):
    """The members of a source, sorted by their numbers or times.  All values have the same kind."""

    INDEX = Ranks

    def __init__(self) -> None:
        super().__init__()
        self.kind = ""

    def value(self, state: State) -> Any:
        """See :class:`Related`."""
        kind, value = shown(state)
        return value if kind == self.kind else None

    def sorted_out(self, states: Iterable[State]) -> tuple[set[Any], set[State], bool]:
        """See :class:`Related`.  For a state that is no number or time, every order is unsure."""
        kind, value = shown(next(iter(states)))
        if kind not in ("n", "t"):
            return set(), {UNKNOWN}, kind != "between"
        self.kind = self.kind or kind
        return {value}, set(), kind == self.kind


class Listed(Related):
    """The members of a source by their values, or by the values of the elements of a list."""

    def value(self, state: State) -> Any:
        """See :class:`Related`."""
        return state if state[0] in EXACT else None

    def sorted_out(self, states: Iterable[State]) -> tuple[set[Any], set[State], bool]:
        """See :class:`Related`."""
        found = set(states)
        odd = {state for state in found if state[0] not in EXACT}
        return found - odd if odd else found, odd, True


class View:
    """The members of a bucket for which the relation is true, or may be.

    Args:
        ask: the question to the indexes of the bucket: a function of :func:`fitting`, or a state.
        odd: the states for which the relation is unsure.
        begin: the first position that the definition looks at.  Older candidates may be members.
    """

    __slots__ = ("_ask", "_bucket", "_odd", "begin")

    def __init__(self, bucket: Any, ask: Any, odd: Sequence[State], begin: int) -> None:
        self._bucket, self._ask, self._odd, self.begin = bucket, ask, odd, begin

    def sure(self, first: int) -> int:
        """Return how many members at positions from `first` on are surely in the source."""
        found: int = self._bucket.sure.count(self._ask, max(first, self.begin))
        return found

    def maybe(self, first: int) -> int:
        """Return how many other members at positions from `first` on may be in the source."""
        bucket, begin = self._bucket, max(first, self.begin)
        found: int = bucket.maybe.count(self._ask, begin)
        found += _count(bucket.odd, self._odd, begin)
        return found + self._old(first, bucket.failed, bucket.answered)

    def read(self, first: int) -> int:
        """Return how many failed calls from `first` on, whose error was read, may be members."""
        bucket, begin = self._bucket, max(first, self.begin)
        found: int = bucket.read.count(self._ask, begin)
        found += _count(bucket.odd_read, self._odd, begin)
        start, end = bisect_left(bucket.answered, first), bisect_left(bucket.answered, self.begin)
        return found + max(0, end - start)

    def _old(self, first: int, *dropped: Sequence[int]) -> int:
        """Return how many candidates from `first` on are before `begin`, without those in
        `dropped`.
        """
        if first >= self.begin:
            return 0
        found = 0
        for sign, places in ((1, self._bucket.places), *[(-1, places) for places in dropped]):
            found += sign * (bisect_left(places, self.begin) - bisect_left(places, first))
        return found

    def many(self, first: int) -> bool:
        """Return whether a member at a position from `first` on may be several rows."""
        many = self._bucket.many
        return bool(many) and many[-1] >= first

    def latest(self) -> Iterator[tuple[int, bool]]:
        """Yield the positions of members, the last first, and whether each is surely in the source.

        Then yield the candidates before `begin`, including failed ones.
        """
        bucket, begin = self._bucket, self.begin
        odd = [reversed(bucket.odd[state]) for state in self._odd if state in bucket.odd]
        maybe = merge(bucket.maybe.latest(self._ask), *odd, reverse=True)
        sure = ((at, True) for at in bucket.sure.latest(self._ask))
        for at, is_sure in merge(sure, ((at, False) for at in maybe), reverse=True):
            if at < begin:
                break
            yield at, is_sure
        for index in range(bisect_left(bucket.places, begin) - 1, -1, -1):
            yield bucket.places[index], False


def _count(table: Mapping[State, list[int]], states: Sequence[State], first: int) -> int:
    found = 0
    for state in states:
        places = table.get(state, ())
        found += len(places) - bisect_left(places, first)
    return found


# Questions of indexes.


def fitting(operator: str, values: Sequence[Any]) -> HowMany:
    """Return a function that counts how many values of a sorted sequence fit an order or a range.

    Args:
        operator: an order, or ``between``.
        values: the value to compare with; for ``between`` the low and the high end.
    """
    value = values[0]
    match operator:
        case ">=":
            return lambda many: len(many) - bisect_left(many, value)
        case ">":
            return lambda many: len(many) - bisect_right(many, value)
        case "<=":
            return lambda many: bisect_right(many, value)
        case "<":
            return lambda many: bisect_left(many, value)
    high = values[1]
    return lambda many: max(0, bisect_right(many, high) - bisect_left(many, value))


def odd_states(bucket: Related, test: Test, state: State) -> list[State] | None:
    """Return the odd states of a bucket for which the equality with a state is unsure.

    None if the equality is true for one of them, so the index cannot answer.
    """
    found = []
    for one in {*bucket.odd, *bucket.odd_read} if bucket.odd or bucket.odd_read else ():
        truth = test(one, state)
        if truth is True:
            return None
        if truth is None:
            found.append(one)
    return found


def is_decided(bucket: Related, state: State) -> bool:
    """Return whether the equality of a value with each stored value of a bucket is true or
    false.
    """
    tables: Any = (bucket.sure, bucket.maybe, bucket.read)
    return all(table.decides(state) for table in tables)
