"""Which keys of a question are asked about, one at a time, and with which values.

Normative text: docs/spec/proof.md, section 1.  The list is made from the cores alone; no key of
values is without a list (Parts.v: every_key_is_asked_about, lists_for_every_key_prove_inclusion).
Cost: the ways in which the values of a key, or of the call that has it, are equal or not.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, TypeAlias

from tcc_certs.core.model import OrderMonitor, UsesMonitor
from tcc_certs.errors import Code, ensure
from tcc_certs.proof.atoms import sort_of
from tcc_certs.proof.compared import OTHER, Choice, Compared, Fact, Key, Part
from tcc_certs.session.monitors.keyed import Counts, Seen, Values

MAX_PARTS = 4096
_Asked: TypeAlias = "tuple[tuple[int, ...], Key, tuple[int, tuple[tuple[str, Choice], ...]] | None]"


class KeyParts(Compared):
    """Two sides, and the lists that one question about them is split into."""

    def parts(
        self,
        uses: Sequence[frozenset[int]] | frozenset[int],
        *,
        call: bool = False,
        unwalked: frozenset[int] = frozenset(),
    ) -> list[Part]:
        """Plans, types and sums; then each monitor of the right with each kind of key.

        A session that breaks a monitor breaks it at one key: its values are tracked, and no others;
        with `call` all compared values of the call that breaks it (Relaxed.v:
        a_rule_is_broken_at_one_key; Keys.v: keys_one_at_a_time_prove_inclusion).  In parts that are
        `unwalked` the left's plans are left aside: that lets more sessions through (Parts.v:
        plans_left_aside_admit_more).
        """
        later = self.right.policies
        ensure(not later, Code.UNKNOWN_FEATURE, "parts", "keys of monitors of 1.1", "others")
        every = uses if isinstance(uses, frozenset) else None
        found = [Part(tracked=(), rule=None, uses=self._use(every, uses, 0))]
        monitors = [
            m for m in self.right.core.monitors if isinstance(m, OrderMonitor | UsesMonitor)
        ]
        for number, monitor in enumerate(monitors):
            for tracked, key, at in self._keys(monitor, call):
                ensure(len(found) < MAX_PARTS, Code.LIMIT, "parts", f"{MAX_PARTS}", "more")
                using, walked = self._use(every, uses, len(found)), len(found) not in unwalked
                found.append(
                    Part(
                        tracked=tracked,
                        rule=number,
                        uses=using,
                        plans=False,
                        key=key,
                        call=at,
                        walked=walked,
                    )
                )
        return found

    @staticmethod
    def _use(every: frozenset[int] | None, uses: Any, at: int) -> frozenset[int]:
        if every is not None:
            return every
        return uses[at] if at < len(uses) else frozenset()

    def _keys(self, monitor: OrderMonitor | UsesMonitor, call: bool) -> list[_Asked]:
        """The tokens that a key of a monitor, or the call that has it, may be of."""
        tools = self.right.core.tools
        if isinstance(monitor, UsesMonitor):
            sides = [(tools[monitor.calls.tool], [monitor.per])]
        else:
            ones, others = zip(*monitor.same, strict=True)
            sides = [(tools[monitor.second.tool], list(others))]
            if monitor.order == "with":
                sides.append((tools[monitor.first.tool], list(ones)))
        found: dict[_Asked, None] = {}
        for tool, names in sides:
            atoms = [self._values_of(tool.name, name) for name in names]
            some: list[list[int | None]] = [[*one] for one in atoms if one is not None]
            named = [name for name, one in zip(names, atoms, strict=True) if one is not None]
            if call and tool.name in self.left.tools:
                kind = self.kinds[self.left.tools[tool.name]]
                for name, of, absent in zip(kind.fields, kind.domains, kind.optional, strict=True):
                    if name not in named:
                        named.append(name)
                        some.append([*[None] * absent, *of])
            for chosen in product(*some):
                for tokens in self._tokens_of([atom for atom in chosen if atom is not None]):
                    left = iter(tokens)
                    key = tuple([None if one is None else next(left) for one in atoms])
                    at = None
                    if call and tool.name in self.left.tools:
                        left = iter(tokens)
                        given = [None if one is None else next(left) for one in chosen]
                        at = self.left.tools[tool.name], tuple(zip(named, given, strict=True))
                    found[tuple(sorted(set(tokens))), key, at] = None
                    ensure(len(found) < MAX_PARTS, Code.LIMIT, "keys", f"{MAX_PARTS}", "more")
        return list(found)

    def _values_of(self, tool: str, name: str) -> list[int] | None:
        """The atoms of the values that the left gives a parameter; None: the right lists it."""
        number = self.right.tools[tool]
        if any(p.name == name for p in self.right.core.tools[number].parameters):
            return None
        at = self.left.tools.get(tool)
        if at is None:
            return []
        kind = self.kinds[at]
        if name in kind.fields:
            return list(kind.domains[kind.fields.index(name)])
        their = next(p for p in self.right.core.tools[number].opened if p.name == name)
        mine = [p.values for p in kind.tool.parameters if p.name == name]
        tokens = [self._tokens.get((sort_of(their.type), text)) for some in mine for text in some]
        return [token % len(self.atoms) for token in tokens if token is not None]

    def _tokens_of(self, chosen: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """Every way in which values of these atoms are equal or not, as tokens from 0."""
        atoms = len(self.atoms)

        def choose(at: int, used: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
            if at == len(chosen):
                yield used
                return
            there = sorted({token for token in used if token % atoms == chosen[at]})
            for token in there:
                yield from choose(at + 1, (*used, token))
            most = self.atoms[chosen[at]].most
            if most is None or most > len(there):
                yield from choose(at + 1, (*used, chosen[at] + atoms * len(there)))

        return choose(0, ())


def known_keys(one: Seen) -> Seen:
    """Without keys that hold a value which is not tracked: nothing is asked or kept of them."""
    a = None if one.a is None or OTHER in one.a else one.a
    b = None if one.b is None or OTHER in one.b else one.b
    return Seen(rule=one.rule, a=a, b=b, adds=one.adds)


def of_key(one: Seen, key: Key) -> Seen:
    """Without keys that are not the one which is asked about."""

    def same(found: Key | None) -> Key | None:
        if found is None or any(a not in (None, b) for a, b in zip(key, found, strict=True)):
            return None
        return found

    return Seen(rule=one.rule, a=same(one.a), b=same(one.b), adds=one.adds)


Watched: TypeAlias = "tuple[tuple[Seen, Values], ...]"  # what each rule sees of a call
Marks: TypeAlias = "Sequence[tuple[tuple[int, Key], int]]"


def marks(watched: Watched, counts: Counts, *, asked: bool = True) -> Marks | None:
    """What monitors remember of a call from now on; None: one does not allow it.

    Each has slots of its own, so none reads what another has just written.

    Args:
        asked: whether it is asked if they do.
    """
    if asked:
        for seen, _ in watched:
            if not seen.rule.allows(counts, seen):
                return None
    found: list[tuple[tuple[int, Key], int]] = []
    for seen, values in watched:
        found += seen.rule.marks(counts, seen, True, values)
    return found


def marked(facts: tuple[Fact, ...], left: Marks, right: Marks) -> tuple[Fact, ...]:
    """Facts, increasing, with what both sides remember from now on; a count of 0 is no fact."""
    made = list(facts)
    changed = False
    for side, marks in ((0, left), (1, right)):
        for (slot, key), count in marks:
            name = side, slot, key
            at = bisect_left(made, name)  # before a fact of that name, which has one part more
            there = at < len(made) and made[at][:3] == name
            if (made[at][3] if there else 0) == count:
                continue
            made[at : at + there] = [(*name, count)] if count else []
            changed = True
    return tuple(made) if changed else facts
