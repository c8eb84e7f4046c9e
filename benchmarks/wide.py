"""The coupled race compared with the rest race on states with few, many and very many calls.

One tool with N calls, costs in steps of 0.0001, plans of 16 calls, beta 8, tilt 12: every state has
N calls.  The tables of the states exist when the clock starts, except for `first run`. Process
time, the best of three.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from tcc_certs.kernel import check
from tcc_certs.replay import validate
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_text
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import MemorySink
from tcc_runtime.run import search
from tcc_runtime.settings.settings import Settings

COLUMNS = (
    "calls a state",
    "race",
    "top",
    "expansions",
    "first run, us an expansion",
    "us an expansion",
    "without ledger",
    "bytes an expansion",
    "records",
    "validate, us a record",
    "us an expansion",
)
CALLS = (12, 300, 3000)
GRAMMAR = (
    'grammar wide version "1"\ntool t(k: 1..{calls}) {{ cost 0.0001 * k }}\nplan = any{{{depth}}}\n'
)
RUNS = 3
_Value = TypeVar("_Value")


def table() -> Iterator[str]:
    """Yield the rows of the table, in Markdown."""
    yield f"| {' | '.join(COLUMNS)} |"
    yield "| --- " * len(COLUMNS) + "|"
    for calls in CALLS:
        compiled = compile_text(GRAMMAR.format(calls=calls, depth=16), Options(beta="8", tilt=12))
        if compiled.artifact is None:
            yield f"| {calls} | refused: {compiled.diagnostics[0].message} |"
            continue
        for race in ("coupled", "rest"):
            for top in (1, 16):
                if (calls, race, top) != (CALLS[-1], "coupled", 16):  # half a gigabyte of records
                    yield row(calls, compiled.artifact, race, top)


def row(calls: int, data: bytes, race: str, top: int) -> str:
    """Return the row of one run: cold, warm, without a ledger, and validated."""
    artifact = load(data)
    settings = Settings(
        seed=bytes(range(32)), top=top, race="rest" if race == "rest" else "coupled"
    )
    first, (expansions, ledger) = best(lambda: recorded(artifact, settings), 1)
    warm, _ = best(lambda: recorded(artifact, settings))
    bare, _ = best(lambda: search(artifact, settings))
    checked = check(data)
    validating, found = best(lambda: validate(ledger, checked))
    if found.verdict:
        return f"| {calls} | {race} | {top} | the ledger is not valid: {found.summary} |"
    records = ledger.count(b"\n")
    each = [f"{1e6 * seconds / expansions:.0f}" for seconds in (first, warm, bare)]
    return (
        f"| {calls} | {race} | {top} | {expansions} | {' | '.join(each)} | "
        f"{len(ledger) // expansions} | {records} | {1e6 * validating / records:.0f} | "
        f"{1e6 * validating / expansions:.0f} |"
    )


def recorded(artifact: Artifact, settings: Settings) -> tuple[int, bytes]:
    """Return the expansions of a run, and its ledger."""
    sink = MemorySink()
    run = search(artifact, settings, Recorder(sink, started_ms=0))
    return run.expansions, bytes(sink.data)


def best(action: Callable[[], _Value], runs: int = RUNS) -> tuple[float, _Value]:
    """Return the least process time of `action`, and its last result."""
    least = float("inf")
    for _ in range(runs):
        started = time.process_time()
        value = action()
        least = min(least, time.process_time() - started)
    return least, value
