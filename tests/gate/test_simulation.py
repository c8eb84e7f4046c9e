"""Drawn schedules of several processes on one store: kills, outages, clock steps, cancels.

A process of a schedule is a set of gates with a queue of its own, whose locks are those of the
system.  Every system call that changes a file is a moment of the schedule: there the process may be
killed (half of a line is written, and nothing of it any more), or another process does something.
An outage kills all processes, and what the disk was not waited for is lost, up to a drawn byte.
The world is kept beside: what really happened of each call that was let through, which no gate is
told of a call that is unknown.  Held are the limits of the grammar in that world, that every ledger
is what happened, as far as it was told, and valid, and that a principal has one session.
The campaign: python -m pytest -n 0 -m campaign tests/gate/test_simulation.py -s
TCC_SIMULATION_SCHEDULES says how many, TCC_SIMULATION_FIRST from which seed on: a million take two
processes, of which one begins at 500000, some 42 minutes of a core each.
"""

from __future__ import annotations

import json
import logging
import os
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tcc
from tcc_certs.errors import Rejected
from tcc_certs.formats.ledger import LedgerReader
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.session.machine import SessionMachine
from tcc_certs.session.validation import SessionReplay, _read, conclude, machine_of
from tcc_runtime.errors import LedgerError, ResumeError
from tcc_runtime.gate import permit as permits, session_access, store
from tcc_runtime.gate.journal import ledger_file
from tcc_runtime.gate.permit import NotYet, Turns
from tests.campaigns.blocks import blocks
from tests.gate.grammars import artifact, bytes_of

TEXT = """grammar pay version "1"

tool look(p: text) gives (r: yes | no) { errors mean failed parallel }
tool note(p: text) { parallel }
tool approve(p: text)
tool pay(n: 1 | 2, p: text)

plan = (look | note | approve | pay){0,16}

limit count(pay) <= 2
limit count(pay) per p <= 1 in session
before pay require unused approve(same p)
before pay(n = 2) require no look(r = "no")
"""
WHO = ("alice", "bob")
SECONDS = float(os.environ.get("TCC_SIMULATION_SECONDS", "240"))  # of the campaign
MANY = int(os.environ.get("TCC_SIMULATION_SCHEDULES", "0"))  # in place of seconds
FIRST = int(os.environ.get("TCC_SIMULATION_FIRST", "1000"))  # its first seed
_CLOSED = (LedgerError, tcc.Refused)


class Killed(BaseException):
    """The process is no more: nothing of it handles this."""


