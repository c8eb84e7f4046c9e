"""The statements of a grammar as values, every part with its region.

Normative text: docs/spec/language.md.
"""

from __future__ import annotations

from typing import TypeAlias

from tcc_compiler.frozen import frozen
from tcc_compiler.language.ast.expressions import Expression
from tcc_compiler.language.ast.leaves import Number, Pattern, Text, Word
from tcc_compiler.language.ast.tools import Attribute, OpenDeclaration, ParameterDeclaration
from tcc_compiler.language.spans import Region


@frozen(kw_only=False)
class GrammarStatement:
    """``grammar NAME version "V"``."""

    name: Word
    version: Text
    region: Region


@frozen(kw_only=False)
class CurrencyStatement:
    """``currency "label"``."""

    label: Text
    region: Region


@frozen(kw_only=False)
class UseStatement:
    """``use "file"``."""

    path: Text
    region: Region


@frozen(kw_only=False)
class ToolStatement:
    """``tool NAME(listed; opened) gives (observed) : takes -> gives { attributes }``."""

    name: Word
    parameters: tuple[ParameterDeclaration, ...]
    opened: tuple[OpenDeclaration | ParameterDeclaration, ...]
    observed: tuple[ParameterDeclaration, ...]
    signature: tuple[Word, Word] | None
    attributes: tuple[Attribute, ...]
    region: Region


@frozen(kw_only=False)
class RuleStatement:
    """``rule NAME = body``."""

    name: Word
    body: Expression
    region: Region


@frozen(kw_only=False)
class PlanStatement:
    """``plan = body``."""

    body: Expression
    region: Region


@frozen(kw_only=False)
class StartStatement:
    """``start STATE``."""

    state: Word
    region: Region


@frozen(kw_only=False)
class GoalStatement:
    """``goal S1 | S2``."""

    states: tuple[Word, ...]
    region: Region


@frozen(kw_only=False)
class LimitStatement:
    """``limit KIND <= number``; `pattern` for uses, `unit` for latency.

    Attributes:
        per: the parameter of ``uses(P) per p``.
        total: the tool and the parameter of ``sum(tool.p)``.
    """

    kind: str
    op: str
    number: Number
    unit: str | None
    pattern: Pattern | None
    region: Region
    per: Word | None = None
    total: tuple[Word, Word] | None = None


@frozen(kw_only=False)
class Pair:
    """A pair of ``same``: a parameter of the first pattern, and one of the second."""

    first: Word
    second: Word


@frozen(kw_only=False)
class RequireStatement:
    """``require A before B``, ``before each B`` (order ``each``) or ``after B``."""

    order: str
    first: Pattern
    second: Pattern
    region: Region
    same: tuple[Pair, ...] = ()


@frozen(kw_only=False)
class ForbidStatement:
    """``forbid P1 P2 ..`` (order ``next``), ``forbid A with B`` or ``forbid A before B``."""

    patterns: tuple[Pattern, ...]
    order: str
    region: Region
    same: tuple[Pair, ...] = ()


@frozen(kw_only=False)
class ExampleStatement:
    """``accept ..`` or ``reject ..``; no pattern stands for the empty plan."""

    accept: bool
    patterns: tuple[Pattern, ...]
    region: Region


@frozen(kw_only=False)
class ExpectStatement:
    """``expect WHAT OP number``."""

    what: str
    op: str
    number: Number
    region: Region


@frozen(kw_only=False)
class Broken:
    """A statement with an error in it: its first word, and the names that it would have defined."""

    keyword: str
    names: tuple[Word, ...]
    region: Region


Statement: TypeAlias = (
    GrammarStatement
    | CurrencyStatement
    | UseStatement
    | ToolStatement
    | RuleStatement
    | PlanStatement
    | StartStatement
    | GoalStatement
    | LimitStatement
    | RequireStatement
    | ForbidStatement
    | ExampleStatement
    | ExpectStatement
    | Broken
)
