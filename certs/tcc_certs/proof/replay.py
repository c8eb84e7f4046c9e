"""A session with its values on a side of a question, call by call.

Normative text: docs/spec/proof.md, section 1.  Cost: linear in the session.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tcc_certs.core.model import Core, PolicyMonitor, SumMonitor
from tcc_certs.core.opened import fields_of
from tcc_certs.core.policies import Fields, attributes_named
from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.proof.compared import State
from tcc_certs.proof.fields import ANY, is_of, stands_there
from tcc_certs.proof.histories import CallParts, Past
from tcc_certs.proof.moves import LATER, System
from tcc_certs.proof.sides import Side, chosen_values, named
from tcc_certs.session.monitors.keyed import Counts, Event, Monitors, Values
from tcc_certs.session.monitors.policies import Memory, Policies
from tcc_certs.values.canonical import json_value
from tcc_certs.values.declared import PLAIN, json_of, text_of
from tcc_certs.values.numbers import canonical_number
from tcc_certs.values.places import NONE, UNKNOWN, constant, typed
from tcc_certs.values.places import State as FieldState
from tcc_certs.values.types import FlagType, NumberType, TextType, encoded


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

    Args:
        policies: the monitors that are such statements.
        given: JSON values of what the session is given, by names.
    """

    def __init__(
        self, core: Core, policies: Sequence[PolicyMonitor], given: Mapping[str, Any]
    ) -> None:
        looks = {one.name: one for one in core.looks}
        names = frozenset([*[one.name for one in core.given], *[one.name for one in core.lets]])
        fields = Fields(tools=tuple(map(fields_of, core.tools)), session=names, looks=looks)
        self._core, self._texts = core, [one.text for one in policies]
        self._memory = Memory(Policies([one.policy for one in policies], fields))
        self._calls = 0
        self._session = {
            one.name: typed(given[one.name], one.type) if one.name in given else NONE
            for one in core.given
        }

    @property
    def owes(self) -> bool:
        """Whether a call has to come yet."""
        return bool(self._memory.owed)

    def _event(
        self, number: int, values: Values, given: Mapping[str, Any], at_ms: int, *, done: bool
    ) -> Event:
        tool = self._core.tools[number]
        states: dict[str, FieldState] = {}
        for param, index in zip(tool.parameters, values, strict=True):
            text = None if index is None else param.values[index]
            states[param.name] = UNKNOWN if text is None else constant(text) if text else NONE
            if text == ANY:
                states[param.name] = "*", tuple([constant(one) for one in param.values[:-1] if one])
        for one in (*tool.opened, *tool.answers):
            there = one.name in given
            states[one.name] = typed(given[one.name], one.type) if there else NONE
        for one in () if done else tool.answers:
            states[one.name] = UNKNOWN
        at = self._calls + 1
        return Event(
            at=at,
            tool=number,
            states=states,
            stamp=at_ms,
            session=self._session,
            done=done,
            told=at if done else None,
        )

    def refuses(self, number: int, values: Values, given: Mapping[str, Any], at_ms: int) -> str:
        """The text of the first statement that refuses a call; empty: none does.

        Args:
            number: of the tool.
            values: of each listed parameter the index of its value; None of the observed ones.
            given: values of open parameters and answers, by name.
        """
        event = self._event(number, values, given, at_ms, done=False)
        found = self._memory.refuses(event)
        return "" if found is None else self._texts[found[0]]

    def done(self, number: int, values: Values, given: Mapping[str, Any], at_ms: int) -> None:
        """The call is made, and answered; `values` has the observed ones, too."""
        event = self._event(number, values, given, at_ms, done=True)
        self._memory.add(event)
        self._calls += 1
        learned = dict(self._session)
        for let in self._core.lets:
            told = [event.states[name] for tool, name in let.of if tool == number]
            known = [state for state in told if state not in (NONE, UNKNOWN)]
            if let.name not in learned and known:
                learned[let.name] = known[0]
        self._session = learned


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
        spoken = {name for one in side.policies for name in attributes_named(one.policy)}
        shared = {name: value for name, value in self._given.items() if name in spoken}
        self._later = LaterSession(side.core, side.policies, shared) if side.policies else None
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
                texts[name] = ANY if value is _REST else text_of(value) or "?"
            elif name in told and is_of(told[name].type, value):
                pass
            elif name in types and is_of(types[name].type, value):
                if not isinstance(types[name].type, PLAIN):
                    continue
                key = b"".join(encoded(types[name].type, value))
                self._values[key] = value
                keys[name] = key
                if isinstance(types[name].type, NumberType):
                    numbers[name] = canonical_number(value)
            else:
                return f"{name} is of another type"
        if any(not p.optional and p.name not in given for p in (*tool.opened, *tool.answers)):
            return "a parameter is left out"
        if not stands_there(tool, given):
            return "a parameter is not what stands at its place"
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
            found[name] = _REST if text == ANY else json_of(text)
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
        case NumberType():
            known = re.fullmatch(r"-?[0-9]{1,400}(\.[0-9]{1,400})?", text) is not None
            ensure(known, Code.PROOF_SESSION, "value", "a number", text)
            value = Decimal(text) if "." in text else int(text)
        case FlagType():
            ensure(text in ("true", "false"), Code.PROOF_SESSION, "value", "true or false", text)
            value = text == "true"
        case TextType():
            pass
        case _:
            value = json_value(text)
    ensure(is_of(kind, value), Code.PROOF_SESSION, "value", "a value of the type", text)
    return value
