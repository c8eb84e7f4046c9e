"""Statements of version 1.2 over the calls of a session: compiled once, then a step that is undone.

Normative text: docs/spec/core.md, section 7.  Truth has three values: True, False, None for unsure.
What helps a call has to be sure, what stands against it need only be possible, so what is not known
never lets a call through.  No Coq theorem covers these forms; the definition that they are held to
is tests/oracle_policies, which shares no code with this module.

What a statement that compares *keys* alone, the values that have to be equal, remembers and allows
is said by :mod:`tcc_certs.session.monitors.keyed`, as for core 1.1; here its keys are read, and one
of which a part is not known may be any.  A `require` or `forbid` with other conditions keeps calls,
by their keys.  Of the calls of a key the latest 64 are looked at: of a `require` no older one
helps, of a `forbid` an older one that may stand against the call refuses it (R207).
Cost: a decision is a look-up for each key, and at most 64 calls where conditions are left beside
the keys, however much came before; a step the statements that name the call's tool.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import islice
from typing import Any, TypeAlias

from tcc_certs.core.mentions import looks_named
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
from tcc_certs.session.monitors import keyed
from tcc_certs.session.monitors.alternatives import Alt
from tcc_certs.session.monitors.kept import Counts, Pool, Shape, Tally, foreseen, is_vague
from tcc_certs.session.monitors.lookups import Looks
from tcc_certs.session.monitors.relations import (
    MAX_WAYS,
    NO_NAMES,
    both,
    compiled_relation,
    compiled_set,
    compiled_term,
    same,
)
from tcc_certs.values.places import State, exact_number

_Same: TypeAlias = "Sequence[tuple[str, Tree]]"

# Statements.


class Statement:
    """One statement, compiled.

    Attributes:
        number: of its monitor; alternatives: those whose calls are kept.
        tools: of the calls that it is about; decides: of those that it may refuse.
        asked: for each of its sets that are counted the shapes of keys that calls may ask for, as
            is foreseen; bucket: makes what keeps the counts of keys that may be another.
    """

    asked: Sequence[Sequence[Shape]] = ()
    bucket: Callable[[], Any] = list

    def __init__(self, number: int, of: Tree, tools: int) -> None:
        self.number = number
        self.alternatives: list[Alt] = []
        self.tools = self.decides = tools_of(of, tools)
        self.of = compiled_set(of)

    def kept(self) -> frozenset[int]:
        """The tools whose calls it remembers."""
        return self.tools.union(*[one.tools for one in self.alternatives])

    def refuses(self, memory: Memory, own: keyed.Event) -> keyed.Truth:
        """Whether it refuses a call; None: as there are more calls than are looked at."""
        return False

    def drawn(
        self, own: keyed.Event, plain: keyed.Event
    ) -> tuple[int | Fraction, tuple[State, ...]] | None:
        """What a call that is allowed draws on an account, and for whom; None: nothing.

        Args:
            plain: the call with the values that `per` names, as no account knows digests.
        """
        return None

    def add(self, memory: Memory, call: keyed.Event, undo: keyed.Undo) -> None:
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

    def refuses(self, memory: Memory, own: keyed.Event) -> keyed.Truth:
        if self.of(own) is False:
            return False
        return not any(self._helps(memory, one, own) for one in self.alternatives)

    def _helps(self, memory: Memory, one: Alt, own: keyed.Event) -> bool:
        if one.alone:
            return one.own_holds(own) is True
        pool, found = memory.pools[one.number], 0
        at_once = None if self._each else one.at_once(pool, own, sure=True)
        if at_once is not None:
            return at_once[0] is True
        for call in one.surely(pool, own):
            if self._each and pool.is_used(call):
                continue
            found += 1
            if found >= one.least:
                return True
        return False

    def add(self, memory: Memory, call: keyed.Event, undo: keyed.Undo) -> None:
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

    def _use(self, pool: Pool, one: Alt, own: keyed.Event, undo: keyed.Undo) -> None:
        key, most = one.key_for(own), own.asked + MAX_WAYS
        for call in one.possibly(pool, own, key, answered=False, bounded=True):
            if call is not None:
                _mark(pool, call.at, undo)
                continue
            # Older calls with this key are looked at no more, unless it was work that ended this.
            every = is_vague(key) or own.asked >= most
            pool.use_older(own.at, undo, every=every)


def _mark(pool: Pool, at: int, undo: keyed.Undo) -> None:
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

    def refuses(self, memory: Memory, own: keyed.Event) -> keyed.Truth:
        if self.of(own) is False:
            return False
        lifted = self._lifted(memory, own)
        found: keyed.Truth = False
        for one in self._any:
            stands = self._stands(memory, one, own, lifted)
            if stands:
                return True
            found = found if stands is False else None
        return found

    def against(self, memory: Memory, own: keyed.Event) -> Sequence[bool]:
        """Of a call that is refused: for each alternative whether it may stand against it."""
        lifted = self._lifted(memory, own)
        return [self._stands(memory, one, own, lifted) is not False for one in self._any]

    def _lifted(self, memory: Memory, own: keyed.Event) -> int:
        """The number of the last call that lifts what came before it."""
        lifted = -1
        for one in self._unless:
            # With a count: so many came since exactly if the one that completes them did.
            calls = one.surely(memory.pools[one.number], own)
            found = next(islice(calls, one.least - 1, None), None)
            lifted = lifted if found is None else max(lifted, found.at)
        return lifted

    def _stands(self, memory: Memory, one: Alt, own: keyed.Event, lifted: int) -> keyed.Truth:
        """Whether an alternative stands against a call; None: of older calls one may."""
        if one.alone:
            return one.own_holds(own) is not False
        pool, count = memory.pools[one.number], 0
        at_once = None if self._unless else one.at_once(pool, own, sure=False)
        if at_once is not None:
            return at_once[0]
        key = one.key_for(own)
        for call in one.possibly(pool, own, key, answered=True, bounded=not one.bare):
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
    if not isinstance(tree, tuple) or (tree[:1] == ("s",) and isinstance(tree[1], str)):
        return tree  # a text, whatever it says; behind a key of that name stands a term
    found = tuple([_counting_errors(part) for part in tree])
    return (*found, True) if found[:1] == ("look",) and len(found) == 4 else found


class _OweRule(keyed.OrderRule):
    """A call of the second set owes one of the first with its key, which pays for all before it."""

    forbids = False

    def allows(self, counts: dict[tuple[int, keyed.Key], int], seen: keyed.Seen) -> bool:
        """See :class:`MonitorRule`."""
        return True

    def marks(
        self,
        counts: dict[tuple[int, keyed.Key], int],
        seen: keyed.Seen,
        certain: bool,
        values: keyed.Values,
    ) -> keyed.Marks:
        """See :class:`MonitorRule`; a key of which a part is not known is never paid."""
        pairs = (seen.a, 0), (seen.b, 1)
        return [((self.first, key), value) for key, value in pairs if key is not None]


_Rule: TypeAlias = keyed.RequireRule | keyed.BeforeRule | keyed.WithRule | _OweRule


class _KeyedRule(Statement):
    """A statement that compares keys alone: its rule says what counts for keys that are known.

    A key of which a part is not known may be any that is not surely another one: of a `require` it
    helps none, and uses up all; for the other statements it counts as each of them.
    """

    def __init__(
        self, number: int, rule: _Rule, first: Tree, of: Tree, same: _Same, fields: Fields
    ):
        tools = len(fields.tools)
        super().__init__(number, of, tools)
        self._rule = rule
        self._first, self._firsts = compiled_set(first), tools_of(first, tools)
        self._names = [name for name, _ in same]
        self._terms = [compiled_term(term) for _, term in same]
        self._with = isinstance(rule, keyed.WithRule)
        if self._with or isinstance(rule, _OweRule):
            self.decides = self.kept() if self._with else frozenset()
        terms = [term for _, term in same]
        names = [("own", name) for name in self._names]
        self.asked = [
            foreseen(terms, self.tools, fields) if rule.forbids else (),
            foreseen(names, self._firsts, fields) if self._with else (),
        ]

    def kept(self) -> frozenset[int]:
        """See :class:`Statement`."""
        return self.tools | self._firsts

    def _seen(self, call: keyed.Event) -> keyed.Seen:
        a = b = None
        inside = call.tool in self._firsts and self._first(call)
        if inside is not False:
            a = tuple([call.states[name] for name in self._names])
            if not self._rule.forbids and not (inside and call.done and not is_vague(a)):
                a = None
        if call.tool in self.tools and self.of(call) is not False:
            b = tuple([term(call, call, NO_NAMES) for term in self._terms])
        return keyed.Seen(rule=self._rule, a=a, b=b, adds=1)

    def refuses(self, memory: Memory, own: keyed.Event) -> keyed.Truth:
        seen, counts, rule = self._seen(own), memory.counts[self.number], self._rule
        a, b = seen.a, seen.b
        if self._with and a is not None and b is not None and _may_be(a, b):
            return True
        asked = [(rule.first, b)] if b is not None else []
        asked += [(rule.second, a)] if self._with and a is not None else []
        return not rule.allows({at: 1 for at in asked if self._met(counts, at)}, seen)

    def _met(self, counts: Counts, at: tuple[int, keyed.Key]) -> bool:
        """Whether a key counts, or one that may be it; of `each` unless a later call used it up."""
        found, near = counts.get(at, 0), counts.near[at[0] - self._rule.first]
        if self._rule.forbids:
            return bool(found) or any(near.of(at[1]))
        if found and near.odd:
            return all(not one or one[-1] < found for one in near.of(at[1]))
        return bool(found)

    def add(self, memory: Memory, call: keyed.Event, undo: keyed.Undo) -> None:
        if call.answered and not self._rule.forbids:
            return
        counts, turn = memory.counts[self.number], call.at + 1
        for at, value in self._rule.marks(counts, self._seen(call), True, ()):
            near = counts.near[at[0] - self._rule.first]
            if not value and is_vague(at[1]):
                near.keep(at[1], turn, undo)  # it uses up those that may be it
                continue
            if self._rule.forbids and at not in counts:
                near.keep(at[1], turn, undo)
            counts.keep(at, turn if value else 0, undo)


class _MostRule(Statement):
    """A limit on uses or on a sum; with a span of time a key has a tally, else a number."""

    bucket = Tally

    def __init__(self, number: int, of: Count | Total, fields: Fields):
        counts, tools = isinstance(of, Count), len(fields.tools)
        super().__init__(number, of.of if isinstance(of, Count) else ("calls", of.tool, ()), tools)
        self._rule = keyed.AtMostRule(
            number, of.value if isinstance(of, Count) else exact_number(of.value)
        )
        self._where = [compiled_relation(one) for one in of.where] if isinstance(of, Count) else []
        self._per = [compiled_term(one) for one in of.per]
        self._within = of.within
        self._field = "" if counts else of.parameter  # type: ignore[union-attr]
        self.across = of.across
        self.asked = [foreseen(of.per, self.tools, fields)]

    def _counts(self, call: keyed.Event) -> bool:
        if call.tool not in self.tools or self.of(call) is False:
            return False
        return both([one(call, call, NO_NAMES) for one in self._where]) is not False

    def _seen(self, call: keyed.Event) -> keyed.Seen:
        kind, value = call.states[self._field] if self._field else ("n", 1)
        key = tuple([term(call, call, NO_NAMES) for term in self._per])
        return keyed.Seen(rule=self._rule, a=None, b=key, adds=value if kind == "n" else 0)

    def refuses(self, memory: Memory, own: keyed.Event) -> keyed.Truth:
        if not self._counts(own):
            return False
        seen, counts = self._seen(own), memory.counts[self.number]
        key, near = seen.b or (), counts.near[0]
        at, vague = (self._rule.first, key), is_vague(key)
        if self.across and vague:
            return True  # whom it counts for is not known, so no account can be asked
        if self._within is None and not vague and not near.odd:
            return not self._rule.allows(counts, seen)
        least = None if self._within is None else own.stamp - self._within
        found = sum([tally.since(least) for tally in near.of(key)])
        if at in counts:
            found += counts[at] if self._within is None else counts[at].since(least)
        return not self._rule.allows({at: found}, seen)

    def drawn(
        self, own: keyed.Event, plain: keyed.Event
    ) -> tuple[int | Fraction, tuple[State, ...]] | None:
        """See :class:`Statement`."""
        if not self.across or not self._counts(own):
            return None
        return self._seen(own).adds, self._seen(plain).b or ()

    def add(self, memory: Memory, call: keyed.Event, undo: keyed.Undo) -> None:
        if call.answered or not self._counts(call):
            return
        seen, counts = self._seen(call), memory.counts[self.number]
        key, amount = seen.b or (), (call.stamp, seen.adds)
        counts.near[0].keep(key, amount, undo)
        if is_vague(key):
            return
        at = self._rule.first, key
        if self._within is None:
            counts.keep(at, counts.get(at, 0) + seen.adds, undo)
            return
        if at not in counts:
            counts.keep(at, Tally(), undo)
        counts[at].append(amount)
        undo.append(counts[at].pop)


def _may_be(one: Sequence[State], other: Sequence[State]) -> bool:
    return both([same(mine, due) for mine, due in zip(one, other, strict=True)]) is not False


class Policies:
    """The statements of a core, compiled; what a session remembers is a :class:`Memory`.

    Attributes:
        statements: in the order of the core; owing: the numbers of those by which calls are owed.
    """

    def __init__(self, policies: Sequence[Policy], fields: Fields) -> None:
        self.count = len(policies)
        made = {name for one in policies for name, _ in looks_named(one)}
        self.looks = [fields.looks[name] for name in sorted(made)]
        self.alternatives: list[Alt] = []
        self.owing: list[int] = []
        self.tools, self._fields = len(fields.tools), fields
        self.statements = statements = [self._made(at, one) for at, one in enumerate(policies)]
        self.across = any(isinstance(one, _MostRule) and one.across for one in statements)
        # By tool, in the order of the core: what decides on its calls, what remembers them.
        tools = range(self.tools)
        self.decides = [[one for one in statements if tool in one.decides] for tool in tools]
        self.keeps = [[one for one in statements if tool in one.kept()] for tool in tools]

    def _alt(self, own: Tree, of: Alternative) -> Alt:
        self.alternatives.append(Alt(of, len(self.alternatives), own, self._fields))
        return self.alternatives[-1]

    def _made(self, number: int, of: Policy) -> Statement:
        fields = self._fields
        match of:
            case Need(alternatives=(Alternative(calls=tuple() as calls) as one,)) if _is_keyed(one):
                rule: _Rule = keyed.RequireRule(number, of.order == "each")
                return _KeyedRule(number, rule, calls, of.of, one.same, fields)
            case Ban(alternatives=(Alternative(calls=tuple() as calls) as one,), unless=()) if (
                _is_keyed(one)
            ):
                rule = keyed.BeforeRule(number)
                same = _counting_errors(one.same)
                return _KeyedRule(number, rule, calls, of.of, same, fields)
            case Apart():
                rule, same = keyed.WithRule(number), _counting_errors(of.same)
                return _KeyedRule(number, rule, of.one, of.other, same, fields)
            case Need():
                return NeedRule(number, of, partial(self._alt, of.of), self.tools)
            case Ban():
                return BanRule(number, of, partial(self._alt, of.of), self.tools)
            case Owe():
                self.owing.append(number)
                rule = _OweRule(number)
                return _KeyedRule(number, rule, of.first, of.of, of.same, fields)
            case _:
                return _MostRule(number, of, fields)


def _is_keyed(one: Alternative) -> bool:
    """Whether it is a set of calls and keys, and nothing else."""
    return one == Alternative(calls=one.calls, same=one.same)


class Memory(keyed.Memory):
    """What the statements remember of the calls of one session; of core 1.1, where there are some.

    Attributes:
        pools, counts: of the statements.
    """

    def __init__(self, policies: Policies, monitors: keyed.Monitors | None = None) -> None:
        super().__init__(monitors)
        self._policies = policies
        self.pools = [Pool(one.asked) for one in policies.alternatives]
        self.counts = [Counts(one.bucket, one.asked) for one in policies.statements]
        self._looks = Looks(policies.looks, policies.tools) if policies.looks else None

    def refuses(self, own: keyed.Event) -> tuple[int, bool] | None:
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

    def add(self, call: keyed.Event) -> keyed.Undo:
        """Remember a call that was done, may have been, or was answered with an error.

        Returns:
            what :meth:`undo` takes.
        """
        undo = super().add(call)
        if self._looks is not None:
            call.look = self._looks.of
            self._looks.add(call, undo)
        for statement in self._policies.keeps[call.tool]:
            statement.add(self, call, undo)
        return undo

    @property
    def owed(self) -> Sequence[int]:
        """The statements by which a call still has to come before the end."""
        return [number for number in self._policies.owing if self.counts[number]]
