"""Selections: the calls of a tool that agree with given values, their texts and their call sets.

Normative text: docs/spec/core.md, section 4.  Cost: linear in the values; the call set takes a look
at each of its tool's calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tcc_certs.core.model import Call, CallSet, Parameter, Selection, Tool
from tcc_certs.errors import Code, ensure, require
from tcc_certs.formats.codec import Json
from tcc_certs.formats.names import written
from tcc_certs.formats.schema import as_list, as_object, as_whole, ensure_increasing

_SCHEMA = Code.CORE_SCHEMA


def read_selection(value: Json, path: str, tools: Sequence[Tool]) -> Selection:
    """The tool, and for each parameter that is bound the values that it may take.

    Raises:
        Rejected: C801.
    """
    item = as_object(value, path, _SCHEMA, ["tool", "where"])
    tool = as_whole(item["tool"], path, _SCHEMA, len(tools))
    parameters = tools[tool].parameters
    where = []
    for entry in as_list(item["where"], path, _SCHEMA):
        pair = as_list(entry, path, _SCHEMA)
        require(2, len(pair), _SCHEMA, f"{path} entry")
        param = as_whole(pair[0], path, _SCHEMA, len(parameters))
        where.append((param, _values(pair[1], path, parameters[param])))
    ensure_increasing([param for param, _ in where], path, _SCHEMA)
    return Selection(tool=tool, where=tuple(where))


def _values(value: Json, path: str, parameter: Parameter) -> tuple[int, ...]:
    """Indices of values, increasing; that of an absent parameter is none of them."""
    size = len(parameter.values)
    values = [as_whole(v, path, _SCHEMA, size) for v in as_list(value, path, _SCHEMA, 1)]
    ensure_increasing(values, path, _SCHEMA)
    named = not parameter.optional or values[0] > 0
    ensure(named, _SCHEMA, path, "values that are there", "an absent parameter")
    return tuple(values)


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
        return _joined(
            index
            for index in self._of[selection.tool]
            if all(self._calls[index].values[param] in values for param, values in bound)
        )


def _joined(indices: Iterable[int]) -> CallSet:
    """Increasing indices as ranges."""
    ranges: list[tuple[int, int]] = []
    for index in indices:
        if ranges and ranges[-1][1] == index:
            ranges[-1] = (ranges[-1][0], index + 1)
        else:
            ranges.append((index, index + 1))
    return tuple(ranges)
