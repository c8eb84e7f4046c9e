"""Values of a session: their entries in the ledger, and their states for the definition.

A gate with a ledger decides by the states of the entries, as every reader of the ledger does.  A
gate in memory decides by the values themselves.
Text: docs/spec/session.md, section 3.  Cost: linear in the values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from tcc_certs.formats.codec import Json
from tcc_certs.policy.core import Tool
from tcc_certs.session.entries import Entries, EntryReader, EntryWriter, listed_text
from tcc_certs.session.machine import Offer
from tcc_certs.values.fields import Field
from tcc_certs.values.places import NONE, UNKNOWN, State, constant, rest_of
from tcc_runtime.gate.arguments import Asked
from tcc_runtime.gate.policy import Policy


class Answers(NamedTuple):
    """The answers of a call that is done.

    Attributes:
        states: the states of all listed answers, and of the answers that statements use.
        observed: the texts of the listed answers that are known, by name; None: the tool has none.
        entries: the ledger entries of open answers.
        unlisted: the names of the listed answers that are not known.
        lacks_one: whether a listed answer, or one with an entry, is not known.
    """

    states: Mapping[str, State]
    observed: Mapping[str, Json] | None
    entries: Mapping[str, Json]
    unlisted: tuple[str, ...]
    lacks_one: bool


_NO_ENTRIES: Final[Mapping[str, Json]] = MappingProxyType({})
NO_ANSWERS: Final = Answers({}, None, {}, (), lacks_one=False)


class Values:
    """Converts values of one session to ledger entries and to states.

    Args:
        key: the key of the session.
        shown: the fields whose values the owner shows, as pairs of a tool and a field.
        constants: the digests of constants in the header; None: the session is in memory.
    """

    def __init__(
        self,
        policy: Policy,
        key: bytes,
        shown: frozenset[tuple[str, str]],
        constants: Sequence[str] | None,
    ) -> None:
        self._policy, self._key = policy, key
        entries = self._entries = Entries(policy.core, policy.uses, shown)
        self._writer = EntryWriter(entries, key)
        # writes the entries of questions, if the session is in memory
        self._asks: EntryWriter | None = None
        self._reader = None if constants is None else EntryReader(entries, constants, key)

    def given(self, states: Mapping[str, State]) -> dict[str, Json]:
        """Return the entries of the attributes that the session starts with."""
        return self._writer.given(states)

    # Values that are new.

    def arguments(self, asked: Asked) -> tuple[Mapping[str, Json], Mapping[str, State]]:
        """Return the entries of the open arguments of a call, and the states of all its arguments.

        A session in memory has no entries, but refuses the same arguments as one with a ledger.

        Raises:
            Rejected: R105: an argument has too many elements, or takes too many steps to match.
        """
        name = asked.table.tool.name
        if self._reader is None:
            self._writer.check_arguments(name, asked.states)
            return _NO_ENTRIES, asked.states
        entries = self._writer.arguments(name, asked.states)
        if not entries:
            return entries, asked.states
        return entries, {**asked.states, **self._reader.arguments(name, entries)}

    def question(
        self, tool: str, states: Mapping[str, State], entries: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        """Return the entries of the open arguments of a call for a question to a person.

        A session in memory has entries for questions only.  These show all values.

        Args:
            entries: the entries that :meth:`arguments` returned.
        """
        if self._reader is not None:
            return entries
        if self._asks is None:
            every = frozenset(self._policy.open_fields.values())
            found = Entries(self._policy.core, self._policy.uses, every)
            self._asks = EntryWriter(found, self._key)
        return self._asks.arguments(tool, states)

    def answers(self, tool: int, answer: object) -> Answers:
        """Return the answers of a call that is done.

        Args:
            tool: index of the tool in the core.
            answer: the value that the tool returned; None: not reported.
        """
        table = self._policy.tables.numbered(tool)
        name = table.tool.name
        # A field is not read if no statement uses it and the ledger does not have it.
        states = table.answers(answer, self._entries.answers(name))
        entries: Mapping[str, Json] = _NO_ENTRIES
        if self._reader is None:
            seen, lacks_one = self._writer.answers_seen(name, states)
        else:
            entries, seen = self._writer.answers(name, states)
            seen |= self._reader.answers(name, entries) if entries else {}
            lacks_one = any("unknown" in one for one in entries.values() if isinstance(one, dict))
        observed: dict[str, Json] = {}
        unlisted = []
        for field in table.observed:
            state = states[field.name]
            if state == UNKNOWN:
                unlisted.append(field.name)
            else:
                observed[field.name] = "" if state == NONE else listed_text(field.values, state)
        texts = observed if table.observed else None
        return Answers(seen, texts, entries, tuple(unlisted), bool(unlisted) or lacks_one)

    def forget(self) -> None:
        """Drop the values that were read for a call that is not made."""
        if self._reader is not None:
            self._reader.forget()

    def keep(self) -> None:
        """Keep the values that were read so far."""
        if self._reader is not None:
            self._reader.keep()

    # Values in records.

    def given_in(self, entries: Mapping[str, Json]) -> Mapping[str, State]:
        """Return the states of the recorded attributes."""
        return {} if self._reader is None else self._reader.given(entries)

    def call_in(self, offer: Offer, entries: Mapping[str, Json]) -> Mapping[str, State]:
        """Return the states of the arguments of a recorded call."""
        machine = self._policy.machine
        states = machine.listed(offer.tool).states(offer.values)
        if self._reader is not None:
            states |= self._reader.arguments(machine.core.tools[offer.tool].name, entries)
        return states

    def answers_in(self, tool: Tool, record: Mapping[str, Json]) -> Mapping[str, State]:
        """Return the states of the answers in an `outcome` or `resolve` record of a call that is
        done.
        """
        observed, entries = record.get("observed"), record.get("answers")
        texts = observed if isinstance(observed, dict) else {}
        states = {
            one.name: _listed_state(one, texts.get(one.name))
            for one in tool.answers
            if one.type is None
        }
        if self._reader is not None and isinstance(entries, dict):
            states |= self._reader.answers(tool.name, entries)
        return states


def _listed_state(field: Field, text: object) -> State:
    if not isinstance(text, str):
        return UNKNOWN
    if not text:
        return NONE
    return rest_of(field.values) if text == "*" else constant(text)
