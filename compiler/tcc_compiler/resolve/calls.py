"""The calls of a grammar in canonical order; patterns and terms that mean sets of them.

Normative text: docs/spec/language.md, sections 7 and 8; docs/spec/core.md, section 1.  A name whose
definition has an error is not reported as unknown.  Cost: a sort of the calls; a pattern costs the
calls that it stands for, each distinct one once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from itertools import product
from typing import NamedTuple

from tcc_certs.policy.plans import CallSet
from tcc_certs.formats.codec import written
from tcc_compiler.frozen import frozen
from tcc_compiler.language import ast
from tcc_compiler.language.diagnostics import Report, quote, some, suggest
from tcc_compiler.resolve.amounts import Amounts, values_of
from tcc_compiler.resolve.parameters import ResolvedParameter
from tcc_compiler.resolve.program import Program
from tcc_compiler.resolve.tools import ResolvedTool

MAX_MEMBERS = 1 << 20
MAX_HEIGHT = 50  # of rules in rules, of terms and relations
MAX_TEXT_BYTES = 16 * 1024 * 1024


class ResolvedCall(NamedTuple):
    """A call: its canonical text, its tool, the places of its values, its amounts."""

    text: str
    tool: str
    values: tuple[int, ...]
    amounts: Amounts


class ResolvedSelection(NamedTuple):
    """A resolved pattern: a tool, and for each bound parameter the places of its values.

    Both lists of `where` increase.
    """

    tool: str
    where: tuple[tuple[int, tuple[int, ...]], ...]


def is_void(selection: ResolvedSelection) -> bool:
    """Whether a pattern stands for no call: for some parameter no value is left."""
    return any(not values for _, values in selection.where)


class TooManyMembers(Exception):
    """The patterns of a grammar hold more calls than the limit."""


def calls_in(tool: ResolvedTool) -> int:
    """How many calls a tool has."""
    return len(tool.amounts)


def text_bytes(tool: ResolvedTool) -> int:
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

    tools: Mapping[str, ResolvedTool]
    calls: Sequence[ResolvedCall]
    places: Mapping[str, Sequence[int]]
    _known: dict[ResolvedSelection, CallSet] = field(default_factory=dict)
    _held: list[int] = field(default_factory=lambda: [0])
    _wide: dict[str, Sequence[tuple[int, int]]] = field(default_factory=dict)

    @property
    def every(self) -> CallSet:
        """The set of all calls."""
        return ((0, len(self.calls)),)

    def calls_of(self, selection: ResolvedSelection) -> CallSet:
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

    def _widths(self, tool: ResolvedTool) -> Sequence[tuple[int, int]]:
        """The parameters of a tool with more than one value, and how many they have."""
        widths = self._wide.get(tool.name)
        if widths is None:
            sizes = [(i, len(parameter.values)) for i, parameter in enumerate(tool.parameters)]
            widths = self._wide[tool.name] = [(i, size) for i, size in sizes if size > 1]
        return widths


def _number(tool: ResolvedTool, values: Sequence[int]) -> int:
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


def call_list_of(tools: Mapping[str, ResolvedTool], report: Report) -> CallList:
    """All calls of some tools; their number and their texts are known to be small enough."""
    calls: list[ResolvedCall] = []
    for tool in tools.values():
        head = written(tool.name)
        pieces = [_pieces(parameter) for parameter in tool.parameters]
        places = product(*(range(len(piece)) for piece in pieces))
        for values, amounts in zip(places, tool.amounts, strict=True):
            report.tick()
            given = [piece[value] for piece, value in zip(pieces, values, strict=True)]
            inside = ",".join(filter(None, given))
            text = f"{head}({inside})" if inside else head
            calls.append(ResolvedCall(text, tool.name, values, amounts))
    calls.sort(key=lambda call: call.text.encode())
    places_of: dict[str, list[int]] = {name: [0] * calls_in(tool) for name, tool in tools.items()}
    for index, call in enumerate(calls):
        places_of[call.tool][_number(tools[call.tool], call.values)] = index
    return CallList(tools=tools, calls=calls, places=places_of)


def _pieces(parameter: ResolvedParameter) -> list[str]:
    """What each value of a parameter adds to the text of a call; nothing where it is left out."""
    name = written(parameter.name)
    return [f"{name}={text}" if text else "" for text in parameter.values]


def selection_text(tool: ResolvedTool, selection: ResolvedSelection) -> str:
    """The canonical text of a pattern."""
    bound = [
        f"{written(tool.parameters[place].name)}="
        + "|".join(tool.parameters[place].values[value] for value in values)
        for place, values in selection.where
    ]
    return f"{written(tool.name)}({','.join(bound)})" if bound else written(tool.name)


# Patterns and names in expressions, looked up among the tools and rules that are defined.

# Words that a plan has signs for.
_OPERATORS = {
    "or": "alternatives are written 'a | b'",
    "and": "calls that follow each other stand side by side; 'a & b' asks for both",
    "then": "calls that follow each other stand side by side",
    "not": "a call is ruled out by 'any - a', or by a `forbid` statement",
}


def _known(what: str, names: Sequence[str]) -> str:
    return f"{what} {some(names)}"


def _other_parameter(tool: ResolvedTool, name: ast.Word) -> str:
    places = list(tool.places)
    if not places:
        return f"it has none: write {written(tool.name)}"
    return suggest(name.text, places) or _known("it has", places)


@frozen
class Scope:
    """What names mean.

    Attributes:
        tools: by name; None for a tool with an error in it.
        rules: the names of the rules.
    """

    program: Program
    tools: Mapping[str, ResolvedTool | None]
    report: Report

    def selection(self, pattern: ast.Pattern) -> ResolvedSelection | None:
        """The pattern resolved; None after an error, here or in its tool."""
        name = pattern.name.text
        if name not in self.tools:
            self._report_no_tool(pattern)
            return None
        tool = self.tools[name]
        return None if tool is None else self._selection(tool, pattern)

    def is_rule(self, reference: ast.Reference) -> bool:
        """True for the name of a rule; what is neither rule nor tool is left to `selection`."""
        name = reference.pattern.name.text
        return name in self.program.rules and name not in self.tools

    def check(self, reference: ast.Reference) -> None:
        """Report what is wrong with a name or a pattern in an expression."""
        name = reference.pattern.name
        if name.text in self.tools or reference.pattern.arguments:
            self.selection(reference.pattern)
        elif name.text not in self.program.rules and not self._excused(name.text):
            known = [*self.tools, *self.program.rules]
            message = f"no tool or rule is named {quote(name.text)}"
            hint = _OPERATORS.get(name.text) or suggest(name.text, known)
            hint = hint or _known("the tools and rules are", known)
            self.report.error("TCC202", name.region, message, hint)

    def _excused(self, name: str) -> bool:
        # Without a tool every name is unknown, and that is said once.
        return name in self.program.broken or self.program.incomplete or not self.tools

    def _report_no_tool(self, pattern: ast.Pattern) -> None:
        name = pattern.name
        if name.text in self.program.rules:
            message = f"{quote(name.text)} is a rule; a pattern names a tool"
            note = [("the rule", self.program.rules[name.text].name.region)]
            hint = "name the tools of the rule, in a line of their own each"
            self.report.error("TCC203", name.region, message, hint, note)
        elif not self._excused(name.text):
            message = f"no tool is named {quote(name.text)}"
            tools = list(self.tools)
            hint = suggest(name.text, tools) or _known("the tools are", tools)
            self.report.error("TCC203", name.region, message, hint)

    def _report_open(self, tool: ResolvedTool, name: ast.Word) -> None:
        self.report.error(
            "TCC216",
            name.region,
            f"{quote(name.text)} of {quote(tool.name)} is open, and no pattern tells its values"
            " apart",
            "list the values that matter before the semicolon; narrow the type of the parameter; "
            "or ask for one value in two calls by `same`",
        )

    def _selection(self, tool: ResolvedTool, pattern: ast.Pattern) -> ResolvedSelection | None:
        if not pattern.arguments:
            return ResolvedSelection(tool.name, ())
        places = tool.places
        where: dict[int, tuple[int, ...]] = {}
        sound = True
        for argument in pattern.arguments:
            name = argument.name
            place = places.get(name.text)
            if name.text in tool.opened:
                self._report_open(tool, name)
                sound = False
                continue
            if place is None:
                message = f"tool {quote(tool.name)} has no parameter {quote(name.text)}"
                self.report.error("TCC204", name.region, message, _other_parameter(tool, name))
                sound = False
                continue
            if place in where:
                message = f"the parameter {quote(name.text)} is given twice"
                hint = "list the values of one argument: k=1|2"
                first = next(a for a in pattern.arguments if a.name.text == name.text)
                note = [("first given here", first.name.region)]
                self.report.error("TCC211", name.region, message, hint, note)
                sound = False
            values = values_of(argument.values, tool.parameters[place], self.report)
            sound &= values is not None
            where[place] = values or ()
        return ResolvedSelection(tool.name, tuple(sorted(where.items()))) if sound else None


@frozen
class Chosen:
    """A set of calls, resolved.

    Attributes:
        op: ``call`` of one selection, ``any``, ``|`` or ``-``.
        tools: those that its calls can be of.
    """

    op: str
    tools: tuple[str, ...]
    selection: ResolvedSelection | None = None
    items: tuple[Chosen, ...] = ()


def chosen_of(calls: ast.CallsTerm, scope: Scope) -> Chosen | None:
    """The set, None after an error."""
    match calls:
        case ast.AnySet():
            return _any(scope)
        case ast.Pattern():
            return _of_pattern(calls, scope)
        case ast.SetOf():
            items = [chosen_of(item, scope) for item in calls.items]
            return _joined(calls.op, items)


def _any(scope: Scope) -> Chosen:
    return Chosen(op="any", tools=tuple(scope.tools))


def _joined(op: str, items: Sequence[Chosen | None]) -> Chosen | None:
    sound = tuple(item for item in items if item is not None)
    if len(sound) < len(items):
        return None
    named = sound[:1] if op == "-" else sound
    tools = tuple(dict.fromkeys(tool for item in named for tool in item.tools))
    return Chosen(op=op, tools=tools, items=sound)


def _of_pattern(pattern: ast.Pattern, scope: Scope) -> Chosen | None:
    name = pattern.name.text
    rule = scope.program.rules.get(name)
    if rule is not None and name not in scope.tools and not pattern.arguments:
        found = _of_rule(rule.body, scope, (name,))
        if found is None:
            scope.report.error(
                "TCC203", pattern.name.region,
                f"{quote(name)} is a rule, and its plans are not all single calls",
                "a set of calls is a tool, `a | b`, `a - b`, `any`, or a rule of these",
                [("the rule", rule.name.region)],
            )  # fmt: skip
        return found
    selection = scope.selection(pattern)
    if selection is None:
        return None
    return Chosen(op="call", tools=(selection.tool,), selection=selection)


def _of_rule(body: ast.Expression, scope: Scope, within: tuple[str, ...]) -> Chosen | None:
    """The set that a rule of single calls is; None where it is none."""
    scope.report.tick()
    match body:
        case ast.AnyCall():
            return _any(scope)
        case ast.Reference():
            name = body.pattern.name.text
            rule = scope.program.rules.get(name)
            if rule is None or name in scope.tools or body.pattern.arguments:
                if name not in scope.tools:
                    return None
                selection = scope.selection(body.pattern)
                if selection is None:
                    return None
                return Chosen(op="call", tools=(selection.tool,), selection=selection)
            if name in within or len(within) > MAX_HEIGHT:
                return None
            return _of_rule(rule.body, scope, (*within, name))
        case ast.Many(kind="alt"):
            return _joined("|", [_of_rule(item, scope, within) for item in body.items])
        case ast.Minus():
            parts = (body.base, *body.others)
            return _joined("-", [_of_rule(item, scope, within) for item in parts])
        case _:
            return None


def members(chosen: Chosen, call_list: CallList) -> frozenset[int]:
    """The numbers of the calls of a set.

    Raises:
        TooManyMembers: see :meth:`CallList.calls_of`.
    """
    if chosen.op == "any":
        return frozenset(range(len(call_list.calls)))
    if chosen.selection is not None:
        ranges = call_list.calls_of(chosen.selection)
        return frozenset(number for low, high in ranges for number in range(low, high))
    first, *others = (members(item, call_list) for item in chosen.items)
    return first.union(*others) if chosen.op == "|" else first.difference(*others)
