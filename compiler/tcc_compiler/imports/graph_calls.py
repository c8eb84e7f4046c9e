"""The attributes of a graph: calls, their amounts, and the tools that the calls add up to.

A float is read as its shortest decimal text, which is what the file says or what its writer meant.
The parameters of a tool get one order that the order in every call agrees with.
Specification: docs/spec/language.md, section 11. Cost: linear in the attributes, and a sort of
values.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

from tcc_certs.errors import is_plain
from tcc_certs.formats.codec import MAX_NAME, RESERVED, written
from tcc_compiler.imports.graphs import Attributes, GraphRefused
from tcc_compiler.language.diagnostics import Report, quote
from tcc_compiler.language.source import Region
from tcc_compiler.language.values import decimal_text, parse_decimal, string_value
from tcc_compiler.resolve.amounts import Amounts, in_unit
from tcc_compiler.resolve.parameters import Parameter
from tcc_compiler.resolve.tools import Tool

WHOLE_FILE = Region(0, 0, 0)
_AMOUNTS = {"price": "price", "latency_ms": "latency", "epsilon": "epsilon"}
_DECIMAL = re.compile(r"(-?)([0-9]{1,400}(?:\.[0-9]{1,400})?)")
_QUOTED = r'"(?:[^"\\\x00-\x1f]++|\\.)*+"'
_NAME = re.compile(rf"[A-Za-z_][A-Za-z0-9_]*+|{_QUOTED}")
_ARGUMENT = re.compile(
    rf"""(?P<open>[(,])(?P<name>[A-Za-z_][A-Za-z0-9_]*+|{_QUOTED})=
        (?P<value>[A-Za-z_][A-Za-z0-9_]*+|-?[0-9]{{1,400}}+(?:\.[0-9]{{1,400}}+)?|{_QUOTED})""",
    re.VERBOSE,
)


class GraphCall(NamedTuple):
    """A call of a graph: its canonical text, its tool, its parameters with their values' texts."""

    text: str
    tool: str
    arguments: tuple[tuple[str, str], ...]


def parse_call(text: str) -> GraphCall:
    """The call of a text.

    Raises:
        GraphRefused: TCC606.
    """
    name = _NAME.match(text)
    if name is None:
        raise _no_call(text)
    tool = _name(name.group(), text)
    rest = text[name.end() :]
    arguments: dict[str, str] = {}
    at = 0
    while at < len(rest) - 1:
        match = _ARGUMENT.match(rest, at)
        if match is None or match["open"] != ("," if arguments else "("):
            raise _no_call(text)
        parameter = _name(match["name"], text)
        if parameter in arguments:
            raise _no_call(text)
        arguments[parameter] = _canonical(match["value"], text)
        at = match.end()
    if rest[at:] != (")" if arguments else ""):
        raise _no_call(text)
    inside = ",".join(f"{written(parameter)}={value}" for parameter, value in arguments.items())
    canonical = f"{written(tool)}({inside})" if arguments else written(tool)
    return GraphCall(canonical, tool, tuple(arguments.items()))


def _no_call(text: str) -> GraphRefused:
    return GraphRefused("TCC606", f"{quote(text)} is not the text of a call")


def _name(written_name: str, text: str) -> str:
    """The name of a tool or parameter, unquoted."""
    quoted = written_name.startswith('"')
    name = _string(written_name, text) if quoted else written_name
    if not 1 <= len(name) <= MAX_NAME or not is_plain(name) or (not quoted and name in RESERVED):
        raise _no_call(text)
    return name


def _string(literal: str, text: str) -> str:
    try:
        value = str(json.loads(literal))
        value.encode("utf-8")  # half of a surrogate pair: a UnicodeEncodeError is a ValueError
    except ValueError:
        raise GraphRefused("TCC606", f"{quote(text)} has a string that is not JSON") from None
    return value


def _canonical(value: str, text: str) -> str:
    """The canonical text of a value: of numbers the shortest, of strings the bare name or JSON."""
    if value.startswith('"'):
        return string_value(_string(value, text))
    if value in RESERVED:
        raise GraphRefused(
            "TCC606", f"{quote(value)} is a reserved word; write it in double quotes"
        )
    number = _decimal(value)
    return value if number is None else decimal_text(number)


def _decimal(text: str) -> Fraction | None:
    match = _DECIMAL.fullmatch(text)
    if match is None:
        return None
    number = parse_decimal(match.group(2))
    return -number if match.group(1) else number


def number_of(value: object) -> Fraction | None:
    """An attribute as an exact number: an integer, a float's shortest text, or a decimal text."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return Fraction(value) if value.bit_length() <= 256 else None
    if isinstance(value, float):
        return Fraction(repr(value)) if math.isfinite(value) else None
    return _decimal(value) if isinstance(value, str) else None


def amounts_in(attributes: Attributes, where: str, report: Report) -> Amounts:
    """The amounts among the attributes of a node or an edge; a missing one is 0.

    A cost that is a range has its high end in `cost_high`.
    """
    low = _amount(attributes, "cost", "cost", where, report)
    high = low
    if "cost_high" in attributes:
        high = _amount(attributes, "cost_high", "cost", where, report)
    if low > high and not report.failed:
        report.error("TCC309", WHOLE_FILE, f"the cost of {where} is above its cost_high")
    rest = [_amount(attributes, name, kind, where, report) for name, kind in _AMOUNTS.items()]
    return Amounts(low, high, *rest)


def _amount(attributes: Attributes, name: str, kind: str, where: str, report: Report) -> int:
    number = number_of(attributes.get(name, 0))
    if number is None:
        report.error("TCC604", WHOLE_FILE, f"{name} of {where} is not a number that is finite")
        return 0
    # The error is about the file as a whole, so its text names the node or edge.
    return in_unit(kind, number, WHOLE_FILE, report, f" ({name} of {where})") or 0


def flag(attributes: Mapping[str, object], name: str, where: str, report: Report) -> bool:
    """A boolean attribute; False where it is missing."""
    value = attributes.get(name, False)
    if not isinstance(value, bool):
        report.error("TCC604", WHOLE_FILE, f"{name} of {where} is not a boolean")
    return value is True


_SHOWN = 6  # parameters that an error names


def tools_of(calls: Iterable[GraphCall]) -> dict[str, Tool]:
    """The tools by their names; `calls` come in an order that the graph's file does not decide.

    Raises:
        GraphRefused: TCC606 where calls of one tool have their parameters in different orders.
    """
    by_tool: dict[str, list[GraphCall]] = {}
    for call in calls:
        by_tool.setdefault(call.tool, []).append(call)
    return {name: _tool(name, own) for name, own in by_tool.items()}


def _tool(name: str, calls: list[GraphCall]) -> Tool:
    domains: dict[str, dict[str, None]] = {}
    times: dict[str, int] = {}
    before: dict[str, dict[str, None]] = {}
    for call in calls:
        last = None
        for parameter, value in call.arguments:
            domains.setdefault(parameter, {})[value] = None
            times[parameter] = times.get(parameter, 0) + 1
            earlier = before.setdefault(parameter, {})
            if last is not None:
                earlier[last] = None
            last = parameter
    try:
        order = list(TopologicalSorter(before).static_order())
    except CycleError as error:
        around = error.args[1][1:]
        shown = ", ".join(map(quote, around[:_SHOWN])) + (", .." if len(around) > _SHOWN else "")
        message = f"the calls of {quote(name)} have these parameters in no one order: {shown}"
        raise GraphRefused("TCC606", message) from None
    parameters = tuple(
        _parameter(each, domains[each], optional=times[each] < len(calls)) for each in order
    )
    return Tool(
        name=name,
        parameters=parameters,
        takes=None,
        gives=None,
        extras={},
        amounts=(),
        places={parameter.name: place for place, parameter in enumerate(parameters)},
    )


def _parameter(name: str, domain: Mapping[str, None], *, optional: bool) -> Parameter:
    # Numbers by size, then other values by their texts.
    ordered = sorted(
        domain, key=lambda text: ((number := number_of(text)) is None, number or 0, text)
    )
    absent = 1 if optional else 0
    numbers = tuple(number_of(text) for text in ordered)
    return Parameter(
        name=name,
        values=("",) * absent + tuple(ordered),
        numbers=(None,) * absent + numbers,
        index={text: place for place, text in enumerate(ordered, absent)},
        numeric=None not in numbers,
    )
