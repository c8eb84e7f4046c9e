"""The plan part of a core: calls with their costs, models, and plan expressions.

Normative text: docs/spec/core.md.  A call set is a tuple of half-open ranges of call indices.  The
ranges are increasing and do not touch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from tcc_certs.policy.atoms import Atom

CallSet: TypeAlias = "tuple[tuple[int, int], ...]"
# The parts of MCP that a grammar may name under `pass`: a gate passes them on unread.
PASSABLE = ("input", "prompts", "resources")
HALF = (5, 1)  # quality 0.5, the default of a model: digits and decimal places


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model that narrows the cost range of a tool's calls, or makes its calls.

    Attributes:
        price: cents. latency: milliseconds. epsilon: nano-units.  Unsigned 64 bits.
        adapter: the name of the adapter that runs the model; empty if none is named.
        atom: the privacy mechanism that the model uses; None: it only spends its epsilon.
        execute: the model with the price, latency and epsilon of making a call; None: it makes no
            calls.
        quality: the expected share of a cost range that the answer removes, above 0 and at most 1.
            It is an exact decimal: its digits and its number of decimal places.
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
    """Return the models that make calls, in order, each with the price of making a call."""
    return tuple([model.execute for model in models if model.execute is not None])


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of plans: a tool with a value for each listed field.

    Attributes:
        text: canonical text.
        tool: index into ``Core.tools``.
        values: for each listed field of the tool, the index of its value.
        cost_low, cost_high: nano-units, signed 64 bits.
        price: cents. latency: milliseconds. epsilon: nano-units.  Unsigned 64 bits.
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
    """The empty plan."""


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
    """A plan of each item, in this order."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Alt:
    """The plans of all items: union."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Both:
    """The plans that all items have: intersection."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Diff:
    """The plans of `base` that no member of `minus` has."""

    base: Expr
    minus: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """At least `low` and at most `high` plans of `body` in a row; `high` None is unbounded."""

    body: Expr
    low: int
    high: int | None


Expr: TypeAlias = Empty | OneCall | RuleRef | Seq | Alt | Both | Diff | Repeat


def members(calls: CallSet) -> Iterator[int]:
    """Yield the call indices of a set in increasing order."""
    for low, high in calls:
        yield from range(low, high)
