"""Statements of version 1.2: a decision after so many remembered calls, for each kind of relation.

The interpreter of the kernel (`tcc_certs.session.monitors`) is asked about a call of `act` after
10, 1,000 and 100,000 calls of `read` that were done. Beside it stand a check written by hand for
the same sentence, which keeps a dictionary, and cedarpy where it is installed: its request has
the one earlier call that matters as context, so that it is given what the interpreter has to find.
Recorded: reading and remembering an answer with 1,000 elements, and all of it by a gate: what
its ledger has of the elements, the digest of the result, the record. Memory: bytes that a call adds
that is remembered, its fields included, and bytes an element of an answer that a gate remembers.
Processor time of this thread; the least of 7 rounds.
"""

from __future__ import annotations

import gc
import random
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.measure import head, row
from tcc_certs.core.policies import Alternative, Ban, Count, Fields, Need, Policy, Total
from tcc_certs.session.monitors.keyed import Event
from tcc_certs.session.monitors.policies import Memory, Policies
from tcc_certs.values.declared import TextType
from tcc_certs.values.fields import Field, ListType, RecordType
from tcc_certs.values.places import NONE, read as read_field

SIZES = (10, 1_000, 100_000)
READ, ACT = 0, 1
_READ, _ACT = ("calls", READ, ()), ("calls", ACT, ())
_SAME = (("order", ("own", "order")),)
_SEEN = ("seen", "amount")
_MINE = ("own", "amount")


def _need(**parts: Any) -> Need:
    return Need(order="before", alternatives=(Alternative(calls=_READ, **parts),), of=_ACT)


def _ban(unless: tuple[Alternative, ...] = (), **parts: Any) -> Ban:
    return Ban(alternatives=(Alternative(calls=_READ, **parts),), of=_ACT, unless=unless)


_OVER = ((">", _SEEN, ("n", "1000000")),)
_USER = (("user", ("own", "user")),)
_OTHER = ("!=", ("seen", "status"), ("own", "status"))
_EVERY = ("every", ("own", "list"), ("in", ("it",), ("seen", "items")))
_LONG = ("own", "long")  # 60 texts, 1 KiB of JSON
_SOME = ("some", ((_LONG, "x"),), (("=", ("as", "x"), ("own", "item")),))
_PAIRS = ("all", ((_LONG, "x"), (("seen", "long"), "y")), (("=", ("as", "x"), ("as", "y")),))
_GIFTS = ("<=", ("count", _LONG, ("~", ("it",), "gift_.*")), ("n", "3"))
_GUESTS = ("<=", ("count", _LONG, ("~", ("it",), "passenger-.*")), ("n", "60"))
_INNER = ("some", ((("seen", "long"), "y"),), (("=", ("as", "x"), ("as", "y")),))
_NESTED = ("all", ((("own", "list"), "x"),), (("!=", ("as", "x"), ("own", "item")), _INNER))
_ORDER = (("own", "order"),)
KINDS: tuple[tuple[str, Policy], ...] = (
    ("`require A before B same k`", _need(same=_SAME)),
    ("`require last A same k where =`",
     _need(same=_SAME, last=True, where=(("=", ("seen", "status"), ("s", "open")),))),
    ("`require A where seen.x >= y`", _need(where=((">=", _SEEN, _MINE),))),
    ("`require A where y in seen.list`",
     _need(where=(("in", ("own", "item"), ("seen", "items")),))),
    ("`require A same k where` two relations, one holds of none",
     _need(same=_USER, where=(*_OVER, _OTHER))),
    ("the same, where each holds of some call and both of none",
     _need(same=_USER, where=((">=", _SEEN, ("n", "0")), _OTHER))),
    ("`require A where every list in seen.list`",
     _need(same=_SAME, last=True, where=(_EVERY,))),
    ("the same, 60 elements in both",
     _need(same=_SAME, last=True, where=(("every", _LONG, ("in", ("it",), ("seen", "long"))),))),
    ("`require A where some list as x (x = y)`, 60", _need(same=_SAME, where=(_SOME,))),
    ("`require A where every list as x, seen.list as y (x = y)`, 60",
     _need(same=_SAME, where=(_PAIRS,))),
    ('`before A require count(list ~ "gift_.*") <= 3`, 60', _need(same=_SAME, where=(_GIFTS,))),
    ("the same, and all 60 match", _need(same=_SAME, where=(_GUESTS,))),
    ("`require A where every list as x (.., some seen.list as y (x = y))`, 3 by 60",
     _need(same=_SAME, where=(_NESTED,))),
    ("`require A before each B same k`",
     Need(order="each", alternatives=(Alternative(calls=_READ, same=_SAME),), of=_ACT)),
    ("`require A .. within 1 h`", _need(same=_SAME, within=3_600_000)),
    ("`forbid A before B same k`", _ban(same=_SAME)),
    ("`forbid A where seen.x > y before B`", _ban(where=_OVER)),
    ("`forbid A before B unless C same k`",
     _ban(same=_SAME, unless=(Alternative(calls=_READ, same=_SAME),))),
    ("`limit uses(A) per k within 1 h`",
     Count(of=("or", (_READ, _ACT)), value=10, per=_ORDER, within=3_600_000)),
    ("`limit sum(A.x) per k`", Total(tool=ACT, parameter="amount", value="1000", per=_ORDER)),
    ("`limit uses(A) per k, l`, of a call without k, which may be of any",
     Count(of=("or", (_READ, _ACT)), value=10**6, per=(("own", "left"), ("own", "user")))),
    ("`limit uses(A) per k, l within 1 h`, the same",
     Count(of=("or", (_READ, _ACT)), value=10**6, per=(("own", "left"), ("own", "user")),
           within=3_600_000)),
    ("`forbid A before B same k, l`, the same",
     _ban(same=(("left", ("own", "left")), ("order", ("own", "user"))))),
)  # fmt: skip


