"""A tool's arguments: read, held to its parameters, and turned into one of its calls.

Only exact types of JSON are values (str, int, float, Decimal, bool, None, dict, list, tuple):
an object of another class could answer differently each time it is asked.
Text: docs/spec/core.md, section 2; docs/gate.md.
Cost: a look-up for each listed argument and one for the call; an open argument its size.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, TypeAlias

from tcc_certs.core.model import Core, Parameter, Tool
from tcc_certs.errors import Code, Rejected
from tcc_certs.values.listed import json_of, text_of
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.gate.opened import Check, Given, Trouble, checker
from tcc_runtime.gate.refusals import Allowed, Scalar

Indices: TypeAlias = "tuple[int, ...]"
_SAFE: Final = 1 << 53


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The calls of one tool that differ in observed values alone: what a caller may choose.

    Attributes:
        tool: its number in the core.
        text: canonical, without observed parameters.
        listed: the indices of the listed values.
        calls: the calls of the artifact, one for each combination of observed values that is one.
        by_observed: the same by the indices of the observed values.
        combinations: how many there could be.
    """

    tool: int
    text: str
    listed: Indices
    calls: tuple[int, ...]
    by_observed: Mapping[Indices, int]
    combinations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A call that was asked for and is well formed.

    Attributes:
        table: its tool.
        group: which calls of the artifact it may turn out to be.
        opened: its open arguments, in declared order.
    """

    table: ToolTable
    group: Group
    opened: tuple[Given, ...]


class Listed:
    """The values of a listed or an observed parameter, by JSON value."""

    __slots__ = ("_numbers", "_texts", "_words", "name", "optional", "shown", "values")

    def __init__(self, parameter: Parameter) -> None:
        self.name = parameter.name
        self.optional = parameter.values[0] == ""
        self.values = parameter.values
        self.shown: list[Scalar] = []
        self._texts: dict[str, int] = {}
        self._numbers: dict[int | Decimal, int] = {}
        self._words: dict[bool | None, int] = {}
        for at, text in enumerate(parameter.values):
            self._add(at, text)

    def _add(self, at: int, text: str) -> None:
        if not text:
            self.shown.append(None)
            return
        value = json_of(text)
        self.shown.append(_plain_number(value, text) if isinstance(value, Decimal) else value)
        if isinstance(value, str):
            self._texts[value] = at
        elif value is None or isinstance(value, bool):
            self._words[value] = at
        else:
            self._numbers[value] = at

    def index(self, value: object) -> int | Code:
        """The place of a JSON value among the values."""
        found: int | None = None
        if type(value) is str:
            found = self._texts.get(value)
        elif value is None or type(value) is bool:
            found = self._words.get(value)
        elif type(value) is int:
            found = self._numbers.get(value) if -_SAFE < value < _SAFE else self._by_text(value)
        elif type(value) is float or type(value) is Decimal:
            found = self._by_text(value)
        else:
            return Code.NO_VALUE
        if found is None:
            return Code.NO_VALUE if text_of(value) is None else Code.UNLISTED_VALUE
        return found

    def _by_text(self, value: int | float | Decimal) -> int | None:
        text = text_of(value)
        return None if text is None or text not in self.values else self.values.index(text)


def _plain_number(value: Decimal, text: str) -> Scalar:
    """A float where it prints back as this text: what JSON's own writer takes."""
    return float(value) if text_of(float(value)) == text else value


