"""A text with the files that it uses, as far as they can be read, and where its names stand.

Statements with an error are left out, so a text that is being written has the names of the others.
Normative text: docs/spec/language.md, section 4.  Cost: that of parsing, within the time that the
caller gives, and linear in the statements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from tcc_compiler.frozen import frozen
from tcc_compiler.language import ast, source
from tcc_compiler.language.diagnostics import Diagnostic, Report
from tcc_compiler.language.syntax.tokens import split
from tcc_compiler.resolve.program import Read, gather

# Occurrences: of tools, rules, parameters, values, states, attributes of the session and files.

Kind: TypeAlias = Literal["tool", "rule", "parameter", "value", "state", "attribute", "file"]


@frozen
class Occurrence:
    """A name in a text.

    Attributes:
        kind: what it names.
        key: the name; before it that of the tool, and of the parameter, which it belongs to.
        region: its characters, with its quotes.
        defines: whether this is where it is declared.
    """

    kind: Kind
    key: tuple[str, ...]
    region: source.Region
    defines: bool = False


def occurrences_of(statements: Sequence[ast.Statement]) -> tuple[Occurrence, ...]:
    """Every name of some statements, in their order."""
    rules = frozenset(s.name.text for s in statements if isinstance(s, ast.RuleStatement))
    tools = frozenset(s.name.text for s in statements if isinstance(s, ast.ToolStatement))
    reader = _Reader(rules - tools)
    return tuple(found for statement in statements for found in reader.read(statement))


@frozen(kw_only=False)
class _Reader:
    rules: frozenset[str]

    def read(self, statement: ast.Statement) -> Iterator[Occurrence]:
        """The names of one statement."""
        match statement:
            case ast.ToolStatement():
                yield from _tool(statement)
            case ast.RuleStatement():
                yield _named("rule", statement.name, defines=True)
                yield from self._expression(statement.body)
            case ast.PlanStatement():
                yield from self._expression(statement.body)
            case ast.UseStatement():
                yield _file(statement.path)
            case ast.StartStatement():
                yield _named("state", statement.state)
            case ast.GoalStatement():
                yield from (_named("state", state) for state in statement.states)
            case ast.LimitStatement():
                yield from self._limit(statement)
            case ast.RequireStatement():
                first, second = statement.first, statement.second
                yield from (*self._pattern(first), *self._pattern(second))
                yield from _same(statement.same, first, second)
            case ast.ForbidStatement():
                for pattern in statement.patterns:
                    yield from self._pattern(pattern)
                yield from _same(statement.same, statement.patterns[0], statement.patterns[-1])
            case ast.MonitorStatement():
                yield from self.read(statement.statement)
            case ast.PolicyStatement():
                yield from self._policy(statement)
            case ast.LetStatement():
                yield _named("attribute", statement.name, defines=True)
                yield from self._let(statement)
            case ast.GivenStatement():
                for attribute in statement.attributes:
                    yield _named("attribute", attribute.name, defines=True)
            case ast.ExampleStatement():
                for pattern in statement.patterns:
                    yield from _pattern(pattern)
            case _:
                pass

    def _expression(self, body: ast.Expression) -> Iterator[Occurrence]:
        for node in ast.postorder(body):
            if not isinstance(node, ast.Reference):
                continue
            pattern = node.pattern
            if pattern.name.text in self.rules and not pattern.arguments:
                yield _named("rule", pattern.name)
            else:
                yield from _pattern(pattern)

    def _pattern(self, pattern: ast.Pattern) -> Iterator[Occurrence]:
        """A pattern in a statement, or a rule that stands for a set."""
        if pattern.name.text in self.rules and not pattern.arguments:
            yield _named("rule", pattern.name)
        else:
            yield from _pattern(pattern)

    def _limit(self, limit: ast.LimitStatement) -> Iterator[Occurrence]:
        if limit.pattern is not None:
            yield from self._pattern(limit.pattern)
            if limit.per is not None:
                yield _named("parameter", limit.per, limit.pattern.name.text)
        if limit.total is not None:
            tool, parameter = limit.total
            yield _named("tool", tool)
            yield _named("parameter", parameter, tool.text)

    def _set(self, calls: ast.CallsTerm | None) -> Iterator[Occurrence]:
        if isinstance(calls, ast.Pattern):
            yield from self._pattern(calls)
        elif isinstance(calls, ast.SetOf):
            for item in calls.items:
                yield from self._set(item)

    def _policy(self, statement: ast.PolicyStatement) -> Iterator[Occurrence]:
        yield from self._set(statement.calls)
        own = _tools_of(statement.calls)
        if statement.total is not None:
            tool, parameter = statement.total
            yield _named("tool", tool)
            yield _named("parameter", parameter, tool.text)
            own = (tool.text,)
        for one in (*statement.before, *statement.unless):
            yield from self._set(one.calls)
            seen = _tools_of(one.calls)
            # What is counted speaks of itself.
            mine = seen if statement.kind == "uses" else own
            own = mine
            keys = (*one.keys, *(statement.keys if one in statement.before else ()))
            for key in keys:
                yield from (_named("parameter", key.first, tool) for tool in seen)
                if key.second is None:
                    yield from (_named("parameter", key.first, tool) for tool in mine)
                else:
                    yield from _fields(key.second, mine, seen)
            for relation in one.where:
                yield from _fields(relation, mine, seen)
        for term in statement.per:
            yield from _fields(term, own, ())

    def _let(self, statement: ast.LetStatement) -> Iterator[Occurrence]:
        yield from self._set(statement.calls)
        for tool, name in statement.sources:
            yield _named("tool", tool)
            yield _named("parameter", name, tool.text)
        for key in statement.keys:
            for owner in _tools_of(statement.calls):
                yield _named("parameter", key, owner)


def _tools_of(calls: ast.CallsTerm | None) -> tuple[str, ...]:
    """The names in a set, each once."""
    if isinstance(calls, ast.Pattern):
        return (calls.name.text,)
    if isinstance(calls, ast.SetOf):
        return tuple(dict.fromkeys(name for item in calls.items for name in _tools_of(item)))
    return ()


def _fields(
    node: object, own: Sequence[str], seen: Sequence[str], named: frozenset[str] = frozenset()
) -> Iterator[Occurrence]:
    """The fields that a term or a relation names, of each tool that it may be of."""
    if isinstance(node, ast.FieldTerm):
        if node.scope == "session":
            yield _named("attribute", node.names[0])
            return
        if not node.scope and node.names[0].text in named:
            return
        for tool in seen if node.scope == "seen" else own:
            yield _named("parameter", node.names[0], tool)
        return
    if isinstance(node, ast.Elements):
        named = named.union(word.text for _, word in node.lists)
    if isinstance(node, ast.LookedUp):
        yield _named("attribute", node.name)
    for part in _parts(node):
        yield from _fields(part, own, seen, named)


def _parts(node: object) -> Iterator[object]:
    """The terms and relations right inside of one."""
    match node:
        case ast.LookedUp(keys=parts) | ast.ProductTerm(parts=parts):
            yield from parts
        case ast.SumTerm(parts=signed):
            yield from (part for _, part in signed)
        case ast.Greater(one=one, other=other):
            yield from (one, other)
        case ast.CountTerm(of=of, tail=tail):
            yield from (of, tail)
        case ast.GroupTerm(inner=inner):
            yield inner
        case ast.Compared(terms=terms):
            yield from terms
        case ast.Comparison(left=left, tail=tail):
            yield from (left, tail)
        case ast.EveryElement(of=of, tail=tail):
            yield from (of, tail)
        case ast.Elements(lists=lists, relations=relations):
            yield from (of for of, _ in lists)
            yield from relations


def _tool(tool: ast.ToolStatement) -> Iterator[Occurrence]:
    name = tool.name.text
    yield _named("tool", tool.name, defines=True)
    for parameter in (*tool.parameters, *tool.opened, *tool.observed, *tool.answers):
        yield from _declared(name, parameter)
    for state in tool.signature or ():
        yield _named("state", state, defines=True)
    for attribute in tool.attributes:
        if isinstance(attribute, ast.Amount):
            yield from _amount(name, attribute)


def _declared(
    tool: str, parameter: ast.ParameterDeclaration | ast.OpenDeclaration
) -> Iterator[Occurrence]:
    yield _named("parameter", parameter.name, tool, defines=True)
    if isinstance(parameter, ast.ParameterDeclaration):
        for value in parameter.domain.values:
            yield _value(tool, parameter.name, value, defines=True)


def _amount(tool: str, amount: ast.Amount) -> Iterator[Occurrence]:
    for arithmetic in (amount.low, amount.high):
        for part in arithmetic.code if arithmetic is not None else ():
            if isinstance(part, ast.Word):
                yield _named("parameter", part, tool)
    if amount.when is not None:
        yield _named("parameter", amount.when.name, tool)
        for value in amount.when.values:
            yield _value(tool, amount.when.name, value)


def _same(
    pairs: Sequence[ast.Pair], first: ast.Pattern, second: ast.Pattern
) -> Iterator[Occurrence]:
    for pair in pairs:
        yield _named("parameter", pair.first, first.name.text)
        yield _named("parameter", pair.second, second.name.text)


def _pattern(pattern: ast.Pattern) -> Iterator[Occurrence]:
    yield _named("tool", pattern.name)
    for argument in pattern.arguments:
        yield _named("parameter", argument.name, pattern.name.text)
        for value in argument.values:
            yield _value(pattern.name.text, argument.name, value)


def _named(kind: Kind, name: ast.Word, *owner: str, defines: bool = False) -> Occurrence:
    return Occurrence(kind=kind, key=(*owner, name.text), region=name.region, defines=defines)


def _value(
    tool: str, parameter: ast.Word, value: ast.Value, *, defines: bool = False
) -> Occurrence:
    key = (tool, parameter.text, value.text)
    return Occurrence(kind="value", key=key, region=value.region, defines=defines)


def _file(path: ast.Text) -> Occurrence:
    return Occurrence(kind="file", key=(path.value,), region=path.region)


@frozen
class Project:
    """A grammar as it is written, errors and all.

    Attributes:
        sources: the root file and those that it uses, by number.
        statements: those of all files, the root's first.
        occurrences: the names in them.
        diagnostics: errors of syntax, and of files that cannot be used.
        whole: no statement has an error of syntax, and every file could be read.
    """

    sources: tuple[source.Source, ...]
    statements: tuple[ast.Statement, ...]
    occurrences: tuple[Occurrence, ...]
    diagnostics: tuple[Diagnostic, ...]
    whole: bool

    @property
    def is_part(self) -> bool:
        """Whether the root has tools and no `grammar`: it is there for others to use."""
        root = [statement for statement in self.statements if statement.region.source == 0]
        if any(isinstance(statement, ast.GrammarStatement) for statement in root):
            return False
        tools = any(isinstance(statement, ast.ToolStatement) for statement in root)
        broken = [statement for statement in root if isinstance(statement, ast.Broken)]
        return tools and all(statement.keyword in ("tool", "use") for statement in broken)

    def at(self, offset: int, number: int = 0) -> Occurrence | None:
        """The name at a character of a source; the place just behind it counts."""
        for found in self.occurrences:
            region = found.region
            if region.source == number and region.start <= offset <= region.end:
                return found
        return None

    def all_of(self, kind: Kind, key: tuple[str, ...]) -> tuple[Occurrence, ...]:
        """Every place where a name stands."""
        return tuple(o for o in self.occurrences if o.kind == kind and o.key == key)

    def defined(self, kind: Kind) -> tuple[tuple[str, ...], ...]:
        """What is declared, in the order of the text, each once."""
        keys = (o.key for o in self.occurrences if o.kind == kind and o.defines)
        return tuple(dict.fromkeys(keys))

    def tool(self, name: str) -> ast.ToolStatement | None:
        """The statement that declares a tool."""
        tools = (s for s in self.statements if isinstance(s, ast.ToolStatement))
        return next((tool for tool in tools if tool.name.text == name), None)


def statement_ends(source: source.Source) -> Mapping[int, int]:
    """Where each statement of a source ends, by where it begins; a tool's braces are its own."""
    chunks = split(source.text, 0, Report([source]))
    return {chunk.tokens[0].region.start: chunk.tokens[-1].region.end for chunk in chunks}


