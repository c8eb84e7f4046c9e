"""Look-ups of version 1.2: the latest call, or row of an answer, with some keys.

They are of the calls made before one, as is known of them now, so no copy of the past is needed.  A
call or a row that is looked up may be any where a key of it is none or not known, and a list of
rows that is not known may have any: where such a one is the latest, the look-up is not known.
Normative text: docs/spec/core.md, section 7.
Cost: a probe for each look-up and choice of keys that calls have left out; a step a probe for each
row of an answer in which is looked up.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import TypeAlias

from tcc_certs.core.policies import LookUp, tools_of
from tcc_certs.session.monitors.kept import is_vague
from tcc_certs.session.monitors.keyed import Event
from tcc_certs.session.monitors.relations import LACKING
from tcc_certs.values.places import NONE, UNKNOWN, State

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
