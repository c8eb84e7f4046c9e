"""The statements of version 1.2 of a core: how calls are read for them, and what a session learns.

Normative text: docs/spec/core.md, section 7; docs/spec/session.md, section 3.  What the statements
decide is for :mod:`tcc_certs.session.monitors.policies`; here are the fields of a call, the
attributes of a session, and what a ledger has of them.
Cost: linear in the fields of a call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from tcc_certs.core import mentions, policies
from tcc_certs.core.model import Core, PolicyMonitor
from tcc_certs.core.opened import fields_of
from tcc_certs.errors import Code
from tcc_certs.formats.codec import Json
from tcc_certs.session.monitors.digested import Form, Named, Reading
from tcc_certs.session.monitors.keyed import Event, Memory as KeyedMemory, Monitors
from tcc_certs.session.monitors.policies import Memory, Policies
from tcc_certs.session.monitors.relations import LACKING
from tcc_certs.values.declared import OpenParameter
from tcc_certs.values.places import NONE, UNKNOWN, State, constant, of_text


class Statements:
    """The statements of version 1.2 of a core, and how its calls are read for them.

    Attributes:
        policies: compiled.
        ledger: what a ledger has of the fields that they name, and of those that attributes are
            learned from, so that every decision can be derived again.
        shown: pairs of a tool and an open parameter or answer whose values it shows.
        lets: what a session learns and they speak of.
        timed: whether one looks at the clock: then each call has its time.
        across: whether one is held across sessions; said: for what a session is given, then.
    """

    def __init__(self, core: Core) -> None:
        held = [one for one in core.monitors if isinstance(one, PolicyMonitor)]
        known = {one.name for one in core.given} | {one.name for one in core.lets}
        looks = {one.name: one for one in core.looks}
        made = tuple(map(fields_of, core.tools))
        fields = policies.Fields(tools=made, session=frozenset(known), looks=looks)
        self.policies = Policies([one.policy for one in held], fields)
        self._texts = [one.text for one in held]
        self._listed = [
            [(one.name, _listed_states(one.values)) for one in tool.parameters]
            for tool in core.tools
        ]
        compared: set[tuple[int, str]] = set()
        for one in held:
            calls, names = mentions.fields_compared(one.policy)
            for tool in policies.tools_of(calls, len(core.tools)):
                compared.update((tool, name) for name in names)
            for name, of in mentions.looks_named(one.policy):
                compared.update(policies.fields_looked_in(looks[name], of, made))
        spoken = frozenset().union(*[mentions.attributes_named(one.policy) for one in held])
        self.lets = tuple([one for one in core.lets if one.name in spoken])
        compared.update(source for one in self.lets for source in one.of)
        learned = {one.name: [name for _, name in one.of] for one in self.lets}
        self.ledger = Named(core, [one.policy for one in held], compared, spoken, learned)
        # Without a word of them open arguments and answers are not known.
        self._unsaid = [
            dict.fromkeys([one.name for one in (*tool.opened, *tool.answers)], UNKNOWN)
            for tool in core.tools
        ]
        self._opened = [self._forms(at, tool.opened) for at, tool in enumerate(core.tools)]
        self._answers = [self._forms(at, tool.answers) for at, tool in enumerate(core.tools)]
        self.shown = frozenset(
            [
                (at, form.name)
                for at, forms in enumerate(self.ledger.tools)
                for form in forms.values()
                if form.shown
            ]
        )
        self.timed = any(mentions.is_timed(one.policy) for one in held)
        self.across = self.policies.across
        limits = (policies.Count, policies.Total)
        wide = [of for of in (one.policy for one in held) if isinstance(of, limits) and of.across]
        # For whom a call counts across sessions is said in values: digests are one session's.
        whom = [policies.Count(of=("any",), value=0, per=one.per) for one in wide]
        self.said = frozenset().union(*map(mentions.attributes_named, whom))
        self._said = [
            [one for one in tool.opened if one.name in _own_in(wide, at, len(core.tools))]
            for at, tool in enumerate(core.tools)
        ]
        self._given_said = [one for one in core.given if one.name in self.said]
        self.shown |= {(at, one.name) for at, some in enumerate(self._said) for one in some}

    def memory(self, monitors: Monitors) -> Memory:
        """What they, and the monitors of core 1.1, remember of a session that begins."""
        return Memory(self.policies, monitors)

    def _forms(self, tool: int, fields: Sequence[OpenParameter]) -> Sequence[Form]:
        forms = self.ledger.tools[tool]
        return [forms[one.name] for one in fields if one.name in forms]

    def given(self, found: Mapping[str, Json], reading: Reading) -> Mapping[str, State]:
        """What a session was given, as its header has it; what nobody names is not known.

        Raises:
            Rejected: as :meth:`Reading.state`.
        """
        return _states_in(self.ledger.session.values(), found, reading)

    def states(
        self,
        tool: int,
        values: Sequence[int | None],
        opened: Mapping[str, Json],
        reading: Reading | None = None,
    ) -> Mapping[str, State]:
        """The fields of a call.

        Args:
            values: of each listed parameter the index of its value; None: it is not known.
            opened: the open ones, as a record has them.
            reading: of its session; None: nothing is known of the open ones.

        Raises:
            Rejected: as :meth:`Reading.state`.
        """
        found = {
            name: UNKNOWN if at is None else some[at]
            for (name, some), at in zip(self._listed[tool], values, strict=True)
        }
        found |= self._unsaid[tool]
        return found if reading is None else found | _states_in(self._opened[tool], opened, reading)

    def told(self, tool: int, answers: Mapping[str, Json], reading: Reading) -> Mapping[str, State]:
        """The open answers of a call that was done, as a record has them.

        Raises:
            Rejected: as :meth:`Reading.state`.
        """
        return _states_in(self._answers[tool], answers, reading)

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

    def forbids(self, memory: KeyedMemory, own: Event) -> tuple[Code, str] | None:
        """R202 or R207, and the text of the first statement that refuses; None: all allow it."""
        found = memory.refuses(own)
        if found is None:
            return None
        code = Code.MONITOR_FORBIDS if found[1] else Code.MANY_EARLIER
        return code, self._texts[found[0]]

    def draws(
        self,
        tool: int,
        states: Mapping[str, State] | None,
        session: Mapping[str, State],
        opened: Mapping[str, Json],
        given: Mapping[str, Json],
    ) -> list[tuple[int, int | Fraction, tuple[State, ...]]]:
        """What a call that is allowed draws on an account: statement, amount, values of `per`.

        Args:
            opened, given: open arguments, and what the session was given, as records have them.
        """
        if not self.across or states is None:
            return []
        own = Event(at=0, tool=tool, states=states, session=session)
        listed = {name: states[name] for name, _ in self._listed[tool]}
        said = {**dict.fromkeys(states, UNKNOWN), **listed, **_values(self._said[tool], opened)}
        plain = Event(at=0, tool=tool, states=said, session=_values(self._given_said, given))
        found = [(one.number, one.drawn(own, plain)) for one in self.policies.decides[tool]]
        return [(number, *drawn) for number, drawn in found if drawn is not None]

    def owed(self, memory: KeyedMemory) -> str:
        """The text of the first statement by which a call has to come yet; empty: there is none."""
        return next((self._texts[number] for number in memory.owed), "")


def _own_in(
    limits: Sequence[policies.Count | policies.Total], tool: int, tools: int
) -> frozenset[str]:
    """The fields of calls of a tool that the `per` of these limits names."""
    found: set[str] = set()
    for one in limits:
        of = one.of if isinstance(one, policies.Count) else ("calls", one.tool, ())
        if tool in policies.tools_of(of, tools):
            bare = policies.Count(of=("any",), value=0, per=one.per)
            found |= mentions.fields_compared(bare)[1]
    return frozenset(found)


def _values(fields: Iterable[OpenParameter], entries: Mapping[str, Json]) -> dict[str, State]:
    """The values that stand in a record; of one that is left out NONE, else UNKNOWN."""
    found: dict[str, State] = {}
    for one in fields:
        entry = entries.get(one.name)
        if entry is None:
            found[one.name] = NONE
        else:
            text = entry.get("value") if isinstance(entry, dict) else None
            found[one.name] = UNKNOWN if text is None else of_text(str(text), one.type)
    return found


def _states_in(
    forms: Iterable[Form], given: Mapping[str, Json], reading: Reading
) -> dict[str, State]:
    found = {}
    for form in forms:
        entry = given.get(form.name)
        absent = NONE if form.optional else UNKNOWN
        found[form.name] = reading.state(form, entry) if isinstance(entry, Mapping) else absent
    return found


def _listed_states(texts: Sequence[str]) -> list[State]:
    """The state that each canonical text of a listed field stands for; of ``*`` with the others."""
    known = frozenset([constant(text) for text in texts if text and text != "*"])
    states = {"": NONE, "*": ("*", known)}
    return [states[text] if text in states else constant(text) for text in texts]
