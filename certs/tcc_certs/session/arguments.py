"""The values of a recorded call: its open arguments, and what was observed once it was made.

Normative text: docs/spec/session.md, sections 2 and 3.  A value that is shown has its type, and its
digest is the one of its bytes where the key is known; without the key, digests of shown values are
the same exactly where the values are.  Of a value that is not shown nothing is known but that.
Cost: linear in the arguments.
"""

from __future__ import annotations

from collections.abc import Mapping

from tcc_certs.core.model import Core, Tool
from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import Json
from tcc_certs.formats.hashes import blake
from tcc_certs.formats.ledger import Record
from tcc_certs.session.header import Header, open_name
from tcc_certs.session.machine import Machine, Observed, Offer
from tcc_certs.session.monitors import Seen
from tcc_certs.values.canonical import NUMBER, utf8
from tcc_certs.values.digest import digest
from tcc_certs.values.types import OpenParameter, check_text, type_byte


class Arguments:
    """The open arguments of a session's calls.

    Attributes:
        hidden: names of open parameters of which a call had a value that is not shown.
        shown: the same, of values that are shown.
    """

    def __init__(self, machine: Machine, header: Header) -> None:
        self._core = machine.core
        self._monitors = machine.monitors
        self._header = header
        self._digest_of: dict[bytes, str] = {}  # of each shown value, by a hash of it
        self._value_of: dict[str, bytes] = {}
        self.hidden: set[str] = set()
        self.shown: set[str] = set()

    def read(self, offer: Offer, found: Json) -> tuple[Seen, ...]:
        """The call as monitors see it.

        Raises:
            Rejected: S203 which arguments there are, or which are shown; S204 a value that is none
                of its type; S205 a digest that is not of its value.
        """
        tool = self._core.tools[offer.tool]
        given = found if isinstance(found, dict) else {}
        _check_names(tool, given)
        opened: dict[str, object] = {}
        numbers: dict[str, str] = {}
        for parameter in tool.opened:
            if parameter.name not in given:
                continue
            entry = given[parameter.name]
            members: Mapping[str, Json] = entry if isinstance(entry, dict) else {}
            opened[parameter.name] = str(members["digest"])
            value = self._value(offer.tool, parameter, members)
            if value is not None and type_byte(parameter.type) == NUMBER:
                numbers[parameter.name] = value
        return self._monitors.see(offer.tool, offer.values, opened, numbers)

    def _value(
        self, tool: int, parameter: OpenParameter, members: Mapping[str, Json]
    ) -> str | None:
        """The text of a value that is shown."""
        name = open_name(self._core.tools[tool].name, parameter.name)
        shown = (tool, parameter.name) in self._header.shown
        expected = (
            "type and value, as it is shown" if shown else "a digest alone, as it is not shown"
        )
        ensure(shown == ("value" in members), Code.SESSION_OPEN, f"open: {name}", expected, members)
        (self.shown if shown else self.hidden).add(name)
        if not shown:
            return None
        kind, text = type_byte(parameter.type), str(members["value"])
        byte = kind.decode()
        same = members["type"] == byte
        ensure(same, Code.SESSION_VALUE, f"open: {name}", byte, members["type"])
        try:
            check_text(parameter.type, text)
        except Rejected as refusal:
            place = f"open: {name}"
            raise Rejected(Code.SESSION_VALUE, place, refusal.expected, refusal.found) from None
        self._check_digest(name, kind, utf8(text, "value"), str(members["digest"]))
        return text

    def _check_digest(self, name: str, kind: bytes, data: bytes, found: str) -> None:
        place = f"open: {name}"
        if self._header.key is not None:
            expected = digest(self._header.key, kind, data).hex()
            ensure(found == expected, Code.SESSION_DIGEST, place, expected, found)
        value = blake(kind + data)
        expected = self._digest_of.setdefault(value, found)
        ensure(found == expected, Code.SESSION_DIGEST, place, f"{expected}, as before", found)
        other = self._value_of.setdefault(found, value)
        ensure(other == value, Code.SESSION_DIGEST, place, "a digest of its own", found)


def _check_names(tool: Tool, given: Mapping[str, Json]) -> None:
    expected = {parameter.name for parameter in tool.opened}
    needed = {parameter.name for parameter in tool.opened if not parameter.optional}
    there = needed <= set(given) <= expected
    ensure(
        there, Code.SESSION_OPEN, "open", f"{sorted(needed)} of {sorted(expected)}", sorted(given)
    )


def answer_of(core: Core, offer: Offer, outcome: str, record: Record) -> Observed | None:
    """The observed values of a call that was done, else None.

    Raises:
        Rejected: S210 they are not those of the tool, or there are some of a call that was not.
    """
    if outcome != "done" or not offer.observed:
        ensure("observed" not in record, Code.SESSION_OBSERVED, "observed", "no field", "one")
        return () if outcome == "done" else None
    found = record.get("observed")
    given: Mapping[str, Json] = found if isinstance(found, dict) else {}
    params = [core.tools[offer.tool].parameters[at] for at in offer.observed]
    names = sorted(param.name for param in params)
    ensure(sorted(given) == names, Code.SESSION_OBSERVED, "observed", names, sorted(given))
    answer = []
    for param in params:
        value, values = given[param.name], param.values
        ensure(value in values, Code.SESSION_OBSERVED, "observed", " or ".join(values), value)
        answer.append(values.index(str(value)))
    return tuple(answer)
