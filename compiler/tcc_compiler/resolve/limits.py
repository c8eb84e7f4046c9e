"""Limits: their values in whole units, their canonical texts, their core JSON.

Normative text: docs/spec/language.md, section 7; docs/spec/core.md, section 4.
Cost: constant each.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from tcc_certs.formats.codec import Json, large
from tcc_certs.formats.names import written
from tcc_compiler.frozen import frozen
from tcc_compiler.language.ast.leaves import Number
from tcc_compiler.language.ast.statements import LimitStatement
from tcc_compiler.language.decimals import NANO, decimal_text
from tcc_compiler.language.diagnostics import Report
from tcc_compiler.resolve.amounts import MILLISECONDS, in_unit
from tcc_compiler.resolve.calls import Selection, selection_text
from tcc_compiler.resolve.monitors import selection_json
from tcc_compiler.resolve.tools import Tool

MAX_LIMIT = (1 << 63) - 1
_SMALL = "write a smaller number, or leave the limit out if it is never reached"


@frozen
class ResolvedLimit:
    """A limit, resolved: `value` in calls, cents, milliseconds or nano-units.

    Attributes:
        of: for ``uses`` what is counted.
        total: for ``sum`` the tool, and the place of the parameter that is added up.
    """

    kind: str
    op: str
    value: int
    of: Selection | None = None
    total: tuple[str, int] | None = None


def limit_of(
    statement: LimitStatement, selection: Selection | None, report: Report
) -> ResolvedLimit | None:
    """The limit with its value, None after an error; what ``sum`` adds up is left to the caller.

    Args:
        selection: the pattern of ``uses``, resolved.
    """
    value = _value(statement, report)
    if value is None:
        return None
    if not -MAX_LIMIT <= value <= MAX_LIMIT:
        report.error(
            "TCC307", statement.number.region, "this limit does not fit into 63 bits", _SMALL
        )
        return None
    return ResolvedLimit(kind=statement.kind, op=statement.op, value=value, of=selection)


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
        report.error("TCC312", number.region, message, "write a number such as 0 or 3")
        return None
    return number.value.numerator


def limit_text(limit: ResolvedLimit, tools: Mapping[str, Tool]) -> str:
    """The canonical text, as the root context document has it."""
    kind = limit.kind
    value = str(limit.value)
    if limit.of is not None:
        kind = f"uses({selection_text(tools[limit.of.tool], limit.of)})"
    if limit.total is not None:
        tool = tools[limit.total[0]]
        kind = f"sum({written(tool.name)}.{written(tool.parameters[limit.total[1]].name)})"
    if limit.kind in ("cost", "epsilon", "sum"):
        value = decimal_text(Fraction(limit.value, NANO))
    return f"{kind}{limit.op}{value}"


def limit_json(limit: ResolvedLimit, tool_numbers: Mapping[str, int]) -> Json:
    """The limit object of the core."""
    members: dict[str, Json] = {"kind": limit.kind, "op": limit.op, "value": large(limit.value)}
    if limit.of is not None:
        members["of"] = selection_json(limit.of, tool_numbers)
    if limit.total is not None:
        members["of"] = {"tool": tool_numbers[limit.total[0]], "param": limit.total[1]}
    return members
