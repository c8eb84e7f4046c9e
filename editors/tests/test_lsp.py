"""The language server by pytest-lsp.  Run by scripts/editors, in an environment of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest_lsp
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient

TEXT = """grammar desk version "1"

tool look { doc "😀" cost 1 }  # 😀
tool write { cost 2 }

plan = look+ write

limit depth <= 6
before write require look
rule spare = look
"""


@pytest_lsp.fixture(config=ClientServerConfig(server_command=[sys.executable, "-m", "tcc", "lsp"]))
async def client(lsp_client: LanguageClient):
    await lsp_client.initialize_session(
        types.InitializeParams(capabilities=pytest_lsp.client_capabilities("visual-studio-code"))
    )
    yield
    await lsp_client.shutdown_session()


async def test_a_text_is_diagnosed_hovered_over_and_renamed(
    client: LanguageClient, tmp_path: Path
) -> None:
    uri = (tmp_path / "desk.tcg").as_uri()
    document = types.TextDocumentItem(uri=uri, language_id="tcg", version=1, text=TEXT)
    client.text_document_did_open(types.DidOpenTextDocumentParams(text_document=document))
    await client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    assert [item.code for item in client.diagnostics[uri]] == ["TCC702"]
    here = types.TextDocumentIdentifier(uri=uri)
    there = types.Position(line=3, character=8)
    shown = await client.text_document_hover_async(
        types.HoverParams(text_document=here, position=there)
    )
    assert shown is not None and "in 5 of 5 plans" in shown.contents.value
    edit = await client.text_document_rename_async(
        types.RenameParams(text_document=here, position=there, new_name="see")
    )
    assert edit is not None and len(edit.changes[uri]) == 3
