"""A project: a text, the files that it uses if they can be read, and the places of its names.

Statements with syntax errors are left out. So a text that is being written still has the names of
its other statements. The resolver determines the meanings of words in policies
(:mod:`tcc_compiler.editing.words`).
Normative text: docs/spec/language.md, section 3. Cost: parsing and resolving, within the time that
the caller gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from tcc_certs.policy.core import Tool
from tcc_certs.policy.nodes import Limit
from tcc_certs.values.fields import Field
from tcc_compiler.editing.words import Meaning, Words, learned_from, words_of
from tcc_compiler.frozen import frozen
from tcc_compiler.language import source
from tcc_compiler.language.diagnostics import Diagnostic, Report
from tcc_compiler.names.files import Read, gather
from tcc_compiler.names.nodes import Builder
from tcc_compiler.names.statements import Stated
from tcc_compiler.names.types import value_text
from tcc_compiler.syntax.tokens import name_value, string_value
from tcc_compiler.syntax.tree import Part, Token, Tree, region_of

Kind: TypeAlias = Literal[
    "tool", "rule", "let", "local", "shape", "field", "value", "state", "attribute", "file"
]
Key: TypeAlias = "tuple[str, ...]"


@frozen
class Occurrence:
    """A place in a text where a name is written.

    Attributes:
        kind: what it names. A `local` is a `let` of a block, or a parameter.
        key: identifies the named thing. For a field, ``("tool", TOOL, FIELD)`` or ``("shape",
            SHAPE, FIELD)``, with more names inside a record. For a value, the key of its field
            followed by its text. For a `local`, its name and its number in the text. Otherwise the
            name.
        region: the characters of the name, with its backticks or quotes.
        defines: True where the name is declared.
    """

    kind: Kind
    key: Key
    region: source.Region
    defines: bool = False


@frozen(kw_only=False, eq=False)
class Statement:
    """A statement of one of the sources of a project; `number` is the number of the source."""

    number: int
    tree: Tree

    @property
    def kind(self) -> str:
        """The rule of the syntax that the statement matches."""
        return self.tree.kind

    @property
    def region(self) -> source.Region:
        """The characters of the statement."""
        return region_of(self.tree, self.number)


@frozen
class Project:
    """A grammar as it is written, including its mistakes.

    Attributes:
        sources: the root file and the files that it uses, by number.
        statements: the statements of all files, the root's first.
        occurrences: all places of names, in the order of the text.
        words: the meanings of the words in policies.
        diagnostics: syntax errors, and files that cannot be used.
        whole: True if no statement has a syntax error and every file could be read.
    """

    sources: tuple[source.Source, ...]
    statements: tuple[Statement, ...]
    occurrences: tuple[Occurrence, ...]
    words: Words
    diagnostics: tuple[Diagnostic, ...]
    whole: bool

    @property
    def is_part(self) -> bool:
        """Return whether the root has tools or shapes but no `grammar`: other grammars use it."""
        kinds = {one.kind for one in self.statements if one.number == 0}
        return "header" not in kinds and bool(kinds & {"tool", "shape"})

    def at(self, offset: int, number: int = 0) -> Occurrence | None:
        """Return the name at a character of source `number`, or just before it, or None."""
        for found in self.occurrences:
            region = found.region
            if region.source == number and region.start <= offset <= region.end:
                return found
        return None

    def all_at(self, found: Occurrence) -> tuple[Occurrence, ...]:
        """Return all meanings of the same text region: a word may be a field of several tools."""
        return tuple([o for o in self.occurrences if o.region == found.region])

    def all_of(self, kind: Kind, key: Key) -> tuple[Occurrence, ...]:
        """Return every place of a name."""
        return tuple([o for o in self.occurrences if o.kind == kind and o.key == key])

    def fields_of(self, tool: str) -> Mapping[str, Field]:
        """Return the fields of a tool by name; empty if there is no such tool."""
        found = self.words.core.tool_of.get(tool)
        return {} if found is None else {one.name: one for one in fields_of_tool(found)}

    def stated_at(self, offset: int) -> tuple[Stated, ...]:
        """Return the policy statements at a character; several in the head of a block."""
        inside = [
            (tree, one) for tree, one in self.words.stated if tree.start <= offset <= tree.end
        ]
        clauses = [one for _, one in inside if one.region.start <= offset <= one.region.end]
        return tuple(clauses or [one for _, one in inside])

    def fields_at(self, offset: int) -> tuple[list[Field], list[Field]]:
        """Return the fields in scope at a character: those for bare names, those after `this.`."""
        kinds = self.words.kinds
        around = [
            (region.end - region.start, node)
            for node, region in self.words.spans.items()
            if node in kinds.scopes and region.source == 0 and region.start <= offset <= region.end
        ]
        return kinds.fields_in_scope(min(around)[1]) if around else ([], [])

    def defined(self, kind: Kind) -> tuple[Key, ...]:
        """Return the keys that are declared, each once, in the order of the text."""
        keys = (o.key for o in self.occurrences if o.kind == kind and o.defines)
        return tuple(dict.fromkeys(keys))

    def declaration(self, kind: Kind, key: Key) -> Statement | None:
        """Return the statement that declares a name; None if there is none."""
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
    """Return the project of a text; None if the text is too long or not valid text of a grammar.

    Args:
        path: the resolved path of the text's file; None if it is in no file.
        name: the name of the text in diagnostics.
        read: returns the bytes of a used file.
        check_time: called every few hundred steps. It ends the reading by raising.
    """
    data = text.encode("utf-8", "surrogatepass")
    if len(data) > source.MAX_SOURCE_BYTES or isinstance(source.decode(data), source.Unreadable):
        return None
    sources = [source.source_of(text, name, path)]
    report = Report(sources, check_time)
    files, complete = gather(sources, report, read)
    statements = [Statement(b.file.number, tree) for b in files for tree in b.file.statements]
    diagnostics, whole = report.diagnostics(), complete and not report.failed
    for b in files:  # the check of the whole grammar reports mistakes in words, so drop them here
        b.report = Report(sources, check_time)
    words = words_of(files)
    found = _Finder(files, words).all()
    return Project(
        sources=tuple(sources),
        statements=tuple(statements),
        occurrences=tuple(sorted(found, key=lambda o: (o.region.source, o.region.start, o.key))),
        words=words,
        diagnostics=diagnostics,
        whole=whole,
    )


def changed(project: Project, texts: Mapping[Path, str]) -> Project | None:
    """Return the project again, with other texts for some files, given by resolved path."""
    root = project.sources[0]
    held = {source.path: source.text for source in project.sources if source.path is not None}

    def read(path: Path, limit: int) -> bytes | source.Unreadable:
        text = texts.get(path, held.get(path))
        return source.read_bytes(path, limit) if text is None else text.encode()

    text = root.text if root.path is None else texts.get(root.path, root.text)
    return read_project(text, root.path, root.name, read)


# Occurrences.


def fields_of_tool(tool: Tool) -> tuple[Field, ...]:
    """Return the arguments and the answers of a tool."""
    return (*tool.arguments, *tool.answers)


def _field_lists(tool: Tree) -> list[Tree]:
    return tool.trees("fields", "gives")


def _shape_of(tool: Tree) -> list[Token]:
    return [token for part in tool.trees("gives") for token in part.tokens("NAME")]


def _values(declared: Tree) -> list[Tree]:
    """Return the trees of the values that a field lists."""
    domain = declared.trees()[1]
    inner = domain.tree("values") if domain.kind in ("listed", "listed_or_other") else None
    return inner.trees() if inner is not None else []


@dataclass(slots=True)
class _Local:
    """A `let` of a block or a parameter, with the range of characters in which it is in scope."""

    key: Key
    name: str
    start: int
    end: int


@dataclass(slots=True)
class _Finder:
    """Finds the places of all names in a grammar.

    Attributes:
        keys: the keys of declared fields, by the file and the start of their names.
    """

    files: Sequence[Builder]
    words: Words
    keys: dict[tuple[int, int], Key] = field(default_factory=dict)
    locals: list[_Local] = field(default_factory=list)
    rules: set[str] = field(default_factory=set)
    lets: set[str] = field(default_factory=set)
    nodes: dict[tuple[int, int], list[int]] = field(default_factory=dict)

    def all(self) -> list[Occurrence]:
        """Return the names of all files."""
        found: list[Occurrence] = []
        for b in self.files:
            for tree in b.file.statements:
                found += self._declared(b, tree)
        root = self.files[0]
        for node, region in root.spans.items():
            if region.source == 0 and node in self.words.kinds.meanings:
                self.nodes.setdefault((region.start, region.end), []).append(node)
        for b in self.files:
            for tree in b.file.statements:
                b.report.tick()
                found += self._used(b, tree)
        for tree, one in self.words.stated:
            if isinstance(one.statement, Limit) and one.statement.field is not None:
                found += self._summed(root, tree, one.statement)
        return list(dict.fromkeys(found))

    def _made(
        self, b: Builder, kind: Kind, at: Part, key: Key, *, defines: bool = False
    ) -> Occurrence:
        return Occurrence(kind=kind, key=key, region=b.region(at), defines=defines)

    def _key(self, declared: Field | None) -> Key | None:
        """Return the key of a declared field."""
        region = None if declared is None else self.files[0].spans.get(id(declared))
        return None if region is None else self.keys.get((region.source, region.start))

    # Declarations.

    def _declared(self, b: Builder, tree: Tree) -> Iterator[Occurrence]:
        match tree.kind:
            case "tool":
                name = tree.trees()[0]
                yield self._made(b, "tool", name, (b.name(name),), defines=True)
                for part in _field_lists(tree):
                    yield from self._fields(b, part, ("tool", b.name(name)))
                for signature in tree.trees("signature"):
                    for token in signature.tokens("NAME"):
                        yield self._made(b, "state", token, (token.text,), defines=True)
            case "shape":
                token = tree.tokens("NAME")[0]
                yield self._made(b, "shape", token, (token.text,), defines=True)
                yield from self._fields(b, tree, ("shape", token.text))
            case "rule":
                token = tree.tokens("NAME")[0]
                self.rules.add(token.text)
                yield self._made(b, "rule", token, (token.text,), defines=True)
            case "given":
                for one in tree.trees("field"):
                    name = one.trees()[0]
                    key = ("given", b.name(name))
                    yield self._made(b, "attribute", name, (b.name(name),), defines=True)
                    self.keys[b.file.number, name.start] = key
                    yield from self._inside(b, one, key)
            case "learned":
                name = tree.trees()[0]
                yield self._made(b, "attribute", name, (b.name(name),), defines=True)
            case "let":
                name = tree.trees()[0]
                self.lets.add(b.name(name))
                yield self._made(b, "let", name, (b.name(name),), defines=True)
                yield from self._parameters(b, tree)
            case "before" | "finally_":
                for let in tree.trees("let"):
                    name = let.trees()[0]
                    yield self._local(b, name, let.end, tree.end)
                    yield from self._parameters(b, let)

    def _parameters(self, b: Builder, let: Tree) -> Iterator[Occurrence]:
        _, *names, body = let.trees()
        for name in names:
            yield self._local(b, name, body.start, body.end)

    def _local(self, b: Builder, name: Tree, start: int, end: int) -> Occurrence:
        key = (b.name(name), str(len(self.locals)))
        self.locals.append(_Local(key, b.name(name), start, end))
        return self._made(b, "local", name, key, defines=True)

    def _fields(self, b: Builder, part: Tree, owner: Key) -> Iterator[Occurrence]:
        for one in part.trees("field"):
            label = one.trees()[0]
            key = (*owner, b.name(label))
            self.keys[b.file.number, label.start] = key
            yield self._made(b, "field", label, key, defines=True)
            yield from self._inside(b, one, key)

    def _inside(self, b: Builder, declared: Tree, key: Key) -> Iterator[Occurrence]:
        """Yield the values of a field, the fields of records in its type, and the shapes in it."""
        for value in _values(declared):
            yield self._made(b, "value", value, (*key, value_text(value)), defines=True)
        todo = declared.trees()[1:]
        while todo:
            one = todo.pop()
            if one.kind == "object":
                for token in one.tokens("NAME"):
                    yield self._made(b, "shape", token, (token.text,))
            if one.kind in ("record", "object"):
                yield from self._fields(b, one, key)
            elif one.kind != "field":
                todo += one.trees()

    # Uses.

    def _used(self, b: Builder, tree: Tree) -> Iterator[Occurrence]:
        match tree.kind:
            case "tool":
                for token in _shape_of(tree):
                    yield self._made(b, "shape", token, (token.text,))
                for block in tree.trees("block"):
                    for amount in block.trees("amount"):
                        yield from self._amount(b, b.name(tree.trees()[0]), amount)
            case "use":
                token = tree.tokens("STRING")[0]
                yield self._made(b, "file", token, (string_value(token.text),))
            case "rule" | "plan" | "example":
                yield from self._plans(b, tree.trees()[-1])
            case "begin" | "goal":
                for token in tree.tokens("NAME"):
                    yield self._made(b, "state", token, (token.text,))
            case "learned":
                for tool, label, part in learned_from(b, tree.trees()[1]):
                    of, name = part.trees()
                    yield self._made(b, "tool", of, (tool,))
                    yield from self._field_of(b, tool, label, name)
            case _ if b is self.files[0]:
                yield from self._words(b, tree)

    def _field_of(self, b: Builder, tool: str, name: str, at: Tree) -> Iterator[Occurrence]:
        key = self._key_in(tool, name)
        if key is not None:
            yield self._made(b, "field", at, key)

    def _key_in(self, tool: str, name: str) -> Key | None:
        found = self.words.core.tool_of.get(tool)
        for one in fields_of_tool(found) if found is not None else ():
            if one.name == name:
                return self._key(one)
        return None

    def _amount(self, b: Builder, tool: str, amount: Tree) -> Iterator[Occurrence]:
        todo = [part for part in amount.trees() if part.kind not in ("amount_of", "when")]
        while todo:
            one = todo.pop()
            if one.kind == "name":
                yield from self._field_of(b, tool, b.name(one), one)
            todo += one.trees()
        for when in amount.trees("when"):
            label, values = when.trees()
            yield from self._listed(b, tool, label, values)

    def _listed(self, b: Builder, tool: str, label: Tree, values: Tree) -> Iterator[Occurrence]:
        """Yield a field of a tool, and values of that field."""
        yield from self._field_of(b, tool, b.name(label), label)
        key = self._key_in(tool, b.name(label))
        for value in values.trees() if key is not None else ():
            yield self._made(b, "value", value, (*(key or ()), value_text(value)))

    def _plans(self, b: Builder, tree: Tree) -> Iterator[Occurrence]:
        todo = [tree]
        while todo:
            one = todo.pop()
            if one.kind == "step":
                yield from self._step(b, one)
            elif one.kind == "pattern":
                step = one.trees()[0]
                token = step.parts[0]
                name = name_value(token) if isinstance(token, Token) else ""
                if name in self.words.core.tool_of:
                    yield self._made(b, "tool", step, (name,))
                for argument in one.trees("argument"):
                    label, *values = argument.trees()
                    if values:
                        yield from self._listed(b, name, label, values[0])
                    else:
                        yield from self._field_of(b, name, b.name(label), label)
            else:
                todo += one.trees()

    def _step(self, b: Builder, step: Tree) -> Iterator[Occurrence]:
        token = step.parts[0]
        name = name_value(token) if isinstance(token, Token) else ""
        if name in self.words.core.tool_of:
            yield self._made(b, "tool", step, (name,))
            return
        if name in self.rules:
            yield self._made(b, "rule", step, (name,))
        elif name in self.lets:
            yield self._made(b, "let", step, (name,))

    # Policies.

    def _words(self, b: Builder, tree: Tree) -> Iterator[Occurrence]:
        todo = [tree]
        while todo:
            one = todo.pop()
            b.report.tick()
            if one.kind == "same":
                for label in one.trees():
                    yield from self._meant(b, one, label, b.name(label))
            elif one.kind == "member":
                yield from self._meant(b, one, one.trees()[1], None)
                todo.append(one.trees()[0])
            elif one.kind == "name":
                yield from self._meant(b, one, one, None)
            else:
                todo += one.trees()

    def _meant(self, b: Builder, tree: Tree, at: Tree, name: str | None) -> Iterator[Occurrence]:
        """Yield the occurrences of all names that the word of a tree may mean."""
        for node in self.nodes.get((tree.start, tree.end), ()):
            for meaning in self.words.meanings(node):
                if name is None or meaning.name == name:
                    yield from self._occurrence(b, meaning, at)

    def _occurrence(self, b: Builder, meaning: Meaning, at: Tree) -> Iterator[Occurrence]:
        match meaning.what:
            case "field" | "value":
                key = self._key(meaning.field)
                if key is not None:
                    more = (meaning.name,) if meaning.what == "value" else ()
                    yield self._made(b, meaning.what, at, (*key, *more))
            case "local":
                around = [
                    one for one in self.locals
                    if one.name == meaning.name and one.start <= at.start <= one.end
                ]  # fmt: skip
                if around:
                    nearest = min(around, key=lambda one: one.end - one.start)
                    yield self._made(b, "local", at, nearest.key)
            case _:
                yield self._made(b, meaning.what, at, (meaning.name,))

    def _summed(self, b: Builder, tree: Tree, limit: Limit) -> Iterator[Occurrence]:
        """Yield the field that a limit adds up."""
        of = (tree if tree.kind == "limit" else tree.trees()[0]).trees()[0]
        inside = of.trees()[1] if of.kind == "apply" else of
        if inside.kind == "within":
            inside = inside.trees()[0]
        if inside.kind == "member":
            for meaning in self.words.meanings(id(limit)):
                yield from self._occurrence(b, meaning, inside.trees()[1])
