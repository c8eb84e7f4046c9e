"""Patterns and names in expressions, looked up among the tools and rules that are defined.

Normative text: docs/spec/language.md, sections 7 and 8.  A name whose definition has an error is
not reported as unknown.  Cost: linear in the patterns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tcc_certs.formats.names import written
from tcc_compiler.frozen import frozen
from tcc_compiler.language.ast.expressions import Reference
from tcc_compiler.language.ast.leaves import Pattern, Word
from tcc_compiler.language.diagnostics import Report, quote, some, suggest
from tcc_compiler.resolve.calls import Selection
from tcc_compiler.resolve.conditions import values_of
from tcc_compiler.resolve.program import Program
from tcc_compiler.resolve.tools import Tool

# Words that a plan has signs for.
_OPERATORS = {
    "or": "alternatives are written 'a | b'",
    "and": "calls that follow each other stand side by side; 'a & b' asks for both",
    "then": "calls that follow each other stand side by side",
    "not": "a call is ruled out by 'any - a', or by a `forbid` statement",
}


def _known(what: str, names: Sequence[str]) -> str:
    return f"{what} {some(names)}"


def _other_parameter(tool: Tool, name: Word) -> str:
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
    tools: Mapping[str, Tool | None]
    report: Report

    def selection(self, pattern: Pattern) -> Selection | None:
        """The pattern resolved; None after an error, here or in its tool."""
        name = pattern.name.text
        if name not in self.tools:
            self._report_no_tool(pattern)
            return None
        tool = self.tools[name]
        return None if tool is None else self._selection(tool, pattern)

    def is_rule(self, reference: Reference) -> bool:
        """True for the name of a rule; what is neither rule nor tool is left to `selection`."""
        name = reference.pattern.name.text
        return name in self.program.rules and name not in self.tools

    def check(self, reference: Reference) -> None:
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

    def _report_no_tool(self, pattern: Pattern) -> None:
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

    def _report_open(self, tool: Tool, name: Word) -> None:
        self.report.error(
            "TCC216",
            name.region,
            f"{quote(name.text)} of {quote(tool.name)} is open, and no pattern tells its values"
            " apart",
            "list the values that matter before the semicolon; narrow the type of the parameter; "
            "or ask for one value in two calls by `same`",
        )

    def _selection(self, tool: Tool, pattern: Pattern) -> Selection | None:
        if not pattern.arguments:
            return Selection(tool.name, ())
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
        return Selection(tool.name, tuple(sorted(where.items()))) if sound else None
