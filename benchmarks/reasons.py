"""What reasons cost after a history, and what the other questions to a gate do.

Reasons: sessions of the shipped grammars at random, with calls that failed between them until the
history has its length (a plan of these has 6 to 30 calls; what failed counts nothing and is gone
through all the same).  Every refusal is one that was not asked about before: after each a call is
made.  `first` is the first reason of a fresh artifact; `soon` the median
of the next 40, when most sets of statements are tried for the first time; `median` and `95 %` are
of the second 200 of 400.
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
from tcc_runtime.gate.reasons import keep_up

GRAMMARS = Path(__file__).parent.parent / "grammars"
HISTORIES = (10, 1000, 100_000)
COLUMNS = ("first", "soon", "median", "95 %")
_REFUSALS = 400  # for each length


def table() -> Iterator[str]:
    """Both tables."""
    cells = [f"{what} after {n}" for n in HISTORIES for what in COLUMNS]
    yield from head("reasons, us", *cells)
    for path in sorted(GRAMMARS.glob("*.tcg")):
        yield row(path.stem, *(cell for n in HISTORIES for cell in _reasons(path, n)))
    yield ""
    yield from head("a question, us", *(f"after {n}" for n in HISTORIES))
    for name, under, ask in (
        ("check", False, _check),
        ("check, a call under way", True, _check),
        ("remaining", False, lambda gate: gate.remaining),
        ("remaining, a call under way", True, lambda gate: gate.remaining),
    ):
        yield row(name, *(_question(n, under, ask) for n in HISTORIES))


def _reasons(path: Path, calls: int) -> Iterator[str]:
    rng, found, caught_up = random.Random(7), [], []
    gc.collect()
    gc.disable()
    artifact = tcc.compile_file(path)
    gate, fresh = _session(artifact, calls), True
    while len(found) < _REFUSALS:
        before = len(found)
        for tool, arguments in _asked(artifact, rng):
            decision = gate.check(tool, arguments)
            if decision.code == "R201" and len(found) < _REFUSALS:
                begin = time.process_time()
                decision.because  # noqa: B018
                (caught_up if fresh else found).append((time.process_time() - begin) * 1e6)
                fresh = False
                _fail(gate)
        if not _go_on(gate, rng):
            if before == len(found) == 0 and not caught_up:
                raise ValueError(f"{path}: nothing is refused because of the plan")
            gate, fresh = _session(artifact, calls), True
    gc.enable()
    used = sorted(found[_REFUSALS // 2 :])
    yield f"{caught_up[0]:.0f}"
    yield f"{median(found[: _REFUSALS // 10]):.0f}"
    yield f"{median(used):.0f}"
    yield f"{used[len(used) * 95 // 100]:.0f}"


def _session(artifact: Any, calls: int) -> Any:
    """A session with so many calls that failed, as if each had been made through the gate."""
    gate = tcc.Gate(artifact)
    session = gate._access.session
    _fail(gate)
    session.made *= calls
    keep_up(session)  # as a gate does every 128 calls
    return gate


def _fail(gate: Any) -> None:
    session = gate._access.session
    policy = session.policy
    session.begin(policy.next_offers(policy.machine.start)[0], ())
    session.settle("failed", None, False)


def _asked(artifact: Any, rng: random.Random) -> Iterator[tuple[str, dict[str, Any]]]:
    """Calls of every tool, with values for its open arguments."""
    for tool in artifact.core.tools:
        given: dict[str, Any] = {}
        for parameter in tool.parameters:
            texts = [text for text in parameter.values if text]
            if not parameter.observed:
                given[parameter.name] = _json(rng.choice(texts))
        for opened in tool.opened:
            if not opened.optional:
                given[opened.name] = _EXAMPLES.get(opened.name, "x")
        yield tool.name, given


_EXAMPLES = {
    "order_no": "PO-123456",
    "amount": 1,
    "owner": "octo-org",
    "repo": "website",
    "issue_number": 1,
}


def _json(text: str) -> Any:
    from tcc_certs.values.declared import json_of

    return json_of(text)


def _go_on(gate: Any, rng: random.Random) -> bool:
    session = gate._access.session
    offers = session.policy.next_offers(session.held)
    if not offers:
        return False
    offer = rng.choice(offers)
    session.begin(offer, ())
    session.settle("done", rng.choice(list(offer.calls)), False)
    return not session.unforeseen


def _question(calls: int, under: bool, ask: Callable[[Any], object]) -> str:
    text = GRAMMAR.replace("{0,1200}", "{0,10000}") + "limit sum(refund.amount) <= 900\n"
    gate = tcc.Gate(tcc.compile_text(text))
    for at in range(calls):
        if at % 100:
            _fail(gate)
        else:
            with gate.call("note", {"kind": "mail"}) as permit:
                permit.done()
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
