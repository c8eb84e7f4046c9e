"""Statements: the time of a decision after a history, for each kind of relation.

The gate's version of the definition (`tcc_runtime.gate.decide`) decides a call of `act` after 10,
1,000 and 10,000 finished calls of `read`.  It is compared with the definition itself after 1,000
calls.  For one statement it is also compared with a hand-written check by a dictionary, and with
cedarpy if it is installed.  The request of cedarpy contains the relevant earlier call, which the
gate has to find.
Recorded: reading and remembering an answer with 1,000 elements, alone and through a gate with its
record.
Memory: bytes for each remembered call with the answers that the statement uses, and bytes for each
element of an answer that a gate remembers.
Processor time of this thread; the least of 7 rounds.
"""

from __future__ import annotations

import gc
import random
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.cores import core_of
from benchmarks.measure import head, row
from tcc_certs.policy.core import Core
from tcc_certs.policy.course import answer_states, argument_states
from tcc_certs.policy.history import DONE, Call, DictHistory
from tcc_certs.policy.meaning import Policy
from tcc_certs.policy.uses import Uses
from tcc_runtime.gate.arguments.readers import answer_reader
from tcc_runtime.gate.decide import FastHistory, FastPolicy

SIZES = (10, 1_000, 10_000)
DEFINED = 1_000  # calls in the history of the definition
HOUR = 3_600_000
TOOLS = """grammar bench version "1"

tool read(order: text, user: text, left?: text)
  gives (status: text, amount: number 0 .. 1000000, items: list of text, long: list of text)
tool act(order: text, user: text, status: text, amount: number 0 .. 1000000, item: text,
         list: list of text, long: list of text, left?: text)
limit depth <= 4
"""
KINDS: tuple[tuple[str, str], ...] = (
    ("", "before act require read(same order)"),
    ("", 'before act require last(read(same order)).status = "open"'),
    ("", "before act require read(amount >= this.amount)"),
    ("", "before act require read(this.item in items)"),
    ("two relations, one holds of none",
     "before act require read(same user, amount >= 1000000, status != this.status)"),
    ("each holds of some call, both of none",
     "before act require read(same user, amount >= 0, status != this.status)"),
    ("3 in 4", "before act { let o = last(read(same order))  require every list(it in o.items) }"),
    ("60 in 60",
     "before act { let o = last(read(same order))  require every long(it in o.long) }"),
    ("of 60", "before act require read(same order) and long(it = this.item)"),
    ("60 pairs",
     ("before act { let o = last(read(same order))"
     "  require every pairs(long, o.long)(left = right) }")),
    ("of 60", 'before act require read(same order) and count(long(it ~ "gift_.*")) <= 3'),
    ("of 60, all match",
     'before act require read(same order) and count(long(it ~ "passenger-.*")) <= 60'),
    ("3 by 60",
     ("before act { let o = last(read(same order))  let has(x) = o.long(it = x)"
     "  require every list(it = this.item or has(it)) }")),
    ("", "before act require unused read(same order)"),
    ("", "before act require read(same order) within 1 h"),
    ("", "before act require no read(same order)"),
    ("", "before act require no read(amount > 999999)"),
    ("", 'before act require no read(same order) or read(same order, status = "open")'),
    ("", "limit count((read | act) within 1 h) per order <= 10 in session"),
    ("", "limit sum(act.amount) per order <= 1000000 in session"),
    ("no `left`", "limit count(read | act) per left, user <= 1000000 in session"),
    ("no `left`", "limit count((read | act) within 1 h) per left, user <= 1000000 in session"),
    ("no `left`", "before act require no read(same (left, user))"),
)  # fmt: skip
_LONG = [f"passenger-{i:04}" for i in range(60)]


def _core(statement: str) -> Core:
    return core_of(f"{TOOLS}{statement}\n")


