"""Statements of version 1.2 over the calls of a session: compiled once, then a step that is undone.

Normative text: docs/spec/core.md, section 7.  Truth has three values: True, False, None for unsure.
What helps a call has to be sure, what stands against it need only be possible, so what is not known
never lets a call through.  No Coq theorem covers these forms; the definition that they are held to
is tests/oracle_policies, which shares no code with this module.

A statement keeps the calls of its sets by *key*, the values that have to be equal; a call with a
part of its key not known may have any, and is kept apart.  Of the calls of a key the latest 64 are
looked at: of a `require` no older one helps, of a `forbid` or a limit an older one that may stand
against the call refuses it (R207).
A call or a row that is looked up may be any where a key of it is none or not known, and a list of
rows that is not known may have any: where such a one is the latest, the look-up is not known.
Cost: a decision is a look-up for each alternative, and at most 64 calls where conditions are left
beside the keys; a probe for each look-up and choice of keys that calls have left out; a step the
statements that name the call's tool, and a probe for each row of an answer in which is looked up.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from operator import itemgetter
from typing import Any, TypeAlias

from tcc_certs.core.policies import (
    Alternative,
    Apart,
    Ban,
    Count,
    Fields,
    LookUp,
    Need,
    Owe,
    Policy,
    Total,
    Tree,
    looks_named,
    tools_of,
)
from tcc_certs.session.monitors.alternatives import Alt, Pool, Undo, is_vague
from tcc_certs.session.monitors.relations import (
    LACKING,
    NO_NAMES,
    Event,
    Truth,
    both,
    compiled_relation,
    compiled_set,
    compiled_term,
    same,
)
from tcc_certs.values.places import NONE, UNKNOWN, State, exact_number

# Statements.


class Statement:
    """One statement, compiled.

    Attributes:
        number: of its monitor; alternatives: those whose calls are kept.
        tools: of the calls that it is about; decides: of those that it may refuse.
    """

    def __init__(self, number: int, of: Tree, tools: int) -> None:
        self.number = number
        self.alternatives: list[Alt] = []
        self.tools = self.decides = tools_of(of, tools)
        self.of = compiled_set(of)

    def kept(self) -> frozenset[int]:
        """The tools whose calls it remembers."""
        return self.tools.union(*[one.tools for one in self.alternatives])

    def refuses(self, memory: Memory, own: Event) -> Truth:
        """Whether it refuses a call; None: as there are more calls than are looked at."""
        return False

    def drawn(self, own: Event, plain: Event) -> tuple[int | Fraction, tuple[State, ...]] | None:
        """What a call that is allowed draws on an account, and for whom; None: nothing.

        Args:
            plain: the call with the values that `per` names, as no account knows digests.
        """
        return None

    def add(self, memory: Memory, call: Event, undo: Undo) -> None:
        """Remember a call."""
        for alternative in self.alternatives:
            if alternative.keeps(call):
                alternative.keep(memory.pools[alternative.number], call, undo)


class NeedRule(Statement):
    """``require``: before a call one of the alternatives, with `each` one of its own."""

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
        helped = None if self._each else one.by_index(pool, own, sure=True)
        if helped is not None:
            return helped
        found_at_once = None if self._each else one.by_columns(pool, own, sure=True)
        if found_at_once is not None:
            return found_at_once[0] is True
        for call in one.surely(pool, own):
            if self._each and pool.is_used(call):
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
                one.keep(pool, call, undo)
                if uses:
                    itself = one.equal(call, one.key_for(call)) is not False
                    if itself and one.conditions(call, call) is not False:
                        _mark(pool, call.at, undo)

    def _use(self, pool: Pool, one: Alt, own: Event, undo: Undo) -> None:
        for call in one.possibly(pool, own, answered=False):
            if call is not None:
                _mark(pool, call.at, undo)
                continue
            pool.raise_watermark(own.at, undo)


def _mark(pool: Pool, at: int, undo: Undo) -> None:
    before = pool.used.get(at, 0)
    pool.used[at] = before + 1
    undo.append(lambda: pool.used.__setitem__(at, before))


class BanRule(Statement):
    """``forbid``: no call after one of the alternatives that nothing has lifted."""

    def __init__(self, number: int, of: Ban, make: Callable[[Alternative], Alt], tools: int):
        super().__init__(number, of.of, tools)
        # An error that was read counts as done for what a forbid looks up, too.
        self._any = [
            make(replace(one, same=_counting_errors(one.same), where=_counting_errors(one.where)))
            for one in of.alternatives
        ]
        self._unless = [make(one) for one in of.unless]
        self.alternatives = [*self._any, *self._unless]

    def refuses(self, memory: Memory, own: Event) -> Truth:
        if self.of(own) is False:
            return False
        lifted = self._lifted(memory, own)
        found: Truth = False
        for one in self._any:
            stands = self._stands(memory, one, own, lifted)
            if stands:
                return True
            found = found if stands is False else None
        return found

    def against(self, memory: Memory, own: Event) -> Sequence[bool]:
        """Of a call that is refused: for each alternative whether it may stand against it."""
        lifted = self._lifted(memory, own)
        return [self._stands(memory, one, own, lifted) is not False for one in self._any]

    def _lifted(self, memory: Memory, own: Event) -> int:
        """The number of the last call that lifts what came before it."""
        lifted = -1
        for one in self._unless:
            # With a count: so many came since exactly if the one that completes them did.
            calls = one.surely(memory.pools[one.number], own)
            found = next(islice(calls, one.least - 1, None), None)
            lifted = lifted if found is None else max(lifted, found.at)
        return lifted

    def _stands(self, memory: Memory, one: Alt, own: Event, lifted: int) -> Truth:
        """Whether an alternative stands against a call; None: of older calls one may."""
        if one.alone:
            return one.own_holds(own) is not False
        pool, count = memory.pools[one.number], 0
        against = None if self._unless else one.by_index(pool, own, sure=False)
        if against is not None:
            return against
        found = None if self._unless else one.by_columns(pool, own, sure=False)
        if found is not None:
            return found[0]
        for call in one.possibly(pool, own, answered=True):
            if call is None:
                return None
            count += call.told is None or lifted <= call.told
            if count >= one.least:
                return True
            if one.bare and call.told is not None and lifted > call.told:
                break  # whatever is older was lifted too
        return False


def _counting_errors(tree: Any) -> Any:
    """Terms and relations whose look-ups count calls that failed with an error that was read."""
    if not isinstance(tree, tuple) or tree[:1] == ("s",):  # a text, whatever it says
        return tree
    found = tuple([_counting_errors(part) for part in tree])
    return (*found, True) if found[:1] == ("look",) and len(found) == 4 else found


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
        self._most = of.value if isinstance(of, Count) else exact_number(of.value)
        self._where = [compiled_relation(one) for one in of.where] if isinstance(of, Count) else []
        self._per = [compiled_term(one) for one in of.per]
        self._within = of.within
        self._field = "" if counts else of.parameter  # type: ignore[union-attr]
        self.across = of.across

    def _counts(self, call: Event) -> bool:
        if call.tool not in self.tools or self.of(call) is False:
            return False
        return both([one(call, call, NO_NAMES) for one in self._where]) is not False

    def _amount(self, call: Event) -> int | Fraction:
        if not self._field:
            return 1
        kind, value = call.states[self._field]
        return value if kind == "n" else 0

    def _key(self, call: Event) -> tuple[State, ...]:
        return tuple([term(call, call, NO_NAMES) for term in self._per])

    def refuses(self, memory: Memory, own: Event) -> Truth:
        if not self._counts(own):
            return False
        key, tallies = self._key(own), memory.tallies[self.number]
        least = None if self._within is None else own.stamp - self._within
        total = self._amount(own)
        lacks = is_vague(key)
        if lacks and self.across:
            return True  # whom it counts for is not known, so no account can be asked
        for one in tallies if lacks else (key, *memory.odd[self.number]):
            tally = tallies.get(one)
            if tally is None:
                continue
            equal = both([same(mine, due) for mine, due in zip(one, key, strict=True)])
            if equal is not False:
                total += tally.since(least)
        return total > self._most

    def drawn(self, own: Event, plain: Event) -> tuple[int | Fraction, tuple[State, ...]] | None:
        """See :class:`Statement`."""
        if not self.across or not self._counts(own):
            return None
        return self._amount(own), self._key(plain)

    def add(self, memory: Memory, call: Event, undo: Undo) -> None:
        if call.answered or not self._counts(call):
            return
        key, tallies = self._key(call), memory.tallies[self.number]
        if key not in tallies:
            tallies[key] = _Tally()
            if is_vague(key):
                memory.odd[self.number].append(key)
        tallies[key].add(call.stamp, self._amount(call), undo)


class _ApartRule(Statement):
    def __init__(self, number: int, of: Apart, make: Callable[[Alternative], Alt], tools: int):
        super().__init__(number, of.other, tools)
        same_as = _counting_errors(of.same)
        self._one = make(Alternative(calls=of.one, same=same_as))
        self._first = compiled_set(of.one)
        self._others = make(Alternative(calls=of.other))
        self._terms = [compiled_term(term) for _, term in same_as]
        self._names = [name for name, _ in of.same]
        self.alternatives = [self._one]
        self.decides = self.kept()

    def _due(self, call: Event) -> tuple[State, ...]:
        return tuple([term(call, call, NO_NAMES) for term in self._terms])

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
        self.decides = frozenset()
        self._terms = [compiled_term(term) for _, term in of.same]
        self._names = [name for name, _ in of.same]

    def kept(self) -> frozenset[int]:
        """See :class:`Statement`."""
        return self.tools | self._firsts

    def add(self, memory: Memory, call: Event, undo: Undo) -> None:
        if call.answered:
            return
        owed = memory.owed[self.number]
        if call.done and call.tool in self._firsts and self._first(call) is True:
            key = tuple([call.states[name] for name in self._names])
            # A key of which a part is not known pays for nothing, and is never paid.
            if key in owed and not is_vague(key):
                before = owed.pop(key)
                undo.append(lambda: owed.__setitem__(key, before))
        if call.tool in self.tools and self.of(call) is not False:
            due = tuple([term(call, call, NO_NAMES) for term in self._terms])
            count = owed.get(due, 0)
            owed[due] = count + 1
            undo.append(
                (lambda: owed.__setitem__(due, count)) if count else (lambda: owed.pop(due))
            )


class Policies:
    """The statements of a core, compiled; what a session remembers is a :class:`Memory`.

    Attributes:
        statements: in the order of the core.
    """

    def __init__(self, policies: Sequence[Policy], fields: Fields) -> None:
        self.count = len(policies)
        made = {name for one in policies for name, _ in looks_named(one)}
        self.looks = [fields.looks[name] for name in sorted(made)]
        self.pools = 0
        self.tools = len(fields.tools)
        self.statements = statements = [self._made(at, one) for at, one in enumerate(policies)]
        self.across = any(isinstance(one, _MostRule) and one.across for one in statements)
        # By tool, in the order of the core: what decides on its calls, what remembers them.
        tools = range(self.tools)
        self.decides = [[one for one in statements if tool in one.decides] for tool in tools]
        self.keeps = [[one for one in statements if tool in one.kept()] for tool in tools]

    def _alt(self, of: Alternative) -> Alt:
        self.pools += 1
        return Alt(of, self.pools - 1, self.tools)

    def _made(self, number: int, of: Policy) -> Statement:
        match of:
            case Need():
                return NeedRule(number, of, self._alt, self.tools)
            case Ban():
                return BanRule(number, of, self._alt, self.tools)
            case Apart():
                return _ApartRule(number, of, self._alt, self.tools)
            case Owe():
                return _OweRule(number, of, self.tools)
            case _:
                return _MostRule(number, of, self.tools)


# Look-ups: the latest call, or row of an answer, with some keys, of the calls made before one, as
# is known of them now; so no copy of the past is needed.

_WHOLE = 1 << 30  # the rank of a list that is not known: behind all rows of its call
# The number of the call, the rank in it, the call, the fields of the row; None: of a call.
_Entry: TypeAlias = "tuple[int, int, Event, Mapping[str, State] | None]"
_Key: TypeAlias = "tuple[State, ...]"


class _Table:
    """The calls or rows of one look-up, by the keys that are known of them.

    For each choice of keys, by their places, and their values the entries, in their order.
    """

    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: dict[tuple[int, ...], dict[_Key, list[_Entry]]] = {}

    def add(self, key: _Key, entry: _Entry, added: list[list[_Entry]]) -> None:
        """Keep an entry that comes after all others."""
        places = tuple([at for at, part in enumerate(key) if part not in LACKING])
        known = key if len(places) == len(key) else tuple([key[at] for at in places])
        kept = self.entries.setdefault(places, {}).setdefault(known, [])
        kept.append(entry)
        added.append(kept)

    def latest(self, key: _Key, before: int) -> tuple[_Entry, bool] | None:
        """The latest entry of an earlier call whose keys are not surely others, and if surely."""
        found: tuple[_Entry, bool] | None = None
        for places, entries in self.entries.items():
            sure = len(places) == len(key)
            kept = entries.get(key if sure else tuple([key[at] for at in places]))
            if not kept:
                continue
            last = len(kept) - 1
            if kept[last][0] >= before:
                last = bisect_left(kept, before, key=itemgetter(0)) - 1
            if last >= 0 and (found is None or kept[last][:2] > found[0][:2]):
                found = kept[last], sure
        return found


class Looks:
    """What the look-ups of one session have of its calls.

    Args:
        looks: those that statements make.
        tools: how many the core has.
    """

    def __init__(self, looks: Sequence[LookUp], tools: int) -> None:
        self._of = {one.name: one for one in looks}
        # What was done or may have been; and what failed with an error that was read.
        self._made = {one.name: _Table() for one in looks}
        self._read = {one.name: _Table() for one in looks}
        self._by_tool: list[list[LookUp]] = [[] for _ in range(tools)]
        for one in looks:
            named = {tool for tool, _ in one.rows}
            for tool in tools_of(one.calls, tools) if one.calls is not None else named:
                self._by_tool[tool].append(one)

    def add(self, call: Event, undo: list[Callable[[], object]]) -> None:
        """Keep a call."""
        added: list[list[_Entry]] = []
        for look in self._by_tool[call.tool]:
            table = (self._read if call.answered else self._made)[look.name]
            if look.calls is not None:
                key = tuple([call.states[name] for name in look.keys])
                table.add(key, (call.at, 0, call, None), added)
            else:
                _add_rows(look, table, call, added)
        if added:
            undo.append(lambda: [kept.pop() for kept in reversed(added)])

    def of(self, own: Event, name: str, key: _Key, field: str, read: bool) -> State:
        """A field of the latest call or row with these keys that was there before a call.

        Args:
            own: the call that it was there before.
            read: whether calls count that failed with an error that was read.
        """
        if is_vague(key):
            return UNKNOWN
        found = self._made[name].latest(key, own.at)
        if read:
            other = self._read[name].latest(key, own.at)
            if other is not None and (found is None or other[0][:2] > found[0][:2]):
                found = other
        if found is None or not found[1]:
            return UNKNOWN
        (_, _, call, row), _ = found
        if not call.done and not call.answered:
            return UNKNOWN
        return row[field] if row is not None and field in row else call.states[field]


def _add_rows(look: LookUp, table: _Table, call: Event, added: list[list[_Entry]]) -> None:
    """The rows of a call; of two lists those of the first count as the later ones."""
    rank, nothing = 0, (UNKNOWN,) * len(look.keys)
    lists = [call.states[name] for tool, name in look.rows if tool == call.tool]
    for kind, items in reversed(lists):
        if kind == "l" and (call.done or call.answered):
            for record in items:
                row = dict(record[1])
                table.add(tuple([row[k] for k in look.keys]), (call.at, rank, call, row), added)
                rank += 1
        elif (kind, items) != NONE or not (call.done or call.answered):
            table.add(nothing, (call.at, _WHOLE, call, None), added)


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
        self._looks = Looks(policies.looks, policies.tools) if policies.looks else None

    def refuses(self, own: Event) -> tuple[int, bool] | None:
        """The first statement that refuses a call, and True; else one that may have to, and False.

        One may have to where more earlier calls may stand against it than are looked at.
        """
        many = None
        if self._looks is not None:
            own.look = self._looks.of
        for statement in self._policies.decides[own.tool]:
            found = statement.refuses(self, own)
            if found:
                return statement.number, True
            if found is None and many is None:
                many = statement.number, False
        return many

    def add(self, call: Event) -> Undo:
        """Remember a call that was done, may have been, or was answered with an error.

        Returns:
            what :meth:`undo` takes.
        """
        undo: Undo = []
        if self._looks is not None:
            call.look = self._looks.of
            self._looks.add(call, undo)
        for statement in self._policies.keeps[call.tool]:
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
