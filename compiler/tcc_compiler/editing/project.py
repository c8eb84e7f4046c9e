"""A text with the files that it uses, as far as they can be read, and the places of its names.

Statements with a mistake of syntax are left out, so a text that is being written has the names of
the others.  The words of conditions are read by their places, as the language says: a field of the
element or of the call, a `let`, a tool or a listed value.
Normative text: docs/spec/language.md, section 3.  Cost: that of parsing, within the time that the
caller gives, and linear in the statements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from tcc_certs.policy.nodes import FUNCTIONS
from tcc_compiler.frozen import frozen
from tcc_compiler.language import source
from tcc_compiler.language.diagnostics import Diagnostic, Report
from tcc_compiler.names.files import Read, gather
from tcc_compiler.names.nodes import Builder
from tcc_compiler.names.types import value_text
from tcc_compiler.syntax.tokens import name_value, string_value
from tcc_compiler.syntax.tree import Part, Token, Tree, region_of

Kind: TypeAlias = Literal[
    "tool", "rule", "let", "shape", "parameter", "value", "state", "attribute", "file"
]


@frozen
class Occurrence:
    """A name in a text.

    Attributes:
        kind: what it names.
        key: the name; before it that of the tool, and of the parameter, which it belongs to.
        region: its characters, with its backticks or quotes.
        defines: whether this is where it is declared.
    """

    kind: Kind
    key: tuple[str, ...]
    region: source.Region
    defines: bool = False


@frozen(kw_only=False, eq=False)
class Statement:
    """A statement of one of the sources of a project."""

    number: int
    tree: Tree

    @property
    def kind(self) -> str:
        """The rule of the grammar that it matches."""
        return self.tree.kind

    @property
    def region(self) -> source.Region:
        """Its characters."""
        return region_of(self.tree, self.number)


@frozen
class Project:
    """A grammar as it is written, mistakes and all.

    Attributes:
        sources: the root file and those that it uses, by number.
        statements: those of all files, the root's first.
        occurrences: the names in them.
        diagnostics: mistakes of syntax, and of files that cannot be used.
        whole: no statement has a mistake of syntax, and every file could be read.
    """

    sources: tuple[source.Source, ...]
    statements: tuple[Statement, ...]
    occurrences: tuple[Occurrence, ...]
    diagnostics: tuple[Diagnostic, ...]
    whole: bool

    @property
    def is_part(self) -> bool:
        """Whether the root has tools and no `grammar`: it is there for others to use."""
        kinds = {one.kind for one in self.statements if one.number == 0}
        return "header" not in kinds and bool(kinds & {"tool", "shape"})

    def at(self, offset: int, number: int = 0) -> Occurrence | None:
        """The name at a character of a source; the place just behind it counts."""
        for found in self.occurrences:
            region = found.region
            if region.source == number and region.start <= offset <= region.end:
                return found
        return None

    def all_of(self, kind: Kind, key: tuple[str, ...]) -> tuple[Occurrence, ...]:
        """Every place of a name."""
        return tuple([o for o in self.occurrences if o.kind == kind and o.key == key])

    def defined(self, kind: Kind) -> tuple[tuple[str, ...], ...]:
        """The keys that are declared, in the order of the text, each once."""
        keys = (o.key for o in self.occurrences if o.kind == kind and o.defines)
        return tuple(dict.fromkeys(keys))

    def declaration(self, kind: Kind, key: tuple[str, ...]) -> Statement | None:
        """The statement that declares a name."""
        for found in self.all_of(kind, key):
            if found.defines:
                for one in self.statements:
                    inside = one.tree.start <= found.region.start and (
                        found.region.end <= one.tree.end
                    )
                    if one.number == found.region.source and inside:
                        return one
        return None


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
    files, complete = gather(sources, report, read)
    statements = [Statement(b.file.number, tree) for b in files for tree in b.file.statements]
    return Project(
        sources=tuple(sources),
        statements=tuple(statements),
        occurrences=tuple(_occurrences(files)),
        diagnostics=report.diagnostics(),
        whole=complete and not report.failed,
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


# Occurrences.


@dataclass(slots=True)
class _Declared:
    """The declared names, and the fields of tools and shapes with their listed values."""

    rules: set[str] = field(default_factory=set)
    lets: dict[str, Tree] = field(default_factory=dict)
    shapes: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    tools: dict[str, dict[str, list[str]]] = field(default_factory=dict)


def _occurrences(files: Sequence[Builder]) -> Iterator[Occurrence]:
    declared = _Declared()
    for b in files:
        for tree in b.file.statements:
            match tree.kind:
                case "rule":
                    declared.rules.add(tree.tokens("NAME")[0].text)
                case "let":
                    declared.lets.setdefault(b.name(tree.trees()[0]), tree)
                case "shape":
                    name = tree.tokens("NAME")[0].text
                    declared.shapes.setdefault(name, _fields(b, tree))
    for b in files:
        for tree in b.file.statements:
            if tree.kind == "tool":
                own = {
                    name: values
                    for part in _field_lists(tree)
                    for name, values in _fields(b, part).items()
                }
                for token in _shape_of(tree):
                    own |= declared.shapes.get(token.text, {})
                declared.tools.setdefault(b.name(tree.trees()[0]), own)
    for b in files:
        reader = _Reader(b, declared)
        for tree in b.file.statements:
            yield from reader.read(tree)


def _field_lists(tool: Tree) -> list[Tree]:
    return tool.trees("fields", "gives")


def _shape_of(tool: Tree) -> list[Token]:
    return [token for part in tool.trees("gives") for token in part.tokens("NAME")]


def _fields(b: Builder, tree: Tree) -> dict[str, list[str]]:
    """The fields in a list, each with its listed values."""
    return {
        b.name(one.trees()[0]): [value_text(value) for value in _values(one)]
        for one in tree.trees("field")
    }


def _values(declared: Tree) -> list[Tree]:
    """The trees of the values that a field lists."""
    domain = declared.trees()[1]
    inner = domain.tree("values") if domain.kind in ("listed", "listed_or_other") else None
    return inner.trees() if inner is not None else []


@frozen(eq=False)
class _Scope:
    """Where a condition is.

    Attributes:
        call: the tools of the call that is decided, or of the first call of an `owe`.
        element: the tools of the element of the filter around it; None outside of filters.
        names: parameters and `let`s of the block.
        beside: the tools and the field that the other side of a comparison may be a value of.
    """

    call: tuple[str, ...] = ()
    element: tuple[str, ...] | None = None
    names: frozenset[str] = frozenset()
    beside: tuple[tuple[str, ...], str] | None = None

    @property
    def own(self) -> tuple[str, ...]:
        """The tools whose fields are bare names here."""
        return self.call if self.element is None else self.element


@dataclass(slots=True)
class _Reader:
    """Finds the names of statements of one file."""

    b: Builder
    declared: _Declared

    def read(self, tree: Tree) -> Iterator[Occurrence]:
        """The names of a statement."""
        match tree.kind:
            case "tool":
                yield from self._tool(tree)
            case "shape":
                token = tree.tokens("NAME")[0]
                yield self._made("shape", token, token.text, defines=True)
            case "use":
                token = tree.tokens("STRING")[0]
                yield self._made("file", token, string_value(token.text))
            case "rule":
                token = tree.tokens("NAME")[0]
                yield self._made("rule", token, token.text, defines=True)
                yield from self._plans(tree.trees()[-1])
            case "plan" | "example":
                yield from self._plans(tree.trees()[-1])
            case "begin" | "goal":
                for token in tree.tokens("NAME"):
                    yield self._made("state", token, token.text)
            case "given":
                for one in tree.trees("field"):
                    name = one.trees()[0]
                    yield self._made("attribute", name, self.b.name(name), defines=True)
            case "learned":
                name = tree.trees()[0]
                yield self._made("attribute", name, self.b.name(name), defines=True)
                yield from self._condition(tree.trees()[1], _Scope())
            case "let":
                yield from self._let(tree, _Scope(), "let")
            case "expect_always":
                yield from self.read(tree.trees()[0])
            case "expect_reachable":
                yield from self._set(tree.trees()[0])[0]
            case "before" | "finally_" | "forbid" | "owe" | "limit":
                yield from self._policy(tree)

    def _made(self, kind: Kind, at: Part, *key: str, defines: bool = False) -> Occurrence:
        return Occurrence(kind=kind, key=key, region=self.b.region(at), defines=defines)

    # Tools.

    def _tool(self, tree: Tree) -> Iterator[Occurrence]:
        name_tree = tree.trees()[0]
        name = self.b.name(name_tree)
        yield self._made("tool", name_tree, name, defines=True)
        for part in _field_lists(tree):
            for one in part.trees("field"):
                label = one.trees()[0]
                yield self._made("parameter", label, name, self.b.name(label), defines=True)
                for value in _values(one):
                    key = (name, self.b.name(label), value_text(value))
                    yield self._made("value", value, *key, defines=True)
        for token in _shape_of(tree):
            yield self._made("shape", token, token.text)
        for signature in tree.trees("signature"):
            for token in signature.tokens("NAME"):
                yield self._made("state", token, token.text, defines=True)
        for block in tree.trees("block"):
            for amount in block.trees("amount"):
                yield from self._amount(name, amount)

    def _amount(self, tool: str, amount: Tree) -> Iterator[Occurrence]:
        todo = [part for part in amount.trees() if part.kind not in ("amount_of", "when")]
        while todo:
            one = todo.pop(0)
            if one.kind == "name":
                yield self._made("parameter", one, tool, self.b.name(one))
            todo = one.trees() + todo
        for when in amount.trees("when"):
            label, values = when.trees()
            yield self._made("parameter", label, tool, self.b.name(label))
            for value in values.trees():
                yield self._made("value", value, tool, self.b.name(label), value_text(value))

    # Plans.

    def _plans(self, tree: Tree) -> Iterator[Occurrence]:
        todo = [tree]
        while todo:
            one = todo.pop()
            if one.kind == "step":
                yield from self._step(one, ())
            elif one.kind == "pattern":
                yield from self._step(one.trees()[0], one.trees("argument"))
            else:
                todo += reversed(one.trees())

    def _step(self, step: Tree, arguments: Sequence[Tree]) -> Iterator[Occurrence]:
        token = step.parts[0]
        name = name_value(token) if isinstance(token, Token) else ""
        declared = self.declared
        if name not in declared.tools and not arguments:
            kind: Kind = "rule" if name in declared.rules else "let"
            if name in declared.rules or name in declared.lets:
                yield self._made(kind, step, name)
                return
        if name != "any" or name in declared.tools:
            yield self._made("tool", step, name)
        for argument in arguments:
            label = argument.trees()[0]
            yield self._made("parameter", label, name, self.b.name(label))
            for values in argument.trees("values"):
                for value in values.trees():
                    yield self._made("value", value, name, self.b.name(label), value_text(value))

    # Policies.

    def _policy(self, tree: Tree) -> Iterator[Occurrence]:
        inside = [part for part in tree.trees() if part.kind not in ("reason", "unit", "across")]
        match tree.kind:
            case "before":
                found, tools = self._set(inside[0])
                yield from found
                yield from self._clauses(inside[1:], _Scope(call=tools))
            case "finally_":
                yield from self._clauses(inside, _Scope())
            case "forbid":
                yield from self._set(inside[0])[0]
            case "owe":
                found, tools = self._set(inside[0])
                yield from found
                yield from self._set(inside[1], tools)[0]
            case _:
                yield from self._limit(inside)

    def _clauses(self, trees: Sequence[Tree], scope: _Scope) -> Iterator[Occurrence]:
        for tree in trees:
            if tree.kind == "let":
                yield from self._let(tree, scope, None)
                name = self.b.name(tree.trees()[0])
                scope = _replaced(scope, names=scope.names | {name})
            else:
                for part in tree.trees():
                    if part.kind not in ("reason", "unit"):
                        yield from self._condition(part, scope)

    def _let(self, tree: Tree, scope: _Scope, kind: Kind | None) -> Iterator[Occurrence]:
        *names, body = tree.trees()
        if kind is not None:
            yield self._made(kind, names[0], self.b.name(names[0]), defines=True)
        taken = frozenset([self.b.name(one) for one in names[1:]])
        yield from self._condition(body, _replaced(scope, names=scope.names | taken))

    def _limit(self, inside: Sequence[Tree]) -> Iterator[Occurrence]:
        head = inside[0]
        tools: tuple[str, ...] = ()
        if head.kind == "apply":
            of = head.trees()[1]
            while of.kind in ("within", "since", "member", "group"):
                if of.kind == "member":
                    tools = self._tools_in(of.trees()[0])
                    label = of.trees()[1]
                    for tool in tools:
                        yield self._made("parameter", label, tool, self.b.name(label))
                of = of.trees()[0]
            found, tools = self._set(of)
            yield from found
        for part in inside[1:]:
            if part.kind == "per":
                for term in part.trees():
                    yield from self._condition(term, _Scope(call=tools))
            elif part.kind not in ("in_session", "across"):
                yield from self._condition(part, _Scope(call=tools))

    def _set(
        self, tree: Tree, first: tuple[str, ...] | None = None
    ) -> tuple[list[Occurrence], tuple[str, ...]]:
        """The names of a set that a statement restricts, and its tools.

        Args:
            first: of an `owe` the tools of the first call.
        """
        found: list[Occurrence] = []
        tools = self._tools_in(tree)
        todo = [tree]
        while todo:
            one = todo.pop()
            if one.kind == "apply":
                base, *arguments = one.trees()
                todo.append(base)
                scope = _Scope(call=first or tools, element=tools)
                for argument in arguments:
                    found += self._condition(argument, scope)
            elif one.kind == "name":
                found += self._source_name(one)
            elif one.kind == "within":
                todo.append(one.trees()[0])
            else:
                todo += reversed(one.trees())
        return found, tools

    def _tools_in(self, tree: Tree, within: frozenset[str] = frozenset()) -> tuple[str, ...]:
        """The tools of a set of calls, each once."""
        found: dict[str, None] = {}
        todo = [tree]
        while todo:
            one = todo.pop()
            match one.kind:
                case "name":
                    name = self.b.name(one)
                    if name in self.declared.tools:
                        found[name] = None
                    elif name == "any":
                        found |= dict.fromkeys(self.declared.tools)
                    elif name in self.declared.lets and name not in within:
                        body = self.declared.lets[name].trees()[-1]
                        found |= dict.fromkeys(self._tools_in(body, within | {name}))
                case "apply" if self._is_function(one):
                    todo.append(one.trees()[1])
                case "apply" | "within" | "since" | "member" | "minus":
                    todo.append(one.trees()[0])
                case "either_of" | "group" | "none" | "every" | "unused":
                    todo += reversed(one.trees())
        return tuple(found)

    def _is_function(self, tree: Tree) -> bool:
        base = tree.trees()[0]
        token = base.parts[0] if base.kind == "name" else None
        return isinstance(token, Token) and token.kind == "NAME" and token.text in FUNCTIONS

    def _source_name(self, tree: Tree) -> Iterator[Occurrence]:
        name = self.b.name(tree)
        if name in self.declared.tools:
            yield self._made("tool", tree, name)
        elif name in self.declared.lets:
            yield self._made("let", tree, name)

    # Conditions.

    def _condition(self, tree: Tree, scope: _Scope) -> Iterator[Occurrence]:
        todo: list[tuple[Tree, _Scope, bool]] = [(tree, scope, False)]
        while todo:
            one, here, is_source = todo.pop()
            self.b.report.tick()
            match one.kind:
                case "name":
                    yield from self._word(one, here, is_source)
                case "member":
                    of, label = one.trees()
                    yield from self._member(of, label, here)
                    if not self._is_special(of):
                        todo.append((of, here, True))
                case "same":
                    for label in one.trees():
                        for tool in dict.fromkeys((*here.own, *here.call)):
                            if self.b.name(label) in self.declared.tools.get(tool, {}):
                                yield self._made("parameter", label, tool, self.b.name(label))
                case "apply":
                    base, *arguments = one.trees()
                    if self._is_function(one):
                        todo += [(part, here, True) for part in reversed(arguments)]
                    else:
                        tools = self._tools_in(base)
                        inner = _replaced(here, element=tools) if tools else here
                        todo += [(part, inner, False) for part in reversed(arguments)]
                        todo.append((base, here, True))
                case "compare" | "under" | "among" | "chain":
                    left, *rest = one.trees()
                    beside = self._beside(left, here)
                    todo += [
                        (part, _replaced(here, beside=beside), one.kind == "among")
                        for part in reversed(rest)
                    ]
                    todo.append((left, here, False))
                case "none" | "every" | "unused" | "since" | "within" | "every_in":
                    parts = [part for part in one.trees() if part.kind != "unit"]
                    todo += [(part, here, True) for part in reversed(parts)]
                case "match":
                    of, *arms = one.trees()
                    beside = self._beside(of, here)
                    for arm in reversed(arms):
                        *values, term = arm.trees()
                        todo.append((term, here, False))
                        todo += [(v, _replaced(here, beside=beside), False) for v in values]
                    todo.append((of, here, False))
                case _:
                    parts = [part for part in one.trees() if part.kind != "unit"]
                    todo += [(part, here, is_source) for part in reversed(parts)]

    def _is_special(self, tree: Tree) -> bool:
        """Whether a tree is ``this``, ``it`` or ``session``, which name nothing declared."""
        token = tree.parts[0] if tree.kind == "name" else None
        words = ("this", "it", "session")
        return isinstance(token, Token) and token.kind == "NAME" and token.text in words

    def _member(self, of: Tree, label: Tree, scope: _Scope) -> Iterator[Occurrence]:
        name = self.b.name(label)
        tools: Sequence[str] = self._tools_in(of)
        if self._is_special(of):
            word = self.b.name(of)
            if word == "session":
                yield self._made("attribute", label, name)
                return
            tools = scope.call if word == "this" else scope.own
        for tool in tools:
            if name in self.declared.tools.get(tool, {}):
                yield self._made("parameter", label, tool, name)

    def _beside(self, left: Tree, scope: _Scope) -> tuple[tuple[str, ...], str] | None:
        """The tools and the field that a side of a comparison is, if it is a field."""
        if left.kind == "name":
            return scope.own, self.b.name(left)
        if left.kind != "member":
            return None
        of, label = left.trees()
        tools = self._tools_in(of)
        if self._is_special(of):
            tools = scope.call if self.b.name(of) == "this" else scope.own
        return tools, self.b.name(label)

    def _word(self, tree: Tree, scope: _Scope, is_source: bool) -> Iterator[Occurrence]:
        name = self.b.name(tree)
        if self._is_special(tree) or name in scope.names:
            return
        if is_source and (name in self.declared.tools or name in self.declared.lets):
            yield from self._source_name(tree)
            return
        if scope.beside is not None:
            tools, label = scope.beside
            owners = [
                tool for tool in tools if name in self.declared.tools.get(tool, {}).get(label, ())
            ]
            for tool in owners:
                yield self._made("value", tree, tool, label, name)
            if owners:
                return
        owners = [tool for tool in scope.own if name in self.declared.tools.get(tool, {})]
        for tool in owners:
            yield self._made("parameter", tree, tool, name)
        if not owners:
            yield from self._source_name(tree)


def _replaced(
    scope: _Scope,
    *,
    element: tuple[str, ...] | None = None,
    names: frozenset[str] | None = None,
    beside: tuple[tuple[str, ...], str] | None = None,
) -> _Scope:
    """The scope of a part; the other side of a comparison counts for its own parts alone."""
    return _Scope(
        call=scope.call,
        element=scope.element if element is None else element,
        names=scope.names if names is None else names,
        beside=beside,
    )
