"""Drawn schedules of several processes on one store: kills, clock steps, cancels, calls at once.

A process of a schedule is a set of gates with a queue of its own, whose locks are those of the
system; to be killed is to lose its file handles, at times in the middle of a line.  The world is
kept beside: what really happened of each call that was let through, which no gate is told of a call
that is unknown.  Held are the limits of the grammar in that world, and that every ledger is what
happened, as far as it was told, and valid.
The campaign: python -m pytest -m campaign tests/gate/test_simulation.py -s
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import tcc
from tcc_certs.session.validation import validate
from tcc_runtime.errors import LedgerError, ResumeError
from tcc_runtime.gate import shared
from tcc_runtime.gate.permit import NotYet, Turns
from tests.gate.grammars import artifact, bytes_of

TEXT = """grammar pay version "1"
tool look(; p: text) gives (r: yes | no) { errors mean failed parallel }
tool note(; p: text) { parallel }
tool approve(; p: text)
tool pay(n: 1 | 2; p: text)
plan = (look | note | approve | pay){0,16}
limit uses(pay) <= 2
limit uses(pay) per p <= 1
require approve before each pay same p
forbid look(r=no) before pay(n=2)
"""
WHO = ("alice", "bob")
SECONDS = float(os.environ.get("TCC_SIMULATION_SECONDS", "240"))  # of the campaign
_CLOSED = (LedgerError, tcc.Refused)


@dataclass
class Told:
    """A call that was let through: what happened, and what its gate was told."""

    tool: str
    p: str
    happened: bool = False
    outcome: str = "none"


@dataclass
class Process:
    """Gates that end together."""

    store: tcc.Sessions
    gates: list[tcc.Gate] = field(default_factory=list)
    open: list[tuple[tcc.Gate, Any, Told]] = field(default_factory=list)
    clock: list[int] = field(default_factory=lambda: [1_700_000_000_000])


class World:
    """One schedule."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.rng = random.Random(seed)
        self.folder = folder
        self.made: dict[str, list[Told]] = {}
        self.processes = [self._process() for _ in range(self.rng.randint(2, 3))]
        self.counts: Counter[str] = Counter()

    def _process(self) -> Process:
        clock = [1_700_000_000_000 + self.rng.randrange(5_000)]
        store = tcc.Sessions(
            artifact(TEXT),
            self.folder / "store",
            False,
            clock=lambda: clock[0],
            renew_ms=20_000,
            wait=False,
        )
        return Process(store=store, clock=clock)

    def run(self) -> None:
        for _ in range(self.rng.randint(100, 250)):
            process = self.rng.choice(self.processes)
            process.clock[0] += self.rng.randrange(50)
            what = self.rng.choices(
                [self.opens, self.calls, self.tells, self.kills, self.steps, self.resolves,
                 self.ends],
                [0.7, 14, 13, 0.3, 0.1, 1, 0.1],
            )[0]  # fmt: skip
            what(process)
        for process in self.processes:
            self.die(process)
        self.judge()

    # What may happen.

    def opens(self, process: Process) -> None:
        if len(process.gates) >= 2:
            return
        try:
            principal = self.rng.choice((*WHO, *WHO, None))
            process.gates.append(process.store.open(principal=principal))
            self.counts["opened"] += 1
        except LedgerError as error:
            assert "somebody else has its lock" in str(error), error
            self.counts["held by another"] += 1

    def calls(self, process: Process) -> None:
        if not process.gates:
            return self.opens(process)
        gate = self.rng.choice(process.gates)
        # So many payments that the caps are met in most sessions that live for a while.
        tool = self.rng.choice(
            ("look", "note", "approve", "approve", "approve", "pay", "pay", "pay")
        )
        told = Told(tool, self.rng.choice("xxyz"))
        arguments: dict[str, Any] = {"p": told.p}
        if tool == "pay":
            arguments["n"] = self.rng.choice((1, 2))
        try:
            turn = gate.try_turn()
        except tcc.Refused:
            return self.let_go(process, gate)
        if turn is None:
            self.counts["turn is another's"] += 1
            return None
        if self.rng.random() < 0.05:  # the call was cancelled while its turn was waited for
            self.counts["cancelled"] += 1
            return gate.give_back(turn)
        permit = gate.call(tool, arguments, turn=turn)
        try:
            permit.__enter__()
        except NotYet:
            self.counts["waits"] += 1
            return None
        except tcc.Refused:
            self.counts["refused"] += 1
            return None
        made = self.made.setdefault(gate.session_id, [])
        assert permit.seq == len(made) + 1
        made.append(told)
        process.open.append((gate, permit, told))
        self.counts["under way together"] += len(process.open) > 1
        self.counts["made"] += 1
        told.happened = self.rng.random() < 0.8
        self.hold(gate.session_id)
        return None

    def tells(self, process: Process) -> None:
        if not process.open:
            return
        gate, permit, told = process.open.pop(self.rng.randrange(len(process.open)))
        if self.rng.random() < 0.15:
            told.outcome = "unknown"
            permit.unknown()
        elif told.happened:
            told.outcome = "done"
            answer = self.rng.choice(("yes", "yes", "no"))
            permit.done({"r": answer} if told.tool == "look" else None)
        else:
            told.outcome = "failed"
            permit.failed(answered=told.tool == "look" and self.rng.random() < 0.5)
        permit.__exit__(None, None, None)
        # One that was let go of is closed behind its last call: outcomes would be lost before.
        if not any(other is gate for other in (*process.gates, *[g for g, _, _ in process.open])):
            gate.close()

    def kills(self, process: Process) -> None:
        self.counts["killed"] += 1
        torn = [
            gate._shared.journal.path
            for gate, _, _ in process.open
            if self.rng.random() < 0.5  # it has the lock: it was just writing
        ]
        for path in set(torn):
            with path.open("ab") as file:
                file.write(b'{"code":"R202","kind":"refu'[: self.rng.randint(1, 27)])
        self.die(process)
        self.processes[self.processes.index(process)] = self._process()

    def die(self, process: Process) -> None:
        for gate in {*process.gates, *[gate for gate, _, _ in process.open]}:
            journal: Any = gate._shared.journal
            if journal._handle >= 0:
                os.close(journal._handle)
                journal._handle = -1
        process.gates, process.open = [], []

    def steps(self, process: Process) -> None:
        self.counts["clock steps"] += 1
        process.clock[0] += self.rng.choice((-3_600_000, -5_000, 5_000, 30_000))
        process.clock[0] = max(process.clock[0], 1)

    def resolves(self, process: Process) -> None:
        for gate in process.gates:
            try:
                turn = gate.try_turn()
            except tcc.Refused:
                return
            if turn is None:
                continue
            made = self.made.get(gate.session_id, [])
            lost = [
                one.seq
                for one in gate.history
                if one.outcome == "unknown" and made[one.seq - 1].tool != "look"
            ]
            if not lost or gate.ended:
                gate.give_back(turn)
                continue
            seq = self.rng.choice(lost)
            outcome = "done" if made[seq - 1].happened else "failed"
            gate.resolve(seq, outcome, turn=turn)  # type: ignore[arg-type]
            made[seq - 1].outcome = outcome
            self.counts["resolved"] += 1

    def ends(self, process: Process) -> None:
        if process.gates:
            gate = self.rng.choice(process.gates)
            try:
                turn = gate.try_turn()
                if turn is not None:
                    gate.finish(abandon=self.rng.random() < 0.5, turn=turn)
                    self.counts["ended"] += 1
            except (NotYet, *_CLOSED):
                pass
            self.let_go(process, gate)

    def let_go(self, process: Process, gate: tcc.Gate) -> None:
        process.gates.remove(gate)
        if not any(other is gate for other, _, _ in process.open):
            gate.close()

    # What has to hold.

    def hold(self, session: str) -> None:
        """The limits of the grammar, in the world."""
        pays = Counter[str]()
        approved = Counter[str]()
        for told in self.made[session]:
            if told.happened and told.tool == "approve":
                approved[told.p] += 1
            if told.happened and told.tool == "pay":
                pays[told.p] += 1
                assert pays[told.p] <= 1 and pays.total() <= 2, "a cap was exceeded"
                # One that is known to be done was needed for each, and used up.
                assert pays[told.p] <= approved[told.p], "a payment without approval"
                self.counts["at a cap"] += pays[told.p] == 1 or pays.total() == 2

    def judge(self) -> None:
        """Every ledger has what happened, and is valid."""
        found = self.processes[0].store
        for session, made in self.made.items():
            try:
                found.get(session).close()  # taken up once more: what was under way is unknown
            except ResumeError as error:
                assert "a session that goes on" in str(error), error  # it has ended
            data = (found.folder / f"{session}.ledger").read_bytes()
            said = validate(data, bytes_of(found.artifact), key=found.key_of(session))
            findings = [one for one in said.findings if one.code.value != "D301"]
            assert not findings, findings
            self._compare(data, made)
        self.counts["sessions"] += len(self.made)

    def _compare(self, data: bytes, made: list[Told]) -> None:
        recorded: list[list[str]] = []
        for line in data.splitlines():
            record = json.loads(line)
            if record["kind"] == "call":
                recorded.append([record["call"].partition("(")[0], "none"])
            elif record["kind"] in ("outcome", "resolve"):
                recorded[record["seq"] - 1][1] = record["outcome"]
        assert [name for name, _ in recorded] == [told.tool for told in made], "a call was lost"
        for (_, outcome), told in zip(recorded, made, strict=True):
            due = "unknown" if told.outcome == "none" else told.outcome
            assert outcome == due, "an outcome was lost"


@pytest.fixture(autouse=True)
def _processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each gate has a queue of its own, as if it were alone in its process."""
    monkeypatch.setattr(shared, "turns_of", lambda device, inode: Turns())


@pytest.mark.parametrize("part", range(4))
def test_schedules_keep_limits_and_lose_nothing(part: int, tmp_path: Path) -> None:
    counts = Counter[str]()
    for seed in range(part * 10, part * 10 + 10):
        folder = tmp_path / str(seed)
        folder.mkdir()
        world = World(seed, folder)
        world.run()
        counts += world.counts
    for what in (
        "made",
        "under way together",
        "killed",
        "waits",
        "refused",
        "resolved",
        "at a cap",
    ):
        assert counts[what] > 0, counts


@pytest.mark.campaign
def test_schedules_for_some_minutes(tmp_path: Path) -> None:
    counts, seed = Counter[str](), 1_000
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        folder = tmp_path / str(seed)
        folder.mkdir()
        world = World(seed, folder)
        world.run()
        counts += world.counts
        counts["schedules"] += 1
        seed += 1
        for path in sorted(folder.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
    print(f"simulation: {dict(sorted(counts.items()))}")
    assert counts["schedules"] > 100
