"""The process that checks: what it is asked, and what becomes of it."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest
from lsprotocol import types

from tcc.editor import Texts, document_of
from tcc.editor.checks import Checks
from tcc_runtime.errors import WorkerLost
from tests.editor.conftest import Client

GRAMMAR = """grammar g version "1"

tool a { cost 1 }
tool b { cost 1 }

plan = a b
rule r = a
"""
# A second or two of lints.
LONG = "\n".join([
    'grammar g version "1"', *(f"tool t{at}(k: a | b | c)" for at in range(60)),
    "plan = any*", "limit depth <= 40",
    *(f"before t{at + 1} require no t{at} since any - t{at}" for at in range(59)), "",
])  # fmt: skip


def texts_of(path: Path, text: str) -> tuple[str, Texts]:
    document = document_of(path.as_uri(), text)
    return document.uri, Texts(documents={document.uri: document})


def children(pid: int) -> list[int]:
    threads = Path(f"/proc/{pid}/task").iterdir()
    return [int(word) for one in threads for word in (one / "children").read_text().split()]


def test_what_is_found_is_kept_where_it_was_found(tmp_path: Path) -> None:
    checks = Checks()
    try:
        uri, texts = texts_of(tmp_path / "a.tcg", GRAMMAR)
        found = checks.check(uri, texts, lambda: True)
        assert found is not None
        assert [item.code for item in found.told[uri]] == ["TCC702"]
        assert checks.plans_with(uri, [GRAMMAR], "a") == (1, 1)
        assert checks.plans_with(uri, [GRAMMAR + " "], "a") is None
        here = types.Position(line=6, character=5)
        asked = types.CodeActionParams(
            text_document=types.TextDocumentIdentifier(uri=uri),
            range=types.Range(start=here, end=here),
            context=types.CodeActionContext(diagnostics=[]),
        )
        document = texts.documents[uri]
        assert "Fix TCC702: the meaning stays the same" in {
            action.title for action in checks.actions(document, texts, asked)
        }
        checks.forget(uri)
        assert checks.actions(document, texts, asked) == []
        assert checks.plans_with(uri, [GRAMMAR], "a") is None
    finally:
        checks.close()


def test_a_check_that_nobody_wants_ends_early_and_the_next_is_whole(tmp_path: Path) -> None:
    checks = Checks()
    try:
        checks.start()
        uri, texts = texts_of(tmp_path / "a.tcg", LONG)
        wanted = [True]
        begun = time.monotonic()

        def change() -> None:
            wanted[0] = False
            checks.revoke(uri)

        threading.Timer(0.2, change).start()
        assert checks.check(uri, texts, lambda: wanted[0]) is None
        revoked = time.monotonic() - begun
        assert checks.check(uri, texts, lambda: False) is None  # is not even begun
        begun = time.monotonic()
        checks.revoke(uri)  # what does not run cannot be revoked
        found = checks.check(uri, texts, lambda: True)
        assert found is not None and found.told[uri]
        assert revoked < time.monotonic() - begun
    finally:
        checks.close()


def test_a_process_that_is_lost_is_told_and_replaced(tmp_path: Path) -> None:
    checks = Checks()
    try:
        uri, texts = texts_of(tmp_path / "a.tcg", LONG)
        checks.start()
        (child,) = children(os.getpid())[-1:]
        threading.Timer(0.1, lambda: os.kill(child, signal.SIGKILL)).start()
        with pytest.raises(WorkerLost, match="signal 9"):
            checks.check(uri, texts, lambda: True)
        assert checks.plans_with(uri, [LONG], "t0") is None
        uri, texts = texts_of(tmp_path / "a.tcg", GRAMMAR)
        found = checks.check(uri, texts, lambda: True)
        assert found is not None and len(found.told[uri]) == 1
    finally:
        checks.close()
    with pytest.raises(WorkerLost):
        checks.check(uri, texts, lambda: True)


def test_an_editor_goes_on_where_the_process_is_killed_and_leaves_none_behind(
    tmp_path: Path,
) -> None:
    client = Client()
    client.start(tmp_path)
    uri = client.open((tmp_path / "a.tcg").as_uri(), GRAMMAR)
    assert client.wait_for(uri)[0].code == "TCC702"
    server = client.lsp._server
    assert server is not None
    (first,) = children(server.pid)
    os.kill(first, signal.SIGKILL)
    client.change(uri, LONG)
    client.change(uri, GRAMMAR.replace("plan = a b", "plan = a c"))
    client.wait_for(uri, lambda found: "TCC202" in [item.code for item in found])
    (second,) = children(server.pid)
    assert second != first
    client.change(uri, LONG)
    time.sleep(0.5)  # the check of it has begun
    assert client.stop() == 0
    begun = time.monotonic()
    while Path(f"/proc/{second}").exists():
        assert time.monotonic() - begun < 5
        time.sleep(0.05)
