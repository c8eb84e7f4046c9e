"""What each call adds to the sum of a limit, in the limit's unit.

Specification: docs/spec/core.md, sections 4 and 5.  Cost: linear in the calls that are asked about.
"""

from __future__ import annotations

from collections.abc import Iterable

from tcc_certs.core.model import Core, Limit, Parameter
from tcc_certs.formats.decimals import nano_of


def call_amounts(core: Core, limit: Limit, chosen: Iterable[int]) -> list[int]:
    """What each of the `chosen` calls adds to the sum of `limit`; 1 for depth and uses."""
    calls = [core.calls[index] for index in chosen]
    match limit.kind:
        case "price":
            return [call.price for call in calls]
        case "latency":
            return [call.latency for call in calls]
        case "epsilon":
            return [call.epsilon for call in calls]
        case "cost":
            return [call.cost_high for call in calls]
        case "sum" if limit.parameter is not None:
            tool, place = limit.parameter
            values = value_amounts(core.tools[tool].parameters[place]) or []
            return [values[call.values[place]] if call.tool == tool else 0 for call in calls]
        case _:
            return [1] * len(calls)


def value_amounts(parameter: Parameter) -> list[int] | None:
    """The number that each value of a parameter is, in nano-units; absent is 0.

    Returns:
        None where some value is no number, is below 0, or has more than nine decimal places: then
        nothing is added up.
    """
    amounts = [0 if text == "" else nano_of(text) for text in parameter.values]
    known = [amount for amount in amounts if amount is not None]
    return known if len(known) == len(amounts) else None
