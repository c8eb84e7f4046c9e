"""The definition: what conditions and statements mean for a history of calls.

A condition is true, false or *unsure* (`True`, `False`, `None`).  A statement allows a call only if
its condition is surely true.  So an unknown value never allows a call, and a call that was allowed
stays allowed when an unknown outcome becomes known.  Normative text: docs/spec/core.md, section
"Meaning".  Tests compare this module with an enumeration of all possible worlds.

A *member* of a source is a call, a row or an element of a list.  It is in the source *surely* or
*maybe*.  Work is bounded: an evaluation tests only the latest candidates of a source.  `BOUNDS`
gives their number, by the levels of sources in the filter.  Older candidates are maybe-members.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from tcc_certs.policy import forms, plans
from tcc_certs.policy.core import Core
from tcc_certs.policy.forms import Condition, Rule, Source, Term, Tools
from tcc_certs.policy.history import ANSWERED, DONE, FAILED, Call, Draw, History, Wanted
from tcc_certs.policy.kinds import Kinds
from tcc_certs.values import paths, urls
from tcc_certs.values.places import NONE, UNKNOWN, State, exact_number, listed_states
from tcc_certs.values.text_pattern import pattern_of
from tcc_certs.values.zones import DAY, Zone

Truth: TypeAlias = "bool | None"

MISSING: State = ("missing", None)  # the field of the last element of an empty source
BOUNDS = (1 << 20, 1 << 10, 1 << 7)  # most candidates, by the height of the source
MAX_COMBINATIONS = 1 << 10  # most combinations of candidates for last elements
MAX_STEPS = 1 << 20  # most characters times positions when a pattern is matched
NANO = 10**9  # costs are in nano-units
NO_VALUE = frozenset({"none", "unknown", "missing"})
TEXTS = frozenset({"s", "p", "u"})  # the kinds of values that are compared with patterns


def negation(truth: Truth) -> Truth:
    """Return the truth value of ``not`` in Kleene logic."""
    return None if truth is None else not truth


def conjunction(truths: Iterable[Truth]) -> Truth:
    """Return the truth value of ``and`` in Kleene logic; reading stops at the first false."""
    found: Truth = True
    for truth in truths:
        if truth is False:
            return False
        found = found and truth
    return found


def disjunction(truths: Iterable[Truth]) -> Truth:
    """Return the truth value of ``or`` in Kleene logic; reading stops at the first true."""
    return negation(conjunction(negation(truth) for truth in truths))


@dataclass(frozen=True, slots=True)
class Row:
    """An element that is no call: a value, and the call that it comes from (None: from a list)."""

    value: State
    call: Call | None = None


Element: TypeAlias = "Call | Row"


class Member(NamedTuple):
    """An element of a source.

    Attributes:
        sure: True if the element is surely in the source, False if it is maybe in it.
        many: 0 for one element.  Otherwise the member represents up to this many unknown rows, and
            `sure` is False.
        cut: True if the element is older than the candidates that the evaluation tests.
    """

    element: Element
    sure: bool
    many: int = 0
    cut: bool = False


class Members(NamedTuple):
    """The members of a source, in order; `missing` is True if the source is missing."""

    items: list[Member]
    missing: bool = False


class Pick(Exception):
    """Raised if a term needs the last element of a source, and none is chosen yet.

    Attributes:
        candidates: the elements that may be the last one; None: the source may be empty.
    """

    def __init__(self, source: Source, candidates: list[Element | None]) -> None:
        super().__init__()
        self.source, self.candidates = source, candidates


class Evaluation:
    """The evaluation of conditions and terms for one decision.

    Args:
        call: the call being decided; None at the end of the session.
        now_ms: the time of the decision, UTC milliseconds.

    Attributes:
        elements: the element of each level.
        picks: by source, the last element that the current combination assumes.
        bound: the most candidates of a source inside the current filter; 0 outside of filters.
        cut: True once a source had more candidates than its bound, or a condition more combinations
            than `MAX_COMBINATIONS`.
    """

    def __init__(self, history: History, call: Call | None, now_ms: int) -> None:
        self.history = history
        self.now = now_ms
        self.elements: dict[int, Element] = {} if call is None else {0: call}
        self.picks: dict[Source, Element | None] = {}
        self.bound = 0
        self.cut = False

    def bind(self, level: int, element: Element) -> None:
        """Set the element of a level."""
        self.elements[level] = element

    def wanted(self, keys: Iterable[forms.Key]) -> list[Wanted]:
        """Return the keys of a source whose terms have an exact state, with these states."""
        states = [(key, self.term(key.term)) for key in keys]
        return [(key.name, state, key.same) for key, state in states if is_exact(state)]

    def key(self, term: Term) -> State:
        """Return the state of a `per` term; equal keys have equal states.

        A term that may be computed gives its value instead of a digest, because a computed value
        has no digest.
        """
        state = self.term(term)
        return shown(state) if forms.is_computed(term) else state

    # Conditions.

    def all_of(self, conditions: Sequence[Condition], negative: bool = False) -> Truth:
        """Return whether all conditions are true; `negative` is that of :meth:`truth`."""
        return conjunction(self.truth(condition, negative) for condition in conditions)

    def truth(self, condition: Condition, negative: bool = False) -> Truth:
        """Return whether a condition is true: True, False, or None for unsure.

        Args:
            negative: the polarity: True below an odd number of negations.  A call whose error the
                agent read is then maybe in the sources of the condition.
        """
        match condition:
            case forms.Not(of):
                return negation(self.truth(of, not negative))
            case forms.All(parts):
                return self.all_of(parts, negative)
            case forms.AnyOf(parts):
                return disjunction(self.truth(part, negative) for part in parts)
            case forms.IsOf(level, tools):
                element = self.elements[level]
                return isinstance(element, Call) and element.tool in tools
        return self.atom(lambda: self._asked(condition, negative))

    def _asked(self, condition: Condition, negative: bool) -> Truth:
        """Return the truth of a condition for the last elements of `picks`.

        Raises:
            Pick: the condition needs another last element.
        """
        match condition:
            case forms.Some(of):
                return some(self.members(of, negative, negative))
            case forms.Every(of, conditions):
                return self.every(of, conditions, negative)
            case forms.Compare(operator, left, options):
                one = self.term(left)
                return disjunction(self._compared(operator, one, other) for other in options)
            case forms.Same(left, right):
                return same(self.term(left), self.term(right))
            case forms.Between(of, low, high):
                value = self.term(of)
                ends = (compare(">=", value, self.term(low)), compare("<=", value, self.term(high)))
                return conjunction(ends)
            case forms.Among(of, source):
                return among(self.term(of), self.members(source, negative, negative))
            case forms.Matches(of, pattern):
                return matches(self.term(of), pattern)
            case forms.Under(of, scope):
                return under(self.term(of), self.term(scope))
        raise TypeError(condition)

    def _compared(self, operator: str, one: State, other: Term) -> Truth:
        if other == forms.Constant(("z", None)):
            return is_null(one)
        return compare(operator, one, self.term(other))

    def atom(self, ask: Callable[[], Truth]) -> Truth:
        """Return the truth that `ask` gives for every combination of last elements.

        The result is None if two combinations differ, or if there are more than `MAX_COMBINATIONS`.
        """
        kept = self.picks
        left: list[dict[Source, Element | None]] = [{}]
        found: set[Truth] = set()
        done = 0
        try:
            while left:
                self.picks = left.pop()
                try:
                    found.add(ask())
                    done += 1
                except Pick as pick:
                    if done + len(left) + len(pick.candidates) > MAX_COMBINATIONS:
                        self.cut = True
                        return None
                    picks = self.picks
                    left += [{**picks, pick.source: one} for one in pick.candidates]
        finally:
            self.picks = kept
        return found.pop() if len(found) == 1 else None

    def every(self, of: Source, conditions: Sequence[Condition], negative: bool) -> Truth:
        """Return whether the conditions are true for every member of a source."""
        members = self.members(of, not negative, not negative)
        if members.missing:
            return None
        found: Truth = True
        kept = self.bound
        self.bound = self.bound_of(of)
        for element, sure, _, cut in members.items:
            self.elements[of.level] = element
            truth = None if cut else self.all_of(conditions, negative)
            if truth is False and sure:
                found = False
            elif truth is not True:
                found = found and None
        self.bound = kept
        return found

    # Sources.

    def members(self, source: Source, answered: bool, negative: bool) -> Members:
        """Return the members of a source.

        Args:
            answered: whether a call whose error the agent read is maybe in the source.
            negative: the polarity of the conditions of the source, as in :meth:`truth`.
        """
        marks = [self.members(mark, False, negative) for mark in source.marks]
        kept = self.bound
        self.bound = self.bound_of(source)
        try:
            base, looked = self._base(source, answered, negative)
            items = self._filtered(source, base, looked, negative)
        finally:
            self.bound = kept
        for mark in marks:
            items = _after(items, mark)
        return Members(items, base.missing)

    def _filtered(self, source: Source, base: Members, looked: int, negative: bool) -> list[Member]:
        items = []
        for at, member in enumerate(base.items):
            sure = member.sure
            cut = at < len(base.items) - looked
            if cut:
                sure = False
            elif source.conditions:
                self.elements[source.level] = member.element
                truth = self.all_of(source.conditions, negative)
                if truth is False:
                    continue
                sure = sure and truth is True
            items.append(Member(member.element, sure, member.many, cut or member.cut))
        return items

    def bound_of(self, source: Source) -> int:
        """Return the number of candidates of a source that are tested."""
        return self.bound or BOUNDS[source.height]

    def _base(self, source: Source, answered: bool, negative: bool) -> tuple[Members, int]:
        """Return the members of a base, and the number of its latest members that are tested."""
        match source.base:
            case forms.Calls(tools):
                return self._calls(source, tools, answered)
            case forms.Rows(of, get, most):
                return self._rows(source.level, self.members(of, answered, negative), get, most)
            case forms.Merged(parts):
                merged = [self.members(part, answered, negative) for part in parts]
                items = [member for members in merged for member in members.items]
                items.sort(key=lambda member: call_of(member.element).at)
                sizes = [max(1, member.many) for member in items]
                return Members(items), self._latest(sizes, [1] * len(items))
            case forms.Items(of, most):
                return self._items(self.term(of), most)
            case forms.Pairs(left, right):
                return self._pairs(self.term(left), self.term(right))
        raise TypeError(source.base)

    def _cut(self, size: int) -> int:
        """Return how many of `size` candidates are tested, and note whether this leaves any out."""
        self.cut = self.cut or size > self.bound
        return min(size, self.bound)

    def _calls(self, source: Source, tools: Tools, answered: bool) -> tuple[Members, int]:
        keys = self.wanted(source.keys)
        since = None if source.within is None else self.now - source.within
        found = self.history.candidates(tools, keys, since)
        looked = self._cut(len(found))
        items, old = [], len(found) - looked
        dropped = 0
        for at, call in enumerate(found):
            if call.outcome == FAILED or (call.outcome == ANSWERED and not answered):
                dropped += at >= old
                continue
            items.append(Member(call, call.outcome == DONE))
        return Members(items), looked - dropped

    def _rows(self, level: int, of: Members, get: Term, most: int | None) -> tuple[Members, int]:
        items: list[Member] = []
        # for each member of `of`: how many candidates its rows count as, and how many rows it has
        sizes: list[int] = []
        rows: list[int] = []
        for member in of.items:
            self.elements[level] = member.element
            value = self.term(get)
            call = member.element if isinstance(member.element, Call) else member.element.call
            before = len(items)
            many, times = member.many, max(1, member.many)
            if value[0] == "unknown":
                many = many if most is None else times * most
                items.append(Member(Row(UNKNOWN, call), False, many))
                sizes.append(max(1, many))
            elif most is None:
                if value[0] != "none":
                    items.append(Member(Row(value, call), member.sure, many))
                sizes.append(times)
            else:
                elements = value[1] if value[0] == "l" else ()
                items += [Member(Row(one, call), member.sure, many) for one in elements]
                sizes.append(times * len(elements))
            rows.append(len(items) - before)
        return Members(items, of.missing), self._latest(sizes, rows)

    def _latest(self, sizes: Sequence[int], rows: Sequence[int]) -> int:
        """Return the number of the latest rows to test: only whole lists, within the bound."""
        looked = size = 0
        for at in range(len(sizes) - 1, -1, -1):
            size += sizes[at]
            if size > self.bound:
                self.cut = True
                break
            looked += rows[at]
        return looked

    def _items(self, value: State, most: int) -> tuple[Members, int]:
        if value[0] == "missing":
            return Members([], True), 0
        if value[0] == "unknown":
            # if the list may be longer than the bound, no element is tested
            looked = self._cut(most) == most
            return Members([Member(Row(UNKNOWN), False, most)]), int(looked)
        elements = value[1] if value[0] == "l" else ()
        return Members([Member(Row(one), True) for one in elements]), self._cut(len(elements))

    def _pairs(self, left: State, right: State) -> tuple[Members, int]:
        if not {left[0], right[0]}.isdisjoint(("missing", "unknown")):
            return Members([], True), 0  # the lists may have different lengths
        lists = [value[1] if value[0] == "l" else () for value in (left, right)]
        if len(lists[0]) != len(lists[1]):
            return Members([], True), 0
        both = zip(*lists, strict=True)
        rows = [Row(("r", (("left", one), ("right", other)))) for one, other in both]
        return Members([Member(row, True) for row in rows]), self._cut(len(rows))

    def _last(self, source: Source) -> Element | None:
        """Return the last element that was chosen for a source; None: the source is empty.

        Raises:
            Pick: no element was chosen yet.
        """
        if source in self.picks:
            return self.picks[source]
        raise Pick(source, last_ones(self.members(source, False, False)))

    # Terms.

    def term(self, term: Term) -> State:
        """Return the state of a term: a value, NONE, UNKNOWN, MISSING, or ``("between", ..)``."""
        match term:
            case forms.Constant(state):
                return state
            case forms.Element(level):
                return value_of(self.elements[level])
            case forms.Get(of, name):
                return self._get(of, name)
            case forms.Attribute(name):
                return self.history.attribute(name)
            case forms.Now():
                return "t", self.now
            case forms.Arithmetic(operator, left, right):
                return arithmetic(operator, self.term(left), self.term(right))
            case forms.Last(of):
                element = self._last(of)
                return MISSING if element is None else value_of(element)
            case forms.Count(of, distinct):
                return count(self.members(of, False, False), distinct)
            case forms.Sum(of, inner):
                return self.summed(of, inner)
            case forms.Extreme(of, greatest):
                return extreme(self.members(of, False, False), greatest)
            case forms.Clock(function, of, zone):
                return clock(function, self.term(of), zone)
            case forms.Host(of):
                return host(self.term(of))
            case forms.Choose():
                return self._choose(term)
        raise TypeError(term)

    def _holder(self, of: Term) -> Element | State:
        """Return the call, row or state that a field is read from."""
        match of:
            case forms.Element(level):
                return self.elements[level]
            case forms.CallOf(inner):
                holder = self._holder(inner)
                return call_of(holder) if isinstance(holder, Row) else holder
            case forms.Last(source):
                element = self._last(source)
                return MISSING if element is None else element
        return self.term(of)

    def _get(self, of: Term, name: str) -> State:
        holder = self._holder(of)
        if isinstance(holder, Call):
            return holder.state(name)
        state = holder.value if isinstance(holder, Row) else holder
        if state[0] == "r":
            return next((value for member, value in state[1] if member == name), NONE)
        return state if state[0] in NO_VALUE else UNKNOWN

    def summed(self, of: Source, term: Term) -> State:
        """Return the sum of a term over the members of a source (docs/spec/core.md, 9.10)."""
        members = self.members(of, False, False)
        if members.missing:
            return MISSING
        low, high = 0, 0
        kept = self.bound
        self.bound = self.bound_of(of)
        try:
            for element, sure, many, cut in members.items:
                self.elements[of.level] = element
                ends = None if cut and of.height else ends_of(self._alone(term))
                if many or ends is None or None in ends[1:]:
                    return UNKNOWN
                low += ends[1] if sure else min(ends[1], 0)
                high += ends[2] if sure else max(ends[2], 0)
        finally:
            self.bound = kept
        return between("n", low, high)

    def _alone(self, term: Term) -> State:
        """Return the state of a term for one element.

        UNKNOWN if combinations of last elements differ.
        """
        found: list[State] = []

        def ask() -> Truth:
            found.append(self.term(term))
            return True

        agreed = self.atom(ask)
        return found[0] if agreed and found.count(found[0]) == len(found) else UNKNOWN

    def least(self, term: Term) -> Any | None:
        """Return the least value that a term may have; None if it may have no lower end."""
        lows: list[Any] = []

        def ask() -> Truth:
            ends = ends_of(self.term(term))
            lows.append(None if ends is None else ends[1])
            return True

        return min(lows) if self.atom(ask) and None not in lows else None

    def _choose(self, term: forms.Choose) -> State:
        value = self.term(term.of)
        if value[0] in NO_VALUE:
            return value
        for tests, then in term.arms:
            equal = disjunction(compare("=", value, self.term(test)) for test in tests)
            if equal is not False:
                return UNKNOWN if equal is None else self.term(then)
        return UNKNOWN if term.otherwise is None else self.term(term.otherwise)


def some(members: Members) -> Truth:
    """Return whether a source has an element."""
    if any(member.sure for member in members.items):
        return True
    return None if members.items or members.missing else False


def among(value: State, members: Members) -> Truth:
    """Return whether a value equals a member."""
    if members.missing or value[0] in NO_VALUE:
        return None
    found: Truth = False
    for element, sure, _, _ in members.items:
        equal = compare("=", value, value_of(element))
        if equal is True and sure:
            return True
        if equal is not False:
            found = None
    return found


def last_ones(members: Members) -> list[Element | None]:
    """Return the candidates for the last element, from the end; None: the source may be empty."""
    found: list[Element | None] = []
    for element, sure, _, _ in reversed(members.items):
        found.append(element)
        if sure:
            return found
    found.append(None)
    return found


def _after(items: list[Member], mark: Members) -> list[Member]:
    """Return the members after the last call of a mark."""
    marks = [(call_of(one.element).at, one.sure) for one in mark.items]
    may = max((at for at, _ in marks), default=-1)
    must = max((at for at, sure in marks if sure), default=-1)
    found = []
    for member in items:
        at = call_of(member.element).at
        if at > must:
            found.append(member._replace(sure=member.sure and at > may))
    return found


def call_of(element: Element) -> Call:
    """Return the call that an element is, or belongs to."""
    call = element if isinstance(element, Call) else element.call
    if call is None:
        raise TypeError("the elements of a list have no call")
    return call


def value_of(element: Element) -> State:
    """Return the state of an element; ``("call", ..)`` for a call."""
    return ("call", element) if isinstance(element, Call) else element.value


# Values.


def between(kind: str, low: Any, high: Any) -> State:
    """Return the state of a number or time between two ends; None: this end is open."""
    return (kind, low) if low is not None and low == high else ("between", (kind, low, high))


def shown(state: State) -> State:
    """Return the value of a digested state, UNKNOWN if the value is not known.

    Other states stay.
    """
    return state if state[0] != "d" else UNKNOWN if state[1].value is None else state[1].value


def ends_of(state: State) -> tuple[str, Any, Any] | None:
    """Return the kind and both ends of a number or time; None for any other state."""
    state = shown(state)
    if state[0] in ("n", "t"):
        return state[0], state[1], state[1]
    return state[1] if state[0] == "between" else None


def compare(operator: str, one: State, other: State) -> Truth:
    """Return whether ``=``, ``<``, ``<=``, ``>`` or ``>=`` holds between two states."""
    if one[0] in NO_VALUE or other[0] in NO_VALUE:
        return None
    if operator == "=" and "between" not in (one[0], other[0]):
        return _equal(one, other)
    ends, others = ends_of(one), ends_of(other)
    if ends is None or others is None or ends[0] != others[0]:
        return None
    if operator in (">", ">="):
        ends, others, operator = others, ends, operator.replace(">", "<")
    (_, low, high), (_, least, most) = ends, others
    if operator == "=":
        apart = _below(high, least) or _below(most, low)
        return False if apart else None
    if operator == "<":
        return True if _below(high, least) else False if _not_above(most, low) else None
    return True if _not_above(high, least) else False if _below(most, low) else None


def _below(high: Any, low: Any) -> bool:
    return high is not None and low is not None and high < low


def _not_above(high: Any, low: Any) -> bool:
    return high is not None and low is not None and high <= low


def _equal(one: State, other: State) -> Truth:
    """Return whether two values are equal; None if this is unsure."""
    if "*" in (one[0], other[0]):
        return _compare_rest(one, other)
    if "d" in (one[0], other[0]):
        return one[1] is other[1] or _equal_digest(one, other)
    if one[0] == other[0] == "l":
        pairs = zip(one[1], other[1], strict=False)
        return len(one[1]) == len(other[1]) and conjunction(_equal(*pair) for pair in pairs)
    if one[0] == other[0] == "r":
        members = dict(other[1])
        if members.keys() != dict(one[1]).keys():
            return None  # a record may have members that its type does not declare
        return conjunction(_equal(value, members[name]) for name, value in one[1])
    return one == other


def _equal_digest(one: State, other: State) -> Truth:
    """Return whether a value that is known by its digest equals another value."""
    if one[0] == other[0]:
        return False
    digested, value = (one, other) if one[0] == "d" else (other, one)
    if value[0] == "none":
        return False  # the member is absent
    if digested[1].value is not None:
        return bool(digested[1].value == value)
    return False if value in digested[1].constants else None


def is_exact(state: State) -> bool:
    """Return whether a state surely differs from every other state that is written differently.

    Such a state can be looked up in an index.  A record is not exact: it is compared by its
    members.
    """
    if state[0] == "l":
        return all(map(is_exact, state[1]))
    return state[0] in ("none", "s", "n", "b", "t", "p", "u", "j", "z", "d")


def _compare_rest(one: State, other: State) -> Truth:
    """Return False if one state is a listed value and the other is *other* (``*``), else None."""
    rest, value = (one, other) if one[0] == "*" else (other, one)
    return False if value in rest[1] else None


def is_null(state: State) -> Truth:
    """Return whether a state is null; an absent field counts as null."""
    state = state if state[0] != "d" or state[1].value is None else state[1].value
    if state[0] in NO_VALUE:
        return True if state == NONE else None
    return _compare_rest(state, ("z", None)) if state[0] == "*" else state[0] == "z"


def same(one: State, other: State) -> Truth:
    """Return whether two states are the same; None if this is unsure.

    Absent equals absent and differs from every value.  The result is None for an unknown state.
    """
    if one[0] == "none" and other[0] == "none":
        return True
    if "none" in (one[0], other[0]):
        rest = other if one[0] == "none" else one
        return None if rest[0] in NO_VALUE else False
    return compare("=", one, other)


def matches(state: State, pattern: str) -> Truth:
    """Return whether a whole text, path or URL matches a pattern; None beyond `MAX_STEPS`."""
    if state[0] == "d":
        marks: Mapping[object, Truth] = state[1].marks
        if pattern in marks:
            return marks[pattern]
        state = shown(state)
    if state[0] not in TEXTS:
        return None
    known = pattern_of(pattern)
    text: str = state[1]
    return None if len(text) * known.size > MAX_STEPS else known.matches(text)


def under(state: State, scope: State) -> Truth:
    """Return whether a path or URL is the directory or scope `scope`, or inside of it."""
    if state[0] == "d":
        marks: Mapping[object, Truth] = state[1].marks
        if scope in marks:
            return marks[scope]
    state, scope = shown(state), shown(scope)
    if state[0] != scope[0]:
        return None
    if state[0] == "p":
        return paths.is_under(state[1], scope[1])
    return urls.is_under(state[1], scope[1]) if state[0] == "u" else None


def host(state: State) -> State:
    """Return the host of a URL as a text."""
    state = shown(state)
    if state[0] == "u":
        return "s", urls.host(state[1])
    return state if state[0] in NO_VALUE else UNKNOWN


def arithmetic(operator: str, one: State, other: State) -> State:
    """Return the sum, difference, product, ``min`` or ``max`` of two states."""
    ends, others = ends_of(one), ends_of(other)
    if ends is None or others is None:
        return UNKNOWN
    (kind, low, high), (other_kind, least, most) = ends, others
    if operator in ("min", "max"):
        pick = _lesser if operator == "min" else _greater
        return between(kind, pick(low, least, True), pick(high, most, False))
    if operator == "*":
        if None in (low, high, least, most):
            return UNKNOWN
        products = [low * least, low * most, high * least, high * most]
        return between("n", min(products), max(products))
    if operator == "-":
        least, most = (None if end is None else -end for end in (most, least))
    result = {("n", "n"): "n", ("t", "n"): "t", ("n", "t"): "t", ("t", "t"): "n"}[kind, other_kind]
    ends_of_sum = [
        None if first is None or second is None else first + second
        for first, second in ((low, least), (high, most))
    ]
    return between(result, *ends_of_sum)


def _lesser(one: Any, other: Any, is_low: bool) -> Any:
    """Return the lesser of two ends.  None is an open end: below all numbers if it is a low end."""
    if one is None or other is None:
        return None if is_low else other if one is None else one
    return min(one, other)


def _greater(one: Any, other: Any, is_low: bool) -> Any:
    if one is None or other is None:
        return (other if one is None else one) if is_low else None
    return max(one, other)


def count(members: Members, distinct: bool) -> State:
    """Return the number of members, or of their distinct values, as a number or an interval."""
    if members.missing:
        return MISSING
    many = any(member.many for member in members.items)
    if not distinct:
        low = sum([member.sure for member in members.items])
        return between("n", low, None if many else len(members.items))
    sure, known, unknown = set(), set(), 0
    for element, is_sure, _, _ in members.items:
        value = value_of(element)
        if value[0] in NO_VALUE or value[0] == "*":
            unknown += 1
            continue
        known.add(value)
        if is_sure:
            sure.add(value)
    return between("n", len(sure), None if many else len(known) + unknown)


def extreme(members: Members, greatest: bool) -> State:
    """Return the least or greatest value of the members; an unknown value may be any number."""
    sure, maybe = [], []
    unknown = unknown_sure = False
    kinds: set[str] = set()
    for element, is_sure, many, _ in members.items:
        kind, value = shown(value_of(element))
        if many or kind not in ("n", "t"):
            unknown = True
            unknown_sure = unknown_sure or is_sure
            continue
        kinds.add(kind)
        maybe.append(value)
        if is_sure:
            sure.append(value)
    if not sure and not unknown_sure:
        return MISSING
    if len(kinds) != 1:
        return UNKNOWN
    pick = max if greatest else min
    near = pick(sure) if sure else None  # the result is at least as extreme as this value
    far = None if unknown else pick(maybe)
    return between(kinds.pop(), *((near, far) if greatest else (far, near)))


def clock(function: str, state: State, zone: int | Zone) -> State:
    """Return ``hour``, ``weekday`` or ``day`` of a time in a zone.

    Args:
        zone: minutes ahead of UTC, or the record of a named zone.  A moment outside of the recorded
            time gives UNKNOWN.
    """
    state = shown(state)
    if state[0] != "t":
        return UNKNOWN
    local = state[1] + zone * 60_000 if isinstance(zone, int) else zone.local(state[1])
    if local is None:
        return UNKNOWN
    days, of_day = divmod(local, DAY)
    if function == "hour":
        return "n", of_day // 3_600_000
    if function == "weekday":
        return "n", (days + 3) % 7 + 1
    start = days * DAY - zone * 60_000 if isinstance(zone, int) else zone.day_start(days)
    return UNKNOWN if start is None else ("t", start)


# Statements.


class Refusal(NamedTuple):
    """A statement that refuses a call.

    Attributes:
        statement: its number in the core.
        code: R202 a `require`, `forbid` or `limit`.  R203 a total.  R207 the evaluation was cut.
            R208 an overdue obligation.  R211 an `ask`.
    """

    statement: int
    code: str


@dataclass(frozen=True, slots=True)
class Debt:
    """An obligation that may be open: statement, first call, and the last time to pay it."""

    statement: int
    call: Call
    due_ms: int | None


class Policy:
    """The statements of a core, ready to decide calls.

    Args:
        also: rules to decide after the rules of the core.

    Attributes:
        bare_texts: the ids of text nodes that a core must write as a bare name (:class:`Kinds`).

    Raises:
        Fault: a statement or a `let` is wrong.
    """

    def __init__(self, core: Core, also: Iterable[Rule] = ()) -> None:
        kinds = Kinds(core)
        kinds.check_lets()
        self.core = core
        rules = [kinds.rule(one) for one in core.statements]
        self.rules: tuple[Rule, ...] = (*rules, *also)
        self.bare_texts: frozenset[int] = frozenset(kinds.bare_texts)
        self._of_few: dict[str, list[int]] = {tool.name: [] for tool in core.tools}
        self._of_many: dict[int, tuple[Tools, list[int]]] = {}  # by the id of the set of tools
        self._of_tool: dict[str, list[int]] = {}  # cache of `_statements_of`
        for number, rule in enumerate(self.rules):
            if isinstance(rule.tools, frozenset):
                for tool in rule.tools:
                    self._of_few[tool].append(number)
            elif rule.tools is not None:
                self._of_many.setdefault(id(rule.tools), (rule.tools, []))[1].append(number)
        self._totals = [at for at, rule in enumerate(self.rules) if rule.kind == "total"]
        self.amounts = _amounts(core) if self._totals else {}

    def _statements_of(self, tool: str) -> Sequence[int]:
        """Return the numbers of the statements that restrict or count calls of a tool, in order."""
        found = self._of_tool.get(tool)
        if found is None:
            found = list(self._of_few[tool])
            for tools, numbers in self._of_many.values():
                found += numbers if tool in tools else ()
            self._of_tool[tool] = sorted(found)
        return self._of_tool[tool]

    def refusals(self, history: History, call: Call, now_ms: int) -> list[Refusal]:
        """Return the statements that refuse a call, in the order of the core.

        Each `ask` that applies is among them, with R211.  :mod:`tcc_certs.session` decides whether
        an approval allows the call.
        """
        found = []
        for number in sorted([*self._statements_of(call.tool), *self._totals]):
            code = self._refused(number, history, call, now_ms)
            if code:
                found.append(Refusal(number, code))
        return found

    def _refused(self, number: int, history: History, call: Call, now_ms: int) -> str:
        """Return the code by which a statement refuses a call, or ''."""
        rule = self.rules[number]
        if rule.kind == "total":
            total = self.total(number, history, call)
            return "" if total <= exact_number(rule.total) else "R203"
        evaluation = self.evaluation(history, call, now_ms)
        excluded = evaluation.all_of(rule.where, negative=True) is False
        if excluded:
            return ""
        refused = "R207" if evaluation.cut else "R202"
        match rule.kind:
            case "forbid":
                return refused
            case "ask":
                return "R211"
            case "owe":
                return "R208" if self.is_overdue(number, history, now_ms) else ""
            case "limit":
                return self._over(number, history, call, now_ms)
        if rule.then is None or evaluation.truth(rule.then) is True:
            return ""
        return "R207" if evaluation.cut else "R202"

    def evaluation(self, history: History, call: Call | None, now_ms: int) -> Evaluation:
        """Return an evaluation for the decision of a call.

        `call` None is the end of the session.
        """
        return Evaluation(history, call, now_ms)

    # Limits.

    def draws(self, history: History, call: Call, now_ms: int) -> Mapping[int, Draw]:
        """Return the draws of a call, by the number of the limit.

        Limits that do not count it are absent.
        """
        found = {}
        for number in self._statements_of(call.tool):
            if self.rules[number].kind == "limit":
                draw = self.draw(number, history, call, now_ms)
                if draw is not None:
                    found[number] = draw
        return found

    def draw(self, number: int, history: History, call: Call, now_ms: int) -> Draw | None:
        """Return the draw of a call on a limit; None if the filter of the limit is false."""
        rule = self.rules[number]
        evaluation = self.evaluation(history, call, now_ms)
        if evaluation.all_of(rule.where) is False:
            return None
        key = tuple([evaluation.key(term) for term in rule.per])
        amount = 1 if rule.field is None else shown(call.arguments[rule.field])[1]
        return Draw(call, None if UNKNOWN in key else key, amount)

    def _over(self, number: int, history: History, call: Call, now_ms: int) -> str:
        """Return the code by which a limit refuses a call, or ''."""
        draw = self.draw(number, history, call, now_ms)
        most = self.rules[number].most
        if draw is None or most is None:
            return ""
        total = draw.amount + self.counted(number, history, draw, now_ms)
        evaluation = self.evaluation(history, call, now_ms)
        holds = evaluation.truth(forms.Compare("<=", forms.Constant(("n", total)), (most,)))
        return "" if holds is True else "R207" if evaluation.cut else "R202"

    def counted(self, number: int, history: History, draw: Draw, now_ms: int) -> Any:
        """Return the sum of the earlier draws that count together with a draw.

        Draws of failed and answered calls do not count.  If the key of `draw` is unknown, the
        result uses the key with the greatest sum.
        """
        rule = self.rules[number]
        since = None if rule.within is None else now_ms - rule.within
        sums: dict[tuple[State, ...] | None, Any] = {draw.key: 0}
        unknown: Any = 0
        for other in history.draws(number, draw.key, since, rule.across):
            if other.call.outcome in (FAILED, ANSWERED):
                continue
            if other.key is None:
                unknown += other.amount
            else:
                sums[other.key] = sums.get(other.key, 0) + other.amount
        return unknown + max(sums.values())

    def total(self, number: int, history: History, call: Call) -> Any:
        """Return a total of the earlier calls and `call`, which adds its least amount."""
        what = self.rules[number].what
        earlier: Any = sum(
            [
                amount_of(other, what, self.amounts, max)
                for other in history.calls
                if other.outcome not in (FAILED, ANSWERED)
            ]
        )
        return earlier + amount_of(call, what, self.amounts, min)

    def bound(self, number: int, history: History, call: Call, now_ms: int) -> Any | None:
        """Return the least value that a limit's bound may have for a call; None: no lower end."""
        most = self.rules[number].most
        return None if most is None else self.evaluation(history, call, now_ms).least(most)

    def forget(self, history: Any, now_ms: int) -> None:
        """Remove the calls from a history that no later decision needs.  This class removes none.

        Args:
            now_ms: the caller makes no later decision before this time.
        """

    # Obligations and ends.

    def debts(self, history: History, now_ms: int) -> list[Debt]:
        """Return the obligations that may be open, in the order of statements, then of calls."""
        return [
            debt
            for number, rule in enumerate(self.rules)
            if rule.kind == "owe"
            for debt in self.debts_of(number, history, now_ms)
        ]

    def debts_of(self, number: int, history: History, now_ms: int) -> list[Debt]:
        """Return the obligations of a statement that may be open, in the order of calls."""
        rule = self.rules[number]
        found = []
        for call in history.candidates(rule.tools or frozenset(), (), None):
            if call.outcome in (FAILED, ANSWERED):
                continue
            evaluation = self.evaluation(history, call, now_ms)
            if evaluation.all_of(rule.where) is False:
                continue
            if not self._is_paid(rule, evaluation, history, call):
                due = None if rule.within is None else call.at_ms + rule.within
                found.append(Debt(number, call, due))
        return found

    def _is_paid(self, rule: Rule, evaluation: Evaluation, history: History, call: Call) -> bool:
        for later in history.candidates(rule.pays, evaluation.wanted(rule.keys), None):
            if later.at > call.at and later.outcome == DONE:
                evaluation.bind(1, later)
                if evaluation.all_of(rule.paying) is True:
                    return True
        return False

    def is_overdue(self, number: int, history: History, now_ms: int) -> bool:
        """Return whether a debt of a statement is overdue at `now_ms`."""
        due = [debt.due_ms for debt in self.debts_of(number, history, now_ms)]
        return any(one is not None and one < now_ms for one in due)

    def unmet(self, history: History, now_ms: int) -> list[int]:
        """Return the numbers of the statements that keep the session from finishing, in order."""
        found = {debt.statement for debt in self.debts(history, now_ms)}
        for number, rule in enumerate(self.rules):
            if rule.tools is not None or rule.then is None:
                continue
            if self.evaluation(history, None, now_ms).truth(rule.then) is not True:
                found.add(number)
        return sorted(found)


