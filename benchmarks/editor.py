"""The language server over stdio, on a grammar of 2,000 lines: keystrokes, errors, completion.

A minimal client measures when the bytes of answers arrive; the time that an editor adds is not
included.  `completion` is the answer to a request that follows a keystroke.  `syntax error` and `no
error` are the diagnostics after a keystroke that creates or removes an error.  Once without pauses,
faster than anybody types.  Once after pauses of a quarter of a second or more, during or after the
check of the whole text.  Wall clock, after one round that is not counted.
"""

from __future__ import annotations

import json
import queue
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measure import head, row

ROUNDS = 40
TOOLS = 650
LINES = 2000
_WAIT = 60.0  # seconds


def table() -> Iterator[str]:
    """Yield the rows of the table, in Markdown."""
    yield from head(f"a text of {LINES} lines, ms", "median", "95 %", "worst")
    for paused in (False, True):
        for name, times in measured(paused).items():
            cells = (median(times), most(times), max(times))
            what = f"{name}, after a pause" if paused else name
            yield row(what, *(f"{cell * 1e3:.1f}" for cell in cells))


def most(times: Sequence[float]) -> float:
    """Return the 95th percentile."""
    return sorted(times)[(len(times) * 95 + 99) // 100 - 1]


def grammar(length: int = LINES) -> str:
    """Return a grammar of `length` lines.

    For most lengths below 1,241 it has more lines, because tools and rules alone need them.
    """
    lines = ['grammar g version "1"']
    for at in range(max(31, TOOLS * length // LINES)):
        lines += [f"tool t{at}(k: a | b | c, q: 1 | 2) {{", f"  cost 0.{at + 1} price {at}", "}"]
    lines += [f"rule r{at} = t{at} t{at + 1}?" for at in range(30)]
    lines += ["plan = " + " | ".join(f"r{at}" for at in range(30))]
    lines += [
        f"before t{at + 1} require no t{at} since any - t{at}" for at in range(length - len(lines))
    ]
    return "\n".join([*lines, ""])


class Client:
    """A client of `tcc lsp` that records the time at which each message arrives."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tcc", "lsp"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._came: queue.SimpleQueue[tuple[float, dict[str, Any]]] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()
        self._version = self._number = 0

    def tell(self, method: str, **params: object) -> None:
        """Send a notification."""
        self._send({"method": method, "params": params})

    def ask(self, method: str, **params: object) -> tuple[float, Any]:
        """Send a request; return the seconds until its answer, and the result."""
        self._number += 1
        begin = time.perf_counter()
        self._send({"id": self._number, "method": method, "params": params})
        taken, message = self.until(begin, lambda found: found.get("id") == self._number)
        return taken, message["result"]

    def until(
        self, begin: float, wanted: Callable[[dict[str, Any]], bool]
    ) -> tuple[float, dict[str, Any]]:
        """Return the seconds from `begin` until a wanted message arrived, and the message."""
        while True:
            at, message = self._came.get(timeout=_WAIT)
            if wanted(message):
                return at - begin, message

    def typed(self, uri: str, at: tuple[int, int], text: str, removed: int = 0) -> float:
        """Replace `removed` characters at a line and a character; return the time of sending."""
        self._version += 1
        line, character = at
        begin = time.perf_counter()
        self.tell(
            "textDocument/didChange",
            textDocument={"uri": uri, "version": self._version},
            contentChanges=[
                {
                    "range": {
                        "start": {"line": line, "character": character},
                        "end": {"line": line, "character": character + removed},
                    },
                    "text": text,
                }
            ],
        )
        return begin

    def stop(self) -> None:
        """Stop the server."""
        self.ask("shutdown")
        self.tell("exit")
        self.process.wait(_WAIT)

    def _read(self) -> None:
        stream, length = self.process.stdout, 0
        while stream is not None and (line := stream.readline()):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
            elif line == b"\r\n":
                data = stream.read(length)
                self._came.put((time.perf_counter(), json.loads(data)))

    def _send(self, message: dict[str, object]) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        if self.process.stdin is not None:
            self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(data), data))
            self.process.stdin.flush()


def _errors(message: dict[str, Any]) -> list[str] | None:
    """Return the syntax errors in a message, or None if it has no diagnostics."""
    if message.get("method") != "textDocument/publishDiagnostics":
        return None
    found = message["params"]["diagnostics"]
    return [item["message"] for item in found if str(item.get("code")).startswith("TCC1")]


def _is_told(text: str, message: dict[str, Any]) -> bool:
    """Return whether a message has a syntax error that contains a text."""
    return any(text in error for error in _errors(message) or ())


def measured(paused: bool) -> dict[str, list[float]]:
    """Return the seconds of each kind of answer, one for each round.

    Args:
        paused: whether to wait before the keystrokes that create and remove the error.
    """
    text, client, pauses = grammar(), Client(), random.Random(1)

    def wait() -> None:
        time.sleep(pauses.uniform(0.27, 1.3) if paused else 0)

    times: dict[str, list[float]] = {"completion": [], "syntax error": [], "no error": []}
    last = text.count("\n")
    with tempfile.TemporaryDirectory() as folder:
        uri = (Path(folder) / "large.tcg").as_uri()
        client.ask("initialize", processId=None, rootUri=None, capabilities={})
        client.tell("initialized")
        opened = {"uri": uri, "languageId": "tcg", "version": 0, "text": text}
        client.tell("textDocument/didOpen", textDocument=opened)
        # The first diagnostics show that the whole text was read once.
        client.until(0, lambda found: _errors(found) is not None)
        for number in range(ROUNDS + 1):
            wait()
            client.typed(uri, (last, 0), "before ")
            position = {"line": last, "character": 7}
            taken, offered = client.ask(
                "textDocument/completion", textDocument={"uri": uri}, position=position
            )
            if len(offered) < TOOLS:
                raise ValueError(f"{len(offered)} completions, not the tools")
            # A new error in each round, because an unchanged error is published only once.
            more = f"t0 require t1 {number}"
            begin = client.typed(uri, (last, 7), more)
            broken, _ = client.until(begin, partial(_is_told, f"'{number}'"))
            wait()
            begin = client.typed(uri, (last, 0), "", removed=7 + len(more))
            mended, _ = client.until(begin, lambda found: _errors(found) == [])
            if number:
                for name, seconds in zip(times, (taken, broken, mended), strict=True):
                    times[name].append(seconds)
        client.stop()
    return times
