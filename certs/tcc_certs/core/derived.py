"""Values derived from a core: its version, texts of calls, selections, sums.

Normative text: docs/spec/core.md, sections 1, 4 and 5.  A writer and a reader take these from here,
so that one grammar has one core.  Cost: linear in the calls, the values and the texts.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcc_certs.core import model
from tcc_certs.errors import Code, ensure
from tcc_certs.formats import schema
from tcc_certs.formats.codec import Json, is_identifier, nano_of, written
from tcc_certs.formats.schema import Known, Table, row
from tcc_certs.values.declared import PLAIN


def minor_version(core: model.Core) -> int:
    """The least minor version that has all features of `core`: 0, 1 or 2."""
    held = any(isinstance(monitor, model.PolicyMonitor) for monitor in core.monitors)
    stated = held or core.given or core.lets or core.looks or core.passed
    if stated or any(map(is_newer_tool, core.tools)):
        return 2
    new = (
        bool(core.monitors)
        or any(map(_is_new, core.tools))
        or any(limit.kind == "sum" for limit in core.limits)
        or any(statement.order == "each" for statement in core.requires)
        or any(isinstance(statement, model.ForbidBefore) for statement in core.forbids)
    )
    return int(new)


def is_newer_tool(tool: model.Tool) -> bool:
    """Whether a tool has a field or a word that version 1.1 does not know."""
    listed = any(
        param.at is not None or param.values[-1] == "*" or (param.observed and param.optional)
        for param in tool.parameters
    )
    opened = any(
        given.at is not None or given.null or not isinstance(given.type, PLAIN)
        for given in tool.opened
    )
    said = tool.error_text is not None
    return listed or opened or bool(tool.answers) or tool.parallel or said


def _is_new(tool: model.Tool) -> bool:
    """Whether a tool has a member, a value or a name that version 1.0 does not know."""
    parameters = tool.parameters
    return (
        bool(tool.opened)
        or tool.strict
        or tool.errors_failed
        or any(map(_is_new_model, tool.models))
        or not is_identifier(tool.name)
        or any(p.observed or p.optional or not is_identifier(p.name) for p in parameters)
    )


def _is_new_model(one: model.Model) -> bool:
    return one.atom is not None or one.execute is not None or one.quality != model.HALF


def call_text(tool: model.Tool, values: Sequence[int], *, observed: bool = True) -> str:
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
    tools: Sequence[model.Tool], calls: Sequence[model.Call], of: tuple[int, int]
) -> list[int]:
    """For each call the value of a parameter, nano-units; 0 where it has none.

    Args:
        of: the tool and the place of its parameter, as :class:`Limit` has them.
    """
    number, place = of
    # Of a limit that was read every value is a number or absent.
    values = [nano_of(text) or 0 for text in tools[number].parameters[place].values]
    return [values[call.values[place]] if call.tool == number else 0 for call in calls]


def _where(
    value: Json, path: str, code: Code, known: Known
) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """For each parameter that is bound the values that it may take; parameters increase."""
    parameters = known["tools"][known["tool"]].parameters
    where = []
    for entry in schema.as_list(value, path, code):
        pair = schema.as_tuple(entry, path, code, 2, "entry")
        param = schema.as_whole(pair[0], path, code, len(parameters))
        where.append((param, _indices(pair[1], path, code, parameters[param])))
    schema.ensure_increasing([param for param, _ in where], path, code)
    return tuple(where)


def _indices(value: Json, path: str, code: Code, parameter: model.Parameter) -> tuple[int, ...]:
    """Indices of values, increasing; that of an absent parameter is none of them."""
    size = len(parameter.values)
    values = [
        schema.as_whole(index, path, code, size) for index in schema.as_list(value, path, code, 1)
    ]
    schema.ensure_increasing(values, path, code)
    named = not parameter.optional or values[0] > 0
    ensure(named, code, path, "values that are there", "an absent parameter")
    return tuple(values)


SELECTION: Table = (
    row("tool", schema.here(schema.index_in("tools"))),
    row("where", schema.here(_where)),
)


read_selection = schema.object_of(SELECTION, model.Selection)


def selection_text(selection: model.Selection, tools: Sequence[model.Tool]) -> str:
    """The canonical text: ``tool``, or ``tool(p=v1|v2,q=v)``."""
    tool = tools[selection.tool]
    bound = []
    for param, values in selection.where:
        parameter = tool.parameters[param]
        texts = "|".join([parameter.values[v] for v in values])
        bound.append(f"{written(parameter.name)}={texts}")
    return f"{written(tool.name)}({','.join(bound)})" if bound else written(tool.name)


class Owned:
    """The calls of each tool, by which the calls of a selection are found."""

    def __init__(self, tools: Sequence[model.Tool], calls: Sequence[model.Call]) -> None:
        self._calls = calls
        self._of: list[list[int]] = [[] for _ in tools]
        for index, call in enumerate(calls):
            self._of[call.tool].append(index)

    def size(self, tool: int) -> int:
        """How many calls a tool has."""
        return len(self._of[tool])

    def selected(self, selection: model.Selection) -> model.CallSet:
        """The calls that a selection stands for."""
        bound = [(param, frozenset(values)) for param, values in selection.where]
        ranges: list[tuple[int, int]] = []
        for index in self._of[selection.tool]:
            if not all(self._calls[index].values[param] in values for param, values in bound):
                continue
            if ranges and ranges[-1][1] == index:
                ranges[-1] = (ranges[-1][0], index + 1)
            else:
                ranges.append((index, index + 1))
        return tuple(ranges)
