"""The plan side of a core: calls with their costs, models, and plan expressions.

Normative text: docs/spec/core.md.  A call set is a tuple of half-open ranges of call indices,
increasing and not touching.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from tcc_certs.policy.atoms import Atom

CallSet: TypeAlias = "tuple[tuple[int, int], ...]"
# What a grammar may let pass a gate, unread: parts of MCP.
PASSABLE = ("input", "prompts", "resources")
HALF = (5, 1)  # the quality of a model that says nothing of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A way of asking what a call of a tool costs, where that is a range, or of making the call.

    Attributes:
        price: cents.  latency: milliseconds.  epsilon: nano.  Unsigned 64 bits.
        adapter: the name of the adapter that it runs with; empty where it names none.
        atom: the mechanism that it privatises what it looks at with; what it takes beside epsilon.
        execute: the model with what making a call takes; None: it makes none.
        quality: the share of a width that it is taken to gain before it has answered, an exact
            decimal above 0, at most 1: its digits and its places.
    """

    name: str
    price: int
    latency: int
    epsilon: int
    adapter: str = ""
    atom: Atom | None = None
    execute: Model | None = None
    quality: tuple[int, int] = HALF


def executing(models: Iterable[Model]) -> tuple[Model, ...]:
    """The models that make calls, each with what that takes, in their order."""
    return tuple([model.execute for model in models if model.execute is not None])


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


def members(calls: CallSet) -> Iterator[int]:
    """The call indices of a set, increasing."""
    for low, high in calls:
        yield from range(low, high)
