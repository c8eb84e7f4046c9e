"""The tools of a grammar as a table: parameters, what a call costs, what its signature is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tcc.pages.blocks import badge, code, left_out, table
from tcc.pages.frame import Section
from tcc.pages.markup import Html, element, joined
from tcc_certs.core.enforced import type_text
from tcc_certs.core.model import Call, Core, Tool
from tcc_certs.errors import clip
from tcc_certs.formats.decimals import format_decimal
from tcc_certs.formats.names import written

MOST: Final = 100
_MOST_VALUES: Final = 12


def tools_section(core: Core) -> Section:
    """The tools, in the order of the grammar."""
    by_tool: dict[int, list[Call]] = {}
    for call in core.calls:
        by_tool.setdefault(call.tool, []).append(call)
    rows = [_row(tool, by_tool.get(at, [])) for at, tool in enumerate(core.tools[:MOST])]
    names = ("tool", "parameters", "calls", "cost", "price", "latency")
    lead = (
        "A call is a tool with one value for each listed parameter. Cost is what a search makes "
        "small; price is in the grammar's unit, latency in milliseconds."
    )
    return Section(
        name="tools",
        title="Tools",
        lead=lead,
        body=joined(
            [
                table(names, rows, label="Tools", numbers="calls cost price latency"),
                left_out(len(rows), len(core.tools), "tools"),
            ]
        ),
    )


def _row(tool: Tool, made: Sequence[Call]) -> tuple[object, ...]:
    marks = [badge("strict")] if tool.strict else []
    if tool.takes is not None or tool.gives is not None:
        marks.append(
            element("span", f"{tool.takes or ''} \u2192 {tool.gives or ''}", class_="note")
        )
    name = joined([element("b", code(written(tool.name))), *marks], " ")
    parameters = [element("div", part) for part in _parameters(tool)]
    low = min((call.cost_low for call in made), default=0)
    high = max((call.cost_high for call in made), default=0)
    return (
        name,
        joined(parameters) if parameters else element("em", "none"),
        len(made),
        _span(format_decimal(low, 9), format_decimal(high, 9)),
        _span(*_ends([call.price for call in made])),
        _span(*_ends([call.latency for call in made])),
    )


def _parameters(tool: Tool) -> Iterator[Html]:
    for parameter in tool.parameters:
        shown = [clip(value, 60) or "(absent)" for value in parameter.values[:_MOST_VALUES]]
        more = len(parameter.values) - len(shown)
        values = " | ".join(shown) + (f" | and {more} more" if more else "")
        said = " answered by the tool" if parameter.observed else ""
        yield joined(
            [code(written(parameter.name)), ": ", element("span", values), element("i", said)]
        )
    for opened in tool.opened:
        optional = "?" if opened.optional else ""
        yield joined(
            [
                code(written(opened.name) + optional),
                ": ",
                code(type_text(opened.type)),
                element("i", " any value of the type"),
            ]
        )


def _ends(amounts: Sequence[int]) -> tuple[str, str]:
    return (str(min(amounts, default=0)), str(max(amounts, default=0)))


def _span(low: str, high: str) -> str:
    return low if low == high else f"{low} \u2013 {high}"
