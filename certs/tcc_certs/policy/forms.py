"""Forms: what nodes become once words are resolved and short forms are expanded.

:mod:`tcc_certs.policy.kinds` makes forms of nodes, and :mod:`tcc_certs.policy.meaning` evaluates
them.  *Elements* are numbered by levels: level 0 is the call being decided (in the filters of
`owe`, the first call), and each source numbers its elements by the number of sources around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set as AbstractSet
from dataclasses import dataclass, field
from typing import TypeAlias

from tcc_certs.values.places import State
from tcc_certs.values.zones import Zone

# Sets of tools.


class ManyTools(AbstractSet[str]):
    """A large set of tools, with one bit for each tool of the core.

    Args:
        places: of all tools, in order.

    Attributes:
        mask: its bits, the first tool's lowest.
    """

    __slots__ = ("_hash_of", "_places", "mask")

    def __init__(self, mask: int, places: Mapping[str, int]) -> None:
        self.mask, self._places = mask, places
        self._hash_of: int | None = None

    def __contains__(self, tool: object) -> bool:
        at = self._places.get(tool) if isinstance(tool, str) else None
        return at is not None and self.mask >> at & 1 == 1

    def __iter__(self) -> Iterator[str]:
        bits = reversed(f"{self.mask:b}")
        return (name for name, bit in zip(self._places, bits, strict=False) if bit == "1")

    def __len__(self) -> int:
        return self.mask.bit_count()

    def __hash__(self) -> int:
        if self._hash_of is None:
            self._hash_of = self._hash()
        return self._hash_of


Tools: TypeAlias = "frozenset[str] | ManyTools"  # few tools, or many


# Terms.


@dataclass(frozen=True, slots=True)
class Constant:
    """A value."""

    state: State


@dataclass(frozen=True, slots=True)
class Element:
    """The element of a level: a call, a row, or a value of a list."""

    level: int


@dataclass(frozen=True, slots=True)
class Get:
    """A field of a call or of a record."""

    of: Term
    name: str


@dataclass(frozen=True, slots=True)
class CallOf:
    """The call that a row belongs to."""

    of: Term


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of the session."""

    name: str


@dataclass(frozen=True, slots=True)
class Now:
    """The time of the decision."""


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """``+``, ``-`` or ``*`` of two terms, or ``min`` or ``max`` of two."""

    operator: str
    left: Term
    right: Term


@dataclass(frozen=True, slots=True)
class Last:
    """The last element of a source."""

    of: Source


