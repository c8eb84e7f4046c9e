"""Fields that stand inside of others: what a ledger has of both agrees.

Normative text: docs/spec/session.md, section 3; core.md, section 7.  Of a list of records a ledger
has the fields by their names, so a place inside of one is looked for among the places of these; of
what is not there nothing is said.  Values that are shown are compared as they are, others by
their digests.
Cost: linear in the fields of a tool, and in the values that are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tcc_certs.core.model import Tool
from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import Json
from tcc_certs.session.monitors.digested import SHORT, Digester, Form, members_of
from tcc_certs.values.canonical import canonical, digest, json_value
from tcc_certs.values.declared import (
    PLAIN,
    FlagType,
    JsonType,
    NumberType,
    OpenParameter,
    TextType,
    json_of,
)
from tcc_certs.values.fields import DateType, FieldType, ListType, RecordType, TimeType
from tcc_certs.values.places import Missing, Wrong, at, flat, json_bytes, typed
from tcc_certs.values.types import encoded

Entries = Mapping[str, Mapping[str, Any]]
Place = Callable[[str], str]


class Untold(Exception):
    """The ledger does not have what stands at a place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Inside:
    """A field inside of another.

    Attributes:
        outer: None: the arguments as a whole.
        steps: from there.
    """

    name: str
    field: OpenParameter | None  # None: a listed one
    outer: OpenParameter | None
    steps: tuple[str, ...]


