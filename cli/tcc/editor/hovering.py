"""What is shown of the name under the pointer: its declaration, its doc, how many plans have it.

Plans are counted where the text compiles, exactly, and the automaton is small.
Cost: linear in the text; for the plans one pass over at most MOST_EDGES edges.
"""

from __future__ import annotations

import re

from tcc import screen
from tcc.describe import bounds_plans
from tcc.editor.diagnosing import Diagnosed
from tcc_certs.formats.names import written
from tcc_certs.plain import escaped
from tcc_compiler.editing.occurrences import Occurrence
from tcc_compiler.editing.project import Project, statement_ends
from tcc_compiler.language.ast.statements import RuleStatement, ToolStatement
from tcc_compiler.language.ast.tools import Doc, Domain, OpenDeclaration, ParameterDeclaration
from tcc_compiler.language.source import Source
from tcc_compiler.language.spans import Region
from tcc_runtime.artifact.load import Artifact

MOST_EDGES = 100_000
_MOST_BITS = 4096  # of a number of plans that is worked with
_MOST_SHOWN = 2000
_MARKS = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~&])")


def hover_text(project: Project, found: Occurrence, diagnosed: Diagnosed | None) -> str | None:
    """What is to be shown, in Markdown; None where there is nothing to say."""
    match found.kind:
        case "tool":
            tool = project.tool(found.key[0])
            return None if tool is None else _tool(project, tool, diagnosed)
        case "rule":
            rules = (s for s in project.statements if isinstance(s, RuleStatement))
            rule = next((rule for rule in rules if rule.name.text == found.key[0]), None)
            return None if rule is None else _statement(project, rule.region)
        case "parameter" | "value":
            return _parameter(project, found.key[0], found.key[1])
        case _:
            return None


def _tool(project: Project, tool: ToolStatement, diagnosed: Diagnosed | None) -> str:
    parts = [_statement(project, tool.region)]
    for attribute in tool.attributes:
        if isinstance(attribute, Doc):
            parts.append(_MARKS.sub(r"\\\1", escaped(attribute.text.value[:_MOST_SHOWN])))
    calls = _calls(tool)
    said = [f"{calls} call{'' if calls == '1' else 's'}"]
    artifact = None if diagnosed is None else current_artifact(project, diagnosed)
    if artifact is not None:
        counted = plans_with(artifact, tool.name.text)
        if counted is not None:
            some, every = map(screen.big, counted)
            said.append(f"in {some} of {every} plans")
    return "\n\n".join([*parts, ", ".join(said)])


def _parameter(project: Project, owner: str, name: str) -> str | None:
    tool = project.tool(owner)
    if tool is None:
        return None
    for parameter in (*tool.parameters, *tool.opened, *tool.observed):
        if parameter.name.text == name:
            region = _declaration(parameter)
            return f"parameter of `{written(owner)}`\n\n{_fenced(project, region)}"
    return None


def _declaration(parameter: ParameterDeclaration | OpenDeclaration) -> Region:
    """The characters of a parameter with its values or its type."""
    if isinstance(parameter, ParameterDeclaration):
        return parameter.name.region.to(parameter.domain.region)
    last = parameter.parts[-1].region if parameter.parts else parameter.type.region
    return parameter.name.region.to(last)


def _statement(project: Project, region: Region) -> str:
    """A statement as it is written, from its word to its last token."""
    end = statement_ends(project.sources[region.source]).get(region.start, region.end)
    return _fenced(project, Region(region.source, region.start, end))


def _fenced(project: Project, region: Region) -> str:
    source: Source = project.sources[region.source]
    text = source.text[region.start : region.end][:_MOST_SHOWN]
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    shown = "\n".join(escaped(line) for line in text.splitlines())
    return f"{fence}tcg\n{shown}\n{fence}"


def _calls(tool: ToolStatement) -> str:
    """How many calls a tool stands for: the product of its listed and observed values."""
    calls = 1
    for parameter in (*tool.parameters, *tool.opened, *tool.observed):
        domain = getattr(parameter, "domain", None)
        if not isinstance(domain, Domain):
            continue
        size = len(domain.values)
        if domain.ends is not None:
            size = max(0, int(domain.ends[1].value) - int(domain.ends[0].value) + 1)
        calls *= size + parameter.optional
        if calls.bit_length() > _MOST_BITS:
            return "very many"
    return screen.big(calls)


def current_artifact(project: Project, diagnosed: Diagnosed) -> Artifact | None:
    """What the texts of a project compile to; None where others were compiled, or none."""
    linted = diagnosed.linted
    if linted is None or linted.artifact is None:
        return None
    same = [source.text for source in project.sources] == [
        source.text for source in linted.sources.values()
    ]
    return linted.artifact if same else None


def plans_with(artifact: Artifact, tool: str) -> tuple[int, int] | None:
    """How many plans call a tool, and how many there are; None where that is not exact, or dear."""
    rows = artifact.automaton
    if bounds_plans(artifact) or len(rows.edge_call) > MOST_EDGES:
        return None
    name = written(tool)
    mine = [text == name or text.startswith(f"{name}(") for text in artifact.texts]
    every, without = [0] * rows.states, [0] * rows.states
    for q in range(rows.states):
        every[q] = without[q] = int(rows.accept[q] != 0)
        for at in range(rows.edge_start[q], rows.edge_start[q + 1]):
            target = rows.edge_target[at]
            every[q] += every[target]
            if not mine[rows.edge_call[at]]:
                without[q] += without[target]
        if every[q].bit_length() > _MOST_BITS:
            return None
    return every[-1] - without[-1], every[-1]
