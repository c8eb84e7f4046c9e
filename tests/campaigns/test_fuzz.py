"""A few inputs of each fuzzer, and that a fuzzer sees a crash, a hang and a hunger for memory."""

from __future__ import annotations

from pathlib import Path
from random import Random
from types import SimpleNamespace as Namespace

import pytest

from tcc_certs.kernel import check
from tcc_certs.replay.validation import validate
from tests.campaigns import seeds
from tests.campaigns.fuzz import Tally, main, run_batch
from tests.campaigns.grow import least, steps
from tests.campaigns.large import artifacts as large_artifacts, grammars, ledgers
from tests.campaigns.targets import (
    TARGETS,
    Passed,
    Target,
    chained,
    parts,
    read_grammar,
    taken_apart,
)


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_every_input_ends_in_a_coded_answer(name: str) -> None:
    tally = run_batch(TARGETS[name](), name, 0, 0, 300, 60)
    print(tally.words)
    assert not tally.findings and tally.words.total() == 300
    assert len(tally.words) > 5  # inputs get past the first rule


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_large_inputs_end_in_a_coded_answer(name: str) -> None:
    target = TARGETS[name]()
    assert target.large is not None
    large = Target(seeds=[b""], mutate=lambda rng, data: b"", read=target.read, large=target.large)
    tally = run_batch(large, name, 0, 0, 40, 60)
    print(tally.words, tally.slowest, tally.longest)
    assert not tally.findings and tally.large > 25
    assert tally.longest > 1 << 16 and tally.bytes > 40 << 12


@pytest.mark.parametrize("shape", grammars.SHAPES)
def test_each_shape_of_a_large_grammar_has_a_coded_answer(shape) -> None:
    for number in range(4):
        data = shape(Random(number), 2000).encode("utf-8", "surrogatepass")
        assert read_grammar(data)


def test_the_large_artifacts_are_well_formed() -> None:
    made = [check(data).file.manifest for data in large_artifacts.artifacts()]
    assert {one.counts for one in made} == {"exact", "upper"}
    assert {one.nondeterministic for one in made} == {False, True}
    assert {bool(one.relaxed) for one in made} == {False, True}
    assert {one.round_counts for one in made} == {None, 1, 24}


def test_a_ledger_with_a_close_in_its_middle_is_a_finding() -> None:
    target = TARGETS["ledger"]()
    honest = next(data for data in target.seeds if target.read(data) == "verdict 0")
    lines = honest.splitlines(keepends=True)
    assert b'"kind":"close"' in lines[-1]
    with pytest.MonkeyPatch.context() as patch:
        # As if the validator passed whatever it is given.
        passed = Namespace(findings=(), verdict=0)
        patch.setattr("tests.campaigns.targets.validate", lambda *_, **__: passed)
        assert target.read(honest) == "verdict 0"
        for wrong in (honest + lines[1], honest + lines[-1], b"".join(lines[:-1])):
            with pytest.raises(Passed):
                target.read(wrong)


def test_runs_closed_early_are_right_up_to_their_close() -> None:
    raced = seeds.raced()
    closed = ledgers.closed_early(raced, seeds.RUNS)
    by_digest = {item.file.digest.hex(): item for item in raced.values()}
    races = {(records[0]["race"], records[0]["keys"]) for records, _ in closed}
    assert len(closed) > 60 and len(races) == 4
    for records, following in closed:
        assert following and records[-1]["stop"] == "interrupted"
        if "beacon" not in records[0]:
            data = b"".join(chained(records, 0))
            assert validate(data, by_digest[records[0]["artifact"]], seed=bytes(32)).verdict == 0


def test_slow_inputs_are_told_and_are_no_findings() -> None:
    target = Target(seeds=[b"abc"], mutate=lambda rng, data: data, read=lambda data: "x")
    tally = run_batch(target, "x", 0, 7, 2, 5, slow=-1)
    assert not tally.findings
    assert [text.split(":")[0] for text, _ in tally.slow] == ["batch 7 place 0", "batch 7 place 1"]
    assert (tally.bytes, tally.longest, tally.large) == (6, 3, 0)


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


def test_runs_within_caps_are_read_beside_their_artifacts() -> None:
    read = TARGETS["ledger"]().read
    answers = {read(b"".join(chained(records, 0))) for _, records in seeds.budgeted()}
    assert answers == {"verdict 0"}


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