def read_project(
    text: str,
    path: Path | None,
    name: str,
    read: Read = source.read_bytes,
    check_time: Callable[[], None] | None = None,
) -> Project | None:
    """The project of a text; None where it is no text that a grammar could be in.

    Args:
        path: the resolved path of the file that it is in; None where it is in none.
        name: how diagnostics name it.
        read: gives the bytes of a used file.
        check_time: called every few hundred steps; it ends the reading by raising.
    """
    data = text.encode("utf-8", "surrogatepass")
    if len(data) > source.MAX_SOURCE_BYTES or isinstance(source.decode(data), source.Unreadable):
        return None
    sources = [source.source_of(text, name, path)]
    report = Report(sources, check_time)
    gathered = gather(sources, report, read)
    statements = (*gathered.root, *gathered.used)
    broken = any(isinstance(statement, ast.Broken) for statement in statements)
    return Project(
        sources=tuple(sources),
        statements=statements,
        occurrences=occurrences_of(statements),
        diagnostics=report.diagnostics(),
        whole=not (broken or gathered.incomplete or report.failed),
    )


def changed(project: Project, texts: Mapping[Path, str]) -> Project | None:
    """A project whose files have other texts, by their resolved paths."""
    root = project.sources[0]
    held = {source.path: source.text for source in project.sources if source.path is not None}

    def read(path: Path, limit: int) -> bytes | source.Unreadable:
        text = texts.get(path, held.get(path))
        return source.read_bytes(path, limit) if text is None else text.encode()

    text = root.text if root.path is None else texts.get(root.path, root.text)
    return read_project(text, root.path, root.name, read)
