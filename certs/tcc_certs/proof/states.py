"""The states of a proof, read from its lines: places, facts, intervals (docs/spec/proof.md, 2).

Cost: linear in the line; places and facts are kept once each.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats import schema
from tcc_certs.formats.codec import Json, read_large
from tcc_certs.proof.compared import Fact, Part, State
from tcc_certs.proof.moves import LATER, System
from tcc_certs.proof.sides import Side
from tcc_certs.session.machine import Place

_CODE = Code.PROOF_FORM


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
        ensure(
            all(a[:3] < b[:3] for a, b in pairwise(found)), _CODE, where, "facts in order", "others"
        )
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
            pairs.append((schema.as_whole(number, where, _CODE, items), whole(seen, where)))
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
        items = schema.as_tuple(key, where, _CODE, len(shape), "parts")
        parts = []
        for opened, part in zip(shape, items, strict=True):
            text = not opened and isinstance(part, str)
            parts.append(part if text else whole(part, where))
            ensure(text or opened, _CODE, where, "a key of the monitor", part)
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
            values = system.values(tool, name)
            text = isinstance(part, str) and part in values
            parts.append(part if text else whole(part, where))
            ensure(text or not values, _CODE, where, f"a value of {name}", part)
        fact = side, place, tuple(parts), value
        kept: Fact = self.kept.setdefault(fact, fact)
        return kept

    def _span(self, value: Json, where: str) -> tuple[int, int]:
        low, high = schema.as_tuple(value, where, _CODE, 2, "ends")
        return read_large(low, where, _CODE, 4096), read_large(high, where, _CODE, 4096)
