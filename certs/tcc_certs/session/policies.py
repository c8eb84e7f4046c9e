"""Statements of version 1.2 over the calls of a session: compiled once, then a step that is undone.

Normative text: docs/spec/core.md, section 7.  Truth has three values: True, False, None for unsure.
What helps a call has to be sure, what stands against it need only be possible, so what is not known
never lets a call through.  No Coq theorem covers these forms; the definition that they are held to
is tests/oracle_policies, which shares no code with this module.

A statement keeps the calls of its sets by *key*, the values that have to be equal; a call with a
part of its key not known may have any, and is kept apart.  Of the calls of a key the latest 64 are
looked at: of a `require` no older one helps, of a `forbid` or a limit an older one that may stand
against the call refuses it (R207).
Cost: a decision is a look-up for each alternative, and at most 64 calls where conditions are left
beside the keys; a step the statements that name the call's tool.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from operator import ge, gt, le, lt
from typing import Any, TypeAlias

from tcc_certs.core.policies import (
    Alternative,
    Apart,
    Ban,
    Count,
    Fields,
    Need,
    Owe,
    Policy,
    Total,
    Tree,
    tools_of,
)
from tcc_certs.values.places import NONE, UNKNOWN, State, constant, number
from tcc_certs.values.text_pattern import pattern_of

MOST_KEPT = 64
Truth: TypeAlias = "bool | None"
Names: TypeAlias = "Mapping[str, State]"
Undo: TypeAlias = "list[Callable[[], object]]"
_Term: TypeAlias = "Callable[[Event, Event, Names], State]"
_Relation: TypeAlias = "Callable[[Event, Event, Names], Truth]"
_Set: TypeAlias = "Callable[[Event], Truth]"
_LACKING = (NONE, UNKNOWN)
_NO_NAMES: Names = {}


@dataclass(slots=True, kw_only=True, eq=False)
class Event:
    """A call that was made, or that is decided on.

    Attributes:
        at: its number among the calls of the session, increasing.
        states: of each field; of an answer that is not known UNKNOWN.
        stamp: UTC ms, that never go back.
        session: its attributes as they were when it was decided.
        done: whether it is known to be done.
        answered: it failed, and its caller has read what the tool said.
        told: the number of the last call that was made when its first outcome was recorded; None
            while it is under way.
    """

    at: int
    tool: int
    states: Mapping[str, State]
    stamp: int = 0
    session: Mapping[str, State] = field(default_factory=dict)
    done: bool = False
    answered: bool = False
    told: int | None = None


# Three values.


def both(parts: Iterable[Truth]) -> Truth:
    """False if one part is, else unsure if one is."""
    found: Truth = True
    for part in parts:
        if part is False:
            return False
        if part is None:
            found = None
    return found


def either(parts: Iterable[Truth]) -> Truth:
    """True if one part is, else unsure if one is."""
    found: Truth = False
    for part in parts:
        if part is True:
            return True
        if part is None:
            found = None
    return found


def same(one: State, other: State) -> Truth:
    """Whether two states are one value."""
    if one in _LACKING or other in _LACKING:
        return None
    return one == other


def _opposite(one: Truth) -> Truth:
    return None if one is None else not one


# Sets, terms and relations, compiled.


def compiled_set(calls: Tree) -> _Set:
    """Whether a call is in a set."""
    match calls:
        case ("calls", tool, where):
            bound = [(name, frozenset(map(constant, texts))) for name, texts in where]

            def among(call: Event) -> Truth:
                if call.tool != tool:
                    return False
                return both([_in(call.states[name], values) for name, values in bound])

            return among
        case ("or", sets):
            some = [compiled_set(one) for one in sets]
            return lambda call: either([one(call) for one in some])
        case ("but", one, other):
            base, less = compiled_set(one), compiled_set(other)
            return lambda call: both([base(call), _opposite(less(call))])
        case _:
            return lambda call: True


def _in(state: State, values: frozenset[State]) -> Truth:
    return None if state == UNKNOWN else state in values


def _term(tree: Tree) -> _Term:
    match tree:
        case ("s", text):
            return _constant(("s", text))
        case ("n", text):
            return _constant(("n", number(text)))
        case ("b", text):
            return _constant(("b", text == "true"))
        case ("z",):
            return _constant(("z", None))
        case ("ms", size):
            return _constant(("n", size))
        case ("list", items):
            values = [_term(one) for one in items]
            none = Event(at=0, tool=0, states={})
            return _constant(("l", tuple([one(none, none, _NO_NAMES) for one in values])))
        case ("own", name):
            return lambda own, seen, names: own.states[name]
        case ("seen", name):
            return lambda own, seen, names: seen.states[name]
        case ("own" | "seen" as side, name, part):
            whole = _term((side, name))
            return lambda own, seen, names: _column(whole(own, seen, names), part)
        case ("it",):
            return lambda own, seen, names: names["it"]
        case ("as", name):
            return lambda own, seen, names: names[name]
        case ("as", name, part):
            return lambda own, seen, names: _cell(names[name], part)
        case ("session", name):
            return lambda own, seen, names: own.session.get(name, UNKNOWN)
        case ("now",):
            return lambda own, seen, names: ("t", own.stamp)
        case ("max", one, other):
            return _greater(_term(one), _term(other))
        case ("sum", items):
            return _sum([(number(factor), _term(one)) for factor, one in items])
        case ("count", of):
            many = _term(of)

            def count(own: Event, seen: Event, names: Names) -> State:
                found = many(own, seen, names)
                return found if found in _LACKING else _size(found)

            return count
        case ("count", of, relation):
            return _counted(_term(of), _relation(relation))
    return _constant(UNKNOWN)


def _constant(state: State) -> _Term:
    return lambda own, seen, names: state


def _cell(record: State, name: str) -> State:
    if record in _LACKING or record[0] != "r":
        return UNKNOWN if record[0] != "none" else NONE
    return dict(record[1]).get(name, UNKNOWN)


def _column(records: State, name: str) -> State:
    if records in _LACKING:
        return records
    cells = [_cell(one, name) for one in records[1]] if records[0] == "l" else [UNKNOWN]
    lacking = next((cell for cell in cells if cell in _LACKING), None)
    return ("l", tuple(cells)) if lacking is None else lacking


def _size(many: State) -> State:
    return ("n", len(many[1])) if many[0] == "l" else UNKNOWN


def _greater(one: _Term, other: _Term) -> _Term:
    def greater(own: Event, seen: Event, names: Names) -> State:
        left, right = one(own, seen, names), other(own, seen, names)
        if left in _LACKING:
            return left
        if right in _LACKING or left[0] != right[0] or left[0] not in ("n", "t"):
            return right if right in _LACKING else UNKNOWN
        return max(left, right)

    return greater


def _sum(parts: Sequence[tuple[int | Fraction, _Term]]) -> _Term:
    def total(own: Event, seen: Event, names: Names) -> State:
        found: int | Fraction = 0
        times: int | Fraction = 0
        for factor, term in parts:
            state = term(own, seen, names)
            kind, value = state
            if kind == "t":
                times += factor
            elif kind != "n":
                return state if state in _LACKING else UNKNOWN
            found += factor * value
        if isinstance(found, Fraction) and found.denominator == 1:
            found = found.numerator
        if times == 1:
            return "t", found
        return ("n", found) if times == 0 else UNKNOWN

    return total


def _counted(of: _Term, relation: _Relation) -> _Term:
    def count(own: Event, seen: Event, names: Names) -> State:
        many = of(own, seen, names)
        if many in _LACKING or many[0] != "l":
            return many if many in _LACKING else UNKNOWN
        found = 0
        for item in many[1]:
            holds = relation(own, seen, {**names, "it": item})
            if holds is None:
                return UNKNOWN
            found += holds
        return "n", found

    return count


_ORDERS = {"<": lt, "<=": le, ">": gt, ">=": ge}


def _relation(tree: Tree) -> _Relation:
    match tree:
        case ("=" | "!=" as op, one, other):
            left, right = _term(one), _term(other)
            if op == "=":
                return lambda own, seen, names: same(left(own, seen, names), right(own, seen, names))
            return lambda own, seen, names: _opposite(
                same(left(own, seen, names), right(own, seen, names))
            )
        case ("<" | "<=" | ">" | ">=" as op, one, other):
            return _ordered(_ORDERS[op], _term(one), _term(other))
        case ("in" | "not in" as op, one, other):
            return _among(_term(one), _term(other), op == "not in")
        case ("~" | "!~" as op, one, pattern):
            return _like(_term(one), pattern, op == "!~")
        case ("?", inner):
            left, whole = _term(inner[1]), _relation(inner)
            return lambda own, seen, names: (
                True if left(own, seen, names) == NONE else whole(own, seen, names)
            )
        case ("every", of, inner):
            return _group(True, [(_term(of), "it")], [_relation(inner)])
        case ("all" | "some" as word, lists, inner):
            named = [(_term(one), name) for one, name in lists]
            return _group(word == "all", named, [_relation(one) for one in inner])
    return lambda own, seen, names: None


def _ordered(holds: Callable[[Any, Any], bool], one: _Term, other: _Term) -> _Relation:
    def ordered(own: Event, seen: Event, names: Names) -> Truth:
        (kind, left), (other_kind, right) = one(own, seen, names), other(own, seen, names)
        # A reader takes no other order; were there one, it would be sure of nothing.
        return holds(left, right) if kind == other_kind and kind in ("n", "t") else None

    return ordered


def _among(one: _Term, many: _Term, negated: bool) -> _Relation:
    def among(own: Event, seen: Event, names: Names) -> Truth:
        left, right = one(own, seen, names), many(own, seen, names)
        if left in _LACKING or right[0] != "l":
            return None
        found = left in right[1] or (None if any(item in _LACKING for item in right[1]) else False)
        return _opposite(found) if negated else found

    return among


def _like(one: _Term, source: str, negated: bool) -> _Relation:
    pattern = pattern_of(source)

    def like(own: Event, seen: Event, names: Names) -> Truth:
        kind, value = found = one(own, seen, names)
        if found in _LACKING:
            return None
        return (kind == "s" and pattern.matches(value)) is not negated

    return like


def _group(
    every: bool, lists: Sequence[tuple[_Term, str]], relations: Sequence[_Relation]
) -> _Relation:
    combine = both if every else either

    def group(own: Event, seen: Event, names: Names) -> Truth:
        found = [of(own, seen, names) for of, _ in lists]
        if any(many[0] != "l" for many in found):
            return None
        if len({len(many[1]) for many in found}) > 1:
            return False
        parts = []
        for items in zip(*[many[1] for many in found], strict=True):
            inner = {**names, **{n: i for (_, n), i in zip(lists, items, strict=True)}}
            parts.append(both([one(own, seen, inner) for one in relations]))
        return combine(parts)

    return group


def _speaks_of(tree: object, words: frozenset[str]) -> bool:
    """Whether a term or a relation has a part of one of these kinds."""
    if not isinstance(tree, tuple):
        return False
    return (bool(tree) and tree[0] in words and tree[0] != "") or any(
        _speaks_of(part, words) for part in tree
    )


# Alternatives.

_SEEN = frozenset(["seen"])
_INNER = frozenset(["seen", "own", "it", "as"])


class Kept(list[Event]):
    """Calls of one key, in their order."""

    __slots__ = ()


class Pool:
    """The calls of which an alternative may speak, by their keys."""

    __slots__ = ("_all", "_by_key", "_odd", "used", "watermark")

    def __init__(self) -> None:
        self._all = Kept()
        self._by_key: dict[tuple[State, ...], Kept] = {}
        self._odd = Kept()  # a part of their key is not known
        self.used: dict[int, int] = {}  # of `each`: how many calls may have used it
        self.watermark = 0  # of `each`: calls up to this number count as used

    def add(self, call: Event, key: tuple[State, ...], undo: Undo) -> None:
        """Keep a call."""
        odd = any(part in _LACKING for part in key)
        kept = self._odd if odd else self._by_key.setdefault(key, Kept())
        for one in (kept, self._all):
            one.append(call)
            undo.append(one.pop)

    def near(self, key: tuple[State, ...]) -> tuple[Iterator[Event], int]:
        """Calls whose key is not surely another one, latest first, and how many there may be."""
        if any(part in _LACKING for part in key):
            return reversed(self._all), len(self._all)
        kept = self._by_key.get(key, ())
        if not self._odd:
            return reversed(kept), len(kept)
        return _latest_first(kept, self._odd), len(kept) + len(self._odd)


def _latest_first(one: Sequence[Event], other: Sequence[Event]) -> Iterator[Event]:
    i, j = len(one) - 1, len(other) - 1
    while i >= 0 or j >= 0:
        if j < 0 or (i >= 0 and one[i].at > other[j].at):
            yield one[i]
            i -= 1
        else:
            yield other[j]
            j -= 1


class Alt:
    """An alternative, compiled.

    Attributes:
        tools: of which its calls can be; empty for ``where`` alone.
        number: of its pool.
    """

    def __init__(self, of: Alternative, number: int, tools: int) -> None:
        self.alone, self.last, self.least, self.within = (
            of.calls is None, of.last, of.least, of.within,
        )  # fmt: skip
        self.number = number
        self.tools = frozenset() if of.calls is None else tools_of(of.calls, tools)
        self._in = (lambda call: True) if of.calls is None else compiled_set(of.calls)
        keys = [(name, term) for name, term in of.same]
        rest = list(of.where)
        if not of.last:
            # An equality with the earlier call on one side alone is a key.
            found = [(relation, _key_in(relation)) for relation in of.where]
            keys += [key for _, key in found if key is not None]
            rest = [relation for relation, key in found if key is None]
        self._names = [name for name, _ in keys]
        self._terms = [_term(term) for _, term in keys]
        self._where = [_relation(one) for one in rest]
        self.bare = not self._where and of.within is None and not of.last

    def key_of(self, call: Event) -> tuple[State, ...]:
        """The key that an earlier call has."""
        return tuple([call.states[name] for name in self._names])

    def key_for(self, own: Event) -> tuple[State, ...]:
        """The key that it has to have."""
        return tuple([term(own, own, _NO_NAMES) for term in self._terms])

    def keeps(self, call: Event) -> bool:
        """Whether it may ever speak of a call."""
        return call.tool in self.tools and (self.last or self._in(call) is not False)

    def own_holds(self, own: Event) -> Truth:
        """``where`` alone."""
        return both([one(own, own, _NO_NAMES) for one in self._where])

    def conditions(self, call: Event, own: Event) -> Truth:
        """Set, relations and window, without the keys."""
        if self.within is not None and call.stamp < own.stamp - self.within:
            return False
        mine = self._in(call)
        if mine is False or not self._where:
            return mine
        return both([mine, *[one(own, call, _NO_NAMES) for one in self._where]])

    def equal(self, call: Event, key: tuple[State, ...]) -> Truth:
        """Whether the keys are equal."""
        return both([same(mine, due) for mine, due in zip(self.key_of(call), key, strict=True)])

    def surely(self, pool: Pool, own: Event) -> Iterator[Event]:
        """The earlier calls of which it surely holds, latest first; of a key the latest 64."""
        key = self.key_for(own)
        if not self.last and any(part in _LACKING for part in key):
            return
        looked = 0
        for call in pool.near(key)[0]:
            if call.answered:
                continue
            equal = self.equal(call, key)
            if equal is False:
                continue
            if looked == MOST_KEPT:
                return
            looked += 1
            if call.done and equal and self.conditions(call, own):
                yield call
            if self.last:
                return

    def possibly(self, pool: Pool, own: Event, *, answered: bool) -> Iterator[Event | None]:
        """The earlier calls of which it may hold, latest first; None: there may be older ones.

        Args:
            answered: whether those count that failed and were answered.
        """
        key = self.key_for(own)
        looked = 0
        for call in pool.near(key)[0]:
            if call.answered and not answered:
                continue
            if not self.bare and looked == MOST_KEPT:
                yield None
                return
            looked += 1
            if self.within is not None and call.stamp < own.stamp - self.within and not self.last:
                return  # all older ones are older still
            equal = self.equal(call, key)
            if equal is False:
                continue
            if self.conditions(call, own) is not False:
                yield call
            if self.last and (call.done or call.answered) and equal:
                return


def _key_in(relation: Tree) -> tuple[str, Tree] | None:
    """The field and the term of ``seen.f = t``, where t does not speak of the earlier call."""
    if relation[0] == "=":
        for one, other in (relation[1:], relation[:0:-1]):
            if one[0] == "seen" and len(one) == 2 and not _speaks_of(other, _SEEN):
                return one[1], other
    return None


# Statements.


class Statement:
    """One statement, compiled.

    Attributes:
        number: of its monitor; alternatives: those whose calls are kept.
    """

    def __init__(self, number: int, of: Tree, tools: int) -> None:
        self.number = number
        self.alternatives: list[Alt] = []
        self.tools = tools_of(of, tools)
        self.of = compiled_set(of)

    def refuses(self, memory: Memory, own: Event) -> Truth:
        """Whether it refuses a call; None: as there are more calls than are looked at."""
        raise NotImplementedError

    def add(self, memory: Memory, call: Event, undo: Undo) -> None:
        """Remember a call."""
        for alternative in self.alternatives:
            if alternative.keeps(call):
                pool = memory.pools[alternative.number]
                pool.add(call, alternative.key_of(call), undo)


class _NeedRule(Statement):
    def __init__(self, number: int, of: Need, make: Callable[[Alternative], Alt], tools: int):
        super().__init__(number, of.of, tools)
        self.alternatives = [make(one) for one in of.alternatives]
        self._each = of.order == "each"

    def refuses(self, memory: Memory, own: Event) -> Truth:
        if self.of(own) is False:
            return False
        return not any(self._helps(memory, one, own) for one in self.alternatives)

    def _helps(self, memory: Memory, one: Alt, own: Event) -> bool:
        if one.alone:
            return one.own_holds(own) is True
        pool, found = memory.pools[one.number], 0
        for call in one.surely(pool, own):
            if self._each and (call.at <= pool.watermark or pool.used.get(call.at, 0)):
                continue
            found += 1
            if found >= one.least:
                return True
        return False

    def add(self, memory: Memory, call: Event, undo: Undo) -> None:
        uses = self._each and call.tool in self.tools and self.of(call) is not False
        uses = uses and not call.answered
        for one in self.alternatives:
            pool = memory.pools[one.number]
            if uses and not one.alone:
                self._use(pool, one, call, undo)
            if one.keeps(call):
                pool.add(call, one.key_of(call), undo)
                if uses:
                    itself = one.equal(call, one.key_for(call)) is not False
                    if itself and one.conditions(call, call) is not False:
                        _mark(pool, call.at, undo)

    def _use(self, pool: Pool, one: Alt, own: Event, undo: Undo) -> None:
        for call in one.possibly(pool, own, answered=False):
            if call is not None:
                _mark(pool, call.at, undo)
                continue
            before = pool.watermark
            pool.watermark = own.at
            undo.append(lambda: setattr(pool, "watermark", before))


def _mark(pool: Pool, at: int, undo: Undo) -> None:
    before = pool.used.get(at, 0)
    pool.used[at] = before + 1
    undo.append(lambda: pool.used.__setitem__(at, before))


class _BanRule(Statement):
    def __init__(self, number: int, of: Ban, make: Callable[[Alternative], Alt], tools: int):
        super().__init__(number, of.of, tools)
        self._any = [make(one) for one in of.alternatives]
        self._unless = [make(one) for one in of.unless]
        self.alternatives = [*self._any, *self._unless]

    def refuses(self, memory: Memory, own: Event) -> Truth:
        if self.of(own) is False:
            return False
        lifted = -1
        for one in self._unless:
            found = next(one.surely(memory.pools[one.number], own), None)
            lifted = lifted if found is None else max(lifted, found.at)
        unsure = False
        for one in self._any:
            if one.alone:
                if one.own_holds(own) is not False:
                    return True
                continue
            count = 0
            for call in one.possibly(memory.pools[one.number], own, answered=True):
                if call is None:
                    unsure = True
                    break
                count += call.told is None or lifted <= call.told
                if count >= one.least:
                    return True
                if one.bare and call.told is not None and lifted > call.told:
                    break  # whatever is older was lifted too
        return None if unsure else False


class _Tally:
    """Amounts with their stamps, for each key; those of a key are summed from the start."""

    __slots__ = ("stamps", "sums")

    def __init__(self) -> None:
        self.stamps: list[int] = []
        self.sums: list[int | Fraction] = [0]

    def add(self, stamp: int, amount: int | Fraction, undo: Undo) -> None:
        """An amount."""
        self.stamps.append(stamp)
        self.sums.append(self.sums[-1] + amount)
        undo += [self.stamps.pop, self.sums.pop]

    def since(self, least: int | None) -> int | Fraction:
        """What came at that time or later."""
        at = 0 if least is None else bisect_left(self.stamps, least)
        return self.sums[-1] - self.sums[at]


class _MostRule(Statement):
    """A limit on uses or on a sum."""

    def __init__(self, number: int, of: Count | Total, tools: int):
        counts = isinstance(of, Count)
        super().__init__(number, of.of if isinstance(of, Count) else ("calls", of.tool, ()), tools)
        self._most = of.value if isinstance(of, Count) else number_of(of.value)
        self._where = [_relation(one) for one in of.where] if isinstance(of, Count) else []
        self._per = [_term(one) for one in of.per]
        self._within = of.within
        self._field = "" if counts else of.parameter  # type: ignore[union-attr]

    def _counts(self, call: Event) -> bool:
        if call.tool not in self.tools or self.of(call) is False:
            return False
        return both([one(call, call, _NO_NAMES) for one in self._where]) is not False

    def _amount(self, call: Event) -> int | Fraction:
        if not self._field:
            return 1
        kind, value = call.states[self._field]
        return value if kind == "n" else 0

    def _key(self, call: Event) -> tuple[State, ...]:
        return tuple([term(call, call, _NO_NAMES) for term in self._per])

    def refuses(self, memory: Memory, own: Event) -> Truth:
        if not self._counts(own):
            return False
        key, tallies = self._key(own), memory.tallies[self.number]
        least = None if self._within is None else own.stamp - self._within
        total = self._amount(own)
        lacks = any(part in _LACKING for part in key)
        for one in tallies if lacks else (key, *memory.odd[self.number]):
            tally = tallies.get(one)
            if tally is None:
                continue
            equal = both([same(mine, due) for mine, due in zip(one, key, strict=True)])
            if equal is not False:
                total += tally.since(least)
        return total > self._most

    def add(self, memory: Memory, call: Event, undo: Undo) -> None:
        if call.answered or not self._counts(call):
            return
        key, tallies = self._key(call), memory.tallies[self.number]
        if key not in tallies:
            tallies[key] = _Tally()
            if any(part in _LACKING for part in key):
                memory.odd[self.number].append(key)
        tallies[key].add(call.stamp, self._amount(call), undo)


def number_of(text: str) -> int | Fraction:
    """A canonical decimal."""
    return number(text)


class _ApartRule(Statement):
    def __init__(self, number: int, of: Apart, make: Callable[[Alternative], Alt], tools: int):
        super().__init__(number, of.other, tools)
        self._one = make(Alternative(calls=of.one, same=of.same))
        self._first = compiled_set(of.one)
        self._others = make(Alternative(calls=of.other))
        self._terms = [_term(term) for _, term in of.same]
        self._names = [name for name, _ in of.same]

    def _due(self, call: Event) -> tuple[State, ...]:
        return tuple([term(call, call, _NO_NAMES) for term in self._terms])

    def _mine(self, call: Event) -> tuple[State, ...]:
        return tuple([call.states[name] for name in self._names])

    def refuses(self, memory: Memory, own: Event) -> Truth:
        is_one = own.tool in self._one.tools and self._first(own) is not False
        is_other = own.tool in self.tools and self.of(own) is not False
        if is_one and is_other and _may_be(self._mine(own), self._due(own)):
            return True
        if is_other:
            key = self._due(own)
            near = memory.pools[self._one.number].near(key)[0]
            if any(_may_be(self._mine(call), key) for call in near):
                return True
        if is_one:
            key = self._mine(own)
            near = memory.pools[self._others.number].near(key)[0]
            return any(_may_be(self._due(call), key) for call in near)
        return False

    def add(self, memory: Memory, call: Event, undo: Undo) -> None:
        if call.tool in self._one.tools and self._first(call) is not False:
            memory.pools[self._one.number].add(call, self._mine(call), undo)
        if call.tool in self.tools and self.of(call) is not False:
            memory.pools[self._others.number].add(call, self._due(call), undo)


def _may_be(one: Sequence[State], other: Sequence[State]) -> bool:
    return both([same(mine, due) for mine, due in zip(one, other, strict=True)]) is not False


class _OweRule(Statement):
    """What is owed stands in `memory.owed`: for each key how many calls."""

    def __init__(self, number: int, of: Owe, tools: int):
        super().__init__(number, of.of, tools)
        self._first = compiled_set(of.first)
        self._firsts = tools_of(of.first, tools)
        self._terms = [_term(term) for _, term in of.same]
        self._names = [name for name, _ in of.same]

    def refuses(self, memory: Memory, own: Event) -> Truth:
        return False

    def add(self, memory: Memory, call: Event, undo: Undo) -> None:
        if call.answered:
            return
        owed = memory.owed[self.number]
        if call.done and call.tool in self._firsts and self._first(call) is True:
            key = tuple([call.states[name] for name in self._names])
            # A key of which a part is not known pays for nothing, and is never paid.
            if key in owed and not any(part in _LACKING for part in key):
                before = owed.pop(key)
                undo.append(lambda: owed.__setitem__(key, before))
        if call.tool in self.tools and self.of(call) is not False:
            due = tuple([term(call, call, _NO_NAMES) for term in self._terms])
            count = owed.get(due, 0)
            owed[due] = count + 1
            undo.append(
                (lambda: owed.__setitem__(due, count)) if count else (lambda: owed.pop(due))
            )


class Policies:
    """The statements of a core, compiled; what a session remembers is a :class:`Memory`."""

    def __init__(self, policies: Sequence[Policy], fields: Fields) -> None:
        self.count = len(policies)
        self.pools = 0
        self.tools = len(fields.tools)
        self._statements = [self._made(at, one) for at, one in enumerate(policies)]
        self._by_tool = [
            [one for one in self._statements if tool in one.tools] for tool in range(self.tools)
        ]

    def _alt(self, of: Alternative) -> Alt:
        self.pools += 1
        return Alt(of, self.pools - 1, self.tools)

    def _made(self, number: int, of: Policy) -> Statement:
        match of:
            case Need():
                return _NeedRule(number, of, self._alt, self.tools)
            case Ban():
                return _BanRule(number, of, self._alt, self.tools)
            case Apart():
                return _ApartRule(number, of, self._alt, self.tools)
            case Owe():
                return _OweRule(number, of, self.tools)
            case _:
                return _MostRule(number, of, self.tools)

    @property
    def statements(self) -> Sequence[Statement]:
        """In the order of the core."""
        return self._statements


class Memory:
    """What the statements remember of the calls of one session.

    Attributes:
        pools, tallies, odd, owed: of the statements.
    """

    def __init__(self, policies: Policies) -> None:
        self._policies = policies
        self.pools = [Pool() for _ in range(policies.pools)]
        self.tallies: list[dict[tuple[State, ...], _Tally]] = [{} for _ in range(policies.count)]
        self.odd: list[list[tuple[State, ...]]] = [[] for _ in range(policies.count)]
        self.owed: list[dict[tuple[State, ...], int]] = [{} for _ in range(policies.count)]

    def refuses(self, own: Event) -> tuple[int, bool] | None:
        """The first statement that refuses a call, and whether as one surely has to (else R207)."""
        for statement in self._policies.statements:
            found = statement.refuses(self, own)
            if found is not False:
                return statement.number, found is True
        return None

    def add(self, call: Event) -> Undo:
        """Remember a call that was done, may have been, or was answered with an error.

        Returns:
            what :meth:`undo` takes.
        """
        undo: Undo = []
        for statement in self._policies.statements:
            statement.add(self, call, undo)
        return undo

    def undo(self, undo: Undo) -> None:
        """Forget the call that was remembered last."""
        for back in reversed(undo):
            back()

    @property
    def owes(self) -> bool:
        """Whether a call still has to come before the end."""
        return any(self.owed)
