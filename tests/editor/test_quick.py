"""A text of 2,000 lines: the editor is answered while it types, whatever is being looked for."""

from __future__ import annotations

import json
import os
import queue
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tcc_compiler.editing.completion import completion
from tcc_compiler.editing.project import read_project
from tcc_compiler.language.diagnostics import Report
from tcc_compiler.language.source import source_of
from tcc_compiler.language.syntax.parse import KnownBlocks, check_syntax, parse

MORE = ["(", ")", "]", '"', "start", "{", "limit ", "# ", "x", "\n", "tool ", "5"]
TAILS = ["require ", "rule x = t3(", "forbid t1 t2(k=", "tool limit(\nlimit: a | b, "]


def large(tools: int = 650) -> str:
    lines = ['grammar g version "1"']
    for i in range(tools):
        lines += [f"tool t{i}(k: a | b | c, q: 1 | 2) {{", f"  cost 0.{i + 1} price {i}", "}"]
    lines += [f"rule r{i} = t{i} t{i + 1}?" for i in range(30)]
    lines += ["plan = " + " | ".join(f"r{i}" for i in range(30))]
    return "\n".join([*lines, *(f"forbid t{i} t{i + 1}" for i in range(18)), ""])


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
    known = check_syntax(source, Report([source]), KnownBlocks())
    assert least(lambda: check_syntax(source, Report([source]), known)) < 0.1
    whole = least(lambda: parse(source, 0, Report([source])))
    assert least(lambda: check_syntax(source, Report([source]), known)) < whole / 2


class Pipe:
    """A client that times the bytes of an answer: what an editor makes of them is its own time."""

    def __init__(self) -> None:
        path = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tcc", "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=path,
        )  # fmt: skip
        self.came: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()
        self.version = self.number = 0

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while line := stream.readline():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
            elif line == b"\r\n":
                self.came.put((time.perf_counter(), stream.read(length)))

    def tell(self, method: str, **params: object) -> None:
        self._send({"method": method, "params": params})

    def ask(self, method: str, **params: object) -> tuple[float, bytes]:
        """The seconds until the whole answer is there, and the answer."""
        self.number += 1
        begun = time.perf_counter()
        self._send({"id": self.number, "method": method, "params": params})
        return self.until(begun, lambda data: json.loads(data).get("id") == self.number)

    def until(self, begun: float, wanted: Callable[[bytes], bool]) -> tuple[float, bytes]:
        while True:
            at, data = self.came.get(timeout=30)
            if wanted(data):
                return at - begun, data

    def typed(self, uri: str, line: int, character: int, text: str, gone: int = 0) -> None:
        self.version += 1
        ends = {"line": line, "character": character + gone}
        where = {"start": {"line": line, "character": character}, "end": ends}
        self.tell(
            "textDocument/didChange",
            textDocument={"uri": uri, "version": self.version},
            contentChanges=[{"range": where, "text": text}],
        )

    def _send(self, message: dict[str, object]) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        stream = self.process.stdin
        assert stream is not None
        stream.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        stream.flush()


@pytest.mark.campaign
def test_keystrokes_in_a_large_text(tmp_path: Path) -> None:
    text, pipe = large(), Pipe()
    last, uri = text.count("\n"), (tmp_path / "large.tcg").as_uri()
    assert last == 2000
    pipe.ask("initialize", processId=None, rootUri=None, capabilities={})
    pipe.tell("initialized")
    opened = {"uri": uri, "languageId": "tcg", "version": 0, "text": text}
    pipe.tell("textDocument/didOpen", textDocument=opened)
    pipe.until(0, lambda d: b"publishD" in d)  # the whole was read and checked once
    errors, completions = [], []
    for number in range(12):
        pipe.typed(uri, last, 0, "require ")
        here = {"line": last, "character": 8}
        took, data = pipe.ask("textDocument/completion", textDocument={"uri": uri}, position=here)
        completions.append(took)
        items = [item["label"] for item in json.loads(data)["result"]]
        assert items[:650] == [f"t{i}" for i in range(650)]
        begun = time.perf_counter()
        more = f"{number} before )"  # another error each time: the same one is told once
        pipe.typed(uri, last, 8, more)
        errors.append(pipe.until(begun, lambda d: b"publishD" in d and b"TCC111" in d)[0])
        pipe.typed(uri, last, 0, "", gone=8 + len(more))
        pipe.until(0, lambda d: b"publishD" in d and b'"TCC1' not in d)
    pipe.process.kill()
    pipe.process.wait()
    for name, took in (("completion", completions), ("syntax error", errors)):
        print(name, *(f"{1000 * seconds:.0f}" for seconds in sorted(took)), "ms")
    assert sorted(completions)[len(completions) // 2] < 0.05
    assert sorted(errors)[len(errors) // 2] < 0.1


# What ends, joins or hides statements, where it comes to stand between others.
PIECES = (
    *MORE, "monitor", "\nmonitor\n", "let", "given ", " pass", "/*", "*/", "//", '"/*"', "same",
    "each", "or", "where", "\nlimit ", "\nrule ", "\ntool or\n", "grammar", "plan = t1 let\n", "“",
    "\r", "\n\n", "# /*\n", "=", "\ngiven\n", "require t1 before each ",
)  # fmt: skip
POLICY = (Path(__file__).parents[2] / "grammars" / "shop_desk.tcg").read_text("utf-8")
SPLIT = POLICY + "monitor\nlimit depth <= 9\ntool or_(k: or | each)\n"


@pytest.mark.parametrize("first", [large(4), POLICY, SPLIT])
def test_errors_of_syntax_are_those_of_the_whole_reading(first: str) -> None:
    rng = random.Random(4)
    text, known = first, KnownBlocks()
    kept = 0
    for _ in range(100):
        before = text
        at = rng.randrange(len(text))
        if rng.random() < 0.5:  # a line's end, where parts begin
            at = max(0, text.rfind("\n", 0, at)) + rng.randrange(2)
        text = text[:at] + rng.choice(PIECES) + text[at + rng.choice((0, 0, 1, 3)) :]
        report, whole = (Report([source_of(text, "g.tcg")]) for _ in range(2))
        known = check_syntax(source_of(text, "g.tcg"), report, known)
        parse(source_of(text, "g.tcg"), 0, whole)
        assert report.diagnostics() == whole.diagnostics()
        kept += len(known.good) > 3
        if rng.random() < 0.8:
            text = before
        if rng.random() < 0.05:
            text = first
    assert kept > 20


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
