"""A few inputs of each fuzzer, and that a fuzzer sees a crash, a hang and a hunger for memory."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.campaigns import seeds
from tests.campaigns.fuzz import Tally, main, run_batch
from tests.campaigns.grow import least, steps
from tests.campaigns.targets import TARGETS, Target, parts, taken_apart


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
        (lambda data: sum(at for at in iter(int, 1)), "TooSlow"),
        (lambda data: data.decode("ascii") * (1 << 60), "MemoryError"),
    ],
)
def test_a_fault_is_a_finding(fault, word: str) -> None:
    target = Target(seeds=[b"abc"], mutate=lambda rng, data: data, read=fault)
    tally = run_batch(target, "x", 0, 7, 2, 0.2)
    assert tally.words == {word: 2}
    text, data = tally.findings[1]
    assert text.startswith(f"batch 7 place 1: {word}") and data == b"abc"


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_every_seed_and_every_file_of_the_corpus_has_a_coded_answer(name: str) -> None:
    target = TARGETS[name]()
    words = {target.read(data) for data in target.seeds}
    print(sorted(words))
    assert len(words) > 5


def test_seeds_are_taken_apart() -> None:
    # What could not be taken apart would have its bytes edited, and never get past a digest.
    artifacts, ledgers = TARGETS["artifact"]().seeds, TARGETS["ledger"]().seeds
    assert all(map(parts, artifacts[: len(seeds.artifacts())]))
    assert all(map(taken_apart, ledgers[: len(seeds.ledgers(seeds.raced()))]))


def test_the_corpus_keeps_what_adds_a_step_and_no_more() -> None:
    def found(*names: str) -> frozenset:
        return frozenset((name, 0, 0) for name in names)

    more = [
        (b"long", found("a", "b", "c")),
        (b"b", found("b")),
        (b"d", found("d")),
        (b"a", found("a")),
    ]
    assert least([found("a")], more) == [b"long", b"d"]
    assert least([found("a", "b", "c", "d")], more) == []


def test_steps_are_those_of_a_package() -> None:
    read = TARGETS["artifact"]().read
    taken = steps(read, b"\0" * 9, "tcc_certs")
    assert taken and all("/tcc_certs/" in name for name, _, _ in taken)
    assert any(name.endswith("container.py") for name, _, _ in taken)
    assert steps(read, b"\0" * 9, "no_such_package") == frozenset()


def test_findings_are_kept_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = Tally(findings=[("batch 4 place 2: KeyError", b"bytes")])
    monkeypatch.setattr("tests.campaigns.fuzz.work", lambda *_: found)
    monkeypatch.setattr("sys.argv", ["fuzz", "ledger", "--batch", "4", "--out", str(tmp_path)])
    assert main() == 1
    assert (tmp_path / "finding-0.bin").read_bytes() == b"bytes"
    assert "batch 4 place 2" in capsys.readouterr().err
