"""The types of open parameters, as a core declares them.

Normative text: docs/spec/core.md, section 2.  Their values: :mod:`tcc_certs.values.types`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class TextType:
    """A text of `least` to `most` code points; all of it matches `pattern`, if there is one."""

    least: int = 0
    most: int = 65536
    pattern: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberType:
    """A number, or a whole one; `low` and `high` are canonical decimals, both or neither."""

    whole: bool
    low: str | None = None
    high: str | None = None


@dataclass(frozen=True, slots=True)
class FlagType:
    """True or false."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonType:
    """Any JSON value whose canonical text has at most `most` bytes."""

    most: int = 65536


OpenType: TypeAlias = TextType | NumberType | FlagType | JsonType


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenParameter:
    """An open parameter of a tool: checked when a call is made, no part of the call's identity."""

    name: str
    type: OpenType
    optional: bool = False
