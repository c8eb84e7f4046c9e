"""Answers: the calls that differ in observed values alone, in which the world chooses.

Normative text: docs/spec/core.md, section 5.  Calls of one tool with the same chosen values are
*sisters*; where their tool is strict they stand together or not at all.
Cost: linear in the calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcc_certs.core.model import Core, Tool
from tcc_certs.limits import MAX_CALLS


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The strict calls of a core, in groups of sisters.

    Attributes:
        group: for each call of the core the number of its group, -1 for one that is not strict.
        size: by group, how many combinations of observed values there are; past MAX_CALLS no more
            than that there are too many.
    """

    group: Sequence[int]
    size: Sequence[int]


def strict_answers(core: Core) -> Answers | None:
    """The groups of the calls of strict tools; None where no tool is strict."""
    if not any(tool.strict for tool in core.tools):
        return None
    chosen = [sum(not param.observed for param in tool.parameters) for tool in core.tools]
    combinations = [_combinations(tool) for tool in core.tools]
    known: dict[tuple[int, tuple[int, ...]], int] = {}
    group: list[int] = []
    size: list[int] = []
    for call in core.calls:
        if not core.tools[call.tool].strict:
            group.append(-1)
            continue
        number = known.setdefault((call.tool, call.values[: chosen[call.tool]]), len(known))
        group.append(number)
        if number == len(size):
            size.append(combinations[call.tool])
    return Answers(group=group, size=size)


def _combinations(tool: Tool) -> int:
    """How many answers a call of a tool may get, counted up to more than there can be calls."""
    found = 1
    for parameter in tool.parameters:
        if parameter.observed and found <= MAX_CALLS:
            found *= len(parameter.values)
    return found
