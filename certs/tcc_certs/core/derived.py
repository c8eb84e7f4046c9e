"""What follows from a core: its version, the texts of calls, what is added up, groups of answers.

Normative text: docs/spec/core.md, sections 1, 4 and 5.  A writer and a reader take these from here,
so that one grammar has one core.  Cost: linear in the calls, the values and the texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcc_certs.core.model import HALF, Call, Core, ForbidBefore, Model, Tool
from tcc_certs.formats.decimals import nano_of
from tcc_certs.formats.names import is_bare, written
from tcc_certs.limits import MAX_CALLS


def minor_version(core: Core) -> int:
    """1 where `core` has a feature that version 1.0 lacks, else 0."""
    new = (
        bool(core.monitors)
        or any(map(_is_new, core.tools))
        or any(limit.kind == "sum" for limit in core.limits)
        or any(statement.order == "each" for statement in core.requires)
        or any(isinstance(statement, ForbidBefore) for statement in core.forbids)
    )
    return int(new)


def _is_new(tool: Tool) -> bool:
    """Whether a tool has a member, a value or a name that version 1.0 does not know."""
    parameters = tool.parameters
    return (
        bool(tool.opened)
        or tool.strict
        or tool.errors_failed
        or any(map(_is_new_model, tool.models))
        or not is_bare(tool.name)
        or any(p.observed or p.optional or not is_bare(p.name) for p in parameters)
    )


def _is_new_model(model: Model) -> bool:
    return model.atom is not None or model.execute is not None or model.quality != HALF


def call_text(tool: Tool, values: Sequence[int], *, observed: bool = True) -> str:
    """The canonical text of a call: absent parameters left out, observed ones last.

    Args:
        values: for each parameter the index of its value.
        observed: whether the text has the values that the world chose.
    """
    pairs = zip(tool.parameters, values, strict=True)
    there = [
        f"{written(param.name)}={param.values[index]}"
        for param, index in pairs
        if param.values[index] and (observed or not param.observed)
    ]
    name = written(tool.name)
    return f"{name}({','.join(there)})" if there else name


def summed_parameter(
    tools: Sequence[Tool], calls: Sequence[Call], of: tuple[int, int]
) -> list[int]:
    """For each call the value of a parameter, nano-units; 0 where it has none.

    Args:
        of: the tool and the place of its parameter, as :class:`Limit` has them.
    """
    number, place = of
    # Of a limit that was read every value is a number or absent.
    values = [nano_of(text) or 0 for text in tools[number].parameters[place].values]
    return [values[call.values[place]] if call.tool == number else 0 for call in calls]


@dataclass(frozen=True, slots=True, kw_only=True)
class StrictGroups:
    """The calls of strict tools, in groups of those that differ in observed values alone.

    Attributes:
        group: for each call of the core the number of its group, -1 for one that is not strict.
        size: by group, how many combinations of observed values there are; past MAX_CALLS no more
            than that there are too many.
    """

    group: Sequence[int]
    size: Sequence[int]


def strict_groups(core: Core) -> StrictGroups | None:
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
    return StrictGroups(group=group, size=size)


def _combinations(tool: Tool) -> int:
    """How many answers a call of a tool may get, counted up to more than there can be calls."""
    found = 1
    for parameter in tool.parameters:
        if parameter.observed and found <= MAX_CALLS:
            found *= len(parameter.values)
    return found
