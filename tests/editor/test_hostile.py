"""Texts that no author means: halves of files, very large files, places outside of them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tcc.editor.answers import hover_text
from tcc_compiler.editing.completion import completion
from tcc_compiler.editing.project import read_project
from tests.compiler.names.corpus import DESK, FORMS, SHIPPED
from tests.editor.test_quick import Pipe

SECONDS = 0.2  # until an answer, of the quickest of TRIES
TRIES = 3
SMALL = 'grammar s version "1"\ntool a(k: x | y)\nbefore a require no a\n'
HERE = {"line": 2, "character": 8}
OUTSIDE = (
    {"line": 0, "character": 1 << 30},
    {"line": 1 << 30, "character": 0},
    {"line": 3, "character": 3},
    {"line": -1, "character": 4},
    {"line": 1, "character": -4},
)
ABOUT_A_PLACE: dict[str, dict[str, Any]] = {
    "textDocument/hover": {},
    "textDocument/completion": {},
    "textDocument/definition": {},
    "textDocument/references": {"context": {"includeDeclaration": True}},
    "textDocument/rename": {"newName": "z"},
    "textDocument/prepareRename": {},
}
ABOUT_A_TEXT: dict[str, dict[str, Any]] = {
    "textDocument/documentSymbol": {},
    "textDocument/formatting": {"options": {"tabSize": 2, "insertSpaces": True}},
    "textDocument/codeAction": {
        "range": {"start": HERE, "end": HERE}, "context": {"diagnostics": []}
    },
}  # fmt: skip


def large() -> str:
    """A grammar of 1 MB."""
    statement = (
        "tool t{0}(k: a | b | c, note: text max 200, amount: number 0 .. 500) {{ cost 0.{0} }}\n"
        'before t{0} require no t{1}(note = "x") and amount <= 3\n'
    )
    lines = ['grammar g version "1"\n']
    size = 0
    while size < 1_000_000:
        lines.append(statement.format(len(lines), max(1, len(lines) - 1)))
        size += len(lines[-1])
    return "".join(lines)


@pytest.fixture(scope="module")
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    made.ask("initialize", processId=None, rootUri=None, capabilities={})
    made.tell("initialized")
    yield made
    made.close()


def opened(pipe: Pipe, path: Path, text: str) -> dict[str, str]:
    item = {"uri": path.as_uri(), "languageId": "tcg", "version": 0, "text": text}
    pipe.tell("textDocument/didOpen", textDocument=item)
    return {"uri": path.as_uri()}


def test_ten_files_of_1_mb_leave_every_answer_within_a_fifth_of_a_second(
    pipe: Pipe, tmp_path: Path
) -> None:
    text = large()
    assert len(text) >= 1_000_000
    small = opened(pipe, tmp_path / "small.tcg", SMALL)
    many = [opened(pipe, tmp_path / f"{at}.tcg", text) for at in range(10)]
    took: dict[tuple[str, str], float] = {}
    for _ in range(TRIES):
        for document in (small, many[0], many[9]):
            asked = [(name, {**more, "position": HERE}) for name, more in ABOUT_A_PLACE.items()]
            for name, params in (*asked, *ABOUT_A_TEXT.items()):
                seconds, _ = pipe.ask(name, textDocument=document, **params)
                key = (name, document["uri"])
                took[key] = min(seconds, took.get(key, seconds))
    print(*(f"{name} {1000 * seconds:.0f} ms" for (name, _), seconds in took.items()))
    assert max(took.values()) < SECONDS, took
    # The small text is answered in full meanwhile, and a change of a large one is taken.
    _, data = pipe.ask("textDocument/hover", textDocument=small, position=HERE)
    assert "A call of `a` is allowed only if there is no earlier call of `a`" in data.decode()
    pipe.typed(many[0]["uri"], 1, 0, "tool new\n")
    seconds, data = pipe.ask("textDocument/completion", textDocument=many[0], position=HERE)
    assert seconds < 5 * SECONDS and "result" in json.loads(data)
    for document in (small, *many):
        pipe.tell("textDocument/didClose", textDocument=document)


@pytest.mark.parametrize("place", OUTSIDE, ids=range(len(OUTSIDE)))
def test_a_position_outside_of_the_text_has_an_answer(
    pipe: Pipe, tmp_path: Path, place: dict[str, int]
) -> None:
    document = opened(pipe, tmp_path / "outside.tcg", SMALL)
    for name, more in ABOUT_A_PLACE.items():
        _, data = pipe.ask(name, textDocument=document, position=place, **more)
        answer = json.loads(data)
        assert ("result" in answer) != ("error" in answer)
        assert "Traceback" not in data.decode()
    assert pipe.process.poll() is None


@pytest.mark.parametrize("at", range(len(SHIPPED) + 2))
def test_half_a_file_is_read_completed_and_hovered_over(at: int) -> None:
    text = [DESK, FORMS, *[path.read_text("utf-8") for path in SHIPPED]][at]
    whole = read_project(text, None, "g.tcg")
    assert whole is not None
    chance = random.Random(at)
    for _ in range(25):
        end = chance.randrange(len(text))
        half = text[:end]
        project = read_project(half, None, "g.tcg")
        assert project is not None
        for known in (project, whole):  # the names of the last reading may be those of the whole
            start, offers = completion(half, end, known)
            assert start <= end and len(set(offers)) == len(offers)
        for place in (end, chance.randrange(end + 1)):
            hover_text(project, place)


def test_half_a_file_in_an_editor_ends_nothing(pipe: Pipe, tmp_path: Path) -> None:
    text = SHIPPED[0].read_text("utf-8")
    document = opened(pipe, tmp_path / "half.tcg", text)
    chance = random.Random(5)
    for number in range(20):
        end = chance.randrange(len(text))
        pipe.version += 1
        versioned = {**document, "version": pipe.version}
        changes = [{"text": text[:end] + ("" if number % 2 else "\ud83d\u0000{")}]
        pipe.tell("textDocument/didChange", textDocument=versioned, contentChanges=changes)
        last = text[:end].count("\n")
        place = {"line": last, "character": end - text.rfind("\n", 0, end) - 1}
        for name, more in ABOUT_A_PLACE.items():
            _, data = pipe.ask(name, textDocument=document, position=place, **more)
            assert "Traceback" not in data.decode()
    assert pipe.process.poll() is None
