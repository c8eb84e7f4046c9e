"""The values of a recorded call: its open arguments, and what was observed once it was made.

Normative text: docs/spec/session.md, sections 3 and 6.  A value that is shown has its type, and its
digest is the one of its bytes where the key is known; without the key, digests of shown values are
the same exactly where the values are.  Of a value that is not shown nothing is known but that.
Cost: linear in the arguments and answers of a call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from tcc_certs.core.model import Core, Tool
from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import Json, blake, written
from tcc_certs.formats.ledger import Record
from tcc_certs.session.machine import Observed, Offer, SessionMachine
from tcc_certs.session.monitors import Seen
from tcc_certs.session.records import HIDDEN, SessionHeader, open_name
from tcc_certs.values.canonical import JSON, NUMBER, digest, json_value, utf8
from tcc_certs.values.declared import PLAIN
from tcc_certs.values.types import OpenParameter, check_text, type_byte

if TYPE_CHECKING:
    from tcc_certs.values.places import FieldType, State


class Arguments:
    """The open arguments of a session's calls.

    Attributes:
        hidden: names of open parameters of which a call had a value that is not shown.
        shown: the same, of values that are shown.
    """

    def __init__(self, machine: SessionMachine, header: SessionHeader) -> None:
        self._core = machine.core
        self._monitors = machine.monitors
        self._statements = machine.statements
        self._header = header
        self._digest_of: dict[bytes, str] = {}  # of each shown value, by a hash of it
        self._value_of: dict[str, bytes] = {}
        self.hidden: set[str] = set()
        self.shown: set[str] = set()

    def given(self) -> Mapping[str, State]:
        """What the session was given, as statements see it.

        Raises:
            Rejected: S101 a statement speaks of what is not shown; S204, S205 as :meth:`read`.
        """
        if not self._core.given:
            return {}
        named = frozenset() if self._statements is None else self._statements.named
        values: dict[str, tuple[str, str]] = {}
        for one in self._core.given:
            entry = self._header.given.get(one.name)
            if not isinstance(entry, dict):
                continue
            name = f"session.{written(one.name)}"
            expected = "type and value, as a statement speaks of it"
            shown = "value" in entry
            place = f"given: {written(one.name)}"
            ensure(shown or one.name not in named, Code.SESSION_HEADER, place, expected, entry)
            (self.shown if shown else self.hidden).add(name)
            values[one.name] = HIDDEN, ""
            if shown:
                values[one.name] = _byte(one).decode(), self._checked(place, one, entry)
        if any(one.at is not None for one in self._core.given):
            _check_places(self._core.given, values, lambda name: f"given: {written(name)}")
        return {} if self._statements is None else self._statements.given(self._header.given)

    def read(
        self, offer: Offer, found: Json
    ) -> tuple[tuple[Seen, ...], Mapping[str, State] | None]:
        """The call as monitors see it, and its fields for the statements of version 1.2.

        Raises:
            Rejected: S203 which arguments there are, or which are shown; S204 a value that is none
                of its type; S205 a digest that is not of its value.
        """
        tool = self._core.tools[offer.tool]
        given = found if isinstance(found, dict) else {}
        _check_names(tool, given)
        opened: dict[str, object] = {}
        numbers: dict[str, str] = {}
        values: dict[str, tuple[str, str]] = {}
        for parameter in tool.opened:
            if parameter.name not in given:
                continue
            entry = given[parameter.name]
            members: Mapping[str, Json] = entry if isinstance(entry, dict) else {}
            opened[parameter.name] = str(members["digest"])
            value = self._value(offer.tool, parameter, members)
            kind = _byte(parameter)
            values[parameter.name] = (HIDDEN, "") if value is None else (kind.decode(), value)
            if value is not None and kind == NUMBER:
                numbers[parameter.name] = value
        if any(given.at is not None for given in tool.opened):
            _check_places(tool.opened, values, lambda name: f"open: {open_name(tool.name, name)}")
        if any(param.at is not None for param in tool.parameters):
            _check_listed(tool, offer, values)
        seen = self._monitors.see(offer.tool, offer.values, opened, numbers)
        statements = self._statements
        if statements is None:
            return seen, None
        return seen, statements.states(offer.tool, offer.values, values)

    def told(self, offer: Offer, outcome: str, record: Record) -> tuple[Mapping[str, State], bool]:
        """The open answers of a call, and whether one that is shown is not known.

        Raises:
            Rejected: S210 there are others than are shown, or some of a call that was not done;
                S204, S205 as :meth:`read`.
        """
        tool = self._core.tools[offer.tool]
        due = {
            one.name: one for one in tool.answers if (offer.tool, one.name) in self._header.shown
        }
        found = record.get("answers")
        given: Mapping[str, Json] = found if isinstance(found, dict) else {}
        needed = [name for name, one in due.items() if not one.optional and outcome == "done"]
        there = set(needed) <= set(given) <= set(due if outcome == "done" else ())
        expected = f"{sorted(needed)} of {sorted(due)}" if due else "no field"
        ensure(there, Code.SESSION_OBSERVED, "answers", expected, sorted(given))
        stray = found is not None and not given
        ensure(not stray, Code.SESSION_OBSERVED, "answers", "no field, as none is there", "one")
        values: dict[str, tuple[str, str]] = {}
        for name, entry in given.items():
            members: Mapping[str, Json] = entry if isinstance(entry, dict) else {}
            if "unknown" in members:
                values[name] = HIDDEN, ""
                continue
            value = self._value(offer.tool, due[name], members, "answers")
            values[name] = (_byte(due[name]).decode(), value or "")
        lacks = any(not kind for kind, _ in values.values())
        statements = self._statements
        return ({} if statements is None else statements.told(offer.tool, values)), lacks

    def _value(
        self,
        tool: int,
        parameter: OpenParameter,
        members: Mapping[str, Json],
        where: str = "open",
    ) -> str | None:
        """The text of a value that is shown."""
        name = open_name(self._core.tools[tool].name, parameter.name)
        shown = (tool, parameter.name) in self._header.shown
        expected = (
            "type and value, as it is shown" if shown else "a digest alone, as it is not shown"
        )
        ensure(
            shown == ("value" in members), Code.SESSION_OPEN, f"{where}: {name}", expected, members
        )
        (self.shown if shown else self.hidden).add(name)
        return self._checked(f"{where}: {name}", parameter, members) if shown else None

    def _checked(self, place: str, parameter: OpenParameter, members: Mapping[str, Json]) -> str:
        """The text of a value that is shown, which is of its type and has this digest."""
        kind, text = _byte(parameter), str(members["value"])
        byte = kind.decode()
        ensure(members["type"] == byte, Code.SESSION_VALUE, place, byte, members["type"])
        try:
            _check_text(parameter, text)
        except Rejected as refusal:
            raise Rejected(Code.SESSION_VALUE, place, refusal.expected, refusal.found) from None
        self._check_digest(place, kind, utf8(text, "value"), str(members["digest"]))
        return text

    def _check_digest(self, place: str, kind: bytes, data: bytes, found: str) -> None:
        if self._header.key is not None:
            expected = digest(self._header.key, kind, data).hex()
            ensure(found == expected, Code.SESSION_DIGEST, place, expected, found)
        value = blake(kind + data)
        expected = self._digest_of.setdefault(value, found)
        ensure(found == expected, Code.SESSION_DIGEST, place, f"{expected}, as before", found)
        other = self._value_of.setdefault(found, value)
        ensure(other == value, Code.SESSION_DIGEST, place, "a digest of its own", found)


def _byte(parameter: OpenParameter) -> bytes:
    return type_byte(parameter.type) if isinstance(parameter.type, PLAIN) else JSON


def _check_text(parameter: OpenParameter, text: str) -> None:
    if isinstance(parameter.type, PLAIN):
        check_text(parameter.type, text)
        return
    from tcc_certs.values.places import check_json  # here: a core of 1.1 has none of it

    check_json(parameter.type, text)


def _check_places(
    fields: Sequence[OpenParameter],
    values: Mapping[str, tuple[str, str]],
    path: Callable[[str], str],
) -> None:
    """A field at a place in an argument, or attribute, that is shown is what stands there.

    Args:
        path: of a field, by its name.

    Raises:
        Rejected: S204 it is not.
    """
    from tcc_certs.values.places import placed_text  # here: a core of 1.1 has none of it

    for field in fields:
        head = _head_of(fields, field.at, values)
        kind, text = values.get(field.name, (HIDDEN, ""))
        if head is None or (field.name in values and kind == HIDDEN):
            continue
        found = placed_text(field, json_value(head))
        expected = found or "nothing at its place"
        ensure(found == text, Code.SESSION_VALUE, path(field.name), expected, text)


def _check_listed(tool: Tool, offer: Offer, values: Mapping[str, tuple[str, str]]) -> None:
    """A listed argument at a place in an argument that is shown is what stands there.

    Raises:
        Rejected: S204 it is not.
    """
    from tcc_certs.values import places  # here: a core of 1.1 has none of it

    for param, index in zip(tool.parameters, offer.values, strict=True):
        head = None if param.observed else _head_of(tool.opened, param.at, values)
        if head is None or index is None or param.at is None:
            continue
        of = places.Field(
            name=param.name, steps=param.at, values=param.values, optional=param.optional
        )
        text = param.values[index]
        due = places.constant(text) if text else places.NONE
        found = places.answered({param.at[0]: json_value(head)}, of)
        place = f"open: {open_name(tool.name, param.at[0])}"
        ensure(found == due, Code.SESSION_VALUE, place, text or "nothing at its place", head)


def _head_of(
    fields: Sequence[OpenParameter],
    at: tuple[str, ...] | None,
    values: Mapping[str, tuple[str, str]],
) -> str | None:
    """The argument in which a place lies, where all of it is shown; None of other ones."""
    if not at:
        return None
    whole = any(one.name == at[0] and _is_whole(one.type) for one in fields)
    kind, text = values.get(at[0], (HIDDEN, ""))
    return text if whole and kind == JSON.decode() else None


def _is_whole(of: FieldType) -> bool:
    """Whether a ledger has all of a value: of a record it has the fields alone."""
    from tcc_certs.values.places import ListType, RecordType

    return _is_whole(of.of) if isinstance(of, ListType) else not isinstance(of, RecordType)


def _check_names(tool: Tool, given: Mapping[str, Json]) -> None:
    expected = {parameter.name for parameter in tool.opened}
    needed = {parameter.name for parameter in tool.opened if not parameter.optional}
    there = needed <= set(given) <= expected
    ensure(
        there, Code.SESSION_OPEN, "open", f"{sorted(needed)} of {sorted(expected)}", sorted(given)
    )


def answer_of(core: Core, offer: Offer, outcome: str, record: Record) -> Observed | None:
    """The observed values of a call that was done, else None.

    Of an answer that was not foreseen the values are those that are known.

    Raises:
        Rejected: S209, S210 they are not those of the tool, or there are some of a call that was
            not done.
    """
    lacks = "unforeseen" in record
    if outcome != "done" or not offer.observed:
        ensure(not lacks, Code.SESSION_OUTCOME, "unforeseen", "no field", outcome)
        ensure("observed" not in record, Code.SESSION_OBSERVED, "observed", "no field", "one")
        return () if outcome == "done" else None
    found = record.get("observed")
    given: Mapping[str, Json] = found if isinstance(found, dict) else {}
    params = [core.tools[offer.tool].parameters[at] for at in offer.observed]
    names = sorted(param.name for param in params)
    there = set(given) < set(names) if lacks else sorted(given) == names
    ensure(there, Code.SESSION_OBSERVED, "observed", names, sorted(given))
    answer: list[int | None] = []
    for param in params:
        if param.name not in given:
            answer.append(None)
            continue
        value, values = given[param.name], param.values
        ensure(value in values, Code.SESSION_OBSERVED, "observed", " or ".join(values), value)
        answer.append(values.index(str(value)))
    return tuple(answer)
