"""Limits across sessions: held whoever begins what, when, and however it is broken off.

The oracle of the drawn schedules is a list of all calls of all sessions, looked through anew for
each call; it shares no code with accounts.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import random
import signal
import sqlite3
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import tcc
from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import encode
from tcc_certs.formats.ledger import FIRST_HEAD, LedgerReader, seal
from tcc_certs.verbs import validate as verbs
from tcc_runtime.account import file as accounts
from tcc_runtime.account.windows import Windows
from tcc_runtime.errors import ResumeError, SettingsError
from tcc_runtime.gate.journal import ledger_file
from tcc_runtime.gate.session_access import Home
from tests.campaigns.blocks import blocks
from tests.forking import launcher
from tests.gate.grammars import artifact
from tests.oracle_session.writer import mac_of

HOUR = 3_600_000
START = 1_700_000_000_000
HEAD = """grammar shop version "1"

given user: text, team?: text

tool refund(part: half | full, order: text, amount: number 0 .. 1000, note?: text)
tool look(n: 1 | 2) { parallel errors mean failed }
tool mail(to: text)

plan = (refund | look | mail){0,60}
"""
LIMITS = """limit count(refund within 24 h) per session.user <= 3 across sessions
limit sum(refund.amount) per session.user <= 100.5 across sessions
limit count(refund(amount > 10) within 2 h) per order <= 1 across sessions
limit count((look | refund) within 1 h) <= 4 across sessions
"""
TEXT = HEAD + LIMITS
MAIL = HEAD + "limit count(mail) per session.user <= 3 across sessions\n"


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


class Shop:
    """Sessions that draw on one account."""

    def __init__(self, folder: Path, clock: Callable[[], int], text: str = TEXT) -> None:
        self.folder, self.clock, self.text = folder, clock, text
        self.account = tcc.Account(folder / "a.account")

    def gate(self, name: str, user: str = "ann", **more: Any) -> tcc.Gate:
        options = {"account": self.account, "clock": self.clock, "durable": False, **more}
        return tcc.Gate(
            artifact(self.text),
            ledger=self.folder / f"{name}.ledger",
            given={"user": user},
            **options,
        )

    def validated(self, name: str, account: bool = True) -> tcc.SessionValidation:
        path = self.folder / f"{name}.ledger"
        key = bytes.fromhex(Path(f"{path}.key").read_text().strip())
        drawn_on = self.account if account else None
        return tcc.validate(path, artifact(self.text), account=drawn_on, key=key)


def make(gate: tcc.Gate, tool: str, given: dict[str, Any], outcome: str = "done") -> str:
    """What became of a call: its outcome, or the code it is refused with."""
    try:
        with gate.call(tool, given) as permit:
            if outcome == "answered":
                permit.failed(answered=True)
            elif outcome != "unknown":
                getattr(permit, outcome)()
    except tcc.Refused as refusal:
        return str(refusal.decision.code)
    return outcome


def mail(gate: tcc.Gate, outcome: str = "done") -> str:
    return make(gate, "mail", {"to": "x"}, outcome)


def test_what_is_left_counts_other_sessions(tmp_path: Path, clock: Clock) -> None:
    text = HEAD + "limit count(mail) <= 5 across sessions\n" + MAIL.removeprefix(HEAD)
    shop = Shop(tmp_path, clock, text)
    in_all, of_user = text.removeprefix(HEAD).splitlines()
    with shop.gate("a") as gate, shop.gate("b") as other, shop.gate("c", "bob") as third:
        assert gate.remaining == {in_all: 5, of_user: {"ann": 3}}
        assert mail(gate) == mail(other) == "done"
        for one in (gate, other):
            assert one.remaining == {in_all: 3, of_user: {"ann": 1}}
        assert third.remaining == {in_all: 3, of_user: {"bob": 3}}
        assert (mail(gate), mail(gate)) == ("done", "R202")
        (reason,) = gate.check("mail", {"to": "x"}).because
        assert (reason["text"], gate.remaining[of_user]) == (of_user, {"ann": 0})
        assert mail(third, "failed") == "failed" and third.remaining[in_all] == 2


FOR_VALUES: dict[str, tuple[str, list[Any], Any]] = {
    "time": (
        "time utc",
        ["2024-05-15T12:00:00Z", "2024-05-15T14:00:00+02:00", "2024-05-15T12:00:00.0001"],
        "2024-05-15T12:00:00.001Z",
    ),
    "times": ("list of time", [["2024-05-15T12:00:00Z"], ["2024-05-15T12:00:00.0001Z"]], []),
    "numbers": ("list of number", [[1], [1.0]], [1, 1]),
    "records": (
        "list of (a: text at \"/x/a\", t?: time)",
        [[{"x": {"a": "b"}, "t": "2024-05-15T12:00:00Z"}],
         [{"x": {"a": "b"}, "t": "2024-05-15T11:00:00-01:00"}]],
        [{"x": {"a": "b"}}],
    ),
    "json": ("json", [{"a": 1, "b": 2}, {"b": 2, "a": 1.0}], {"a": "1", "b": 2}),
}  # fmt: skip


@pytest.mark.parametrize("name", FOR_VALUES)
def test_a_value_that_is_written_otherwise_has_no_new_allowance(
    name: str, tmp_path: Path, clock: Clock
) -> None:
    kind, ways, another = FOR_VALUES[name]
    text = (
        f'grammar g version "1"\ngiven user: text\ntool pay(f: {kind})\nplan = pay{{0,9}}\n'
        "limit count(pay) per f, session.user <= 1 across sessions\n"
    )
    shop = Shop(tmp_path, clock, text)
    said = []
    for at, value in enumerate([*ways, another]):
        with shop.gate(f"s{at}") as gate:
            said.append(make(gate, "pay", {"f": value}))
            said += [make(gate, "pay", {"f": ways[-1]})]
            gate.finish()
        assert shop.validated(f"s{at}").claim_upheld
    assert said == ["done", *["R202"] * (2 * len(ways) - 1), "done", "R202"]


# What is counted.


def test_a_session_that_begins_anew_has_no_new_allowance(tmp_path: Path, clock: Clock) -> None:
    shop = Shop(tmp_path, clock, MAIL)
    said = []
    for name in "abcde":
        with shop.gate(name) as gate:
            assert gate.check("mail", {"to": "x"}).allowed is (len(said) < 3)
            said.append(mail(gate))
            gate.finish()
    assert said == ["done"] * 3 + ["R202"] * 2
    with shop.gate("f", "bob") as gate:
        assert mail(gate) == "done"
    for name in "abcde":
        found = shop.validated(name)
        assert found.claim_upheld and not any("--account" in one for one in found.asserted)
    found = shop.validated("a", account=False)
    assert f"account {shop.account.id} shows it (--account)" in " ".join(found.asserted)


def test_the_refusal_names_the_limit(tmp_path: Path, clock: Clock) -> None:
    shop = Shop(tmp_path, clock, MAIL)
    for name in "abc":
        with shop.gate(name) as gate:
            mail(gate)
    with (
        shop.gate("d") as gate,
        pytest.raises(tcc.Refused) as refused,
        gate.call("mail", {"to": "x"}),
    ):
        raise AssertionError
    text = "limit count(mail) per session.user <= 3 across sessions"
    assert [dict(one) for one in refused.value.decision.because] == [
        {"kind": "limit", "text": text, "because": None}
    ]
    (record,) = [
        json.loads(line)
        for line in (tmp_path / "d.ledger").read_text().splitlines()
        if '"refusal"' in line
    ]
    assert (record["code"], record["tool"], record["statement"]) == ("R202", "mail", 0)


def test_failed_is_given_back_and_nothing_else(tmp_path: Path, clock: Clock) -> None:
    shop = Shop(tmp_path, clock, MAIL)
    with shop.gate("a") as gate:
        assert [mail(gate, "failed") for _ in range(5)] == ["failed"] * 5
        assert [mail(gate, one) for one in ("done", "unknown", "unknown")] == [
            "done", "unknown", "unknown",
        ]  # fmt: skip
    with shop.gate("b") as other:
        assert mail(other) == "R202"
        with shop.gate("a") as gate:
            gate.resolve(7, "done")
        assert mail(other) == "R202"
        with shop.gate("a") as gate:
            gate.resolve(8, "failed")
        assert mail(other) == "done"
        assert mail(other) == "R202"
    assert Windows(shop.account).numbers() == {"held": 3, "returned": 6}
    for name in "ab":
        assert shop.validated(name).word == "INCOMPLETE"


def test_an_error_that_was_read_counts_on(tmp_path: Path, clock: Clock) -> None:
    shop = Shop(tmp_path, clock, HEAD + "limit count(look) <= 2 across sessions\n")
    with shop.gate("a") as gate:
        assert make(gate, "look", {"n": 1}, "answered") == "answered"
        assert make(gate, "look", {"n": 1}, "failed") == "failed"
    with shop.gate("b") as gate:
        assert make(gate, "look", {"n": 1}) == "done"
        assert make(gate, "look", {"n": 1}) == "R202"


def test_both_ends_of_a_window_count_and_a_clock_that_goes_back_is_not_followed(
    tmp_path: Path, clock: Clock
) -> None:
    shop = Shop(tmp_path, clock, HEAD + "limit count(mail within 1 h) <= 1 across sessions\n")
    with shop.gate("a") as gate:
        assert mail(gate) == "done"
    for step, expected in ((HOUR, "R202"), (1, "done"), (-10 * HOUR, "R202"), (10 * HOUR, "R202")):
        clock.now += step
        with shop.gate(f"s{clock.now}{step}") as gate:
            assert mail(gate) == expected, step
    clock.now += HOUR + 1
    with shop.gate("z") as gate:
        assert mail(gate) == "done"


def test_a_grammar_of_another_bound_or_window_goes_on_with_the_count(
    tmp_path: Path, clock: Clock
) -> None:
    limit = "limit count(mail{}) per session.user <= {} across sessions\n"
    first = Shop(tmp_path, clock, HEAD + limit.format("", "2"))
    with first.gate("a") as gate:
        assert [mail(gate) for _ in range(3)] == ["done", "done", "R202"]
    # Other tools before it: their numbers are other ones.
    more = HEAD.replace("tool look", "tool also(n: 1)\ntool look")
    for at, (window, bound, expected) in enumerate(
        (("", "2", "R202"), ("", "1 + 2", "done"), (" within 24 h", "3", "R202"))
    ):
        other = Shop(tmp_path, clock, more + limit.format(window, bound))
        with other.gate(f"b{at}") as gate:
            assert mail(gate) == expected, bound
    look = limit.format("", "1").replace("mail", "look")
    with Shop(tmp_path, clock, HEAD + look).gate("c") as gate:
        assert make(gate, "look", {"n": 1}) == "done"


GIVEN = {"part": "half", "order": "o", "amount": 1}


@pytest.mark.parametrize("key", ["note", "session.team"])
def test_an_absent_key_is_a_key_of_its_own(key: str, tmp_path: Path, clock: Clock) -> None:
    shop = Shop(tmp_path, clock, f"{HEAD}limit count(refund) per {key} <= 1 across sessions\n")
    for name, expected in (("a", "done"), ("b", "R202")):
        with shop.gate(name) as gate:
            assert make(gate, "refund", GIVEN) == expected
    with shop.gate("c") as gate:
        found = make(gate, "refund", {**GIVEN, "note": "n"})
        assert found == ("done" if key == "note" else "R202")


def test_a_key_that_is_not_known_counts_for_every_key(tmp_path: Path, clock: Clock) -> None:
    text = (
        'grammar g version "1"\ngiven user: text\ntool pay(n?: number 0 .. 9)\n'
        "limit count(pay) per n * 2 <= 2 across sessions\nlimit depth <= 9\n"
    )
    shop = Shop(tmp_path, clock, text)
    steps: list[tuple[dict[str, Any], str]] = [
        ({"n": 1}, "done"), ({}, "done"), ({"n": 1}, "R202"), ({}, "R202"), ({"n": 2}, "done"),
        ({"n": 2}, "R202"), ({}, "R202"),
    ]  # fmt: skip
    for at, (given, expected) in enumerate(steps):
        with shop.gate(f"s{at}") as gate:
            assert gate.check("pay", given).allowed is (expected == "done")
            assert make(gate, "pay", given) == expected, at
            gate.finish()
        assert shop.validated(f"s{at}").claim_upheld
    (across,) = [one["across"] for one in records_of(tmp_path / "s1.ledger") if "across" in one]
    assert across["draws"] == [{"amount": "1", "bound": "2", "left": "0", "limit": 0}]


def test_a_bound_may_depend_on_the_call(tmp_path: Path, clock: Clock) -> None:
    limit = "limit sum(refund.amount) per order <= max(amount, 10) across sessions\n"
    shop = Shop(tmp_path, clock, HEAD + limit)
    for at, (amount, expected) in enumerate(((6, "done"), (5, "R202"), (4, "done"), (20, "R202"))):
        with shop.gate(f"s{at}") as gate:
            assert make(gate, "refund", {**GIVEN, "amount": amount}) == expected
            gate.finish()
        assert shop.validated(f"s{at}").claim_upheld
    (across,) = [one["across"] for one in records_of(tmp_path / "s2.ledger") if "across" in one]
    assert (across["draws"][0]["bound"], across["draws"][0]["left"]) == ("10", "0")


@pytest.mark.parametrize("per", ["answer", "class", "session.learned"])
def test_whom_it_counts_for_is_an_argument_or_is_given(per: str) -> None:
    text = """grammar g version "1"

