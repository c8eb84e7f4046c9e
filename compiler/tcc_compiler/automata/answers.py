"""Which calls are answers to one question: they differ in nothing but their observed values.

A tool with observed parameters is asked with its other values, and the world answers with one value
for each observed parameter.  The calls that stand for these answers are a group.
Specification: docs/spec/core.md, sections 2 and 5.  Cost: linear in the calls of such tools.
"""

from __future__ import annotations

from tcc_certs.core.model import Call, Core, Tool
from tcc_certs.limits import MAX_CALLS


def is_observed(tool: Tool) -> bool:
    """Whether the world chooses some value of a call of `tool`."""
    return any(parameter.observed for parameter in tool.parameters)


def possible_answers(tool: Tool) -> int:
    """How many answers a call of `tool` may get; past MAX_CALLS only that there are too many."""
    found = 1
    for parameter in tool.parameters:
        if parameter.observed and found <= MAX_CALLS:
            found *= len(parameter.values)
    return found


def question(tool: Tool, call: Call) -> tuple[int, ...]:
    """The values of `call` that are not observed."""
    pairs = zip(tool.parameters, call.values, strict=True)
    return tuple([value for parameter, value in pairs if not parameter.observed])


def answers_of(core: Core, *, strict: bool) -> dict[int, list[list[int]]]:
    """For each tool with observed parameters its groups of calls, by first calls; calls increase.

    Args:
        strict: True leaves out the tools that are not strict.
    """
    asked = {
        at
        for at, tool in enumerate(core.tools)
        if is_observed(tool) and (tool.strict or not strict)
    }
    groups: dict[int, dict[tuple[int, ...], list[int]]] = {}
    if asked:
        for number, call in enumerate(core.calls):
            if call.tool in asked:
                key = question(core.tools[call.tool], call)
                groups.setdefault(call.tool, {}).setdefault(key, []).append(number)
    return {tool: list(found.values()) for tool, found in groups.items()}
