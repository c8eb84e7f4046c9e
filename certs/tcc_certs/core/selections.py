"""Selections: the calls of a tool that have given values, their table, texts and call sets.

Normative text: docs/spec/core.md, section 4.  Cost: linear in the values; the call set takes a look
at each of its tool's calls.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcc_certs.core.model import Call, CallSet, Parameter, Selection, Tool
from tcc_certs.errors import Code, ensure
from tcc_certs.formats import schema
from tcc_certs.formats.codec import Json
from tcc_certs.formats.names import written
from tcc_certs.formats.schema import Known, Table, row


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


def _indices(value: Json, path: str, code: Code, parameter: Parameter) -> tuple[int, ...]:
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


read_selection = schema.object_of(SELECTION, Selection)


def selection_text(selection: Selection, tools: Sequence[Tool]) -> str:
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

    def __init__(self, tools: Sequence[Tool], calls: Sequence[Call]) -> None:
        self._calls = calls
        self._of: list[list[int]] = [[] for _ in tools]
        for index, call in enumerate(calls):
            self._of[call.tool].append(index)

    def size(self, tool: int) -> int:
        """How many calls a tool has."""
        return len(self._of[tool])

    def selected(self, selection: Selection) -> CallSet:
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
