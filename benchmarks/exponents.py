"""How the cost of an operation grows with the bytes that it reads: exponents, fitted.

Each operation is timed at four sizes over a decade and a half, in one process (processor time, the
least of several rounds); the exponent is the slope of the least squares line through the
logarithms.  Bytes are those of the artifact (compile, load, check, `--core`, lint, diff and why, of
a family of tool grammars), of the ledger (taking up, validate, report, and a decision behind a
session of so many calls), or of the text (the editor).  A cost that grows as the bytes do has the
exponent 1, one that does not grow has 0; an exponent above `MOST` is a fault.
"""

from __future__ import annotations

import gc
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import log
from pathlib import Path
from typing import Any, TypeAlias

import tcc
from benchmarks.editor import grammar
from benchmarks.family import Shape, shape
from benchmarks.measure import head, machine, row
from tcc.commands.report_command import of_ledger
from tcc.editor import QuestionTime, Texts, diagnose, document_of, grammar_of, syntax_of
from tcc.library.sessions import diff
from tcc.pages import page_bytes
from tcc_certs.corecheck.check import check_core
from tcc_certs.kernel import check
from tcc_certs.session import validate
from tcc_compiler.editing.completion import completion
from tcc_runtime.artifact.load import load

MOST = 1.05
ROUNDS = 3
SHAPES = (
    shape(12, 8, 6, 22, 58, 2),
    shape(12, 10, 8, 30, 80, 3),
    shape(12, 14, 12, 40, 112, 3),
    shape(12, 18, 16, 50, 160, 3),
)
CALLS = (1_000, 3_162, 10_000, 31_623)
LINES = (65, 206, 650, 2_055)
DESK = """grammar desk version "1"
tool note(kind: call | mail)
tool refund(part: half | full; order: text ~ "ord-[0-9]{1,8}", amount: number 0 .. 500)
plan = any*
limit depth <= CALLS
limit uses(refund) <= 1
"""
_ASKED = 2_000  # decisions that are timed at once

Operations: TypeAlias = "Mapping[str, Callable[[], Any]]"
# Seconds by operation, each beside the bytes of that size.
Series: TypeAlias = "dict[str, list[tuple[int, float]]]"


def table() -> Iterator[str]:
    """The rows, Markdown; ends with an error where an exponent is above `MOST`."""
    yield machine()
    yield ""
    yield from head("operation", "bytes", "seconds", "exponent")
    steep = []
    for name, points in measured().items():
        exponent = slope(points)
        first, last = points[0], points[-1]
        yield row(
            name, f"{first[0]:,} to {last[0]:,}", f"{first[1]:.2g} to {last[1]:.2g}",
            f"{exponent:.2f}",
        )  # fmt: skip
        if exponent > MOST:
            steep.append(name)
    if steep:
        sys.exit(f"grows faster than the bytes to the power {MOST}: {', '.join(steep)}")


def slope(points: Sequence[tuple[int, float]]) -> float:
    """The exponent of the power that fits best."""
    xs, ys = [log(size) for size, _ in points], [log(seconds) for _, seconds in points]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum(
        (a - x) ** 2 for a in xs
    )


def measured() -> Series:
    """Every operation at every size."""
    found: Series = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for one in SHAPES:
            _time(found, *of_grammar(one, folder))
        for calls in CALLS:
            _time(found, *of_session(calls, folder))
        for lines in LINES:
            _time(found, *of_text(lines, folder))
    return found


def _time(found: Series, size: int, operations: Operations) -> None:
    """The least time of each operation of one size."""
    for name, work in operations.items():
        best = float("inf")
        for _ in range(ROUNDS):
            gc.collect()
            begin = time.process_time()
            work()
            best = min(best, time.process_time() - begin)
        found.setdefault(name, []).append((size, best))


def of_grammar(one: Shape, folder: Path) -> tuple[int, Operations]:
    """The bytes of an artifact, and what is done with it and its grammar."""
    text, options = one.text(), {"max_states": 10**7}
    file = folder / "family.tcg"
    file.write_text(text, encoding="utf-8")
    artifact = tcc.compile_text(text, **options)
    narrower = tcc.compile_text(
        text.replace(f"limit depth <= {one.depth}", f"limit depth <= {one.depth - 1}"), **options
    )
    path = folder / "family.tcca"
    tcc.save(artifact, path)
    data = path.read_bytes()
    refused = [call for call in artifact.texts if call.startswith("t00")] * (one.depth + 1)
    return len(data), {
        "compile": lambda: tcc.compile_text(text, **options),
        "load": lambda: load(path),
        "check": lambda: check(data),
        "check --core": lambda: check_core(check(data)),
        "lint": lambda: tcc.lint(file, **options),
        "diff": lambda: diff(artifact, narrower),
        "why": lambda: tcc.why(artifact, refused),
    }


def of_session(calls: int, folder: Path) -> tuple[int, Operations]:
    """The bytes of a session's ledger, and what is done with it, and behind it."""
    source, ledger = folder / f"{calls}.tcca", folder / f"{calls}.ledger"
    text = DESK.replace("CALLS", str(calls + 8))
    artifact = tcc.compile_text(text, purpose="gate", max_states=10**7)
    tcc.save(artifact, source)
    with tcc.Gate(artifact, ledger=ledger, durable=False) as gate:
        for _ in range(calls):
            with gate.call("note", {"kind": "mail"}) as permit:
                permit.done()
    checked = check(source.read_bytes())
    key = bytes.fromhex(Path(f"{ledger}.key").read_text())
    data = ledger.read_bytes()

    def take_up() -> None:
        tcc.Gate(artifact, ledger=ledger, durable=False).close()

    def validated() -> None:
        verdict = validate(data, checked, key=key).claim_type
        if verdict != "ConformantPrefix":
            raise ValueError(verdict)

    whole = source.read_bytes()

    def report() -> None:
        page_bytes(of_ledger(ledger, whole, {"key": key}).page)

    held = tcc.Gate(artifact, key=key)
    for _ in range(calls):
        with held.call("note", {"kind": "mail"}) as permit:
            permit.done()

    def ask() -> None:
        for _ in range(_ASKED):
            held.check("note", {"kind": "mail"})

    def ask_under_way() -> None:
        with held.call("note", {"kind": "call"}) as permit:
            ask()
            permit.failed()

    return len(data), {
        "take up": take_up,
        "validate": validated,
        "report": report,
        "gate.check, idle": ask,
        "gate.check, a call under way": ask_under_way,
    }


def of_text(lines: int, folder: Path) -> tuple[int, Operations]:
    """The bytes of a grammar, and what an editor asks of it."""
    text = grammar(lines) + "require "
    document = document_of((folder / "large.tcg").as_uri(), text)
    texts = Texts(documents={document.uri: document})

    def complete() -> None:
        rooted = grammar_of(document, texts, QuestionTime(600.0))
        if rooted is None:
            raise ValueError("no grammar")
        completion(text, len(text), rooted.project, QuestionTime(600.0).check)

    return len(text), {
        "editor: names and completion": complete,
        "editor: syntax": lambda: syntax_of(document, texts, frozenset(), QuestionTime(600.0)),
        "editor: diagnostics": lambda: diagnose(document, texts, lambda: False),
    }
