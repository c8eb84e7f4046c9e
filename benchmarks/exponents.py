"""How the cost of an operation grows with its input size: fitted exponents.

Each operation is timed at four sizes, over a factor of about 30, in one process.  The time is the
least processor time of up to `ROUNDS` rounds, or of fewer if a round is long.  The exponent is the
slope of the least squares line through the logarithms.  Rows are printed as soon as their sizes are
measured, and progress goes to standard error.  `python -m benchmarks.exponents NAME..` measures
only those operations.

Sizes in bytes are of the artifact (compile, load, check, `--core`, lint, diff and why, on a family
of tool grammars), of the ledger (reopen, validate, report, and a decision after that many calls),
or of the text (the editor).  A linear cost has the exponent 1, a constant cost 0.  An exponent
above `MOST` is a fault.
"""

from __future__ import annotations

import gc
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from math import log
from pathlib import Path
from typing import Any, TypeAlias

import tcc
from benchmarks.editor import grammar
from benchmarks.family import Shape, shape
from benchmarks.measure import head, machine, row
from tcc.commands.report_command import of_ledger
from tcc.editor import QuestionTime, Texts, diagnose, document_of, grammar_of, syntax_of
from tcc.library.plan_questions import diff
from tcc.pages import page_bytes
from tcc_certs.corecheck.check import check_core
from tcc_certs.kernel import check
from tcc_compiler.editing.completion import completion
from tcc_runtime.artifact.load import load

MOST = 1.05
ROUNDS = 5
ENOUGH = 2.0  # seconds of an operation at one size, after which no further round begins
SHAPES = (
    shape(12, 8, 6, 22, 58, 2),
    shape(12, 10, 8, 30, 80, 3),
    shape(12, 14, 12, 40, 112, 3),
    shape(12, 18, 16, 50, 160, 3),
)
CALLS = (500, 1_581, 5_000, 15_811)
LINES = (65, 206, 650, 2_055)
DESK = """grammar desk version "1"

tool note(kind: call | mail)
tool refund(part: half | full, order: text ~ "ord-[0-9]{1,8}", amount: number 0 .. 500)

limit depth <= CALLS
limit count(refund) <= 1
"""
_ASKED = 2_000  # decisions timed together

OF_GRAMMARS = ("compile", "load", "check", "check --core", "lint", "diff", "why")
OF_SESSIONS = (
    "reopen", "validate", "report", "gate.check, idle", "gate.check, a call under way",
)  # fmt: skip
OF_TEXTS = ("editor: names and completion", "editor: syntax", "editor: diagnostics")
Operations: TypeAlias = "Mapping[str, Callable[[], Any]]"
Sized: TypeAlias = "tuple[int, Operations]"  # a size in bytes, and the operations on that input
# For each operation, the sizes in bytes and the seconds.
Series: TypeAlias = "dict[str, list[tuple[int, float]]]"


def table(names: Collection[str] = ()) -> Iterator[str]:
    """Yield the rows of the table, in Markdown.

    Args:
        names: the operations to measure; empty for all.

    Raises:
        SystemExit: an exponent is above `MOST`; raised after the last row.
    """
    yield machine()
    yield ""
    yield from head("operation", "bytes", "seconds", "exponent")
    steep = []
    for series in measured(names):
        for name, points in series.items():
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
    """Return the exponent of the power law that fits best."""
    xs, ys = [log(size) for size, _ in points], [log(seconds) for _, seconds in points]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum(
        (a - x) ** 2 for a in xs
    )


def measured(names: Collection[str] = ()) -> Iterator[Series]:
    """Yield the times of every operation at every size: for grammars, sessions, then texts."""
    kinds: Sequence[tuple[Sequence[str], Sequence[Callable[[Path], Sized]]]] = (
        (OF_GRAMMARS, [partial(of_grammar, one) for one in SHAPES]),
        (OF_SESSIONS, [partial(of_session, calls) for calls in CALLS]),
        (OF_TEXTS, [partial(of_text, lines) for lines in LINES]),
    )
    for known, sizes in kinds:
        wanted = [name for name in known if not names or name in names]
        found: Series = {}
        for made in sizes if wanted else ():
            with tempfile.TemporaryDirectory() as folder:
                size, operations = made(Path(folder))
                for name in wanted:
                    print(f"{name}: {size:,} bytes", file=sys.stderr, flush=True)
                    found.setdefault(name, []).append((size, _least(operations[name])))
        yield found


def _least(work: Callable[[], Any]) -> float:
    """Return the least processor time of an operation."""
    times: list[float] = []
    while len(times) < ROUNDS and sum(times) < ENOUGH:
        gc.collect()
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


def of_grammar(one: Shape, folder: Path) -> Sized:
    """Return the size of an artifact, and the operations on it and its grammar."""
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


def of_session(calls: int, folder: Path) -> Sized:
    """Return the size of a session's ledger, and the operations on it and after its calls."""
    source, ledger = folder / f"{calls}.tcca", folder / f"{calls}.ledger"
    text = DESK.replace("CALLS", str(calls + 8))
    artifact = tcc.compile_text(text, purpose="gate", max_states=10**7)
    tcc.save(artifact, source)
    with tcc.Gate(artifact, ledger=ledger, durable=False) as gate:
        for _ in range(calls):
            with gate.call("note", {"kind": "mail"}) as permit:
                permit.done()
    whole = source.read_bytes()
    key = bytes.fromhex(Path(f"{ledger}.key").read_text())
    data = ledger.read_bytes()

    def reopen() -> None:
        tcc.Gate(artifact, ledger=ledger, durable=False).close()

    def validated() -> None:
        verdict = tcc.validate(data, whole, key=key).claim_type
        if verdict != "ConformantPrefix":
            raise ValueError(verdict)

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
        "reopen": reopen,
        "validate": validated,
        "report": report,
        "gate.check, idle": ask,
        "gate.check, a call under way": ask_under_way,
    }


def of_text(lines: int, folder: Path) -> Sized:
    """Return the size of a grammar, and the operations of an editor on it."""
    text = grammar(lines) + "before "
    document = document_of((folder / "large.tcg").as_uri(), text)
    texts = Texts(documents={document.uri: document})

    def complete() -> None:
        rooted = grammar_of(document, texts, QuestionTime(600.0))
        if rooted is None:
            raise ValueError("no grammar")
        completion(text, len(text), rooted.project, QuestionTime(600.0).check)

    return len(text), {
        "editor: names and completion": complete,
        "editor: syntax": lambda: syntax_of(document, texts, QuestionTime(600.0)),
        "editor: diagnostics": lambda: diagnose(document, texts, lambda: False),
    }


if __name__ == "__main__":
    for line in table(sys.argv[1:]):
        print(line, flush=True)
