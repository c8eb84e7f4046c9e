"""The language server on one page: what an editor asks, and which file answers.

Changes come as edits.  Errors of syntax are told at each of them; all errors and lints are looked
for when nothing has changed for DEBOUNCE seconds, one document after the other.  Whatever reads a
text is done beside the loop that answers, and ends early where the text has changed meanwhile.
Completion does not wait for a reading: it knows the names of the last one.  A question that takes
too long is answered by nothing.  Protocol: LSP 3.17, by pygls over stdio.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from lsprotocol.types import DocumentSymbol, SymbolKind
from pygls import uris
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

import tcc
from tcc import screen
from tcc.describe import bounds_plans
from tcc.editor import (
    Diagnosed,
    Document,
    Places,
    QuestionTime,
    QuestionTimeout,
    Rooted,
    Texts,
    changed_part,
    code_actions,
    diagnose,
    document_of,
    grammar_of,
    grammars_with,
    syntax_of,
)
from tcc_certs.errors import escaped
from tcc_certs.formats.codec import written
from tcc_compiler.editing.completion import Completion, completion
from tcc_compiler.editing.project import Occurrence, Project, statement_ends
from tcc_compiler.editing.renaming import NotRenamed, renamed
from tcc_compiler.format.text import format_text
from tcc_compiler.language.ast import (
    Doc,
    Domain,
    GivenStatement,
    GrammarStatement,
    LetStatement,
    OpenDeclaration,
    ParameterDeclaration,
    PlanStatement,
    RuleStatement,
    Statement,
    ToolStatement,
)
from tcc_compiler.language.source import Region, Source
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
        case "attribute":
            places = project.all_of(found.kind, found.key)
            region = next((place.region for place in places if place.defines), None)
            around = () if region is None else project.statements
            attributes = (s for s in around if isinstance(s, GivenStatement | LetStatement))
            stated = (one.region for one in attributes if _holds(one.region, region))
            return next((_statement(project, whole) for whole in stated), None)
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
    for parameter in (*tool.parameters, *tool.opened, *tool.observed, *tool.answers):
        if parameter.name.text == name:
            region = _declaration(parameter)
            return f"parameter of `{written(owner)}`\n\n{_fenced(project, region)}"
    return None


def _declaration(parameter: ParameterDeclaration | OpenDeclaration) -> Region:
    """The characters of a parameter with its values or its type."""
    if isinstance(parameter, ParameterDeclaration):
        return parameter.name.region.to(parameter.domain.region)
    return parameter.name.region.to(
        parameter.made.region if parameter.at is None else parameter.at.region
    )


def _holds(whole: Region, part: Region | None) -> bool:
    """Whether a place lies in another."""
    if part is None or part.source != whole.source:
        return False
    return whole.start <= part.start and part.end <= whole.end


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


# Declaration, references and rename, in all grammars that use the file.


def definitions(mine: Rooted, found: Occurrence, texts: Texts) -> list[types.Location]:
    """Where a name is declared; of the path of a used file, that file."""
    if found.kind == "file":
        return _file(mine, found)
    places = mine.project.all_of(found.kind, found.key)
    return [_location(mine, place, texts) for place in places if place.defines]


def _file(mine: Rooted, found: Occurrence) -> list[types.Location]:
    here = mine.project.sources[found.region.source].path
    if here is None:
        return []
    try:
        target = Path(os.path.realpath(here.parent / found.key[0]))
    except (OSError, ValueError):
        return []
    if all(source.path != target for source in mine.project.sources):
        return []
    zero = types.Position(line=0, character=0)
    uri = uris.from_fs_path(str(target))
    return [types.Location(uri=uri, range=types.Range(start=zero, end=zero))] if uri else []


def references(
    mine: Rooted, found: Occurrence, texts: Texts, budget: QuestionTime, *, declared: bool
) -> list[types.Location]:
    """Every place where a name stands, in all grammars that have its declaration.

    Args:
        declared: whether those where it is declared are among them.
    """
    rooted, _ = grammars_with(mine, _home(mine, found), texts, budget)
    made: dict[tuple[str, int, int], types.Location] = {}
    for one in rooted:
        for place in one.project.all_of(found.kind, found.key):
            if declared or not place.defines:
                at = _location(one, place, texts)
                key = (at.uri, at.range.start.line, at.range.start.character)
                made.setdefault(key, at)
    return list(made.values())


def rename(
    mine: Rooted, found: Occurrence, name: str, texts: Texts, budget: QuestionTime
) -> types.WorkspaceEdit:
    """The edits that give a tool or a rule another name, in all grammars that have it.

    Raises:
        NotRenamed: it may not be, and why.
    """
    rooted, complete = grammars_with(mine, _home(mine, found), texts, budget)
    if not complete:
        raise NotRenamed("too many files may have this name; rename it with your own tools")
    edits = renamed([one.project for one in rooted], found, name)
    changes: dict[str, list[types.TextEdit]] = {}
    for edit in edits:
        uri = texts.uri(edit.source, mine.document)
        where = texts.places(edit.source.text).range(edit.start, edit.end)
        changes.setdefault(uri, []).append(types.TextEdit(range=where, new_text=edit.text))
    return types.WorkspaceEdit(changes=changes)


def _home(mine: Rooted, found: Occurrence) -> Path | None:
    """The file in which a name is declared, else that in which it stands."""
    owner = [o for o in mine.project.all_of(found.kind, found.key) if o.defines]
    place = owner[0] if owner else found
    return mine.project.sources[place.region.source].path


def _location(one: Rooted, place: Occurrence, texts: Texts) -> types.Location:
    source = one.project.sources[place.region.source]
    where = texts.places(source.text).range(place.region.start, place.region.end)
    return types.Location(uri=texts.uri(source, one.document), range=where)


# Outline: the named statements of a document.


def outline(project: Project, places: Places) -> list[DocumentSymbol]:
    """The grammar, its tools with their parameters, its rules and its plan."""
    ends = statement_ends(project.sources[0])
    root = [statement for statement in project.statements if statement.region.source == 0]
    return [
        symbol
        for statement in root
        for symbol in _symbols(statement, _whole(statement.region, ends), places)
    ]


def _whole(region: Region, ends: Mapping[int, int]) -> Region:
    return Region(region.source, region.start, ends.get(region.start, region.end))


def _symbols(statement: Statement, whole: Region, places: Places) -> Iterator[DocumentSymbol]:
    match statement:
        case GrammarStatement():
            name = statement.name
            yield _symbol(name.text, SymbolKind.Module, whole, name.region, places)
        case ToolStatement():
            name = statement.name
            made = _symbol(name.text, SymbolKind.Function, whole, name.region, places)
            made.children = [
                _symbol(p.name.text, SymbolKind.Field, p.name.region, p.name.region, places)
                for p in (*statement.parameters, *statement.opened, *statement.observed)
            ]
            yield made
        case RuleStatement():
            name = statement.name
            yield _symbol(name.text, SymbolKind.Variable, whole, name.region, places)
        case PlanStatement():
            word = Region(whole.source, whole.start, whole.start + len("plan"))
            yield _symbol("plan", SymbolKind.Constant, whole, word, places)
        case _:
            pass


def _symbol(
    name: str, kind: SymbolKind, region: Region, chosen: Region, places: Places
) -> DocumentSymbol:
    return DocumentSymbol(
        name=escaped(name) or '""',
        kind=kind,
        range=places.range(region.start, region.end),
        selection_range=places.range(chosen.start, chosen.end),
    )


DEBOUNCE = 0.25  # seconds
_PATIENCE = 0.01  # seconds that completion waits for the names of the text as it is
_WRITTEN = (
    0.02  # seconds in which the loop begins to write an answer; it is not left before the end
)
_MOST_HELD = 0.5  # seconds for which readers stand still at most
_SWITCH = 0.0005  # seconds until the loop has its turn beside a thread that computes
# What a text alone shows: docs/errors.md, TCC10x and TCC11x.
SYNTAX = frozenset({f"TCC{number}" for number in range(101, 115)} - {"TCC108", "TCC109", "TCC110"})
_T = TypeVar("_T")
_SORTS = {
    "word": types.CompletionItemKind.Keyword,
    "tool": types.CompletionItemKind.Function,
    "rule": types.CompletionItemKind.Variable,
    "parameter": types.CompletionItemKind.Field,
    "value": types.CompletionItemKind.EnumMember,
    "state": types.CompletionItemKind.Constant,
    "attribute": types.CompletionItemKind.Property,
}


class Editor:
    """What is open in one editor, and what is known of it.

    Invariant: `edition` counts the changes of all texts; `reading` are the readings of grammars of
    this edition, and `read` has the last one of each document that came to an end.  `serial` counts
    the changes of each document, and what was diagnosed at an older number is of no interest.
    `syntax` are the errors of syntax of each document as it is, until it is diagnosed; `good` its
    statements that have none.
    """

    def __init__(self, server: LanguageServer) -> None:
        self.server = server
        self.documents: dict[str, Document] = {}
        self.edition = 0
        self.reading: dict[str, asyncio.Future[Rooted | None]] = {}
        self.read: dict[str, Rooted] = {}
        self.slow: set[str] = set()  # read too slowly for completion to wait
        self.syntax: dict[str, tuple[types.Diagnostic, ...]] = {}
        self.good: dict[str, frozenset[str]] = {}
        self.serial: dict[str, int] = {}
        self.diagnosed: dict[str, Diagnosed] = {}
        self.waiting: dict[str, asyncio.Task[None]] = {}
        self.worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="lints")
        self.reader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="reads")
        self.unhurried = threading.Event()
        self.unhurried.set()

    @contextmanager
    def hurry(self) -> Iterator[None]:
        """Readers stand still until an answer is made and written: they share one interpreter."""
        self.unhurried.clear()
        try:
            yield
        finally:
            asyncio.get_running_loop().call_later(_WRITTEN, self.unhurried.set)

    def has_changed(self, edition: int) -> bool:
        """Whether texts are others than in this edition; asked by readers, it holds them back."""
        self.unhurried.wait(_MOST_HELD)
        return self.edition != edition

    @property
    def texts(self) -> Texts:
        """All that is open now."""
        workspace = self.server.workspace
        found = [uris.to_fs_path(uri) for uri in workspace.folders]
        if not found and workspace.root_uri:
            found = [uris.to_fs_path(workspace.root_uri)]
        encoding = workspace.position_encoding
        return Texts(
            documents=dict(self.documents),
            folders=tuple(Path(path).resolve() for path in found if path),
            encoding="utf-16" if encoding is None else str(getattr(encoding, "value", encoding)),
        )

    def put(self, uri: str, text: str) -> None:
        """A document has this text now; those that use it are looked at again, too."""
        document = self.documents[uri] = document_of(uri, text)
        self._changed()
        users = [
            owner
            for owner, found in self.diagnosed.items()
            if owner in self.documents and document.path in found.uses
        ]
        for owner in dict.fromkeys((uri, *users)):
            self._later(owner)

    def _changed(self) -> None:
        self.edition += 1
        self.reading.clear()

    def close(self, uri: str) -> None:
        """A document is not open any more; nothing is told of it."""
        for kept in (self.documents, self.read, self.syntax, self.good):
            kept.pop(uri, None)
        self._changed()
        self.serial[uri] = self.serial.get(uri, 0) + 1
        task = self.waiting.pop(uri, None)
        if task is not None:
            task.cancel()
        old = self.diagnosed.pop(uri, None)
        self._publish((uri,) if old is None else tuple(old.told))

    def _later(self, uri: str) -> None:
        self.serial[uri] = self.serial.get(uri, 0) + 1
        task = self.waiting.get(uri)
        if task is not None:
            task.cancel()
        self.waiting[uri] = asyncio.ensure_future(self._diagnose(uri, self.serial[uri]))

    async def _diagnose(self, uri: str, serial: int) -> None:
        def stale() -> bool:
            if threading.current_thread() is not threading.main_thread():
                self.unhurried.wait(_MOST_HELD)
            return self.serial.get(uri) != serial

        await self._check_syntax(uri, stale)
        await asyncio.sleep(DEBOUNCE)
        texts = self.texts
        found = await self._beside(lambda: diagnose(texts.documents[uri], texts, stale))
        if not stale():
            old = self.diagnosed.get(uri)
            self.diagnosed[uri] = found
            self.syntax.pop(uri, None)
            self._publish((*found.told, *(() if old is None else old.told)))

    async def _check_syntax(self, uri: str, stale: Callable[[], bool]) -> None:
        """Tell the errors of syntax, where there are others than those that were told."""
        document, texts, known = self.documents[uri], self.texts, self.good.get(uri, frozenset())

        def look() -> tuple[tuple[types.Diagnostic, ...], frozenset[str]] | None:
            try:
                return syntax_of(document, texts, known, QuestionTime(stale=stale))
            except QuestionTimeout:
                return None

        looked = await self._reading(look)
        if looked is None or stale():
            return
        found, self.good[uri] = looked
        if uri not in self.diagnosed and not found:
            return
        if self.syntax.get(uri) != found:
            self.syntax[uri] = found
            self._publish((uri,))

    async def _reading(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self.reader, work)

    async def _beside(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self.worker, work)

    def _publish(self, touched: tuple[str, ...]) -> None:
        """Tell what all grammars say of some files, each thing once."""
        for uri in dict.fromkeys(touched):
            made: dict[tuple[object, ...], types.Diagnostic] = {}
            fresh = self.syntax.get(uri)
            lists = [found.told.get(uri, ()) for found in self.diagnosed.values()]
            if fresh is not None:  # what was told of the syntax before is about another text
                others = [tuple(i for i in told if i.code not in SYNTAX) for told in lists]
                lists = [fresh, *others]
            for items in lists:
                for item in items:
                    start, end = item.range.start, item.range.end
                    at = (start.line, start.character, end.line, end.character)
                    made.setdefault((*at, item.code, item.message), item)
            params = types.PublishDiagnosticsParams(uri=uri, diagnostics=list(made.values()))
            self.server.text_document_publish_diagnostics(params)

    async def grammar(self, uri: str) -> Rooted | None:
        """The grammar of a document as it is; None where it is no text, or takes too long."""
        while (document := self.documents.get(uri)) is not None:
            edition, task = self.edition, self.reading.get(uri)
            if task is None:
                task = asyncio.ensure_future(self._grammar(document, edition))
                self.reading[uri] = task
            rooted = await asyncio.shield(task)
            if edition == self.edition:
                return rooted
        return None

    async def _grammar(self, document: Document, edition: int) -> Rooted | None:
        texts = self.texts

        begun = time.monotonic()

        def read() -> Rooted | None:
            try:
                budget = QuestionTime(stale=lambda: self.has_changed(edition))
                return grammar_of(document, texts, budget)
            except QuestionTimeout:
                return None

        rooted = await self._reading(read)
        if rooted is not None and document.uri in self.documents:
            self.read[document.uri] = rooted
            (self.slow.discard, self.slow.add)[time.monotonic() - begun > _PATIENCE](document.uri)
        return rooted

    async def names(self, uri: str) -> Rooted | None:
        """The grammar as it is, where that is known soon; else as it was when it was last read."""
        task = asyncio.ensure_future(self.grammar(uri))
        last = self.read.get(uri)
        if last is None:
            return await task
        if uri in self.slow:  # it will not be read in time
            return last
        done, _ = await asyncio.wait([task], timeout=_PATIENCE)
        return (task.result() or last) if done else last

    async def name_at(
        self, uri: str, position: types.Position
    ) -> tuple[Rooted | None, Occurrence | None]:
        """The name at a position, and the grammar in which it stands."""
        rooted = await self.grammar(uri)
        if rooted is None:
            return None, None
        offset = self.texts.places(rooted.document.text).offset(position)
        return rooted, rooted.project.at(offset)

    async def read_beside(self, work: Callable[[QuestionTime], _T]) -> _T:
        """What is found in the texts, and perhaps in other files, beside the loop."""
        return await self._reading(lambda: work(QuestionTime()))

    async def actions(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        """What may be done about the lints of a range."""
        document = self.documents.get(params.text_document.uri)
        if document is None:
            return []
        texts, made = self.texts, list[types.CodeAction]()
        for diagnosed in list(self.diagnosed.values()):
            if document.uri in diagnosed.told:
                work = partial(code_actions, document, diagnosed, texts, params)
                made += await self._beside(work)
        return made


def make_server() -> LanguageServer:
    """A server with everything that it answers; `start_io` serves one editor."""
    server = LanguageServer(
        "tcc", tcc.__version__, text_document_sync_kind=types.TextDocumentSyncKind.Incremental
    )
    editor = Editor(server)
    sys.setswitchinterval(_SWITCH)
    _follow_texts(server, editor)
    _answer_names(server, editor)
    _answer_texts(server, editor)
    logging.getLogger("pygls").setLevel(logging.CRITICAL)
    return server


def _follow_texts(server: LanguageServer, editor: Editor) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        editor.put(params.text_document.uri, params.text_document.text)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        editor.put(uri, server.workspace.get_text_document(uri).source)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        # Files that are not open, and tcc.toml, may be others now.
        for document in list(editor.documents.values()):
            editor.put(document.uri, document.text)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        editor.close(params.text_document.uri)


def _answer_names(server: LanguageServer, editor: Editor) -> None:
    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:
        rooted, found = await editor.name_at(params.text_document.uri, params.position)
        if rooted is None or found is None:
            return None
        said = hover_text(rooted.project, found, editor.diagnosed.get(rooted.document.uri))
        if said is None:
            return None
        where = editor.texts.places(rooted.document.text)
        return types.Hover(
            contents=types.MarkupContent(kind=types.MarkupKind.Markdown, value=said),
            range=where.range(found.region.start, found.region.end),
        )

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    async def definition(params: types.DefinitionParams) -> list[types.Location]:
        rooted, found = await editor.name_at(params.text_document.uri, params.position)
        return [] if rooted is None or found is None else definitions(rooted, found, editor.texts)

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    async def refer(params: types.ReferenceParams) -> list[types.Location]:
        rooted, found = await editor.name_at(params.text_document.uri, params.position)
        if rooted is None or found is None:
            return []
        declared = params.context.include_declaration
        try:
            ask = partial(references, rooted, found, editor.texts, declared=declared)
            return await editor.read_beside(ask)
        except QuestionTimeout:
            return []

    @server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
    async def renaming(params: types.RenameParams) -> types.WorkspaceEdit:
        rooted, found = await editor.name_at(params.text_document.uri, params.position)
        if rooted is None or found is None:
            raise _refused("there is no name here")
        try:
            ask = partial(rename, rooted, found, params.new_name, editor.texts)
            return await editor.read_beside(ask)
        except NotRenamed as why:
            raise _refused(str(why)) from None
        except QuestionTimeout:
            raise _refused("it took too long to look through the files") from None

    @server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
    async def prepare(params: types.PrepareRenameParams) -> types.PrepareRenamePlaceholder | None:
        rooted, found = await editor.name_at(params.text_document.uri, params.position)
        if rooted is None or found is None or found.kind not in ("tool", "rule"):
            return None
        where = editor.texts.places(rooted.document.text)
        return types.PrepareRenamePlaceholder(
            range=where.range(found.region.start, found.region.end), placeholder=found.key[0]
        )


def _answer_texts(server: LanguageServer, editor: Editor) -> None:
    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    async def symbols(params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
        rooted = await editor.grammar(params.text_document.uri)
        if rooted is None:
            return []
        return outline(rooted.project, editor.texts.places(rooted.document.text))

    @server.feature(
        types.TEXT_DOCUMENT_COMPLETION,
        types.CompletionOptions(trigger_characters=["(", "=", "|", ","]),
    )
    async def complete(params: types.CompletionParams) -> list[types.CompletionItem]:
        rooted = await editor.names(params.text_document.uri)
        document = editor.documents.get(params.text_document.uri)
        if rooted is None or document is None:
            return []
        with editor.hurry():
            text = document.text
            places = editor.texts.places(text)
            offset = places.offset(params.position)
            try:
                start, offers = completion(text, offset, rooted.project, QuestionTime().check)
            except QuestionTimeout:
                return []
            where = places.range(start, offset)
            return [_item(number, offer, where) for number, offer in enumerate(offers)]

    @server.feature(types.TEXT_DOCUMENT_FORMATTING)
    async def laid_out(params: types.DocumentFormattingParams) -> list[types.TextEdit]:
        document = editor.documents.get(params.text_document.uri)
        if document is None:
            return []
        text, name = document.text, document.name
        made = await editor.read_beside(lambda _: format_text(text, name))
        if made.text in (None, text):
            return []
        return [changed_part(text, made.text or "", editor.texts.places(text))]

    kinds = [types.CodeActionKind.QuickFix, "source.fixAll.tcc"]
    options: Any = types.CodeActionOptions(code_action_kinds=kinds)

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, options)
    async def actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        return await editor.actions(params)


def _item(number: int, offer: Completion, where: types.Range) -> types.CompletionItem:
    """An offer; names come before words, in the order of the text."""
    return types.CompletionItem(
        label=offer.text,
        kind=_SORTS[offer.sort],
        detail=offer.sort,
        sort_text=f"{number:05d}",
        text_edit=types.TextEdit(range=where, new_text=offer.text),
    )


def _refused(why: str) -> JsonRpcException:
    return JsonRpcException(message=why, code=types.LSPErrorCodes.RequestFailed)
