"""The schemas of numbers as domains: ranges that are listed, and numbers between bounds.

A bound that a schema does not give beside its other one is made up, 2^53 - 1 from zero.
Normative text: docs/spec/language.md, section 12.  Cost: constant.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from tcc_compiler.imports.mcp_domains import Domain, Losses, canonical_text, is_number

_RANGE = 64
_DIGITS = 400
_SAFE = (1 << 53) - 1
_BOUNDS = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"))


def integer_domain(schema: Mapping[str, Any]) -> Domain | None:
    """The domain of a whole number; None where no value is one."""
    losses = Losses()
    low, high = _whole_bounds(schema)
    if low is not None and high is not None and low > high:
        return None
    lost = losses.other(schema, _BOUNDS)
    if low is None and high is None:
        return Domain(text="integer", lost=lost)
    first, last = _surviving(low, high)
    if first > last:
        return Domain(text="integer", lost=(*lost, "its bounds are not held: no double has them"))
    opened = Domain(text=f"integer {first} .. {last}", lost=lost)
    if last - first < _RANGE:
        return Domain(text=f"{first}..{last}", values=last - first + 1, opened=opened, lost=lost)
    return opened


def _surviving(low: int | None, high: int | None) -> tuple[int, int]:
    """The bounds, each made up where there is none, within the whole numbers of a double."""
    return max(-_SAFE, -_SAFE if low is None else low), min(_SAFE, _SAFE if high is None else high)


def _whole_bounds(schema: Mapping[str, Any]) -> tuple[int | None, int | None]:
    lows = [math.ceil(value) for value in numbers_of(schema, "minimum")]
    lows += [math.floor(value) + 1 for value in numbers_of(schema, "exclusiveMinimum")]
    highs = [math.floor(value) for value in numbers_of(schema, "maximum")]
    highs += [math.ceil(value) - 1 for value in numbers_of(schema, "exclusiveMaximum")]
    return max(lows, default=None), min(highs, default=None)


def number_domain(schema: Mapping[str, Any]) -> Domain | None:
    """The domain of a number; None where no value is one."""
    losses = Losses()
    lows = numbers_of(schema, "minimum") + numbers_of(schema, "exclusiveMinimum")
    highs = numbers_of(schema, "maximum") + numbers_of(schema, "exclusiveMaximum")
    low, high = max(lows, default=None), min(highs, default=None)
    if low is not None and high is not None and low > high:
        return None
    _exclusive(schema, losses)
    if low is None and high is None:
        return Domain(text="number", lost=losses.other(schema, _BOUNDS))
    first = canonical_text(-_SAFE if low is None else low)
    last = canonical_text(_SAFE if high is None else high)
    if first is None or last is None or Decimal(first) > Decimal(last):
        losses.said.append("its bounds are not held: no double has them")
        return Domain(text="number", lost=losses.other(schema, _BOUNDS))
    lost = losses.other(schema, _BOUNDS)
    return Domain(text=f"number {first} .. {last}", lost=lost)


def _exclusive(schema: Mapping[str, Any], losses: Losses) -> None:
    if "exclusiveMinimum" in schema or "exclusiveMaximum" in schema:
        losses.said.append("a bound that is exclusive is let through")


def numbers_of(schema: Mapping[str, Any], name: str) -> list[Decimal]:
    """The value of a bound, if it is a number; one that no double comes near bounds nothing."""
    value = schema.get(name)
    exact = Decimal(str(value)) if is_number(value) else Decimal("NaN")
    return [exact] if exact.is_finite() and abs(exact.adjusted()) <= _DIGITS else []