def _fields() -> Fields:
    names = ("order", "user", "status", "amount", "items", "item", "list", "long", "left")
    made = {name: Field(name=name, steps=(name,), optional=name == "left") for name in names}
    return Fields(tools=(made, made))


# One list for all calls, so that fetching 100,000 of them from memory is not what is measured.
_TEXTS = ("l", tuple([("s", f"passenger-{i:04}") for i in range(60)]))


def _event(at: int, tool: int, draw: random.Random) -> Event:
    """A call; of `read` the last of each hundred is of user u0, which `act` asks for."""
    number = at - 1
    return Event(
        at=at, tool=tool, stamp=number * 10, done=True, told=at,
        states={
            "order": ("s", f"#W{number}"),
            "user": ("s", f"u{number % 100}"),
            "status": ("s", "open" if number % 2 else "closed"),
            "amount": ("n", draw.randrange(500)),
            "items": ("l", tuple([("s", f"i{number}.{i}") for i in range(4)])),
            "item": ("s", f"i{number}.2"),
            "list": ("l", tuple([("s", f"i{number}.{i}") for i in range(3)])),
            "long": _TEXTS,
            "left": ("s", f"l{number}") if tool == READ else NONE,
        },
    )  # fmt: skip


def least(work: Callable[[], object], times: int) -> float:
    """Seconds of processor time of one, at the least."""
    found = []
    for _ in range(7):
        begin = time.thread_time()
        for _ in range(times):
            work()
        found.append((time.thread_time() - begin) / times)
    return min(found)


def _remembered(policies: list[Policy], size: int) -> Memory:
    draw = random.Random(1)
    memory = Memory(Policies(policies, _fields()))
    for at in range(1, size + 1):
        memory.add(_event(at, READ, draw))
    return memory


