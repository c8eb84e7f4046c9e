"""The one core: what a grammar means, after its plans are resolved and its statements are nodes.

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
        takes, gives: the states of its signature, both or neither.
        models: the ways of asking for its cost, or of making its calls.
        quotes_same: every quote for an edge of the tool is the same.
        strict: plans go on after every listed answer that a call may get.
        errors_failed: an error means that nothing happened.
        error_text: the pattern of answers that are texts and report an error.
        parallel: calls may be under way together with calls that they commute with.
        doc: what the author says about the tool.
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
        """The listed arguments, then the listed answers: the parts of a call in plans."""
        return tuple([field for field in (*self.arguments, *self.answers) if field.type is None])


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """An attribute that the session learns: the first known value of these fields.

    Attributes:
        sources: pairs of a tool and one of its fields.
    """

    name: str
    sources: tuple[tuple[str, str], ...]


Given: TypeAlias = "Field | Learned"


@dataclass(frozen=True, kw_only=True)
class Core:
    """A whole grammar; the members are those of docs/spec/core.md.

    Attributes:
        calls: the calls of plans with their costs; the values of a call index the values of its
            tool's `listed` fields, absent first where a field is optional.
        zones: those that the statements name; None if they name none.
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
        """Whether a plan expression says more than that any calls may follow each other."""
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
        """The most calls that these statements allow; None: there is no such statement."""
        totals = [one for one in self.statements if isinstance(one, Total) and one.what == "depth"]
        return min([int(Fraction(one.most) // 1) for one in totals], default=None)

    @property
    def limit_texts(self) -> list[str]:
        """The canonical texts of the limits, in order: part of the root context of races."""
        limits = [one for one in self.statements if isinstance(one, Limit | Total)]
        return [statement_text(limit) for limit in limits]
