"""The calls of a grammar in canonical order, and the call sets of patterns.

Normative text: docs/spec/language.md, section 7; docs/spec/core.md, section 1.  Cost: a sort of the
calls; a pattern costs the calls that it stands for, each distinct one once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

from tcc_certs.core.model import CallSet
from tcc_compiler.diagnostics import Report
from tcc_compiler.resolve.amounts import Weights
from tcc_compiler.resolve.tools import Tool

MAX_MEMBERS = 1 << 20
MAX_TEXT_BYTES = 16 * 1024 * 1024


class Call(NamedTuple):
    """A call: its canonical text, its tool, the places of its values, its amounts."""

    text: str
    tool: str
    values: tuple[int, ...]
    weights: Weights


class Selection(NamedTuple):
    """A resolved pattern: a tool, and for each bound parameter the places of its values.

    Both lists of `where` increase.
    """

    tool: str
    where: tuple[tuple[int, tuple[int, ...]], ...]


class TooMany(Exception):
    """The patterns of a grammar hold more calls than the limit."""


def calls_in(tool: Tool) -> int:
    """How many calls a tool has."""
    return len(tool.weights)


def text_bytes(tool: Tool) -> int:
    """How long the canonical texts of a tool's calls are together, in bytes of UTF-8."""
    count = calls_in(tool)
    total = count * (len(tool.name) + 2)
    for parameter in tool.parameters:
        texts = sum(len(text.encode()) for text in parameter.values)
        total += count * (len(parameter.name) + 2)
        total += texts * (count // len(parameter.values))
    return total


@dataclass(frozen=True, slots=True, kw_only=True)
class Alphabet:
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
            TooMany: this and the patterns before hold more than MAX_MEMBERS calls.
        """
        known = self._known.get(selection)
        if known is not None:
            return known
        tool = self.tools[selection.tool]
        bound = dict(selection.where)
        widths = self._widths(tool)
        choices = [bound.get(i, range(width)) for i, width in widths]
        size = 1
        for choice in choices:
            size *= len(choice)
        self._held[0] += size
        if self._held[0] > MAX_MEMBERS:
            raise TooMany
        numbers = [0]
        for (_, width), choice in zip(widths, choices, strict=True):
            numbers = [number * width + value for number in numbers for value in choice]
        places = self.places[selection.tool]
        found = _ranges(sorted(places[number] for number in numbers))
        self._known[selection] = found
        return found

    def _widths(self, tool: Tool) -> Sequence[tuple[int, int]]:
        """The parameters of a tool with more than one value, and how many they have."""
        found = self._wide.get(tool.name)
        if found is None:
            sizes = [(i, len(parameter.values)) for i, parameter in enumerate(tool.parameters)]
            found = self._wide[tool.name] = [(i, size) for i, size in sizes if size > 1]
        return found


def _number(tool: Tool, values: Sequence[int]) -> int:
    """The number of a call among those of its tool."""
    number = 0
    for parameter, value in zip(tool.parameters, values, strict=True):
        number = number * len(parameter.values) + value
    return number


def _ranges(indices: Iterable[int]) -> CallSet:
    """Increasing indices as half-open ranges that do not touch."""
    found: list[tuple[int, int]] = []
    for index in indices:
        if found and found[-1][1] == index:
            found[-1] = (found[-1][0], index + 1)
        else:
            found.append((index, index + 1))
    return tuple(found)


def alphabet_of(tools: Mapping[str, Tool], report: Report) -> Alphabet:
    """All calls of some tools; their number and their texts are known to be small enough."""
    calls: list[Call] = []
    for tool in tools.values():
        pieces = [
            [f"{parameter.name}={text}" for text in parameter.values]
            for parameter in tool.parameters
        ]
        places = product(*(range(len(piece)) for piece in pieces))
        for values, weights in zip(places, tool.weights, strict=True):
            report.tick()
            inside = ",".join(piece[value] for piece, value in zip(pieces, values, strict=True))
            text = f"{tool.name}({inside})" if pieces else tool.name
            calls.append(Call(text, tool.name, values, weights))
    calls.sort(key=lambda call: call.text.encode())
    found: dict[str, list[int]] = {name: [0] * calls_in(tool) for name, tool in tools.items()}
    for index, call in enumerate(calls):
        found[call.tool][_number(tools[call.tool], call.values)] = index
    return Alphabet(tools=tools, calls=calls, places=found)


def selection_text(tool: Tool, selection: Selection) -> str:
    """The canonical text of a pattern."""
    bound = [
        f"{tool.parameters[place].name}="
        + "|".join(tool.parameters[place].values[value] for value in values)
        for place, values in selection.where
    ]
    return f"{tool.name}({','.join(bound)})" if bound else tool.name
