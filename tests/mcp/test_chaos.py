"""Two relays on one ledger, cancelled, locked out and ended at random moments.

What the server executed is held against what was sent and against the ledger: nothing is executed
that was cancelled, or whose client was gone, while the lock was still another's; every call that
was executed stands in the ledger, and a stranger finds the ledger sound.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import tcc
from tests.mcp.speaking import GRAMMAR, Relayed, locked

_SHOWN = ("--show", "open_case.id,act.id", "--deadline", "2")
_OPS = 40


@dataclass(slots=True)
class Told:
    """What a schedule has seen."""

    sent: int = 0
    cancelled: int = 0
    never: set[str] = field(default_factory=set)  # that may not be executed
    executed: int = 0
    unknown: int = 0
    pings_ms: list[float] = field(default_factory=list)
    stops: list[float] = field(default_factory=list)

    def add(self, other: Told) -> None:
        """Both together."""
        self.sent += other.sent
        self.cancelled += other.cancelled
        self.never |= other.never
        self.executed += other.executed
        self.unknown += other.unknown
        self.pings_ms += other.pings_ms
        self.stops += other.stops


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The artifact, with room for many calls."""
    path = tmp_path_factory.mktemp("long") / "long.tcca"
    tcc.save(tcc.compile_text(GRAMMAR.replace("depth <= 30", "depth <= 90")), path)
    return path


@dataclass(slots=True)
class Schedule:
    """One run: what is sent to whom, and when."""

    chance: random.Random
    relays: list[Relayed]
    told: Told = field(default_factory=Told)
    waits: dict[str, tuple[Relayed, bool]] = field(default_factory=dict)
    keeps: ExitStack | None = None

    def run(self) -> None:
        """Do what is drawn, then end both relays."""
        for number in range(_OPS):
            match self.chance.randrange(12):
                case 0 | 1 | 2 | 3 | 4:
                    self.call(f"c-{number + 10}")
                case 5 | 6 | 7 if self.waits:
                    self.cancel(self.chance.choice(sorted(self.waits)))
                case 8 if self.keeps is None:
                    self.keeps = ExitStack()
                    self.keeps.enter_context(locked(self.relays[0].ledger))
                case 9:
                    self.release()
                case 10:
                    self.ping(self.chance.choice(self.relays))
                case _:
                    time.sleep(self.chance.random() * 0.05)
        for relay in self.relays:
            self.stop(relay)
        self.release()
        for relay in self.relays:
            relay.process.wait(20)

    def call(self, name: str) -> None:
        """Ask for a call; `locked` notes that nobody can make it before the lock is released."""
        relay = self.chance.choice(self.relays)
        how = self.chance.choice(["", "", "late:0.02", "late:0.1", "is_error", "noise", "grow"])
        if self.chance.randrange(5):
            relay.want(name, "act", kind="safe", how=how, id=name)
        else:
            relay.want(name, "never")
        self.told.sent += 1
        self.waits[name] = (relay, self.keeps is not None)

    def cancel(self, name: str) -> None:
        """Cancel a call, at whatever moment."""
        relay, kept = self.waits.pop(name)
        relay.cancel(name)
        self.told.cancelled += 1
        if kept and self.keeps is not None:
            self.told.never.add(name)

    def release(self) -> None:
        """Give the lock back: what waited for it, and was not cancelled, may be made now."""
        if self.keeps is not None:
            self.keeps.close()
            self.keeps = None
        self.waits = {name: (relay, False) for name, (relay, _) in self.waits.items()}

    def ping(self, relay: Relayed) -> None:
        """Ping it, while whatever is under way is under way."""
        began = time.perf_counter()
        assert relay.ask("ping")["result"] == {}
        self.told.pings_ms.append(1000 * (time.perf_counter() - began))

    def stop(self, relay: Relayed) -> None:
        """End it by a signal or by the end of its input; with the lock kept it makes nothing."""
        time.sleep(self.chance.random() * 0.05)
        if self.chance.randrange(2):
            self.told.stops.append(relay.stop_seconds(self.chance.choice(_SIGNALS)))
        elif relay.process.stdin is not None:
            relay.process.stdin.close()
        if self.keeps is not None:
            relay.process.wait(20)
            mine = [name for name, (whose, kept) in self.waits.items() if whose is relay and kept]
            self.told.never.update(mine)


_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def two_relays(folder: Path, artifact: Path) -> Iterator[list[Relayed]]:
    with Relayed(folder, artifact, *_SHOWN) as one, Relayed(folder, artifact, *_SHOWN) as other:
        for relay in (one, other):
            relay.greet()
        assert "isError" not in one.call("open_case", id="c-1")
        yield [one, other]


def chaos(seed: int, folder: Path, artifact: Path) -> Told:
    """One schedule, held to what it may do."""
    with two_relays(folder, artifact) as relays:
        schedule = Schedule(random.Random(seed), relays)
        schedule.run()
    told = schedule.told
    executed = [str(arguments["id"]) for _, arguments in relays[0].executed]
    assert len(executed) == len(set(executed)), "a call was executed twice"
    assert not told.never & set(executed), "a cancelled call was executed"
    calls = [record for record in relays[0].records if record["kind"] == "call"]
    written = {record["open"]["id"]["value"] for record in calls}
    assert set(executed) <= written, "a call was executed that is not in the ledger"
    told.executed = len(executed)
    told.unknown = relays[0].outcomes().count("unknown")
    for relay in relays:
        assert relay.process.returncode == 0
    return told


def shown(runs: int, told: Told) -> str:
    """The figures of some runs."""
    pings, stops = sorted(told.pings_ms), sorted(told.stops)
    return json.dumps(
        {
            "runs": runs,
            "sent": told.sent,
            "cancelled": told.cancelled,
            "never": len(told.never),
            "executed": told.executed,
            "unknown": told.unknown,
            "pings": len(pings),
            "ping_ms": [round(pings[len(pings) * at // 100], 1) for at in (50, 99)],
            "stops": len(stops),
            "stop_s": [round(stops[len(stops) * at // 100], 2) for at in (50, 99)],
        }
    )


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_executed_that_was_cancelled_before_its_permit(
    tmp_path: Path, long: Path, seed: int
) -> None:
    chaos(seed, tmp_path, long)


@pytest.mark.campaign
def test_many_schedules(tmp_path: Path, long: Path) -> None:
    runs, whole = int(os.environ.get("TCC_SCHEDULES", "300")), Told()
    for seed in range(1000, 1000 + runs):
        folder = tmp_path / str(seed)
        folder.mkdir()
        told = chaos(seed, folder, long)
        told.never = {f"{seed} {name}" for name in told.never}
        whole.add(told)
    print(shown(runs, whole))
