"""The front end: from the text of a grammar to its core, or to all of its mistakes.

It reads the file and the files that it uses: declarations, plans, statements, kinds. Only
:mod:`tcc_certs.policy.kinds` checks the kinds of finished nodes, so the compiler and a reader of
cores agree on the meaning.
Cost: linear in the text and the calls.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from tcc_certs.errors import hidden_in
from tcc_certs.limits import MAX_VERSION_BYTES
from tcc_certs.policy import nodes as n
from tcc_certs.policy.core import Core, Given, Learned
from tcc_certs.policy.kinds import Fault, Kinds
from tcc_certs.policy.plans import Empty
from tcc_certs.policy.reader import MAX_TOOLS
from tcc_certs.values.fields import Field
from tcc_compiler.frozen import frozen
from tcc_compiler.language import source as texts
from tcc_compiler.language.diagnostics import Diagnostic, Report, quote
from tcc_compiler.language.source import Region
from tcc_compiler.names.amounts import Steps
from tcc_compiler.names.calls import MAX_TEXT_BYTES, text_bytes
from tcc_compiler.names.faults import report_fault
from tcc_compiler.names.files import Read, gather
from tcc_compiler.names.nodes import Builder, is_taken
from tcc_compiler.names.plans import Example, PlanSide, Trees, plan_side
from tcc_compiler.names.statements import Stated, calls_of, definition_of, policy_of
from tcc_compiler.names.tools import MAX_CALLS, DeclaredTool, tool_of
from tcc_compiler.names.types import Shapes, Types, is_literal, literal_pattern, signed
from tcc_compiler.names.zones import recorded_zones
from tcc_compiler.syntax.tree import Token, Tree

_POLICIES = ("before", "finally_", "forbid", "owe", "limit")
_MAX_LABEL = 128  # the most characters of the label of a currency
_ONCE = {
    "header": "grammar", "currency": "currency", "plan": "plan", "begin": "start", "goal": "goal",
}  # fmt: skip


@frozen
class Expectation:
    """An ``expect`` line.

    Attributes:
        what: ``plans``, ``min_cost``, ``max_depth``; ``always``, ``reachable`` or ``implies``.
        op, value: for a number: the comparison, and the value (a cost in nano-units).
        statements: for ``always``: its statements. For ``reachable``: a `forbid` of the calls.
        text: the author's text after ``expect``.
        path: for ``implies``: the file. None if the grammar is in no file.
    """

    what: str
    text: str
    span: texts.Span
    op: Literal["=", "<=", ">="] | None = None
    value: int = 0
    statements: tuple[n.Statement, ...] = ()
    path: Path | None = None


@frozen
class Compiled:
    """The result of the front end for a text.

    Attributes:
        core: the core; None after a mistake.
        diagnostics: sorted by file, then by place.
        sources: the files that were read, by their names in spans, in the order of reading.
        places: the span of each statement of the core, by its number; also of ``plan``, ``start``,
            ``goal``, ``rule NAME`` and ``tool NAME``.
        currency: the label of prices.
        span: the span of the `grammar` statement.
    """

    core: Core | None
    diagnostics: tuple[Diagnostic, ...]
    sources: Mapping[str, texts.Source]
    places: Mapping[int | str, texts.Span] = field(default_factory=dict)
    examples: tuple[Example, ...] = ()
    expects: tuple[Expectation, ...] = ()
    currency: str | None = None
    span: texts.Span | None = None


def compile_source(
    text: str,
    name: str = "<text>",
    *,
    path: Path | None = None,
    folder: Path | None = None,
    check_time: Callable[[], None] | None = None,
    read: Read = texts.read_bytes,
) -> Compiled:
    """Return the core of a text, or its mistakes.

    Args:
        name: the name of the text in diagnostics.
        path: the file of the text, which decides which files the text may use.
        folder: for a text from no file: the folder of the files that it may use, in it or below it.
        check_time: called every few hundred steps. It ends the work by raising.
        read: returns the bytes of a used file.
    """
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError as error:
        message = f"character {error.start} is half of a surrogate pair: this is not text"
        return unreadable(name, texts.Unreadable(code="TCC108", message=message))
    if size > texts.MAX_SOURCE_BYTES:
        return unreadable(name, texts.too_large())
    resolved = None if path is None else Path(os.path.realpath(path.parent)) / path.name
    inside = None if folder is None else Path(os.path.realpath(folder))
    sources = [texts.source_of(text, name, resolved, inside)]
    report = Report(sources, check_time)
    files, complete = gather(sources, report, read)
    if report.failed:
        return _failed(report, sources)
    return _Compilation(sources, report, files, complete).run()


def compile_file(path: Path, check_time: Callable[[], None] | None = None) -> Compiled:
    """Return the core of a grammar file, or its mistakes; bad contents raise nothing."""
    data = texts.read_bytes(path)
    text = data if isinstance(data, texts.Unreadable) else texts.decode(data)
    if isinstance(text, texts.Unreadable):
        return unreadable(str(path), text)
    return compile_source(text, str(path), path=path, check_time=check_time)


def unreadable(name: str, problem: texts.Unreadable) -> Compiled:
    """Return the result for a file that is no text."""
    source = texts.source_of(problem.text, name)
    report = Report([source])
    region = Region(0, problem.offset, problem.offset)
    report.error(problem.code, region, problem.message, problem.hint)
    return _failed(report, [source])


def _failed(report: Report, sources: Sequence[texts.Source]) -> Compiled:
    found = {source.name: source for source in sources}
    return Compiled(core=None, diagnostics=report.diagnostics(), sources=found)


@dataclass(slots=True)
class _Declared:
    """The declared names by kind, each with the tree that declares it first."""

    tools: dict[str, Tree] = field(default_factory=dict)
    rules: dict[str, Tree] = field(default_factory=dict)
    lets: dict[str, Tree] = field(default_factory=dict)
    given: dict[str, Tree] = field(default_factory=dict)
    shapes: dict[str, Tree] = field(default_factory=dict)


class _Compilation:
    """One run over the files of a grammar that has no syntax errors."""

    def __init__(
        self,
        sources: Sequence[texts.Source],
        report: Report,
        files: Sequence[Builder],
        complete: bool,
    ) -> None:
        self.sources = sources
        self.report = report
        self.files = files
        self.root = files[0]
        self.complete = complete
        self.declared = _Declared()
        self.single: dict[str, Tree] = {}
        self.forms: dict[str, tuple[str, Builder, Tree]] = {}

    def run(self) -> Compiled:
        """Return the result."""
        self._sort()
        self._check_head()
        shapes = Shapes()
        for b, tree in self._all("shape"):
            shapes.trees.setdefault(tree.tokens("NAME")[0].text, (b, tree))
        for b, tree in self._all("shape"):
            shapes.fields(b, tree.tokens("NAME")[0], True)
        tools = self._tools(shapes)
        given = self._given(shapes)
        lets = [definition_of(self.root, tree) for tree in self.declared.lets.values()]
        broken = {let.name for let in lets} if self.root.failed else set()
        for let, tree in zip(lets, self.declared.lets.values(), strict=True):
            self.root.spans[id(let)] = self.root.region(tree)
        stated = [one for tree in self._root(*_POLICIES) for one in policy_of(self.root, tree)]
        expects = [self._expect(tree) for tree in self._root("expect_number", *_QUESTIONS)]
        self._check_patterns(lets, stated)
        side = self._plan_side(tools, {let.name: let for let in lets})
        sound = [tool for tool in tools.values() if tool is not None]
        if len(sound) < len(tools) or given is None or not sound:
            return _failed(self.report, self.sources)
        core = self._core(sound, given, lets, stated, side)
        bare = self._check_kinds(core, stated, broken)
        self._check_kinds(core, [one for _, some in expects for one in some], broken)
        if self.report.failed or side is None:
            return _failed(self.report, self.sources)
        return self._compiled(with_bare_words(core, bare), stated, side, [e for e, _ in expects])

    def _root(self, *kinds: str) -> Iterator[Tree]:
        return (tree for tree in self.root.file.statements if tree.kind in kinds)

    def _all(self, kind: str) -> Iterator[tuple[Builder, Tree]]:
        return ((b, tree) for b in self.files for tree in b.file.statements if tree.kind == kind)

    # Names.

    def _sort(self) -> None:
        """Record what each name declares, and report names that are declared twice."""
        declared = self.declared
        for b, tree in self._all("tool"):
            self._declare(b, declared.tools, "tool", tree.trees()[0], tree)
        for b, tree in self._all("shape"):
            self._declare(b, declared.shapes, "shape", tree.tokens("NAME")[0], tree)
        for tree in self._root("rule"):
            self._declare(self.root, declared.rules, "rule", tree.tokens("NAME")[0], tree)
        for tree in self._root("let"):
            self._declare(self.root, declared.lets, "`let`", tree.trees()[0], tree)
        for tree in self._root("given"):
            for one in tree.trees("field"):
                self._declare(self.root, declared.given, "attribute", one.trees()[0], one)
        for tree in self._root("learned"):
            self._declare(self.root, declared.given, "attribute", tree.trees()[0], tree)
        for b in self.files:
            for tree in b.file.statements:
                self._check_form(b, tree)
        for name, tree in declared.rules.items():
            if name in declared.tools:
                message = f"{quote(name)} is a tool; a rule needs another name"
                self.root.error("TCC206", tree.tokens("NAME")[0], message, "rename the rule")
        for kind, word in _ONCE.items():
            first, *others = [*self._root(kind), None]
            if first is not None:
                self.single[kind] = first
            for other in others[:-1]:
                if other is not None:
                    message = f"a second `{word}` statement"
                    self.root.error("TCC212", other, message, "take one of them away")

    def _declare(
        self, b: Builder, names: dict[str, Tree], what: str, at: Tree | Token, tree: Tree
    ) -> None:
        name = at.text if isinstance(at, Token) else b.name(at)
        if what in ("tool", "`let`") and isinstance(at, Tree) and is_taken(at):
            message = f"`{name}` means something else in statements"
            b.error("TCC111", at, message, f"write `{name}`")
        if name in names:
            message = f"the {what} {quote(name)} is declared twice"
            b.error("TCC201", at, message, "take one of them away, or rename it")
        names.setdefault(name, tree)

    def _check_form(self, b: Builder, tree: Tree) -> None:
        """Report names that are different but equal in normal form."""
        todo = [tree]
        while todo:
            one = todo.pop()
            if one.kind in ("tool", "field", "let", "learned"):
                body = one.trees()[-1] if one.kind == "let" else None
                for at in [name for name in one.trees("name") if name is not body]:
                    name = b.name(at)
                    if name.isascii():
                        continue
                    form = unicodedata.normalize("NFC", name)
                    first, _, _ = self.forms.setdefault(form, (name, b, at))
                    if first != name:
                        message = f"another name looks like {quote(name)}: both are equal in the"
                        message += " normal form NFC of Unicode"
                        b.error("TCC201", at, message, "write both names alike, or rename one")
            if one.kind not in ("before", "finally_", "forbid", "owe", "limit", "plan", "rule"):
                todo += one.trees()
            else:
                todo += one.trees("let")

    def _check_head(self) -> None:
        """Check the place and version of `grammar`, and the labels that people are shown."""
        b, header = self.root, self.single.get("header")
        hint = 'begin with: grammar NAME version "1.0"'
        if header is None:
            message = "there is no `grammar` statement"
            if not b.file.statements:
                message = "this grammar is empty: it has no statement"
                hint += ", then its tools"
            self.report.error("TCC213", Region(0, 0, 0), message, hint)
        elif b.file.statements[0] is not header:
            message = "the `grammar` statement comes first"
            b.error("TCC213", header, message, "move it to the top")
        else:
            fault = version_fault(b.string(header))
            if fault is not None:
                b.error("TCC315", header.tokens("STRING")[0], *fault)
        currency = self.single.get("currency")
        if currency is not None:
            label = currency.tokens("STRING")[0]
            if not 1 <= len(b.string(currency)) <= _MAX_LABEL:
                message = f"a label has 1 to {_MAX_LABEL} characters"
                b.error("TCC315", label, message, 'name one unit of price: "EUR/1000"')
            self._check_label(b.string(currency), label, "the label")
        for tree in b.file.statements:
            for clause in (tree, *tree.trees("require", "ask")):
                for reason in clause.trees("reason"):
                    self._check_label(b.string(reason), reason, "this reason")
                if clause.kind == "ask":
                    self._check_label(b.string(clause), clause, "this role")

    # Declarations.

    def _tools(self, shapes: Shapes) -> dict[str, DeclaredTool | None]:
        found: dict[str, DeclaredTool | None] = {}
        steps = Steps()
        count = size = 0
        for b, tree in self._all("tool"):
            name = b.name(tree.trees()[0])
            if self.declared.tools[name] is not tree or self.report.full:
                continue
            if count > MAX_CALLS or size > MAX_TEXT_BYTES:
                found[name] = None
                continue
            tool = found[name] = tool_of(b, tree, shapes, steps)
            if tool is None:
                continue
            count += len(tool.amounts)
            size += text_bytes(tool)
            if count > MAX_CALLS:
                message = f"with tool {quote(name)} the grammar has more than {MAX_CALLS} calls"
                b.error("TCC303", tree.trees()[0], message, "list fewer values")
            elif size > MAX_TEXT_BYTES:
                message = f"with tool {quote(name)} the texts of calls pass {MAX_TEXT_BYTES} bytes"
                b.error("TCC304", tree.trees()[0], message, "shorten names and values")
            if len(found) == MAX_TOOLS + 1:
                message = f"the grammar has more than {MAX_TOOLS} tools"
                b.error("TCC314", tree.trees()[0], message, "split the grammar")
        if not (found or self.report.full) and self.complete and "header" in self.single:
            hint = "declare those that an agent may call: tool search"
            self.root.error("TCC214", self.single["header"], "the grammar has no tool", hint)
        return found

    def _given(self, shapes: Shapes) -> tuple[Given, ...] | None:
        """Return the attributes of a session in declared order; None after a mistake."""
        b = self.root
        before = b.failed
        types = Types(b, shapes)
        found: list[Given] = []
        for tree in self._root("given", "learned"):
            if tree.kind == "learned":
                learned = self._learned(tree)
                found += [] if learned is None else [learned]
                continue
            fields = types.fields(tree.trees("field"), {})
            found += fields or ()
        members = {
            one.name for one in found if isinstance(one, Field) and one.steps[:1] == (one.name,)
        }
        for one in found:
            if isinstance(one, Field) and one.steps and one.steps[0] not in members:
                message = f"no attribute is called {quote(one.steps[0])}, in which "
                message += f"{quote(one.name)} is"
                at = self.declared.given[one.name]
                b.error("TCC204", at, message, f"declare it, too: {one.steps[0]}: json")
        return tuple(found) if b.failed == before else None

    def _learned(self, tree: Tree) -> Learned | None:
        """Return the attribute of ``given NAME from A.f | B.g``; None after a mistake."""
        b = self.root
        name, of = tree.trees()
        sources: list[tuple[str, str]] = []
        for part in of.trees() if of.kind == "either_of" else [of]:
            inside = part.trees() if part.kind == "member" else []
            if len(inside) != 2 or inside[0].kind != "name":
                message = "an attribute is learned from fields of tools"
                b.error("TCC225", part, message, f"write: given {b.text(name)} from TOOL.field")
                return None
            tool, field_name = (b.name(one) for one in inside)
            if tool not in self.declared.tools:
                message = f"no tool is called {quote(tool)}"
                b.error("TCC202", inside[0], message, "name a tool and one of its fields")
                return None
            sources.append((tool, field_name))
        learned = Learned(name=b.name(name), sources=tuple(sources))
        b.spans[id(learned)] = b.region(of)
        return learned

    # Plans and expectations.

    def _plan_side(
        self, tools: Mapping[str, DeclaredTool | None], lets: Mapping[str, n.Definition]
    ) -> PlanSide | None:
        trees = Trees(
            plan=self.single.get("plan"),
            rules=self.declared.rules,
            start=self.single.get("begin"),
            goal=self.single.get("goal"),
            passes=[*self._root("pass_")],
            examples=[*self._root("example")],
        )
        return plan_side(self.root, trees, tools, lets, self.complete)

    def _expect(self, tree: Tree) -> tuple[Expectation, list[Stated]]:
        b = self.root
        span = self.report.span(b.region(tree))
        text = " ".join(self.sources[0].text[tree.start : tree.end].split())
        text = text.partition(" ")[2]
        match tree.kind:
            case "expect_number":
                what, op = (part.text for part in tree.parts[1:3] if isinstance(part, Token))
                value = self._number(tree.trees()[0], what)
                sign: Literal["=", "<=", ">="] = "=" if op == "=" else "<=" if op == "<=" else ">="
                return Expectation(what=what, text=text, span=span, op=sign, value=value), []
            case "expect_implies":
                path = self._beside(b.string(tree), tree)
                return Expectation(what="implies", text=text, span=span, path=path), []
            case "expect_always":
                stated = policy_of(b, tree.trees()[0])
            case _:
                before = b.failed
                on, where = calls_of(b, tree.trees()[0])
                made = n.Forbid(on=on, where=where)
                broken = b.failed > before
                stated = [Stated(statement=made, region=b.region(tree), broken=broken)]
        statements = tuple([one.statement for one in stated])
        what = tree.kind.removeprefix("expect_")
        return Expectation(what=what, text=text, span=span, statements=statements), stated

    def _beside(self, name: str, tree: Tree) -> Path | None:
        """Return the file of an `expect implies`, in the folder of the grammar or below.

        Return None if the text comes from no file, since it can then name no file.
        """
        source = self.sources[0]
        folder = source.folder if source.path is None else source.path.parent
        hint = "name a grammar in the folder of this one or below, by its relative path"
        if folder is None:
            return None
        try:
            path = Path(os.path.realpath(folder / name))
            is_file = path.is_file()
        except (OSError, ValueError):
            path, is_file = folder, False
        if Path(name).is_absolute() or not path.is_relative_to(folder):
            message = f"{quote(name)} is outside the folder of the grammar"
            self.root.error("TCC222", tree, message, hint)
        elif not is_file:
            self.root.error("TCC221", tree, f"{quote(name)} is no file", hint)
        return path

    def _number(self, tree: Tree, what: str) -> int:
        value = signed(tree) * (10**9 if what == "min_cost" else 1)
        if value.denominator != 1 or (what != "min_cost" and value < 0):
            code = "TCC306" if what == "min_cost" else "TCC312"
            wants = "has at most 9 fractional digits" if what == "min_cost" else "is a whole number"
            self.root.error(code, tree, f"`{what}` {wants}", "write such a number")
            return 0
        if abs(value) >= 1 << 63 and what == "min_cost":
            self.root.error("TCC307", tree, "this cost does not fit into 64 bits", "write less")
            return 0
        return int(value)

    # Statements.

    def _check_patterns(self, lets: Sequence[n.Definition], stated: Sequence[Stated]) -> None:
        """Report patterns without special characters."""
        nodes: list[n.Node] = [let.body for let in lets]
        for one in stated:
            nodes += n.roots_of(one.statement)
            nodes += [let.body for let in one.lets]
        seen: set[int] = set()
        for root in nodes:
            for node in n.walk(root):
                if id(node) in seen or not isinstance(node, n.Compare):
                    continue
                seen.add(id(node))
                right = node.right
                if node.operator in ("~", "!~") and isinstance(right, n.Text):
                    if not is_literal(right.value):
                        continue
                    message, hint = literal_pattern(
                        right.value, n.text_of(node.left), node.operator
                    )
                    self.report.error("TCC233", self.root.spans[id(right)], message, hint)

    def _check_label(self, text: str, tree: Tree | Token, what: str) -> None:
        """Report hidden characters in a text that people are shown."""
        hidden = hidden_in(text)
        if hidden is not None:
            message = f"{what} has U+{ord(hidden):04X}, a control or hidden character"
            self.root.error("TCC315", tree, message, "leave it out: people read this text")

    def _core(
        self,
        tools: Sequence[DeclaredTool],
        given: tuple[Given, ...],
        lets: Sequence[n.Definition],
        stated: Sequence[Stated],
        side: PlanSide | None,
    ) -> Core:
        header = self.single.get("header")
        name = header.tokens("NAME")[0].text if header else "g"
        version = self.root.string(header) if header else ""
        roots = [let.body for let in lets]
        roots += [root for one in stated for root in n.roots_of(one.statement)]
        zones = recorded_zones(roots)
        if side is None:
            return Core(
                name=name, version=version, tools=tuple([one.tool for one in tools]), rules={},
                plan=Empty(), given=given, lets=tuple(lets), zones=zones,
                statements=tuple([one.statement for one in stated]),
            )  # fmt: skip
        return Core(
            name=name, version=version, tools=tuple([one.tool for one in tools]),
            calls=side.calls, patterns=side.patterns, rules=side.rules, plan=side.plan,
            start=side.start, goals=side.goals, passed=side.passed, given=given,
            lets=tuple(lets), zones=zones,
            statements=tuple([one.statement for one in stated]),
        )  # fmt: skip

    def _check_kinds(
        self, core: Core, stated: Sequence[Stated], broken: set[str]
    ) -> frozenset[int]:
        """Let `tcc_certs` check the statements, and report its faults at their places.

        Returns:
            the ids of texts that could also be written as a bare word.
        """
        spans = self.root.spans
        try:
            kinds = Kinds(core)
            if not broken:
                kinds.check_lets()
        except Fault as fault:
            report_fault(fault, None, Region(0, 0, 0), spans, core, self.report)
            return frozenset()
        unused = _unused_lets(stated)
        for one in stated:
            self.report.tick()
            if one.broken or self.report.full or (broken and _mentions(one.statement, broken)):
                continue
            statement = one.statement
            if isinstance(statement, n.Require | n.Ask) and unused.intersection(map(id, one.lets)):
                # No clause uses these lets, so they are checked with the first clause of their
                # block.
                unused.difference_update(map(id, one.lets))
                lets = sorted(
                    (*statement.lets, *one.lets), key=lambda let: spans[id(let.body)].start
                )
                statement = replace(statement, lets=tuple(lets))
            try:
                kinds.rule(statement)
            except Fault as fault:
                report_fault(fault, statement, one.region, spans, core, self.report)
                if fault.code == "D201":  # the others would exceed the same bound
                    break
        return kinds.bare_texts

    def _compiled(
        self,
        core: Core,
        stated: Sequence[Stated],
        side: PlanSide,
        expects: Sequence[Expectation],
    ) -> Compiled:
        currency = self.single.get("currency")
        return Compiled(
            core=core,
            diagnostics=self.report.diagnostics(),
            sources={source.name: source for source in self.sources},
            places=self._places(stated),
            examples=side.examples,
            expects=tuple(expects),
            currency=None if currency is None else self.root.string(currency),
            span=self.report.span(self.root.region(self.single["header"])),
        )

    def _places(self, stated: Sequence[Stated]) -> dict[int | str, texts.Span]:
        report, b = self.report, self.root
        places: dict[int | str, texts.Span] = {
            number: report.span(one.region) for number, one in enumerate(stated)
        }
        words = {"plan": "plan", "begin": "start", "goal": "goal"}
        for kind, word in words.items():
            if kind in self.single:
                places[word] = report.span(b.region(self.single[kind]))
        places |= {f"rule {n}": report.span(b.region(t)) for n, t in self.declared.rules.items()}
        for other, tree in self._all("tool"):
            name = other.name(tree.trees()[0])
            places[f"tool {name}"] = report.span(other.region(tree))
        return places


def version_fault(text: str) -> tuple[str, str] | None:
    """Return the problem with a version, and a hint; None if the version is correct."""
    if len(text.encode("utf-8", "surrogatepass")) > MAX_VERSION_BYTES:
        message = f"the version takes more than {MAX_VERSION_BYTES} bytes"
        return message, "write a shorter one: it is in the head of every ledger"
    hidden = hidden_in(text)
    if hidden is not None:
        message = f"the version has U+{ord(hidden):04X}, a control or hidden character"
        return message, "leave it out: a version is shown on terminals and in logs"
    return None


def _unused_lets(stated: Sequence[Stated]) -> set[int]:
    """Return the ids of the lets of blocks that no clause of their block uses."""
    used: set[int] = set()
    unused: set[int] = set()
    for one in stated:
        if isinstance(one.statement, n.Require | n.Ask):
            used.update(map(id, one.statement.lets))
        unused.update(map(id, one.lets))
    return unused - used


_QUESTIONS = ("expect_always", "expect_reachable", "expect_implies")


def with_bare_words(core: Core, texts: frozenset[int]) -> Core:
    """Return the core with bare words for the texts with these ids: one form for a value."""
    if not texts:
        return core

    def bare(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple([bare(one) for one in value])
        if isinstance(value, n.Definition):
            return replace(value, body=bare(value.body))
        if not isinstance(value, n.Node):
            return value
        if isinstance(value, n.Text):
            return n.Word(value.value) if id(value) in texts else value
        parts = n.parts_of(value)
        made = [bare(part) for part in parts]
        same = all(one is other for one, other in zip(parts, made, strict=True))
        return value if same else n.with_parts(value, made)

    def stated(statement: n.Statement) -> n.Statement:
        members = {one.name: getattr(statement, one.name) for one in fields(statement)}
        return replace(statement, **{name: bare(value) for name, value in members.items()})

    return replace(
        core, lets=bare(core.lets), statements=tuple([stated(one) for one in core.statements])
    )


def _mentions(statement: n.Statement, names: set[str]) -> bool:
    return any(
        isinstance(node, n.Word) and node.name in names
        for root in n.roots_of(statement)
        for node in n.walk(root)
    )
