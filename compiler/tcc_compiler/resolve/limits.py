"""Limits: their values in whole units, their canonical texts, their core JSON.

Normative text: docs/spec/language.md, section 7; docs/spec/core.md, section 4.
Cost: constant each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from tcc_certs.formats.codec import Json, large
from tcc_compiler.ast import LimitStatement, Number
from tcc_compiler.diagnostics import Report
from tcc_compiler.exact import NANO, decimal_text
from tcc_compiler.resolve.amounts import MILLISECONDS, in_unit
from tcc_compiler.resolve.letters import Selection, selection_text
from tcc_compiler.resolve.patterns import Scope
from tcc_compiler.resolve.tools import Tool

MAX_LIMIT = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit, resolved: `value` in calls, cents, milliseconds or nano-units.

    Attributes:
        of: for ``uses`` what is counted.
    """

    kind: str
    op: str
    value: int
    of: Selection | None = None


def limit_of(statement: LimitStatement, scope: Scope) -> Limit | None:
    """The resolved limit, None after an error."""
    report = scope.report
    selection = scope.selection(statement.pattern) if statement.pattern else None
    value = _value(statement, report)
    if value is None or (statement.pattern and selection is None):
        return None
    if not -MAX_LIMIT <= value <= MAX_LIMIT:
        report.error("TCC307", statement.number.region, "this limit does not fit into 63 bits")
        return None
    return Limit(kind=statement.kind, op=statement.op, value=value, of=selection)


def _value(statement: LimitStatement, report: Report) -> int | None:
    number = statement.number
    if statement.kind in ("depth", "uses"):
        return count_of(number, report)
    value = number.value * MILLISECONDS[statement.unit]
    return in_unit(statement.kind, value, number.region, report)


def count_of(number: Number, report: Report) -> int | None:
    """A number of calls or of plans; None after an error."""
    if number.value.denominator != 1 or number.value < 0:
        message = "this counts, so it is a whole number, zero or more"
        report.error("TCC312", number.region, message)
        return None
    return number.value.numerator


def limit_text(limit: Limit, tools: Mapping[str, Tool]) -> str:
    """The canonical text, as the root context document has it."""
    kind = limit.kind
    value = str(limit.value)
    if limit.of is not None:
        kind = f"uses({selection_text(tools[limit.of.tool], limit.of)})"
    elif limit.kind in ("cost", "epsilon"):
        value = decimal_text(Fraction(limit.value, NANO))
    return f"{kind}{limit.op}{value}"


def limit_json(limit: Limit, tool_numbers: Mapping[str, int]) -> Json:
    """The limit object of the core."""
    found: dict[str, Json] = {"kind": limit.kind, "op": limit.op, "value": large(limit.value)}
    if limit.of is not None:
        where: Json = [[place, list(values)] for place, values in limit.of.where]
        found["of"] = {"tool": tool_numbers[limit.of.tool], "where": where}
    return found
