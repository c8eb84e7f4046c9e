"""The tools that the calls of a graph make up: their parameters in one order, with their values.

Normative text: docs/spec/language.md, section 11.  Cost: linear in the calls, and a sort of values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter

from tcc_compiler.imports.attributes import GraphCall, number_of
from tcc_compiler.imports.graph import GraphRefused
from tcc_compiler.language.diagnostics import quote
from tcc_compiler.resolve.domains import Parameter
from tcc_compiler.resolve.tools import Tool

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
