"""What a tool is declared with: its parameters, its amounts and its other attributes.

Normative text: docs/spec/language.md.  Every part has its region.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal, TypeAlias

from tcc_compiler.frozen import frozen
from tcc_compiler.language.ast.leaves import Number, Text, Value, Word
from tcc_compiler.language.spans import Region


@frozen(kw_only=False)
class Arithmetic:
    """An arithmetic expression in postfix order.

    Attributes:
        code: numbers and names push; ``+``, ``-``, ``*`` take two; ``~`` turns the sign of one.
        height: how deeply signs and parentheses are nested.
    """

    code: tuple[Fraction | Word | Literal["+", "-", "*", "~"], ...]
    region: Region
    height: int


@frozen(kw_only=False)
class Condition:
    """``when parameter = value | value``."""

    name: Word
    values: tuple[Value, ...]


@frozen
class Amount:
    """``cost``, ``price``, ``latency`` or ``epsilon`` of a tool; `high` only of a cost interval."""

    kind: str
    low: Arithmetic
    high: Arithmetic | None
    unit: str | None
    when: Condition | None
    region: Region


@frozen(kw_only=False)
class Doc:
    """``doc "text"``."""

    text: Text
    region: Region


@frozen(kw_only=False)
class Quotes:
    """``quotes same``."""

    region: Region


@frozen(kw_only=False)
class Strict:
    """``strict``."""

    region: Region


@frozen(kw_only=False)
class Errors:
    """``errors mean failed``."""

    region: Region


@frozen(kw_only=False)
class BindMcp:
    """``bind mcp "server" "tool"``."""

    server: Text
    tool: Text
    region: Region


@frozen(kw_only=False)
class BindPython:
    """``bind python "module:function"``."""

    target: Text
    region: Region


@frozen(kw_only=False)
class ModelPart:
    """A member of a model: a number with its unit, or the text of ``adapter``."""

    kind: str
    number: Number | None
    unit: str | None
    text: Text | None
    region: Region


@frozen(kw_only=False)
class ModelAtom:
    """``atom laplace(2, 1) times 3``: the mechanism that a model privatises with."""

    mechanism: Word
    numbers: tuple[Number, ...]
    times: Number | None
    region: Region
    kind: str = "atom"


@frozen(kw_only=False)
class ModelExecute:
    """``execute``, or ``execute { .. }`` with what differs from what asking takes."""

    parts: tuple[ModelPart | ModelAtom, ...]
    region: Region
    kind: str = "execute"


@frozen(kw_only=False)
class Model:
    """``model NAME { .. }``."""

    name: Word
    parts: tuple[ModelPart | ModelAtom | ModelExecute, ...]
    region: Region


Attribute: TypeAlias = Amount | Doc | Quotes | Strict | Errors | BindMcp | BindPython | Model


@frozen(kw_only=False)
class Domain:
    """The values of a parameter: listed, or the ends of an integer range."""

    values: tuple[Value, ...]
    ends: tuple[Number, Number] | None
    region: Region


@frozen(kw_only=False)
class ParameterDeclaration:
    """``name: domain``, or ``name?: domain``."""

    name: Word
    domain: Domain
    optional: bool = False


@frozen
class TypePart:
    """What limits a type: ``min n``, ``max n``, ``~ "pattern"`` or ``LOW .. HIGH``.

    Attributes:
        kind: ``min``, ``max``, ``~`` or ``..``.
        numbers: one, none, or the two ends.
    """

    kind: str
    numbers: tuple[Number, ...]
    text: Text | None
    region: Region


@frozen
class OpenDeclaration:
    """``name: type``, or ``name?: type``, behind the semicolon."""

    name: Word
    optional: bool
    type: Word
    parts: tuple[TypePart, ...]


@frozen
class Parameters:
    """What stands in the parentheses of a tool.

    Attributes:
        opened: behind the semicolon; a listed one that stands there has no place in it.
    """

    listed: tuple[ParameterDeclaration, ...] = ()
    opened: tuple[OpenDeclaration | ParameterDeclaration, ...] = ()
