"""Monitors as values: statements over open parameters, which no automaton holds.

Normative text: docs/spec/core.md, sections 1 and 5.  :mod:`tcc_certs.core.model` hands these on
with everything else that a core is made of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The calls of a tool that have one of the given values for each bound parameter.

    Attributes:
        tool: index into ``Core.tools``.
        where: pairs of a parameter's place and the indices of its values; both increase.
    """

    tool: int
    where: tuple[tuple[int, tuple[int, ...]], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderMonitor:
    """A `require` or `forbid` between calls that agree in open parameters; a gate holds it.

    Attributes:
        kind: ``require`` with order ``before`` or ``each``; ``forbid`` with ``before`` or ``with``.
        same: pairs of a parameter of `first` and one of `second` that have the same value.
        text: as a grammar writes it.
    """

    kind: Literal["require", "forbid"]
    order: Literal["before", "each", "with"]
    first: Selection
    second: Selection
    same: tuple[tuple[str, str], ...]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SumMonitor:
    """The values of an open parameter add up to at most `value` (canonical decimal text)."""

    tool: int
    parameter: str
    value: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UsesMonitor:
    """At most `value` calls of `calls` agree in their open parameter `per`."""

    calls: Selection
    per: str
    value: int
    text: str


Monitor: TypeAlias = OrderMonitor | SumMonitor | UsesMonitor
