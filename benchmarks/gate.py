"""A decision after a history, compared with peers; sessions per second; memory of open sessions.

Decisions: is one refund allowed after so many calls?  tcc uses the whole history.  So does
Invariant's analyzer (`invariant-ai`), which reads the trace again each time (rule: no refund after
a refund).  LangChain's limit middleware (`langchain`) counts calls of one tool.  Cedar (`cedarpy`)
decides one request without a history.  Processor time, medians of 9 measurements of many decisions
each; a peer that is not installed is left out.
Sessions: ten calls each, in two processes at the same time; in memory, or with a ledger in the
system's temporary folder, durable or not.
Memory: the growth of the process for 10,000 open sessions, each after five calls.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import tcc
from benchmarks.measure import head, row

HISTORIES = (1, 10, 100, 1000)
GRAMMAR = """grammar desk version "1"

tool note(kind: call | mail)
tool refund(part: half | full, order: text ~ "ord-[0-9]{1,8}", amount: number 0 .. 500)

plan = (note | refund){0,1200}

limit count(refund) <= 1
"""
ARGUMENTS = {"part": "half", "order": "ord-17", "amount": 3}
LONG = GRAMMAR.replace("amount: number 0 .. 500", "amount: number 0 .. 500, why: text max 2000")
_CEDAR = 'permit(principal, action == Action::"refund", resource) when {context.amount <= 500};'
_INVARIANT = """
raise "two refunds" if:
    (a: ToolCall) -> (b: ToolCall)
    a is tool:refund
    b is tool:refund
"""


def table() -> Iterator[str]:
    """Yield all three tables, in Markdown."""
    yield from _decisions()
    yield ""
    yield from _sessions()
    yield ""
    yield from _memory()


def _decisions() -> Iterator[str]:
    yield from head("a decision, us", *(f"after {n}" for n in HISTORIES))
    makers = {
        "tcc": _tcc,
        "tcc, arguments of 1 KiB": _tcc_long,
        "cedarpy, without history": _cedar,
        "invariant-ai": _invariant,
        "LangChain's limit middleware": _langchain,
    }
    for name, make in makers.items():
        try:
            yield row(name, *(_cell(make(n)) for n in HISTORIES))
        except ImportError as error:
            yield row(name, *[f"not installed ({error.name})"] * len(HISTORIES))


def _cell(decide: Callable[[], object]) -> str:
    try:
        decide()
    except RuntimeError as error:
        return f"gives up: {str(error).partition(':')[0]}"
    times = 1
    while (took := _took(decide, times)) < 0.02 and times < 1 << 14:
        times *= 2
    return f"{median([took, *(_took(decide, times) for _ in range(8))]) / times * 1e6:.1f}"


def _took(decide: Callable[[], object], times: int) -> float:
    start = time.process_time()
    for _ in range(times):
        decide()
    return time.process_time() - start


def _played(text: str, calls: int) -> Any:
    gate = tcc.Gate(tcc.compile_text(text))
    for _ in range(calls):
        with gate.call("note", {"kind": "mail"}) as permit:
            permit.done()
    return gate


def _tcc(calls: int) -> Callable[[], object]:
    gate = _played(GRAMMAR, calls)
    return lambda: gate.check("refund", ARGUMENTS).allowed


def _tcc_long(calls: int) -> Callable[[], object]:
    gate, arguments = _played(LONG, calls), {**ARGUMENTS, "why": "it broke " * 110}
    return lambda: gate.check("refund", arguments).allowed


def _cedar(calls: int) -> Callable[[], object]:
    import cedarpy

    request = {
        "principal": 'User::"agent"', "action": 'Action::"refund"', "resource": 'Order::"17"',
        "context": {"amount": 3},
    }  # fmt: skip
    return lambda: cedarpy.is_authorized(request, _CEDAR, [])


def _invariant(calls: int) -> Callable[[], object]:
    from invariant.analyzer import LocalPolicy

    policy = LocalPolicy.from_string(_INVARIANT)
    trace = [_message(n, "note", {"kind": "mail"}) for n in range(calls)]
    trace.append(_message(calls, "refund", ARGUMENTS))
    return lambda: policy.analyze(trace)


def _message(number: int, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    call = {"name": tool, "arguments": arguments}
    calls = [{"id": str(number), "type": "function", "function": call}]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _langchain(calls: int) -> Callable[[], object]:
    from langchain.agents.middleware import ToolCallLimitMiddleware
    from langchain_core.messages import AIMessage

    limit = ToolCallLimitMiddleware(tool_name="refund", run_limit=1)
    message = AIMessage("", tool_calls=[{"name": "refund", "args": ARGUMENTS, "id": "1"}])
    state: Any = {"messages": [AIMessage("noted")] * calls + [message]}
    runtime: Any = None
    return lambda: limit.after_model(state, runtime)


WORKER = """
import json, sys, time
import tcc
from pathlib import Path
from benchmarks.gate import GRAMMAR
artifact = tcc.compile_text(GRAMMAR)
folder, durable, sessions = sys.argv[1], sys.argv[2] == "durable", int(sys.argv[3])
def play(number):
    ledger = None if folder == "-" else Path(folder) / f"{number}.ledger"
    gate = tcc.Gate(artifact, ledger=ledger, durable=durable)
    for _ in range(10):
        with gate.call("note", {"kind": "mail"}) as permit:
            permit.done()
    gate.finish()
    gate.close()
play("first")
print("ready", flush=True)
sys.stdin.readline()
start = time.perf_counter()
for number in range(sessions):
    play(number)
print(json.dumps(time.perf_counter() - start))
"""


def _sessions() -> Iterator[str]:
    yield from head("sessions of ten calls", "sessions a second, two processes", "us a call")
    for name, ledger, durable, sessions in (
        ("in memory", False, "no", 800),
        ("with a ledger, not durable", True, "no", 300),
        ("with a durable ledger", True, "durable", 20),
    ):
        took = _two_processes(ledger, durable, sessions)
        yield row(name, f"{2 * sessions / took:.0f}", f"{took / sessions / 10 * 1e6:.0f}")


def _two_processes(ledger: bool, durable: str, sessions: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        workers = []
        for number in range(2):
            own = Path(folder) / str(number)
            own.mkdir()
            command = [sys.executable, "-c", WORKER, str(own) if ledger else "-", durable]
            workers.append(
                subprocess.Popen(
                    [*command, str(sessions)],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ,
                )
            )  # fmt: skip
        pipes = [(worker.stdin, worker.stdout) for worker in workers]
        for _, out in pipes:
            assert out is not None and out.readline() == "ready\n"
        for into, _ in pipes:
            assert into is not None
            into.write("go\n")
            into.flush()
        return max(json.loads(worker.communicate()[0]) for worker in workers)


MEMORY = """
import tcc
from benchmarks.gate import GRAMMAR, resident
artifact = tcc.compile_text(GRAMMAR)
gates = []
for number in range(10_100):
    if number == 100:
        before = resident()
    gate = tcc.Gate(artifact)
    for _ in range(5):
        with gate.call("note", {"kind": "mail"}) as permit:
            permit.done()
    gates.append(gate)
print(resident() - before)
"""


def _memory() -> Iterator[str]:
    yield from head("10,000 sessions open in one process", "KB a session")
    command = [sys.executable, "-c", MEMORY]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    yield row("after five calls each", f"{int(found.stdout) / 10_000 / 1024:.1f}")


def resident() -> int:
    """Return the resident memory of this process in bytes (Linux)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024
    raise OSError("no VmRSS in /proc/self/status")
