"""Forms: nodes after words are resolved and short forms are expanded.

:mod:`tcc_certs.policy.kinds` makes forms from nodes, and :mod:`tcc_certs.policy.meaning` evaluates
them. *Elements* have levels.  Level 0 is the call being decided; in the filters of `owe` it is the
first call.  The level of a source's elements is the number of levels around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set as AbstractSet
from dataclasses import dataclass, field
from typing import TypeAlias

from tcc_certs.values.places import State
from tcc_certs.values.zones import Zone

# Sets of tools.


class ManyTools(AbstractSet[str]):
    """A large set of tools, stored as a bit mask over the tools of the core.

    Args:
        places: by name, the index of each tool of the core, in order.

    Attributes:
        mask: the bits of the set; the lowest bit is the first tool.
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


Tools: TypeAlias = "frozenset[str] | ManyTools"  # a small set, or a large set


# Terms.


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant state."""

    state: State


@dataclass(frozen=True, slots=True)
class Element:
    """The element of a level: a call, a row, or an element of a list."""

    level: int


@dataclass(frozen=True, slots=True)
class Get:
    """A field of a call, a row or a record."""

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
    """The number of elements of a source, or of their distinct values if `distinct`."""

    of: Source
    distinct: bool


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of a term over the elements of a source."""

    of: Source
    term: Term


@dataclass(frozen=True, slots=True)
class Extreme:
    """The greatest element of a source, or the least element if not `greatest`."""

    of: Source
    greatest: bool


@dataclass(frozen=True, slots=True)
class Clock:
    """``hour``, ``weekday`` or ``day`` of a time.

    `zone` is minutes ahead of UTC, or a recorded zone.
    """

    function: str
    of: Term
    zone: int | Zone


@dataclass(frozen=True, slots=True)
class Host:
    """The host of a URL."""

    of: Term


@dataclass(frozen=True, slots=True)
class Choose:
    """A `match`: the term of the first arm that lists the value of `of`, or `otherwise`."""

    of: Term
    arms: tuple[tuple[tuple[Term, ...], Term], ...]
    otherwise: Term | None


Term: TypeAlias = (
    "Constant | Element | Get | CallOf | Attribute | Now | Arithmetic | Last | Count | Sum"
    " | Extreme | Clock | Host | Choose"
)


def is_computed(term: Term) -> bool:
    """Return whether a term may be the result of a computation; such a value has no digest."""
    match term:
        case Choose(_, arms, otherwise):
            results = [then for _, then in arms]
            return any(map(is_computed, [*results, *([] if otherwise is None else [otherwise])]))
        case Now() | Arithmetic() | Count() | Sum():
            return True
    return isinstance(term, Extreme | Clock | Host)


# Sources: collections and their filters.


@dataclass(frozen=True, slots=True)
class Calls:
    """The earlier calls of these tools."""

    tools: Tools


@dataclass(frozen=True, slots=True)
class Rows:
    """The values of a field of each element of a source.

    If the field is a list of at most `most` elements, the rows are the elements of these lists.
    """

    of: Source
    get: Term
    most: int | None


@dataclass(frozen=True, slots=True)
class Merged:
    """The elements of several sources of rows, in the order of their calls."""

    parts: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class Items:
    """The elements of a list that has at most `most`."""

    of: Term
    most: int


@dataclass(frozen=True, slots=True)
class Pairs:
    """The elements of two lists by position, as records with the fields `left` and `right`."""

    left: Term
    right: Term


Base: TypeAlias = "Calls | Rows | Merged | Items | Pairs"


@dataclass(frozen=True, slots=True)
class Key:
    """A condition that an argument of the elements equals a term over the call being decided.

    Attributes:
        same: whether absent equals absent, and surely differs from every value.
    """

    name: str
    term: Term
    same: bool


@dataclass(frozen=True, slots=True)
class Source:
    """The elements of a base for which all conditions hold, in a window, after the last marks.

    Attributes:
        level: the level of its elements.
        within: the length of the window in milliseconds; None: no window.
        marks: sources of calls.  Elements are after the last call of each mark.
        height: the number of nested sources in its conditions, its marks and its base.
        keys: the conditions that an index of calls can answer; each is also in `conditions`.
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
        """Return the hash, which is computed once: evaluations look up last elements by source."""
        if not self._hash:
            members = self.base, self.level, self.conditions, self.within, self.marks
            object.__setattr__(self, "_hash", hash(members))
        return self._hash


# Conditions.


@dataclass(frozen=True, slots=True)
class Some:
    """A source has at least one element."""

    of: Source


@dataclass(frozen=True, slots=True)
class Every:
    """Conditions hold for every element of a source; they use the level of the source."""

    of: Source
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The negation of a condition."""

    of: Condition


@dataclass(frozen=True, slots=True)
class All:
    """The conjunction of conditions."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """The disjunction of conditions."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Compare:
    """A comparison: ``=`` with any option, or ``<``, ``<=``, ``>``, ``>=`` with the only option."""

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
    """A term is in a range, ends included."""

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
    """A whole text matches a pattern."""

    of: Term
    pattern: str


@dataclass(frozen=True, slots=True)
class Under:
    """A path or URL is the directory or scope `scope`, or inside of it.

    A constant `scope` may be a URL whose host starts with ``*.``.
    """

    of: Term
    scope: Term


@dataclass(frozen=True, slots=True)
class IsOf:
    """The element of a level is a call of these tools."""

    level: int
    tools: Tools


Condition: TypeAlias = (
    "Some | Every | Not | All | AnyOf | Compare | Same | Between | Among | Matches | Under | IsOf"
)


# Rules: statements with resolved words.


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A statement with resolved words.

    Attributes:
        kind: ``require``, ``forbid``, ``ask``, ``owe``, ``limit`` or ``total``.
        tools: the tools whose calls it restricts or counts; None for a ``finally`` or a total.
        where: its filter, over level 0.
        then: the condition of a ``require``.
        who: the person or group that an ``ask`` asks.
        pays, paying: for ``owe``, the tools that pay, and their filter over level 1.
        keys: for ``owe``, the keys of the paying calls.
        within: for ``ask``, ``owe`` and ``limit``, milliseconds.
        field: for ``limit``, the field to sum; None: count calls.
        per, most: for ``limit``, terms over level 0.
        across: for ``limit``, whether it counts across sessions.
        what, total: for ``total``, the quantity and its bound.
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