def policy_of(core: Core) -> Policy:
    """Return the policy of a core.  It is computed once for each core.

    Raises:
        Fault: a statement or a `let` is wrong.
    """
    found: Policy | None = core.__dict__.get("_policy")
    if found is None:
        found = core.__dict__["_policy"] = Policy(core)
    return found


# Totals: the amounts of calls, by their listed values.


class AmountTable(NamedTuple):
    """The listed fields of a tool, and the amounts of its calls for each choice of their values."""

    names: tuple[str, ...]
    rows: list[tuple[tuple[State, ...], Mapping[str, Any]]]


def _amounts(core: Core) -> Mapping[str, AmountTable]:
    found = {
        tool.name: AmountTable(tuple([declared.name for declared in tool.listed]), [])
        for tool in core.tools
    }
    known = [[listed_states(declared) for declared in tool.listed] for tool in core.tools]
    for call in core.calls:
        tool = core.tools[call.tool]
        states = [values[at] for values, at in zip(known[call.tool], call.values, strict=True)]
        found[tool.name].rows.append((tuple(states), totals_of(call)))
    return found


def totals_of(call: plans.Call) -> dict[str, Any]:
    """Return what a call of the core adds to each total; the cost is its greatest one."""
    return {
        "depth": 1,
        "price": call.price,
        "latency": call.latency,
        "cost": Fraction(call.cost_high, NANO),
        "epsilon": Fraction(call.epsilon, NANO),
    }


def amount_of(
    call: Call, what: str, amounts: Mapping[str, AmountTable], pick: Callable[..., Any]
) -> Any:
    """Return the amount that a call adds to a total.

    Args:
        what: the total: ``depth``, ``price``, ``cost``, ``latency`` or ``epsilon``.
        pick: `min` or `max`; it chooses among the calls of the core that fit the known fields.
    """
    if what == "depth":
        return 1
    table = amounts[call.tool]
    states = [call.state(name) for name in table.names]
    fitting = [row[what] for values, row in table.rows if _may_be(states, values)]
    return pick(fitting, default=0)


def _may_be(states: Sequence[State], values: Sequence[State]) -> bool:
    """Return whether listed fields with these states may have these values."""
    pairs = zip(states, values, strict=True)
    return all(one in (UNKNOWN, other) for one, other in pairs)
