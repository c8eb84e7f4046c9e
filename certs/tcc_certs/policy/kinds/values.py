"""Kinds of terms and elements, which kinds are comparable, and how constants are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tcc_certs.values import places
from tcc_certs.values.declared import (
    FlagType,
    JsonType,
    NumberType,
    PathType,
    TextType,
    UrlType,
    text_of,
)
from tcc_certs.values.fields import (
    MOST_ELEMENTS,
    DateType,
    Field,
    FieldType,
    ListType,
    NullableType,
    RecordType,
    TimeType,
    UnionType,
)
from tcc_certs.values.places import State
from tcc_certs.values.zones import DAY, Zone

MAX_SHOWN = 12  # most listed values in a message


class Listed:
    """The values of a listed field.

    Values are compared by their canonical texts.  Python randomizes hashes of texts, so an author
    cannot cause collisions.

    Attributes:
        texts: canonical texts in declared order, without ``*``.
    """

    __slots__ = ("_hash", "_set", "texts")

    def __init__(self, texts: Sequence[str] = ()) -> None:
        self.texts = tuple(texts)
        self._set = frozenset(self.texts)
        self._hash = hash(self.texts)

    def __bool__(self) -> bool:
        return bool(self.texts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Listed) and self.texts == other.texts

    def __hash__(self) -> int:
        return self._hash

    def __contains__(self, state: State) -> bool:
        return _state_text(state) in self._set


def _state_text(state: State) -> str | None:
    """The canonical text of a constant."""
    name, value = state
    return places.decimal_of(value) if name == "n" else text_of(value)


NO_VALUES = Listed()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """The kind of a term or an element.

    Attributes:
        name: ``call``, ``record``, ``list``, or a scalar: ``text``, ``number``, ``flag``, ``time``,
            ``date``, ``path``, ``url``, ``span``, ``json``, ``null``, ``mixed`` (listed values of
            several types), ``union`` (a value of one type among several).
        tools: for a call, the mask of its tools.
        wide: for a call, whether its set was written with `any`.
        decided: for a call, whether it is the call being decided, whose answers do not exist yet.
        members: for a record, the names and kinds of its members.
        choices: for a union, the kinds of its types.
        of, most: for a list, the kind of its elements, and their greatest number.
        listed: the values of a listed field.
        rest: whether a listed field also has values that are not listed.
        minutes: the zone in which texts of a time or date are read, in minutes ahead of UTC.  For a
            date it may be a recorded zone.
    """

    name: str
    tools: int = 0
    wide: bool = False
    decided: bool = False
    members: tuple[tuple[str, Kind], ...] = ()
    choices: tuple[Kind, ...] = ()
    of: Kind | None = None
    most: int = 0
    listed: Listed = NO_VALUES
    rest: bool = False
    minutes: int | Zone | None = None


FLAG = Kind(name="flag")
NUMBER = Kind(name="number")
TEXT = Kind(name="text")
TIME = Kind(name="time")
SPAN = Kind(name="span")
NOTHING = Kind(name="nothing")
PLURAL = {"call": "calls", "list": "lists", "record": "records"}


def kind_of(declared: Field) -> Kind:
    """Return the kind of a field, listed or open."""
    if declared.type is not None:
        return kind_of_type(declared.type)
    texts = [text for text in declared.values if text and text != "*"]
    letters = {places.constant(text)[0] for text in texts if text != "null"}
    name = {"s": "text", "n": "number", "b": "flag"}.get("".join(sorted(letters)), "mixed")
    return Kind(name=name, listed=Listed(texts), rest="*" in declared.values[-1:])


def kind_of_type(declared: FieldType) -> Kind:
    """Return the kind of a declared type."""
    match declared:
        case TextType():
            return TEXT
        case NumberType():
            return NUMBER
        case FlagType():
            return FLAG
        case JsonType():
            return Kind(name="json")
        case TimeType(zone=zone):
            return Kind(name="time", minutes=zone)
        case DateType(zone=zone):
            return Kind(name="date", minutes=zone)
        case PathType():
            return Kind(name="path")
        case UrlType():
            return Kind(name="url")
        case ListType(of=of, most=most):
            most = max(1, min(most, MOST_ELEMENTS))
            return Kind(name="list", of=kind_of_type(of), most=most)
        case RecordType(fields=members):
            return Kind(name="record", members=tuple([(m.name, kind_of(m)) for m in members]))
        case NullableType(of=of):
            return kind_of_type(of)
        case UnionType(of=types):
            return Kind(name="union", choices=tuple(map(kind_of_type, types)))
    raise TypeError(declared)


def plain_kind(kind: Kind) -> Kind:
    """Return the kind without its listed values."""
    return Kind(name=kind.name, minutes=kind.minutes)


MOMENTS = frozenset({"time", "date"})
LOCATED = frozenset({"path", "url"})
_READ = MOMENTS | LOCATED  # constant texts next to these kinds are read as their values
NAMED = {"path": "absolute path", "url": "absolute http or https URL"}
_SCALARS = frozenset({"text", "number", "flag", "mixed"})


def comparable(one: Kind, other: Kind) -> bool:
    """Return True if values of two kinds can be compared by ``=``."""
    if one.choices or other.choices:
        return _share_a_choice(one, other)
    names = {one.name, other.name}
    if "null" in names or (len(names) == 1 and "call" not in names):
        return True
    return names <= MOMENTS or ("mixed" in names and names <= _SCALARS)


def _share_a_choice(one: Kind, other: Kind) -> bool:
    """Return True if a value of a union can equal a value of another kind.

    A list or object in a union is a whole JSON value, so it equals no value outside of a union.
    """
    if one == other or "null" in (one.name, other.name):
        return True
    sides = [kind.choices or (kind,) for kind in (one, other)]
    plain = [[kind for kind in side if kind.name not in ("list", "record")] for side in sides]
    return any(comparable(a, b) for a in plain[0] for b in plain[1])


def readable(kind: Kind) -> tuple[Kind, ...]:
    """Return the kinds among `kind` and its choices whose constants are written as texts."""
    choices = kind.choices or (kind,)
    if any(choice.name in ("text", "mixed") for choice in choices):
        return ()
    return tuple([choice for choice in choices if choice.name in _READ])


def read_as(kind: Kind, text: str) -> State:
    """Read a constant text that is compared with a kind.

    Raises:
        Wrong: the text cannot be read as this kind.
        Rejected: the text is no path or URL.
    """
    if kind.name in LOCATED:
        return places.typed(text, PathType() if kind.name == "path" else UrlType())
    zone = kind.minutes
    if len(text) > len("2026-01-31"):
        # A local time is ambiguous or missing when the zone changes its offset.
        return places.typed(text, TimeType(zone=None if isinstance(zone, Zone) else zone))
    if not isinstance(zone, Zone):
        return places.typed(text, DateType(zone=zone or 0))
    start = zone.day_start(places.typed(text, DateType())[1] // DAY)
    if start is None:
        raise places.Wrong
    return "t", start


_SUMS: Mapping[tuple[str, str, str], str] = {
    ("+", "number", "number"): "number",
    ("-", "number", "number"): "number",
    ("*", "number", "number"): "number",
    ("*", "number", "span"): "span",
    ("*", "span", "number"): "span",
    ("+", "span", "span"): "span",
    ("-", "span", "span"): "span",
    ("+", "time", "span"): "time",
    ("+", "span", "time"): "time",
    ("-", "time", "span"): "time",
    ("-", "time", "time"): "span",
}


def arithmetic_kind(sign: str, one: str, other: str) -> str | None:
    """Return the name of the kind of ``one sign other``; None: the operation is not allowed."""
    moments = ["time" if name == "date" else name for name in (one, other)]
    return _SUMS.get((sign, *moments))  # type: ignore[arg-type]


def never_negative(declared: Field) -> bool:
    """Return True if no value of a field is below 0."""
    if declared.type is None:
        states = [places.constant(text) for text in declared.values if text]
        return all(state[0] == "n" and state[1] >= 0 for state in states)
    kind = declared.type
    low = kind.low if isinstance(kind, NumberType) else None
    return low is not None and not low.startswith("-")


def listed_text(kind: Kind) -> str:
    """Return at most `MAX_SHOWN` listed values of a kind, for a message."""
    texts = kind.listed.texts
    return ", ".join(texts[:MAX_SHOWN]) + (", .." if len(texts) > MAX_SHOWN else "")