class Disk:
    """The system calls of one process after the other, each a moment at which something happens.

    Attributes:
        dead: whether the process that is at work was killed.
        until: how many changes it makes until it is killed; None: it is not.
        visit: what another process does, in so many changes.
        synced: bytes of each file that the disk surely has, by inode.
        soon: ledgers that a thread of their process would sync in a while.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.dead = False
        self.until: int | None = None
        self.visit: tuple[int, Callable[[], None]] | None = None
        self.synced: dict[int, int] = {}
        self.soon: list[Any] = []

    def moment(self) -> bool:
        """Whether the process is killed now."""
        if self.dead:
            raise Killed
        if self.visit is not None:
            left, does = self.visit
            self.visit = (left - 1, does) if left else None
            if not left:
                does()
        if self.until is None:
            return False
        self.until -= 1
        self.dead = self.until < 0
        return self.dead

    def put(self, journal: Any) -> None:
        self.soon.append(journal)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """The system calls of the code under test go through here."""
        real = {name: getattr(os, name) for name in ("write", "fsync", *_CHANGES)}
        kept = ledger_file._sync, ledger_file._later, ledger_file._flock, store._lock

        def write(handle: int, data: Any) -> int:
            if self.moment():
                real["write"](handle, bytes(data)[: self.rng.randrange(len(data) + 1)])
                raise Killed
            return int(real["write"](handle, data))

        def change(name: str) -> Callable[..., Any]:
            def changes(*args: Any, **more: Any) -> Any:
                if self.moment():
                    if self.rng.random() < 0.5:
                        real[name](*args, **more)
                    raise Killed
                return real[name](*args, **more)

            return changes

        def sync(handle: int) -> None:
            if self.dead:
                return
            if self.moment():
                raise Killed
            found = os.fstat(handle)
            self.synced[found.st_ino] = found.st_size

        def locking(lock: Callable[..., Any]) -> Callable[..., Any]:
            def locks(handle: int, *, wait: bool) -> Any:
                if self.moment():
                    raise Killed
                return lock(handle, wait=wait)

            return locks

        def flock(handle: int, operation: int) -> None:
            if operation != ledger_file._UNLOCK and self.moment():
                raise Killed
            kept[2](handle, operation)

        os.write, os.fsync = write, sync
        for name in _CHANGES:
            setattr(os, name, change(name))
        ledger_file._sync, ledger_file._later = sync, self  # type: ignore[assignment]
        ledger_file._flock, store._lock = flock, locking(kept[3])
        try:
            yield
        finally:
            for name, function in real.items():
                setattr(os, name, function)
            ledger_file._sync, ledger_file._later, ledger_file._flock, store._lock = kept


_CHANGES = ("ftruncate", "unlink", "replace", "rename", "link")


@dataclass
class Told:
    """A call that was let through: what happened, and what its gate was told."""

    tool: str
    p: str
    happened: bool = False
    outcome: str = "none"
    permitted: bool = True
    cut_off: bool = False  # its `resolve` was killed in the middle: an outage may take the record


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
        self.disk = Disk(self.rng)
        self.folder = folder / "store"
        self.made: dict[str, list[Told]] = {}
        self.counts: Counter[str] = Counter()
        self.inside = False
        # Most are short: what goes wrong mostly does in few steps, so that many begin anew.
        long = self.rng.random() < 0.04
        self.steps_left = self.rng.randint(100, 250) if long else self.rng.randint(12, 40)
        self.roll_bytes = self.rng.choice((None, 1, 2_000, 4_000))
        self.processes = [self._process() for _ in range(self.rng.randint(2, 3))]

    def _process(self) -> Process:
        clock = [1_700_000_000_000 + self.rng.randrange(5_000)]
        found = tcc.Sessions(
            artifact(TEXT), self.folder, clock=lambda: clock[0], renew_ms=20_000, wait=False,
            roll_bytes=self.roll_bytes if self.rng.random() < 0.8 else None,
        )  # fmt: skip
        return Process(store=found, clock=clock)

    def run(self) -> None:
        with self.disk.at_work():
            while self.steps_left > 0:
                self.steps_left -= 1
                self.step()
            for process in self.processes:
                self.die(process)
        self.judge()

    def step(self) -> None:
        rng, disk = self.rng, self.disk
        process = rng.choice(self.processes)
        process.clock[0] += rng.randrange(50)
        drawn = rng.random()
        disk.until = rng.randrange(12) if drawn < 0.04 else None
        if drawn > 0.9:
            other = rng.choice([one for one in self.processes if one is not process])
            disk.visit = rng.randrange(8), lambda: self.visited(other)
        what = rng.choices(
            [self.opens, self.calls, self.tells, self.kills, self.steps, self.resolves,
             self.ends, self.syncs, self.outage],
            [1.4, 14, 13, 0.3, 0.3, 1, 0.2, 2, 0.15],
        )[0]  # fmt: skip
        try:
            what(process)
        except Killed:
            self.counts["killed inside"] += 1
            self.killed(process)
        finally:
            disk.until = disk.visit = None
            disk.dead = False

    def visited(self, other: Process) -> None:
        """Another process comes between two system calls of the one that is at work."""
        until, self.disk.until = self.disk.until, None
        self.inside = True
        self.counts["came between"] += 1
        self.rng.choice((self.opens, self.calls, self.tells, self.resolves))(other)
        self.inside = False
        self.disk.until = until

    # What may happen.

    def opens(self, process: Process) -> None:
        if len(process.gates) >= 2:
            return
        try:
            principal = self.rng.choice((*WHO, *WHO, None))
            process.gates.append(process.store.open(principal=principal))
            self.counts["opened"] += 1
        except LedgerError as error:
            assert "somebody else has its lock" in str(error) or "unavailable" in str(error), error
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
        made = self.made.setdefault(gate.session_id, [])
        try:
            permit.__enter__()
        except NotYet:
            self.counts["waits"] += 1
            return None
        except tcc.Refused:
            self.counts["refused"] += 1
            return None
        except Killed:
            if len(self.recorded(gate.session_id)) > len(made):
                made.append(Told(tool, told.p, permitted=False))
            raise
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
        try:
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
        except Killed:
            process.open.append((gate, permit, told))
            told.outcome = self.recorded(gate.session_id)[permit.seq - 1][1]
            raise
        # One that was let go of is closed behind its last call: outcomes would be lost before.
        if not any(other is gate for other in (*process.gates, *[g for g, _, _ in process.open])):
            gate.close()

    def kills(self, process: Process) -> None:
        self.counts["killed"] += 1
        torn = [
            self.files(gate.session_id)[-1]
            for gate, _, _ in process.open
            if self.rng.random() < 0.5  # it has the lock: it was just writing
        ]
        for path in set(torn):
            with path.open("ab") as file:
                file.write(b'{"code":"R202","kind":"refu'[: self.rng.randint(1, 27)])
        self.killed(process)

    def killed(self, process: Process) -> None:
        """Its successor begins; the disk is as it was left."""
        self.disk.until = self.disk.visit = None
        self.disk.dead = False
        self.die(process)
        self.processes[self.processes.index(process)] = self._process()

    def outage(self, _process: Process) -> None:
        """All processes end at once, and what the disk was not waited for may be gone."""
        if self.inside:
            return
        self.counts["outages"] += 1
        for process in self.processes:
            self.die(process)
        for path in sorted(self.folder.glob("*.ledger")):
            for file in self.files(path.stem):
                found = file.stat()
                surely = min(self.disk.synced.get(found.st_ino, 0), found.st_size)
                cut = self.rng.randint(surely, found.st_size)
                self.counts["bytes lost"] += found.st_size - cut
                os.truncate(file, cut)
                self.disk.synced[found.st_ino] = cut
            made = self.made.get(path.stem)
            if made is None:
                continue
            recorded = self.recorded(path.stem)
            lost = made[len(recorded) :]
            assert not any(told.permitted for told in lost), "a permitted call is lost"
            del made[len(recorded) :]
            for told, (_, outcome) in zip(made, recorded, strict=True):
                left = told.outcome == "none" or told.cut_off  # unknown, by a process before
                left = left and outcome == "unknown"
                assert left or outcome in ("none", told.outcome), "an outcome was made up"
                self.counts["outcomes lost"] += outcome == "none" != told.outcome
                told.outcome, told.cut_off = outcome, False
        self.processes = [self._process() for _ in self.processes]

    def syncs(self, _process: Process) -> None:
        """The thread that syncs what no call came to sync."""
        self.disk.visit = None  # by nobody whose ledger is just being synced
        while self.disk.soon:
            journal = self.disk.soon.pop()
            journal.queued = False
            if journal._handle >= 0:
                journal.flush()

    def die(self, process: Process) -> None:
        for gate in {*process.gates, *[gate for gate, _, _ in process.open]}:
            journal: Any = gate._access.journal
            for handle in {journal._handle, journal._last} - {-1}:
                os.close(handle)
            journal._handle = journal._last = -1
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
            lost = [seq for seq in lost if seq not in gate._access.session.under_way]
            if not lost or gate.ended:
                gate.give_back(turn)
                continue
            seq = self.rng.choice(lost)
            outcome = "done" if made[seq - 1].happened else "failed"
            try:
                gate.resolve(seq, outcome, turn=turn)  # type: ignore[arg-type]
            except Killed:
                made[seq - 1].outcome = self.recorded(gate.session_id)[seq - 1][1]
                made[seq - 1].cut_off = True
                raise
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

    def files(self, session: str) -> list[Path]:
        """The files of a ledger, in order."""
        first = self.folder / f"{session}.ledger"
        found = [first]
        while (path := first.with_name(f"{first.name}.{len(found)}")).exists():
            found.append(path)
        return found

    def recorded(self, session: str) -> list[list[str]]:
        """Tool and outcome of each call that the ledger has, from its whole lines."""
        found: list[list[str]] = []
        lines: list[bytes] = []
        for file in self.files(session):
            data = file.read_bytes()
            lines += data[: data.rfind(b"\n") + 1].splitlines()
        for line in lines:
            record = json.loads(line)
            if record["kind"] == "call":
                found.append([record["call"].partition("(")[0], "none"])
            elif record["kind"] in ("outcome", "resolve"):
                found[record["seq"] - 1][1] = record["outcome"]
        return found

    def judge(self) -> None:
        """Every ledger has what happened, and is valid; a principal has one session."""
        found, going = self._process().store, Counter[str]()
        for path in sorted(self.folder.glob("*.ledger")):
            session, made = path.stem, self.made.get(path.stem, [])
            # Reopened once more: what was under way is unknown, and what is left of a line cut off.
            # Of those that have neither some are.
            left = any(outcome == "none" for _, outcome in self.recorded(session))
            last = self.files(session)[-1]
            if left or last.read_bytes()[-1:] != b"\n" or self.rng.random() < 0.1:
                try:
                    found.get(session).close()
                except ResumeError as error:
                    assert "an open session" in str(error), error  # it has ended
            files = [file.read_bytes() for file in self.files(session)]
            self.counts["continued"] += len(files) > 1
            self._validate(files, found.key_of(session))
            recorded = self.recorded(session)
            assert [name for name, _ in recorded] == [one.tool for one in made], "a call was lost"
            for (_, outcome), told in zip(recorded, made, strict=True):
                due = "unknown" if told.outcome == "none" else told.outcome
                assert outcome == due, "an outcome was lost"
            header, end = (
                json.loads(files[0].splitlines()[0]),
                json.loads(files[-1].splitlines()[-1]),
            )
            if made and end["kind"] != "end" and "principal" in header:
                going[header["principal"]] += 1
        assert not going or max(going.values()) == 1, "a principal has two sessions"
        self.counts["sessions"] += len(self.made)

    def _validate(self, files: list[bytes], key: bytes) -> None:
        checked, machine = _judged()
        replay = SessionReplay(checked, machine, key)
        try:
            for number, data in enumerate(files, 1):
                reader = LedgerReader((data,))
                _read(replay, reader, None, last=number == len(files))
        except Rejected as refusal:
            replay.findings.refuse(refusal, replay.line)
        said = conclude(replay.findings, replay.session, reader.head)
        findings = [one for one in said.findings if one.code.value != "D301"]
        assert not findings, findings


@cache
def _judged() -> tuple[CheckedArtifact, SessionMachine]:
    """The artifact as the validator has it, and a machine of its own."""
    checked = check(bytes_of(artifact(TEXT)))
    return checked, machine_of(checked)


@pytest.fixture(autouse=True)
def _processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each gate has a queue of its own, as if it were alone in its process."""
    for module in (session_access, permits):
        monkeypatch.setattr(module, "turns_of", lambda device, inode: Turns())