class Places:
    """Which fields of a tool stand inside of which; made once a session.

    Args:
        tool: None: the fields are what a session is given.
        fields: its open arguments, or those of its open answers that the ledger has; of answers
            no listed one is looked at.
        forms: what a ledger has of those that statements name.
        key: of the digests, where it is known; digester: under it.
    """

    def __init__(
        self,
        tool: Tool | None,
        fields: Sequence[OpenParameter],
        forms: Mapping[str, Form],
        key: bytes | None,
        digester: Digester | None,
        *,
        arguments: bool,
    ) -> None:
        self._listed = () if tool is None else tool.parameters
        self._forms, self._key, self._digester = forms, key, digester
        self._fields = fields
        self._arguments = arguments
        by_steps = {_steps(one): one for one in fields if "*" not in _steps(one)}
        found: list[_Inside] = []
        for one in fields:
            found += self._of(one.name, one, _steps(one), by_steps)
        if self._arguments:
            for param in self._listed:
                if param.at is not None and not param.observed:
                    found += self._of(param.name, None, param.at, by_steps)
        self._inside = found

    def _of(
        self,
        name: str,
        field: OpenParameter | None,
        steps: tuple[str, ...],
        by_steps: Mapping[tuple[str, ...], OpenParameter],
    ) -> list[_Inside]:
        found = [
            _Inside(name=name, field=field, outer=by_steps[steps[:n]], steps=steps[n:])
            for n in range(len(steps))
            if steps[:n] in by_steps and by_steps[steps[:n]] is not field
        ]
        if self._arguments and (not steps or steps[0] == "*"):
            found.append(_Inside(name=name, field=field, outer=None, steps=steps))
        return found

    def check(self, entries: Entries, listed: Mapping[str, str], place: Place) -> None:
        """What is inside of others is what stands there.

        Args:
            entries: as a record has them; listed: the texts of the listed arguments.
            place: of a field in a finding.

        Raises:
            Rejected: S204 it is not.
        """
        for one in self._inside:
            try:
                self._shown(one, entries, listed, place)
            except Untold:
                pass
            else:
                continue
            try:
                self._digested(one, entries, listed, place)
            except Untold:
                continue

    # By values that are shown.

    def _shown(
        self, one: _Inside, entries: Entries, listed: Mapping[str, str], place: Place
    ) -> None:
        try:
            value = self._value(one, entries, listed)
        except Missing:
            value = _Nothing
        if one.field is None:
            due = _Nothing if not listed.get(one.name) else listed[one.name]
            same = value is due if due is _Nothing else value is not _Nothing and (
                due == "*" or canonical(value) == canonical(json_of(due))
            )  # fmt: skip
            head = one.name if one.outer is None else one.outer.name
            ensure(same, Code.SESSION_VALUE, place(head), due or "nothing at its place", value)
            return
        field, entry = one.field, entries.get(one.name)
        left_out = value is _Nothing or (value is None and field.null)
        text = None if left_out else _text(field, value)
        if entry is not None and "unknown" in entry:
            # Of an answer nothing is known that is missing, of another type, or too much.
            known = left_out and field.optional
            ensure(not known, Code.SESSION_VALUE, place(one.name), "nothing at its place", entry)
            return
        if entry is None or text is None:
            there = text or ("nothing at its place" if left_out else "a value of another type")
            same = entry is None and left_out
            ensure(same, Code.SESSION_VALUE, place(one.name), there, entry)
            return
        if "value" in entry:
            same = entry["value"] == text
            ensure(same, Code.SESSION_VALUE, place(one.name), text, entry["value"])
            return
        if self._key is None or self._digester is None:
            raise Untold
        kind = encoded(field.type, value)[0] if isinstance(field.type, PLAIN) else b"j"
        due_entry: dict[str, Json] = {"digest": digest(self._key, kind, text.encode()).hex()}
        form = self._forms.get(one.name)
        if form is not None:
            state = typed(json_value(text) if kind == b"j" else value, flat(field.type))
            try:
                due_entry |= members_of(form, state, self._digester)
            except Rejected as refusal:
                where, expected = place(one.name), refusal.expected
                raise Rejected(Code.SESSION_VALUE, where, expected, refusal.found) from None
        same = all(entry[name] == due_entry.get(name) for name in entry)
        ensure(same, Code.SESSION_VALUE, place(one.name), "what stands at its place", entry)

    def _value(self, one: _Inside, entries: Entries, listed: Mapping[str, str]) -> object:
        """What stands there, of what is shown; of a record no more than its fields.

        Raises:
            Missing: nothing does.
            Untold: the ledger does not have it.
        """
        if one.outer is None:
            return _at(self._whole(entries, listed), one.steps)
        entry = entries.get(one.outer.name)
        if entry is None and not one.outer.null:
            raise Missing
        if entry is None or "value" not in entry:
            raise Untold
        kind = one.outer.type
        text = entry["value"]
        value: object = text
        if entry["type"] != "s":
            value = json_value(text)
        found, of = _inside(value, kind, flat(kind), one.steps)
        if not _is_whole(of):
            raise Untold
        return found

    def _whole(self, entries: Entries, listed: Mapping[str, str]) -> object:
        """All arguments, where all are shown."""
        found: dict[str, object] = {}
        for param in self._listed:
            if not param.observed and param.at is None and listed.get(param.name):
                if listed[param.name] == "*":
                    raise Untold
                found[param.name] = json_of(listed[param.name])
        for field in self._fields:
            if field.at is not None:
                continue
            entry = entries.get(field.name)
            if entry is None:
                if field.null:
                    raise Untold  # it may be null
                continue
            if "value" not in entry or not _is_whole(field.type):
                raise Untold
            text = entry["value"]
            found[field.name] = text if entry["type"] == "s" else json_value(text)
        return found

    # By digests.

    def _digested(
        self, one: _Inside, entries: Entries, listed: Mapping[str, str], place: Place
    ) -> None:
        outer = one.outer
        if outer is None:
            raise Untold
        entry, form = entries.get(outer.name), self._forms.get(outer.name)
        if entry is None or "unknown" in entry:
            raise Untold
        try:
            if "of" in entry and form is not None:
                found, kind = _inside(entry["of"], outer.type, form.type, one.steps)
            elif not one.steps and "digest" in entry and isinstance(outer.type, PLAIN):
                found, kind = entry["digest"][: 2 * SHORT], outer.type
            else:
                raise Untold
        except Missing:
            found, kind = _Nothing, outer.type
        if one.field is None:
            text = listed.get(one.name, "")
            if self._key is None or text == "*" or found is _Nothing:
                raise Untold
            due = digest(self._key, *canonical(json_of(text))).hex()[: 2 * SHORT] if text else ""
            same = not isinstance(found, str) or isinstance(kind, NumberType) or found == due
            ensure(same, Code.SESSION_VALUE, place(outer.name), "the listed value there", found)
            return
        entry = entries.get(one.name)
        if entry is not None and "unknown" in entry and not one.field.optional:
            raise Untold
        if found is _Nothing or entry is None:
            nothing = found is _Nothing and not one.field.null
            missing = "a field that is left out, as nothing is there"
            if nothing or (entry is None and found is not _Nothing):
                ensure(
                    (entry is None) == (found is _Nothing),
                    Code.SESSION_VALUE, place(one.name), missing, entry,
                )  # fmt: skip
            return
        self._compared(one.field, entry, found, kind, place(one.name))

    def _compared(
        self, field: OpenParameter, entry: Mapping[str, Any], found: Any, of: FieldType, place: str
    ) -> None:
        if "unknown" in entry or not _alike(_leaf(field.type), _leaf(of)):
            raise Untold
        if "of" in entry:
            same = entry["of"] == found
        elif isinstance(field.type, PLAIN) and isinstance(found, str):
            shown = isinstance(field.type, NumberType) and len(found) != 2 * SHORT
            if shown and "value" not in entry:
                raise Untold
            same = found == (entry["value"] if shown else entry["digest"][: 2 * SHORT])
        else:
            raise Untold
        ensure(same, Code.SESSION_VALUE, place, "what stands at its place", entry)


