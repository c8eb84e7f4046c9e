"""The language server on one page: its requests, and the functions that answer them.

The server reports syntax errors at each change.  DEBOUNCE seconds after the last change, a second
process (`checks.py`) looks for all errors and lints, one document after the other.  A thread reads
grammars for requests about names, and stops if a text changes.  Completion uses the names of the
last reading.  A request that takes too long gets an empty answer.
Protocol: LSP 3.17, by pygls over stdio.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls import uris
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol
from pygls.protocol.json_rpc import JsonRPCNotification

import tcc
from tcc.editor import (
    MOST_SECONDS,
    Document,
    QuestionTime,
    QuestionTimeout,
    Rooted,
    Texts,
    changed_part,
    document_of,
    grammar_of,
    syntax_of,
)
from tcc.editor.answers import Held, definitions, hover_text, outline, references, rename
from tcc.editor.checks import CheckedDocument, Checks
from tcc_compiler.editing.completion import Completion, completion
from tcc_compiler.editing.project import Occurrence, read_project
from tcc_compiler.editing.renaming import RENAMED, NotRenamed, name_in
from tcc_compiler.layout.format import format_text
from tcc_runtime.errors import WorkerLost

DEBOUNCE = 0.25  # seconds
_LARGE_DEBOUNCE = 1.0  # seconds, for a large text
_PATIENCE = 0.01  # seconds that completion waits for the names of the current text
_WRITTEN = 0.02  # seconds until the loop has written an answer
_MOST_HELD = 0.5  # seconds that readers pause at most
_MOST_COUNTED = 0.1  # seconds that a hover waits for the checking process
_AFTER = 0.004  # seconds before syntax errors are published
_IDLE = 1.0  # seconds without a change before garbage is collected
_SELDOM = 1000  # collections of young objects before a full one
_SWITCH = 0.0005  # seconds that a computing thread keeps the interpreter
# Codes that the parser reports: docs/errors.md.
SYNTAX = frozenset({f"TCC{number}" for number in (*range(101, 108), *range(111, 115), 229, 242)})
_NO_NAMES = read_project("", None, "")  # for a text whose names are unknown
_T = TypeVar("_T")
_SORTS = {
    "word": types.CompletionItemKind.Keyword,
    "tool": types.CompletionItemKind.Function,
    "rule": types.CompletionItemKind.Variable,
    "let": types.CompletionItemKind.Variable,
    "local": types.CompletionItemKind.Variable,
    "shape": types.CompletionItemKind.Struct,
    "field": types.CompletionItemKind.Field,
    "value": types.CompletionItemKind.EnumMember,
    "state": types.CompletionItemKind.Constant,
    "attribute": types.CompletionItemKind.Property,
}


class Editor:
    """The open documents of one editor, and the results that the server has for them.

    Attributes:
        edition: the number of changes of all texts.
        reading: the readings of grammars in this edition, by URI.
        read: the last finished reading of each document.
        slow: documents whose reading takes longer than completion waits.
        syntax: syntax errors of the current texts, until the complete check has ended.
        serial: the number of changes of each document; a check of an older text is dropped.
        diagnosed: the last result of a complete check, by URI.
        waiting: the task that will check a document, by URI.
    """

    def __init__(self, server: LanguageServer) -> None:
        self.server = server
        self.documents: dict[str, Document] = {}
        self.edition = 0
        self.reading: dict[str, asyncio.Future[Rooted | None]] = {}
        self.read: dict[str, Rooted] = {}
        self.slow: set[str] = set()
        self.syntax: dict[str, tuple[types.Diagnostic, ...]] = {}
        self.serial: dict[str, int] = {}
        self.diagnosed: dict[str, CheckedDocument] = {}
        self.waiting: dict[str, asyncio.Task[None]] = {}
        self.checks = Checks()
        self.asker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="asks")
        self.reader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="reads")
        self.unhurried = threading.Event()
        self.unhurried.set()

    @contextmanager
    def hurry(self) -> Iterator[None]:
        """Pause the readers until an answer is written, because they share the interpreter."""
        self.unhurried.clear()
        try:
            yield
        finally:
            asyncio.get_running_loop().call_later(_WRITTEN, self.unhurried.set)

    def has_changed(self, edition: int) -> bool:
        """Return whether a text has changed since an edition; wait while readers are paused."""
        self.unhurried.wait(_MOST_HELD)
        return self.edition != edition

    @property
    def texts(self) -> Texts:
        """A snapshot of the open documents."""
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
        """Set the text of a document; schedule checks of it and of the documents that use it."""
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
        """Close a document and remove its diagnostics."""
        for kept in (self.documents, self.read, self.syntax):
            kept.pop(uri, None)
        self._changed()
        self.serial[uri] = self.serial.get(uri, 0) + 1
        task = self.waiting.pop(uri, None)
        if task is not None:
            task.cancel()
        self.checks.revoke(uri)
        self.asker.submit(self.checks.forget, uri)
        old = self.diagnosed.pop(uri, None)
        self._publish((uri,) if old is None else tuple(old.told))

    def _later(self, uri: str) -> None:
        self.serial[uri] = self.serial.get(uri, 0) + 1
        task = self.waiting.get(uri)
        if task is not None:
            task.cancel()
        self.checks.revoke(uri)
        self.waiting[uri] = asyncio.ensure_future(self._diagnose(uri, self.serial[uri]))

    async def _diagnose(self, uri: str, serial: int) -> None:
        def wanted() -> bool:
            return self.serial.get(uri) == serial

        def stale() -> bool:
            if threading.current_thread() is not threading.main_thread():
                self.unhurried.wait(_MOST_HELD)
            return not wanted()

        if self.documents[uri].is_large:
            await asyncio.sleep(_LARGE_DEBOUNCE)
        else:
            await self._check_syntax(uri, stale)
            await asyncio.sleep(DEBOUNCE)
            if uri not in self.read:  # otherwise the first completion would wait for the reading
                await self.grammar(uri)
        try:
            found = await self._beside(partial(self.checks.check, uri, self.texts, wanted))
        except WorkerLost as why:
            self._log(f"the check of {uri} has no result, its process ended: {why}")
            return
        if found is not None and wanted():
            old = self.diagnosed.get(uri)
            self.diagnosed[uri] = found
            self.syntax.pop(uri, None)
            self._publish((*found.told, *(() if old is None else old.told)))
            await asyncio.sleep(_IDLE)
            gc.collect()

    async def _check_syntax(self, uri: str, stale: Callable[[], bool]) -> None:
        """Publish the syntax errors of a document if they have changed."""
        document, texts = self.documents[uri], self.texts

        def look() -> tuple[types.Diagnostic, ...] | None:
            try:
                return syntax_of(document, texts, QuestionTime(stale=stale))
            except QuestionTimeout:
                return None

        found = await self._reading(look)
        await asyncio.sleep(_AFTER)  # so that requests of the same keystroke are answered first
        if found is None or stale():
            return
        if uri not in self.diagnosed and not found:
            return
        if self.syntax.get(uri) != found:
            self.syntax[uri] = found
            self._publish((uri,))

    async def _reading(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self.reader, work)

    async def _beside(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self.asker, work)

    def _log(self, message: str) -> None:
        params = types.LogMessageParams(type=types.MessageType.Warning, message=message)
        self.server.window_log_message(params)

    def _publish(self, touched: tuple[str, ...]) -> None:
        """Publish the diagnostics of some files, merged over all grammars, each diagnostic once."""
        for uri in dict.fromkeys(touched):
            made: dict[tuple[object, ...], types.Diagnostic] = {}
            fresh = self.syntax.get(uri)
            lists = [found.told.get(uri, ()) for found in self.diagnosed.values()]
            if fresh is not None:  # syntax errors of the last check are about an older text
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
        """Return the current grammar of a document.

        Returns:
            None if the document is closed, too large, cannot be decoded, or takes too long to read.
        """
        while (document := self.documents.get(uri)) is not None and not document.is_large:
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
        """Return the current grammar if it can be read within 10 ms, else the last one read."""
        task = asyncio.ensure_future(self.grammar(uri))
        last = self.read.get(uri)
        if last is None:
            return await task
        if uri in self.slow:  # the reading would not finish in time
            return last
        done, _ = await asyncio.wait([task], timeout=_PATIENCE)
        return (task.result() or last) if done else last

    async def name_at(
        self, uri: str, position: types.Position
    ) -> tuple[Rooted | None, Occurrence | None]:
        """Return the current grammar and the name at a position; None for either if missing."""
        rooted, offset = await self.place(uri, position)
        return rooted, None if rooted is None else rooted.project.at(offset)

    async def place(self, uri: str, position: types.Position) -> tuple[Rooted | None, int]:
        """Return the current grammar of a document, and the offset of a position."""
        rooted = await self.grammar(uri)
        if rooted is None:
            return None, 0
        return rooted, self.texts.places(rooted.document.text).offset(position)

    async def read_beside(self, work: Callable[[QuestionTime], _T]) -> _T:
        """Run a search through texts and files in the reading thread.

        Raises:
            QuestionTimeout: the search takes too long.
        """
        return await self._reading(lambda: work(QuestionTime()))

    async def actions(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        """Return the code actions for a range; none if the checking process stays busy."""
        document = self.documents.get(params.text_document.uri)
        if document is None or document.is_large:
            return []
        ask = self._beside(partial(self.checks.actions, document, self.texts, params))
        busy = any(one.is_large for one in self.documents.values())
        with suppress(asyncio.TimeoutError):
            return await asyncio.wait_for(ask, _MOST_COUNTED if busy else MOST_SECONDS)
        return []

    async def plans_with(self, rooted: Rooted, tool: str | None) -> tuple[int, int] | None:
        """Return the numbers of plans that call a tool and of all plans; None if not soon known."""
        if tool is None:
            return None
        uri, sources = rooted.document.uri, _texts(rooted)
        return await self._soon(uri, partial(self.checks.plans_with, uri, sources, tool))

    async def held(self, rooted: Rooted) -> dict[str, Held] | None:
        """Return the places of a grammar's statements by text; None if not soon known."""
        uri, sources = rooted.document.uri, _texts(rooted)
        return await self._soon(uri, partial(self.checks.held_of, uri, sources))

    async def _soon(self, uri: str, work: Callable[[], _T]) -> _T | None:
        """Return an answer from the results of a check, or None if it takes too long."""
        if uri not in self.diagnosed:
            return None
        with suppress(asyncio.TimeoutError):
            return await asyncio.wait_for(self._beside(work), _MOST_COUNTED)
        return None


