"""Faults, scopes of words, and the results of reading a node: drafts, values, options, truths."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from tcc_certs.policy import forms, nodes
from tcc_certs.policy.forms import Condition, Source, Term
from tcc_certs.policy.kinds.values import NOTHING, Kind, kind_of, readable
from tcc_certs.policy.nodes import Node
from tcc_certs.values import places
from tcc_certs.values.fields import Field


class Fault(Exception):
    """A mistake in a statement.

    Attributes:
        code: TCC code of the mistake, or D201 for a bound of work.
        node: the node with the mistake.
        message: a sentence about the mistake.
        instead: the text to write instead; empty if no text is known.
        known: the names or values that fit at the place, if they were computed.
        about: a word that distinguishes mistakes with the same code.
    """

    def __init__(
        self, code: str, node: object, message: str, instead: str = "", *,
        known: Iterable[str] = (), about: str = "",
    ) -> None:  # fmt: skip
        super().__init__(f"{code}: {message}")
        self.code, self.node, self.message, self.instead = code, node, message, instead
        self.known, self.about = tuple(known), about


# Scopes.


@dataclass(slots=True, kw_only=True, eq=False)
class Scope:
    """The meanings that words can have at a place.  A scope is immutable.

    Attributes:
        elements: by level, the kind of the element, and the kind of the call that it belongs to.
        bare, it, this: the level of bare field names, of `it` and of `this`; None: not allowed.
        names: the lets of the block and the parameters in scope.
        within: the names of the lets whose bodies contain the place.
    """

    elements: tuple[tuple[Kind, Kind | None], ...]
    bare: int | None
    it: int | None
    this: int | None
    names: Mapping[str, Bound] = field(default_factory=dict)
    within: frozenset[str] = frozenset()

    def inside(
        self, elements: tuple[tuple[Kind, Kind | None], ...], bare: int | None, it: int | None,
        this: int | None,
    ) -> Scope:  # fmt: skip
        """Return this scope with other elements."""
        return Scope(
            elements=elements, bare=bare, it=it, this=this, names=self.names, within=self.within
        )


@dataclass(frozen=True, slots=True)
class Bound:
    """A `let`, or the argument for a parameter, with the scope in which its words are resolved."""

    body: Node
    scope: Scope | None  # None: the scope of the file
    parameters: tuple[str, ...] = ()
    name: str = ""


FILE_SCOPE = Scope(elements=((NOTHING, None),), bare=None, it=None, this=None)


def no_call() -> Scope:
    """Return the scope of `finally`."""
    return Scope(elements=((NOTHING, None),), bare=None, it=None, this=None)


# Things.


@dataclass(slots=True)
class Draft:
    """A source under construction: filters and modifiers can be added.

    Attributes:
        own, call: the kind of its elements, and the kind of the calls that they belong to.
        filtered: the number of conditions of its last filter.
        unfiltered: for calls, the mask of the tools before the last filter.
        wide: whether the set was written with `any`.
    """

    base: forms.Base
    level: int
    own: Kind
    call: Kind | None
    conditions: list[Condition] = field(default_factory=list)
    filtered: int = 0
    unfiltered: int = 0
    within: int | None = None
    marks: list[Source] = field(default_factory=list)
    height: int = 0
    wide: bool = False

    @property
    def is_calls(self) -> bool:
        """True for a source of calls, False for rows and lists."""
        return isinstance(self.base, forms.Calls)

    @property
    def is_plain(self) -> bool:
        """True for a set of calls without filters and modifiers."""
        return self.is_calls and not (self.conditions or self.marks) and self.within is None


@dataclass(slots=True, eq=False)
class Value:
    """A term, its kind, and the kind of the call that its element belongs to."""

    term: Term
    kind: Kind
    call: Kind | None = None


@dataclass(slots=True, eq=False)
class Options:
    """The values of ``a | b``, their scope, and the kind of the other side of the comparison."""

    parts: tuple[Node, ...]
    scope: Scope
    beside: Kind | None


@dataclass(slots=True, eq=False)
class Truth:
    """A condition."""

    condition: Condition


Thing: TypeAlias = "Draft | Value | Options | Truth"


def is_list(thing: Thing) -> bool:
    """Return True for a term that is a list."""
    return isinstance(thing, Value) and thing.kind.name == "list"


def reads_as(kind: Kind, value: Value) -> bool:
    """Return True if a constant text is read as a time, a date, a path or a URL."""
    text = isinstance(value.term, forms.Constant) and value.kind.name == "text"
    return text and bool(readable(kind))


def fits_as(kind: Kind, want: str) -> bool:
    """Return True if a field of this kind fits where `want` is expected."""
    if want in ("term", "any"):
        return True
    if want == "condition":
        return kind.name in ("flag", "list")
    return (want == "base" and kind.name in ("record", "list")) or (
        want in ("source", "applied") and kind.name == "list"
    )


def shape_fits(shape: str, want: str) -> bool:
    """Return True if a `let` whose body has this shape fits where `want` is expected."""
    if want == "any" or shape == "any":
        return want != "set"
    return (
        want
        in {
            "condition": ("condition",),
            "set": ("set", "source", "condition", "base", "applied"),
            "source": ("set", "source", "condition", "base", "applied"),
            "term": ("term",),
        }[shape]
    )


# Fields by their names.


class NamedFields:
    """The fields of one name, by the index of their tool."""

    def __init__(self) -> None:
        self.of: dict[int, tuple[Field, bool]] = {}  # the field, and whether it is an answer

    @cached_property
    def has(self) -> int:
        """The tools that have such a field."""
        return mask_of(self.of)

    @cached_property
    def arguments(self) -> int:
        """The tools that have such an argument."""
        return mask_of([at for at, (_, answer) in self.of.items() if not answer])

    @cached_property
    def slots(self) -> tuple[tuple[Kind, bool, int], ...]:
        """Each different kind, whether it is the kind of answers, and the mask of its tools."""
        found: dict[tuple[Kind, bool], list[int]] = {}
        for at, (declared, answer) in self.of.items():
            found.setdefault((kind_of(declared), answer), []).append(at)
        return tuple([(kind, answer, mask_of(tools)) for (kind, answer), tools in found.items()])


def mask_of(tools: Collection[int]) -> int:
    """Return the mask of the tools with these indices."""
    bits = bytearray(max(tools, default=0) // 8 + 1)
    for at in tools:
        bits[at >> 3] |= 1 << (at & 7)
    return int.from_bytes(bits, "little")


NOWHERE = NamedFields()


# Durations.


def milliseconds(amount: str, unit: str, node: Node) -> int:
    """Return the exact length of a duration in milliseconds.

    Raises:
        Fault: TCC225: it is no whole number of milliseconds.
    """
    exact = places.exact_number(amount) * nodes.UNITS[unit]
    if exact.denominator != 1:
        raise Fault("TCC225", node, "A duration is a whole number of milliseconds.")
    return int(exact)


def span_of(span: nodes.Duration) -> int:
    """Return the length of a duration in milliseconds."""
    return milliseconds(span.amount, span.unit, span)