_Nothing: Any = object()


def _steps(one: OpenParameter) -> tuple[str, ...]:
    return (one.name,) if one.at is None else one.at


def _at(value: object, steps: Sequence[str]) -> object:
    try:
        return at(value, steps)
    except Wrong:
        raise Untold from None


def _text(field: OpenParameter, value: object) -> str | None:
    """The canonical text of a value of a field; None where it is of another type."""
    try:
        if isinstance(field.type, PLAIN):
            return encoded(field.type, value)[1].decode()
        return json_bytes(field.type, value).decode()
    except (Missing, Wrong, Rejected):
        return None


def _inside(
    value: Any, kind: FieldType, told: FieldType, steps: Sequence[str]
) -> tuple[Any, FieldType]:
    """What stands at a place of a value as a ledger has it, and of which type it is.

    Args:
        kind: its type, with the places of fields; told: which of these fields are there.

    Raises:
        Missing: nothing; Untold: the ledger does not have it.
    """
    if not steps:
        return value, kind
    step, rest = steps[0], steps[1:]
    match kind:
        case ListType(of=of):
            if not isinstance(told, ListType):
                raise Untold
            if step == "*":
                found: list[Any] = []
                leaf: FieldType = of
                for item in value:
                    one, leaf = _inside(item, of, told.of, rest)
                    found += one if "*" in rest else [one]
                return found, ListType(of=leaf)
            number = len(value) - 1 if step == "-1" else int(step) if step.isdigit() else -1
            if not 0 <= number < len(value) or (step != "-1" and str(number) != step):
                raise Missing
            return _inside(value[number], of, told.of, rest)
        case RecordType(fields=fields):
            there = {one.name: one for one in told.fields} if isinstance(told, RecordType) else {}
            for one in fields:
                size = len(one.steps)
                if not size or tuple(steps[:size]) != one.steps or one.type is None:
                    continue
                known = there.get(one.name)
                if known is None or known.type is None or (one.null and one.name not in value):
                    raise Untold
                if one.name not in value:
                    raise Missing
                return _inside(value[one.name], one.type, known.type, steps[size:])
            raise Untold
        case JsonType():
            if isinstance(value, str) and len(value) == 2 * SHORT:
                raise Untold  # it may be a digest
            return _at(value, steps), kind
    raise Missing


def _is_whole(of: FieldType) -> bool:
    """Whether a ledger has all of a value: of a record it has the fields alone."""
    return _is_whole(of.of) if isinstance(of, ListType) else not isinstance(of, RecordType)


def _leaf(kind: FieldType) -> FieldType:
    return _leaf(kind.of) if isinstance(kind, ListType) else kind


def _alike(one: FieldType, other: FieldType) -> bool:
    """Whether one value has one form in a ledger, of whichever of two types it is."""
    if isinstance(one, (TimeType, DateType)):
        return one == other
    kinds = (TextType, NumberType, FlagType)
    return any(isinstance(one, some) and isinstance(other, some) for some in kinds)
