"""The calls of a grammar in canonical order, and the call sets of patterns.

Normative text: docs/spec/language.md, section 7; docs/spec/core.md, section 1.  Cost: a sort of the
calls; a pattern costs the calls that it stands for, each distinct one once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from itertools import product
from typing import NamedTuple

from tcc_certs.core.model import CallSet
from tcc_certs.formats.names import written
from tcc_compiler.frozen import frozen
from tcc_compiler.language.diagnostics import Report
from tcc_compiler.resolve.amounts import Amounts
from tcc_compiler.resolve.domains import Parameter
from tcc_compiler.resolve.tools import Tool

MAX_MEMBERS = 1 << 20
MAX_TEXT_BYTES = 16 * 1024 * 1024


class Call(NamedTuple):
    """A call: its canonical text, its tool, the places of its values, its amounts."""

    text: str
    tool: str
    values: tuple[int, ...]
    amounts: Amounts


class Selection(NamedTuple):
    """A resolved pattern: a tool, and for each bound parameter the places of its values.

    Both lists of `where` increase.
    """

    tool: str
    where: tuple[tuple[int, tuple[int, ...]], ...]


def is_void(selection: Selection) -> bool:
    """Whether a pattern stands for no call: for some parameter no value is left."""
    return any(not values for _, values in selection.where)


class TooManyMembers(Exception):
    """The patterns of a grammar hold more calls than the limit."""


def calls_in(tool: Tool) -> int:
    """How many calls a tool has."""
    return len(tool.amounts)


def text_bytes(tool: Tool) -> int:
    """How long the canonical texts of a tool's calls are together, in bytes of UTF-8."""
    count = calls_in(tool)
    total = count * (len(written(tool.name).encode()) + 2)
    for parameter in tool.parameters:
        each = count // len(parameter.values)
        texts = sum(len(text.encode()) for text in parameter.values)
        given = count - each if parameter.optional else count
        total += given * (len(written(parameter.name).encode()) + 2)
        total += texts * each
    return total


@frozen
class CallList:
    """The calls of a grammar.

    Attributes:
        tools: by name.
        calls: strictly increasing by the bytes of their texts.
        places: for each tool the index of each of its calls, the last parameter fastest.
    """

    tools: Mapping[str, Tool]
    calls: Sequence[Call]
    places: Mapping[str, Sequence[int]]
    _known: dict[Selection, CallSet] = field(default_factory=dict)
    _held: list[int] = field(default_factory=lambda: [0])
    _wide: dict[str, Sequence[tuple[int, int]]] = field(default_factory=dict)

    @property
    def every(self) -> CallSet:
        """The set of all calls."""
        return ((0, len(self.calls)),)

    def calls_of(self, selection: Selection) -> CallSet:
        """The calls that a pattern stands for.

        Raises:
            TooManyMembers: this and the patterns before hold more than MAX_MEMBERS calls.
        """
        known = self._known.get(selection)
        if known is not None:
            return known
        if is_void(selection):
            return ()
        tool = self.tools[selection.tool]
        bound = dict(selection.where)
        widths = self._widths(tool)
        choices = [bound.get(i, range(width)) for i, width in widths]
        size = 1
        for choice in choices:
            size *= len(choice)
        self._held[0] += size
        if self._held[0] > MAX_MEMBERS:
            raise TooManyMembers
        numbers = [0]
        for (_, width), choice in zip(widths, choices, strict=True):
            numbers = [number * width + value for number in numbers for value in choice]
        places = self.places[selection.tool]
        call_set = _ranges(sorted(places[number] for number in numbers))
        self._known[selection] = call_set
        return call_set

    def _widths(self, tool: Tool) -> Sequence[tuple[int, int]]:
        """The parameters of a tool with more than one value, and how many they have."""
        widths = self._wide.get(tool.name)
        if widths is None:
            sizes = [(i, len(parameter.values)) for i, parameter in enumerate(tool.parameters)]
            widths = self._wide[tool.name] = [(i, size) for i, size in sizes if size > 1]
        return widths


def _number(tool: Tool, values: Sequence[int]) -> int:
    """The number of a call among those of its tool."""
    number = 0
    for parameter, value in zip(tool.parameters, values, strict=True):
        number = number * len(parameter.values) + value
    return number


def _ranges(indices: Iterable[int]) -> CallSet:
    """Increasing indices as half-open ranges with gaps between them."""
    ranges: list[tuple[int, int]] = []
    for index in indices:
        if ranges and ranges[-1][1] == index:
            ranges[-1] = (ranges[-1][0], index + 1)
        else:
            ranges.append((index, index + 1))
    return tuple(ranges)


def call_list_of(tools: Mapping[str, Tool], report: Report) -> CallList:
    """All calls of some tools; their number and their texts are known to be small enough."""
    calls: list[Call] = []
    for tool in tools.values():
        head = written(tool.name)
        pieces = [_pieces(parameter) for parameter in tool.parameters]
        places = product(*(range(len(piece)) for piece in pieces))
        for values, amounts in zip(places, tool.amounts, strict=True):
            report.tick()
            given = [piece[value] for piece, value in zip(pieces, values, strict=True)]
            inside = ",".join(filter(None, given))
            text = f"{head}({inside})" if inside else head
            calls.append(Call(text, tool.name, values, amounts))
    calls.sort(key=lambda call: call.text.encode())
    places_of: dict[str, list[int]] = {name: [0] * calls_in(tool) for name, tool in tools.items()}
    for index, call in enumerate(calls):
        places_of[call.tool][_number(tools[call.tool], call.values)] = index
    return CallList(tools=tools, calls=calls, places=places_of)


def _pieces(parameter: Parameter) -> list[str]:
    """What each value of a parameter adds to the text of a call; nothing where it is left out."""
    name = written(parameter.name)
    return [f"{name}={text}" if text else "" for text in parameter.values]


def selection_text(tool: Tool, selection: Selection) -> str:
    """The canonical text of a pattern."""
    bound = [
        f"{written(tool.parameters[place].name)}="
        + "|".join(tool.parameters[place].values[value] for value in values)
        for place, values in selection.where
    ]
    return f"{written(tool.name)}({','.join(bound)})" if bound else written(tool.name)