given user: text
given learned from ask.answer

tool ask(amount: number) gives (class: a | b, answer: text)

plan = ask?
"""
    with pytest.raises(tcc.CompileError) as refusal:
        tcc.compile_text(f"{text}limit count(ask) per {per} <= 1 across sessions")
    assert [one.code for one in refusal.value.diagnostics] == ["TCC225"]
    tcc.compile_text(f"{text}limit count(ask) per amount, session.user <= 1 across sessions")


@dataclass
class Event:
    user: str
    tool: str
    given: dict[str, Any]
    at: int
    seq: tuple[str, int]
    outcome: str = "unknown"

    def counts(self) -> bool:
        return self.outcome != "failed"


def has_room(events: list[Event], new: Event) -> bool:
    """The four limits of TEXT, by what they say."""

    def total(of: Callable[[Event], Fraction], within: int | None) -> Fraction:
        old = [e for e in events if e.counts() and (within is None or e.at >= new.at - within)]
        return sum((of(one) for one in (*old, new)), Fraction())

    def refund(event: Event) -> bool:
        return event.tool == "refund"

    mine = [
        (3, 24 * HOUR, lambda e: Fraction(refund(e) and e.user == new.user)),
        (
            Fraction("100.5"), None,
            lambda e: Fraction(e.given["amount"]) if refund(e) and e.user == new.user else 0,
        ),
        (
            1, 2 * HOUR,
            lambda e: (
                refund(e) and e.given["amount"] > 10 and e.given["order"] == new.given["order"]
            ),
        ),
    ] if refund(new) else []  # fmt: skip
    for most, within, of in mine:
        if not of(new) and most == 1:
            continue
        if total(lambda e, of=of: Fraction(of(e)), within) > most:
            return False

    def fourth(event: Event) -> bool:
        return event.tool in ("look", "refund")

    return not fourth(new) or total(lambda e: Fraction(fourth(e)), HOUR) <= 4


@pytest.mark.parametrize("seed", blocks(6, 12))
def test_drawn_sessions_are_held_as_the_list_of_all_calls_says(
    seed: int, tmp_path: Path, clock: Clock
) -> None:
    rng = random.Random(seed)
    shop = Shop(tmp_path, clock)
    events: list[Event] = []
    counts: Counter[str] = Counter()
    latest = most_ms = 0
    gates: list[tuple[str, str, tcc.Gate]] = []
    for step in range(70):
        step_ms = rng.choice((0, 1, HOUR // 4, HOUR // 2, HOUR, 3 * HOUR, -2 * HOUR, 10 * HOUR))
        clock.now = max(clock.now + step_ms, most_ms - 60_000)  # else R210
        most_ms = max(most_ms, clock.now)
        if len(gates) < 3 or rng.random() < 0.1:
            user, name = rng.choice(("ann", "bob")), f"s{step}"
            gates.append((name, user, shop.gate(name, user)))
        if len(gates) > 4:
            gates.pop(0)[2].close()
        name, user, gate = rng.choice(gates)
        unknown = [e for e in events if e.outcome == "unknown" and e.seq[0] == name]
        if unknown and rng.random() < 0.4:
            event = rng.choice(unknown)
            event.outcome = rng.choice(("done", "failed"))
            gate.resolve(event.seq[1], event.outcome)
            continue
        tool = rng.choice(("refund", "refund", "look"))
        amount = rng.choice((0, 1, 10, 10.5, 40, 0.25))
        order = rng.choice("op")
        given = (
            {"n": 1}
            if tool == "look"
            else {"part": rng.choice(("half", "full")), "order": order, "amount": amount}
        )
        latest = max(latest, clock.now)
        event = Event(user, tool, given, latest, (name, len(gate.history) + 1))
        outcome = rng.choice(("done", "done", "failed", "unknown"))
        room = has_room(events, event)
        assert gate.check(tool, given).allowed is room
        found = make(gate, tool, given, outcome)
        assert found == (outcome if room else "R202"), (step, event)
        counts[found] += 1
        if room:
            event.outcome = outcome
            events.append(event)
    assert min(counts["R202"], counts["failed"], counts["unknown"], counts["done"]) > 0, counts
    held = [e for e in events if e.counts()]
    assert Windows(shop.account).numbers()["held"] >= len(held)
    for path in sorted(tmp_path.glob("*.ledger")):
        found = shop.validated(path.stem)
        assert found.word == "INCOMPLETE" and found.claim_type == "ConformantPrefix", found


def test_who_calls_nothing_counts_nothing(tmp_path: Path, clock: Clock) -> None:
    """A replay, a proof's session, a check of `tcc serve`: each session is held for itself."""
    from tcc.traces import Trace, TraceCall
    from tcc.traces.replaying import replay

    calls = [TraceCall(tool="mail", arguments={"to": "x"}, outcome="done")] * 4
    traces = [Trace(name=name, given={"user": "ann"}, calls=calls) for name in "ab"]
    found = replay(artifact(MAIL), traces)
    assert (found.sessions, found.refused) == (2, 2)
    with tcc.Gate(artifact(MAIL), given={"user": "ann"}, home=Home(recorded=False)) as gate:
        assert [mail(gate) for _ in range(4)] == ["done"] * 3 + ["R202"]
    assert not list(tmp_path.iterdir())


