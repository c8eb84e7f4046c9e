"""A text of 2,000 lines: the editor is answered while it types, whatever is being looked for."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tcc_compiler.editing.completion import completion
from tcc_compiler.editing.project import read_project
from tcc_compiler.language.diagnostics import Report
from tcc_compiler.language.source import source_of
from tcc_compiler.syntax.parse import parse

TAILS = ["before t1 require ", "rule x = t3(", "accept t2(k=", "forbid t1(k = "]


def large(tools: int = 650) -> str:
    lines = ['grammar g version "1"']
    for i in range(tools):
        lines += [f"tool t{i}(k: a | b | c, q: 1 | 2) {{", f"  cost 0.{i + 1} price {i}", "}"]
    lines += [f"rule r{i} = t{i} t{i + 1}?" for i in range(30)]
    lines += ["plan = " + " | ".join(f"r{i}" for i in range(30))]
    return "\n".join([*lines, *(f"before t{i} require no t{i + 1}" for i in range(18)), ""])


def least(work: Callable[[], object]) -> float:
    """The processor time of this thread that it takes, at the least."""
    taken = []
    for _ in range(5):
        begun = time.thread_time()
        work()
        taken.append(time.thread_time() - begun)
    return min(taken)


def test_what_a_keystroke_takes() -> None:
    text = large() + "before t1 require "
    project = read_project(text, None, "g.tcg")
    assert project is not None
    assert least(lambda: completion(text, len(text), project)) < 0.05
    source = source_of(text, "g.tcg")
    assert least(lambda: parse(source, 0, Report([source]))) < 0.2


class Pipe:
    """A client that times the bytes of an answer: what an editor makes of them is its own time."""

    def __init__(self) -> None:
        path = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tcc", "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=path,
        )  # fmt: skip
        self.came: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        self.version = self.number = 0

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while line := stream.readline():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
            elif line == b"\r\n":
                self.came.put((time.perf_counter(), stream.read(length)))

    def close(self) -> None:
        """End the server, its thread and its streams."""
        self.process.kill()
        self.process.wait()
        self.reader.join()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()

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
        pipe.typed(uri, last, 0, "before ")
        here = {"line": last, "character": 7}
        took, data = pipe.ask("textDocument/completion", textDocument={"uri": uri}, position=here)
        completions.append(took)
        items = [item["label"] for item in json.loads(data)["result"]]
        assert items[:650] == [f"t{i}" for i in range(650)]
        begun = time.perf_counter()
        more = f"{number} before )"  # another error each time: the same one is told once
        pipe.typed(uri, last, 7, more)
        errors.append(pipe.until(begun, lambda d: b"publishD" in d and b"TCC101" in d)[0])
        pipe.typed(uri, last, 0, "", gone=7 + len(more))
        pipe.until(0, lambda d: b"publishD" in d and b'"TCC1' not in d)
    pipe.close()
    for name, took in (("completion", completions), ("syntax error", errors)):
        print(name, *(f"{1000 * seconds:.0f}" for seconds in sorted(took)), "ms")
    assert sorted(completions)[len(completions) // 2] < 0.05
    assert sorted(errors)[len(errors) // 2] < 0.1


@pytest.mark.parametrize("tail", TAILS)
def test_what_stands_far_before_says_nothing_of_what_may_stand_here(tail: str) -> None:
    text = large() + tail
    project = read_project(text, None, "g.tcg")
    assert project is not None
    short = text[text.index("rule r0") :]
    begun, offers = completion(text, len(text), project)
    assert begun == len(text) and offers
    assert offers == completion(short, len(short), project)[1]
