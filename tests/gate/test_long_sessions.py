"""Sessions of many calls: gates and validators keep what live keys and windows need.

The campaign: ``TCC_LONG_CALLS=1000000 python -m pytest -m campaign tests/gate/test_long_sessions.py
-s``.
"""

from __future__ import annotations

import os
import time
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import tcc
from tcc_certs.kernel import check
from tcc_certs.session import SessionValidation, validate
from tcc_certs.session.files import files_of
from tcc_certs.session.replay import ReplayedSession
from tcc_certs.verbs.validate import LedgerInput
from tcc_runtime.artifact.load import Artifact
from tests.gate.grammars import bytes_of

KEY = bytes(range(32))
CALLS = int(os.environ.get("TCC_LONG_CALLS", "1000000"))
KEYS = 100
TEXT = """grammar long version "1"

tool find(order: text max 20) gives (status: open | closed)
tool approve(order: text max 20)
tool refund(order: text max 20, amount: number 0 .. 100)
tool note(text: text max 40)

before refund require unused approve(same order)
before refund require last(find(same order)).status = open
before note require count(note(same text) within 10 m) < 3
limit count(refund within 1 h) per order <= 50 in session
limit sum(refund.amount within 1 h) <= 10000000 in session
"""


@cache
def artifact() -> Artifact:
    """The artifact of the policy, whose sessions have no last call."""
    return tcc.compile_text(TEXT)


class Agent:
    """Makes calls with a hundred live keys, one a second; a new key takes the place of an old one
    every 400 calls."""

    def __init__(self, gate: tcc.Gate, clock: list[int]) -> None:
        self.gate, self.clock, self.made = gate, clock, count()

    def make(self, calls: int) -> None:
        for _, number in zip(range(calls), self.made, strict=False):
            self.clock[0] += 1000
            order = f"o{(number // 4) % KEYS}" if number < 4000 else f"p{(number // 4) % KEYS}"
            tool = ("find", "approve", "refund", "note")[number % 4]
            arguments: dict[str, Any] = {"order": order}
            if tool == "refund":
                arguments["amount"] = number % 97
            elif tool == "note":
                arguments = {"text": f"note {number}"}
            with self.gate.call(tool, arguments) as permit:
                permit.done({"status": "open"} if tool == "find" else None)


def opened(path: Path | None, clock: list[int], calls: int) -> tcc.Gate:
    return tcc.Gate(
        artifact(), ledger=path, key=KEY, durable=False, clock=lambda: clock[0],
        roll_bytes=16_000_000 if calls >= CALLS else 1_000_000,
    )  # fmt: skip


def validated(path: Path) -> tuple[SessionValidation, ReplayedSession]:
    sessions: list[ReplayedSession] = []
    first, *more = [LedgerInput(file) for file in files_of(path)]
    found = validate(
        first, check(bytes_of(artifact())), more=more, key=KEY,
        tell=lambda record, session: sessions.append(session) if not sessions else None,
    )  # fmt: skip
    return found, sessions[0]


def kept_by(gate: tcc.Gate) -> int:
    """The calls of which a gate has more than a sum."""
    session = gate._access.session
    history: Any = session.course.history
    lines = [line for tally in history._tallies.values() for line in tally._lines.values()]
    kept = len(history.calls) + len(list(session.made)) + sum(len(line.draws) for line in lines)
    return kept + len(history._drawn) + len(history.log) + len(history.watched)


@pytest.mark.parametrize("has_ledger", [False, True])
def test_a_gate_and_a_validator_keep_a_bounded_number_of_calls(
    has_ledger: bool, tmp_path: Path
) -> None:
    calls, clock = 6000, [1_700_000_000_000]
    path = tmp_path / "l" if has_ledger else None
    gate = opened(path, clock, calls)
    agent = Agent(gate, clock)
    agent.make(3000)
    assert len(gate.history) == 1000 and gate.history[-1].seq == gate.call_count == 3000
    most = kept_by(gate)
    agent.make(3000)
    assert kept_by(gate) < most + 1500
    assert kept_by(gate) < 6000
    assert [one.seq for one in gate.history] == list(range(5001, 6001))
    assert not gate.check("refund", {"order": "p1", "amount": 1}).allowed
    gate.finish()
    gate.close()
    if path is None:
        return
    found, session = validated(path)
    assert (found.word, found.checked["calls"], len(found.lines) > 2) == ("VALID", calls, True)
    history: Any = session.course.history
    assert len(history.calls) < 2500
    assert len(session.keys) == 0
    assert len(session.reader._states) + len(session.reader._refs) < 5000


def test_a_session_of_many_calls_is_reopened_with_the_same_memory(tmp_path: Path) -> None:
    calls, clock, path = 3000, [1_700_000_000_000], tmp_path / "l"
    with opened(path, clock, calls) as gate:
        Agent(gate, clock).make(2600)
        history = gate.history
        before = kept_by(gate)
    with opened(path, clock, calls) as gate:
        assert gate.history == history
        assert kept_by(gate) == before
        assert gate.check("refund", {"order": "o1", "amount": 1}).code == "R202"


def test_an_id_is_known_for_the_whole_session() -> None:
    gate = opened(None, [1_700_000_000_000], 3000)
    for number in range(2500):
        with gate.call("find", {"order": "x"}, ref=str(number)) as permit:
            permit.failed()
    assert gate.outcome_of("3") == "failed"
    assert gate.seq_of("3") == 4
    with pytest.raises(tcc.AlreadyDone), gate.call("find", {"order": "x"}, ref="3"):
        pass
    with pytest.raises(ValueError, match="more than 1000 calls is not planned"):
        gate.word()


def resident() -> float:
    """The memory of this process, in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@pytest.mark.campaign
def test_memory_and_time_are_flat_over_many_calls(tmp_path: Path) -> None:
    clock, path = [1_700_000_000_000], tmp_path / "l"
    gate = opened(path, clock, CALLS)
    agent, part = Agent(gate, clock), CALLS // 10
    sizes, times = [], []
    for _ in range(10):
        begun = time.process_time()
        agent.make(part)
        times.append((time.process_time() - begun) / part * 1e6)
        sizes.append(resident())
    gate.finish()
    gate.close()
    begun = time.process_time()
    found, session = validated(path)
    took = time.process_time() - begun
    history: Any = session.course.history
    print(f"\ngate: MiB {[round(one) for one in sizes]}, us/call {[round(one) for one in times]}")
    print(f"validator: {took / CALLS * 1e6:.0f} us/call, {len(history.calls)} calls kept, "
          f"{resident():.0f} MiB, {len(found.lines)} files")  # fmt: skip
    assert (found.word, found.claim_type) == ("VALID", "Conformant")
    assert sizes[-1] < sizes[1] + 10
    assert max(times[5:]) < 1.5 * max(times[1:5])