def _read(number: int, draw: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments and the answer of a call of `read`; every hundredth is by user u0."""
    asked = {"order": f"#W{number}", "user": f"u{number % 100}", "left": f"l{number}"}
    answer = {
        "status": "open" if number % 2 else "closed",
        "amount": draw.randrange(500),
        "items": [f"i{number}.{i}" for i in range(4)],
        "long": _LONG,
    }
    return asked, answer


def _act(number: int, draw: random.Random) -> dict[str, Any]:
    """Return the arguments of a call of `act` about the call of `read` with this number."""
    return {
        "order": f"#W{number}", "user": "u0", "status": "open" if number % 2 else "closed",
        "amount": draw.randrange(500), "item": f"i{number}.2",
        "list": [f"i{number}.{i}" for i in range(3)], "long": _LONG,
    }  # fmt: skip


class Session:
    """A session with a history of `size` calls of `read`."""

    def __init__(self, core: Core, size: int, policy: Policy, history: Any) -> None:
        self.policy, self.history = policy, history
        self._tools = core.tool_of
        used = Uses(core, policy.rules).answers("read")  # a gate reads only these
        fields = [one for one in core.tool_of["read"].answers if one.name in used]
        readers = [(one.name, answer_reader(one)) for one in fields]
        draw = random.Random(1)
        for number in range(size):
            arguments, answer = _read(number, draw)
            call = self.call("read", arguments, number * 10)
            history.add(call, policy.draws(history, call, call.at_ms))
            history.record(call, DONE, {name: read(answer) for name, read in readers})

    def call(self, tool: str, arguments: dict[str, Any], at_ms: int) -> Call:
        """Return a call to decide."""
        states = argument_states(self._tools[tool], arguments)
        return Call(tool, len(self.history.calls), at_ms, states)


def _fast(core: Core, size: int) -> Session:
    return Session(core, size, FastPolicy(core), FastHistory(core, {}))


def _defined(core: Core, size: int) -> Session:
    return Session(core, size, Policy(core), DictHistory(core, {}))


def least(work: Callable[[], object], times: int) -> float:
    """Return the processor seconds of one run of `work`, the least of 7 rounds."""
    found = []
    for _ in range(7):
        begin = time.thread_time()
        for _ in range(times):
            work()
        found.append((time.thread_time() - begin) / times)
    return min(found)


def _decided(session: Session, size: int, times: int = 100) -> float:
    """Return the seconds of a decision about a call of `act`."""
    draw, turn = random.Random(2), 0
    asked = [
        session.call("act", _act(number, draw), size * 10)
        for number in range(max(0, size - 100), size)
    ]
    decide, history, now = session.policy.refusals, session.history, size * 10

    def one() -> None:
        nonlocal turn
        turn = (turn + 1) % len(asked)
        decide(history, asked[turn], now)

    return least(one, times)


def table() -> Iterator[str]:
    """Yield all tables, in Markdown."""
    yield from _decisions()
    yield ""
    yield from _beside()
    yield ""
    yield from _recorded()


def _decisions() -> Iterator[str]:
    yield from head(
        "us a decision after", *(f"{size:,}" for size in SIZES), f"definition, {DEFINED:,}"
    )
    for remark, statement in KINDS:
        core = _core(statement)
        taken = [_decided(_fast(core, size), size) for size in SIZES]
        taken.append(_decided(_defined(core, DEFINED), DEFINED, 3))
        name = f"`{statement}`{f', {remark}' * bool(remark)}".replace("|", "\\|")
        yield row(name, *(f"{one * 1e6:.1f}" for one in taken))


def _beside() -> Iterator[str]:
    """Yield the rows about three implementations of: the last `read` of the order said `open`."""
    _, statement = KINDS[1]
    yield from head(f"`{statement}`", "us")
    taken = _decided(_fast(_core(statement), SIZES[-1]), SIZES[-1])
    yield row(f"the gate's version, after {SIZES[-1]:,} calls", f"{taken * 1e6:.1f}")
    status = {f"#W{number}": "open" for number in range(SIZES[-1])}
    call = {"order": f"#W{SIZES[-1] - 1}"}
    by_hand = least(lambda: status.get(call["order"]) == "open", 10_000)
    yield row(f"by hand, a dictionary of {SIZES[-1]:,}", f"{by_hand * 1e6:.2f}")
    try:
        import cedarpy
    except ImportError:
        yield row("cedarpy", "not installed")
        return
    text = 'permit(principal, action, resource) when { context.seen.status == "open" };'
    request = {
        "principal": 'User::"u"', "action": 'Action::"act"', "resource": 'Order::"o"',
        "context": {"seen": {"status": "open"}},
    }  # fmt: skip
    taken = least(lambda: cedarpy.is_authorized(request, text, []), 100)
    yield row("cedarpy, the earlier call in its context", f"{taken * 1e6:.1f}")


_PLACED = """tool read(order: text) gives (items: list of text at "/items/*/id")
before act require read(same order, this.item in items)
"""
_RECORDS = """tool read(order: text) gives (items: list of (id: text))
before act require read(same order).items(id = this.item)
"""
_GATES = (("a list of texts at a place", _PLACED), ("a list of records", _RECORDS))
_ACT_ONLY = """grammar g version "1"

tool act(order: text, item: text)

limit depth <= 999
"""


def _recorded() -> Iterator[str]:
    answer = {"items": [{"id": f"i{i}"} for i in range(1_000)]}
    yield from head("an answer of 1,000 elements", "us")
    for name, text in _GATES:
        core = core_of(_ACT_ONLY + text)
        tool = core.tool_of["read"]
        taken = least(lambda tool=tool: answer_states(tool, answer), 20)  # type: ignore[misc]
        yield row(f"read, {name}", f"{taken * 1e6:.0f}")
        yield row(f"read and remembered, {name}", f"{_remembered(core, answer) * 1e6:.0f}")
    sizes = []
    for name, text in _GATES:
        taken, size = _by_gate(text, answer)
        sizes.append(size)
        yield row(f"all of it by a gate, {name}", f"{taken * 1e6:.0f}")
    yield ""
    yield from head("bytes a remembered call", "")
    for _, statement in (KINDS[0], KINDS[2], KINDS[3], KINDS[7]):
        core = _core(statement)
        gc.collect()
        tracemalloc.start()
        session = _fast(core, 10_000)
        _decided(session, 10_000, 1)
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        yield row(f"`{statement}`", f"{size / 10_000:.0f}")
    yield row("an element of an answer, in a gate", f"{sizes[0]:.0f}")


def _remembered(core: Core, answer: object) -> float:
    """Return the seconds to add an answer to the history and to the index of the statement."""
    policy, history = FastPolicy(core), FastHistory(core, {})
    read, act = core.tool_of["read"], core.tool_of["act"]
    asked = argument_states(act, {"order": "o", "item": "i"})

    def one() -> None:
        call = Call("read", len(history.calls), 0, argument_states(read, {"order": "o"}))
        history.add(call, {})
        history.record(call, DONE, answer_states(read, answer))
        policy.refusals(history, Call("act", len(history.calls), 0, asked), 0)

    return least(one, 5)


def _by_gate(text: str, answer: object) -> tuple[float, float]:
    """Return the seconds of recording a call's outcome, and the bytes for an element of it."""
    import tcc

    gate, taken, sizes = tcc.Gate(tcc.compile_text(_ACT_ONLY + text)), [], []
    for number in range(60):
        gc.collect()
        tracemalloc.start() if number >= 50 else None
        with gate.call("read", {"order": f"o{number}"}) as permit:
            begin = time.thread_time()
            permit.done(answer)
            taken.append(time.thread_time() - begin)
        assert not permit.unforeseen
        if number >= 50:
            gate.check("act", {"order": "o", "item": "i"})
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
            tracemalloc.stop()
    return min(taken[:50]), min(sizes) / 1000
