"""A real client of the language server: pygls' own, over the standard streams of a real process.

pytest-lsp brings pytest-asyncio, which warns unless it finds an option that pytest refuses where it
is not installed; its tests stand in `editors/tests`, and `scripts/editors` runs them in an
environment of their own.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.lsp.client import LanguageClient

WAIT = 30.0  # seconds


class Client:
    """An editor: opens texts, asks, and waits for what it is told of them."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.lsp = LanguageClient("editor", "1")
        self.told: dict[str, list[types.Diagnostic]] = {}
        self.rounds: dict[str, int] = {}
        self.changed = asyncio.Event()
        self.versions: dict[str, int] = {}

        @self.lsp.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def publish(params: types.PublishDiagnosticsParams) -> None:
            self.told[params.uri] = list(params.diagnostics)
            self.rounds[params.uri] = self.rounds.get(params.uri, 0) + 1
            self.changed.set()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(asyncio.wait_for(work, WAIT))

    def start(self, folder: Path, encodings: list[str] | None = None) -> types.InitializeResult:
        self.run(self.lsp.start_io(sys.executable, "-m", "tcc", "lsp", env=os.environ | {
            "PYTHONPATH": os.pathsep.join(sys.path)}))  # fmt: skip
        general = types.GeneralClientCapabilities(position_encodings=encodings)
        params = types.InitializeParams(
            capabilities=types.ClientCapabilities(general=general),
            workspace_folders=[types.WorkspaceFolder(uri=folder.as_uri(), name="here")],
        )
        answer = self.run(self.lsp.initialize_async(params))
        self.lsp.initialized(types.InitializedParams())
        return answer

    def stop(self) -> int | None:
        self.run(self.lsp.shutdown_async(None))
        self.lsp.exit(None)
        server = self.lsp._server
        assert server is not None
        code = self.run(server.wait())
        self.run(self.lsp.stop())
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()
        return code

    def ask(self, method: str, params: object) -> Any:
        async def asked() -> Any:
            return await self.lsp.protocol.send_request_async(method, params)

        return self.run(asked())

    def open(self, uri: str, text: str) -> str:
        self.versions[uri] = 1
        item = types.TextDocumentItem(uri=uri, language_id="tcg", version=1, text=text)
        self.lsp.text_document_did_open(types.DidOpenTextDocumentParams(text_document=item))
        return uri

    def change(self, uri: str, text: str) -> None:
        self.versions[uri] += 1
        self.lsp.text_document_did_change(
            types.DidChangeTextDocumentParams(
                text_document=types.VersionedTextDocumentIdentifier(
                    uri=uri, version=self.versions[uri]
                ),
                content_changes=[types.TextDocumentContentChangeWholeDocument(text=text)],
            )
        )

    def close(self, uri: str) -> None:
        at = types.TextDocumentIdentifier(uri=uri)
        self.lsp.text_document_did_close(types.DidCloseTextDocumentParams(text_document=at))

    def wait_for(
        self, uri: str, holds: Callable[[list[types.Diagnostic]], bool] = lambda found: True
    ) -> list[types.Diagnostic]:
        """What is told of a document, as soon as there is something for which `holds`."""

        async def wait() -> list[types.Diagnostic]:
            while uri not in self.told or not holds(self.told[uri]):
                self.changed.clear()
                await self.changed.wait()
            return self.told[uri]

        return self.run(wait())

    def doc(self, uri: str) -> types.TextDocumentIdentifier:
        return types.TextDocumentIdentifier(uri=uri)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("editor")


@pytest.fixture(scope="session")
def client(folder: Path) -> Iterator[Client]:
    """One server for all tests: each has a file of its own."""
    made = Client()
    made.start(folder)
    yield made
    assert made.stop() == 0


@pytest.fixture
def file(folder: Path, request: pytest.FixtureRequest) -> Path:
    """A file of this test's own, in a folder of its own."""
    own = folder / request.node.name.replace("[", "-").rstrip("]")
    own.mkdir()
    return own / "agent.tcg"
