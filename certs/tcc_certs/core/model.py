"""The core as values: what was compiled, after names, letters and sugar are gone.

Normative text: docs/spec/core.md.  :mod:`tcc_certs.core.reader` reads these from bytes.  A call set
is a tuple of half-open ranges of call indices, increasing and not touching.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

CallSet: TypeAlias = "tuple[tuple[int, int], ...]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter and the canonical texts of its values, in declared order."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A way of asking what a call of a tool costs, where that is a range.

    Attributes:
        price: cents.  latency: milliseconds.  epsilon: nano.  Unsigned 64 bits.
    """

    name: str
    price: int
    latency: int
    epsilon: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool.

    Attributes:
        takes, gives: its signature, where it has one.
        models: the ways of asking for a cost, in the order of the grammar.
        quotes_same: whether it promises one cost for each edge, whoever asks, when and how often.
    """

    name: str
    parameters: tuple[Parameter, ...]
    takes: str | None = None
    gives: str | None = None
    models: tuple[Model, ...] = ()
    quotes_same: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool with one value for each parameter.

    Attributes:
        text: canonical text.
        tool: index into ``Core.tools``.
        values: index of each parameter's value.
        cost_low, cost_high: nano-units, signed 64 bits.
        price: cents.  latency: milliseconds.  epsilon: nano.  Unsigned 64 bits.
    """

    text: str
    tool: int
    values: tuple[int, ...]
    cost_low: int
    cost_high: int
    price: int
    latency: int
    epsilon: int


@dataclass(frozen=True, slots=True)
class Empty:
    """The empty sequence."""


@dataclass(frozen=True, slots=True)
class OneCall:
    """One call of a pattern (an index into ``Core.patterns``)."""

    pattern: int


@dataclass(frozen=True, slots=True)
class RuleRef:
    """The plans of a named rule."""

    name: str


@dataclass(frozen=True, slots=True)
class Seq:
    """One after the other."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Alt:
    """Any of them."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Both:
    """All of them: intersection."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Diff:
    """The base, and none of the others."""

    base: Expr
    minus: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """At least `low` and at most `high` times; `high` None is without end."""

    body: Expr
    low: int
    high: int | None


Expr: TypeAlias = Empty | OneCall | RuleRef | Seq | Alt | Both | Diff | Repeat


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit statement.

    Attributes:
        kind: ``depth``, ``uses``, ``price``, ``latency``, ``cost`` or ``epsilon``.
        value: calls, uses, cents, milliseconds or nano-units.
        least: True for ``uses(P) >= n``; every other limit is ``<=``.
        text: canonical text, as the root context document has it.
        calls: for ``uses``, the calls that count; else None.
    """

    kind: Literal["depth", "uses", "price", "latency", "cost", "epsilon"]
    value: int
    text: str
    least: bool = False
    calls: CallSet | None = None


@dataclass(frozen=True, slots=True)
class Require:
    """Every call of pattern `second` has one of pattern `first` strictly before, or after, it."""

    order: Literal["before", "after"]
    first: int
    second: int


@dataclass(frozen=True, slots=True)
class ForbidNext:
    """These patterns never stand next to each other in this order."""

    patterns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ForbidWith:
    """Not a call of `first` and a call of `second` in one plan."""

    first: int
    second: int


@dataclass(frozen=True, kw_only=True)
class Core:
    """A whole resolved grammar; members as in docs/spec/core.md."""

    name: str
    version: str
    tools: tuple[Tool, ...]
    calls: tuple[Call, ...]
    patterns: tuple[CallSet, ...]
    rules: Mapping[str, Expr]
    plan: Expr
    start: str | None
    goals: tuple[str, ...]
    limits: tuple[Limit, ...]
    requires: tuple[Require, ...]
    forbids: tuple[ForbidNext | ForbidWith, ...]

    @cached_property
    def limit_texts(self) -> tuple[str, ...]:
        """The canonical texts of the limits, in order."""
        return tuple(limit.text for limit in self.limits)


def members(calls: CallSet) -> Iterator[int]:
    """The call indices of a set, increasing."""
    for low, high in calls:
        yield from range(low, high)
