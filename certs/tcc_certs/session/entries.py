"""Entries: the parts of the values of calls that a session ledger has.

Normative text: docs/spec/session.md, sections 2 and 3.  For a gate, :class:`EntryWriter` writes
entries from states.  For a validator, :class:`EntryReader` makes states from entries.  Both kinds
of states give the same decisions.  The members of an entry follow from the uses of its field
(:mod:`tcc_certs.policy.uses`) and from the fields that the owner shows.

Cost: one BLAKE3 hash for each digest, and linear in the values.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias
from weakref import ref

from blake3 import blake3

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import Json, encode, written
from tcc_certs.policy.core import Core
from tcc_certs.policy.meaning import TEXTS, matches, under
from tcc_certs.policy.uses import Form, Uses, form_of
from tcc_certs.values.canonical import json_text, json_value
from tcc_certs.values.declared import FlagType, JsonType, NumberType, PathType, TextType, UrlType
from tcc_certs.values.fields import (
    DateType,
    Field,
    FieldType,
    ListType,
    NullableType,
    RecordType,
    TimeType,
    UnionType,
)
from tcc_certs.values.places import (
    MOST_WORK,
    NONE,
    UNKNOWN,
    Digested,
    State,
    Wrong,
    constant,
    decimal_of,
    ends_of,
    exact_number,
    is_moment,
    rest_of,
    typed,
)
from tcc_certs.values.text_pattern import pattern_of
from tcc_certs.values.types import check_text

Entry: TypeAlias = "dict[str, Json]"

MOST_ELEMENTS = 1 << 14  # in all lists of one record
_FIRST_SWEEP = 1 << 10  # number of digests at which the reader first removes unused digests
HALF = 32  # hex digits of a digest that comparisons use
NULL: State = ("z", None)
_MARKS = {True: "1", False: "0", None: "-"}
_TRUTHS = {"1": True, "0": False, "-": None}
_UNKNOWN: Entry = {"unknown": True}
Test: TypeAlias = "str | State"  # a pattern, or the constant of an `under`


# Canonical bytes of states.


def canonical_bytes(state: State) -> tuple[bytes, bytes]:
    """Return the type byte and the canonical bytes of a value."""
    kind, value = state
    match kind:
        case "s" | "p" | "u":
            return kind.encode(), value.encode()
        case "n":
            return b"n", decimal_of(value).encode()
        case "b":
            return b"b", b"true" if value else b"false"
        case "t":
            return b"t", str(value).encode()
        case "z":
            return b"z", b""
    parts: list[bytes] = []
    _write_json(state, parts)
    return b"j", b"".join(parts)


def _write_json(state: State, parts: list[bytes]) -> None:
    kind, value = state
    match kind:
        case "s" | "p" | "u":
            parts.append(encode(value))
        case "n":
            parts.append(decimal_of(value).encode())
        case "b":
            parts.append(b"true" if value else b"false")
        case "t":
            parts.append(str(value).encode())
        case "z":
            parts.append(b"null")
        case "j":
            parts.append(value)
        case "l":
            parts.append(b"[")
            for at, element in enumerate(value):
                parts.append(b"," if at else b"")
                _write_json(element, parts)
            parts.append(b"]")
        case "r":
            parts.append(b"{")
            there = sorted([(name, member) for name, member in value if member != NONE])
            for at, (name, member) in enumerate(there):
                parts.append((b"," if at else b"") + encode(name) + b":")
                _write_json(member, parts)
            parts.append(b"}")
        case _:
            parts.append(b"[]")  # a value that is not listed (`*`)


# Forms.


class Entries:
    """The forms of the entries of a session: the uses of the core, and the shown fields.

    Args:
        shown: pairs of a tool and an open field.
    """

    def __init__(
        self, core: Core, uses: Uses, shown: frozenset[tuple[str, str]] = frozenset()
    ) -> None:
        self.uses = uses
        self._core = core
        self._shown = shown
        self._arguments: dict[str, Mapping[str, Form]] = {}
        self._answers: dict[str, Mapping[str, Form]] = {}

    def arguments(self, tool: str) -> Mapping[str, Form]:
        """Return the forms of the open arguments of a tool, in declared order."""
        found = self._arguments.get(tool)
        if found is None:
            forms = self.uses.arguments(tool)
            found = self._arguments[tool] = {
                name: self._form(tool, form) for name, form in forms.items()
            }
        return found

    def answers(self, tool: str) -> Mapping[str, Form]:
        """Return the forms of the open answers of a tool that have entries, in declared order."""
        found = self._answers.get(tool)
        if found is None:
            used, found = self.uses.answers(tool), {}
            for declared in self._core.tool_of[tool].answers:
                name = declared.name
                if name in used:
                    found[name] = self._form(tool, used[name])
                elif declared.type is not None and (tool, name) in self._shown:
                    found[name] = self._form(tool, form_of(declared, (), digest=True))
            self._answers[tool] = found
        return found

    def _form(self, tool: str, form: Form) -> Form:
        return replace(form, digest=True, value=True) if (tool, form.name) in self._shown else form

    @cached_property
    def constants(self) -> Sequence[State]:
        """The constants whose digests the header has, in the order of the header."""
        return sorted(self.uses.constants, key=canonical_bytes)


# Writing.


class EntryWriter:
    """Writes the entries of one session.

    Args:
        key: the key of the session, 32 bytes.
    """

    def __init__(self, entries: Entries, key: bytes) -> None:
        self._entries = entries
        self._key = key
        self._working: dict[str, list[tuple[str, Form]]] = {}

    def constants(self) -> list[str]:
        """Return the member `constants` of the header."""
        return [self.digest(state) for state in self._entries.constants]

    def given(self, states: Mapping[str, State]) -> dict[str, Json]:
        """Return the member `given` of the header.

        Raises:
            Rejected: R105: a value has too many elements, or takes too many steps to match.
        """
        return self._of(self._entries.uses.given, states)

    def arguments(self, tool: str, states: Mapping[str, State]) -> dict[str, Json]:
        """Return the member `open` of a call.

        Raises:
            Rejected: R105: a value has too many elements, or takes too many steps to match.
        """
        return self._of(self._entries.arguments(tool), states)

    def check_arguments(self, tool: str, states: Mapping[str, State]) -> None:
        """Raise in the same cases as :meth:`arguments`, without making entries."""
        working = self._working.get(tool)
        if working is None:
            forms = self._entries.arguments(tool).items()
            working = self._working[tool] = [(name, one) for name, one in forms if one.takes_work]
        budget = _Budget()
        for name, form in working:
            if states[name] != NONE:
                budget.steps = MOST_WORK
                try:
                    _check(form, states[name], budget)
                except Rejected as refusal:
                    raise Rejected(refusal.code, name, refusal.expected, refusal.found) from None

    def _of(self, forms: Mapping[str, Form], states: Mapping[str, State]) -> dict[str, Json]:
        budget = _Budget()
        found: dict[str, Json] = {}
        for name, form in forms.items():
            state = states[name]
            if state == NONE:
                continue
            budget.steps = MOST_WORK
            try:
                found[name] = self.entry(form, state, budget)
            except Rejected as refusal:
                raise Rejected(refusal.code, name, refusal.expected, refusal.found) from None
        return found

    def answers(
        self, tool: str, states: Mapping[str, State]
    ) -> tuple[dict[str, Json], dict[str, State]]:
        """Return the member `answers` of an outcome, and the states that a validator will derive.

        An answer with too many elements or steps is recorded as unknown.
        """
        budget = _Budget()
        found: dict[str, Json] = {}
        seen = dict(states)
        for name, form in self._entries.answers(tool).items():
            state = states[name]
            if state == NONE:
                continue
            if state == UNKNOWN:
                found[name] = dict(_UNKNOWN)
                continue
            budget.steps = MOST_WORK
            left = budget.elements
            try:
                found[name] = self.entry(form, state, budget)
            except Rejected:
                budget.elements = left
                found[name], seen[name] = dict(_UNKNOWN), UNKNOWN
        return found, seen

    def answers_seen(self, tool: str, states: dict[str, State]) -> tuple[dict[str, State], bool]:
        """Return the states that :meth:`answers` gives, and whether any answer is unknown.

        Sessions without a ledger use this: they write no entries but decide alike.
        """
        budget = _Budget()
        seen, lacks_one = states, False
        for name, form in self._entries.answers(tool).items():
            state = states[name]
            if state == UNKNOWN:
                lacks_one = True
            elif form.takes_work and state != NONE:
                budget.steps = MOST_WORK
                left = budget.elements
                try:
                    _check(form, state, budget)
                except Rejected:
                    budget.elements = left
                    seen, lacks_one = {**seen, name: UNKNOWN}, True
        return seen, lacks_one

    def digest(self, state: State, length: int = 32) -> str:
        """Return the digest of a value, hex.

        Args:
            length: its length in bytes.
        """
        kind, data = canonical_bytes(state)
        return blake3(kind + data, key=self._key).hexdigest(length)

    def entry(self, form: Form, state: State, budget: _Budget, *, inside: bool = False) -> Entry:
        """Return the entry of a value.

        Args:
            inside: whether the value is inside a list or an object; its digest is then half as
                long.
        """
        found: Entry = {}
        if form.type is None:
            return {"value": listed_text(form.values, state)}
        if form.digest:
            found["digest"] = self.digest(state, 16 if inside else 32)
        if form.value or isinstance(form.type, UnionType):
            kind, data = canonical_bytes(state)
            found["type"] = kind.decode()
            if form.value:
                found["value"] = data.decode()
        if form.patterns:
            found["like"] = budget.marks(form.patterns, state)
        if form.scopes:
            found["under"] = "".join([_MARKS[mark_of(state, scope)] for scope in form.scopes])
        if state == NULL:
            return found
        if form.of is not None:
            budget.take(len(state[1]))
            found["of"] = [self.entry(form.of, one, budget, inside=True) for one in state[1]]
        elif form.size:
            found["size"] = len(state[1])
        if form.members is not None:
            members = dict(state[1])
            found["of"] = {
                member.name: self.entry(member, members[member.name], budget, inside=True)
                for member in form.members
                if members[member.name] != NONE
            }
        return found


class _Budget:
    """The work that the entries of one record may still take."""

    def __init__(self) -> None:
        self.elements = MOST_ELEMENTS
        self.steps = MOST_WORK

    def take(self, elements: int) -> None:
        """Count the elements of a list.

        Raises:
            Rejected: R105: the lists of the record have too many elements.
        """
        self.elements -= elements
        if self.elements < 0:
            expected = f"at most {MOST_ELEMENTS} elements in all lists"
            raise Rejected(Code.OPEN_VALUE, "value", expected, "more")

    def marks(self, patterns: Sequence[str], state: State) -> str:
        """Return the marks of a value, one for each pattern.

        Raises:
            Rejected: R105: the texts of the field take too many steps to match.
        """
        if state[0] not in TEXTS:
            return "-" * len(patterns)
        self.steps -= len(state[1]) * sum([pattern_of(pattern).size for pattern in patterns])
        if self.steps < 0:
            expected = f"texts that take at most {MOST_WORK} steps to match"
            raise Rejected(Code.OPEN_VALUE, "value", expected, "more")
        return "".join([_MARKS[mark_of(state, pattern)] for pattern in patterns])


def _check(form: Form, state: State, budget: _Budget) -> None:
    """Count the work for the entry of a value, without making the entry.

    Raises:
        Rejected: R105: the budget is exceeded.
    """
    if form.type is None:
        return
    if form.patterns:
        budget.marks(form.patterns, state)
    if state == NULL:
        return
    if form.of is not None:
        budget.take(len(state[1]))
        if form.of.takes_work:
            for one in state[1]:
                _check(form.of, one, budget)
    if form.members is not None:
        members = dict(state[1])
        for member in form.members:
            if member.takes_work and members[member.name] != NONE:
                _check(member, members[member.name], budget)


def mark_of(state: State, test: Test) -> bool | None:
    """Return whether a value passes a test: matches a pattern, or is under a constant."""
    return matches(state, test) if isinstance(test, str) else under(state, test)


def listed_text(values: Sequence[str], state: State) -> str:
    """Return the canonical text of a listed value; ``*`` if the value is not listed."""
    return next((text for text in values if text and constant(text) == state), "*")


# Entries written under another artifact.


class Unfit(Exception):
    """A field cannot be read as another artifact needs it.

    The text names the field, or the member of an object that does not fit.  It is empty for an
    element of a list.
    """


def fitted_arguments(
    due: Mapping[str, Form], had: Mapping[str, Form], found: Mapping[str, Json]
) -> dict[str, Json]:
    """Return the entries of `found` as another artifact would write them.

    Entries of names outside `due` are dropped.  A name that `found` lacks is left out without an
    error, because :class:`EntryReader` checks the names.

    Args:
        due: the forms that the other artifact needs, by name.
        had: the forms by which `found` was written.

    Raises:
        Unfit: an entry of `found` cannot be read by its form in `due`.
    """
    return {name: _fitted(due[name], had[name], found[name]) for name in found if name in due}


def fitted_answers(
    due: Mapping[str, Form],
    had: Mapping[str, Form],
    found: Mapping[str, Json],
    needed: Container[str] = (),
) -> dict[str, Json]:
    """Return the entries of answers as another artifact would write them.

    An answer becomes unknown if `had` lacks it, or if its entry records too little.  An answer that
    `had` has and `found` lacks was absent, and stays absent.

    Args:
        due, had, found: see :func:`fitted_arguments`.
        needed: the names of answers that must not become unknown here.  An entry that is already
            `unknown` is kept.

    Raises:
        Unfit: an answer in `needed` would become unknown.
    """
    fitted: dict[str, Json] = {}
    for name, form in due.items():
        if name in had and name not in found:
            continue  # the answer is absent
        try:
            if name not in had:
                raise Unfit(name)
            fitted[name] = _fitted(form, had[name], found[name])
        except Unfit:
            if name in needed:
                raise
            fitted[name] = dict(_UNKNOWN)
    return fitted


def _fitted(due: Form, had: Form, found: Json) -> Entry:
    """Return an entry as the form `due` requires it.

    The entries of listed fields and of unknown answers are returned unchanged.

    Raises:
        Unfit: the forms differ in type or listed values.  Or the value may be null, and `due` does
            not allow null.  Or the entry lacks a member, a mark or an inner entry that `due` needs.
    """
    whole = isinstance(due.type, ListType | RecordType | UnionType | TimeType | DateType)
    alike = due.type == had.type if whole else type(due.type) is type(had.type)
    if not isinstance(found, dict) or not alike or due.values != had.values:
        raise Unfit(due.name)
    if due.type is None or found == _UNKNOWN:
        return found
    if had.nullable and not due.nullable and found.get("type", "z") == "z":
        raise Unfit(due.name)  # the value may be null
    names = ["digest"] * due.digest + ["value"] * due.value
    names += ["type"] * (due.value or isinstance(due.type, UnionType))
    if not found.keys() >= set(names):
        raise Unfit(due.name)
    entry = {name: found[name] for name in names}
    marked: Sequence[tuple[str, Sequence[Test], Sequence[Test]]] = (
        ("like", due.patterns, had.patterns), ("under", due.scopes, had.scopes),
    )  # fmt: skip
    for name, wanted, known in marked:
        if not set(wanted) <= set(known):
            raise Unfit(due.name)
        if wanted:
            marks = dict(zip(known, str(found[name]), strict=True))
            entry[name] = "".join([marks[test] for test in wanted])
    if due.of is None and due.members is None and not due.size:
        return entry
    inside = found.get("of", found.get("size"))
    if inside is None:
        if not (had.of or had.members or had.size):
            raise Unfit(due.name)
        return entry  # the value is null
    if due.size:
        entry["size"] = len(inside) if isinstance(inside, list) else inside
    elif due.of is not None and had.of is not None and isinstance(inside, list):
        entry["of"] = [_fitted(due.of, had.of, one) for one in inside]
    elif due.members is not None and isinstance(inside, dict):
        known_members = {one.name: one for one in had.members or ()}
        if not {one.name for one in due.members} <= known_members.keys():
            raise Unfit(due.name)
        entry["of"] = {
            one.name: _fitted(one, known_members[one.name], inside[one.name])
            for one in due.members
            if one.name in inside
        }
    else:
        raise Unfit(due.name)
    return entry


# Reading.


@dataclass(slots=True, eq=False)
class _At:
    """The place of an entry, for findings.

    Attributes:
        met: whether a record has an entry for this field.
    """

    where: str
    name: str = ""
    met: bool = False

    @property
    def text(self) -> str:
        return f"{self.where}: {self.name}" if self.name else self.where


class _Prepared(NamedTuple):
    """A field whose entries are read.

    Attributes:
        is_digest: whether an entry consists of only a digest.
    """

    name: str
    form: Form
    place: _At
    is_digest: bool


def _prepare(where: str, owner: str, forms: Mapping[str, Form]) -> Sequence[_Prepared]:
    found = []
    for name, form in forms.items():
        place = _At(where, f"{written(owner)}.{written(name)}")
        structure = isinstance(form.type, ListType | RecordType) and form.compared
        marked = bool(form.patterns or form.scopes) or isinstance(form.type, UnionType)
        more = form.value or marked or form.size or form.of or form.members is not None
        found.append(_Prepared(name, form, place, form.digest and not (more or structure)))
    return found


class EntryReader:
    """Makes states from the entries of one session.

    If the digest of a value equals the digest of a constant, its state is the constant.  The state
    of any other value is ``("d", Digested)``, with one object for each digest.  With the key, the
    reader drops the digests of calls that are no longer kept, unless the ledger has marks or the
    type byte of the value.

    Args:
        constants: the digests of `Entries.constants`, hex, in the same order.
        key: the key of the digests, if it is known.  The reader then recomputes the digests of
            values that the ledger has.

    Raises:
        Rejected: S101 the number of constants is wrong; S205 a digest does not belong to its
            constant, or two constants have the same digest.
    """

    def __init__(self, entries: Entries, constants: Sequence[str], key: bytes | None) -> None:
        self._entries = entries
        self._writer = None if key is None else EntryWriter(entries, key)
        due = entries.constants
        if len(constants) != len(due):
            raise Rejected(
                Code.SESSION_HEADER, "constants", f"{len(due)} digests", f"{len(constants)}"
            )
        self._constants: frozenset[State] = frozenset(due)
        self._states: dict[str, State] = {}  # by the first half of the digest
        self._refs: dict[str, ref[Digested]] = {}  # weak references to digests that may be dropped
        self._next_sweep = _FIRST_SWEEP
        # first half of the digest of each value that the ledger shows
        self._digests: dict[State, str] = {}
        self._whole: dict[str, str] = {}  # by its first half, the whole digest of a constant
        self._prepared: dict[tuple[str, str], Sequence[_Prepared]] = {}
        for state, digest in zip(due, constants, strict=True):
            self._value(_At("constants"), digest, state)
        self.keep()

    def keep(self) -> None:
        """Make all digests that were read so far permanent."""
        self._kept = (len(self._states), len(self._digests), len(self._whole))

    def forget(self) -> None:
        """Undo all reading since :meth:`keep`, for a call that is not made."""
        known: tuple[dict[Any, Any], ...] = (self._states, self._digests, self._whole)
        for found, kept in zip(known, self._kept, strict=True):
            while len(found) > kept:
                found.popitem()

    def given(self, found: Mapping[str, Json]) -> dict[str, State]:
        """Return the states of the attributes that the session starts with.

        Raises:
            Rejected: S101 an entry is missing or unknown; S203, S204, S205 as in :meth:`arguments`.
        """
        forms = self._entries.uses.given
        self._check_names("given", forms, found, Code.SESSION_HEADER)
        return self._read("given", "session", forms, found)

    def arguments(self, tool: str, found: Mapping[str, Json]) -> dict[str, State]:
        """Return the states of the open arguments of a call.

        Raises:
            Rejected: S203 an entry, or a member of an entry, is missing or unknown.  S204 a value
                is not of its type.  S205 a digest or mark contradicts another digest or mark.
        """
        forms = self._entries.arguments(tool)
        if found.keys() != forms.keys():
            self._check_names("open", forms, found, Code.SESSION_OPEN)
        return self._read("open", tool, forms, found)

    def answers(self, tool: str, found: Mapping[str, Json]) -> dict[str, State]:
        """Return the states of the open answers of a done call that have entries.

        Raises:
            Rejected: S210 an entry is missing or unknown; S203, S204, S205 as in :meth:`arguments`.
        """
        forms = self._entries.answers(tool)
        self._check_names("answers", forms, found, Code.SESSION_OBSERVED)
        return self._read("answers", tool, forms, found)

    def _check_names(
        self, where: str, forms: Mapping[str, Form], found: Mapping[str, Json], code: Code
    ) -> None:
        needed = {name for name, form in forms.items() if not form.optional}
        if not needed <= found.keys() <= forms.keys():
            expected = f"{sorted(needed)} of {sorted(forms)}"
            raise Rejected(code, where, expected, sorted(found))

    def _read(
        self, where: str, owner: str, forms: Mapping[str, Form], found: Mapping[str, Json]
    ) -> dict[str, State]:
        prepared = self._prepared.get((where, owner))
        if prepared is None:
            prepared = self._prepared[where, owner] = _prepare(where, owner, forms)
        left = [MOST_ELEMENTS]
        states: dict[str, State] = {}
        for name, form, place, is_digest in prepared:
            entry = found.get(name)
            if entry is None:
                states[name] = NONE
                continue
            place.met = True
            if is_digest and type(entry) is dict and len(entry) == 1:
                digest = entry.get("digest")
                if type(digest) is str and len(digest) == 2 * HALF and _is_hex_text(digest):
                    states[name] = self._known(place, form, digest)
                    continue
            if where == "answers" and entry == _UNKNOWN:
                states[name] = UNKNOWN
            else:
                states[name] = self._entry(place, form, entry, None, left, inside=False)
        return states

    def _known(self, place: _At, form: Form, digest: str) -> State:
        """Return the state of a value for which the ledger has only the digest."""
        if form.compared:
            state = self._found(digest[:HALF])
            if state is not None and state[0] == "d" and state[1].digest == digest:
                return state
            return self._value(place, digest, None)
        return SOME_LIST if isinstance(form.type, ListType) else _some(form.type)

    def met(self) -> Iterator[tuple[str, Form]]:
        """Yield the names and forms of the fields that have an entry in the ledger."""
        for prepared in self._prepared.values():
            for _, form, place, _ in prepared:
                if place.met:
                    yield place.name, form

    def _entry(
        self, place: _At, form: Form, found: Json, known: State | None, left: list[int],
        *, inside: bool,
    ) -> State:  # fmt: skip
        """Return the state of an entry.

        Args:
            known: the value, if the ledger shows a list or an object around it.
            left: one number: the elements that the lists of this record may still have.
        """
        if not isinstance(found, dict):
            raise _wrong_members(place, form, found)
        if form.type is None:
            return self._listed(place, form, found, known)
        digest = found.get("digest", "")
        length = HALF if inside else 2 * HALF
        if form.digest and not _is_hex(digest, length):
            raise _wrong_members(place, form, found)
        value = self._shown(place, form, found, known) if form.value else known
        is_null = self._check_members(place, form, found, value, str(digest))
        if is_null:
            value = NULL
        if form.digest and (value is not None or form.compared):
            state = self._value(place, str(digest), value)
        else:
            state = PRESENT if value is None else value
        if isinstance(form.type, UnionType):
            self._check_type(place, form, form.type, found["type"], state)
        if form.patterns:
            self._mark(place, form, "like", form.patterns, found, state)
        if form.scopes:
            self._mark(place, form, "under", form.scopes, found, state)
        if is_null:
            return NULL
        if isinstance(form.type, ListType):
            return self._list(place, form, form.type, found, value, left)
        if isinstance(form.type, RecordType):
            return self._record(place, form, form.type, found, value, left)
        return state

    def _check_members(
        self, place: _At, form: Form, found: Entry, value: State | None, digest: str
    ) -> bool:
        """Check that an entry has the required members, and return whether its value is null."""
        due = {"digest"} if form.digest else set()
        if form.value:
            due |= {"type", "value"}
        if isinstance(form.type, UnionType):
            due.add("type")
        if form.patterns:
            due.add("like")
        if form.scopes:
            due.add("under")
        inner = {"of"} if form.of or form.members is not None else {"size"} if form.size else set()
        is_null = False
        if form.nullable and isinstance(form.type, ListType | RecordType):
            if value is not None:
                is_null = value == NULL
            elif inner:
                is_null = not inner & found.keys()
            else:
                is_null = self._states.get(digest[:HALF]) == NULL
        due |= set() if is_null else inner
        if found.keys() != due:
            raise _wrong_members(place, form, found)
        return is_null

    def _listed(self, place: _At, form: Form, found: Entry, known: State | None) -> State:
        text = found.get("value")
        if len(found) != 1 or text not in form.values or not isinstance(text, str) or not text:
            raise _wrong_members(place, form, found)
        state = rest_of(form.values) if text == "*" else constant(text)
        if known is not None and state != known:
            raise Rejected(Code.SESSION_DIGEST, place.text, "the value that is shown", text)
        return state

    def _shown(self, place: _At, form: Form, found: Entry, known: State | None) -> State:
        kind, text = found.get("type"), found.get("value")
        if not isinstance(kind, str) or not isinstance(text, str):
            raise _wrong_members(place, form, found)
        try:
            value = state_of(kind, text, form.type, nullable=form.nullable)
        except Rejected as refusal:
            raise Rejected(
                Code.SESSION_VALUE, place.text, refusal.expected, refusal.found
            ) from None
        if known is not None and value != known:
            raise Rejected(Code.SESSION_DIGEST, place.text, "the value that is shown", text)
        return value

    def _check_type(
        self, place: _At, form: Form, union: UnionType, kind: Json, state: State
    ) -> None:
        """Check that the type byte belongs to the union, and is always the same for this value.

        Raises:
            Rejected: S204 no type of the union has this byte; S205 the value had another byte
                before.
        """
        kinds = {_byte_of(one) for one in union.of} | ({"z"} if form.nullable else set())
        if not isinstance(kind, str) or kind not in kinds:
            expected = f"a type byte of {', '.join(sorted(kinds))}"
            raise Rejected(Code.SESSION_VALUE, place.text, expected, kind)
        if state is PRESENT:
            return
        if state[0] != "d":
            before = canonical_bytes(state)[0].decode()
        elif state[1].value is not None:
            before = canonical_bytes(state[1].value)[0].decode()
        else:
            self._states[state[1].digest[:HALF]] = state
            before = state[1].kind = state[1].kind or kind
        if before != kind:
            raise Rejected(Code.SESSION_DIGEST, place.text, f"the type byte {before}", kind)

    def _list(
        self, place: _At, form: Form, kind: ListType, found: Entry, value: State | None,
        left: list[int],
    ) -> State:  # fmt: skip
        items: Any = () if value is None else value[1]
        if form.of is not None:
            entries = found["of"]
            if not isinstance(entries, list):
                raise _wrong_members(place, form, found)
            self._check_size(place, kind, len(entries), None if value is None else len(items))
            left[0] -= len(entries)
            if left[0] < 0:
                expected = f"at most {MOST_ELEMENTS} elements in all lists"
                raise Rejected(Code.SESSION_VALUE, place.text, expected, "more")
            known: Iterable[State | None] = items if value is not None else [None] * len(entries)
            of = form.of
            elements = tuple(
                [
                    self._entry(place, of, entry, one, left, inside=True)
                    for entry, one in zip(entries, known, strict=True)
                ]
            )
            if kind.distinct and of.compared and len(set(elements)) < len(elements):
                raise Rejected(Code.SESSION_VALUE, place.text, "distinct elements", "equal ones")
            return "l", elements
        if form.size:
            size = found["size"]
            if type(size) is not int:
                raise _wrong_members(place, form, found)
            self._check_size(place, kind, size, None if value is None else len(items))
            return "l", (PRESENT,) * size
        return SOME_LIST

    def _check_size(self, place: _At, kind: ListType, size: int, shown: int | None) -> None:
        if not kind.least <= size <= kind.most:
            expected = f"{kind.least} to {kind.most} elements"
            raise Rejected(Code.SESSION_VALUE, place.text, expected, size)
        if shown is not None and size != shown:
            raise Rejected(Code.SESSION_DIGEST, place.text, f"{shown} elements, as shown", size)

    def _record(
        self, place: _At, form: Form, kind: RecordType, found: Entry, value: State | None,
        left: list[int],
    ) -> State:  # fmt: skip
        used = {} if form.members is None else {member.name: member for member in form.members}
        members = found["of"] if used else {}
        needed = {name for name, member in used.items() if not member.optional}
        if not isinstance(members, dict) or not needed <= members.keys() <= used.keys():
            raise _wrong_members(place, form, found)
        shown = {} if value is None else dict(value[1])
        states = []
        for declared in kind.fields:
            name = declared.name
            if name not in used:
                states.append((name, PRESENT))
            elif name not in members:
                if shown.get(name, NONE) != NONE:
                    raise Rejected(Code.SESSION_DIGEST, place.text, f"{name}, as shown", "none")
                states.append((name, NONE))
            else:
                known = shown.get(name)
                if known == NONE:
                    raise Rejected(Code.SESSION_DIGEST, place.text, f"no {name}, as shown", "one")
                entry = members[name]
                states.append(
                    (name, self._entry(place, used[name], entry, known, left, inside=True))
                )
        return "r", tuple(states)

    # Digests.

    def half_of(self, state: State) -> str | None:
        """Return the first half of the digest of a value.

        None if neither ledger nor key gives it.
        """
        if state[0] == "d":
            return state[1].digest[:HALF] or None
        found = self._digests.get(state)
        if found is None and self._writer is not None:
            found = self._writer.digest(state, HALF // 2)
        return found

    def _found(self, half: str) -> State | None:
        """Return the state of a digest that was read and not dropped."""
        state = self._states.get(half)
        if state is None:
            known = self._refs.get(half)
            digested = None if known is None else known()
            if digested is not None:
                return "d", digested
        return state

    def _new(self, half: str, digest: str) -> State:
        """Return a new state for a digest that belongs to no constant."""
        state: State = "d", Digested(digest, self._constants)
        if self._writer is None:
            self._states[half] = state
            return state
        if len(self._refs) >= self._next_sweep:
            self._refs = {one: known for one, known in self._refs.items() if known() is not None}
            self._next_sweep = max(_FIRST_SWEEP, 2 * len(self._refs))
        self._refs[half] = ref(state[1])
        return state

    def _value(self, place: _At, digest: str, value: State | None) -> State:
        """Return the state of a digest.

        Args:
            value: the value, if the ledger has it.

        Raises:
            Rejected: S205: another value has this digest, or the value has another digest.
        """
        half = digest[:HALF]
        state = self._found(half)
        if state is not None and len(digest) > HALF:
            self._check_whole(place, state, half, digest)
        if value is None:
            return self._new(half, digest) if state is None else state
        if self._writer is not None:
            expected = self._writer.digest(value, len(digest) // 2)
            if digest != expected:
                raise Rejected(Code.SESSION_DIGEST, place.text, expected, digest)
        else:
            expected = self._digests.setdefault(value, half)
            if half != expected:
                raise Rejected(Code.SESSION_DIGEST, place.text, f"{expected}.., as before", digest)
        if state is None:
            if value in self._constants:
                state = self._states[half] = value
                self._whole[half] = digest
            else:
                state = self._new(half, digest)
                state[1].value = value
            return state
        shown: State | None = state if state[0] != "d" else state[1].value
        if shown is None:
            if value in self._constants:  # the constant has another digest
                raise Rejected(
                    Code.SESSION_DIGEST, place.text, "the digest of the constant", digest
                )
            state[1].value = value
            for test, mark in state[1].marks.items():
                if mark_of(value, test) is not mark:
                    raise Rejected(
                        Code.SESSION_DIGEST, place.text, "the marks of this text before", digest
                    )
        elif shown != value:
            raise Rejected(Code.SESSION_DIGEST, place.text, "the digest of another value", digest)
        return state

    def _check_whole(self, place: _At, state: State, half: str, digest: str) -> None:
        """Check that two digests with the same first half are equal."""
        known = state[1].digest if state[0] == "d" else self._whole[half]
        if len(known) == len(digest) and known != digest:
            raise Rejected(Code.SESSION_DIGEST, place.text, f"{known}, as before", digest)
        if state[0] == "d":
            state[1].digest = digest

    def _mark(
        self, place: _At, form: Form, name: str, tests: Sequence[Test], found: Entry, state: State
    ) -> None:
        """Store the marks of a value, which are in the member `name`.

        Raises:
            Rejected: S203 the number or format of the marks is wrong; S205 they contradict the
                value or earlier marks.
        """
        member = found[name]
        text = member if isinstance(member, str) else ""
        if len(text) != len(tests) or not _TRUTHS.keys() >= set(text):
            raise _wrong_members(place, form, {name: member})
        for test, mark in zip(tests, text, strict=True):
            truth = _TRUTHS[mark]
            if state[0] != "d":
                before = mark_of(state, test)
            elif state[1].value is not None:
                before = mark_of(state[1].value, test)
            else:
                self._states[state[1].digest[:HALF]] = state
                before = state[1].marks.setdefault(test, truth)
            if before is not truth:
                named = test if isinstance(test, str) else f"under {test[1]}"
                expected = f"the mark {_MARKS[before]} of this text for {named}"
                raise Rejected(Code.SESSION_DIGEST, place.text, expected, mark)


PRESENT: State = ("d", Digested())  # a value that no decision uses
SOME_LIST: State = ("l", ())  # a list whose elements no decision uses; it may have elements


def _byte_of(kind: FieldType) -> str:
    """Return the type byte of the values of a type in a union."""
    match kind:
        case TextType():
            return "s"
        case NumberType():
            return "n"
        case FlagType():
            return "b"
        case PathType():
            return "p"
        case UrlType():
            return "u"
        case TimeType() | DateType():
            return "t"
    return "j"


def _some(kind: FieldType | None) -> State:
    """Return the state of a value whose content no decision uses."""
    if isinstance(kind, RecordType):
        return "r", tuple([(field.name, PRESENT) for field in kind.fields])
    return PRESENT


_is_hex_text = re.compile("[0-9a-f]*").fullmatch


def _is_hex(text: object, length: int) -> bool:
    return isinstance(text, str) and len(text) == length and _is_hex_text(text) is not None


def _wrong_members(place: _At, form: Form, found: object) -> Rejected:
    due = []
    if form.type is None:
        due.append("value: a listed value")
    due += ["digest"] * form.digest + ["type", "value"] * form.value
    due += ["type"] * (isinstance(form.type, UnionType) and not form.value)
    due += ["like"] * bool(form.patterns) + ["under"] * bool(form.scopes) + ["size"] * form.size
    due += ["of"] * bool(form.of or form.members)
    return Rejected(Code.SESSION_OPEN, place.text, f"an object of {due}", found)


def state_of(kind: str, text: str, declared: FieldType | None, *, nullable: bool) -> State:
    """Return the value of canonical bytes.

    Args:
        kind: its type byte.
        text: the canonical bytes.
        declared: the type of the field, without `or null`.

    Raises:
        Rejected: R105, R106: the type has no such value, or writes it differently.
    """
    if kind == "z":
        _ensure(nullable and not text, "a value of the type", "null")
        return NULL
    if isinstance(declared, NumberType) and kind == "n" and _is_short(text):
        number = int(text)
        if declared.low is None or declared.high is None:
            return "n", number
        low, high = ends_of(declared.low, declared.high)
        if low <= number <= high:
            return "n", number
    match declared:
        case TextType() | NumberType() | FlagType():
            due = {TextType: "s", NumberType: "n", FlagType: "b"}[type(declared)]
            _ensure(kind == due, f"type {due}", kind)
            check_text(declared, text)
            if due == "s":
                return "s", text
            return (due, exact_number(text)) if due == "n" else (due, text == "true")
        case TimeType() | DateType():
            _ensure(kind == "t", "type t", kind)
            return "t", _milliseconds(text, declared)
        case PathType() | UrlType():
            due = "p" if isinstance(declared, PathType) else "u"
            _ensure(kind == due, f"type {due}", kind)
            check_text(declared, text)
            return due, text
        case JsonType():
            _ensure(kind == "j", "type j", kind)
            check_text(declared, text)
            return "j", text.encode()
        case UnionType(of=types):
            return _of_union(kind, text, types)
    _ensure(kind == "j" and declared is not None, "type j", kind)
    state = _state_in(json_value(text), Field(name="", steps=(), type=declared))
    _ensure(canonical_bytes(state)[1] == text.encode(), "canonical JSON of the type", text)
    return state


def _of_union(kind: str, text: str, types: Sequence[FieldType]) -> State:
    """Return the value of canonical bytes that has any of these types."""
    if kind == "j":
        found = _typed(json_value(text), UnionType(of=tuple(types)))
        _ensure(found == ("j", text.encode()), "canonical JSON of a list or object", text)
        return found
    for one in types:
        if _byte_of(one) == kind:
            with suppress(Rejected):
                return state_of(kind, text, one, nullable=False)
    raise Rejected(Code.OPEN_VALUE, "value", "a value of one of the types", text)


def _typed(value: object, kind: FieldType) -> State:
    try:
        return typed(value, kind)
    except Wrong as refusal:
        raise Rejected(refusal.code, "value", "a value of the type", value) from None


_is_short = re.compile("0|[1-9][0-9]{0,14}").fullmatch  # most numbers


def _milliseconds(text: str, declared: TimeType | DateType) -> int:
    whole = re.fullmatch("-?[1-9][0-9]{0,17}|0", text) is not None
    _ensure(whole and is_moment(int(text) if whole else 0, declared), "milliseconds", text)
    return int(text)


def _state_in(value: Any, declared: Field) -> State:
    """Return the state of a value in canonical JSON, where moments are milliseconds."""
    match declared.type:
        case None:
            if value == []:
                _ensure("*" in declared.values, "a listed value", value)
                return rest_of(declared.values)
            state = _plain(value)
            _ensure(
                any(text and text != "*" and constant(text) == state for text in declared.values),
                "a listed value", value,
            )  # fmt: skip
            return state
        case NullableType(of=of):
            return NULL if value is None else _state_in(value, replace(declared, type=of))
        case ListType(of=of, least=least, most=most, distinct=distinct):
            _ensure(isinstance(value, list) and least <= len(value) <= most, "a list", value)
            inner = Field(name="", steps=(), type=of)
            elements = tuple([_state_in(one, inner) for one in value])
            _ensure(not distinct or len(set(elements)) == len(elements), "distinct elements", value)
            return "l", elements
        case RecordType(fields=fields):
            _ensure(isinstance(value, dict), "an object", value)
            names = {one.name for one in fields}
            needed = {one.name for one in fields if not one.optional}
            _ensure(needed <= value.keys() <= names, f"members {sorted(names)}", sorted(value))
            return "r", tuple(
                [
                    (one.name, _state_in(value[one.name], one) if one.name in value else NONE)
                    for one in fields
                ]
            )
        case TimeType() | DateType():
            _ensure(type(value) is int, "milliseconds", value)
            return "t", _milliseconds(str(value), declared.type)
        case JsonType(most=most):
            return "j", json_text(value, most=most)
        case UnionType(of=types):
            return _in_union(value, types)
    kind, data = canonical_bytes(_plain(value))
    due = {PathType: b"p", UrlType: b"u"}.get(type(declared.type), kind) if kind == b"s" else kind
    return state_of(due.decode(), data.decode(), declared.type, nullable=False)


def _in_union(value: Any, types: Sequence[FieldType]) -> State:
    """Return the state of a union's value in canonical JSON, where moments are milliseconds."""
    if isinstance(value, list | dict):
        return _typed(value, UnionType(of=tuple(types)))
    for one in types:
        with suppress(Rejected):
            return _state_in(value, Field(name="", steps=(), type=one))
    raise Rejected(Code.OPEN_VALUE, "value", "a value of one of the types", value)


def _plain(value: Any) -> State:
    """Return the state of a text, number or flag; null is the listed value."""
    if value is None or isinstance(value, bool):
        return NULL if value is None else ("b", value)
    if isinstance(value, str):
        return "s", value
    if isinstance(value, list | dict):
        raise Rejected(Code.OPEN_VALUE, "value", "a value of the type", type(value).__name__)
    number = Fraction(value)
    return "n", int(number) if number.denominator == 1 else number


def _ensure(holds: bool, expected: str, found: object) -> None:
    if not holds:
        raise Rejected(Code.OPEN_VALUE, "value", expected, found)
