"""Sessions: the cost of the MAC of a record, and of reopening a session after many calls.

MAC: a call and its outcome with the key of the session (`tcc.session/1.1`, with a MAC in each
record), compared with the same gate without MACs (`tcc.session/1.0`).  Batches of calls take turns;
processor time, medians.
Reopening: a gate opens the ledger of a session and replays it; the validator reads the same ledger.
Each in a separate process, best of three; processor time.
The artifacts are for gates (`--for gate`), as race counts would be most of the bytes of deep ones.
For decisions after such histories see `check` and `remaining` in the table `reasons`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import tcc
from benchmarks.measure import head, row
from tcc_runtime.gate.session.records import Parts, Writer

CALLS = (1_000, 10_000, 100_000)
BATCH, BATCHES = 200, 41
GRAMMAR = """grammar desk version "1"

tool note(kind: call | mail)
tool refund(part: half | full, order: text ~ "ord-[0-9]{1,8}", amount: number 0 .. 500)

limit depth <= CALLS
limit count(refund) <= 1
"""
LARGE = {"part": "half", "order": "ord-17", "amount": 3}
_REOPEN = """
import json, sys, time
from pathlib import Path
import tcc
from tcc_certs.kernel import check
from tcc_certs.session.validation import validate
compiled, ledger = sys.argv[1:]
artifact = tcc.load(compiled)
begin = time.process_time()
gate = tcc.Gate(artifact, ledger=ledger, durable=False)
opened = time.process_time() - begin
gate.close()
key = bytes.fromhex(Path(ledger + ".key").read_text())
data, checked = Path(ledger).read_bytes(), check(Path(compiled).read_bytes())
begin = time.process_time()
found = validate(data, checked, key=key)
if found.claim_type != "ConformantPrefix":
    raise SystemExit(found.summary)
print(json.dumps([opened, time.process_time() - begin]))
"""


def table() -> Iterator[str]:
    """Yield both tables, in Markdown."""
    yield from _macs()
    yield ""
    yield from _reopened()


def _macs() -> Iterator[str]:
    yield from head("a call and its outcome, us", "with a MAC", "without", "ratio")
    for name, on_disk in (("in memory", False), ("with a ledger, not durable", True)):
        timed, plain = _side_by_side(on_disk=on_disk)
        yield row(name, f"{timed * 1e6:.1f}", f"{plain * 1e6:.1f}", f"{timed / plain:.3f}")


def _side_by_side(*, on_disk: bool) -> tuple[float, float]:
    """Return the seconds of a call and its outcome, with a MAC and without."""
    artifact = tcc.compile_text(GRAMMAR.replace("CALLS", str(BATCH * (BATCHES + 1))))
    with tempfile.TemporaryDirectory() as folder:
        gates = [
            tcc.Gate(artifact, ledger=Path(folder, str(at)) if on_disk else None, durable=False)
            for at in range(2)
        ]
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(BATCHES):
            for gate, taken, without in zip(gates, times, (False, True), strict=True):
                with ExitStack() as stack:
                    if without:
                        stack.enter_context(patch.object(Writer, "sealed", _unsealed))
                    begin = time.process_time()
                    _notes(gate, BATCH)
                    taken.append((time.process_time() - begin) / BATCH)
        for gate in gates:
            gate.close()
    return median(times[0]), median(times[1])


def _unsealed(_: Writer, parts: Parts, previous: bytes) -> bytes:
    """Return the bytes of a record without its MAC; `previous` is unused."""
    return b"".join(parts)


def _notes(gate: Any, calls: int) -> None:
    for _ in range(calls):
        with gate.call("note", {"kind": "mail"}) as permit:
            permit.done()


def _reopened() -> Iterator[str]:
    yield from head(
        "calls of the session", "ledger, MB", "reopen, ms", "us a call", "validate, us a call"
    )
    for calls in CALLS:
        with tempfile.TemporaryDirectory() as name:
            compiled, ledger = Path(name, "desk.tcca"), Path(name, "session.ledger")
            text = GRAMMAR.replace("CALLS", str(calls + 8))
            artifact = tcc.compile_text(text, purpose="gate", max_states=10**7)
            tcc.save(artifact, compiled)
            with tcc.Gate(artifact, ledger=ledger, durable=False) as gate:
                _notes(gate, calls - 1)
                with gate.call("refund", LARGE) as permit:
                    permit.done()
            command = [sys.executable, "-c", _REOPEN, str(compiled), str(ledger)]
            found = [
                json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
                for _ in range(3)
            ]
            opened, validated = (min(times) for times in zip(*found, strict=True))
            yield row(
                calls,
                f"{ledger.stat().st_size / 1e6:.1f}",
                f"{opened * 1e3:.1f}",
                f"{opened / calls * 1e6:.1f}",
                f"{validated / calls * 1e6:.1f}",
            )
