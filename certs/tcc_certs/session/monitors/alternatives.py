"""Alternatives of statements of version 1.2: of which earlier calls one holds.

Normative text: docs/spec/core.md, section 7.  Calls are kept by their key, the values that have to
be equal.
Cost: a look-up, and of the calls of a key the latest 64 where conditions are left beside the key.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import compress, repeat
from operator import attrgetter, eq, ne

from tcc_certs.core.policies import Alternative, Fields, Tree, tools_of
from tcc_certs.session.monitors import relations
from tcc_certs.session.monitors.kept import Index, Pool, foreseen, is_vague
from tcc_certs.session.monitors.keyed import Event, Truth, Undo
from tcc_certs.values.places import State

MOST_KEPT = 64

_SEEN = frozenset(["seen"])


class Alt:
    """An alternative, compiled.

    Attributes:
        tools: of which its calls can be; empty for ``where`` alone.
        number: of its pool; asked: the shapes of keys for which calls may ask, as is foreseen.

    Args:
        own: the set of the calls that are decided.
    """

    def __init__(self, of: Alternative, number: int, own: Tree, fields: Fields) -> None:
        tools = len(fields.tools)
        self.alone, self.last, self.least, self.within = (
            of.calls is None, of.last, of.least, of.within,
        )  # fmt: skip
        self.number = number
        self.most = max(MOST_KEPT, 2 * of.least)  # calls of a key that are looked at
        self.tools = frozenset() if of.calls is None else tools_of(of.calls, tools)
        self._in = (lambda call: True) if of.calls is None else relations.compiled_set(of.calls)
        keys = [(name, term) for name, term in of.same]
        rest = list(of.where)
        if not of.last:
            # An equality with the earlier call on one side alone is a key.
            found = [(one, _compared(one)) for one in of.where]
            keys += [made[1:] for _, made in found if made and made[0] == "="]
            rest = [one for one, made in found if not made or made[0] != "="]
        self._names = [name for name, _ in keys]
        self._terms = [relations.compiled_term(term) for _, term in keys]
        self.asked = foreseen([term for _, term in keys], tools_of(own, tools), fields)
        # Of a field of the earlier call against a term that does not speak of it, the term is
        # made once for a decision; of 64 calls that are looked at each is a comparison then.
        bound = [(one, _compared(one)) for one in rest]
        self._bound = [
            (op, name, relations.compiled_term(term))
            for op, name, term in [b for _, b in bound if b]
        ]
        self._left = [relations.compiled_relation(one) for one, made in bound if made is None]
        self._where = [relations.compiled_relation(one) for one in rest]
        self.bare = not self._where and of.within is None and not of.last
        # An index of a relation that separates the two calls: where it is the only one it decides,
        # whatever came before; else that none holds of it decides.
        split = [] if of.last or self.alone else [_separated(one) for one in rest]
        self._split = next((one for one in split if one is not None), None)
        self._whole = len(rest) == 1 and of.within is None and of.least == 1
        self._other = None if self._split is None else relations.compiled_term(self._split[2])
        # Such conditions in columns of each key: each is then one comparison of a list of 64 calls.
        listed = (
            bool(rest)
            and not self._left
            and not of.last
            and of.least == 1
            and not (self._split is not None and self._whole)
        )
        columns = self._bound if listed else ()
        self._columns = [(name, op in relations.ORDERS) for op, name, _ in columns]

    def key_of(self, call: Event) -> tuple[State, ...]:
        """The key that an earlier call has."""
        return tuple([call.states[name] for name in self._names])

    def key_for(self, own: Event) -> tuple[State, ...]:
        """The key that it has to have."""
        return tuple([term(own, own, relations.NO_NAMES) for term in self._terms])

    def keeps(self, call: Event) -> bool:
        """Whether it may ever speak of a call."""
        return call.tool in self.tools and (self.last or self._in(call) is not False)

    def keep(self, pool: Pool, call: Event, undo: Undo) -> None:
        """Keep a call of which :meth:`keeps` is true."""
        key = self.key_of(call)
        kept = pool.add(call, key, undo, len(self._columns))
        split = self._split
        if kept is None:
            return
        sure = call.done and not call.answered and self._in(call) is True
        if self._columns:
            kept.add_row([(call.states[name], order) for name, order in self._columns], sure)
        if split is None:
            return
        index = pool.indices.get(key)
        if index is None:
            index = pool.indices[key] = Index(split[0] in (">", ">="))
        add = index.add_elements if split[0] == "in" else index.add_number
        add(call.states[split[1]], sure, undo)

    def at_once(self, pool: Pool, own: Event, *, sure: bool) -> tuple[Truth] | None:
        """Whether it surely, or possibly, holds of a call; None: the calls have to be looked at.

        Args:
            sure: else it is asked whether it may hold, and unsure is that it may of older calls.
        """
        found = self._by_index(pool, own, sure=sure)
        return self._by_columns(pool, own, sure=sure) if found is None else (found,)

    def _by_index(self, pool: Pool, own: Event, *, sure: bool) -> bool | None:
        split, other = self._split, self._other
        if split is None or other is None:
            return None
        key = self.key_for(own)
        if is_vague(key):
            return False if sure else None
        if not sure and (pool.odd or not self._whole):
            return None  # of more than 64 calls older ones stand against it, whatever they are
        if not pool.by_key.get(key):  # none, or all that there were have failed
            return False
        index = pool.indices[key]
        held = self._held_by(split[0], index, other(own, own, relations.NO_NAMES), sure=sure)
        return held if self._whole or not held else None

    def _by_columns(self, pool: Pool, own: Event, *, sure: bool) -> tuple[Truth] | None:
        key = self.key_for(own)
        if not self._columns or not pool.is_exact(key):
            return None
        kept = pool.by_key.get(key)
        if kept is None:
            return (False,)
        size = len(kept)
        first, older = max(0, size - self.most), size > self.most
        if self.within is not None:
            begin = bisect_left(kept, own.stamp - self.within, key=_stamp)
            first, older = max(first, begin), older and begin < first
        rows: Sequence[int] = range(first, size)
        for (op, _, term), (kinds, values) in zip(self._bound, kept.columns, strict=True):
            due = kind, value = term(own, own, relations.NO_NAMES)
            if kind in relations.VAGUE:
                return None
            if op in relations.ORDERS:
                if kind not in _ORDERED or kinds[first:].count(kind) < size - first:
                    return None
                holds, right = relations.ORDERS[op], value
            elif not relations.VAGUE.isdisjoint(kinds[first:]):
                return None
            else:
                holds, right = eq if op == "=" else ne, due
            whole = len(rows) == size - first
            left = values[first:] if whole else [values[at] for at in rows]
            rows = list(compress(rows, map(holds, left, repeat(right))))
        if sure:
            return (any(map(kept.sure.__getitem__, rows)),)
        return (True if rows else None if older else False,)

    def _held_by(self, op: str, index: Index, due: State, *, sure: bool) -> bool:
        """Whether the relation of the index holds of a call, surely or possibly."""
        if sure:
            return due[0] not in relations.VAGUE and _decides(op, index.sure, due)
        if due[0] in relations.VAGUE or index.lacking:
            return True
        if op == "in":
            return due in index.sure or due in index.may
        if due[0] not in ("n", "t") or index.may.keys() - {due[0]}:
            return True  # kinds that have no order
        return _decides(op, index.may, due)

    def own_holds(self, own: Event) -> Truth:
        """``where`` alone."""
        return relations.both([one(own, own, relations.NO_NAMES) for one in self._where])

    def conditions(self, call: Event, own: Event) -> Truth:
        """Set, relations and window, without the keys."""
        if self.within is not None and call.stamp < own.stamp - self.within:
            return False
        mine = self._in(call)
        if mine is False or not self._where:
            return mine
        return relations.both([mine, *[one(own, call, relations.NO_NAMES) for one in self._where]])

    def conditions_for(self, own: Event) -> Callable[[Event], Truth]:
        """:meth:`conditions` of one decision."""
        if len(self._left) == len(self._where):
            return lambda call: self.conditions(call, own)
        due = [(op, name, *term(own, own, relations.NO_NAMES)) for op, name, term in self._bound]
        oldest = None if self.within is None else own.stamp - self.within

        def holds(call: Event) -> Truth:
            if oldest is not None and call.stamp < oldest:
                return False
            found, states = self._in(call), call.states
            if found is False:
                return False
            for op, name, kind, value in due:
                mine, other = states[name]
                if kind in relations.VAGUE or mine in relations.VAGUE:
                    equal = (
                        relations.same((mine, other), (kind, value)) if op in ("=", "!=") else None
                    )
                    if equal is (op != "="):
                        return False
                    found = found if equal is (op == "=") else None
                elif op == "=" or op == "!=":
                    if (mine == kind and other == value) is not (op == "="):
                        return False
                elif mine != kind or kind not in _ORDERED:
                    found = None
                elif not relations.ORDERS[op](other, value):
                    return False
            if not self._left:
                return found
            return relations.both(
                [found, *[one(own, call, relations.NO_NAMES) for one in self._left]]
            )

        return holds

    def equal(self, call: Event, key: tuple[State, ...]) -> Truth:
        """Whether the keys are equal."""
        return relations.both(
            [relations.same(mine, due) for mine, due in zip(self.key_of(call), key, strict=True)]
        )

    def surely(self, pool: Pool, own: Event) -> Iterator[Event]:
        """The earlier calls of which it surely holds, latest first; of a key the latest 64."""
        key = self.key_for(own)
        if not self.last and is_vague(key):
            return
        exact, holds = pool.is_exact(key), self.conditions_for(own)
        looked, most = 0, own.asked + relations.MAX_WAYS
        for call in pool.near(key):
            if looked == self.most or own.asked >= most:
                return
            looked += 1
            if call.answered:
                continue
            equal = exact or self.equal(call, key)
            if equal is False:
                continue
            if call.done and equal and holds(call):
                yield call
            if self.last:
                return

    def possibly(
        self, pool: Pool, own: Event, key: tuple[State, ...], *, answered: bool, bounded: bool
    ) -> Iterator[Event | None]:
        """The earlier calls of which it may hold, latest first; None: there may be older ones.

        Args:
            key: that it has to have.
            answered: whether those count that failed and were answered.
            bounded: whether the latest are looked at and no more; without it all are.
        """
        exact, holds = pool.is_exact(key), self.conditions_for(own)
        looked, most = 0, own.asked + relations.MAX_WAYS
        for call in pool.near(key):
            if call.answered and not answered:
                continue
            if self.within is not None and call.stamp < own.stamp - self.within and not self.last:
                return  # all older ones are older still
            if (bounded and looked == self.most) or own.asked >= most:
                yield None
                return
            looked += 1
            equal = exact or self.equal(call, key)
            if equal is False:
                continue
            if holds(call) is not False:
                yield call
            if self.last and (call.done or call.answered) and equal:
                return


_stamp = attrgetter("stamp")
_ORDERED = frozenset(["n", "t"])


def _decides(op: str, known: dict[State | str, int | Fraction], due: State) -> bool:
    if op == "in":
        return due in known
    best = known.get(due[0])
    return best is not None and bool(relations.ORDERS[op](best, due[1]))


def _separated(relation: Tree) -> tuple[str, str, Tree] | None:
    """Order, field and term t of ``seen.f OP t``; ``in``, field and t of ``t in seen.f``."""
    op, *sides = relation
    if op == "in" and _is_seen(sides[1]) and not relations.speaks_of(sides[0], _SEEN):
        return op, sides[1][1], sides[0]
    found = _compared(relation)
    return found if found is not None and found[0] in relations.ORDERS else None


def _compared(relation: Tree) -> tuple[str, str, Tree] | None:
    """``seen.f OP t``, where t does not speak of the earlier call: order, field and t."""
    op, *sides = relation
    if op not in (*relations.ORDERS, "=", "!="):
        return None
    if _is_seen(sides[0]) and not relations.speaks_of(sides[1], _SEEN):
        return op, sides[0][1], sides[1]
    if _is_seen(sides[1]) and not relations.speaks_of(sides[0], _SEEN):
        return str(relations.FLIPPED.get(op, op)), sides[1][1], sides[0]
    return None


def _is_seen(term: Tree) -> bool:
    return term[0] == "seen" and len(term) == 2
