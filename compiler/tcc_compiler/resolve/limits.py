"""Limits and monitors: values in whole units, sums, canonical texts, core JSON.

A monitor is a statement over open parameters, which a gate holds.  A sum never comes back below its
limit, so that whoever holds it can refuse the call that passes it.
Normative text: docs/spec/language.md, section 7; docs/spec/core.md, sections 1 and 4.
Cost: constant each; of a sum linear in the values.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TypeAlias

from tcc_certs.formats.codec import Json, is_decimal, large, written
from tcc_certs.values.types import NumberType
from tcc_compiler.frozen import frozen
from tcc_compiler.language.ast import LimitStatement, Number, Word
from tcc_compiler.language.diagnostics import Report, quote
from tcc_compiler.language.values import NANO, decimal_text, scaled
from tcc_compiler.resolve.amounts import MILLISECONDS, in_unit
from tcc_compiler.resolve.calls import ResolvedSelection, selection_text
from tcc_compiler.resolve.parameters import ResolvedParameter
from tcc_compiler.resolve.same import Side, present
from tcc_compiler.resolve.tools import ResolvedTool


@frozen
class ResolvedOrder:
    """``require`` or ``forbid`` between calls that agree in some parameters.

    Attributes:
        kind: ``require`` with the order ``before`` or ``each``; ``forbid`` with ``before`` or
            ``with``.
        same: names of a parameter of `first` and one of `second`, strictly increasing.
    """

    kind: str
    order: str
    first: ResolvedSelection
    second: ResolvedSelection
    same: tuple[tuple[str, str], ...]


@frozen
class ResolvedSum:
    """``limit sum(tool.parameter) <= value``, a canonical decimal."""

    tool: str
    parameter: str
    value: str


@frozen
class ResolvedUses:
    """``limit uses(of) per parameter <= value``."""

    of: ResolvedSelection
    per: str
    value: int


Monitor: TypeAlias = ResolvedOrder | ResolvedSum | ResolvedUses


def monitor_json(monitor: Monitor, tool_numbers: Mapping[str, int]) -> Json:
    """The monitor object of the core."""
    match monitor:
        case ResolvedOrder():
            return {
                "kind": monitor.kind,
                "order": monitor.order,
                "first": selection_json(monitor.first, tool_numbers),
                "second": selection_json(monitor.second, tool_numbers),
                "same": [list(pair) for pair in monitor.same],
            }
        case ResolvedSum(tool=tool, parameter=parameter, value=value):
            number = tool_numbers[tool]
            return {"kind": "sum", "tool": number, "param": parameter, "value": value}
        case ResolvedUses(of=of, per=per, value=count):
            selection = selection_json(of, tool_numbers)
            return {"kind": "uses", "of": selection, "per": per, "value": large(count)}


def selection_json(selection: ResolvedSelection, tool_numbers: Mapping[str, int]) -> Json:
    """A pattern as the core has it where it names calls by their tool and values."""
    where: Json = [[place, list(values)] for place, values in selection.where]
    return {"tool": tool_numbers[selection.tool], "where": where}


def monitor_text(monitor: Monitor, tools: Mapping[str, ResolvedTool]) -> str:
    """The monitor as a grammar writes it."""
    match monitor:
        case ResolvedOrder():
            first = selection_text(tools[monitor.first.tool], monitor.first)
            second = selection_text(tools[monitor.second.tool], monitor.second)
            order = "before each" if monitor.order == "each" else monitor.order
            same = ", ".join(_pair_text(*pair) for pair in monitor.same)
            return f"{monitor.kind} {first} {order} {second} same {same}"
        case ResolvedSum(tool=tool, parameter=parameter, value=value):
            return f"limit sum({written(tool)}.{written(parameter)}) <= {value}"
        case ResolvedUses(of=of, per=per, value=count):
            pattern = selection_text(tools[of.tool], of)
            return f"limit uses({pattern}) per {written(per)} <= {count}"


def _pair_text(first: str, second: str) -> str:
    return written(first) if first == second else f"{written(first)} = {written(second)}"


# Limits on the sum of a parameter: which values may be added up.


def sum_of_open(
    statement: LimitStatement, tool: ResolvedTool, side: Side, name: Word, report: Report
) -> ResolvedSum | None:
    """The monitor of a sum of an open parameter, None after an error."""
    kind, number = side.type, statement.number
    if not isinstance(kind, NumberType) or kind.low is None or kind.low.startswith("-"):
        message = f"{quote(side.name)} is no number from 0 up, so its sum may go down again"
        hint = "declare it `number 0 .. HIGH` or `integer 0 .. HIGH`"
        report.error("TCC321", name.region, message, hint)
        return None
    if number.value < 0:
        report.error("TCC308", number.region, "this sum is negative", "write 0 or more")
        return None
    if not present(side, name, report):
        return None
    text = decimal_text(number.value)
    if not is_decimal(text):
        message = "this limit has more digits than a number may have"
        report.error("TCC307", number.region, message, "write a shorter number")
        return None
    return ResolvedSum(tool=tool.name, parameter=side.name, value=text)


def adds_up(parameter: ResolvedParameter, name: Word, report: Report) -> bool:
    """Whether the values of a listed parameter are amounts from 0 up; else reported."""
    numbers = [number for number in parameter.numbers if number is not None]
    message = None
    if not parameter.numeric:
        message = f"the values of {quote(name.text)} are not all numbers"
    elif min(numbers) < 0:
        message = f"a value of {quote(name.text)} is negative, so the sum may go down again"
    else:
        units = [scaled(number, NANO) for number in numbers]
        if any(unit is None or unit >= 1 << 64 for unit in units):
            message = f"a value of {quote(name.text)} is not whole in nano-units of 64 bits"
    if message is not None:
        hint = "every value of it has to be a number from 0 up, with at most 9 fractional digits"
        report.error("TCC321", name.region, message, hint)
    return message is None


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
    of: ResolvedSelection | None = None
    total: tuple[str, int] | None = None


def limit_of(
    statement: LimitStatement, selection: ResolvedSelection | None, report: Report
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


def limit_text(limit: ResolvedLimit, tools: Mapping[str, ResolvedTool]) -> str:
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