class ToolTable:
    """What a tool takes, made when the tool is first asked for.

    Attributes:
        number: in the core.
        tool: as the core has it.
        listed, observed: its parameters.
        opened: the names of its open ones, in declared order.
        groups: its calls by the indices of their listed values.
    """

    __slots__ = ("_checks", "_slots", "groups", "listed", "number", "observed", "opened", "tool")

    def __init__(self, artifact: Artifact, number: int) -> None:
        core = artifact.core
        self.number = number
        self.tool: Tool = core.tools[number]
        parameters = self.tool.parameters
        self.listed = [Listed(p) for p in parameters if not p.observed]
        self.observed = [Listed(p) for p in parameters if p.observed]
        self.opened = [given.name for given in self.tool.opened]
        self._checks: list[tuple[str, bool, Check]] = [
            (given.name, given.optional, checker(given.type)) for given in self.tool.opened
        ]
        self._slots = frozenset([*(p.name for p in self.listed), *self.opened])
        self.groups: dict[Indices, Group] = {}
        self._group(artifact, core)

    def _group(self, artifact: Artifact, core: Core) -> None:
        """All calls of the tool; they stand together in a core."""
        split = len(self.listed)
        gathered: dict[Indices, list[tuple[Indices, int]]] = {}
        for index in _calls_of(core, self.number):
            call = core.calls[index]
            own = artifact.call_index(call.text)
            of = gathered.setdefault(call.values[:split], [])
            if own is not None:
                of.append((call.values[split:], own))
        combinations = 1
        for parameter in self.observed:
            combinations *= len(parameter.values)
        for listed, members in gathered.items():
            self.groups[listed] = Group(
                tool=self.number,
                text=self.text(listed),
                listed=listed,
                calls=tuple(own for _, own in members),
                by_observed=dict(members),
                combinations=combinations,
            )

    def text(self, listed: Indices) -> str:
        """The canonical text of a call without its observed parameters."""
        inside = [
            f"{written(param.name)}={param.values[at]}"
            for param, at in zip(self.listed, listed, strict=True)
            if param.values[at]
        ]
        name = written(self.tool.name)
        return f"{name}({','.join(inside)})" if inside else name

    def read(self, arguments: object) -> Asked | Trouble:
        """The call that the arguments name, or what is wrong with them."""
        if type(arguments) is not dict:
            return Code.NO_VALUE, "arguments"
        for name in arguments:
            if type(name) is not str or name not in self._slots:
                return Code.UNDECLARED_ARGUMENT, name if type(name) is str else type(name).__name__
        indices = []
        for param in self.listed:
            if param.name in arguments:
                at = param.index(arguments[param.name])
                if isinstance(at, Code):
                    return at, param.name
                indices.append(at)
            elif param.optional:
                indices.append(0)
            else:
                return Code.MISSING_ARGUMENT, param.name
        opened: list[Given] = []
        for name, optional, check in self._checks:
            if name in arguments:
                found = check(arguments[name])
                if isinstance(found, Code):
                    return found, name
                opened.append((name, *found))
            elif not optional:
                return Code.MISSING_ARGUMENT, name
        group = self.groups.get(tuple(indices))
        if group is None:
            group = self._no_call(tuple(indices))
        return Asked(table=self, group=group, opened=tuple(opened))

    def _no_call(self, listed: Indices) -> Group:
        """Well formed, and in no plan."""
        return Group(
            tool=self.number,
            text=self.text(listed),
            listed=listed,
            calls=(),
            by_observed={},
            combinations=1,
        )

    def observe(self, told: object) -> Indices | None:
        """The observed values in a mapping that came back; None where one is missing or foreign."""
        if not self.observed:
            return ()
        if not isinstance(told, dict):
            return None
        found = []
        for param in self.observed:
            # Not by the value's own class, which could answer otherwise the next time.
            if not dict.__contains__(told, param.name):
                return None
            at = param.index(dict.__getitem__(told, param.name))
            if isinstance(at, Code):
                return None
            found.append(at)
        return tuple(found)

    def allowed(self, group: Group) -> Allowed:
        """The call of a group as JSON values."""
        pairs = zip(self.listed, group.listed, strict=True)
        given = {param.name: param.shown[at] for param, at in pairs if param.values[at]}
        return Allowed(self.tool.name, given)


def written(name: str) -> str:
    """A name as canonical texts have it."""
    from tcc_certs.formats.names import written as definition

    return definition(name)


def _calls_of(core: Core, tool: int) -> Iterator[int]:
    """The numbers of a tool's calls: calls are in order of their texts, which begin with a name."""
    name = written(core.tools[tool].name).encode()
    at = bisect_left(core.calls, name, key=lambda call: call.text.encode())
    while at < len(core.calls) and core.calls[at].text.encode().startswith(name):
        if core.calls[at].tool == tool:
            yield at
        at += 1


def ensure_values_distinct(tools: Sequence[Tool]) -> None:
    """Every JSON value is one listed value of its parameter.

    Raises:
        Rejected: C801, of a core in which two texts stand for one value.
    """
    for tool in tools:
        for parameter in tool.parameters:
            texts = [text for text in parameter.values if text]
            if len({text_of(json_of(text)) for text in texts}) < len(texts):
                path = f"values of {tool.name}.{parameter.name}"
                raise Rejected(Code.CORE_SCHEMA, path, "one text for each JSON value", "two")
