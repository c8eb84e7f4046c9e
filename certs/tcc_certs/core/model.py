"""The core as values: what was compiled, after names, letters and sugar are gone.

Normative text: docs/spec/core.md.  :mod:`tcc_certs.core.reader` reads these from bytes.  A call set
is a tuple of half-open ranges of call indices, increasing and not touching.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

from tcc_certs.policy.plans import (
    HALF as HALF,
    PASSABLE as PASSABLE,
    Alt as Alt,
    Both as Both,
    Call as Call,
    CallSet as CallSet,
    Diff as Diff,
    Empty as Empty,
    Expr as Expr,
    Model as Model,
    OneCall as OneCall,
    Repeat as Repeat,
    RuleRef as RuleRef,
    Seq as Seq,
    executing as executing,
    members as members,
)
from tcc_certs.values.declared import OpenParameter

if TYPE_CHECKING:
    from tcc_certs.core.policies import Let, LookUp, Policy


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


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyMonitor:
    """A statement of version 1.2 that a gate holds."""

    policy: Policy
    text: str


Monitor: TypeAlias = OrderMonitor | SumMonitor | UsesMonitor | PolicyMonitor


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter and the canonical texts of its values, in declared order.

    Attributes:
        values: the empty text, which only the first may be, stands for an absent parameter; ``*``,
            which only the last of an observed one may be, for all that is not listed.
        observed: whether the world chooses the value, and not who makes the call.
        at: the steps to its place; None: it is the member of its name.
    """

    name: str
    values: tuple[str, ...]
    observed: bool = False
    at: tuple[str, ...] | None = None

    @property
    def optional(self) -> bool:
        """Whether a call may leave this parameter out."""
        return self.values[0] == ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool.

    Attributes:
        takes, gives: its signature, where it has one.
        models: the ways of asking for a cost, in the order of the grammar.
        quotes_same: whether it promises one cost for each edge, whoever asks, when and how often.
        opened: its open parameters, in declared order; no part of a call's identity.
        strict: whether plans go on after every answer that a call of it may get.
        errors_failed: whether an error of it means that nothing happened.
        answers: its open answers, in declared order; they tell no calls apart.
        parallel: whether calls of it may be under way beside others that they commute with.
        error_text: the pattern of answers that are texts and say an error; None: it has none.
    """

    name: str
    parameters: tuple[Parameter, ...]
    takes: str | None = None
    gives: str | None = None
    models: tuple[Model, ...] = ()
    quotes_same: bool = False
    opened: tuple[OpenParameter, ...] = ()
    strict: bool = False
    errors_failed: bool = False
    answers: tuple[OpenParameter, ...] = ()
    parallel: bool = False
    error_text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit statement.

    Attributes:
        kind: ``depth``, ``uses``, ``price``, ``latency``, ``cost``, ``epsilon`` or ``sum``.
        value: calls, uses, cents, milliseconds or nano-units.
        least: True for ``uses(P) >= n``; every other limit is ``<=``.
        text: canonical text, as the root context document has it.
        calls: for ``uses``, the calls that count; else None.
        parameter: for ``sum``, the tool and the place of its parameter that is added up; else None.
    """

    kind: Literal["depth", "uses", "price", "latency", "cost", "epsilon", "sum"]
    value: int
    text: str
    least: bool = False
    calls: CallSet | None = None
    parameter: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Require:
    """Every call of pattern `second` has one of pattern `first` strictly before, or after, it.

    Attributes:
        order: ``each`` asks for one strictly between it and the call of `second` before it.
    """

    order: Literal["before", "after", "each"]
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


@dataclass(frozen=True, slots=True)
class ForbidBefore:
    """No call of `first` strictly before a call of `second`."""

    first: int
    second: int


Forbid: TypeAlias = ForbidNext | ForbidWith | ForbidBefore


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
    forbids: tuple[Forbid, ...]
    monitors: tuple[Monitor, ...] = ()
    given: tuple[OpenParameter, ...] = ()
    lets: tuple[Let, ...] = ()
    looks: tuple[LookUp, ...] = ()
    passed: tuple[str, ...] = ()

    @cached_property
    def limit_texts(self) -> tuple[str, ...]:
        """The canonical texts of the limits, in order."""
        return tuple(limit.text for limit in self.limits)