def _texts(rooted: Rooted) -> list[str]:
    return [source.text for source in rooted.project.sources]


class _Protocol(LanguageServerProtocol):
    """The protocol, with an error response to a request whose parameters are invalid.

    pygls only logs such a request, for example one with a negative line, and the editor would wait
    for an answer.
    """

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Parse a message; answer an invalid request, and return an empty notification for it."""
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "id" in data and "method" in data:
                self._send_response(data["id"], error=error.to_response_error())
                return JsonRPCNotification(method="$/answered", jsonrpc=self.VERSION, params=None)
            raise


def serve() -> None:
    """Serve one editor over standard input and output."""
    server = LanguageServer(
        "tcc",
        tcc.__version__,
        text_document_sync_kind=types.TextDocumentSyncKind.Incremental,
        protocol_cls=_Protocol,
    )
    editor = Editor(server)
    editor.asker.submit(editor.checks.start)
    sys.setswitchinterval(_SWITCH)
    _follow_texts(server, editor)
    _answer_names(server, editor)
    _answer_texts(server, editor)
    logging.getLogger("pygls").setLevel(logging.CRITICAL)
    # A full collection would delay a keystroke by about 80 ms.  Loaded modules are frozen, and
    # readings create no reference cycles, so full collections run only after a pause in typing.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], _SELDOM)
    try:
        server.start_io()
    finally:
        editor.checks.close()


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
        # Files that are not open, and tcc.toml, may have changed.
        for document in list(editor.documents.values()):
            editor.put(document.uri, document.text)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        editor.close(params.text_document.uri)


def _answer_names(server: LanguageServer, editor: Editor) -> None:
    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:
        rooted, offset = await editor.place(params.text_document.uri, params.position)
        if rooted is None:
            return None
        project = rooted.project
        found, stated = project.at(offset), project.stated_at(offset)
        tool = found is not None and found.kind == "tool"
        counted, held = await asyncio.gather(
            editor.plans_with(rooted, found.key[0] if tool and found else None),
            editor.held(rooted),
        )
        said = hover_text(project, offset, counted, held)
        if said is None:
            return None
        where = editor.texts.places(rooted.document.text)
        start, end = (
            (found.region.start, found.region.end) if found is not None
            else (stated[0].region.start, stated[-1].region.end)
        )  # fmt: skip
        return types.Hover(
            contents=types.MarkupContent(kind=types.MarkupKind.Markdown, value=said),
            range=where.range(start, end),
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
        if rooted is None or found is None or found.kind not in RENAMED:
            return None
        where = editor.texts.places(rooted.document.text)
        return types.PrepareRenamePlaceholder(
            range=where.range(found.region.start, found.region.end),
            placeholder=name_in(found.kind, found.key),
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
        types.CompletionOptions(trigger_characters=["(", "=", "|", ",", "."]),
    )
    async def complete(params: types.CompletionParams) -> list[types.CompletionItem]:
        rooted = await editor.names(params.text_document.uri)
        document = editor.documents.get(params.text_document.uri)
        project = _NO_NAMES if rooted is None else rooted.project
        if document is None or project is None:
            return []
        with editor.hurry():
            text = document.text
            places = editor.texts.places(text)
            offset = places.offset(params.position)
            try:
                start, offers = completion(text, offset, project, QuestionTime().check)
            except QuestionTimeout:
                return []
            where = places.range(start, offset)
            return [_item(number, offer, where) for number, offer in enumerate(offers)]

    @server.feature(types.TEXT_DOCUMENT_FORMATTING)
    async def laid_out(params: types.DocumentFormattingParams) -> list[types.TextEdit]:
        document = editor.documents.get(params.text_document.uri)
        if document is None or document.is_large:
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
    """Return the completion item of an offer; its number decides the order in the list."""
    return types.CompletionItem(
        label=offer.text,
        kind=_SORTS[offer.sort],
        detail=f"{offer.sort}: {offer.about}" if offer.about else offer.sort,
        sort_text=f"{number:05d}",
        filter_text=offer.text.strip("`"),
        text_edit=types.TextEdit(range=where, new_text=offer.text),
    )


def _refused(why: str) -> JsonRpcException:
    return JsonRpcException(message=why, code=types.LSPErrorCodes.RequestFailed)
