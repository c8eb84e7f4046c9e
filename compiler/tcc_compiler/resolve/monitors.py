"""Monitors: statements over open parameters, which a gate holds; their texts and core JSON.

Normative text: docs/spec/language.md, section 7; docs/spec/core.md, section 1.
Cost: constant each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from tcc_certs.formats.codec import Json, large
from tcc_certs.formats.names import written
from tcc_compiler.frozen import frozen
from tcc_compiler.resolve.calls import Selection, selection_text
from tcc_compiler.resolve.tools import Tool


@frozen
class OrderMonitor:
    """``require`` or ``forbid`` between calls that agree in some parameters.

    Attributes:
        kind: ``require`` with the order ``before`` or ``each``; ``forbid`` with ``before`` or
            ``with``.
        same: names of a parameter of `first` and one of `second`, strictly increasing.
    """

    kind: str
    order: str
    first: Selection
    second: Selection
    same: tuple[tuple[str, str], ...]


@frozen
class SumMonitor:
    """``limit sum(tool.parameter) <= value``, a canonical decimal."""

    tool: str
    parameter: str
    value: str


@frozen
class UsesMonitor:
    """``limit uses(of) per parameter <= value``."""

    of: Selection
    per: str
    value: int


Monitor: TypeAlias = OrderMonitor | SumMonitor | UsesMonitor


def monitor_json(monitor: Monitor, tool_numbers: Mapping[str, int]) -> Json:
    """The monitor object of the core."""
    match monitor:
        case OrderMonitor():
            return {
                "kind": monitor.kind,
                "order": monitor.order,
                "first": selection_json(monitor.first, tool_numbers),
                "second": selection_json(monitor.second, tool_numbers),
                "same": [list(pair) for pair in monitor.same],
            }
        case SumMonitor(tool=tool, parameter=parameter, value=value):
            number = tool_numbers[tool]
            return {"kind": "sum", "tool": number, "param": parameter, "value": value}
        case UsesMonitor(of=of, per=per, value=count):
            selection = selection_json(of, tool_numbers)
            return {"kind": "uses", "of": selection, "per": per, "value": large(count)}


def selection_json(selection: Selection, tool_numbers: Mapping[str, int]) -> Json:
    """A pattern as the core has it where it names calls by their tool and values."""
    where: Json = [[place, list(values)] for place, values in selection.where]
    return {"tool": tool_numbers[selection.tool], "where": where}


def monitor_text(monitor: Monitor, tools: Mapping[str, Tool]) -> str:
    """The monitor as a grammar writes it."""
    match monitor:
        case OrderMonitor():
            first = selection_text(tools[monitor.first.tool], monitor.first)
            second = selection_text(tools[monitor.second.tool], monitor.second)
            order = "before each" if monitor.order == "each" else monitor.order
            same = ", ".join(_pair_text(*pair) for pair in monitor.same)
            return f"{monitor.kind} {first} {order} {second} same {same}"
        case SumMonitor(tool=tool, parameter=parameter, value=value):
            return f"limit sum({written(tool)}.{written(parameter)}) <= {value}"
        case UsesMonitor(of=of, per=per, value=count):
            pattern = selection_text(tools[of.tool], of)
            return f"limit uses({pattern}) per {written(per)} <= {count}"


def _pair_text(first: str, second: str) -> str:
    return written(first) if first == second else f"{written(first)} = {written(second)}"