def _played(seed: int, folder: Path) -> World:
    world = World(seed, folder)
    world.run()
    return world


def schedules(first: int, more: Callable[[int], bool]) -> Counter[str]:
    """Runs schedules from a seed on, as long as there are to be more, and counts what happened."""
    counts, seed = Counter[str](), first
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    while more(seed - first):
        folder = Path(tempfile.mkdtemp(dir=memory))
        try:
            # In a context of its own: turns of the killed are never given back, and would be kept.
            world = copy_context().run(_played, seed, folder)
        except BaseException as error:
            error.add_note(f"seed {seed}; so far {dict(counts)}")
            raise
        finally:
            shutil.rmtree(folder)
        counts += world.counts
        counts["schedules"] += 1
        seed += 1
    return counts


@pytest.mark.parametrize("part", blocks(2, 4))
def test_schedules_keep_limits_and_lose_nothing(part: int) -> None:
    counts = schedules(part * 100, lambda done: done < 60)
    for what in (
        "made", "under way together", "killed", "killed inside", "came between", "waits", "refused",
        "resolved", "outages", "at a cap", "continued",
    ):  # fmt: skip
        assert counts[what] > 0, counts


def test_a_resolve_that_was_cut_off_may_be_lost_with_the_disk() -> None:
    """Nobody was told of it, and the call is unknown again, as the ledger has it."""
    assert schedules(5_027_052, lambda done: done < 1)["outages"] > 0


@pytest.mark.campaign
def test_schedules_for_some_minutes() -> None:
    until, begun = time.monotonic() + SECONDS, time.process_time()
    logging.disable(logging.WARNING)
    try:
        counts = schedules(FIRST, lambda done: done < MANY if MANY else time.monotonic() < until)
    finally:
        logging.disable(logging.NOTSET)
    took = (time.process_time() - begun) / counts["schedules"] * 1000
    print(f"simulation: {took:.1f} ms of a core each, {dict(sorted(counts.items()))}")
    assert counts["schedules"] > 100