@dataclass(frozen=True, slots=True)
class Count:
    """The number of elements of a source, or of their distinct values."""

    of: Source
    distinct: bool


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of a term over the elements of a source."""

    of: Source
    term: Term


@dataclass(frozen=True, slots=True)
class Extreme:
    """The least or greatest element of a source."""

    of: Source
    greatest: bool


@dataclass(frozen=True, slots=True)
class Clock:
    """``hour``, ``weekday`` or ``day`` of a time in a zone: minutes ahead of UTC, or a record."""

    function: str
    of: Term
    zone: int | Zone


@dataclass(frozen=True, slots=True)
class Host:
    """The host of a URL."""

    of: Term


@dataclass(frozen=True, slots=True)
class Choose:
    """The term of the first arm that has the value of `of`."""

    of: Term
    arms: tuple[tuple[tuple[Term, ...], Term], ...]
    otherwise: Term | None


Term: TypeAlias = (
    "Constant | Element | Get | CallOf | Attribute | Now | Arithmetic | Last | Count | Sum"
    " | Extreme | Clock | Host | Choose"
)


def is_computed(term: Term) -> bool:
    """Whether a term may be the result of a computation, which has no digest."""
    match term:
        case Choose(_, arms, otherwise):
            results = [then for _, then in arms]
            return any(map(is_computed, [*results, *([] if otherwise is None else [otherwise])]))
        case Now() | Arithmetic() | Count() | Sum():
            return True
    return isinstance(term, Extreme | Clock | Host)


# Sources: collections with their filters.


@dataclass(frozen=True, slots=True)
class Calls:
    """The earlier calls of these tools."""

    tools: Tools


@dataclass(frozen=True, slots=True)
class Rows:
    """A field of each element of a source; of a list (`most` elements at most) its elements."""

    of: Source
    get: Term
    most: int | None


@dataclass(frozen=True, slots=True)
class Merged:
    """The elements of several sources of rows, in the order of their calls."""

    parts: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class Items:
    """The elements of a list of at most `most`."""

    of: Term
    most: int


@dataclass(frozen=True, slots=True)
class Pairs:
    """The elements of two lists by position: records of `left` and `right`."""

    left: Term
    right: Term


Base: TypeAlias = "Calls | Rows | Merged | Items | Pairs"


@dataclass(frozen=True, slots=True)
class Key:
    """An argument of the elements equals a term over the call being decided.

    Attributes:
        same: whether absent equals absent, and surely differs from every value.
    """

    name: str
    term: Term
    same: bool


@dataclass(frozen=True, slots=True)
class Source:
    """Elements of a base for which conditions hold, in a window, after the last marks.

    Attributes:
        level: of its elements.
        within: milliseconds; None: there is no window.
        marks: each a source of calls; elements come after the last of each.
        height: how many levels of sources its conditions, its marks and its base have.
        keys: conditions of calls that an index can answer; each is one of `conditions`, too.
    """

    base: Base
    level: int
    conditions: tuple[Condition, ...] = ()
    within: int | None = None
    marks: tuple[Source, ...] = ()
    height: int = 0
    keys: tuple[Key, ...] = ()
    _hash: int = field(default=0, init=False, repr=False, compare=False)

    def __hash__(self) -> int:
        """Kept: the last elements of sources are looked up by their source."""
        if not self._hash:
            members = self.base, self.level, self.conditions, self.within, self.marks
            object.__setattr__(self, "_hash", hash(members))
        return self._hash


# Conditions.


@dataclass(frozen=True, slots=True)
class Some:
    """A source has an element."""

    of: Source


@dataclass(frozen=True, slots=True)
class Every:
    """Conditions hold for every element of a source, at the level of the source."""

    of: Source
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """A condition is not true."""

    of: Condition


@dataclass(frozen=True, slots=True)
class All:
    """All conditions are true."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """One condition is true."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Compare:
    """``=`` with one of `options`, or an order (``<`` ``<=`` ``>`` ``>=``) with the only one."""

    operator: str
    left: Term
    options: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Same:
    """Two terms are equal, or both are absent."""

    left: Term
    right: Term


@dataclass(frozen=True, slots=True)
class Between:
    """A term is in a range, both ends included."""

    of: Term
    low: Term
    high: Term


@dataclass(frozen=True, slots=True)
class Among:
    """A term equals an element of a source."""

    of: Term
    source: Source


@dataclass(frozen=True, slots=True)
class Matches:
    """A text matches a pattern as a whole."""

    of: Term
    pattern: str


@dataclass(frozen=True, slots=True)
class Under:
    """A path or URL is a directory or scope, or inside of it.

    The state of a constant `scope` may be a URL whose host starts with ``*.``.
    """

    of: Term
    scope: Term


@dataclass(frozen=True, slots=True)
class IsOf:
    """The call of a level is of one of these tools."""

    level: int
    tools: Tools


Condition: TypeAlias = (
    "Some | Every | Not | All | AnyOf | Compare | Same | Between | Among | Matches | Under | IsOf"
)


# Rules: statements.


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A statement whose words are resolved.

    Attributes:
        kind: ``require``, ``forbid``, ``ask``, ``owe``, ``limit`` or ``total``.
        tools: the tools that it restricts or counts; None: it is a ``finally`` or a total.
        where: its filter, over level 0.
        then: what a ``require`` requires.
        who: whom an ``ask`` asks.
        pays, paying: of ``owe``: the tools that pay, and their filter over level 1.
        within: of ``ask``, ``owe`` and ``limit``: milliseconds.
        field: of ``limit``: what is added up; None: calls are counted.
        per, most: of ``limit``: terms over level 0.
        across: whether a ``limit`` is held across sessions.
        what, total: of ``total``.
    """

    kind: str
    tools: Tools | None = None
    where: tuple[Condition, ...] = ()
    then: Condition | None = None
    who: str = ""
    pays: Tools = frozenset()
    paying: tuple[Condition, ...] = ()
    keys: tuple[Key, ...] = ()
    within: int | None = None
    field: str | None = None
    per: tuple[Term, ...] = ()
    most: Term | None = None
    across: bool = False
    what: str = ""
    total: str = ""
