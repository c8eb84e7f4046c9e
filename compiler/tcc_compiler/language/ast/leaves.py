"""The leaves of the tree: names, texts, numbers and values, and the patterns made of them.

Normative text: docs/spec/language.md, sections 2 and 4.  Every part has its region.
"""

from __future__ import annotations

from fractions import Fraction

from tcc_compiler.frozen import frozen
from tcc_compiler.language.spans import Region


@frozen(kw_only=False)
class Word:
    """A name: the text that it is, which may stand in quotes.

    Attributes:
        quoted: whether it does.
    """

    text: str
    region: Region
    quoted: bool = False


@frozen(kw_only=False)
class Text:
    """The characters that a string literal stands for."""

    value: str
    region: Region


@frozen(kw_only=False)
class Number:
    """A number with its sign, exact."""

    value: Fraction
    region: Region


@frozen(kw_only=False)
class Value:
    """A value of a parameter: its canonical text, and its number where it is one.

    Attributes:
        quoted: whether it stands in quotes.
    """

    text: str
    number: Fraction | None
    region: Region
    quoted: bool = False


@frozen(kw_only=False)
class Argument:
    """``parameter = value | value`` of a pattern."""

    name: Word
    values: tuple[Value, ...]


@frozen(kw_only=False)
class Pattern:
    """A name, perhaps with arguments: a tool pattern, or in an expression the name of a rule."""

    name: Word
    arguments: tuple[Argument, ...]
    region: Region
