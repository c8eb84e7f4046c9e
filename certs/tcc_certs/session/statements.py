"""The statements of version 1.2 of a core: how calls are read for them, and what a session learns.

Normative text: docs/spec/core.md, section 7; docs/spec/session.md, section 3.  What the statements
decide is for :mod:`tcc_certs.session.policies`; here are the fields of a call, the attributes of a
session, and which values a ledger has to show so that every decision can be derived again.
Cost: linear in the fields of a call.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from tcc_certs.core.model import Core, PolicyMonitor
from tcc_certs.core.opened import fields_of
from tcc_certs.core.policies import (
    Fields,
    attributes_named,
    fields_compared,
    is_timed,
    tools_of,
)
from tcc_certs.formats.codec import Json
from tcc_certs.session.policies import Memory, Policies
from tcc_certs.session.relations import LACKING, Event
from tcc_certs.values.canonical import json_value
from tcc_certs.values.declared import JsonType, OpenParameter
from tcc_certs.values.places import (
    NONE,
    UNKNOWN,
    FieldType,
    State,
    constant,
    exact_number,
    flat,
    typed,
)


class Statements:
    """The statements of version 1.2 of a core, and how its calls are read for them.

    Attributes:
        policies: compiled.
        shown: pairs of a tool and an open parameter whose values statements may compare: a ledger
            shows them, so that every decision can be derived again.
        named: what a session is given and statements speak of, which it shows as well; lets: what
            it learns and they speak of.
        timed: whether one looks at the clock: then each call has its time.
    """

    def __init__(self, core: Core) -> None:
        held = [one for one in core.monitors if isinstance(one, PolicyMonitor)]
        known = {one.name for one in core.given} | {one.name for one in core.lets}
        fields = Fields(tools=tuple(map(fields_of, core.tools)), session=frozenset(known))
        self.policies = Policies([one.policy for one in held], fields)
        self._texts = [one.text for one in held]
        self._listed = [
            [
                (one.name, [NONE if not text else constant(text) for text in one.values])
                for one in tool.parameters
            ]
            for tool in core.tools
        ]
        self._given = _read_by(core.given)
        self._opened = [_read_by(tool.opened) for tool in core.tools]
        self._answers = [_read_by(tool.answers) for tool in core.tools]
        shown: set[tuple[int, str]] = set()
        for one in held:
            calls, names = fields_compared(one.policy)
            for tool in tools_of(calls, len(core.tools)):
                shown.update((tool, name) for name in names)
        speaks = [attributes_named(one.policy) for one in held]
        named = frozenset().union(*speaks)
        self.lets = tuple([one for one in core.lets if one.name in named])
        shown.update(source for one in self.lets for source in one.of)
        # A listed value is in the text of the call, and an observed one in that of the outcome.
        self.shown = frozenset(
            [
                (tool, name)
                for tool, name in shown
                if name in self._opened[tool] or name in self._answers[tool]
            ]
        )
        self.named = named - {one.name for one in core.lets}
        # By the text of each statement: which tools tell what it takes from the session.
        tellers = {one.name: {tool for tool, _ in one.of} for one in self.lets}
        self._told_by = {
            one.text: {name: tools for name, tools in tellers.items() if name in of}
            for one, of in zip(held, speaks, strict=True)
        }
        self.timed = any(is_timed(one.policy) for one in held)

    def memory(self) -> Memory:
        """What the statements remember of a session that begins."""
        return Memory(self.policies)

    def given(self, found: Mapping[str, Json]) -> Mapping[str, State]:
        """What a session was given, as its header has it; what is not shown is not known."""
        entries = {name: entry for name, entry in found.items() if isinstance(entry, dict)}
        return _states_in(
            self._given,
            {
                name: (str(entry.get("type", "")), str(entry.get("value", "")))
                for name, entry in entries.items()
            },
        )

    def states(
        self,
        tool: int,
        values: Sequence[int | None],
        opened: Mapping[str, tuple[str, str]],
        known: Mapping[str, State] = MappingProxyType({}),
    ) -> Mapping[str, State]:
        """The fields of a call.

        Args:
            values: of each listed parameter the index of its value; None: it is not known.
            opened: of each open one that is there its type byte and its canonical text; without
                them the value is not known.
            known: of some of these the value that the text stands for.
        """
        found = {
            name: UNKNOWN if at is None else some[at]
            for (name, some), at in zip(self._listed[tool], values, strict=True)
        }
        found |= _states_in(self._opened[tool], opened, known)
        return found | dict.fromkeys(self._answers[tool], UNKNOWN)

    def told(self, tool: int, answers: Mapping[str, tuple[str, str]]) -> Mapping[str, State]:
        """The open answers of a call that was done.

        Args:
            answers: as `opened` of :meth:`states`; of one that is not known a type and a text that
                are empty.
        """
        return _states_in(self._answers[tool], answers)

    def answered(
        self,
        tool: int,
        states: Mapping[str, State],
        values: Sequence[int | None],
        told: Mapping[str, State],
    ) -> Mapping[str, State]:
        """The same, with observed values and open answers that are known by now."""
        pairs = zip(self._listed[tool], values, strict=True)
        known = {name: some[at] for (name, some), at in pairs if at is not None}
        return {**states, **known, **told}

    def learned(
        self, known: Mapping[str, State], tool: int, states: Mapping[str, State]
    ) -> Mapping[str, State]:
        """The attributes after a call is known to be done: those that it is the first to tell.

        Args:
            known: the attributes before.
        """
        more = {}
        for let in self.lets:
            if let.name in known:
                continue
            told = [states[name] for at, name in let.of if at == tool]
            first = next((state for state in told if state not in LACKING), None)
            if first is not None:
                more[let.name] = first
        return {**known, **more} if more else known

    def forbids(self, memory: Memory, own: Event) -> str | None:
        """The text of the first statement that refuses a call; None: all allow it."""
        found = memory.refuses(own)
        return None if found is None else self._texts[found[0]]

    def remembers(self, text: str, tools: Collection[int], known: Mapping[str, State]) -> bool:
        """Whether the statement of that text remembers calls of one of these tools.

        Args:
            known: the attributes by now; of those that are not known yet a call may tell one.
        """
        told = self._told_by.get(text, {})
        if any(not of.isdisjoint(tools) for name, of in told.items() if name not in known):
            return True
        return any(
            self._texts[one.number] == text for tool in tools for one in self.policies.keeps[tool]
        )

    def owed(self, memory: Memory) -> str:
        """The text of the first statement by which a call has to come yet; empty: there is none."""
        return next((self._texts[at] for at, owed in enumerate(memory.owed) if owed), "")


_Forms: TypeAlias = "Mapping[str, tuple[bool, FieldType]]"  # optional, and how it is read


def _read_by(fields: Sequence[OpenParameter]) -> _Forms:
    return {one.name: (one.optional, flat(one.type)) for one in fields}


def _states_in(
    fields: _Forms,
    given: Mapping[str, tuple[str, str]],
    known: Mapping[str, State] = MappingProxyType({}),
) -> dict[str, State]:
    found = {}
    for name, (optional, kind) in fields.items():
        if name in known:
            found[name] = known[name]
            continue
        value = given.get(name)
        absent = NONE if optional else UNKNOWN
        found[name] = absent if value is None else state_of(*value, kind)
    return found


def state_of(kind: str, text: str, of: FieldType) -> State:
    """A value of its canonical text; what has no text here is not known."""
    match kind:
        case "s":
            return "s", text
        case "n":
            return "n", exact_number(text)
        case "b":
            return "b", text == "true"
        case "j" if isinstance(of, JsonType):
            return "j", text.encode()
        case "j":
            return typed(json_value(text), of)
    return UNKNOWN