# At once.


def test_tasks_at_once_are_counted_once_each(tmp_path: Path, clock: Clock) -> None:
    shop = Shop(tmp_path, clock, MAIL)

    async def run() -> list[str]:
        gates = [shop.gate(f"g{number}", durable=True) for number in range(3)]

        async def one(gate: tcc.Gate, number: int) -> str:
            try:
                async with gate.call("mail", {"to": str(number)}) as permit:
                    await asyncio.sleep(0)
                    (permit.failed if number == 0 else permit.done)()
            except tcc.Refused as refusal:
                return str(refusal.decision.code)
            return "made"

        said = await asyncio.gather(*[one(gate, at) for at in range(4) for gate in gates])
        for gate in gates:
            gate.close()
        return list(said)

    said = Counter(asyncio.run(run()))
    assert said["R202"] + said["made"] == 12
    numbers = Windows(shop.account).numbers()
    assert numbers["held"] == 3 and numbers["returned"] == said["made"] - 3 > 0
    for number in range(3):
        assert shop.validated(f"g{number}").word == "INCOMPLETE"


def test_a_call_that_is_cancelled_while_it_is_counted_is_not_made_and_counts_not(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(tmp_path, clock, MAIL)
    count, entered, go_on = Windows.count, threading.Event(), threading.Event()

    def slow(*given: Any) -> Any:
        entered.set()
        assert go_on.wait(10)
        return count(*given)

    monkeypatch.setattr(Windows, "count", slow)

    async def run() -> None:
        with shop.gate("a") as gate:
            entry = asyncio.create_task(gate.call("mail", {"to": "x"}).__aenter__())
            await asyncio.to_thread(entered.wait, 10)
            entry.cancel()
            with pytest.raises(asyncio.CancelledError):
                await entry
            go_on.set()
            for _ in range(500):
                await asyncio.sleep(0.01)
                if Windows(shop.account).numbers().get("returned"):
                    break
            assert not gate.history
            assert mail(gate) == "done"

    asyncio.run(run())
    assert Windows(shop.account).numbers() == {"held": 1, "returned": 1}


def test_who_waits_for_room_that_a_call_under_way_may_give_back_has_it(
    tmp_path: Path, clock: Clock
) -> None:
    text = (HEAD + "limit count(look) <= 1 across sessions\n").replace("{0,60}", "{0,60}")
    shop = Shop(tmp_path, clock, text)
    with shop.gate("a") as gate:
        first = gate.call("look", {"n": 1})
        first.__enter__()
        said: list[str] = []
        waits = threading.Thread(target=lambda: said.append(make(gate, "look", {"n": 2})))
        waits.start()
        waits.join(0.2)
        assert not said
        first.failed()
        first.__exit__(None, None, None)
        waits.join(10)
        assert said == ["done"]


WORKER = """
import sys, tcc
from pathlib import Path
folder, name = Path(sys.argv[1]), sys.argv[2]
gate = tcc.Gate(folder / "a.tcca", ledger=folder / f"{name}.ledger", given={"user": "ann"},
                account=tcc.Account(folder / "a.account", must_exist=True), durable=False)
sys.stdin.readline()
made = 0
for _ in range(3):
    try:
        with gate.call("mail", {"to": "x"}) as permit:
            permit.done()
            made += 1
    except tcc.Refused:
        pass
print(made)
"""


def test_eight_processes_that_begin_at_once_make_no_call_more(tmp_path: Path, clock: Clock) -> None:
    shop = Shop(tmp_path, clock, MAIL.replace("<= 3", "<= 7"))
    tcc.save(artifact(shop.text), tmp_path / "a.tcca")
    command = launcher("tcc", "-c", WORKER, str(tmp_path))
    ran = [
        subprocess.Popen(
            [*command, f"p{number}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for number in range(8)
    ]
    said = [one.communicate("go\n", timeout=120)[0] for one in ran]
    assert [one.returncode for one in ran] == [0] * 8
    assert sum(map(int, said)) == 7
    assert Windows(shop.account).numbers() == {"held": 7, "returned": 0}
    for number in range(8):
        assert shop.validated(f"p{number}").word == "INCOMPLETE"


# Kills: at each transaction of the account, and at each write of the ledger.


def dying(number: int, place: str) -> None:
    """From here on this process dies at that moment."""
    moments, transaction = [0], accounts.transaction

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    class Dying:
        def __init__(self, *given: Any, reading: bool = False) -> None:
            moments[0] += not reading
            self.due = moments[0] == number and not reading
            if self.due and place == "before":
                die()
            self.inner = transaction(*given, reading=reading)

        def __enter__(self) -> Any:
            return self.inner.__enter__()

        def __exit__(self, *error: Any) -> Any:
            if self.due and place == "uncommitted":
                die()
            found = self.inner.__exit__(*error)
            if self.due:
                die()
            return found

    append = ledger_file.InFile.append

    def appends(self: ledger_file.InFile, render: Callable[[bytes], bytes]) -> None:
        body = render(self.head)
        moments[0] += 1
        due = moments[0] == number
        if due and place == "before":
            die()
        if due and place == "uncommitted":
            os.write(self._handle, body[: len(body) // 2])
            die()
        append(self, lambda _: body)
        if due:
            die()

    accounts.transaction = Dying  # type: ignore[assignment, misc]
    ledger_file.InFile.append = appends  # type: ignore[method-assign]


def works(shop: Shop) -> None:
    """Calls of one session, each noted as soon as it is let through."""
    with shop.gate("a", account=tcc.Account(shop.folder / "a.account")) as gate:
        for outcome in ("done", "failed", "unknown", "done", "failed"):
            try:
                with gate.call("mail", {"to": "x"}) as permit:
                    with (shop.folder / "made").open("a") as file:
                        file.write(f"{permit.seq} {outcome}\n")
                    if outcome != "unknown":
                        getattr(permit, outcome)()
            except tcc.Refused:
                pass


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("place", ["before", "uncommitted", "after"])
def test_a_process_is_killed_at_each_write_and_transaction(
    place: str, tmp_path: Path, clock: Clock
) -> None:
    number, ended = 0, False
    while not ended:
        number += 1
        folder = tmp_path / f"{number}"
        folder.mkdir()
        shop = Shop(folder, clock, MAIL)
        shop.account.close()
        gc.freeze()  # a fork that collects copies all memory that it goes through
        child = os.fork()
        if child == 0:  # pragma: no cover
            try:
                dying(number, place)
                works(shop)
            finally:
                os._exit(0)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        made = folder / "made"
        lines = made.read_text().split("\n")[:-1] if made.exists() else []
        noted = [line.split()[1] for line in lines]
        whole = folder / "a.ledger"
        if not (whole.exists() and b"\n" in whole.read_bytes()):
            whole.unlink(missing_ok=True)
            continue
        with shop.gate("a") as gate:
            outcomes = [one.outcome for one in gate.history]
        may = sum(one != "failed" for one in noted)
        assert may <= 3, "a cap was exceeded"
        # The rest of the allowance, whoever begins: never more than is left, and what is known to
        # have failed counts no more once its ledger was reopened.
        with shop.gate("b") as gate:
            more = [mail(gate) for _ in range(4)].count("done")
        known = sum(one != "failed" for one in outcomes)
        assert known + more <= 3 <= known + more + 1, (number, outcomes, more)
        assert may + more <= 3
        for name in "ab":
            found = shop.validated(name)
            assert found.word == "INCOMPLETE", (number, found.findings)
    assert number > 15


# Trouble with the account.


def test_without_its_account_nothing_is_let_through(tmp_path: Path, clock: Clock) -> None:
    shop = Shop(tmp_path, clock, MAIL)
    with pytest.raises(SettingsError, match=r"expected account=tcc\.Account\(PATH\)"):
        shop.gate("x", account=None)
    assert not (tmp_path / "x.ledger").exists()
    with pytest.raises(SettingsError, match="account"):
        tcc.Sessions(artifact(MAIL), tmp_path / "store").open({"user": "ann"})
    with pytest.raises(SettingsError, match=r"an opened account: tcc\.Account"):
        tcc.Gate(tcc.compile_text(TEXT), account="desk.account")  # type: ignore[arg-type]
    assert not list((tmp_path / "store").glob("*.ledger"))


def test_an_account_that_is_held_too_long_refuses_and_goes_on_later(
    tmp_path: Path, clock: Clock
) -> None:
    shop = Shop(tmp_path, clock, MAIL)
    held = tcc.Account(tmp_path / "a.account", wait_ms=50)
    with shop.gate("a", account=held) as gate:
        assert mail(gate) == "done"
        with shop.account.transaction():
            assert mail(gate) == "R306"
            assert gate.check("mail", {"to": "x"}).code == "R306"
        assert mail(gate) == "done"
        assert len(gate.history) == 2
    held.close()


def test_a_session_draws_on_one_account(tmp_path: Path, clock: Clock) -> None:
    shop = Shop(tmp_path, clock, MAIL)
    with shop.gate("a") as gate:
        mail(gate)
    other = tcc.Account(tmp_path / "b.account")
    with shop.gate("a", account=other) as gate:
        assert mail(gate) == "R306"
    assert Windows(other).numbers() == {"held": 0, "returned": 0}
    found = tcc.validate(tmp_path / "a.ledger", artifact(MAIL), account=other)
    assert {one.code.value for one in found.findings} == {"D301", "K201"}
    other.close()


def test_draws_are_compared_with_the_ledger_that_was_validated(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, readings = Shop(tmp_path, clock, MAIL), []
    with shop.gate("a") as gate:
        mail(gate)
        before = (tmp_path / "a.ledger").read_bytes()
        mail(gate)

    class Changing(verbs.LedgerInput):
        """A file that has one call fewer from the third reading on."""

        def __iter__(self) -> Iterator[bytes]:
            readings.append(self)
            yield (tmp_path / "a.ledger").read_bytes() if len(readings) <= 2 else before

    monkeypatch.setattr(verbs, "LedgerInput", Changing)
    found = shop.validated("a")
    assert (found.claim_upheld, found.findings[-1].code.value) == (False, "L102")


@pytest.mark.parametrize("version", [1, 3])
def test_a_file_of_another_version_is_declined(version: int, tmp_path: Path, clock: Clock) -> None:
    Shop(tmp_path, clock, MAIL).account.close()
    with sqlite3.connect(tmp_path / "a.account") as database:
        database.execute(f"PRAGMA user_version = {version}")
    database.close()
    with pytest.raises(Rejected, match="K102"):
        tcc.Account(tmp_path / "a.account")


DAMAGE = [
    "UPDATE tally SET total = '0'", "UPDATE tally SET total = '-1'",
    "UPDATE use SET amount = 'x'",
    "UPDATE use SET state = 'gone'", "UPDATE use SET at_ms = 'x'", "DELETE FROM windows",
    "UPDATE windows SET secret = 'x'", "UPDATE use SET amount = '9'",
    "UPDATE tally SET since_ms = -1",
    "CREATE TRIGGER t AFTER INSERT ON use BEGIN DELETE FROM use; END", "DROP INDEX use_of_key",
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_account_is_refused(damage: str, tmp_path: Path, clock: Clock) -> None:
    shop = Shop(tmp_path, clock, MAIL)
    with shop.gate("a") as gate:
        mail(gate)
    shop.account.close()
    with sqlite3.connect(tmp_path / "a.account") as database:
        database.execute(damage)
    database.close()
    with pytest.raises(Rejected, match="K101"):
        account = tcc.Account(tmp_path / "a.account")
        try:
            Windows(account).numbers()
            Windows(account).count("s", 1, (), START)
        finally:
            account.close()


# Forgeries.


def records_of(path: Path) -> list[dict[str, Any]]:
    return [dict(record) for record in LedgerReader([path.read_bytes()])]


def forged(records: list[dict[str, Any]], key: bytes) -> bytes:
    """The records, with MACs and a chain of their own, by who has the key."""
    lines, head = [], FIRST_HEAD
    for record in records:
        bare = {name: value for name, value in record.items() if name not in ("mac", "~")}
        body = encode({**bare, "mac": mac_of(bare, head, key)})
        line, head = seal(body, head)
        lines.append(line)
    return b"".join(lines)


def changed(call: dict[str, Any], how: str) -> None:
    across = call["across"]
    draw = across["draws"][0]
    match how:
        case "gone":
            del call["across"]
        case "no draws":
            across["draws"] = []
        case "twice":
            across["draws"] *= 2
        case "account":
            across["account"] = "ab" * 32
        case "earlier":
            across["at_ms"] -= 1
        case "later":
            across["at_ms"] += 1
        case "attempt":
            across["attempt"] += 1
        case "amount":
            draw["amount"] = "0"
        case "limit":
            draw["limit"] += 1
        case "bound":
            draw["bound"] = "4"
        case "key":
            draw["key"] = "ab" * 32
        case "no key":
            del draw["key"]
        case "left":
            draw["left"] = "3"
        case "left below":
            draw["left"] = "-1"
        case "member":
            across["more"] = 1
        case "text":
            across["attempt"] = "0"


@pytest.mark.parametrize(
    ("how", "alone", "with_account"),
    [
        ("gone", "S213", "S213"), ("no draws", "S213", "S213"), ("twice", "S213", "S213"),
        ("account", "S213", "S213"), ("earlier", "S213", "S213"), ("later", None, "K201"),
        ("attempt", None, "K201"), ("amount", "S213", "S213"), ("limit", "S213", "S213"),
        ("bound", "S213", "S213"), ("key", "S213", "S213"), ("no key", "S213", "S213"),
        ("left", "S213", "S213"), ("left below", "S213", "S213"),
        ("member", "L103", "L103"), ("text", "L103", "L103"),
    ],
)  # fmt: skip
def test_what_a_call_says_that_it_drew_is_held_to(
    how: str, alone: str | None, with_account: str, tmp_path: Path, clock: Clock
) -> None:
    shop = Shop(tmp_path, clock, MAIL)
    with shop.gate("a") as gate:
        for _ in range(2):
            mail(gate)
            clock.now += 5
        gate.finish()
    path = tmp_path / "a.ledger"
    key = bytes.fromhex(Path(f"{path}.key").read_text().strip())
    records = records_of(path)
    calls = [record for record in records if record["kind"] == "call"]
    assert tcc.validate(forged(records, key), artifact(MAIL), key=key).claim_upheld
    if how == "earlier":
        calls[1]["across"]["at_ms"] = calls[0]["across"]["at_ms"]
    changed(calls[1], how)
    data = forged(records, key)
    found = tcc.validate(data, artifact(MAIL), key=key)
    assert {one.code.value for one in found.findings} == ({alone} if alone else set())
    held = tcc.validate(data, artifact(MAIL), key=key, account=shop.account)
    assert {one.code.value for one in held.findings} == {with_account}
    assert not held.claim_upheld
    if alone:
        path.write_bytes(data)
        with pytest.raises((ResumeError, Rejected)):
            shop.gate("a")
    path.unlink()


def test_uses_that_were_taken_out_of_the_account_are_missed(tmp_path: Path, clock: Clock) -> None:
    shop = Shop(tmp_path, clock, MAIL)
    with shop.gate("a") as gate:
        mail(gate)
        mail(gate, "failed")
        gate.finish()
    assert shop.validated("a").claim_upheld
    for how in ("DELETE FROM use", "UPDATE use SET state = 'returned'", "UPDATE use SET at_ms = 1"):
        with shop.account.transaction() as database:
            database.execute("SAVEPOINT honest")
        with sqlite3.connect(tmp_path / "a.account", isolation_level=None) as database:
            kept = list(database.execute("SELECT * FROM use"))
            database.execute(how)
        assert {one.code.value for one in shop.validated("a").findings} == {"K201"}, how
        database.execute("DELETE FROM use")
        marks = ", ".join("?" * len(kept[0]))
        database.executemany(f"INSERT INTO use VALUES ({marks})", kept)
        database.close()
        assert shop.validated("a").claim_upheld


def test_a_call_of_a_grammar_without_such_limits_says_nothing_of_them(
    tmp_path: Path, clock: Clock
) -> None:
    shop = Shop(tmp_path, clock, MAIL)
    with shop.gate("a") as gate:
        mail(gate)
        gate.finish()
    across = records_of(tmp_path / "a.ledger")[1]["across"]
    plain = Shop(tmp_path, clock, HEAD + 'before mail require to != "y"\n')
    with plain.gate("b", account=None) as gate:
        mail(gate)
        gate.finish()
    path = tmp_path / "b.ledger"
    key = bytes.fromhex(Path(f"{path}.key").read_text().strip())
    records = records_of(path)
    records[1]["across"] = across
    found = tcc.validate(forged(records, key), artifact(plain.text), key=key)
    assert {one.code.value for one in found.findings} == {"S213"}
