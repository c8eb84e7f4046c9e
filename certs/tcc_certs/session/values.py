"""The values of a recorded call: its open arguments, and what was observed once it was made.

Normative text: docs/spec/session.md, sections 2, 3 and 6.  A value that is shown has its type, and
its digest is the one of its bytes where the key is known; without the key, digests of shown values
are the same exactly where the values are.  Of a value that is not shown nothing is known but that,
and what statements of version 1.2 need of it.
Cost: linear in the arguments and answers of a call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tcc_certs.core.model import Core, Tool
from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import Json, blake, written
from tcc_certs.formats.ledger import Record
from tcc_certs.session.machine import Observed, Offer, SessionMachine
from tcc_certs.session.monitors.keyed import Seen
from tcc_certs.session.records import SessionHeader, open_name
from tcc_certs.values.canonical import JSON, digest, utf8
from tcc_certs.values.declared import PLAIN, OpenParameter
from tcc_certs.values.types import check_text, type_byte

if TYPE_CHECKING:
    from tcc_certs.session.monitors.digested import Digester, Form, Reading
    from tcc_certs.session.monitors.nesting import Places
    from tcc_certs.values.places import State


class Arguments:
    """The open arguments and answers of a session's calls.

    Attributes:
        hidden: names of those of which a call had a value that is not shown.
        shown: the same, of values that are shown.
        marked: names of those of whose texts it is said whether they match.
        marks: what was said of them; reading: how records stand for what statements of 1.2 name.
    """

    def __init__(self, machine: SessionMachine, header: SessionHeader) -> None:
        self._core = machine.core
        self._monitors = machine.monitors
        self._statements = machine.statements
        self._header = header
        self._digest_of: dict[bytes, str] = {}  # of each shown value, by a hash of it
        self._value_of: dict[str, bytes] = {}
        self._places: dict[tuple[int, str], Places] = {}
        # Of each tool the open answers that a ledger has; and whether one value stands in another.
        self._due = [
            {
                one.name: one
                for one in tool.answers
                if one.name in self._forms(at) or (at, one.name) in header.shown
            }
            for at, tool in enumerate(machine.core.tools)
        ]
        self._nested = [
            any(one.at is not None for one in tool.opened)
            or any(one.at is not None for one in tool.parameters)
            for tool in machine.core.tools
        ]
        self.hidden: set[str] = set()
        self.shown: set[str] = set()
        self.marked: set[str] = set()
        self.reading: Reading | None = None
        self._digester: Digester | None = None
        self.marks: Mapping[tuple[str, bytes], bool | None] = {}
        self._read_constants()

    def _read_constants(self) -> None:
        """The digests of what statements name.

        Raises:
            Rejected: S101 there are others; S205 they are not of these constants.
        """
        statements, found = self._statements, self._header.constants
        due = () if statements is None else statements.ledger.constants
        expected = f"{len(due)} digests" if due else "no field"
        ensure(len(found) == len(due), Code.SESSION_HEADER, "constants", expected, len(found))
        for (kind, text), known in zip(due, found, strict=True):
            self._check_digest("constants", kind, utf8(text, "constants"), known)
        if statements is None:
            return
        from tcc_certs.session.monitors.digested import Digester, Reading

        self.reading = Reading(statements.ledger, list(map(bytes.fromhex, found)))
        self.marks = self.reading.marks
        if self._header.key is not None:
            self._digester = Digester(statements.ledger, self._header.key)

    def given(self) -> Mapping[str, State]:
        """What the session was given, as statements see it.

        Raises:
            Rejected: S101 of what a statement speaks of the ledger has not what is due; S204, S205
                as :meth:`read`.
        """
        statements, reading = self._statements, self.reading
        for one in self._core.given:
            entry = self._header.given.get(one.name)
            if not isinstance(entry, dict):
                continue
            name = f"session.{written(one.name)}"
            form = None if statements is None else statements.ledger.session.get(one.name)
            shown = "value" in entry
            place = f"given: {written(one.name)}"
            needed = form is not None and form.shown
            needed = needed or (statements is not None and one.name in statements.said)
            expected = "type and value, as a statement speaks of it"
            ensure(shown or not needed, Code.SESSION_HEADER, place, expected, entry)
            due = _members(form, shown=shown, answer=False)
            same = set(entry) == due
            ensure(same, Code.SESSION_HEADER, place, sorted(due), sorted(entry))
            self._note(name, form, shown=shown)
            if shown:
                self._checked(place, one, form, entry)
        if any(one.at is not None for one in self._core.given):
            self._check_given()
        if statements is None or reading is None:
            return {}
        with _at_place("given"):
            return statements.given(self._header.given, reading)

    def read(self, offer: Offer, found: Json) -> tuple[Sequence[Seen], Mapping[str, State] | None]:
        """The call as monitors see it, and its fields for the statements of version 1.2.

        Raises:
            Rejected: S203 which arguments there are, or what the ledger has of them; S204 a value
                that is not of its type, or not what stands at its place; S205 a digest that is not
                of its value, or a mark that is not of its text.
        """
        tool = self._core.tools[offer.tool]
        given = found if isinstance(found, dict) else {}
        if given or tool.opened:
            _check_names(tool, given)
        for parameter in tool.opened:
            if parameter.name not in given:
                continue
            entry = given[parameter.name]
            members: Mapping[str, Json] = entry if isinstance(entry, dict) else {}
            self._value(offer.tool, parameter, members)
        if self._nested[offer.tool]:
            self._check_places(offer, given)
        seen = self._monitors.read(offer.tool, offer.values, given)
        statements, reading = self._statements, self.reading
        if statements is None or reading is None:
            return seen, None
        with _at_place("open"):
            return seen, statements.states(offer.tool, offer.values, given, reading)

    def told(self, offer: Offer, outcome: str, record: Record) -> tuple[Mapping[str, State], bool]:
        """The open answers of a call, and whether one that the ledger has is not known.

        Raises:
            Rejected: S210 there are others than are due, or some of a call that was not done;
                S203, S204, S205 as :meth:`read`.
        """
        due = self._due[offer.tool]
        found = record.get("answers")
        if found is None and not due:
            return {}, False
        given: Mapping[str, Json] = found if isinstance(found, dict) else {}
        needed = [name for name, one in due.items() if not one.optional and outcome == "done"]
        there = set(needed) <= set(given) <= set(due if outcome == "done" else ())
        expected = f"{sorted(needed)} of {sorted(due)}" if due else "no field"
        ensure(there, Code.SESSION_OBSERVED, "answers", expected, sorted(given))
        stray = found is not None and not given
        ensure(not stray, Code.SESSION_OBSERVED, "answers", "no field, as none is there", "one")
        lacks = False
        for name, entry in given.items():
            members: Mapping[str, Json] = entry if isinstance(entry, dict) else {}
            if "unknown" in members:
                lacks = True
            else:
                self._value(offer.tool, due[name], members, "answers")
        if given:
            self._placed(offer.tool, tuple(due.values()), "answers", given, {})
        statements, reading = self._statements, self.reading
        if statements is None or reading is None:
            return {}, lacks
        with _at_place("answers"):
            return statements.told(offer.tool, given, reading), lacks

    def _forms(self, tool: int) -> Mapping[str, Form]:
        return {} if self._statements is None else self._statements.ledger.tools[tool]

    def _value(
        self, tool: int, parameter: OpenParameter, members: Mapping[str, Json], where: str = "open"
    ) -> str | None:
        """The text of a value that is shown; what the ledger has to have of it is there."""
        name = open_name(self._core.tools[tool].name, parameter.name)
        shown = (tool, parameter.name) in self._header.shown
        form = self._forms(tool).get(parameter.name)
        due = _members(form, shown=shown, answer=where == "answers")
        place = f"{where}: {name}"
        ensure(set(members) == due, Code.SESSION_OPEN, place, sorted(due), members)
        self._note(name, form, shown=shown)
        return self._checked(place, parameter, form, members) if shown else None

    def _note(self, name: str, form: Form | None, *, shown: bool) -> None:
        (self.shown if shown else self.hidden).add(name)
        if form is not None and form.patterns and not shown:
            self.marked.add(name)

    def _checked(
        self, place: str, parameter: OpenParameter, form: Form | None, members: Mapping[str, Json]
    ) -> str:
        """The text of a value that is shown, which is of its type and has this digest."""
        kind, text = _byte(parameter), str(members["value"])
        byte = kind.decode()
        ensure(members["type"] == byte, Code.SESSION_VALUE, place, byte, members["type"])
        try:
            _check_text(parameter, text)
        except Rejected as refusal:
            raise Rejected(Code.SESSION_VALUE, place, refusal.expected, refusal.found) from None
        self._check_digest(place, kind, utf8(text, "value"), str(members["digest"]))
        if form is not None and not form.shown:
            self._check_members(place, parameter, form, members)
        return text

    def _check_members(
        self, place: str, parameter: OpenParameter, form: Form, members: Mapping[str, Json]
    ) -> None:
        """Marks and elements are those of the value that is shown.

        Raises:
            Rejected: S205 they are not; S204 it has more of them than a record may have.
        """
        from tcc_certs.session.monitors.digested import members_of

        value = typed_text(parameter, str(members["value"]))
        try:
            found = members_of(form, value, self._digester)
        except Rejected as refusal:
            raise Rejected(Code.SESSION_VALUE, place, refusal.expected, refusal.found) from None
        for name, due in found.items():
            ensure(members[name] == due, Code.SESSION_DIGEST, place, due, members[name])

    def _check_places(self, offer: Offer, given: Mapping[str, Json]) -> None:
        """What stands inside of other arguments is what the ledger has of it."""
        tool = self._core.tools[offer.tool]
        listed = {
            param.name: param.values[at]
            for param, at in zip(tool.parameters, offer.values, strict=True)
            if at is not None
        }
        self._placed(offer.tool, tool.opened, "open", given, listed)

    def _placed(
        self,
        tool: int,
        fields: tuple[OpenParameter, ...],
        where: str,
        given: Mapping[str, Json],
        listed: Mapping[str, str],
    ) -> None:
        found = self._places.get((tool, where))
        if found is None:
            # Here: a core of 1.1 has none of it.
            from tcc_certs.session.monitors.nesting import Places

            forms, key = self._forms(tool), self._header.key
            open_ones = where == "open"
            found = Places(
                self._core.tools[tool], fields, forms, key, self._digester, arguments=open_ones
            )
            self._places[tool, where] = found
        entries = {name: entry for name, entry in given.items() if isinstance(entry, dict)}
        name = self._core.tools[tool].name
        found.check(entries, listed, lambda field: f"{where}: {open_name(name, field)}")

    def _check_given(self) -> None:
        """An attribute that lies in another one is what stands there; S204."""
        from tcc_certs.session.monitors.nesting import Places  # here: most cores have none of it

        forms = {} if self._statements is None else self._statements.ledger.session
        key, given = self._header.key, self._header.given
        found = Places(None, self._core.given, forms, key, self._digester, arguments=False)
        entries = {name: entry for name, entry in given.items() if isinstance(entry, dict)}
        found.check(entries, {}, lambda name: f"given: {written(name)}")

    def _check_digest(self, place: str, kind: bytes, data: bytes, found: str) -> None:
        if self._header.key is not None:
            expected = digest(self._header.key, kind, data).hex()
            ensure(found == expected, Code.SESSION_DIGEST, place, expected, found)
        value = blake(kind + data)
        expected = self._digest_of.setdefault(value, found)
        ensure(found == expected, Code.SESSION_DIGEST, place, f"{expected}, as before", found)
        # Statements look at the first half alone.
        other = self._value_of.setdefault(found[: len(found) // 2], value)
        ensure(other == value, Code.SESSION_DIGEST, place, "a digest of its own", found)


def _members(form: Form | None, *, shown: bool, answer: bool) -> set[str]:
    """What a ledger has of a value."""
    due = {"digest", "type", "value"} if shown else {"digest"}
    if form is not None and form.is_list:
        due = due - {"digest"} if answer and not shown else due
        due.add("of")
    if form is not None and form.patterns:
        due.add("like")
    return due


@contextmanager
def _at_place(where: str) -> Iterator[None]:
    try:
        yield
    except Rejected as refusal:
        place = f"{where}: {refusal.path}"
        raise Rejected(refusal.code, place, refusal.expected, refusal.found) from None


def _byte(parameter: OpenParameter) -> bytes:
    return type_byte(parameter.type) if isinstance(parameter.type, PLAIN) else JSON


def _check_text(parameter: OpenParameter, text: str) -> None:
    if isinstance(parameter.type, PLAIN):
        check_text(parameter.type, text)
        return
    from tcc_certs.values.places import check_json  # here: a core of 1.1 has none of it

    check_json(parameter.type, text)


def typed_text(parameter: OpenParameter, text: str) -> State:
    """The value of a canonical text that is one of the type."""
    from tcc_certs.values.places import of_text

    return of_text(text, parameter.type)


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