def _decided(policy: Policy, size: int) -> float:
    memory = _remembered([policy], size)
    draw = random.Random(2)
    asked = [_event(at, ACT, draw) for at in range(max(1, size - 99), size + 1)]
    turn = 0

    def one() -> None:
        nonlocal turn
        turn = (turn + 1) % len(asked)
        memory.refuses(asked[turn])

    return least(one, 300)


def table() -> Iterator[str]:
    """All of it."""
    yield from _decisions()
    yield ""
    yield from _beside()
    yield ""
    yield from _recorded()


def _decisions() -> Iterator[str]:
    yield from head("us a decision after", *(f"{size:,}" for size in SIZES))
    for name, policy in KINDS:
        taken = [_decided(policy, size) * 1e6 for size in SIZES]
        yield row(name, *(f"{one:.1f}" for one in taken))


def _beside() -> Iterator[str]:
    """The last reading of the same order says that it is open: three ways."""
    yield from head('`require last A same k where seen.status = "open"`', "us")
    policy = KINDS[1][1]
    yield row("the interpreter, after 100,000 calls", f"{_decided(policy, SIZES[-1]) * 1e6:.1f}")
    status = {f"#W{number}": "open" for number in range(SIZES[-1])}
    call = {"order": "#W99999"}
    by_hand = least(lambda: status.get(call["order"]) == "open", 10_000)
    yield row("by hand, a dictionary of 100,000", f"{by_hand * 1e6:.2f}")
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


def _recorded() -> Iterator[str]:
    record = RecordType(
        fields=(Field(name="id", steps=("id",), type=TextType(least=0, most=40, pattern=None)),)
    )
    field = Field(name="items", steps=("items",), type=ListType(of=record))
    flat = Field(name="items", steps=("items", "*", "id"), type=ListType(of=TextType()))
    answer = {"items": [{"id": f"i{i}"} for i in range(1_000)]}
    policy = KINDS[3][1]
    memory = Memory(Policies([policy], _fields()))
    event = _event(1, READ, random.Random(1))
    texts = ("l", tuple([("s", f"i{i}") for i in range(1_000)]))
    long = Event(at=1, tool=READ, states={**event.states, "items": texts}, done=True, told=1)
    yield from head("an answer of 1,000 elements", "us")
    for name, one in (
        ("read, a list of texts at a place", flat),
        ("read, a list of records", field),
    ):
        yield row(name, f"{least(lambda one=one: read_field(answer, one), 20) * 1e6:.0f}")  # type: ignore[misc]
    taken = least(lambda: memory.undo(memory.add(long)), 20)
    yield row("remembered, and taken back", f"{taken * 1e6:.0f}")
    for name, text in _GATES:
        yield row(name, f"{_by_gate(text, answer)[0] * 1e6:.0f}")
    yield ""
    yield from head("bytes a remembered call", "")
    for name, one in (KINDS[0], KINDS[2], KINDS[3]):
        gc.collect()
        tracemalloc.start()
        memory = _remembered([one], 10_000)
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        yield row(name, f"{size / 10_000:.0f}")
    yield row("an element of an answer, in a gate", f"{_by_gate(_GATES[0][1], answer)[1]:.0f}")


_PLACED = """tool read(order: text) gives (items: list of text at "/items/*/id")
require read same order where item in seen.items before act
"""
_RECORDS = """tool read(order: text) gives (items: list of (id: text))
require read same order where some seen.items as x (x.id = item) before act
"""
_GATES = (
    ("all of it by a gate, a list of texts at a place", _PLACED),
    ("all of it by a gate, a list of records", _RECORDS),
)


def _by_gate(text: str, answer: object) -> tuple[float, float]:
    """Seconds that the outcome of a call takes, and bytes an element of it takes."""
    import tcc

    head = """grammar g version "1"

tool act(order: text, item: text)

plan = any{0,999}
"""
    gate, taken, sizes = tcc.Gate(tcc.compile_text(head + text)), [], []
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
