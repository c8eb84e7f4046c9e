"""A few inputs of each fuzzer, and that a fuzzer sees a crash, a hang and a hunger for memory."""

from __future__ import annotations

import time
from pathlib import Path
from random import Random

import pytest

from tests.campaigns.fuzz import Tally, main, run_batch
from tests.campaigns.targets import TARGETS, Target


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_every_input_ends_in_a_coded_answer(name: str) -> None:
    tally = run_batch(TARGETS[name](), name, 0, 0, 300, 60)
    print(tally.words)
    assert not tally.findings and tally.words.total() == 300
    assert len(tally.words) > 5  # inputs get past the first rule


def test_inputs_follow_from_their_numbers() -> None:
    target = TARGETS["artifact"]()
    first, second = (Random("artifact 0 3") for _ in range(2))
    assert [target.make(first) for _ in range(50)] == [target.make(second) for _ in range(50)]


@pytest.mark.parametrize(
    ("fault", "word"),
    [
        (lambda data: str(1 // 0), "ZeroDivisionError"),
        (lambda data: time.sleep(9), "TooSlow"),
        (lambda data: data.decode("ascii") * (1 << 60), "MemoryError"),
    ],
)
def test_a_fault_is_a_finding(fault, word: str) -> None:
    target = Target(make=lambda rng: b"abc", read=fault)
    tally = run_batch(target, "x", 0, 7, 2, 0.2)
    assert tally.words == {word: 2}
    text, data = tally.findings[1]
    assert text.startswith(f"batch 7 place 1: {word}") and data == b"abc"


def test_findings_are_kept_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = Tally(findings=[("batch 4 place 2: KeyError", b"bytes")])
    monkeypatch.setattr("tests.campaigns.fuzz.work", lambda *_: found)
    monkeypatch.setattr("sys.argv", ["fuzz", "ledger", "--batch", "4", "--out", str(tmp_path)])
    assert main() == 1
    assert (tmp_path / "finding-0.bin").read_bytes() == b"bytes"
    assert "batch 4 place 2" in capsys.readouterr().err
