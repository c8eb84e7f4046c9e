"""Calls of plans: all calls of the tools in order, and the sets that patterns stand for.

Normative text: docs/spec/core.md, section 5. Cost: linear in the calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from tcc_certs.formats.codec import written
from tcc_certs.policy.plans import Call, CallSet
from tcc_compiler.language.diagnostics import Report
from tcc_compiler.names.listed import Listed
from tcc_compiler.names.tools import DeclaredTool

MAX_MEMBERS = 1 << 20
MAX_TEXT_BYTES = 16 * 1024 * 1024


class Selection(NamedTuple):
    """A pattern: a tool, and for each field that it names the places of the values.

    The fields in `where`, and the places of each, are increasing. The tool '' stands for every
    call.
    """

    tool: str
    where: tuple[tuple[int, tuple[int, ...]], ...] = ()


ANY = Selection("")


class TooManyMembers(Exception):
    """Raised if the patterns of a grammar have more members than the limit."""


def text_bytes(tool: DeclaredTool) -> int:
    """Return the total length of the canonical texts of a tool's calls, in bytes of UTF-8."""
    count = len(tool.amounts)
    total = count * (len(written(tool.name).encode()) + 2)
    for field in tool.fields:
        each = count // len(field.values)
        texts = sum(len(text.encode()) for text in field.values)
        given = count - each if field.optional else count
        total += given * (len(written(field.name).encode()) + 2)
        total += texts * each
    return total


class CallList:
    """The calls of a grammar.

    Attributes:
        calls: all calls, strictly increasing by the bytes of their texts.
    """

    def __init__(self, tools: Mapping[str, DeclaredTool], report: Report) -> None:
        """Make all calls; the caller has checked their number and the size of their texts."""
        self._tools = tools
        self._known: dict[Selection, CallSet] = {}
        self._wide: dict[str, Sequence[tuple[int, int]]] = {}
        self._held = 0
        found: list[tuple[bytes, Call, int]] = []
        for at, tool in enumerate(tools.values()):
            head = written(tool.name)
            pieces = [_pieces(field) for field in tool.fields]
            places = product(*(range(len(piece)) for piece in pieces))
            for number, (values, amounts) in enumerate(zip(places, tool.amounts, strict=True)):
                report.tick()
                given = [piece[value] for piece, value in zip(pieces, values, strict=True)]
                inside = ",".join(filter(None, given))
                text = f"{head}({inside})" if inside else head
                cost_low, cost_high, price, latency, epsilon = amounts
                call = Call(
                    text=text, tool=at, values=values, cost_low=cost_low, cost_high=cost_high,
                    price=price, latency=latency, epsilon=epsilon,
                )  # fmt: skip
                found.append((text.encode(), call, number))
        found.sort(key=lambda one: one[0])
        self.calls = tuple([call for _, call, _ in found])
        # For each tool, the indices of its calls; the last field varies fastest.
        self._places = [[0] * len(tool.amounts) for tool in tools.values()]
        for index, (_, call, number) in enumerate(found):
            self._places[call.tool][number] = index
        self._numbers = {name: at for at, name in enumerate(tools)}

    def calls_of(self, selection: Selection) -> CallSet:
        """Return the calls that a pattern stands for.

        Raises:
            TooManyMembers: this pattern and the earlier ones have more than MAX_MEMBERS calls.
        """
        if selection == ANY:
            return ((0, len(self.calls)),)
        known = self._known.get(selection)
        if known is None:
            known = self._known[selection] = self._found(selection)
        return known

    def _found(self, selection: Selection) -> CallSet:
        bound = dict(selection.where)
        widths = self._widths(selection.tool)
        choices = [bound.get(at, range(width)) for at, width in widths]
        size = 1
        for choice in choices:
            size *= len(choice)
        self._held += size
        if self._held > MAX_MEMBERS:
            raise TooManyMembers
        numbers = [0]
        for (_, width), choice in zip(widths, choices, strict=True):
            numbers = [number * width + value for number in numbers for value in choice]
        places = self._places[self._numbers[selection.tool]]
        return ranges_of(sorted([places[number] for number in numbers]))

    def _widths(self, tool: str) -> Sequence[tuple[int, int]]:
        """Return (place, number of values) of each field of a tool with more than one value."""
        widths = self._wide.get(tool)
        if widths is None:
            sizes = [(at, len(one.values)) for at, one in enumerate(self._tools[tool].fields)]
            widths = self._wide[tool] = [(at, size) for at, size in sizes if size > 1]
        return widths


def ranges_of(indices: Iterable[int]) -> CallSet:
    """Return increasing indices as half-open ranges with gaps between them."""
    ranges: list[tuple[int, int]] = []
    for index in indices:
        if ranges and ranges[-1][1] == index:
            ranges[-1] = (ranges[-1][0], index + 1)
        else:
            ranges.append((index, index + 1))
    return tuple(ranges)


def _pieces(field: Listed) -> Sequence[str]:
    """Return what each value of a field adds to the text of a call; empty if it is left out."""
    name = written(field.name)
    return [f"{name}={text}" if text else "" for text in field.values]
