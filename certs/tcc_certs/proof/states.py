"""The states of a proof, read from its lines, and renamed: docs/spec/proof.md, section 2.

Cost: linear in the line; places and facts are kept once each.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from tcc_certs.errors import Code, Rejected, ensure, require
from tcc_certs.formats import schema
from tcc_certs.formats.codec import Json, read_large
from tcc_certs.proof.atoms import Atom
from tcc_certs.proof.compared import Fact, Part, State, held_tokens, renamed
from tcc_certs.proof.moves import LATER, System
from tcc_certs.proof.sides import Side
from tcc_certs.session.machine import Place

_CODE = Code.PROOF_FORM
MAX_RENAMED = 1 << 20  # facts that are kept as they are renamed


def whole(value: Json, path: str, code: Code = _CODE) -> int:
    """A whole number of at least 0.

    Raises:
        Rejected: it is none.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise Rejected(code, path, "a whole number", value)
    return value


class StateReader:
    """Reads states.

    Attributes:
        kept: places and facts, each once.
    """

    def __init__(self) -> None:
        self.kept: dict[Any, Any] = {}

    def state(self, value: Json, where: str, system: System, part: Part) -> State:
        """A state of a list about a part."""
        left, right, facts, sums = schema.as_tuple(value, where, _CODE, 4, "members")
        due = len(system.sums) if part.plans else 0
        spans = schema.as_tuple(sums, where, _CODE, due, "sums")
        found = tuple(
            [self._fact(fact, where, system) for fact in schema.as_list(facts, where, _CODE)]
        )
        order = all(a[:3] < b[:3] for a, b in pairwise(found))
        ensure(order, _CODE, where, "facts in order", "others")
        found = self.kept.setdefault(found, found)
        return (
            self._place(left, where, system.left),
            self._place(right, where, system.right),
            found,
            tuple([self._span(span, where) for span in spans]),
        )

    def _place(self, value: Json, where: str, side: Side) -> Place:
        states, tally = schema.as_tuple(value, where, _CODE, 2, "members")
        numbers = [
            schema.as_whole(q, where, _CODE, side.states)
            for q in schema.as_list(states, where, _CODE)
        ]
        pairs = []
        items = len(side.statements.items)
        for pair in schema.as_list(tally, where, _CODE):
            number, seen = schema.as_tuple(pair, where, _CODE, 2, "members")
            if type(seen) is not int:  # a sum of costs may be below 0
                raise Rejected(_CODE, where, "a whole number", seen)
            pairs.append((schema.as_whole(number, where, _CODE, items), seen))
        place = tuple(numbers), tuple(pairs)
        kept: Place = self.kept.setdefault(place, place)
        return kept

    def _fact(self, value: Json, where: str, system: System) -> Fact:
        side, slot, key, count = schema.as_tuple(value, where, _CODE, 4, "members")
        groups = LATER + system.histories.size
        number = schema.as_whole(side, where, _CODE, groups)
        if number >= LATER:
            return self._call_of(number, slot, key, count, where, system)
        of = (system.left, system.right)[number]
        place = schema.as_whole(slot, where, _CODE, 2 * len(of.core.monitors))
        shape = of.shapes.get(place, ())
        parts = schema.as_tuple(key, where, _CODE, len(shape), "parts")
        for opened, part in zip(shape, parts, strict=True):
            if type(part) is int and opened:
                fine = part >= 0
            else:
                fine = isinstance(part, str) and not opened
            if not fine:
                raise Rejected(_CODE, where, "a key of the monitor", part)
        fact = number, place, tuple(parts), whole(count, where)
        kept: Fact = self.kept.setdefault(fact, fact)
        return kept

    def _call_of(
        self, side: int, slot: Json, key: Json, count: Json, where: str, system: System
    ) -> Fact:
        """A call that statements of version 1.2 remember."""
        place, value = whole(slot, where), whole(count, where)
        names = system.histories.fields(side - LATER, place, value)
        if names is None:
            raise Rejected(_CODE, where, "a call that statements remember", [place, value])
        items = schema.as_tuple(key, where, _CODE, len(names), "parts")
        parts = []
        for (tool, name), part in zip(names, items, strict=True):
            values, listed = system.texts(tool, name)
            text = isinstance(part, str) and part in values
            parts.append(part if text else whole(part, where))
            ensure(text or not listed, _CODE, where, f"a value of {name}", part)
        fact = side, place, tuple(parts), value
        kept: Fact = self.kept.setdefault(fact, fact)
        return kept

    def _span(self, value: Json, where: str) -> tuple[int, int]:
        low, high = schema.as_tuple(value, where, _CODE, 2, "ends")
        return read_large(low, where, _CODE, 4096), read_large(high, where, _CODE, 4096)


class Renamed(dict["tuple[tuple[Fact, ...], tuple[int, ...]]", "tuple[Fact, ...]"]):
    """Of facts and the new names of their tokens the facts with these, kept for a while."""

    def __init__(self, atoms: Sequence[Atom]) -> None:
        super().__init__()
        self._atoms, self._size = atoms, 0

    def put(
        self,
        facts: tuple[Fact, ...],
        row: Sequence[int],
        due: tuple[Fact, ...],
        where: str,
        *,
        held: bool,
    ) -> tuple[Fact, ...]:
        """What facts are if their tokens, increasing, have the names of a row; it is kept.

        A constant is found again by its token, and the tokens of the keys that are looked at (the
        list is `held` to these) by theirs: neither has another name.  Renaming.v:
        renaming_changes_no_decision, isomorphic_memories_are_bisimilar.

        Args:
            due: what is kept in its place where both are equal: one for all.

        Raises:
            Rejected: T204, T205 they cannot have these names.
        """
        made = self._made(facts, row, where, held=held)
        made = due if made == due else made
        self._size += 1 + len(made)
        if self._size > MAX_RENAMED:
            self.clear()
            self._size = 1 + len(made)
        self[facts, tuple(row)] = made
        return made

    def _made(
        self, facts: tuple[Fact, ...], row: Sequence[int], where: str, *, held: bool
    ) -> tuple[Fact, ...]:
        tokens = held_tokens(facts)
        require(len(tokens), len(row), Code.PROOF_RENAMING, where)
        if tokens == list(row):
            return facts
        names = dict(zip(tokens, row, strict=True))
        once = len(set(names.values())) == len(names)
        ensure(once, Code.PROOF_RENAMING, where, "each token once", row)
        atoms = len(self._atoms)
        for token, name in names.items():
            require(token % atoms, name % atoms, Code.PROOF_ATOM, where)
            if held or self._atoms[token % atoms].only is not None:
                require(token, name, Code.PROOF_RENAMING, where)
        return renamed(facts, names)


def most_of(state: State) -> State:
    """A state with the greatest of its sums."""
    left, right, facts, sums = state
    return left, right, facts, tuple([(high, high) for _, high in sums])
