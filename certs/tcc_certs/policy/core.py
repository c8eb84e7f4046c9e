"""The core: a grammar with resolved plans, and with its statements as nodes.

Normative text: docs/spec/core.md.  :mod:`tcc_certs.policy.reader` reads a core from bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

from tcc_certs.policy.nodes import Definition, Limit, Statement, Total, statement_text
from tcc_certs.policy.plans import Call, CallSet, Expr, Model, OneCall, Repeat
from tcc_certs.values.fields import Field
from tcc_certs.values.zones import Zones


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool.

    Attributes:
        arguments, answers: its fields in declared order.  A field without a type is listed: its
            values distinguish calls in plans.
        takes, gives: the states of its signature (`in` and `out` of the core), both or neither.
        models: the models that estimate the cost of its calls, or that make its calls.
        quotes_same: whether every quote for an edge of the tool is the same.
        strict: whether a plan must continue after every listed answer that a call may get.
        errors_failed: whether a call that ends in an error had no effect.
        error_text: a pattern; an answer that is a text and matches it is an error.
        parallel: whether calls may be under way together with calls that they commute with.
        doc: the author's description of the tool.
        bind: ``("mcp", server, tool)`` or ``("python", target)``.
    """

    name: str
    arguments: tuple[Field, ...] = ()
    answers: tuple[Field, ...] = ()
    takes: str | None = None
    gives: str | None = None
    models: tuple[Model, ...] = ()
    quotes_same: bool = False
    strict: bool = False
    errors_failed: bool = False
    error_text: str | None = None
    parallel: bool = False
    doc: str | None = None
    bind: tuple[str, ...] | None = None

    @property
    def listed(self) -> tuple[Field, ...]:
        """The listed arguments, then the listed answers.  Their values identify a call in plans."""
        return tuple([field for field in (*self.arguments, *self.answers) if field.type is None])


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """An attribute that the session learns: the first known value that its sources have.

    Attributes:
        sources: pairs of a tool and a field of this tool.
    """

    name: str
    sources: tuple[tuple[str, str], ...]


Given: TypeAlias = "Field | Learned"


@dataclass(frozen=True, kw_only=True)
class Core:
    """A whole grammar, with the members of docs/spec/core.md.

    Attributes:
        calls: the calls of plans with their costs.  The values of a call are indices into the
            values of its tool's `listed` fields.  Index 0 of an optional field means absent.
        passed: the parts of MCP that a gate passes on unread (`pass` of the core).
        zones: the time zones that statements name; None if they name none.
    """

    name: str
    version: str
    tools: tuple[Tool, ...]
    calls: tuple[Call, ...] = ()
    patterns: tuple[CallSet, ...] = ()
    rules: Mapping[str, Expr]
    plan: Expr
    start: str | None = None
    goals: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()
    given: tuple[Given, ...] = ()
    lets: tuple[Definition, ...] = ()
    zones: Zones | None = None
    statements: tuple[Statement, ...] = ()

    @cached_property
    def tool_of(self) -> Mapping[str, Tool]:
        """The tools by their names."""
        return {tool.name: tool for tool in self.tools}

    @property
    def has_plan(self) -> bool:
        """True if the plan restricts sequences of calls; False for a repetition of all calls."""
        match self.plan:
            case Repeat(OneCall(pattern), 0, None):
                return self.patterns[pattern] != ((0, len(self.calls)),)
        return True

    @cached_property
    def depth_totals(self) -> tuple[int, ...]:
        """The numbers of the statements `limit depth <= N`."""
        statements = enumerate(self.statements)
        return tuple(
            [at for at, one in statements if isinstance(one, Total) and one.what == "depth"]
        )

    @cached_property
    def depth(self) -> int | None:
        """The most calls that all `limit depth <= N` allow; None without such a statement."""
        totals = [one for one in self.statements if isinstance(one, Total) and one.what == "depth"]
        return min([int(Fraction(one.most) // 1) for one in totals], default=None)

    @property
    def limit_texts(self) -> list[str]:
        """The canonical texts of the limits and totals, in order, for the root context of races."""
        limits = [one for one in self.statements if isinstance(one, Limit | Total)]
        return [statement_text(limit) for limit in limits]
