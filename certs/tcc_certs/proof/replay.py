"""A session with its values on a side of a question, call by call.

Normative text: docs/spec/proof.md, section 1.  Cost: linear in the session.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tcc_certs.core.model import Core, PolicyMonitor, SumMonitor
from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.proof.compared import State
from tcc_certs.proof.fields import ANY, are_declared, is_of, stands_there
from tcc_certs.proof.histories import CallParts, Past
from tcc_certs.proof.moves import LATER, System
from tcc_certs.proof.sides import Side, chosen_values, named
from tcc_certs.session.monitors.digested import Digester, Form, Reading, members_of
from tcc_certs.session.monitors.keyed import Counts, Event, Monitors, Values
from tcc_certs.session.monitors.policies import Memory
from tcc_certs.session.monitors.statements import Statements
from tcc_certs.session.values import typed_text
from tcc_certs.values import declared
from tcc_certs.values.canonical import JSON, digest, json_value
from tcc_certs.values.numbers import canonical_number
from tcc_certs.values.places import json_bytes
from tcc_certs.values.types import encoded


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCall:
    """A call: its listed values and answers as canonical texts, its open ones as written.

    Attributes:
        at_ms: since the first call; never less than that of the call before.
    """

    tool: str
    listed: tuple[tuple[str, str], ...]
    opened: tuple[tuple[str, str], ...]
    at_ms: int = 0


class LaterSession:
    """The statements of version 1.2 of a core over the calls of a session, all of them done.

    They are asked as a gate asks them, and a validator: over what a ledger would have of values,
    under a key of zeros.

    Args:
        given: JSON values of what the session is given, by names.
    """

    def __init__(self, core: Core, given: Mapping[str, Any]) -> None:
        self._core = core
        self._texts = [one.text for one in core.monitors if isinstance(one, PolicyMonitor)]
        self._statements = Statements(core)
        ledger = self._statements.ledger
        self._digester = Digester(ledger, _KEY)
        constants = [bytes.fromhex(one) for one in self._digester.constants()]
        self._reading = Reading(ledger, constants)
        self._memory = Memory(self._statements.policies)
        self._calls = 0
        found = self._written(core.given, ledger.session, given)
        self._session = self._statements.given(found, self._reading)

    @property
    def owes(self) -> bool:
        """Whether a call has to come yet."""
        return bool(self._memory.owed)

    def _written(
        self,
        fields: Iterable[declared.OpenParameter],
        forms: Mapping[str, Form],
        given: Mapping[str, Any],
    ) -> dict[str, Any]:
        """What a record has of values, as far as statements speak of them.

        Raises:
            Rejected: D201 more than a record may have.
        """
        found: dict[str, Any] = {}
        leaves = self._digester.leaves()
        for one in fields:
            form = forms.get(one.name)
            if form is None or one.name not in given:
                continue
            kind, data = _encoded(one.type, given[one.name])
            entry: dict[str, Any] = {"digest": digest(_KEY, kind, data).hex()}
            if form.shown:
                entry["value"] = data.decode()
            if form.is_list or form.patterns:
                state = typed_text(one, data.decode())
                try:
                    entry |= members_of(form, state, self._digester, leaves)
                except Rejected as refusal:
                    why = refusal.expected, refusal.found
                    raise Rejected(Code.LIMIT, one.name, *why) from None
            found[one.name] = entry
        return found

    def _event(self, number: int, values: Values, given: Mapping[str, Any], at_ms: int) -> Event:
        """A call that is decided on."""
        tool = self._core.tools[number]
        found = self._written(tool.opened, self._statements.ledger.tools[number], given)
        return Event(
            at=self._calls + 1,
            tool=number,
            values=values,
            states=self._statements.states(number, values, found, self._reading),
            stamp=at_ms,
            session=self._session,
            marks=self._reading.marks,
        )

    def refuses(self, number: int, values: Values, given: Mapping[str, Any], at_ms: int) -> str:
        """The text of the first statement that refuses a call; empty: none does.

        Args:
            number: of the tool.
            values: of each listed parameter the index of its value; None of the observed ones.
            given: values of open parameters and answers, by name.

        Raises:
            Rejected: D201 statements speak of more values than a record has.
        """
        found = self._memory.refuses(self._event(number, values, given, at_ms))
        return "" if found is None else self._texts[found[0]]

    def done(self, number: int, values: Values, given: Mapping[str, Any], at_ms: int) -> None:
        """The call is made, and answered; `values` has the observed ones, too.

        Raises:
            Rejected: as :meth:`refuses`.
        """
        statements, tool = self._statements, self._core.tools[number]
        event = self._event(number, chosen_values(tool, values), given, at_ms)
        found = self._written(tool.answers, statements.ledger.tools[number], given)
        told = statements.told(number, found, self._reading)
        event.states = statements.answered(number, event.states, values, told)
        event.values, event.done, event.told = values, True, event.at
        self._memory.add(event)
        self._calls += 1
        self._session = statements.learned(self._session, number, event.states)


_KEY = bytes(32)


def _encoded(kind: Any, value: object) -> tuple[bytes, bytes]:
    """Type byte and canonical bytes of a value of a type."""
    return (
        encoded(kind, value)
        if isinstance(kind, declared.PLAIN)
        else (JSON, json_bytes(kind, value))
    )


class Replay:
    """A session on a side, call by call; values are read by the types of its left side.

    The meaning of a session is that of :mod:`tcc_certs.session`: values are compared by their
    canonical bytes, and sums are exact.
    """

    def __init__(self, side: Side, left: Side, given: Mapping[str, str] | None = None) -> None:
        self._side, self._left = side, left
        self._given = self._attributes({} if given is None else given)
        self._monitors = Monitors(side.core)
        self._counts: Counts = {}
        self._place = side.start
        self._calls = {
            named(side.core.tools[call.tool], call.values): at
            for at, call in enumerate(side.core.calls)
        }
        self._values: dict[bytes, Any] = {}
        self._later = LaterSession(side.core, self._given) if side.policies else None
        self._made: list[tuple[SessionCall, dict[str, Any]]] = []
        self._totals: dict[tuple[str, str], Fraction] = {}

    @property
    def accepts(self) -> bool:
        """Whether the session may end."""
        owes = self._later is not None and self._later.owes
        return self._side.accepts(self._place) and not owes

    def refuses(self, call: SessionCall) -> str:
        """Why the side refuses the next call; empty: it does not, and the call is done.

        Raises:
            Rejected: T301 its values are none of the left side's.
        """
        side = self._side
        given = self._read(call)
        number = side.tools.get(call.tool)
        if number is None:
            return "no such tool"
        tool = side.core.tools[number]
        texts: dict[str, str] = {}
        keys: dict[str, object] = {}
        numbers: dict[str, str] = {}
        listed = {p.name for p in tool.parameters}
        types = {p.name: p for p in tool.opened}
        told = {p.name: p for p in tool.answers}
        for name, value in given.items():
            if name in listed:
                texts[name] = ANY if value is _REST else declared.text_of(value) or "?"
            elif name in told and is_of(told[name].type, value):
                pass
            elif name in types and is_of(types[name].type, value):
                if not isinstance(types[name].type, declared.PLAIN):
                    continue
                key = b"".join(encoded(types[name].type, value))
                self._values[key] = value
                keys[name] = key
                if isinstance(types[name].type, declared.NumberType):
                    numbers[name] = canonical_number(value)
            else:
                return f"{name} is of another type"
        if any(not p.optional and p.name not in given for p in (*tool.opened, *tool.answers)):
            return "a parameter is left out"
        if not stands_there(tool, given):
            return "a parameter is not what stands at its place"
        if not are_declared(tool, given):
            return "a record has a member that is not declared"
        made = self._calls.get((tool.name, frozenset(texts.items())))
        if made is None:
            return "no such call"
        values = side.core.calls[made].values
        after = side.step(self._place, made)
        if after is None:
            return "no plan goes on with it"
        chosen = chosen_values(tool, values)
        seen = self._monitors.see(number, chosen, keys, numbers)
        later = self._later
        forbidden = "" if later is None else later.refuses(number, chosen, given, call.at_ms)
        if forbidden:
            return f"a statement forbids it: {forbidden}"
        for one in seen:
            if not one.rule.allows(self._counts, one):
                return f"a monitor forbids it: {self._monitors.texts[one.rule.number]}"
        for one in seen:
            for mark, value in one.rule.marks(self._counts, one, True, values):
                self._counts[mark] = value
                if not value:
                    del self._counts[mark]
        for name, amount in numbers.items():
            at = tool.name, name
            self._totals[at] = self._totals.get(at, Fraction(0)) + Fraction(amount)
        self._place = after
        self._made.append((call, given))
        if later is not None:
            later.done(number, values, given, call.at_ms)
        return ""

    def _read(self, call: SessionCall) -> dict[str, Any]:
        """The values by names: listed ones and answers, then open ones by the left's types."""
        tool = self._left.tools.get(call.tool)
        if tool is None:
            raise Rejected(Code.PROOF_SESSION, "calls", "a tool of the left side", call.tool)
        of = self._left.core.tools[tool]
        found: dict[str, Any] = {}
        texts = {p.name: p.values for p in of.parameters}
        for name, text in call.listed:
            ensure(
                text in texts.get(name, ()) and text != "",
                Code.PROOF_SESSION,
                name,
                "a listed value",
                text,
            )
            found[name] = _REST if text == ANY else declared.json_of(text)
        types = {p.name: p.type for p in (*of.opened, *of.answers)}
        for name, text in call.opened:
            ensure(name in types, Code.PROOF_SESSION, name, f"a parameter of {of.name}", "none")
            found[name] = _value_of(types[name], text)
        return found

    def _attributes(self, given: Mapping[str, str]) -> dict[str, Any]:
        """What the session is given, by the types of its left side.

        Raises:
            Rejected: T301 it is not what that asks for.
        """
        known = {one.name: one for one in self._left.core.given}
        for name in given:
            ensure(name in known, Code.PROOF_SESSION, "given", "an attribute", name)
        for name, one in known.items():
            there = one.optional or name in given
            ensure(there, Code.PROOF_SESSION, "given", f"{name} of the session", "none")
        return {name: _value_of(known[name].type, text) for name, text in given.items()}

    def state(self, system: System) -> State:
        """Where the session is, as a state: each value that is remembered a token of its atom."""
        sums = {
            2 * at for at, one in enumerate(self._side.core.monitors) if isinstance(one, SumMonitor)
        }
        order = [
            at for at, one in enumerate(self._side.core.monitors) if not isinstance(one, SumMonitor)
        ]
        slots = {2 * at + i: 2 * to + i for to, at in enumerate(order) for i in (0, 1)}
        tokens: dict[bytes, int] = {}
        taken: dict[int, int] = {}
        facts: list[Any] = []

        def token(part: bytes) -> int:
            if part not in tokens:
                atom = system.atom_of(self._values[part])
                tokens[part] = atom + len(system.atoms) * taken.get(atom, 0)
                taken[atom] = taken.get(atom, 0) + 1
            return tokens[part]

        for (slot, key), value in self._counts.items():
            if slot in sums:
                continue
            parts: list[Any] = []
            for part in key:
                parts.append(token(part) if isinstance(part, bytes) else part)
            for side in (0, 1):
                facts.append((side, slots[slot], tuple(parts), value))
        past = self._past(system, token)
        facts += [(LATER + group, *fact) for group, *fact in system.histories.flat(past)]
        spent = tuple(system.totals(self._totals))
        return self._place, self._place, tuple(sorted(facts)), spent

    def _past(self, system: System, token: Callable[[bytes], int]) -> Past:
        """What statements of version 1.2 remember of the session.

        Raises:
            Rejected: D101 they have spans of time.
        """
        histories = system.histories
        ensure(not histories.windows, Code.UNKNOWN_FEATURE, "core", "no spans of time", "some")

        def token_of(kind: Any, value: object) -> int:
            key = b"".join(encoded(kind, value))
            self._values[key] = value
            return token(key)

        asked = {one.name: one for one in system.given}
        past = histories.begun(
            {
                at: token_of(asked[one.name].type, self._given[one.name])
                for at, one in enumerate(histories.attributes)
                if not one.sources and one.name in self._given
            }
        )
        for call, given in self._made:
            tool = self._side.core.tools[self._side.tools[call.tool]]
            kind = system.kinds[self._side.tools[call.tool]]
            types = {p.name: p.type for p in (*tool.opened, *tool.answers)}
            parts: list[tuple[str, Any]] = [(n, text) for n, text in call.listed]
            parts += [
                (name, token_of(types[name], given[name])) for name in kind.fields if name in given
            ]
            answers = kind.told.union([p.name for p in tool.parameters if p.observed])
            made = CallParts(tool=tool.name, parts=tuple(parts), answers=answers)
            past = histories.after(past, made)
        return past


_REST: Any = object()  # an answer that is not listed


def _value_of(kind: Any, text: str) -> Any:
    """The value of a type that a text writes down.

    Raises:
        Rejected: T301 none.
    """
    value: Any = text
    match kind:
        case declared.NumberType():
            known = re.fullmatch(r"-?[0-9]{1,400}(\.[0-9]{1,400})?", text) is not None
            ensure(known, Code.PROOF_SESSION, "value", "a number", text)
            value = Decimal(text) if "." in text else int(text)
        case declared.FlagType():
            ensure(text in ("true", "false"), Code.PROOF_SESSION, "value", "true or false", text)
            value = text == "true"
        case declared.TextType():
            pass
        case _:
            value = json_value(text)
    ensure(is_of(kind, value), Code.PROOF_SESSION, "value", "a value of the type", text)
    return value
