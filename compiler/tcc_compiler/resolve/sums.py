"""Limits on the sum of a parameter: which values may be added up.

Normative text: docs/spec/language.md, section 7.  A sum never comes back below its limit, so that
whoever holds it can refuse the call that passes it.  Cost: linear in the values.
"""

from __future__ import annotations

from tcc_certs.formats.decimals import is_decimal
from tcc_certs.values.types import NumberType
from tcc_compiler.language.ast.leaves import Word
from tcc_compiler.language.ast.statements import LimitStatement
from tcc_compiler.language.decimals import NANO, decimal_text, scaled
from tcc_compiler.language.diagnostics import Report, quote
from tcc_compiler.resolve.domains import Parameter
from tcc_compiler.resolve.monitors import SumMonitor
from tcc_compiler.resolve.same import Side, present
from tcc_compiler.resolve.tools import Tool


def sum_of_open(
    statement: LimitStatement, tool: Tool, side: Side, name: Word, report: Report
) -> SumMonitor | None:
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
    return SumMonitor(tool=tool.name, parameter=side.name, value=text)


def adds_up(parameter: Parameter, name: Word, report: Report) -> bool:
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
