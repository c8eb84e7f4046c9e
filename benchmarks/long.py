"""Memory of a session by its live keys and by its calls: in a gate, and in a validator.

A session makes one call a second.  Bytes per key: sessions of 600 keys compared with 100 keys.
Bytes per call: sessions of 8,000 calls compared with 4,000 calls, with 100 keys.  Before each
measurement the history forgets calls that it no longer needs.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from typing import Any

from benchmarks.measure import head, row
from tcc_certs.policy.core import Core
from tcc_certs.policy.history import DONE, Call
from tcc_certs.policy.kept import KeptPolicy
from tcc_compiler.names.compile import compile_source
from tcc_runtime.gate.decide import FastHistory, FastPolicy

TOOLS = """grammar g version "1"
tool find(order: text) gives (status: text)
tool refund(order: text, amount: number 0 .. 100)
limit depth <= 1000000000
"""
POLICIES = {
    "asks whether a call was made": "before refund require find(same order)",
    "asks for the last call": 'before refund require last(find(same order)).status = "open"',
    "counts in a window of 60 s": "before refund require count(find within 60 s) <= 9999",
    "sums in a window of 60 s": "limit sum(refund.amount within 60 s) per order <= 9999 in session",
    "limits each key": "limit count(refund) per order <= 100000 in session",
    "owes a call": "after find owe refund(same order)",
    "counts without a window": "before refund require count(find(same order)) <= 9999",
}


def table() -> Iterator[str]:
    """Yield the rows of the table, in Markdown."""
    cells = ("a statement that", "gate: bytes a key", "a call", "validator: bytes a key", "a call")
    yield from head(*cells)
    for name, statement in POLICIES.items():
        core = _core(TOOLS + statement)
        found: list[int] = []
        for made in (FastPolicy, KeptPolicy):
            few, many = (_bytes(core, made, 4_000, keys) for keys in (100, 600))
            long = _bytes(core, made, 8_000, 100)
            found += [round((many - few) / 500), round((long - few) / 4_000)]
        yield row(name, *found)


def _core(text: str) -> Core:
    compiled = compile_source(text)
    if compiled.core is None:
        raise ValueError(text)
    return compiled.core


def _bytes(core: Core, made: Any, calls: int, keys: int) -> int:
    """Return the memory of a session's history, in bytes."""
    policy = made(core)
    _session(core, policy, 2 * keys, keys)  # fills the tables of the policy
    tracemalloc.start()
    history = _session(core, policy, calls, keys)
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del history
    return size


def _session(core: Core, policy: Any, calls: int, keys: int) -> Any:
    history = FastHistory(core, {}) if isinstance(policy, FastPolicy) else policy.history(core, {})
    for number in range(calls):
        key, now = ("s", f"order {number // 2 % keys}"), 1000 * number
        tool, arguments = "find", {"order": key}
        if number % 2:
            tool, arguments = "refund", {"order": key, "amount": ("n", number % 90)}
        call = Call(tool, number, now, arguments, number=number)
        policy.refusals(history, call, now)
        history.add(call, policy.draws(history, call, now))
        policy.forget(history, now)
        history.record(call, DONE, {"status": ("s", "open")} if tool == "find" else {})
    policy.refusals(history, Call("refund", 0, 1000 * calls, {"order": key, "amount": ("n", 1)}),
                    1000 * calls)  # fmt: skip
    history.next_look = 0
    policy.forget(history, 1000 * calls)
    return history
