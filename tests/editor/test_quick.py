"""A text of 2,000 lines: the editor is answered while it types, whatever is being looked for."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from tcc_compiler.editing.completion import completion
from tcc_compiler.editing.project import read_project
from tcc_compiler.language.diagnostics import Report
from tcc_compiler.language.source import source_of
from tcc_compiler.language.syntax.parse import check_syntax, parse
from tests.editor.conftest import Client

MORE = ["(", ")", "]", '"', "start", "{", "limit ", "# ", "x", "\n", "tool ", "5"]
TAILS = ["require ", "rule x = t3(", "forbid t1 t2(k=", "tool limit(\nlimit: a | b, "]


def large(tools: int = 650) -> str:
    lines = ['grammar g version "1"']
    for i in range(tools):
        lines += [f"tool t{i}(k: a | b | c, q: 1 | 2) {{", f"  cost 0.{i + 1} price {i}", "}"]
    lines += [f"rule r{i} = t{i} t{i + 1}?" for i in range(30)]
    lines += ["plan = " + " | ".join(f"r{i}" for i in range(30))]
    return "\n".join([*lines, *(f"forbid t{i} t{i + 1}" for i in range(18)), ""])


def typed(client: Client, uri: str, line: int, character: int, text: str, gone: int = 0) -> None:
    client.versions[uri] += 1
    start = types.Position(line=line, character=character)
    end = types.Position(line=line, character=character + gone)
    change: Any = types.TextDocumentContentChangePartial(
        range=types.Range(start=start, end=end), text=text
    )
    name = types.VersionedTextDocumentIdentifier(uri=uri, version=client.versions[uri])
    client.lsp.text_document_did_change(
        types.DidChangeTextDocumentParams(text_document=name, content_changes=[change])
    )


def least(work: Callable[[], object]) -> float:
    """The processor time of this thread that it takes, at the least."""
    taken = []
    for _ in range(5):
        begun = time.thread_time()
        work()
        taken.append(time.thread_time() - begun)
    return min(taken)


def test_what_a_keystroke_takes() -> None:
    text = large() + "require "
    project = read_project(text, None, "g.tcg")
    assert project is not None
    assert least(lambda: completion(text, len(text), project)) < 0.05
    source = source_of(text, "g.tcg")
    known = check_syntax(source, Report([source]), frozenset())
    assert least(lambda: check_syntax(source, Report([source]), known)) < 0.1
    whole = least(lambda: parse(source, 0, Report([source])))
    assert least(lambda: check_syntax(source, Report([source]), known)) < whole / 2


@pytest.mark.campaign
def test_keystrokes_in_a_large_text(client: Client, folder: Path) -> None:
    text = large()
    last = text.count("\n")
    assert last == 2000
    uri = client.open((folder / "large.tcg").as_uri(), text)
    client.ask(
        types.TEXT_DOCUMENT_DOCUMENT_SYMBOL,
        types.DocumentSymbolParams(text_document=client.doc(uri)),
    )
    errors, completions = [], []
    for number in range(5):
        typed(client, uri, last, 0, "require ")
        begun = time.perf_counter()
        asked = types.CompletionParams(
            text_document=client.doc(uri), position=types.Position(line=last, character=8)
        )
        items = client.ask(types.TEXT_DOCUMENT_COMPLETION, asked)
        completions.append(time.perf_counter() - begun)
        assert [item.label for item in items][:650] == [f"t{i}" for i in range(650)]
        client.told.pop(uri, None)
        begun = time.perf_counter()
        more = f"{number} before )"  # another error each time: the same one is told once
        typed(client, uri, last, 8, more)
        ends = 8 + len(more)
        client.wait_for(uri, lambda found: "TCC101" in {item.code for item in found})
        errors.append(time.perf_counter() - begun)
        typed(client, uri, last, 0, "", gone=ends)
        client.wait_for(uri, lambda found: "TCC101" not in {item.code for item in found})
    assert min(completions) < 0.05, completions
    assert min(errors) < 0.1, errors
    client.close(uri)


def test_errors_of_syntax_are_those_of_the_whole_reading() -> None:
    rng = random.Random(4)
    text, known = large(4), frozenset[str]()
    for _ in range(200):
        at = rng.randrange(len(text))
        more = rng.choice(
            ["(", ")", "]", '"', "start", "{", "limit ", "# ", "x", "\n", "tool ", "5"]
        )
        text = text[:at] + more + text[at + rng.randrange(4) :]
        report, whole = (Report([source_of(text, "g.tcg")]) for _ in range(2))
        known = check_syntax(source_of(text, "g.tcg"), report, known)
        parse(source_of(text, "g.tcg"), 0, whole)
        assert report.diagnostics() == whole.diagnostics()
        if rng.random() < 0.1:
            text = large(4)


@pytest.mark.parametrize("tail", TAILS)
def test_what_stands_far_before_says_nothing_of_what_may_stand_here(tail: str) -> None:
    text = large() + tail
    project = read_project(text, None, "g.tcg")
    assert project is not None
    short = text[text.index("rule r0") :] if tail != "require " else text
    begun, offers = completion(text, len(text), project)
    assert begun == len(text)
    assert bool(offers) != tail.startswith("tool")
    assert offers == completion(short, len(short), project)[1]
