"""The cost of refusals with their reasons, in decisions, and of other questions to a gate.

Refusals: random sessions of the shipped grammars.  `check` is the median of decisions that allow a
call.  The time of a refusal includes its reasons.  It is given for refusals by statements, and for
calls with which no plan continues (R201).  `first` is the first refusal of a fresh artifact.
`median` and `95 %` leave out the first 100, and `in checks` is the median divided by `check`.
Questions: as in the table `gate`.  Processor time.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from statistics import median
from typing import Any

import tcc
from benchmarks.gate import ARGUMENTS, GRAMMAR
from benchmarks.measure import head, row
from tcc_certs.policy.core import Tool
from tcc_certs.policy.nodes import Limit
from tcc_certs.values.declared import json_of

GRAMMARS = Path(__file__).parent.parent / "grammars"
HISTORIES = (10, 1000, 100_000)
COLUMNS = ("first", "median", "95 %", "in checks")
_SESSIONS = 40
_FAILED = 10  # failed calls before the calls of a plan


def table() -> Iterator[str]:
    """Yield both tables, in Markdown."""
    kinds = [f"{what} {kind}" for kind in ("by statements", "dead ends") for what in COLUMNS]
    yield from head("refusals with reasons, us", "check", *kinds)
    for path in _without_accounts():
        yield row(path.stem, *_refusals(path))
    yield ""
    yield from head("a question, us", *(f"after {n}" for n in HISTORIES))
    for name, under, ask in (
        ("check", False, _check),
        ("check, a call under way", True, _check),
        ("remaining", False, lambda gate: gate.remaining),
        ("remaining, a call under way", True, lambda gate: gate.remaining),
    ):
        yield row(name, *(_question(n, under, ask) for n in HISTORIES))


def _without_accounts() -> Iterator[Path]:
    """Yield the shipped grammars whose sessions need neither attributes nor an account."""
    for path in sorted(GRAMMARS.glob("*.tcg")):
        core = tcc.compile_file(path, purpose="gate").core
        limits = [one for one in core.statements if isinstance(one, Limit)]
        if not core.given and not any(one.scope == "across" for one in limits):
            yield path


def _refusals(path: Path) -> Iterator[str]:
    rng = random.Random(7)
    checks: list[float] = []
    refused: dict[bool, list[float]] = {False: [], True: []}  # key: whether it is a dead end
    gc.collect()
    gc.disable()
    artifact = tcc.compile_file(path)
    for _ in range(_SESSIONS):
        gate = _session(artifact, _FAILED)
        while True:
            for tool, arguments in _asked(artifact, rng):
                begin = time.process_time()
                decision = gate.check(tool, arguments)
                decision.because  # noqa: B018
                took = (time.process_time() - begin) * 1e6
                if decision.allowed:
                    checks.append(took)
                elif decision.code in ("R201", "R202", "R203"):
                    refused[decision.code == "R201"].append(took)
            if not _call(gate, rng, failed=False):
                break
    gc.enable()
    check = median(checks)
    yield f"{check:.0f}"
    for times in refused.values():
        used = sorted(times[100:]) or sorted(times)
        if not used:
            yield from ("-",) * len(COLUMNS)
            continue
        yield from (f"{times[0]:.0f}", f"{median(used):.0f}", f"{used[len(used) * 95 // 100]:.0f}")
        yield f"{median(used) / check:.1f}"


def _session(artifact: Any, calls: int) -> Any:
    """Return a session after `calls` failed calls."""
    gate, rng = tcc.Gate(artifact), random.Random(1)
    for _ in range(calls):
        _call(gate, rng, failed=True)
    return gate


def _call(gate: Any, rng: random.Random, *, failed: bool) -> bool:
    """Make a random allowed call; return whether one was made."""
    allowed = list(gate.allowed())
    if not allowed:
        return False
    chosen = rng.choice(allowed)
    tool = gate.artifact.core.tool_of[chosen.tool]
    try:
        with gate.call(chosen.tool, {**chosen.arguments, **_open(tool)}) as permit:
            if failed:
                permit.failed()
            else:
                permit.done({one.name: json_of(rng.choice(one.values)) for one in tool.answers
                             if one.type is None})  # fmt: skip
    except tcc.Refused:
        return False
    return True


def _asked(artifact: Any, rng: random.Random) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a call of every tool, with values for its open arguments."""
    for tool in artifact.core.tools:
        listed = {
            one.name: json_of(rng.choice(one.values)) for one in tool.arguments if one.type is None
        }
        yield tool.name, listed | _open(tool)


def _open(tool: Tool) -> dict[str, Any]:
    """Return values for the open arguments that a tool requires."""
    return {
        one.name: _EXAMPLES.get(one.name, "x")
        for one in tool.arguments
        if one.type is not None and not one.optional
    }


_EXAMPLES = {
    "order_no": "PO-123456",
    "amount": 1,
    "owner": "octo-org",
    "repo": "website",
    "issue_number": 1,
}


def _question(calls: int, under: bool, ask: Callable[[Any], object]) -> str:
    text = GRAMMAR.replace("{0,1200}", "{0,10000}") + "limit sum(refund.amount) <= 900\n"
    gate = tcc.Gate(tcc.compile_text(text))
    for at in range(calls):
        with gate.call("note", {"kind": "mail"}) as permit:
            permit.failed() if at % 100 else permit.done()
    with gate.call("refund", ARGUMENTS) if under else nullcontext():
        ask(gate)
        took = []
        for _ in range(9):
            begin = time.process_time()
            for _ in range(40 if calls < 50_000 else 4):
                ask(gate)
            took.append((time.process_time() - begin) / (40 if calls < 50_000 else 4))
    return f"{min(took) * 1e6:.1f}"


def _check(gate: Any) -> object:
    return gate.check("refund", ARGUMENTS).allowed
